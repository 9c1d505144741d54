#include "engines/transformers/serve.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>

#include "engines/pytorch/workspaces.h"
#include "engines/transformers/generating_modules.h"
#include "model/cache.h"
#include "model/family.h"
#include "model/limits.h"
#include "tensor/tape.h"

namespace ullage::engines::transformers {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

namespace {

// Families whose generation equals a recording of the published class, event by event.
constexpr std::array<std::string_view, 41> kRecorded{
    "bloom",       "cohere",     "cohere2",     "deepseek_v2", "deepseek_v3", "exaone4",       "falcon",
    "gemma",       "gemma2",     "gemma3_text", "glm4",        "glm4_moe",    "glm4_moe_lite", "gpt2",
    "gpt_bigcode", "gpt_neo",    "gpt_neox",    "gpt_oss",     "gptj",        "granite",       "granitemoe",
    "llama",       "minimax_m2", "mistral",     "mixtral",     "mpt",         "olmo",          "olmo2",
    "olmo3",       "olmoe",      "opt",         "phi",         "phi3",        "qwen2",         "qwen2_moe",
    "qwen3",       "qwen3_moe",  "seed_oss",    "smollm3",     "stablelm",    "starcoder2"};

// Steps at either end that are run where those in the middle are not.
constexpr std::int64_t kStepsAtEnds = 3;

// What one forward pass is called with, held until the next call's arguments are there.
struct ModelInputs {
  Tensor ids;
  Tensor positions;
  Tensor counts;              // which tokens count
  std::vector<Tensor> masks;  // instead, where the cache is fixed
};

class Generation {
 public:
  Generation(const model::Architecture& architecture, const model::Family& family, const model::TuningPlan& plan,
             const ServeOptions& options, std::int64_t most_steps)
      : architecture_(architecture),
        family_(family),
        options_(options),
        module_options_(module_options(options)),
        most_steps_(most_steps),
        takes_positions_(architecture.rotary.dim > 0 || bool(architecture.positions.weight)),
        context_(policy_of(module_options_)),
        state_(context_, architecture, plan, module_options_),
        cache_(context_, architecture, options),
        modules_(context_, state_, module_options_, cache_, options.cache == CacheKind::fixed) {}

  ServeRun run() {
    const t::NoGrad no_grad(context_);
    context_.phase = memory::Phase::setup;
    ids_ = input(Op::randint, {options_.batch, options_.seq_len}, "input_ids");
    counts_ = input(Op::ones_like, {options_.batch, options_.seq_len}, "attention_mask");
    const Tensor given_ids = ids_;
    const Tensor given_counts = counts_;
    out_.run.before_step = mark("before_prefill");
    context_.phase = memory::Phase::forward;
    prepare_tokens();
    const Tensor first_positions = positions_;
    prefill();
    choose_token();
    decode();
    context_.begin_section(memory::kNoLayer);
    out_.run.after_forward = mark("after_generation");
    out_.run.timeline = context_.take_timeline();
    return std::move(out_);
  }

 private:
  Tensor make(Op op, const t::Dims& sizes, DType dtype) { return t::empty(context_, op, sizes, dtype); }
  Tensor flag(Op op) { return make(op, {}, DType::boolean); }
  Tensor numbers(Op op) { return make(op, {options_.batch}, DType::i64); }
  Tensor column(Op op) { return make(op, {options_.batch, 1}, DType::i64); }

  // Of the caller, or of generate() between two tokens.
  Tensor input(Op op, const t::Dims& sizes, std::string_view label) {
    const t::Restore<memory::Component> component(context_.component, memory::Component::inputs);
    Tensor made = make(op, sizes, DType::i64);
    context_.set_label(made.storage(), context_.intern(label));
    return made;
  }

  void compare_any(std::int64_t count) {
    const Tensor equal = make(Op::compare, {count}, DType::boolean);
    flag(Op::sum);
  }

  // _prepare_special_tokens and what looks for padding; positions, of the tokens that count.
  void prepare_tokens() {
    for (Tensor& special : special_tokens_) special = make(Op::cast, {}, DType::i64);
    compare_any(1);
    compare_any(1);
    if (options_.batch > 1) compare_any(options_.batch);  // several prompts may be padded on the wrong side
    const t::Dims all{options_.batch, options_.seq_len};
    if (takes_positions_) {
      Tensor counted = make(Op::cumsum, all, DType::i64);
      const Tensor numbered = make(Op::sub, all, DType::i64);
      counted.reset();
      const Tensor padding = make(Op::compare, all, DType::boolean);
      positions_ = input(Op::masked_fill, all, "position_ids");
    }
    unfinished_ = numbers(Op::ones_like);
  }

