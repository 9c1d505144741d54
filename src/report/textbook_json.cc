#include "report/textbook_json.h"

#include <cmath>

#include "report/json_parts.h"

namespace ullage::report {
namespace {

std::string_view name_of(TextbookUnit unit) {
  switch (unit) {
    case TextbookUnit::bytes: return "bytes";
    case TextbookUnit::parameters: return "parameters";
    case TextbookUnit::cards: return "cards";
    case TextbookUnit::samples: return "samples";
    case TextbookUnit::blocks: return "blocks";
    case TextbookUnit::sequences: return "sequences";
  }
  return "";
}

// Whole bytes and counts: the formulas mean no fractions of one.
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

Json model_json(const std::optional<TextbookModel>& model) {
  if (!model) return nullptr;
  return {{"name", model->name},
          {"parameters", model->parameters},
          {"weight_bytes", or_null(model->weight_bytes)},
          {"step", {{"command", model->step}, {"allocated_bytes", or_null(model->step_allocated_bytes)}}}};
}

}  // namespace

Json textbook_lines_json(const std::vector<TextbookLine>& lines) {
  Json out = Json::array();
  for (const TextbookLine& line : lines) {
    out.push_back({{"name", line.name},
                   {"value", whole(line.value)},
                   {"unit", name_of(line.unit)},
                   {"formula", line.formula},
                   {"source", line.source}});
  }
  return out;
}

std::string textbook_json(const TextbookAnswer& answer) {
  const TextbookQuestion& q = answer.question;
  Json out = {{"schema", "ullage.textbook/1"}, {"command", "textbook"}};
  out["size"] = {{"text", answer.size},
                 {"parameters", q.parameters ? Json(whole(*q.parameters)) : Json(nullptr)},
                 {"bits", q.bits}};
  out["device"] = q.card ? Json{{"name", q.card->name}, {"gigabytes", q.card->gigabytes}} : Json(nullptr);
  out["lines"] = textbook_lines_json(answer.lines);
  out["model"] = model_json(answer.model);
  Json warnings = Json::array();
  for (const Message& warning : answer.warnings) warnings.push_back(render(warning));
  out["warnings"] = std::move(warnings);
  return printed(out);
}

}  // namespace ullage::report
