#include <fmt/core.h>

#include "cli/checkpoint_answer.h"
#include "cli/commands.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/train_options.h"
#include "cli/weight_options.h"
#include "model/family.h"
#include "report/inspection.h"

namespace ullage::cli {
namespace {

namespace pt = engines::pytorch;

Expected<DType> dtype_of(const Arguments& arguments) {
  const std::string given = arguments.text("--dtype", "bf16");
  if (const auto dtype = parse_dtype(given)) return *dtype;
  return fail(ErrorCode::invalid_argument, "--dtype",
              fmt::format("'{}' is no element type; choose fp32, bf16, fp16, fp64, int64, int32, uint8 or bool",
                          given.substr(0, 40)));
}

// What a forward pass of one sample does.
Expected<pt::TrainOptions> forward_options(const Arguments& arguments, const model::Architecture& architecture,
                                           DType dtype) {
  if (!is_floating(dtype))
    return fail(ErrorCode::invalid_argument, "--dtype",
                "weights are floating-point numbers; choose fp32, bf16 or fp16");
  const bool image = architecture.input == model::InputKind::images;
  const std::string_view foreign = image ? "--seq-len" : "--image-size";
  if (!architecture.vision && arguments.has(foreign))
    return fail(
        ErrorCode::invalid_argument, std::string(foreign),
        fmt::format("{} takes {}", architecture.name, image ? "images; use --image-size" : "text; use --seq-len"));
  const auto tokens = sequence_length(arguments, architecture);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  const auto pixels = image_size(arguments, architecture);
  if (!pixels) return tl::unexpected<Error>(pixels.error());
  pt::TrainOptions out;
  out.seq_len = *tokens;
  out.image_size = *pixels;
  out.dtype = dtype;
  out.optimizer = pt::Optimizer::none;
  const bool reads_labels = architecture.encoder_layers > 0;  // they are what the decoder is given
  out.loss = reads_labels ? pt::Loss::full : pt::Loss::none;
  out.step = pt::Step::forward;
  return out;
}

// Recurrent states stay in the model's type.
Expected<model::CacheTypes> cache_types_of(const Arguments& arguments, DType dtype) {
  model::CacheTypes out = model::cache_types(dtype);
  if (!arguments.has("--kv-cache-dtype")) return out;
  const std::string given = arguments.text("--kv-cache-dtype");
  const auto type = model::parse_cache_type(given);
  if (!type)
    return fail(ErrorCode::invalid_argument, "--kv-cache-dtype",
                fmt::format("'{}' is no type of a cache; choose fp32, fp16, bf16, fp8, int8, q8_0, q5_1, q5_0, q4_1, "
                            "q4_0 or iq4_nl",
                            given.substr(0, 40)));
  out.keys = out.values = *type;
  return out;
}

// Of an outline nothing is run.
Expected<report::Inspection> inspect_outline(const Invocation& call, const LoadedModel& loaded, DType dtype) {
  for (const char* option : {"--seq-len", "--image-size"}) {
    if (call.arguments.has(option))
      return fail(ErrorCode::invalid_argument, option,
                  fmt::format("of {} no forward pass is known, only weights; leave it out", loaded.architecture.name));
  }
  if (!is_floating(dtype))
    return fail(ErrorCode::invalid_argument, "--dtype",
                "weights are floating-point numbers; choose fp32, bf16 or fp16");
  pt::TrainOptions options;
  options.dtype = dtype;
  report::Inspection out = report::inspect(loaded.architecture, options, nullptr);
  out.assumptions = loaded.assumptions;
  out.warnings = loaded.warnings;
  return out;
}

Expected<report::Inspection> inspect_run(const Invocation& call, const LoadedModel& loaded, DType dtype) {
  const auto options = forward_options(call.arguments, loaded.architecture, dtype);
  if (!options) return tl::unexpected<Error>(options.error());
  const auto run = pt::run_train_step(loaded.architecture, *options);
  if (!run) return tl::unexpected<Error>(run.error());
  report::Inspection out = report::inspect(loaded.architecture, *options, &*run);
  out.assumptions = loaded.assumptions;
  out.assumptions.push_back({report::Text::assume_one_forward, {}});
  out.warnings = loaded.warnings;
  return out;
}

Expected<report::Inspection> inspect_model(const Invocation& call, DType dtype) {
  const auto loaded =
      load_model(call.arguments.positionals().front(), call.arguments.all("--set"), call.files, Extent::outline);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  auto weights = weights_as_stored(call.arguments, *loaded, dtype);
  if (!weights) return tl::unexpected<Error>(weights.error());
  const bool runs = model::find_family(loaded->architecture.family) != nullptr;
  auto out = runs ? inspect_run(call, *loaded, dtype) : inspect_outline(call, *loaded, dtype);
  if (!out) return out;
  const auto types = cache_types_of(call.arguments, dtype);
  if (!types) return tl::unexpected<Error>(types.error());
  out->cache = report::cache_facts(loaded->architecture, *types);
  out->weights = *std::move(weights);
  return out;
}

Expected<std::string> tensor_answer(const Invocation& call, DType dtype, const report::TextStyle& style) {
  if (!call.arguments.positionals().empty())
    return fail(ErrorCode::invalid_argument, "--tensor", "describes a tensor without a model; leave MODEL out");
  return report::inspect_tensor(call.arguments.text("--tensor"), dtype, "--tensor")
      .map([&](const report::TensorFacts& tensor) {
        return wants_json(call.arguments) ? report::tensor_json(tensor) : report::tensor_text(tensor, style);
      });
}

Expected<std::string> model_answer(const Invocation& call, DType dtype, const report::TextStyle& style) {
  if (call.arguments.positionals().empty())
    return fail(ErrorCode::invalid_argument, "MODEL", "missing; name a model, or a shape with --tensor");
  if (call.arguments.has("--checkpoint")) return checkpoint_answer(call, style);
  return inspect_model(call, dtype).map([&](const report::Inspection& inspection) {
    return wants_json(call.arguments) ? report::inspection_json(inspection)
                                      : report::inspection_text(inspection, style);
  });
}

}  // namespace

Expected<int> inspect_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto dtype = dtype_of(call.arguments);
  if (!dtype) return tl::unexpected<Error>(dtype.error());
  const auto answer =
      call.arguments.has("--tensor") ? tensor_answer(call, *dtype, *style) : model_answer(call, *dtype, *style);
  return answer.and_then([&](const std::string& text) { return call.streams.out(text); }).map([] {
    return int{kAnswered};
  });
}

}  // namespace ullage::cli
