#include "base/json.h"
#include "report/fit.h"
#include "report/json_parts.h"
#include "speed/decode.h"

namespace ullage::report {
namespace {

Json row_json(const FitRow& row) {
  Json out = {{"model", row.model},
              {"name", or_null(row.name)},
              {"parameters", row.parameters > 0 ? Json(row.parameters) : Json(nullptr)},
              {"gpu", or_null(row.gpu)},
              {"fits", row.not_modelled.empty() ? Json(row.cards > 0) : Json(nullptr)},
              {"not_modelled", or_null(row.not_modelled)}};
  const bool fits = row.cards > 0;
  const auto known = [&](Json value) { return fits ? std::move(value) : Json(nullptr); };
  out["cards"] = known(row.cards);
  out["quantization"] = known(row.quantization.empty() ? "none" : row.quantization);
  out["dtype"] = known(row.dtype);
  out["weight_bytes"] = known(row.weight_bytes);
  out["context_tokens"] = known(row.context_tokens);
  out["at_the_limit"] = known(row.at_the_limit);
  out["fits_certain"] = known(row.certain);
  out["headroom_bytes"] = or_null(row.headroom_bytes);
  out["tokens_per_second"] = or_null(row.tokens_per_second);
  out["chinese_characters_per_second"] =
      row.tokens_per_second ? Json(characters_per_second(*row.tokens_per_second)) : Json(nullptr);
  out["bound"] = row.tokens_per_second ? Json(row.memory_bound ? "memory" : "compute") : Json(nullptr);
  out["power"] = {{"cards_w", or_null(row.cards_w)}, {"supply_w", or_null(row.supply_w)}};
  out["args"] = row.args;
  return out;
}

}  // namespace

double characters_per_second(double tokens_per_second) { return tokens_per_second / speed::kTokensPerChineseCharacter; }

std::string fit_json(const FitTable& table) {
  Json rows = Json::array();
  for (const FitRow& row : table.rows) rows.push_back(row_json(row));
  const Json out = {{"schema", "ullage.fit/1"},
                    {"command", "fit"},
                    {"engine", "transformers"},
                    {"least_tokens", table.least_tokens},
                    {"speed_tokens", table.speed_tokens},
                    {"rows", std::move(rows)},
                    {"left_out", table.left_out},
                    {"not_fitting", table.not_fitting},
                    {"assumptions", messages_json(table.assumptions)},
                    {"warnings", messages_json(table.warnings)}};
  return printed(out);
}

}  // namespace ullage::report
