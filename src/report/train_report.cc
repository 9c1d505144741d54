#include "report/train_report.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/bytes.h"
#include "memory/pinned.h"
#include "report/card_report.h"
#include "report/part_names.h"
#include "report/step_time.h"
#include "report/why.h"

namespace ullage::report {
namespace {

using engines::pytorch::Kernels;
using engines::pytorch::Step;
using engines::pytorch::TrainRun;
using memory::Component;

// Shown even where they are zero.
constexpr std::array kAlways{Component::parameters, Component::gradients, Component::optimizer, Component::activations,
                             Component::temporaries};

bool is_always_shown(Component component) {
  return std::find(kAlways.begin(), kAlways.end(), component) != kAlways.end();
}

ModelFacts model_facts(const TrainQuestion& question) {
  // The step has run, so there is a plan.
  const auto plan = model::plan_tuning(question.architecture, question.options.tuning);
  const model::ParameterTotals totals = model::parameter_totals(question.architecture, plan.value());
  return {question.architecture.name,
          question.architecture.family,
          totals.parameters,
          totals.trainable,
          totals.parameters - model::parameter_count(question.architecture) +
              model::active_parameter_count(question.architecture),
          engines::pytorch::parameter_bytes(totals, question.options)};
}

DeviceFacts device_facts(const hardware::Gpu* gpu) {
  if (gpu == nullptr) return {};
  return {
      gpu->id,           gpu->name,         1,
      gpu->memory_bytes, gpu->usable_bytes, memory::Range{gpu->usable_range_bytes.low, gpu->usable_range_bytes.high}};
}

std::vector<PartLine> parts_at(const TrainRun& run, std::uint32_t event) {
  std::vector<PartLine> out;
  for (const memory::Part& part : memory::parts_at(run.timeline, event)) {
    PartLine& line =
        out.emplace_back(PartLine{part.component, {}, name_of(part, run.timeline.names), part.bytes, part.blocks});
    if (part.layer != memory::kNoLayer) line.layer = part.layer;
  }
  return out;
}

std::vector<LayerLine> layers_of(std::span<const PartLine> parts, std::int64_t layers) {
  std::vector<LayerLine> out(static_cast<std::size_t>(layers) + 1);
  for (std::size_t i = 1; i < out.size(); ++i) out[i].layer = static_cast<std::int64_t>(i) - 1;
  for (const PartLine& part : parts)
    out[part.layer ? static_cast<std::size_t>(*part.layer) + 1 : 0].bytes += part.bytes;
  return out;
}

PhaseLine phase(std::string name, const memory::Moment& moment) {
  return {std::move(name), moment.bytes, moment.by_component};
}

// Once the weights are there, and what adapters add: what later steps keep beside them comes from the optimizer.
PhaseLine load_phase(const memory::Moment& before_step) {
  PhaseLine out{"load", 0, {}};
  for (const Component component : {Component::parameters, Component::buffers}) {
    const auto i = static_cast<std::size_t>(component);
    out.components[i] = before_step.by_component[i];
    out.allocated_bytes += before_step.by_component[i];
  }
  return out;
}

// The moments that the step reaches, in their order; the last one is the peak.
std::vector<PhaseLine> phases_of(const memory::Sweep& sweep, bool forward_only) {
  std::vector<PhaseLine> out{phase("before_step", sweep.at[0]), phase("forward_peak", sweep.highest[1]),
                             phase("after_forward", sweep.at[1])};
  if (!forward_only) {
    out.push_back(phase("forward_backward_peak", sweep.highest[2]));
    out.push_back(phase("after_backward", sweep.at[2]));
    out.push_back(phase("after_step", sweep.at[3]));
  }
  out.push_back(phase("peak", sweep.highest.back()));
  return out;
}

std::vector<ComponentLine> components_of(const TrainQuestion& question, const memory::Moment& peak,
                                         std::span<const PartLine> parts) {
  const std::vector<Group> groups = over_layers(parts);
  std::vector<ComponentLine> out;
  for (std::size_t i = 0; i < memory::kComponents; ++i) {
    const auto component = static_cast<Component>(i);
    const std::int64_t bytes = peak.by_component[i];
    if (bytes == 0 && !is_always_shown(component)) continue;
    out.push_back({component, memory::Level::allocated, bytes, why_of(question, component, bytes, groups)});
  }
  return out;
}

void add_work(Work& to, const memory::OpRecord& op) {
  switch (op.phase) {
    case memory::Phase::forward: to.forward_flops += static_cast<double>(op.flops); break;
    case memory::Phase::backward: to.backward_flops += static_cast<double>(op.flops); break;
    case memory::Phase::recompute: to.recompute_flops += static_cast<double>(op.flops); break;
    case memory::Phase::optimizer: to.optimizer_flops += static_cast<double>(op.flops); break;
    default: break;
  }
}

// The last micro-batch counts once more for each further one; a forward operator behind a backward one begins it.
Work work_of(const TrainRun& run, std::int64_t further) {
  Work all;
  Work last;
  memory::Phase before = memory::Phase::setup;
  for (const memory::OpRecord& op : run.timeline.ops) {
    if (op.phase == memory::Phase::forward && before == memory::Phase::backward) last = {};
    if (op.phase != memory::Phase::setup) before = op.phase;
    add_work(all, op);
    add_work(last, op);
  }
  all.forward_flops += static_cast<double>(further) * last.forward_flops;
  all.backward_flops += static_cast<double>(further) * last.backward_flops;
  all.recompute_flops += static_cast<double>(further) * last.recompute_flops;
  return all;
}

bool has_attention(const model::Architecture& architecture) {
  return !architecture.kinds.empty() && architecture.kinds[0].attention.kind != model::AttentionKind::none;
}

// Which kernel scaled_dot_product_attention ran, by the name of its operator.
std::optional<Text> attention_of(const TrainQuestion& question) {
  if (!has_attention(question.architecture) || question.options.attention != engines::pytorch::AttentionImpl::sdpa ||
      question.options.kernels != Kernels::cuda) {
    return std::nullopt;
  }
  const memory::Timeline& timeline = question.run.timeline;
  for (const memory::OpRecord& op : timeline.ops) {
    const std::string_view name = timeline.names[op.name];
    if (name == "flash_attention") return Text::attention_flash;
    if (name == "cudnn_attention") return Text::attention_cudnn;
    if (name == "efficient_attention") return Text::attention_efficient;
  }
  return Text::attention_math;
}

void add_optimizer(std::vector<Message>& out, engines::pytorch::Optimizer optimizer) {
  using engines::pytorch::Optimizer;
  if (optimizer == Optimizer::paged_adamw_8bit) out.push_back({Text::assume_paged_states, {}});
  if (optimizer == Optimizer::adamw_4bit || optimizer == Optimizer::adamw_fp8)
    out.push_back({Text::assume_compiled_update, {}});
  if (optimizer == Optimizer::muon) out.push_back({Text::assume_muon, {}});
}

// What the card cannot do, with the reason.
std::vector<Message> warnings_of(const TrainQuestion& question) {
  std::vector<Message> out;
  const hardware::Gpu* gpu = question.gpu;
  if (gpu == nullptr || question.options.kernels == Kernels::cpu) return out;
  const std::string capability = gpu->compute_capability ? hardware::to_string(*gpu->compute_capability) : "?";
  const DType computed = question.options.computed_in();
  if (computed == DType::bf16 && hardware::supports_bf16(*gpu) == hardware::Support::no) {
    out.push_back({Text::warn_no_bf16, {{"gpu", gpu->name}, {"capability", capability}}});
  }
  const std::optional<Text> attention = attention_of(question);
  if (attention && is_half(computed) && hardware::supports_flash_attention_2(*gpu) == hardware::Support::no) {
    out.push_back({Text::warn_no_flash, {{"gpu", gpu->name}, {"capability", capability}, {"kernel", *attention}}});
  }
  if (gpu->vendor != "NVIDIA") out.push_back({Text::warn_not_cuda, {{"gpu", gpu->name}}});
  if (gpu->usable_basis == hardware::UsableBasis::guess) {
    out.push_back({Text::warn_usable_guess, {{"gpu", gpu->name}, {"bytes", Bytes{gpu->usable_bytes}}}});
  }
  return out;
}

Text basis_text(hardware::UsableBasis basis) {
  switch (basis) {
    case hardware::UsableBasis::runtime_total: return Text::usable_runtime;
    case hardware::UsableBasis::nvidia_smi_rule: return Text::usable_nvidia_smi;
    case hardware::UsableBasis::datasheet_rule: return Text::usable_datasheet;
    case hardware::UsableBasis::guess: return Text::usable_guess;
    case hardware::UsableBasis::driver: return Text::usable_driver;
    case hardware::UsableBasis::given: return Text::usable_given;
  }
  return Text::usable_guess;
}

// How the experts of a mixture run; nothing: there are none.
std::optional<model::ExpertsRun> experts_run(const model::Architecture& architecture) {
  for (const model::LayerKind& kind : architecture.kinds) {
    if (kind.mixture.experts.count > 0) return kind.mixture.experts.run;
  }
  return {};
}

Text text_of(model::ExpertsRun run) {
  switch (run) {
    case model::ExpertsRun::grouped: return Text::assume_experts_grouped;
    case model::ExpertsRun::batched: return Text::assume_experts_batched;
    case model::ExpertsRun::one_by_one: return Text::assume_experts_one_by_one;
  }
  return Text::assume_experts_grouped;
}

// What a sample is, where it is more than so many tokens or pixels.
void add_input(std::vector<Message>& out, const model::Architecture& architecture) {
  constexpr std::int64_t kFramesPerSecond = 100;
  if (architecture.input == model::InputKind::sound) {
    const model::Ear& ear = architecture.ear;
    out.push_back(
        {Text::assume_sound, {{"seconds", ear.frames / kFramesPerSecond}, {"frames", ear.frames}, {"mels", ear.mels}}});
  }
  if (architecture.input == model::InputKind::images && !architecture.is_module_tree())
    out.push_back({Text::assume_classifier, {{"classes", architecture.image.classes}}});
}

Message eager_assumption(const TrainQuestion& question) {
  if (question.architecture.is_module_tree()) return {Text::assume_eager_image, {}};
  const engines::pytorch::Choices* code = question.options.code;
  if (code == nullptr) return {Text::assume_eager, {}};
  return {Text::assume_eager_code, {{"code", std::string(code->name)}, {"version", std::string(code->version)}}};
}

std::vector<Message> assumptions_of(const TrainQuestion& question) {
  std::vector<Message> out;
  out.push_back({question.options.kernels == Kernels::cpu ? Text::assume_host_memory : Text::assume_repeated, {}});
  if (question.options.compile) out.push_back({Text::assume_compiled, {}});
  else out.push_back(eager_assumption(question));
  add_input(out, question.architecture);
  if (const model::Vision& vision = question.architecture.vision) {
    const std::int64_t side =
        model::resized_side(vision, question.options.image_size, question.options.image_max_pixels);
    out.push_back({Text::assume_one_image, {{"side", side}, {"tokens", model::tokens_of_image(vision, side)}}});
  }
  if (question.options.attention == engines::pytorch::AttentionImpl::flash && has_attention(question.architecture))
    out.push_back({Text::assume_flash_package, {}});
  if (question.options.hf_trainer) out.push_back({Text::assume_trainer, {}});
  if (question.options.kernels == Kernels::cuda_traced) out.push_back({Text::assume_traced, {}});
  if (const auto attention = attention_of(question)) out.push_back({Text::assume_attention, {{"kernel", *attention}}});
  add_optimizer(out, question.options.optimizer);
  const model::BaseFormat base = question.options.tuning.base;
  const Text packed = question.options.packed_kernel ? Text::assume_packed_kernel : Text::assume_packed;
  if (base == model::BaseFormat::int8) out.push_back({Text::assume_eight_bit, {}});
  else if (base == model::BaseFormat::gptq) out.push_back({packed, {{"format", std::string("GPTQ")}}});
  else if (base == model::BaseFormat::awq) out.push_back({packed, {{"format", std::string("AWQ")}}});
  else if (base == model::BaseFormat::nf4_torchao) out.push_back({Text::assume_torchao_nf4, {}});
  else if (base != model::BaseFormat::plain && base != model::BaseFormat::fp8)
    out.push_back({Text::assume_four_bit, {}});
  if (const auto run = experts_run(question.architecture)) {
    out.push_back({text_of(*run), {}});
  }
  if (question.gpu != nullptr) {
    out.push_back({Text::assume_usable,
                   {{"gpu", question.gpu->name},
                    {"bytes", Bytes{question.gpu->usable_bytes}},
                    {"basis", basis_text(question.gpu->usable_basis)}}});
  }
  return out;
}

// Loading and stepping follow each other, so the larger is the peak.
void add_pinned(Prediction& out, const memory::Timeline& timeline) {
  if (!out.host) out.host.emplace();
  out.host->pinned_bytes = memory::pinned_bytes(timeline);
  out.host->peak_bytes = std::max(out.host->peak_bytes, *out.host->pinned_bytes);
  out.host->rules.push_back({Text::assume_offload, {}});
}

}  // namespace

Moment moment_of(const TrainRun& run, std::uint32_t event) {
  const memory::Timeline& timeline = run.timeline;
  if (event <= run.before_step) return {};
  const memory::OpId op = timeline.blocks[timeline.events[event - 1].block].op;
  if (op == memory::kNone) return {};
  const memory::OpRecord& record = timeline.ops[op];
  Moment out{
      true, record.phase, std::string(timeline.names[record.name]), std::string(timeline.names[record.module]), {}};
  if (record.layer != memory::kNoLayer) out.layer = record.layer;
  return out;
}

Prediction train_report(const TrainQuestion& question) {
  const TrainRun& run = question.run;
  const bool forward_only = question.options.step == Step::forward;
  const std::array asked{run.before_step, run.after_forward, run.after_backward, run.after_step};
  const memory::Sweep sweep = memory::sweep(run.timeline, std::span(asked).first(forward_only ? 2 : 4));
  const memory::Moment& peak = sweep.highest.back();

  Prediction out;
  out.command = "train";
  out.model = model_facts(question);
  out.device = device_facts(question.gpu);
  out.peak.allocated_bytes = peak.bytes;
  out.peak.at = moment_of(run, peak.event);
  out.parts = parts_at(run, peak.event);
  out.layers = layers_of(out.parts, question.architecture.layer_count());
  out.phases = phases_of(sweep, forward_only);
  if (question.load) {
    out.phases.insert(out.phases.begin(), load_phase(sweep.at[0]));
    out.host = host_memory(question.architecture, question.options, *question.load);
  }
  if (question.options.offload_activations) add_pinned(out, run.timeline);
  out.components = components_of(question, peak, out.parts);
  out.work = work_of(run, question.further_micro_batches);
  out.roofline_seconds = roofline_seconds_of(question);
  out.warnings = warnings_of(question);
  add_card(out, question, peak);
  out.assumptions = assumptions_of(question);
  if (out.host) {
    for (const Message& rule : out.host->rules) out.assumptions.push_back(rule);
  }
  return out;
}

}  // namespace ullage::report