  // create_masks_for_generate: one for each type of layer that there is.
  std::vector<Tensor> fixed_masks(std::int64_t seq) {
    if (options_.cache != CacheKind::fixed) return {};
    modules_.give({}, counts_);
    const std::size_t first = architecture_.kinds.front().attention.mask;
    std::vector<Tensor> out(architecture_.mask_windows.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool used = std::any_of(architecture_.kinds.begin(), architecture_.kinds.end(),
                                    [&](const model::LayerKind& kind) { return kind.attention.mask == i; });
      if (used) out[i] = modules_.make_mask(architecture_.mask_windows[i], options_.batch, seq, options_.dtype, {});
    }
    for (Tensor& mask : out) {
      if (!mask) mask = out[first];
    }
    return out;
  }

  void forward(const ModelInputs& inputs) {
    modules_.give(inputs.positions, inputs.counts);
    modules_.give_masks(inputs.masks);
    model::Batch batch;
    batch.inputs = inputs.ids;
    batch.logits_to_keep = 1;
    context_.begin_section(memory::kNoLayer);
    model::Output output = family_.forward(modules_, architecture_, std::move(batch));
    context_.begin_section(memory::kNoLayer);
    logits_ = std::move(output.logits);
    hold(logits_);
  }

  void hold(const Tensor& tensor) {
    if (tensor.storage().component == memory::Component::temporaries)
      context_.retag(tensor.storage(), memory::Component::activations);
  }

  void prefill() {
    ModelInputs inputs;
    inputs.ids = ids_;
    const Tensor copied = make(Op::clone, ids_.sizes(), DType::i64);
    if (takes_positions_) inputs.positions = positions_;
    inputs.counts = counts_;
    inputs.masks = fixed_masks(options_.seq_len);
    forward(inputs);
    out_.after_prefill = out_.after_decode = mark("after_prefill");
    modules_.give({}, {});
    modules_.give_masks({});
  }

  // The last token's arguments live until these are complete.
  void decode_token() {
    ModelInputs next;
    next.ids = column(Op::clone);
    if (takes_positions_) next.positions = column(Op::clone);
    next.counts = counts_;
    next.masks = fixed_masks(1);
    if (options_.cache == CacheKind::fixed) next.counts.reset();
    modules_.give({}, {});
    modules_.give_masks({});
    inputs_ = std::move(next);
    modules_.decode();
    forward(inputs_);
    out_.after_decode = mark("after_decode");
  }

  // _update_model_kwargs_for_generation: positions and mask grow by a column.
  void extend(std::int64_t tokens) {
    const Tensor old_positions = positions_;
    if (takes_positions_) {
      Tensor next;
      {
        const Tensor one = make(Op::arange, {1}, DType::i64);
        next = column(Op::add);
      }
      next = column(Op::add);
      positions_ = input(Op::cat, {options_.batch, tokens}, "position_ids");
    }
    const Tensor ones = column(Op::ones_like);
    counts_ = input(Op::cat, {options_.batch, tokens}, "attention_mask");
  }

  void choose_token() {
    const std::int64_t tokens = ids_.size(1) + 1;
    extend(tokens);
    scores_ = make(Op::cast, {options_.batch, architecture_.vocab}, DType::f32);
    tokens_ = numbers(Op::maximum);
    {
      const Tensor kept = numbers(Op::mul);
      Tensor padded;
      {
        const Tensor finished = numbers(Op::sub);
        padded = numbers(Op::mul);
      }
      tokens_ = numbers(Op::add);
    }
    ids_ = input(Op::cat, {options_.batch, tokens}, "input_ids");
    ask_whether_to_stop();
    logits_.reset();
  }

  Tensor truths() { return make(Op::compare, {options_.batch}, DType::boolean); }

  // StoppingCriteriaList: the length, and the token that ends a sequence.
  void ask_whether_to_stop() {
    Tensor done = truths();
    done = [&] {
      const Tensor too_long = truths();
      return make(Op::logical_and, {options_.batch}, DType::boolean);
    }();
    done = [&] {
      Tensor ended;
      {
        const Tensor equal = make(Op::compare, {options_.batch, 1}, DType::boolean);
        ended = truths();
      }
      return make(Op::logical_and, {options_.batch}, DType::boolean);
    }();
    {
      const Tensor not_done = make(Op::logical_not, {options_.batch}, DType::boolean);
      done.reset();
      unfinished_ = numbers(Op::logical_and);
    }
    const Tensor highest = make(Op::maximum, {}, DType::i64);
    all_finished_ = flag(Op::compare);
  }

