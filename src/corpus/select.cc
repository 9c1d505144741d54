#include "corpus/select.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/file.h"
#include "base/lines.h"
#include "corpus/resolve.h"
#include "model/catalogue.h"

namespace ullage::corpus {
namespace {

// Options whose absence means one of something.
constexpr std::array<std::string_view, 10> kDegrees{"gpus", "nodes", "tp",  "pp",      "vpp",
                                                    "cp",   "ep",    "etp", "ulysses", "grad_accum"};
constexpr std::array<std::string_view, 5> kNeutral{"0", "none", "off", "false", "no"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string with_underscores(std::string_view key) {
  std::string out(key);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

bool same_number(const std::string& a, const std::string& b) {
  char* end_a = nullptr;
  char* end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a);
  const double y = std::strtod(b.c_str(), &end_b);
  return end_a != a.c_str() && *end_a == '\0' && end_b != b.c_str() && *end_b == '\0' && x == y;
}

bool same(const std::string& actual, const std::string& wanted) {
  return compare_ignoring_case(actual, wanted) == 0 || same_number(actual, wanted) ||
         (actual == "true" && wanted == "1") || (actual == "false" && wanted == "0");
}

std::string short_name(std::string_view name) { return std::string(name.substr(name.rfind('/') + 1)); }

// Of a configuration beside the cases, or of the catalogue; empty where neither knows.
std::string model_type(const Case& entry) {
  const std::string name(model_of(entry));
  if (!name.ends_with(".json")) {
    const auto found = model::find_model(name);
    return found ? found->model_type : std::string();
  }
  const auto text = read_file(entry.folder + name, kMaxJsonBytes);
  if (!text) return {};
  const auto config = parse_json(*text, name);
  if (!config || !config->is_object()) return {};
  return JsonObject(*config, name).string("model_type", "").value_or("");
}

std::string family_of(const Case& entry, const Json* prediction) {
  if (prediction != nullptr) {
    if (const auto family = text_at(*prediction, "model.family")) return *family;
  }
  return model_type(entry);
}

bool option_matches(const Case& entry, const Json* prediction, const Where& where) {
  const std::string key = with_underscores(where.key);
  std::optional<std::string> actual = prediction == nullptr ? std::nullopt : text_at(*prediction, "setup." + key);
  if (!actual) actual = option_of(entry, key);
  return std::any_of(where.values.begin(), where.values.end(), [&](const std::string& wanted) {
    if (actual) return same(*actual, wanted);
    return contains(kDegrees, key) ? wanted == "1" : contains(kNeutral, wanted);
  });
}

bool matches(const Case& entry, const Json* prediction, const Where& where) {
  const auto any = [&](const std::string& actual) {
    return std::any_of(where.values.begin(), where.values.end(),
                       [&](const std::string& wanted) { return same(actual, wanted); });
  };
  // The label of the tables, or the engine that the case asks for: a code base on PyTorch is both.
  if (where.key == "engine" && any(entry.engine)) return true;
  if (where.key == "model") return any(std::string(model_of(entry))) || any(short_name(model_of(entry)));
  if (where.key == "family") return any(family_of(entry, prediction));
  if (where.key == "gpus" && prediction != nullptr) {
    if (const auto count = text_at(*prediction, "device.count")) return any(*count);
  }
  return option_matches(entry, prediction, where);
}

}  // namespace

Expected<Where> parse_where(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return fail(ErrorCode::invalid_argument, "--where", fmt::format("'{}' is not KEY=a,b", text));
  }
  Where where;
  where.key = text.substr(0, equals);
  for (std::string_view rest = text.substr(equals + 1);;) {
    const std::size_t comma = rest.find(',');
    where.values.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) return where;
    rest.remove_prefix(comma + 1);
  }
}

std::string value_of(const Case& entry, const Json* prediction, std::string_view key) {
  if (key == "confidence") return entry.confidence;
  if (key == "engine") return entry.engine;
  if (key == "model") return short_name(model_of(entry));
  if (key == "family") return family_of(entry, prediction);
  const std::string name = with_underscores(key);
  if (prediction != nullptr) {
    if (const auto resolved = text_at(*prediction, "setup." + name)) return *resolved;
  }
  return option_of(entry, name).value_or("");
}

bool selected(const Case& entry, const Json* prediction, const Selection& selection) {
  const auto& confidence = selection.confidence;
  if (!confidence.empty() && std::find(confidence.begin(), confidence.end(), entry.confidence) == confidence.end()) {
    return false;
  }
  return std::all_of(selection.where.begin(), selection.where.end(),
                     [&](const Where& where) { return matches(entry, prediction, where); });
}

}  // namespace ullage::corpus
