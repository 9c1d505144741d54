#include "report/serve_cards.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "report/serve_report.h"

namespace ullage::report {
namespace {

namespace hf = engines::transformers;

// "model.layers.7" as "model.layers." and 7; -1: no number ends it.
std::int64_t number_behind(const std::string& name, std::string& prefix) {
  const std::size_t dot = name.rfind('.');
  const std::string_view digits = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < 0) return -1;
  prefix = name.substr(0, dot + 1);
  return number;
}

// Those of one card in the map's order, numbers in a row as one: "model.layers.0-39".
std::vector<std::string> modules_of(const hf::Placement& placement, std::int32_t card) {
  struct Row {
    std::string prefix;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  std::vector<std::string> out;
  Row row;
  const auto end_row = [&] {
    if (row.prefix.empty()) return;
    const std::string numbers =
        row.first == row.last ? std::to_string(row.first) : fmt::format("{}-{}", row.first, row.last);
    out.push_back(row.prefix + numbers);
    row = {};
  };
  for (const auto& [name, device] : placement.modules) {
    if (device != card) continue;
    std::string prefix;
    const std::int64_t number = number_behind(name, prefix);
    if (number >= 0 && prefix == row.prefix && number == row.last + 1) {
      row.last = number;
      continue;
    }
    end_row();
    if (number < 0) out.push_back(name);
    else row = {prefix, number, number};
  }
  end_row();
  return out;
}

std::int64_t left_on(const Prediction& p) {
  return p.fit.headroom_bytes.value_or(-p.peak.process_bytes.value_or(p.peak.allocated_bytes));
}

// The card that fails first, or has least left.
std::size_t worst_of(const std::vector<Prediction>& cards) {
  const auto rank = [](const Prediction& p) { return std::pair(p.fit.fits.value_or(true), left_on(p)); };
  return static_cast<std::size_t>(
      std::min_element(cards.begin(), cards.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); }) -
      cards.begin());
}

RankLine rank_of(const Prediction& p, std::size_t card, const hf::Placement& placement) {
  RankLine out;
  out.name = fmt::format("cuda:{}", card);
  out.gpu = p.device.name;
  out.usable_bytes = p.device.usable_bytes;
  out.peak = p.peak;
  out.components = p.components;
  out.fit = p.fit;
  out.modules = modules_of(placement, static_cast<std::int32_t>(card));
  return out;
}

void add(Work& to, const Work& more) {
  to.forward_flops += more.forward_flops;
  to.backward_flops += more.backward_flops;
}

// "rtx-4090" of equal cards, else each kind in a row.
std::string ids_of(std::span<const hardware::Gpu> gpus) {
  std::string out;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (i == 0 || gpus[i].id != gpus[i - 1].id) out.append(i == 0 ? "" : ",").append(gpus[i].id);
  }
  return out;
}

// Product names, those behind the first with their counts: "GeForce RTX 4070 + 2 x GeForce RTX 4090".
std::string titles_of(std::span<const hardware::Gpu> gpus) {
  std::string out;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t next = i;
    while (next < gpus.size() && gpus[next].id == gpus[i].id) ++next;
    out += i == 0 ? gpus[i].name : fmt::format(" + {} x {}", next - i, gpus[i].name);
    i = next;
  }
  return out;
}

// Which card it is that is full, as the driver numbers them.
void number_full_card(Prediction& p, std::size_t card) {
  constexpr std::string_view kFirst = "GPU 0 ";
  const std::size_t at = p.full ? p.full->message.find(kFirst) : std::string::npos;
  if (at != std::string::npos) p.full->message.replace(at, kFirst.size(), fmt::format("GPU {} ", card));
}

}  // namespace

Prediction serve_report(const CardsQuestion& question) {
  std::vector<Prediction> cards;
  for (std::size_t i = 0; i < question.served.size(); ++i) {
    const hardware::Gpu* gpu = question.gpus.empty() ? nullptr : &question.gpus[i];
    cards.push_back(serve_report(ServeQuestion{question.architecture, question.options, question.served[i], gpu,
                                               question.allocator, question.used_bytes}));
  }
  std::vector<RankLine> ranks;
  Work work;
  std::int64_t process = 0;
  bool certain = true;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    ranks.push_back(rank_of(cards[i], i, question.placement));
    add(work, cards[i].work);
    process += cards[i].peak.process_bytes.value_or(0);
    certain = certain && cards[i].fit.certain.value_or(true);
  }
  const std::size_t worst = worst_of(cards);
  Prediction out = std::move(cards[worst]);
  number_full_card(out, worst);
  // One card that surely fails decides, whatever is doubtful on others.
  if (out.fit.certain && out.fit.fits.value_or(true)) out.fit.certain = certain;
  out.device.count = static_cast<std::int64_t>(cards.size());
  if (!question.gpus.empty()) {
    out.device.name = ids_of(question.gpus);
    out.device.title = titles_of(question.gpus);
  }
  out.work = work;
  out.ranks = std::move(ranks);
  out.worst_rank = worst;
  out.total_process_bytes = process;
  return out;
}

}  // namespace ullage::report