  void decode() {
    const std::int64_t steps = options_.new_tokens - 1;
    const bool jumps = steps > 2 * kStepsAtEnds && steps * architecture_.layer_count() > most_steps_;
    out_.jumped = jumps;
    std::int64_t done = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      if (jumps && !is_run(step, steps)) continue;
      if (step > done) jump(step);
      decode_token();
      choose_token();
      done = step + 1;
    }
  }

  // Of many steps those at both ends, and the last one that quantises all tokens anew.
  bool is_run(std::int64_t step, std::int64_t steps) const {
    if (step < kStepsAtEnds || step >= steps - kStepsAtEnds) return true;
    const std::int64_t period = options_.quantised_cache.period();
    return options_.cache == CacheKind::quantised && step == steps / period * period - 1;
  }

  // To the state before step `to`.
  void jump(std::int64_t to) {
    context_.begin_section(memory::kNoLayer);
    cache_.jump_to(options_.seq_len + to);
    const t::Dims all{options_.batch, options_.seq_len + to + 1};
    if (takes_positions_) positions_ = input(Op::cat, all, "position_ids");
    counts_ = input(Op::cat, all, "attention_mask");
    ids_ = input(Op::cat, all, "input_ids");
  }

  std::uint32_t mark(std::string_view name) {
    context_.mark(context_.intern(name));
    return context_.timeline().marks.back().event;
  }

  const model::Architecture& architecture_;
  const model::Family& family_;
  const ServeOptions& options_;
  const pytorch::TrainOptions module_options_;
  std::int64_t most_steps_;
  // generate() makes them where the model's forward takes them: not where ALiBi alone tells tokens apart.
  bool takes_positions_;
  t::Context context_;
  pytorch::ModelState state_;
  KeyValueCache cache_;
  GeneratingModules modules_;
  ServeRun out_;

  // What generate() and _sample() have bound, with what they have put into model_kwargs.
  std::array<Tensor, 3> special_tokens_;  // that begins, ends and pads
  Tensor ids_;
  Tensor counts_;
  Tensor positions_;
  Tensor unfinished_;
  ModelInputs inputs_;
  Tensor logits_;
  Tensor scores_;
  Tensor tokens_;
  Tensor all_finished_;
};

// Every time that all tokens are quantised: the first, and then one in each period; what fills groups repeats itself
// with the smaller of the groups' sizes.
Expected<void> check_groups(const model::Architecture& architecture, const ServeOptions& options) {
  const QuantisedCache& form = options.quantised_cache;
  const std::int64_t times = std::min<std::int64_t>((options.new_tokens - 1) / form.period(), 8 * form.group);
  for (const model::LayerKind& kind : architecture.kinds) {
    const model::Attention& a = kind.attention;
    for (std::int64_t i = 0; i <= times; ++i) {
      const std::int64_t tokens = options.seq_len + i * form.period();
      const t::Dims sizes{options.batch, a.kv_heads, tokens, a.head_dim};
      if (fills_groups(form, form.axis_key, sizes) && fills_groups(form, form.axis_value, sizes)) continue;
      return fail(ErrorCode::invalid_argument, "--cache-config",
                  fmt::format("{} x {} x {} x {} keys (sequences, heads, tokens, dimensions) do not fill groups of {}, "
                              "which the library refuses; choose another q_group_size or --seq-len",
                              options.batch, a.kv_heads, tokens, a.head_dim, form.group));
    }
  }
  return {};
}

Expected<void> check_cache(const model::Architecture& architecture, const ServeOptions& options) {
  const bool flash = options.attention == pytorch::AttentionImpl::flash;
  if (flash && options.cache == CacheKind::fixed)
    return fail(ErrorCode::unsupported, "--cache",
                "flash attention takes a static cache's empty places for padding, which is not modelled; use dynamic");
  const bool shifts = architecture.alibi || architecture.family == "bloom";
  if (shifts && options.cache == CacheKind::fixed)
    return fail(
        ErrorCode::unsupported, "--cache",
        fmt::format("a static cache of {}, which has ALiBi, is not modelled; use dynamic", architecture.family));
  if (options.cache != CacheKind::quantised) return {};
  const bool latent = std::any_of(architecture.kinds.begin(), architecture.kinds.end(),
                                  [](const model::LayerKind& kind) { return kind.attention.latent.kv_rank > 0; });
  if (latent)
    return fail(ErrorCode::unsupported, "--cache", "quantised keys of latent attention are not modelled; use dynamic");
  return check_quantised_cache(options.quantised_cache, "--cache-config").and_then([&] {
    return check_groups(architecture, options);
  });
}

Expected<void> check(const model::Architecture& architecture, const ServeOptions& options) {
  if (auto served = check_served(architecture); !served) return served;
  if (auto cached = check_cache(architecture, options); !cached) return cached;
  if (auto counted = model::check_size(architecture, options.batch, options.cached_tokens()); !counted) return counted;
  const bool bounded = architecture.positions.weight || architecture.bounded_positions;
  if (!bounded || options.cached_tokens() <= architecture.max_positions) return {};
  return fail(ErrorCode::invalid_argument, "--seq-len",
              fmt::format("{} tokens and {} new ones, but the model has positions for {} only", options.seq_len,
                          options.new_tokens, architecture.max_positions));
}

// Evaluation leaves dropout out.
model::Architecture evaluated(model::Architecture architecture) {
  architecture.embedding_dropout = 0;
  for (model::LayerKind& kind : architecture.kinds) {
    kind.attention.dropout = kind.attention.output_dropout = 0;
    kind.mlp.dropout = kind.mlp.inner_dropout = 0;
    kind.residual_dropout = 0;
  }
  return architecture;
}

}  // namespace

