#include "report/prediction_json.h"

#include <algorithm>

#include "base/json.h"
#include "report/describe.h"
#include "report/json_parts.h"
#include "report/textbook_json.h"

namespace ullage::report {
namespace {

constexpr std::size_t kLargest = 50;

Json range_or_null(const std::optional<memory::Range>& range) {
  return range ? Json::array({range->low_bytes, range->high_bytes}) : Json(nullptr);
}

Json model_json(const ModelFacts& m) {
  return {{"name", m.name},
          {"family", m.family},
          {"parameters", m.parameters},
          {"trainable_parameters", m.trainable_parameters},
          {"active_parameters", m.active_parameters},
          {"parameter_bytes", m.parameter_bytes}};
}

Json device_json(const DeviceFacts& d) {
  return {{"name", d.name},
          {"count", d.count},
          {"memory_bytes", or_null(d.memory_bytes)},
          {"usable_bytes", or_null(d.usable_bytes)},
          {"usable_range_bytes", range_or_null(d.usable_range)}};
}

Json setup_json(const std::vector<Setting>& setup) {
  Json out = Json::object();
  for (const Setting& setting : setup) std::visit([&](const auto& value) { out[setting.name] = value; }, setting.value);
  return out;
}

Json peak_json(const Peak& p) {
  return {{"allocated_bytes", p.allocated_bytes},
          {"reserved_bytes", or_null(p.reserved_bytes)},
          {"process_bytes", or_null(p.process_bytes)},
          {"at", machine_name(p.at)},
          {"reserved_range_bytes", range_or_null(p.reserved_range)},
          {"process_range_bytes", range_or_null(p.process_range)}};
}

std::string_view level_name(memory::Level level) {
  switch (level) {
    case memory::Level::allocated: return "allocated";
    case memory::Level::reserved: return "reserved";
    case memory::Level::process: return "process";
  }
  return "process";
}

Json why_json(const Why& why) {
  Json values = Json::object();
  for (const auto& [name, value] : why.values) values[name] = value;
  return {{"rule", render(why.rule)}, {"values", std::move(values)}, {"source", why.source}};
}

Json components_json(const std::vector<ComponentLine>& lines) {
  Json out = Json::array();
  for (const ComponentLine& line : lines) {
    out.push_back({{"name", memory::name_of(line.component)},
                   {"bytes", line.bytes},
                   {"in", level_name(line.level)},
                   {"why", why_json(line.why)}});
  }
  return out;
}

// The same components in every phase, so that a reader never has to ask whether one is there.
Json by_component(const memory::ByComponent& bytes, const std::vector<ComponentLine>& lines) {
  Json out = Json::object();
  for (std::size_t i = 0; i < memory::kComponents; ++i) {
    const auto component = static_cast<memory::Component>(i);
    const bool listed = std::any_of(lines.begin(), lines.end(), [&](const ComponentLine& l) {
      return l.component == component && l.level == memory::Level::allocated;
    });
    if (listed || bytes[i] != 0) out[std::string(memory::name_of(component))] = bytes[i];
  }
  return out;
}

Json phases_json(const Prediction& p) {
  Json out = Json::array();
  for (const PhaseLine& phase : p.phases) {
    out.push_back({{"name", phase.name},
                   {"allocated_bytes", phase.allocated_bytes},
                   {"components", by_component(phase.components, p.components)}});
  }
  return out;
}

Json largest_json(const std::vector<PartLine>& parts) {
  Json out = Json::array();
  for (std::size_t i = 0; i < std::min(parts.size(), kLargest); ++i) {
    const PartLine& part = parts[i];
    out.push_back({{"name", part.name},
                   {"component", memory::name_of(part.component)},
                   {"layer", or_null(part.layer)},
                   {"bytes", part.bytes},
                   {"blocks", part.blocks}});
  }
  return out;
}

Json layers_json(const std::vector<LayerLine>& layers) {
  Json out = Json::array();
  for (const LayerLine& line : layers) out.push_back({{"layer", or_null(line.layer)}, {"bytes", line.bytes}});
  return out;
}

// A whole number is written as one as long as 64 bits hold it.
Json whole(double number) {
  constexpr double kMost = 9.2e18;
  return number < kMost ? Json(static_cast<std::int64_t>(number)) : Json(number);
}

Json work_json(const Work& w) {
  return {{"forward_flops", whole(w.forward_flops)},
          {"backward_flops", whole(w.backward_flops)},
          {"recompute_flops", whole(w.recompute_flops)},
          {"optimizer_flops", whole(w.optimizer_flops)}};
}

// What this engine has not is null.
void add_serve(Json& out, const ServeFacts& s) {
  out["weights_bytes"] = s.weights_bytes;
  out["weights_load_peak_bytes"] = or_null(s.weights_load_peak_bytes);
  out["kv"] = {{"bytes", s.kv_bytes},
               {"range_bytes", range_or_null(s.kv_range)},
               {"bytes_per_token", s.kv_bytes_per_token},
               {"tokens", s.kv_tokens},
               {"tokens_printed", or_null(s.kv_tokens_printed)},
               {"blocks", or_null(s.kv_blocks)},
               {"block_size", or_null(s.kv_block_size)},
               {"max_concurrency", or_null(s.max_concurrency)}};
  out["activation_peak_bytes"] = s.activation_peak_bytes;
  out["activation_peak_range_bytes"] = range_or_null(s.activation_peak_range);
  out["context_bytes"] = or_null(s.context_bytes);
  out["context_range_bytes"] = range_or_null(s.context_range);
  out["non_torch_bytes"] = or_null(s.non_torch_bytes);
  out["non_torch_range_bytes"] = range_or_null(s.non_torch_range);
  out["cuda_graph_bytes"] = or_null(s.cuda_graph_bytes);
  out["cuda_graph_range_bytes"] = range_or_null(s.cuda_graph_range);
  out["cuda_graph_estimate_bytes"] = or_null(s.cuda_graph_estimate_bytes);
  out["buffers"] = nullptr;
}

Json workload_json(const std::optional<Startup::Workload>& w) {
  if (!w) return nullptr;
  return {{"input_len", w->input_tokens},
          {"output_len", w->output_tokens},
          {"blocks_per_request", w->blocks_per_request},
          {"max_concurrency", w->most_requests},
          {"concurrency", or_null(w->concurrency)},
          {"holds", w->concurrency ? Json(*w->concurrency <= w->most_requests) : Json(nullptr)}};
}

Json startup_json(const Startup& s) {
  return {{"engine", s.engine},
          {"version", s.version},
          {"starts", s.starts},
          {"outcome", render(s.outcome, {Language::en, Unit::gib})},
          {"refusal", s.refusal.empty() ? Json(nullptr) : Json(s.refusal)},
          {"log", s.log},
          {"workload", workload_json(s.workload)},
          {"requested_bytes", or_null(s.requested_bytes)}};
}

// Over all GPUs.
Json totals_json(const Prediction& p) {
  return {{"process_bytes", p.total_process_bytes ? Json(*p.total_process_bytes) : or_null(p.peak.process_bytes)}};
}

Json full_json(const std::optional<FullCardLine>& full) {
  if (!full) return nullptr;
  return {{"message", full->message},
          {"at", machine_name(full->at)},
          {"first_step", full->in_first_step},
          {"requested_bytes", full->why.requested_bytes},
          {"segment_bytes", full->why.segment_bytes},
          {"free_bytes", full->why.free_bytes},
          {"allocated_bytes", full->why.allocated_bytes},
          {"reserved_bytes", full->why.reserved_bytes}};
}

Json advice_json(const std::optional<std::vector<AdviceLine>>& advice) {
  if (!advice) return nullptr;
  Json out = Json::array();
  for (const AdviceLine& line : *advice) {
    out.push_back({{"args", line.args},
                   {"saves_bytes", line.saves_bytes},
                   {"step_time_ratio", or_null(line.step_time_ratio)},
                   {"fits", or_null(line.fits)},
                   {"text", render(line.text, {Language::en, Unit::gib})}});
  }
  return out;
}

Json ranks_json(const std::vector<RankLine>& ranks) {
  if (ranks.empty()) return nullptr;
  Json out = Json::array();
  for (const RankLine& rank : ranks) {
    out.push_back({{"name", rank.name},
                   {"gpus", rank.count},
                   {"gpu", rank.gpu},
                   {"usable_bytes", or_null(rank.usable_bytes)},
                   {"peak", peak_json(rank.peak)},
                   {"components", components_json(rank.components)},
                   {"fits", or_null(rank.fit.fits)},
                   {"headroom_bytes", or_null(rank.fit.headroom_bytes)},
                   {"modules", rank.modules}});
  }
  return out;
}

Json host_json(const std::optional<Host>& host) {
  if (!host) return nullptr;
  return {{"peak_bytes", host->peak_bytes},
          {"pinned_bytes", or_null(host->pinned_bytes)},
          {"load_peak_bytes", or_null(host->load_peak_bytes)}};
}

}  // namespace

Json prediction_document(const Prediction& p) {
  Json out = {{"schema", "ullage.prediction/1"}, {"command", p.command}};
  out["model"] = model_json(p.model);
  out["device"] = device_json(p.device);
  out["setup"] = setup_json(p.setup);
  out["peak"] = peak_json(p.peak);
  out["components"] = components_json(p.components);
  out["phases"] = phases_json(p);
  out["largest"] = largest_json(p.parts);
  out["layers"] = layers_json(p.layers);
  out["work"] = p.startup ? Json(nullptr) : work_json(p.work);
  out["ranks"] = ranks_json(p.ranks);
  out["host"] = host_json(p.host);
  out["fits"] = or_null(p.fit.fits);
  out["fits_certain"] = or_null(p.fit.certain);
  out["headroom_bytes"] = or_null(p.fit.headroom_bytes);
  out["headroom_at_most_bytes"] = or_null(p.fit.headroom_at_most_bytes);
  out["out_of_memory"] = full_json(p.full);
  out["totals"] = totals_json(p);
  out["speed"] = nullptr;
  out["advice"] = advice_json(p.advice);
  if (!p.textbook.empty()) out["textbook"] = textbook_lines_json(p.textbook);
  if (p.serve) add_serve(out, *p.serve);
  if (p.startup) out["startup"] = startup_json(*p.startup);
  out["assumptions"] = messages_json(p.assumptions);
  out["warnings"] = messages_json(p.warnings);
  return out;
}

std::string prediction_json(const Prediction& p) { return printed(prediction_document(p)); }

}  // namespace ullage::report
