#include "report/describe.h"

#include <array>

namespace ullage::report {
namespace {

using memory::Phase;

constexpr std::array<Text, memory::kComponents> kComponentTexts{
    Text::component_parameters,      Text::component_gradients,     Text::component_optimizer,
    Text::component_buffers,         Text::component_inputs,        Text::component_activations,
    Text::component_temporaries,     Text::component_communication, Text::component_kv_cache,
    Text::component_recurrent_state, Text::component_cuda_graphs,   Text::component_workspace,
    Text::component_context,         Text::component_libraries,     Text::component_projector,
    Text::component_fragmentation,   Text::component_cached,        Text::component_unattributed};

std::string_view machine_name(Phase phase) {
  switch (phase) {
    case Phase::setup: return "setup";
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::recompute: return "recompute";
    case Phase::optimizer: return "optimizer.step";
    case Phase::communication: return "communication";
    case Phase::other: return "step";
  }
  return "step";
}

Text text_of(Phase phase) {
  switch (phase) {
    case Phase::forward: return Text::in_forward;
    case Phase::backward: return Text::in_backward;
    case Phase::recompute: return Text::in_recompute;
    case Phase::optimizer: return Text::in_optimizer;
    default: return Text::in_step;
  }
}

std::string operator_name(const Moment& moment) {
  std::string out;
  if (moment.layer) out += "layers." + std::to_string(*moment.layer);
  // The optimizer is its phase already.
  if (!moment.module.empty() && moment.phase != Phase::optimizer)
    out.append(out.empty() ? "" : ".").append(moment.module);
  if (!out.empty()) out += ' ';
  return out + moment.op;
}

struct PhaseText {
  std::string_view name;
  Text text;
};

constexpr PhaseText kPhases[] = {
    {"load", Text::phase_load},
    {"before_step", Text::phase_before_step},
    {"forward_peak", Text::phase_forward_peak},
    {"after_forward", Text::phase_after_forward},
    {"forward_backward_peak", Text::phase_forward_backward_peak},
    {"after_backward", Text::phase_after_backward},
    {"after_step", Text::phase_after_step},
    {"peak", Text::phase_peak},
    {"before_prefill", Text::phase_before_prefill},
    {"prefill_peak", Text::phase_prefill_peak},
    {"after_prefill", Text::phase_after_prefill},
    {"decode_peak", Text::phase_decode_peak},
    {"after_decode", Text::phase_after_decode},
};

}  // namespace

Text text_of(memory::Component component) { return kComponentTexts[static_cast<std::size_t>(component)]; }

Text text_of_phase(std::string_view name) {
  for (const PhaseText& phase : kPhases) {
    if (phase.name == name) return phase.text;
  }
  return Text::phase_peak;
}

std::string machine_name(const Moment& moment) {
  if (!moment.in_operator) return "before_step";
  return std::string(machine_name(moment.phase)) + ": " + operator_name(moment);
}

Message describe(const Moment& moment) {
  if (!moment.in_operator) return {Text::at_start, {}};
  return {text_of(moment.phase), {{"operator", operator_name(moment)}}};
}

}  // namespace ullage::report
