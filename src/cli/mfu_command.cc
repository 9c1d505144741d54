// `ullage mfu`: by FLOPs, by throughput, against what others reached.
#include <fmt/core.h>

#include <charconv>

#include "cli/commands.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/run.h"
#include "hardware/catalogue.h"
#include "report/utilisation.h"
#include "speed/training_runs.h"

namespace ullage::cli {
namespace {

using report::Text;
using report::Utilisation;

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr std::int64_t kMostCores = 1'000'000;
constexpr std::int64_t kMostTokens = 1 << 26;

speed::Rerun rerun_of(const Arguments& arguments) {
  const std::string given = arguments.text("--recompute", "none");
  if (given == "none") return speed::Rerun::nothing;
  return given == "full" ? speed::Rerun::everything : speed::Rerun::attention;
}

tl::unexpected<Error> wrong(std::string_view option, std::string message) {
  return fail(ErrorCode::invalid_argument, std::string(option), std::move(message));
}

// A number that can be meant, or nothing where the option is not given: no rate of this world lies outside.
Expected<std::optional<double>> positive(const Arguments& arguments, std::string_view option) {
  if (!arguments.has(option)) return std::nullopt;
  const auto value = arguments.number(option, 0);
  if (!value) return tl::unexpected<Error>(value.error());
  constexpr double kLeast = 1e-9;
  constexpr double kMost = 1e15;
  if (*value <= 0) return wrong(option, "must be more than 0");
  if (!(*value >= kLeast && *value <= kMost))
    return wrong(option, fmt::format("{:g} cannot be meant; expected {:g} to {:g}", *value, kLeast, kMost));
  return *value;
}

Expected<void> take_card(const Arguments& arguments, Utilisation& out) {
  const auto count = arguments.integer("--gpus", 1, 1, hardware::kMostDevices);
  if (!count) return tl::unexpected<Error>(count.error());
  out.gpus = *count;
  out.precision = arguments.text("--precision", "bf16");
  if (!arguments.has("--gpu")) return {};
  const auto devices =
      hardware::find_devices(arguments.text("--gpu"), arguments.has("--gpus") ? std::optional(*count) : std::nullopt);
  if (!devices) return tl::unexpected<Error>(devices.error());
  if (devices->groups.size() != 1) return wrong("--gpu", "one peak is meant; name equal cards");
  const hardware::Gpu& gpu = devices->groups.front().gpu;
  out.gpus = devices->count();
  out.gpu = gpu.id;
  out.gpu_title = gpu.name;
  out.peak_flops = speed::peak_flops(gpu, out.precision);
  if (out.peak_flops) return {};
  return wrong("--precision",
               fmt::format("no peak of {} in {} is known; choose another, or give --cores and --clock-ghz", gpu.name,
                           out.precision));
}

Expected<void> take_cores(const Arguments& arguments, Utilisation& out) {
  if (!arguments.has("--cores") && !arguments.has("--clock-ghz")) return {};
  if (out.peak_flops) return wrong("--cores", "contradicts --gpu, whose peak is known; give one of them");
  for (const std::string_view option : {"--cores", "--clock-ghz"}) {
    if (!arguments.has(option)) return wrong(option, "missing; a peak takes --cores and --clock-ghz");
  }
  const auto cores = arguments.integer("--cores", 1, 1, kMostCores);
  if (!cores) return tl::unexpected<Error>(cores.error());
  const auto clock = positive(arguments, "--clock-ghz");
  if (!clock) return tl::unexpected<Error>(clock.error());
  out.peak_flops = speed::core_flops(*cores, **clock * kGiga);
  out.peak_formula =
      report::Message{Text::mfu_core_formula, {{"cores", *cores}, {"clock", arguments.text("--clock-ghz")}}};
  return {};
}

Expected<void> take_measured(const Arguments& arguments, Utilisation& out) {
  const auto tflops = positive(arguments, "--tflops");
  if (!tflops) return tl::unexpected<Error>(tflops.error());
  const auto tokens = positive(arguments, "--tokens-per-second");
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  const auto examples = positive(arguments, "--examples-per-second");
  if (!examples) return tl::unexpected<Error>(examples.error());
  const auto length = arguments.integer("--seq-len", 0, 1, kMostTokens);
  if (!length) return tl::unexpected<Error>(length.error());
  if (int{tflops->has_value()} + int{tokens->has_value()} + int{examples->has_value()} > 1)
    return wrong("--tflops",
                 "one measurement is enough; give one of --tflops, --tokens-per-second, --examples-per-second");
  if (*examples && *length == 0) return wrong("--seq-len", "missing; an example is so many tokens");
  if (*length > 0) out.seq_len = *length;
  if (*tflops) out.flops = **tflops * kTera;
  out.tokens_per_second = *examples ? std::optional(**examples * static_cast<double>(*length)) : *tokens;
  out.examples_per_second = *examples;
  if (*tflops || out.tokens_per_second || out.peak_formula) return {};
  return wrong("--tflops", "nothing measured; give --tflops, --tokens-per-second or --examples-per-second");
}

// A number of tokens per second of one GPU, or a published run's name.
Expected<void> take_reference(const Arguments& arguments, Utilisation& out) {
  if (!arguments.has("--reference")) return {};
  const std::string given = arguments.text("--reference");
  if (!out.tokens_per_second) return wrong("--reference", "compares throughput; give --tokens-per-second");
  if (given.find_first_not_of("0123456789.") == std::string::npos) {
    const auto tokens = positive(arguments, "--reference");
    if (!tokens) return tl::unexpected<Error>(tokens.error());
    out.reference = report::ReferenceRun{"--reference", **tokens, "given"};
    return {};
  }
  auto run = speed::find_training_run(given, "--reference");
  if (!run) return tl::unexpected<Error>(run.error());
  out.reference = report::ReferenceRun{std::move(run->name), run->tokens_per_second_per_gpu, std::move(run->source)};
  if (!out.gpu.empty() && out.gpu != run->gpu)
    out.warnings.push_back({Text::warn_other_card, {{"name", out.reference->name}, {"gpu", run->gpu}}});
  return {};
}

// Layers that attend and how wide all heads of one are together.
speed::ModelSize size_of_model(const model::Architecture& architecture) {
  speed::ModelSize out{model::active_parameter_count(architecture), architecture.layer_count(), 0};
  if (out.layers > 0) {
    const model::Attention& attention = architecture.kind_of(0).attention;
    out.attention_width = attention.heads * attention.head_dim;
  }
  return out;
}

// What the operators of one step do for one token: the step is run without data.
std::optional<speed::TokenFlops> counted_flops(const Invocation& call, std::int64_t seq_len, speed::Rerun rerun) {
  if (rerun == speed::Rerun::attention) return std::nullopt;
  Arguments step;
  step.add_positional(call.arguments.positionals().front());
  for (const std::string& field : call.arguments.all("--set")) step.add("--set", field);
  step.add("--seq-len", std::to_string(seq_len));
  step.add("--optimizer", "none");
  step.add("--recompute", rerun == speed::Rerun::everything ? "full" : "none");
  const auto prediction = predict_training(step, call.files, Ranges::none);
  if (!prediction) return std::nullopt;
  const double model = prediction->work.forward_flops + prediction->work.backward_flops;
  const auto tokens = static_cast<double>(seq_len);
  return speed::TokenFlops{model / tokens, (model + prediction->work.recompute_flops) / tokens};
}

void add_rules(const Invocation& call, const speed::ModelSize& size, Utilisation& out) {
  out.rules.push_back({"6N",
                       {Text::mfu_six_n, {{"parameters", report::Count{size.parameters}}}},
                       speed::six_n(size, out.rerun),
                       "Kaplan et al., arXiv:2001.08361, section 2.1"});
  if (!out.seq_len) {
    out.assumptions.push_back({Text::assume_mfu_no_length, {}});
    return;
  }
  if (const auto counted = counted_flops(call, *out.seq_len, out.rerun))
    out.rules.push_back({"operators", {Text::mfu_operators, {{"tokens", *out.seq_len}}}, *counted, "ullage train"});
  out.rules.push_back({"6N + 12Lhs",
                       {Text::mfu_six_n_attention,
                        {{"parameters", report::Count{size.parameters}},
                         {"layers", size.layers},
                         {"width", size.attention_width},
                         {"tokens", *out.seq_len}}},
                       speed::six_n_attention(size, *out.seq_len, out.rerun),
                       "Chowdhery et al., PaLM, arXiv:2204.02311, appendix B"});
}

Expected<void> take_model(const Invocation& call, Utilisation& out) {
  if (call.arguments.positionals().empty()) return {};
  const auto loaded = load_model(call.arguments.positionals().front(), call.arguments.all("--set"), call.files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  const model::Architecture& architecture = loaded->architecture;
  if (architecture.input != model::InputKind::tokens)
    return wrong("MODEL",
                 fmt::format("{} takes no text; throughput in tokens is of language models", architecture.name));
  out.model = architecture.name;
  out.parameters = model::parameter_count(architecture);
  out.active_parameters = model::active_parameter_count(architecture);
  out.assumptions = loaded->assumptions;
  out.warnings.insert(out.warnings.end(), loaded->warnings.begin(), loaded->warnings.end());
  if (out.tokens_per_second) add_rules(call, size_of_model(architecture), out);
  return {};
}

Expected<Utilisation> utilisation(const Invocation& call) {
  Utilisation out;
  out.rerun = rerun_of(call.arguments);
  using Take = Expected<void> (*)(const Arguments&, Utilisation&);
  for (const Take take : {take_card, take_cores, take_measured, take_reference}) {
    if (auto taken = take(call.arguments, out); !taken) return tl::unexpected<Error>(taken.error());
  }
  if (out.flops && !out.peak_flops)
    return wrong("--gpu", "missing; the peak is that of a card, or --cores and --clock-ghz");
  if (auto taken = take_model(call, out); !taken) return tl::unexpected<Error>(taken.error());
  if (report::mfu_of(out, report::main_rule(out)).value_or(0) > 1) out.warnings.push_back({Text::warn_above_peak, {}});
  if (out.peak_flops && !out.peak_formula) out.assumptions.push_back({Text::assume_dense_peak, {}});
  return out;
}

}  // namespace

Expected<int> mfu_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto found = utilisation(call);
  if (!found) return tl::unexpected<Error>(found.error());
  return call.streams
      .out(wants_json(call.arguments) ? report::utilisation_json(*found) : report::utilisation_text(*found, *style))
      .map([] { return int{kAnswered}; });
}

}  // namespace ullage::cli
