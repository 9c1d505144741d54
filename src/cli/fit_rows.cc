#include "cli/fit_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cli/arguments.h"
#include "cli/serve_answer.h"
#include "cli/serve_options.h"
#include "engines/transformers/serve.h"
#include "hardware/power.h"
#include "speed/roofline.h"

namespace ullage::cli {
namespace {

using plan::FitChoice;
using plan::FitSetup;
using report::FitRow;

constexpr std::int64_t kUnlimitedPositions = 131072;  // where the model does not say how far they go
constexpr std::int64_t kMostTried = 16;               // cards in one machine
constexpr std::int64_t kStepsToLeast = 8;             // contexts are told in eighths of the least that is wanted

using Refused = std::set<std::pair<std::string_view, std::int64_t>>;

std::string dtype_on(const hardware::Gpu& gpu, const FitWanted& wanted) {
  if (!wanted.dtype.empty()) return wanted.dtype;
  return hardware::supports_bf16(gpu) == hardware::Support::no ? "fp16" : "bf16";
}

plan::FitRange range_of(const FitModel& model, const FitGpu& gpu, const FitWanted& wanted) {
  const std::int64_t positions = model.loaded.architecture.max_positions;
  const std::int64_t most = positions > 0 ? positions : kUnlimitedPositions;
  return {std::min(wanted.least_tokens, most), most, std::min(gpu.most, kMostTried)};
}

Expected<std::vector<FitChoice>> choose(FitModel& model, const FitGpu& gpu, const FitWanted& wanted,
                                        const Refused& refused) {
  return plan::choose_fits(
      range_of(model, gpu, wanted), [&](const FitSetup& setup, std::int64_t tokens) -> Expected<std::int64_t> {
        const bool again = !model.own_quantization.empty() && !setup.quantization.empty();
        const bool no = again || setup.cards > gpu.most || refused.count({setup.quantization, setup.cards}) > 0;
        if (no) return -1;
        return model.estimate->headroom(setup, tokens, gpu.card);
      });
}

std::vector<std::string> serve_words(const FitModel& model, const FitGpu& gpu, const FitWanted& wanted,
                                     const FitSetup& setup, std::int64_t tokens) {
  const std::string cards = setup.cards == 1 ? gpu.word : fmt::format("{}x{}", setup.cards, gpu.word);
  std::vector<std::string> out{"serve", model.word, "--engine", "transformers", "--gpu", cards};
  if (!setup.quantization.empty()) out.insert(out.end(), {"--quantization", std::string(setup.quantization)});
  if (const std::string dtype = dtype_on(gpu.gpu, wanted); dtype != "bf16") out.insert(out.end(), {"--dtype", dtype});
  const std::int64_t generated = std::clamp<std::int64_t>(tokens / 4, 1, wanted.new_tokens());
  out.insert(out.end(), {"--seq-len", std::to_string(tokens - generated), "--new-tokens", std::to_string(generated)});
  return out;
}

// What `ullage serve` says of these words; the model is loaded already.
Expected<report::Prediction> served(const std::vector<std::string>& words, const FitModel& model, const Files& files) {
  return parse_arguments(*find_command("serve"), std::span(words).subspan(1))
      .and_then([&](const Arguments& arguments) { return answer_serving(arguments, model.loaded, files); })
      .map([](ServeAnswer answer) { return std::move(answer.prediction); });
}

// Bytes that are left, of the sign of the verdict.
std::int64_t left_by(const report::Prediction& prediction) {
  const std::int64_t left = prediction.fit.headroom_bytes.value_or(0);
  if (!prediction.fit.fits.value_or(true)) return std::min<std::int64_t>(left, -1);
  return std::max<std::int64_t>(left, 0);
}

struct Confirmed {
  std::int64_t tokens = 0;
  bool at_the_limit = false;
  report::Prediction prediction;
};

// The largest context near the estimate's that really fits; tokens 0: not even the least does.
Expected<Confirmed> confirm(const FitModel& model, const FitGpu& gpu, const FitWanted& wanted, const FitChoice& choice,
                            const Files& files) {
  const plan::FitRange range = range_of(model, gpu, wanted);
  const std::int64_t step = std::max<std::int64_t>(1, range.least_tokens / kStepsToLeast);
  const std::int64_t most = std::max<std::int64_t>(1, range.most_tokens / step);
  const std::int64_t least = std::min(most, (range.least_tokens + step - 1) / step);
  std::optional<Error> error;
  Confirmed out;
  const plan::Largest found = plan::find_largest_near(
      choice.context.size / step, least, most, [&](std::int64_t steps) -> Expected<std::int64_t> {
        auto answer = served(serve_words(model, gpu, wanted, choice.setup, steps * step), model, files);
        if (!answer) {
          error = answer.error();
          return tl::unexpected<Error>(answer.error());
        }
        const std::int64_t left = left_by(*answer);
        if (left >= 0 && steps * step > out.tokens) {
          out.tokens = steps * step;
          out.prediction = *std::move(answer);
        }
        return left;
      });
  if (found.size == 0 && error && error->code != ErrorCode::unsupported) return tl::unexpected<Error>(*error);
  out.tokens = found.size * step;
  out.at_the_limit = found.at_the_limit;
  return out;
}

FitRow row_of(const FitModel& model, const FitGpu& gpu) {
  FitRow out;
  out.model = model.word;
  out.name = model.loaded.architecture.name;
  out.parameters = model::parameter_count(model.loaded.architecture);
  out.gpu = gpu.word;
  out.title = gpu.gpu.name;
  return out;
}

FitRow row_of(FitModel& model, const FitGpu& gpu, const FitWanted& wanted, const FitSetup& setup,
              const Confirmed& confirmed) {
  FitRow out = row_of(model, gpu);
  out.cards = setup.cards;
  const std::string_view held = model.estimate->held_as(setup.quantization, gpu.card);
  out.quantization = held.empty() ? model.own_quantization : held == "none" ? "" : std::string(held);
  out.dtype = dtype_on(gpu.gpu, wanted);
  out.weight_bytes = model.estimate->weight_bytes(held);
  out.context_tokens = confirmed.tokens;
  out.at_the_limit = confirmed.at_the_limit;
  out.certain = confirmed.prediction.fit.certain.value_or(true);
  out.headroom_bytes = confirmed.prediction.fit.headroom_bytes;
  out.args = serve_words(model, gpu, wanted, setup, confirmed.tokens);
  if (const auto power = hardware::power_need(gpu.gpu, setup.cards)) {
    out.cards_w = power->cards_w;
    out.supply_w = power->supply_w;
  }
  const auto rates = speed::rates_of(gpu.gpu, parse_dtype(out.dtype).value_or(DType::bf16));
  if (!rates) return out;
  const speed::DecodeWork work = model.estimate->decode_work(held, wanted.least_tokens);
  out.tokens_per_second = 1 / speed::decode_seconds(work, *rates);
  speed::DecodeWork without_arithmetic = work;
  without_arithmetic.flops = 0;
  out.memory_bound = speed::decode_seconds(without_arithmetic, *rates) >= speed::decode_seconds(work, *rates);
  return out;
}

}  // namespace

FitGpu fit_gpu(std::string word, hardware::Gpu gpu, std::int64_t most) {
  const plan::FitCard card = plan::fit_card(gpu);
  return {std::move(word), std::move(gpu), most, card};
}

std::int64_t FitWanted::new_tokens() const {
  constexpr std::int64_t kAnswer = 512;
  return std::clamp<std::int64_t>(least_tokens / 4, 1, kAnswer);
}

Expected<std::unique_ptr<FitModel>> load_fit_model(const std::string& word, const FitWanted& wanted,
                                                   const Files& files) {
  auto loaded = load_model(word, {}, files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  if (auto can = engines::transformers::check_served(loaded->architecture); !can)
    return tl::unexpected<Error>(can.error());
  const auto own = own_format(*loaded);
  if (!own) return tl::unexpected<Error>(own.error());
  auto out = std::make_unique<FitModel>();
  out->word = word;
  out->loaded = *std::move(loaded);
  const DType dtype = parse_dtype(wanted.dtype).value_or(DType::bf16);
  if (*own != model::BaseFormat::plain) out->own_quantization = name_of(*own);
  out->estimate = std::make_unique<plan::FitEstimate>(out->loaded.architecture, dtype, wanted.new_tokens(), *own);
  return out;
}

Expected<std::vector<FitChoice>> estimated_fits(FitModel& model, const FitGpu& gpu, const FitWanted& wanted) {
  return choose(model, gpu, wanted, {});
}

Expected<std::vector<FitRow>> fit_rows(FitModel& model, const FitGpu& gpu, const FitWanted& wanted,
                                       const Files& files) {
  Refused refused;
  // What the estimate was too hopeful about is refused, and it is asked again.
  for (;;) {
    const auto choices = choose(model, gpu, wanted, refused);
    if (!choices) return tl::unexpected<Error>(choices.error());
    std::vector<FitRow> out;
    const std::size_t before = refused.size();
    for (const FitChoice& choice : *choices) {
      const auto confirmed = confirm(model, gpu, wanted, choice, files);
      if (!confirmed) return tl::unexpected<Error>(confirmed.error());
      if (confirmed->tokens == 0) refused.insert({choice.setup.quantization, choice.setup.cards});
      else out.push_back(row_of(model, gpu, wanted, choice.setup, *confirmed));
    }
    if (refused.size() > before) continue;
    if (out.empty()) out.push_back(row_of(model, gpu));
    return out;
  }
}

}  // namespace ullage::cli
