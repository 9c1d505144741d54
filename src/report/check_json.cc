#include "report/check.h"
#include "report/prediction_json.h"

namespace ullage::report {
namespace {

Json flag_json(const launch::ReadFlag& flag, bool with_value) {
  Json out = {{"flag", flag.name}};
  if (with_value) out["value"] = flag.off ? "false" : flag.value.empty() ? "true" : flag.value;
  out["from"] = flag.from.empty() ? Json(nullptr) : Json(flag.from);
  return out;
}

Json flags_json(const std::vector<launch::ReadFlag>& flags, bool with_values) {
  Json out = Json::array();
  for (const launch::ReadFlag& flag : flags) out.push_back(flag_json(flag, with_values));
  return out;
}

Json unknown_json(const std::vector<launch::UnknownFlag>& flags) {
  Json out = Json::array();
  for (const launch::UnknownFlag& flag : flags)
    out.push_back(
        {{"flag", flag.written}, {"taken_for", flag.taken_for.empty() ? Json(nullptr) : Json(flag.taken_for)}});
  return out;
}

Json correction_json(const Correction& correction) {
  Json changes = Json::array();
  for (const auto& [name, value] : correction.changes)
    changes.push_back({{"flag", name}, {"value", value.empty() ? "true" : value}});
  return {{"command", correction.command},
          {"changes", std::move(changes)},
          {"gpus", correction.gpus},
          {"prediction", prediction_document(correction.prediction)}};
}

Json command_json(const CheckReport& report) {
  const launch::Launch& launch = report.launch;
  Json out = {{"engine", engine_word(launch.engine)},
              {"engine_version", launch.version.empty() ? Json(nullptr) : Json(launch.version)},
              {"model", launch.model},
              {"taken_model", report.taken_model.empty() ? Json(nullptr) : Json(report.taken_model)},
              {"around", launch.around}};
  out["visible_gpus"] = launch.visible_gpus ? Json(*launch.visible_gpus) : Json(nullptr);
  // Without values, which may be secrets.
  out["ignored_environment"] = launch.ignored_env;
  out["read"] = flags_json(launch.read, true);
  out["ignored"] = flags_json(launch.ignored, false);
  out["uncounted"] = flags_json(launch.uncounted, true);
  out["unknown"] = unknown_json(launch.unknown);
  return out;
}

}  // namespace

std::string check_json(const CheckReport& report) {
  Json out = {{"schema", "ullage.check/1"}, {"launch", command_json(report)}, {"args", report.question}};
  out["prediction"] = report.prediction ? prediction_document(*report.prediction) : Json(nullptr);
  out["spelled"] = report.spelled.empty() ? Json(nullptr) : Json(report.spelled);
  Json corrections = Json::array();
  for (const Correction& correction : report.corrections) corrections.push_back(correction_json(correction));
  out["corrections"] = report.searched ? std::move(corrections) : Json(nullptr);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ullage::report
