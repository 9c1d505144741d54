#include "engines/pytorch/train.h"

#include <fmt/core.h>

#include <algorithm>

#include "engines/pytorch/grad_scaler.h"
#include "engines/pytorch/hf_trainer.h"
#include "engines/pytorch/litgpt.h"
#include "engines/pytorch/llm_foundry.h"
#include "engines/pytorch/optimizer.h"
#include "engines/pytorch/splice.h"
#include "engines/pytorch/torchtitan.h"
#include "engines/pytorch/torchtune.h"
#include "engines/pytorch/train_checks.h"
#include "engines/pytorch/transformers_modules.h"
#include "engines/pytorch/virtual_tokens.h"
#include "model/family.h"
#include "tensor/autocast.h"
#include "tensor/offload.h"
#include "tensor/record.h"
#include "tensor/tape.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Tensor;

namespace {

t::Autocast autocast_of(const TrainOptions& options) {
  return {options.autocast.has_value(), options.autocast.value_or(DType::bf16)};
}

class TrainStep {
 public:
  TrainStep(const model::Architecture& architecture, const model::Family& family, const model::TuningPlan& plan,
            const TrainOptions& options, t::Workspace& workspace)
      : architecture_(architecture),
        family_(family),
        options_(options),
        context_(policy_of(options), workspace),
        state_(context_, architecture, plan, options),
        modules_(context_, state_, options),
        litgpt_(context_, state_, options),
        torchtune_(context_, state_, options),
        torchtitan_(context_, state_, options),
        llm_foundry_(context_, state_, options),
        optimizer_(context_, state_, options),
        scaler_(context_, state_, options),
        trainer_(context_, options) {
    if (options.offload_activations)
      offload_.emplace(context_, t::SavedOffload::Rules{.layers_are_nodes = options.compile});
  }

  RecordedStep run() {
    prepare();
    if (options_.step == Step::steady && options_.code != nullptr && leaves_names()) leave_batch_before();
    if (trainer_) take_batches();
    moments_.before_step = mark("before_step");
    for (std::int64_t micro = 0; micro < options_.grad_accum; ++micro) run_micro_batch(micro);
    if (options_.step != Step::forward) {
      context_.begin_section(memory::kNoLayer);
      if (!options_.optimizer_in_backward) update();
      moments_.after_step = mark("after_step");
    }
    return {std::move(moments_), context_.sections(), context_.take_timeline(), stacked_norms_.block,
            stacked_norms_.norm_bytes};
  }

 private:
  void update() {
    trainer_.forget_norm();
    if (options_.clip_grad > 0 || trainer_) {
      scaler_.unscale();
      stacked_norms_ = clip_grad_norm({context_, state_, options_, no_states_});
      if (trainer_) trainer_.keep_norm(stacked_norms_.total);
      if (in(CodeBase::torchtitan)) titan_.norm = stacked_norms_.total;
      stacked_norms_.total.reset();
    }
    if (in(CodeBase::torchtune)) divide_by_tokens();
    composer_.share.reset();
    scaler_.begin_step();
    optimizer_.step();
    scaler_.end_step();
    if (in(CodeBase::torchtitan)) end_of_torchtitan();
    composer_.total_loss.reset();
    if (options_.optimizer != Optimizer::none) optimizer_.zero_grad();
  }

  // Whether the loop still holds something of the step before.
  bool leaves_names() const {
    if (in(CodeBase::llm_foundry)) return true;
    return options_.optimizer != Optimizer::none && options_.code->global_batch > 0;
  }

  bool in(CodeBase code) const { return options_.code != nullptr && options_.code->code == code; }

  // scale_grads: in place, by a number that is made of a tensor.
  void divide_by_tokens() {
    const Tensor inverse = t::empty(context_, t::Op::div, {}, DType::f32);
    t::empty(context_, t::Op::mul, {}, DType::f32);
  }

