#include "cli/train_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cli/code_options.h"
#include "cli/optimizer_options.h"
#include "cli/trainer_options.h"
#include "cli/tuning_options.h"
#include "cli/versions.h"
#include "engines/pytorch/loss_version.h"
#include "engines/pytorch/torch_version.h"

namespace ullage::cli {
namespace {

namespace pt = engines::pytorch;
using report::Setting;

constexpr std::int64_t kMostSamples = 1 << 20;
constexpr std::int64_t kMostTokens = 1 << 26;
constexpr std::int64_t kMostPixels = 1 << 16;
constexpr std::int64_t kDefaultTokens = 2048;

template <class E>
struct Named {
  std::string_view name;
  E value;
};

// The table has checked the name already; the first entry is the default.
template <class E, std::size_t N>
E choose(const Arguments& arguments, std::string_view option, const Named<E> (&names)[N], std::string_view usual = {}) {
  const std::string given = arguments.text(option, usual.empty() ? names[0].name : usual);
  for (const Named<E>& entry : names) {
    if (entry.name == given) return entry.value;
  }
  return names[0].value;
}

constexpr Named<pt::Kernels> kKernels[] = {
    {"cuda", pt::Kernels::cuda}, {"cuda-traced", pt::Kernels::cuda_traced}, {"cpu", pt::Kernels::cpu}};
struct Precision {
  DType dtype;
  std::optional<DType> autocast;
};
constexpr Named<Precision> kPrecisions[] = {{"bf16", {DType::bf16, {}}},
                                            {"fp16", {DType::f16, {}}},
                                            {"fp32", {DType::f32, {}}},
                                            {"pure-bf16", {DType::bf16, {}}},
                                            {"amp-bf16", {DType::f32, DType::bf16}},
                                            {"amp-fp16", {DType::f32, DType::f16}}};
constexpr Named<pt::AttentionImpl> kAttentions[] = {
    {"sdpa", pt::AttentionImpl::sdpa}, {"eager", pt::AttentionImpl::eager}, {"flash", pt::AttentionImpl::flash}};
constexpr Named<pt::Recompute> kRecomputes[] = {{"none", pt::Recompute::none}, {"full", pt::Recompute::full}};
constexpr Named<pt::Loss> kLosses[] = {
    {"full", pt::Loss::full}, {"chunked", pt::Loss::chunked}, {"fused", pt::Loss::fused}, {"none", pt::Loss::none}};
constexpr Named<pt::Step> kSteps[] = {
    {"steady", pt::Step::steady}, {"first", pt::Step::first}, {"forward", pt::Step::forward}};

constexpr Named<report::Load> kLoads[] = {
    {"torch", report::Load::torch}, {"safetensors", report::Load::safetensors}, {"meta", report::Load::meta}};

bool is_image(const model::Architecture& architecture) { return architecture.input == model::InputKind::images; }

bool knows_no_sdpa(const model::Architecture& architecture) {
  return !architecture.kinds.empty() && architecture.kinds[0].attention.eager_only;
}

std::string default_precision(const pt::Choices* code) {
  return std::string(code == nullptr ? "bf16" : code->precision);
}

// What transformers, or another code base, takes where nothing is asked for.
std::string default_attention(const model::Architecture& architecture, const pt::Choices* code) {
  if (code != nullptr) return std::string(code->attention);
  return knows_no_sdpa(architecture) ? "eager" : "sdpa";
}

// Families whose published code calls the package in a way of its own, which is not modelled.
constexpr std::array<std::string_view, 6> kOwnFlash{"baichuan", "chatglm", "falcon", "gpt_neo", "gptj", "internlm2"};

// What the flash-attn package's function takes: half precision, no biases and no logits beside the scores.
Expected<void> check_flash(const Arguments& arguments, const model::Architecture& architecture) {
  if (arguments.text("--attention") != "flash") return {};
  if (arguments.text("--modules") == "llm-foundry") return {};  // which has it of its own (code_options.h)
  if (arguments.text("--precision") == "fp32")
    return fail(ErrorCode::invalid_argument, "--attention", "flash takes half precision; add --precision bf16 or fp16");
  if (arguments.text("--kernels", "cuda") != "cuda")
    return fail(ErrorCode::invalid_argument, "--attention", "flash runs on a GPU alone; leave --kernels out");
  const auto refuse = [&](std::string_view what) { return not_in_this_version("--attention", what); };
  if (arguments.text("--modules", "transformers") != "transformers") return refuse("flash in another code base");
  const std::string tuner = arguments.text("--tuner");
  if (tuner == "prefix" || tuner == "prompt") return refuse("flash with --tuner " + tuner);
  return check_flash_of(architecture);
}

Expected<pt::AttentionImpl> attention_of(const Arguments& arguments, const model::Architecture& architecture,
                                         const pt::Choices* code) {
  if (code != nullptr && code->attention == "flash") return pt::AttentionImpl::flash;
  if (!knows_no_sdpa(architecture)) return choose(arguments, "--attention", kAttentions);
  if (arguments.text("--attention", "eager") == "eager") return pt::AttentionImpl::eager;
  return fail(ErrorCode::invalid_argument, "--attention",
              fmt::format("transformers' {} has eager attention only; use eager", architecture.family));
}

// Of another release only the loss is modelled.
Expected<pt::LossForm> loss_form(const Arguments& arguments, const model::Architecture& architecture) {
  const std::string given = arguments.text("--transformers", pt::kTransformers);
  const auto version = pt::parse_version(given);
  if (!version)
    return fail(ErrorCode::invalid_argument, "--transformers",
                fmt::format("'{}' is no version; write it as 4.46", given.substr(0, 40)));
  const auto form = pt::loss_form_of(architecture.family, *version);
  if (form) return *form;
  return fail(ErrorCode::unsupported, "--transformers",
              fmt::format("how {} made the loss of {} is not known; leave it out for {}", given.substr(0, 40),
                          architecture.family, pt::kTransformers));
}

// Of another release what torch_version.h lists is modelled.
Expected<void> check_torch(const Arguments& arguments) {
  const std::string given = arguments.text("--torch", kTorchVersion);
  const auto version = pt::parse_torch_version(given);
  if (!version)
    return fail(ErrorCode::invalid_argument, "--torch",
                fmt::format("'{}' is no version; write it as 2.1", given.substr(0, 40)));
  if (*version < pt::kOldestTorch || *version > memory::TorchVersion{})
    return fail(ErrorCode::unsupported, "--torch",
                fmt::format("{} is not in this version; known are 2.0 to {}", given.substr(0, 40), kTorchVersion));
  if (arguments.text("--modules", "transformers") != "transformers")
    return check_version(arguments, "--torch", kTorchVersion);
  const std::string optimizer = arguments.text("--optimizer", "adamw");
  const bool other = optimizer == "adagrad" || optimizer == "rmsprop";
  if (pt::keeps_denominators(*version) && other && arguments.text("--optimizer-impl", "foreach") == "foreach")
    return not_in_this_version("--torch", fmt::format("{} with {}'s foreach", given.substr(0, 40), optimizer));
  return {};
}

Expected<void> check_belongs(const Arguments& arguments, const model::Architecture& architecture) {
  constexpr std::array kOfLayers{"--attention", "--recompute", "--recompute-reentrant"};
  const bool resizes = architecture.vision && !architecture.vision.whole_images;
  if (!resizes && arguments.has("--image-max-pixels")) {
    return fail(ErrorCode::invalid_argument, "--image-max-pixels",
                fmt::format("{} resizes no images; leave this option out", architecture.name));
  }
  if (architecture.vision) return {};
  if (arguments.has("--recompute-vision")) {
    return fail(ErrorCode::invalid_argument, "--recompute-vision",
                fmt::format("{} has no vision tower beside it; use --recompute full", architecture.name));
  }
  if (!is_image(architecture)) {
    if (!arguments.has("--image-size")) return {};
    return fail(ErrorCode::invalid_argument, "--image-size",
                fmt::format("{} takes text; use --seq-len", architecture.name));
  }
  const auto refuse = [&](std::string_view option) {
    return fail(ErrorCode::invalid_argument, std::string(option),
                fmt::format("{} takes images; leave this option out", architecture.name));
  };
  if (arguments.has("--seq-len")) return refuse("--seq-len");
  for (const std::string_view option : kOfLayers) {
    if (architecture.is_module_tree() && arguments.has(option)) return refuse(option);
  }
  return {};
}

// Liger's loss as transformers' models get it: one kernel over hidden states and the head's weight.
Expected<void> check_loss(const Arguments& arguments, const model::Architecture& architecture) {
  if (arguments.text("--loss") != "fused") return {};
  if (is_image(architecture)) {
    return fail(ErrorCode::invalid_argument, "--loss", "fused belongs to language models; leave it out");
  }
  if (architecture.encoder_layers > 0 && !architecture.vision)
    return not_in_this_version("--loss", "fused for an encoder-decoder");
  if (arguments.text("--precision").starts_with("amp-")) return not_in_this_version("--loss", "fused under autocast");
  if (architecture.head.bias) return not_in_this_version("--loss", "fused with a head that has a bias");
  return {};
}

Expected<void> check_contradictions(const Arguments& arguments) {
  const bool recomputes = arguments.text("--recompute", "none") != "none" || arguments.has("--recompute-vision");
  if (arguments.has("--recompute-reentrant") && !recomputes) {
    return fail(ErrorCode::invalid_argument, "--recompute-reentrant",
                "contradicts --recompute none; add --recompute full");
  }
  const bool of_gradients =
      arguments.has("--grad-accum") || arguments.has("--clip-grad") || arguments.has("--grad-scaler");
  if (arguments.text("--step") == "forward" && of_gradients) {
    return fail(ErrorCode::invalid_argument, "--step",
                "forward has no gradients; leave --grad-accum, --clip-grad and --grad-scaler out");
  }
  if (arguments.has("--grad-scaler") && arguments.text("--precision") != "amp-fp16") {
    return fail(ErrorCode::invalid_argument, "--grad-scaler",
                "scales the loss of fp16 under autocast; add --precision amp-fp16");
  }
  return {};
}

struct Batches {
  std::int64_t micro = 1;
  std::int64_t accumulated = 1;
};

tl::unexpected<Error> indivisible(std::int64_t global, std::string_view by, std::int64_t size) {
  return fail(ErrorCode::invalid_argument, "--global-batch",
              fmt::format("{} is no multiple of {} {}; change one of them", global, by, size));
}

// Of micro-batch, accumulation and global batch one follows from the others.
// Without a word about it a code base accumulates to its own usual batch.
Expected<Batches> batches(const Arguments& arguments, std::int64_t usual_batch) {
  const auto micro = arguments.integer("--micro-batch", 1, 1, kMostSamples);
  if (!micro) return tl::unexpected<Error>(micro.error());
  const std::int64_t usual = arguments.has("--global-batch") ? 1 : std::max<std::int64_t>(1, usual_batch / *micro);
  const auto accumulated = arguments.integer("--grad-accum", usual, 1, kMostSamples);
  if (!accumulated) return tl::unexpected<Error>(accumulated.error());
  const auto global = arguments.integer("--global-batch", *micro * *accumulated, 1, kMostSamples * kMostSamples);
  if (!global) return tl::unexpected<Error>(global.error());
  if (arguments.has("--micro-batch") && arguments.has("--grad-accum") && *global != *micro * *accumulated) {
    return fail(ErrorCode::invalid_argument, "--global-batch",
                fmt::format("{} contradicts --micro-batch {} and --grad-accum {}, which make {}; leave one out",
                            *global, *micro, *accumulated, *micro * *accumulated));
  }
  if (arguments.has("--grad-accum")) {
    if (*global % *accumulated != 0) return indivisible(*global, "--grad-accum", *accumulated);
    return Batches{*global / *accumulated, *accumulated};
  }
  if (*global % *micro != 0) return indivisible(*global, "--micro-batch", *micro);
  return Batches{*micro, *global / *micro};
}

std::vector<Setting> settings_of(const Arguments& a, const model::Architecture& architecture,
                                 const pt::TrainOptions& o) {
  std::vector<Setting> out{{"engine", std::string("pytorch")},
                           {"modules", std::string(architecture.is_module_tree() ? "torchvision" : "transformers")},
                           {"torch", a.text("--torch", kTorchVersion)},
                           {"kernels", a.text("--kernels", "cuda")},
                           {"gpus", std::int64_t{1}},
                           {"micro_batch", o.micro_batch}};
  if (o.code != nullptr) {
    out[1].value = std::string(o.code->name);
    out.insert(out.begin() + 2, {"modules_version", std::string(o.code->version)});
  } else if (!architecture.is_module_tree()) {
    out.insert(out.begin() + 3, {"transformers", a.text("--transformers", pt::kTransformers)});
  }
  if (is_image(architecture)) out.push_back({"image_size", o.image_size});
  else out.push_back({"seq_len", o.seq_len});
  if (architecture.vision) {
    const std::int64_t side = model::resized_side(architecture.vision, o.image_size, o.image_max_pixels);
    out.push_back({"image_size", o.image_size});
    if (!architecture.vision.whole_images) out.push_back({"image_max_pixels", o.image_max_pixels});
    out.push_back({"image_tokens", model::tokens_of_image(architecture.vision, side)});
  }
  out.insert(out.end(), {{"grad_accum", o.grad_accum},
                         {"global_batch", o.micro_batch * o.grad_accum},
                         {"step", a.text("--step", "steady")},
                         {"precision", a.text("--precision", default_precision(o.code))},
                         {"optimizer", a.text("--optimizer", "adamw")},
                         {"optimizer_impl", std::string(name_of(o.optimizer_impl))},
                         {"optimizer_in_backward", o.optimizer_in_backward},
                         {"clip_grad", o.clip_grad},
                         {"grad_scaler", o.grad_scaler}});
  if (o.hf_trainer) out.push_back({"trainer", std::string("hf")});
  if (!architecture.is_module_tree()) {
    out.insert(out.end(), {{"attention", a.text("--attention", default_attention(architecture, o.code))},
                           {"recompute", a.text("--recompute", "none")},
                           {"recompute_reentrant", o.recompute_reentrant}});
  }
  if (o.recompute_vision) out.push_back({"recompute_vision", true});
  if (o.offload_activations) out.push_back({"offload", std::string("activations")});
  out.push_back({"loss", a.text("--loss", "full")});
  if (o.compile) out.push_back({"compile", true});
  if (a.has("--load")) out.push_back({"load", a.text("--load")});
  for (Setting& setting : tuning_settings(a, o, architecture)) out.push_back(std::move(setting));
  return out;
}

// "--micro-batch 1, --seq-len 2048, …": what the user left to us.
std::vector<report::Message> defaults_messages(const Arguments& arguments, const model::Architecture& architecture,
                                               const pt::TrainOptions& options) {
  std::vector<std::pair<std::string_view, std::string>> defaults{
      {"--micro-batch", std::to_string(options.micro_batch)}};
  if (is_image(architecture)) defaults.emplace_back("--image-size", std::to_string(options.image_size));
  else defaults.emplace_back("--seq-len", std::to_string(options.seq_len));
  if (options.code != nullptr && options.code->global_batch > 0 && !arguments.has("--global-batch"))
    defaults.emplace_back("--grad-accum", std::to_string(options.grad_accum));
  if (architecture.vision) {
    defaults.emplace_back("--image-size", std::to_string(options.image_size));
    if (!architecture.vision.whole_images)
      defaults.emplace_back("--image-max-pixels", std::to_string(options.image_max_pixels));
  }
  defaults.emplace_back("--precision", default_precision(options.code));
  defaults.emplace_back("--optimizer", "adamw");
  defaults.emplace_back("--optimizer-impl", name_of(options.optimizer_impl));
  if (!architecture.is_module_tree()) {
    defaults.emplace_back("--attention", default_attention(architecture, options.code));
    defaults.emplace_back("--recompute", "none");
  }
  defaults.emplace_back("--loss", "full");
  defaults.emplace_back("--step", "steady");
  const bool loop_clips = options.clip_grad > 0 && !arguments.has("--clip-grad");
  if (loop_clips) defaults.emplace_back("--clip-grad", fmt::format("{}", options.clip_grad));
  defaults.emplace_back("--kernels", "cuda");
  for (auto& tuning : tuning_defaults(options, architecture)) defaults.push_back(std::move(tuning));
  std::string list;
  for (const auto& [option, value] : defaults) {
    const bool derived = option == "--micro-batch" && arguments.has("--global-batch");
    if (!arguments.has(option) && !derived) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", option, value);
  }
  const bool clipped = arguments.has("--clip-grad") || loop_clips;
  std::vector<report::Message> out;
  if (list.empty() && !clipped) out.push_back({report::Text::assume_no_clipping, {}});
  if (!list.empty())
    out.push_back(
        {clipped ? report::Text::assume_defaults : report::Text::assume_defaults_no_clipping, {{"options", list}}});
  const std::string transformers = arguments.text("--transformers", pt::kTransformers);
  if (options.loss_form != pt::LossForm::padded)
    out.push_back({report::Text::assume_loss_version, {{"version", transformers}}});
  if (options.torch != memory::TorchVersion{})
    out.push_back({report::Text::assume_torch_version, {{"version", arguments.text("--torch")}}});
  return out;
}

Expected<pt::TrainOptions> read_options(const Arguments& arguments, const model::Architecture& architecture) {
  pt::TrainOptions out;
  out.torch = *pt::parse_torch_version(arguments.text("--torch", kTorchVersion));
  const auto code = code_of(arguments, architecture);
  if (!code) return tl::unexpected<Error>(code.error());
  out.code = *code;
  const bool of_forward = arguments.text("--step") == "forward";
  const auto batch = batches(arguments, out.code != nullptr && !of_forward ? out.code->global_batch : 0);
  if (!batch) return tl::unexpected<Error>(batch.error());
  const auto tokens = sequence_length(arguments, architecture);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  const auto pixels = image_size(arguments, architecture);
  if (!pixels) return tl::unexpected<Error>(pixels.error());
  const auto most =
      arguments.integer("--image-max-pixels", architecture.vision.most_pixels, 1, kMostPixels * kMostPixels);
  if (!most) return tl::unexpected<Error>(most.error());
  const auto clip = arguments.number("--clip-grad", 0);
  if (!clip) return tl::unexpected<Error>(clip.error());
  out.micro_batch = batch->micro;
  out.grad_accum = batch->accumulated;
  out.seq_len = *tokens;
  out.image_size = *pixels;
  out.image_max_pixels = *most;
  out.clip_grad = *clip;
  out.grad_scaler = arguments.has("--grad-scaler");
  out.kernels = choose(arguments, "--kernels", kKernels);
  const Precision precision = choose(arguments, "--precision", kPrecisions, default_precision(out.code));
  out.dtype = precision.dtype;
  out.autocast = precision.autocast;
  out.recompute = choose(arguments, "--recompute", kRecomputes);
  out.recompute_reentrant = arguments.has("--recompute-reentrant");
  out.recompute_vision = arguments.has("--recompute-vision");
  const auto attention = attention_of(arguments, architecture, out.code);
  if (!attention) return tl::unexpected<Error>(attention.error());
  out.attention = *attention;
  out.loss = choose(arguments, "--loss", kLosses);
  out.compile = arguments.has("--compile");
  out.offload_activations = arguments.has("--offload");
  out.step = choose(arguments, "--step", kSteps);
  const auto form = loss_form(arguments, architecture);
  if (!form) return tl::unexpected<Error>(form.error());
  out.loss_form = *form;
  if (auto read = read_optimizer(arguments, out); !read) return tl::unexpected<Error>(read.error());
  if (auto read = read_tuning(arguments, out); !read) return tl::unexpected<Error>(read.error());
  apply_trainer(arguments, out);
  return out;
}

// The weights of a model that runs on the processor have nowhere to go from the host.
Expected<void> check_load(const Arguments& arguments) {
  if (!arguments.has("--load")) return {};
  if (arguments.text("--kernels") == "cpu")
    return fail(ErrorCode::invalid_argument, "--load", "brings weights to a card; leave it out with --kernels cpu");
  if (arguments.has("--quantize-base")) return not_in_this_version("--load", "with --quantize-base");
  return {};
}

Expected<void> check_all(const Arguments& arguments, const model::Architecture& architecture) {
  return check_torch(arguments)
      .and_then([&] { return check_belongs(arguments, architecture); })
      .and_then([&] { return check_loss(arguments, architecture); })
      .and_then([&] { return check_load(arguments); })
      .and_then([&] { return check_flash(arguments, architecture); })
      .and_then([&] { return check_trainer(arguments, architecture); })
      .and_then([&] { return check_contradictions(arguments); });
}

}  // namespace

Expected<void> check_flash_of(const model::Architecture& architecture) {
  const auto refuse = [&](std::string_view what) { return not_in_this_version("--attention", what); };
  for (const std::string_view family : kOwnFlash) {
    if (architecture.family == family) return refuse("flash for " + architecture.family);
  }
  if (architecture.vision) return refuse("flash with images");
  if (architecture.alibi) return refuse("flash with ALiBi");
  for (const model::LayerKind& kind : architecture.kinds) {
    if (kind.attention.sinks) return refuse("flash with attention sinks");
    if (kind.attention.latent.kv_rank > 0) return refuse("flash with latent attention");
  }
  return {};
}

Expected<std::int64_t> sequence_length(const Arguments& arguments, const model::Architecture& architecture) {
  const std::int64_t limit = architecture.max_positions > 0 ? architecture.max_positions : kDefaultTokens;
  return arguments.integer("--seq-len", std::min(kDefaultTokens, limit), 1, kMostTokens);
}

Expected<std::int64_t> image_size(const Arguments& arguments, const model::Architecture& architecture) {
  const std::int64_t usual = architecture.vision ? architecture.vision.size : architecture.image.size;
  return arguments.integer("--image-size", usual, 1, kMostPixels);
}

Expected<TrainSetup> resolve_train_options(const Arguments& arguments, const model::Architecture& architecture) {
  if (auto checked = check_all(arguments, architecture); !checked) return tl::unexpected<Error>(checked.error());
  const auto options = read_options(arguments, architecture);
  if (!options) return tl::unexpected<Error>(options.error());
  TrainSetup out{*options,
                 settings_of(arguments, architecture, *options),
                 defaults_messages(arguments, architecture, *options),
                 {},
                 {},
                 {}};
  const auto allocator =
      memory::parse_allocator_settings(arguments.text("--alloc-conf"), "--alloc-conf", options->torch);
  if (!allocator) return tl::unexpected<Error>(allocator.error());
  out.allocator = *allocator;
  if (arguments.has("--alloc-conf")) out.settings.push_back({"alloc_conf", arguments.text("--alloc-conf")});
  if (arguments.has("--load")) out.load = choose(arguments, "--load", kLoads);
  if (!is_image(architecture) && architecture.max_positions > 0 && options->seq_len > architecture.max_positions) {
    out.warnings.push_back(
        {report::Text::warn_positions, {{"seq_len", options->seq_len}, {"limit", architecture.max_positions}}});
  }
  return out;
}

}  // namespace ullage::cli