pytorch::TrainOptions module_options(const ServeOptions& options) {
  pytorch::TrainOptions out;
  out.kernels = options.kernels;
  out.card = options.card;
  out.micro_batch = options.batch;
  out.seq_len = options.seq_len;
  out.dtype = options.dtype;
  out.attention = options.attention;
  out.tuning.base = options.weights;
  out.packed_kernel = true;
  out.optimizer = pytorch::Optimizer::none;
  out.loss = pytorch::Loss::none;
  out.step = pytorch::Step::forward;
  return out;
}

void add_workspace(ServeRun& served, std::int64_t bytes) {
  const std::size_t before = served.run.timeline.events.size();
  pytorch::add_workspaces(served.run, pytorch::Step::forward, bytes);
  const auto added = static_cast<std::uint32_t>(served.run.timeline.events.size() - before);
  served.after_prefill += added;  // the first product is prefill's
  served.after_decode += added;
}

std::int64_t kept_bytes_per_token(const model::Architecture& architecture, const ServeOptions& options) {
  std::int64_t elements = 0;
  for (std::int64_t i = 0; i < architecture.layer_count(); ++i) {
    const model::LayerKind& kind = architecture.kind_of(i);
    const model::Latent& latent = kind.attention.latent;
    if (latent.kv_rank > 0) {
      elements += kind.attention.heads * (latent.nope_dim + latent.rope_dim + latent.value_dim);
      continue;
    }
    for (const model::TokenCache& cache : model::token_caches(kind)) elements += cache.elements();
  }
  if (options.cache == CacheKind::quantised) return quantised_bytes(options.quantised_cache, elements, options.dtype);
  return elements * size_of(options.dtype);
}

bool serves(std::string_view family) {
  return std::find(kRecorded.begin(), kRecorded.end(), family) != kRecorded.end();
}

Expected<void> check_served(const model::Architecture& architecture) {
  if (serves(architecture.family)) return {};
  return fail(ErrorCode::unsupported, "--engine",
              fmt::format("generation by transformers' {} is not in this version", architecture.family));
}

Expected<model::TuningPlan> plan_weights(const model::Architecture& architecture, const ServeOptions& options) {
  auto plan = model::plan_tuning(architecture, module_options(options).tuning);
  if (!plan && plan.error().where == "--quantize-base") plan.error().where = "--quantization";
  return plan;
}

Expected<ServeRun> run_generation(const model::Architecture& given, const ServeOptions& options,
                                  std::int64_t most_steps) {
  const model::Family* family = model::find_family(given.family);
  if (family == nullptr) return fail(ErrorCode::unsupported, given.family, "no forward pass is known for this family");
  if (auto checked = check(given, options); !checked) return tl::unexpected<Error>(checked.error());
  const model::Architecture architecture = evaluated(given);
  const auto plan = plan_weights(architecture, options);
  if (!plan) return tl::unexpected<Error>(plan.error());
  return Generation(architecture, *family, *plan, options, most_steps).run();
}

}  // namespace ullage::engines::transformers