  // What an earlier step, or the optimizer's constructor, has left behind.
  void prepare() {
    context_.phase = memory::Phase::setup;
    if (options_.optimizer_in_backward) context_.gradient_listener = &optimizer_;
    if (options_.optimizer != Optimizer::none) optimizer_.construct();
    trainer_.create(norm_dtype());
    if (options_.step != Step::steady) return;
    scaler_.create();
    if (architecture_.vision && !architecture_.vision.whole_images) {
      t::Restore<memory::Component> component(context_.component, memory::Component::buffers);
      modules_.remember(make_input(t::Op::empty, {options_.micro_batch, 1}, DType::i64, "rope_deltas"));
    }
    for (const model::Rotary* rotary : {&architecture_.rotary, &architecture_.local_rotary}) {
      if (rotary->type == "longrope") state_.drop_rotary_copy(*rotary);
    }
    if (architecture_.rotary.kept) keep_rotary(architecture_.rotary.dim);
    if (options_.optimizer == Optimizer::none) leave_gradients();
    else optimizer_.create();
  }

  // Of the norm of all gradients (clip_grad.cc).
  DType norm_dtype() const {
    const std::vector<Tensor>& trained = state_.trainable();
    const DType first = trained.front().dtype();
    const auto differs = [&](const Tensor& t) { return t.dtype() != first; };
    return std::any_of(trained.begin(), trained.end(), differs) ? DType::f32 : first;
  }

  void take_batches() {
    std::vector<model::Batch> batches;
    for (std::int64_t micro = 0; micro < options_.grad_accum; ++micro) batches.push_back(make_batch());
    trainer_.take_batches(std::move(batches));
    modules_.count_targets(trainer_.target_count());
  }

  void keep_rotary(std::int64_t dim) {
    t::Restore<memory::Component> component(context_.component, memory::Component::buffers);
    const t::Dims sizes{1, model::kept_rotary_rows(options_.seq_len), 1, dim};
    model::RotaryTables& kept = modules_.kept_rotary();
    kept.cos = t::empty(context_, t::Op::cos, sizes, DType::f32);
    kept.sin = t::empty(context_, t::Op::sin, sizes, DType::f32);
  }

  // Without an optimizer nobody clears the gradients of the step before.
  void leave_gradients() {
    t::Restore<memory::Component> component(context_.component, memory::Component::gradients);
    for (std::size_t i = 0; i < state_.trainable().size(); ++i) {
      t::Restore<std::int16_t> layer(context_.layer, state_.layer_of(i));
      context_.begin_section(context_.layer);
      Tensor parameter = state_.trainable()[i];
      parameter.set_grad(t::zeros_like(parameter));
    }
    context_.begin_section(memory::kNoLayer);
  }

  Tensor make_input(t::Op op, const t::Dims& sizes, DType dtype, std::string_view label) {
    Tensor made = t::empty(context_, op, sizes, dtype);
    context_.set_label(made.storage(), context_.intern(label));
    return made;
  }

  // As a processor hands them over: in fp32, most of them cut into patches.
  model::Images make_images() {
    const model::Vision& vision = architecture_.vision;
    const std::int64_t side = resized_side(vision, options_.image_size, options_.image_max_pixels);
    model::Images images;
    if (vision.whole_images) {
      images.pixels =
          make_input(t::Op::empty, {options_.micro_batch, vision.channels, side, side}, DType::f32, "pixel_values");
      return images;
    }
    images.patches_of_side = patches_of_side(vision, side);
    const std::int64_t patches = images.patches_of_side * images.patches_of_side;
    images.pixels = make_input(t::Op::empty, {options_.micro_batch * patches, vision.values_of_patch()}, DType::f32,
                               "pixel_values");
    images.grids = make_input(t::Op::empty, {options_.micro_batch, 3}, DType::i64, "image_grid_thw");
    return images;
  }

