#include "base/json.h"
#include "report/inspection.h"
#include "report/json_parts.h"

namespace ullage::report {
namespace {

// 0 means "has none" in an architecture.
Json count_or_null(std::int64_t value) { return value > 0 ? Json(value) : Json(nullptr); }

Json layers_json(const std::vector<LayerGroup>& layers) {
  Json out = Json::array();
  for (const LayerGroup& group : layers) {
    out.push_back({{"name", group.name},
                   {"count", group.count},
                   {"parameters", group.parameters},
                   {"heads", count_or_null(group.heads)},
                   {"kv_heads", count_or_null(group.kv_heads)},
                   {"head_dim", count_or_null(group.head_dim)}});
  }
  return out;
}

Json parameters_json(const Inspection& inspection) {
  Json out = Json::array();
  for (const ParameterLine& line : inspection.parameters) {
    out.push_back({{"name", line.name},
                   {"shape", line.shape},
                   {"copies", line.copies},
                   {"elements", line.elements},
                   {"bytes", line.elements * size_of(inspection.dtype)},
                   {"tied_to", line.tied_to.empty() ? Json(nullptr) : Json(line.tied_to)}});
  }
  return out;
}

Json modules_json(const Inspection& inspection) {
  Json out = Json::array();
  for (const ModuleLine& line : inspection.modules) {
    out.push_back({{"name", line.name},
                   {"copies", line.copies},
                   {"parameters", line.parameters},
                   {"parameter_bytes", line.parameters * size_of(inspection.dtype)},
                   {"flops", inspection.flops ? Json(line.flops) : Json(nullptr)},
                   {"macs", inspection.macs ? Json(line.macs) : Json(nullptr)}});
  }
  return out;
}

}  // namespace

std::string inspection_json(const Inspection& i) {
  Json out = {{"schema", "ullage.inspect/1"}, {"command", "inspect"}};
  out["model"] = {{"name", i.model.name},
                  {"family", i.model.family},
                  {"parameters", i.model.parameters},
                  {"trainable_parameters", i.model.trainable_parameters},
                  {"active_parameters", i.model.active_parameters},
                  {"parameter_bytes", i.model.parameter_bytes},
                  {"buffer_bytes", i.buffer_bytes}};
  out["dtype"] = name_of(i.dtype);
  out["layer_count"] = i.layer_count;
  out["vocab"] = count_or_null(i.vocab);
  out["hidden"] = count_or_null(i.hidden);
  out["max_positions"] = count_or_null(i.max_positions);
  out["sample"] = {{"seq_len", or_null(i.seq_len)}, {"image_size", or_null(i.image_size)}};
  out["forward"] = i.flops ? Json{{"flops", *i.flops}, {"macs", *i.macs}} : Json(nullptr);
  out["layers"] = layers_json(i.layers);
  out["parameters"] = parameters_json(i);
  out["modules"] = modules_json(i);
  out["cache"] = cache_json(i.cache);
  out["weights"] = i.weights ? weights_json(*i.weights) : Json(nullptr);
  out["assumptions"] = messages_json(i.assumptions);
  out["warnings"] = messages_json(i.warnings);
  return printed(out);
}

std::string tensor_json(const TensorFacts& tensor) {
  Json out = {{"schema", "ullage.inspect/1"}, {"command", "inspect"}};
  out["tensor"] = {{"shape", tensor.shape},
                   {"dtype", name_of(tensor.dtype)},
                   {"elements", tensor.elements},
                   {"bytes", tensor.bytes},
                   {"allocated_bytes", tensor.allocated_bytes}};
  return printed(out);
}

}  // namespace ullage::report
