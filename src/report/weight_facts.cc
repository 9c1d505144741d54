#include "report/weight_facts.h"

#include <fmt/core.h>

#include <map>
#include <tuple>

#include "base/bytes.h"
#include "report/layout.h"

namespace ullage::report {
namespace {

constexpr std::size_t kName = 46;
constexpr std::size_t kScheme = 12;

double bits_of_weight(const WeightFacts& facts) {
  return facts.weights == 0 ? 0 : 8.0 * static_cast<double>(facts.bytes) / static_cast<double>(facts.weights);
}

// "blk.3.attn_q.weight" as "blk.*.attn_q.weight".
std::string without_layer(const model::MixTensor& tensor) {
  const std::string at = fmt::format("blk.{}.", tensor.layer);
  return tensor.layer >= 0 && tensor.name.starts_with(at) ? "blk.*." + tensor.name.substr(at.size()) : tensor.name;
}

std::int64_t elements_of(const model::MixTensor& tensor) {
  std::int64_t out = 1;
  for (const std::int64_t size : tensor.shape) out = multiply_saturated(out, size);
  return out;
}

void sum_up(WeightFacts& facts) {
  for (const model::StoredWeight& line : facts.lines) {
    facts.bytes = add_saturated(facts.bytes, multiply_saturated(line.copies, line.bytes()));
    facts.weights = add_saturated(facts.weights, multiply_saturated(line.copies, line.elements));
  }
}

}  // namespace

WeightFacts weight_facts(std::string quantisation, std::vector<model::StoredWeight> stored) {
  WeightFacts out{std::move(quantisation), std::move(stored), 0, 0};
  sum_up(out);
  return out;
}

WeightFacts weight_facts(std::string mix, const std::vector<model::MixTensor>& tensors) {
  WeightFacts out{std::move(mix), {}, 0, 0};
  std::map<std::tuple<std::string, model::GgmlType, std::int64_t>, std::size_t> seen;
  for (const model::MixTensor& tensor : tensors) {
    const std::string type(model::layout_of(tensor.type).name);
    const std::string name = without_layer(tensor);
    const auto [at, is_new] = seen.try_emplace({name, tensor.type, tensor.bytes}, out.lines.size());
    const std::int64_t elements = elements_of(tensor);
    if (is_new) out.lines.push_back({name, type, 0, elements, {{"", type, elements, tensor.bytes}}});
    ++out.lines[at->second].copies;
  }
  sum_up(out);
  return out;
}

Json weights_json(const WeightFacts& facts) {
  Json lines = Json::array();
  for (const model::StoredWeight& line : facts.lines) {
    Json parts = Json::array();
    for (const model::WeightPart& part : line.parts)
      parts.push_back(
          {{"suffix", part.suffix}, {"dtype", part.dtype}, {"elements", part.elements}, {"bytes", part.bytes}});
    lines.push_back({{"name", line.name},
                     {"format", line.scheme},
                     {"copies", line.copies},
                     {"weights", line.elements},
                     {"bytes", line.bytes()},
                     {"parts", std::move(parts)}});
  }
  return {{"quantization", facts.quantisation},
          {"bytes", facts.bytes},
          {"weights", facts.weights},
          {"bits_per_weight", bits_of_weight(facts)},
          {"tensors", std::move(lines)}};
}

void write_weights(TextPage& page, const WeightFacts& facts) {
  page.heading(Text::inspect_weights);
  page.line("  " + page.say(Message{Text::inspect_weights_total,
                                    {{"quantization", facts.quantisation},
                                     {"bytes", Bytes{facts.bytes}},
                                     {"exact", Count{facts.bytes}},
                                     {"bits", fmt::format("{:.3f}", bits_of_weight(facts))}}}));
  std::map<std::string, std::int64_t> by_format;
  for (const model::StoredWeight& line : facts.lines) {
    std::int64_t& bytes = by_format[line.scheme];
    bytes = add_saturated(bytes, multiply_saturated(line.copies, line.bytes()));
  }
  for (const auto& [format, bytes] : by_format) page.line("  " + pad_right(format, kScheme) + page.bytes(bytes));
  for (const model::StoredWeight& line : facts.lines) {
    const std::string_view sign = page.style().unicode ? "×" : "x";
    const std::string name = line.copies > 1 ? fmt::format("{} {}{}", line.name, sign, line.copies) : line.name;
    page.line("    " + pad_right(shorten(name, kName - 1, page.style().unicode), kName) +
              pad_right(line.scheme, kScheme) + page.bytes(multiply_saturated(line.copies, line.bytes())));
  }
}

}  // namespace ullage::report