  model::Batch make_batch() {
    t::Restore<memory::Component> component(context_.component, memory::Component::inputs);
    const model::Image& image = architecture_.image;
    const model::Ear& ear = architecture_.ear;
    const std::int64_t samples = options_.micro_batch;
    model::Batch batch;
    switch (architecture_.input) {
      case model::InputKind::tokens:
        if (architecture_.vision) batch.images = make_images();
        batch.inputs = make_input(t::Op::randint, {samples, options_.seq_len}, DType::i64, "input_ids");
        if (batch.images.grids)
          batch.images.kinds = make_input(t::Op::empty, {samples, options_.seq_len}, DType::i64, "mm_token_type_ids");
        if (options_.code != nullptr || trainer_)
          batch.labels = make_input(t::Op::randint, {samples, options_.seq_len}, DType::i64, "labels");
        else if (options_.loss != Loss::none) batch.labels = batch.inputs;
        break;
      case model::InputKind::images:
        batch.inputs = make_input(t::Op::empty, {samples, image.channels, options_.image_size, options_.image_size},
                                  options_.dtype, "images");
        if (options_.loss != Loss::none) batch.labels = make_input(t::Op::zeros, {samples}, DType::i64, "labels");
        break;
      case model::InputKind::sound:
        batch.inputs = make_input(t::Op::empty, {samples, ear.mels, ear.frames}, options_.dtype, "input_features");
        batch.labels = make_input(t::Op::randint, {samples, options_.seq_len}, DType::i64, "labels");
        break;
    }
    return batch;
  }

  model::Output run_model(const model::Batch& batch) {
    if (!adds_tokens(options_.tuning.tuner)) return family_.forward(modules_, architecture_, batch);
    VirtualTokens tokens(modules_, architecture_, state_, options_);
    return family_.forward(modules_, architecture_, tokens.prepend(batch));
  }

  Tensor forward(const model::Batch& batch) {
    t::Restore<memory::Phase> phase(context_.phase, memory::Phase::forward);
    model::Output out;
    Tensor loss;
    {
      const t::AutocastRegion autocast(context_, autocast_of(options_));
      out = run_model(batch);
      hold_all(out);
      loss = options_.loss == Loss::none ? t::sum_all(out.logits) : out.loss;
    }
    if (trainer_) {
      trainer_.convert(out);
      hold_all(out);
      loss = out.loss;
    }
    for (const KeyValue& layer : modules_.past()) {
      hold(layer.key);
      hold(layer.value);
    }
    if (moments_.after_forward == 0) moments_.after_forward = mark("after_forward");
    modules_.drop_cache();
    modules_.drop_past();
    return loss;
  }

  // What the model returned is the caller's, not a temporary.
  void hold(const Tensor& tensor) {
    if (tensor.storage().component == memory::Component::temporaries) {
      context_.retag(tensor.storage(), memory::Component::activations);
    }
  }

  void hold_all(const model::Output& out) {
    hold(out.logits);
    if (out.encoder_hidden) hold(out.encoder_hidden);
    for (const Tensor& logits : out.router_logits) hold(logits);
  }

  // Another code base's loop keeps what it has bound; backward starts at a share of the loss.
  void run_micro_batch_of_code(std::int64_t micro) {
    const bool in_litgpt = in(CodeBase::litgpt);
    {
      model::Batch next = make_batch();
      bound_.inputs = std::move(next.inputs);
      bound_.labels = std::move(next.labels);
    }
    Tensor share;
    {
      t::Restore<memory::Phase> phase(context_.phase, memory::Phase::forward);
      if (in_litgpt) litgpt_forward(litgpt_, architecture_, bound_);
      else torchtune_forward(torchtune_, architecture_, bound_);
      for (const Tensor& tensor : bound_.logits) hold(tensor);
      if (moments_.after_forward == 0) moments_.after_forward = mark("after_forward");
      if (options_.step == Step::forward) return;
      share = in_litgpt ? t::div_scalar(bound_.loss) : bound_.loss;
    }
    t::run_backward(std::move(share));
    context_.begin_section(memory::kNoLayer);
    if (micro + 1 == options_.grad_accum) moments_.after_backward = mark("after_backward");
    if (micro + 1 < options_.grad_accum && options_.code->forgets_loss) bound_.loss.reset();
  }

