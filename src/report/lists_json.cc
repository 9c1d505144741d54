#include "base/json.h"
#include "report/json_parts.h"
#include "report/lists.h"

namespace ullage::report {
namespace {

std::string_view basis_name(hardware::UsableBasis basis) {
  switch (basis) {
    case hardware::UsableBasis::runtime_total: return "runtime-total";
    case hardware::UsableBasis::nvidia_smi_rule: return "nvidia-smi-rule";
    case hardware::UsableBasis::datasheet_rule: return "datasheet-rule";
    case hardware::UsableBasis::guess: return "guess";
    case hardware::UsableBasis::driver: return "driver";
    case hardware::UsableBasis::given: return "given";
  }
  return "guess";
}

Json rates_json(const hardware::PeakRates& peak) {
  return {{"fp32_tflops", or_null(peak.fp32_tflops)}, {"tf32_tflops", or_null(peak.tf32_tflops)},
          {"fp16_tflops", or_null(peak.fp16_tflops)}, {"bf16_tflops", or_null(peak.bf16_tflops)},
          {"fp8_tflops", or_null(peak.fp8_tflops)},   {"fp4_tflops", or_null(peak.fp4_tflops)},
          {"int8_tops", or_null(peak.int8_tops)}};
}

Json gpu_json(const hardware::Gpu& g) {
  Json out = {{"id", g.id},     {"aliases", g.aliases},           {"vendor", g.vendor},
              {"name", g.name}, {"architecture", g.architecture}, {"form_factor", g.form_factor}};
  out["compute_capability"] = g.compute_capability ? Json(hardware::to_string(*g.compute_capability)) : Json(nullptr);
  out["memory_bytes"] = g.memory_bytes;
  out["usable_bytes"] = g.usable_bytes;
  out["usable_range_bytes"] = {g.usable_range_bytes.low, g.usable_range_bytes.high};
  out["usable_basis"] = basis_name(g.usable_basis);
  out["unified_memory"] = g.unified_memory;
  out["devices_per_card"] = g.devices_per_card;
  out["memory_bandwidth_bytes_per_second"] = or_null(g.memory_bandwidth_bytes_per_s);
  out["link_bytes_per_second"] = or_null(g.link_bytes_per_s);
  out["peak"] = rates_json(g.peak);
  out["tdp_w"] = or_null(g.tdp_w);
  out["year"] = or_null(g.year);
  out["recalled"] = g.recalled;
  out["inferred"] = g.inferred;
  return out;
}

}  // namespace

std::string models_json(const std::vector<ListedModel>& models) {
  Json rows = Json::array();
  for (const ListedModel& m : models) {
    rows.push_back({{"name", m.name},
                    {"model_type", m.model_type},
                    {"partial", m.partial},
                    {"parameters", or_null(m.parameters)}});
  }
  return printed({{"schema", "ullage.models/1"}, {"command", "models"}, {"models", std::move(rows)}});
}

std::string gpus_json(const std::vector<hardware::Gpu>& gpus) {
  Json rows = Json::array();
  for (const hardware::Gpu& gpu : gpus) rows.push_back(gpu_json(gpu));
  return printed({{"schema", "ullage.gpus/1"}, {"command", "gpus"}, {"gpus", std::move(rows)}});
}

}  // namespace ullage::report
