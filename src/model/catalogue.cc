#include "model/catalogue.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/lines.h"
#include "base/nearest.h"
#include "data/models.h"

namespace ullage::model {
namespace {

constexpr std::size_t kShown = 100;  // of a name that was not found
constexpr std::size_t kListed = 8;   // of the models that a short name could mean

std::string_view name_of(std::string_view line) { return quoted_after(line, "{\"name\":\""); }

// What follows the name of the line, where every line has its model type if it has one.
std::string_view model_type_of(std::string_view line) {
  const std::size_t end = line.find("\",");
  return end == std::string_view::npos ? std::string_view() : quoted_after(line.substr(end), "\",\"model_type\":\"");
}

bool is_partial(std::string_view line) {
  return line.substr(0, line.find("\"config\":{")).ends_with("\"partial\":true,");
}

std::string_view short_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

std::vector<std::string_view> lines_by_short_name(std::string_view models, std::string_view wanted) {
  std::vector<std::string_view> found;
  for_each_line(models, [&](std::string_view line) {
    if (compare_ignoring_case(short_name(name_of(line)), wanted) == 0) found.push_back(line);
  });
  return found;
}

tl::unexpected<Error> ambiguous(std::string_view wanted, std::span<const std::string_view> lines,
                                std::string_view where) {
  std::string names;
  for (std::string_view line : lines.first(std::min(kListed, lines.size()))) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(line));
  }
  if (lines.size() > kListed) names += ", …";
  return fail(ErrorCode::invalid_argument, std::string(where),
              fmt::format("'{}' could be {}; write the whole name", wanted.substr(0, kShown), names));
}

// The nearest whole names, or, where nothing is near, the models whose short name is.
std::vector<std::string> nearest_models(std::string_view wanted, std::string_view models) {
  std::vector<std::string_view> names;
  for_each_line(models, [&](std::string_view line) { names.push_back(name_of(line)); });
  std::vector<std::string> found = nearest_names(wanted, names);
  if (!found.empty()) return found;
  std::vector<std::string_view> shorts(names.size());
  std::transform(names.begin(), names.end(), shorts.begin(), short_name);
  return nearest_names(short_name(wanted), shorts);
}

tl::unexpected<Error> unknown_model(std::string_view wanted, std::string_view models, std::string_view where) {
  const std::string hint = did_you_mean(nearest_models(wanted, models));
  return fail(ErrorCode::not_found, std::string(where),
              fmt::format("no model named '{}' in the catalogue; {}{}`ullage models` lists all",
                          wanted.substr(0, kShown), hint, hint.empty() ? "" : " "));
}

Expected<CatalogueEntry> parse_entry(std::string_view line) {
  auto json = parse_json(line, fmt::format("models: {}", name_of(line)));
  if (!json) return tl::unexpected<Error>(json.error());
  const JsonObject row(*json, "models");
  CatalogueEntry entry;
  entry.name = row.string("name", "").value_or("");
  entry.model_type = row.string("model_type", "").value_or("");
  entry.provenance = row.string("provenance", "").value_or("");
  entry.note = row.string("note", "").value_or("");
  entry.partial = row.boolean("partial", false).value_or(false);
  const auto config = row.object("config");
  if (!config) return tl::unexpected<Error>(config.error());
  entry.config = std::move((*json)["config"]);
  return entry;
}

}  // namespace

ModelCatalogue built_in_models() { return {data::models()}; }

Expected<CatalogueEntry> find_model(std::string_view name, std::string_view where, const ModelCatalogue& catalogue) {
  const std::string_view exact = find_sorted_line(catalogue.models, name, name_of);
  if (!exact.empty()) return parse_entry(exact);
  const std::vector<std::string_view> lines = lines_by_short_name(catalogue.models, name);
  if (lines.size() == 1) return parse_entry(lines.front());
  if (lines.empty()) return unknown_model(name, catalogue.models, where);
  return ambiguous(name, lines, where);
}

std::vector<ModelRow> list_models(const ModelFilter& filter, const ModelCatalogue& catalogue) {
  std::vector<ModelRow> rows;
  for_each_line(catalogue.models, [&](std::string_view line) {
    const ModelRow row{name_of(line), model_type_of(line), is_partial(line)};
    const bool typed = filter.model_type.empty() || compare_ignoring_case(row.model_type, filter.model_type) == 0;
    if (typed && contains_ignoring_case(row.name, filter.text)) rows.push_back(row);
  });
  return rows;
}

}  // namespace ullage::model