  // train_step and forward_backward_step: batches come from the host one by one, and stay.
  void run_micro_batch_of_torchtitan(std::int64_t micro) {
    if (micro == 0) {
      titan_.counted = t::empty(context_, t::Op::copy, {}, DType::i64);
      bound_.tokens = t::empty(context_, t::Op::cast, {}, DType::f32);
    }
    bound_.labels.reset();
    model::Batch next = make_batch();
    bound_.inputs = next.inputs;
    bound_.labels = std::move(next.labels);
    titan_.batches.push_back(std::move(next.inputs));
    {
      t::Restore<memory::Phase> phase(context_.phase, memory::Phase::forward);
      const Tensor sum = torchtitan_forward(torchtitan_, architecture_, bound_);
      hold(bound_.logits[0]);
      if (moments_.after_forward == 0) moments_.after_forward = mark("after_forward");
      if (options_.step == Step::forward) return;
      bound_.logits.clear();
      t::run_backward(bound_.loss);
      context_.begin_section(memory::kNoLayer);
      if (micro + 1 == options_.grad_accum) moments_.after_backward = mark("after_backward");
    }
    titan_.losses.push_back(t::detach(bound_.loss));
  }

  // The losses' sum; then all names of train_step go.
  void end_of_torchtitan() {
    {
      const auto count = static_cast<std::int64_t>(titan_.losses.size());
      const Tensor stacked = t::empty(context_, t::Op::cat, {count}, DType::f32);
      t::empty(context_, t::Op::sum, {}, DType::f32);
    }
    titan_ = {};
    bound_ = {};
  }

  // _train_microbatches and _train_microbatch; what an accumulated step leaves is that of its last micro-batch.
  void run_micro_batch_of_composer(std::int64_t micro) {
    if (micro % options_.grad_accum == 0) begin_composer_batch(context_, composer_);
    bound_.inputs.reset();
    bound_.labels.reset();
    {
      model::Batch next = make_batch();
      bound_.inputs = std::move(next.inputs);
      bound_.labels = std::move(next.labels);
    }
    const Tensor inputs = t::empty(context_, t::Op::clone, bound_.inputs.sizes(), DType::i64);
    Tensor labels = t::empty(context_, t::Op::clone, bound_.labels.sizes(), DType::i64);
    {
      t::Restore<memory::Phase> phase(context_.phase, memory::Phase::forward);
      llm_foundry_forward(llm_foundry_, architecture_, bound_);
      hold(bound_.logits[0]);
      if (moments_.after_forward == 0) moments_.after_forward = mark("after_forward");
    }
    if (options_.step == Step::forward) return;
    ComposerLoss loss = composer_loss(bound_);
    t::run_backward(loss.root);
    context_.begin_section(memory::kNoLayer);
    if (micro + 1 == options_.grad_accum) moments_.after_backward = mark("after_backward");
    update_train_metrics(llm_foundry_, bound_, std::move(labels), composer_);
    loss.root.reset();
    composer_.share = std::move(loss.share);
    if (micro + 1 < options_.grad_accum) return;
    bound_.inputs.reset();
    bound_.labels.reset();
  }

  // What a steady step finds bound: a batch like its own.
  void leave_batch_before() {
    const t::Restore<memory::Phase> phase(context_.phase, memory::Phase::setup);
    const Moments untouched = moments_;
    if (in(CodeBase::llm_foundry)) {
      run_micro_batch_of_composer(options_.grad_accum);
      composer_.share.reset();
      composer_.total_loss.reset();
    } else {
      run_micro_batch_of_code(options_.grad_accum);
      bound_.loss.reset();
    }
    optimizer_.zero_grad();
    moments_ = untouched;
  }

  void run_micro_batch_of_trainer(std::int64_t micro) {
    Tensor loss = forward(trainer_.batch(micro));
    if (options_.step == Step::forward) return;
    {
      loss = trainer_.weighed(std::move(loss), modules_.counted());
      const Tensor divided = t::div_scalar(loss);  // Accelerator.backward: by one
      t::run_backward(scaler_.scale(divided));
    }
    loss = t::detach(loss);  // the graph goes
    context_.begin_section(memory::kNoLayer);
    if (micro + 1 == options_.grad_accum) moments_.after_backward = mark("after_backward");
    trainer_.add_loss(std::move(loss));
  }

