#include "report/checkpoint_report.h"
#include "report/json_parts.h"

namespace ullage::report {
namespace {

Json files_json(const model::Checkpoint& files) {
  const bool gguf = files.format == model::CheckpointFormat::gguf;
  return {{"format", gguf ? "gguf" : "safetensors"}, {"files", files.files},
          {"file_bytes", files.file_bytes},          {"header_bytes", files.header_bytes},
          {"header_only", files.header_only},        {"tensors", files.tensors.size()},
          {"tensor_bytes", files.tensor_bytes()}};
}

Json lines_json(const std::vector<StoredLine>& lines) {
  Json out = Json::array();
  for (const StoredLine& line : lines) {
    out.push_back({{"name", line.name}, {"tensors", line.tensors}, {"elements", line.elements}, {"bytes", line.bytes}});
  }
  return out;
}

Json extras_json(const std::vector<ExtraLine>& extras) {
  Json out = Json::array();
  for (const ExtraLine& extra : extras) {
    out.push_back({{"name", name_of(extra.what)},
                   {"certain", extra.certain},
                   {"tensors", or_null(extra.tensors)},
                   {"elements", extra.elements},
                   {"bytes", or_null(extra.bytes)},
                   {"origin", extra.origin}});
  }
  return out;
}

}  // namespace

std::string checkpoint_json(const CheckpointReport& report) {
  Json checkpoint;
  checkpoint["files"] = report.files ? files_json(*report.files) : Json(nullptr);
  checkpoint["elements"] = report.elements();
  checkpoint["types"] = lines_json(report.types);
  checkpoint["parts"] = lines_json(report.parts);
  checkpoint["extras"] = extras_json(report.extras);
  checkpoint["only_in_model"] = report.only_in_model;
  checkpoint["other_shape"] = report.other_shape;
  Json out = {{"schema", "ullage.inspect/1"}, {"command", "inspect"}};
  out["model"] = {{"name", report.name},
                  {"family", report.family.empty() ? Json(nullptr) : Json(report.family)},
                  {"parameters", or_null(report.parameters)}};
  out["checkpoint"] = std::move(checkpoint);
  out["assumptions"] = messages_json(report.assumptions);
  out["warnings"] = messages_json(report.warnings);
  return printed(out);
}

}  // namespace ullage::report