  void run_micro_batch(std::int64_t micro) {
    context_.begin_section(memory::kNoLayer);
    if (in(CodeBase::torchtitan)) return run_micro_batch_of_torchtitan(micro);
    if (in(CodeBase::llm_foundry)) return run_micro_batch_of_composer(micro);
    if (options_.code != nullptr) return run_micro_batch_of_code(micro);
    if (trainer_) return run_micro_batch_of_trainer(micro);
    model::Batch batch = make_batch();
    Tensor loss = forward(batch);
    if (options_.step == Step::forward) return;
    Tensor scaled = scaler_.scale(loss);
    if (!options_.grad_scaler) loss.reset();
    t::run_backward(std::move(scaled));
    loss.reset();
    batch = {};
    context_.begin_section(memory::kNoLayer);
    if (micro + 1 == options_.grad_accum) moments_.after_backward = mark("after_backward");
  }

  std::uint32_t mark(std::string_view name) {
    context_.mark(context_.intern(name));
    return context_.timeline().marks.back().event;
  }

  const model::Architecture& architecture_;
  const model::Family& family_;
  const TrainOptions& options_;
  t::Context context_;
  std::optional<t::SavedOffload> offload_;
  ModelState state_;
  TransformersModules modules_;
  LitGptModules litgpt_;
  TorchtuneModules torchtune_;
  TorchtitanModules torchtitan_;
  LlmFoundryModules llm_foundry_;
  Bound bound_;  // by the loop of another code base
  TorchtitanStep titan_;
  ComposerStep composer_;
  OptimizerState optimizer_;
  GradScaler scaler_;
  HfTrainer trainer_;
  Moments moments_;
  StackedNorms stacked_norms_;
  std::vector<States> no_states_;
};

}  // namespace

Expected<CodedModel> in_code(model::Architecture architecture, TrainOptions options) {
  if (options.code == nullptr) return CodedModel{std::move(architecture), std::move(options)};
  const bool in_litgpt = options.code->code == CodeBase::litgpt;
  const bool in_titan = options.code->code == CodeBase::torchtitan;
  if (in_titan || options.code->code == CodeBase::llm_foundry) {
    auto converted = in_titan ? torchtitan_architecture(architecture, options) : llm_foundry_architecture(architecture);
    if (!converted) return tl::unexpected<Error>(converted.error());
    return CodedModel{*std::move(converted), std::move(options)};
  }
  auto converted =
      in_litgpt ? litgpt_architecture(architecture, options) : torchtune_architecture(architecture, options);
  if (!converted) return tl::unexpected<Error>(converted.error());
  auto tuning =
      in_litgpt ? litgpt_tuning(*converted, options.tuning, options.llama_adapter) : torchtune_tuning(options.tuning);
  if (!tuning) return tl::unexpected<Error>(tuning.error());
  options.tuning = *std::move(tuning);
  if (in_litgpt && !options.code->pads_by_copy) add_row_indices(*converted, options.tuning);
  return CodedModel{*std::move(converted), std::move(options)};
}

Expected<TrainRun> run_train_step(const model::Architecture& architecture, const TrainOptions& options, bool splice,
                                  t::Workspace* workspace) {
  const model::Family* family = model::find_family(architecture.family);
  if (family == nullptr)
    return fail(ErrorCode::unsupported, architecture.family, "no forward pass is known for this family");
  if (auto checked = check_step(architecture, options); !checked) return tl::unexpected<Error>(checked.error());
  const auto plan = model::plan_tuning(architecture, options.tuning);
  if (!plan) return tl::unexpected<Error>(plan.error());
  if (plan->adapted) {
    if (auto sized = check_adapted(architecture, *plan, options); !sized) return tl::unexpected<Error>(sized.error());
  }
  t::Workspace own;
  t::Workspace& lent = workspace == nullptr ? own : *workspace;
  const auto run = [&](const model::Architecture& a) { return TrainStep(a, *family, *plan, options, lent).run(); };
  // The table of a prefix is as wide as there are layers; what leaves for the host goes several layers later, further
  // than repeated stretches may reach back.
  // The load-balancing loss joins what all layers' routers gave.
  const bool joins_layers = options.tuning.tuner == model::Tuner::prefix || architecture.balances_experts;
  if (splice && !joins_layers && !options.offload_activations) {
    if (auto spliced = run_spliced(architecture, *plan, run, lent)) return *std::move(spliced);
  }
  return whole(run(architecture));
}

}  // namespace ullage::engines::pytorch
