#include "cli/model_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/json.h"
#include "base/lines.h"
#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/quantisation_file.h"
#include "cli/weight_files.h"
#include "model/catalogue.h"
#include "model/checkpoint/compare.h"
#include "model/family.h"
#include "model/outline.h"
#include "model/textbook.h"

namespace ullage::cli {
namespace {

using report::Text;

struct Source {
  std::string name;   // of the model
  std::string where;  // in front of errors
  Json config;
  std::vector<report::Message> assumptions;
  std::vector<report::Message> warnings;
  std::optional<model::Checkpoint> stored;
  std::optional<Error> weights_problem;
};

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && compare_ignoring_case(text.substr(text.size() - ending.size()), ending) == 0;
}

// A form of MODEL that the contract names and nothing reads yet, in words; empty for others.
std::string_view unread_form(std::string_view name) {
  if (ends_with(name, ".onnx")) return "reading ONNX files";
  return "";
}

// quantization_config, which wrappers may leave to their text model; null: there is none.
Json quantisation_of(const Json& config) {
  if (!config.is_object()) return nullptr;
  const auto found = config.find("quantization_config");
  if (found != config.end() && found->is_object()) return *found;
  const auto text = config.find("text_config");
  return text != config.end() ? quantisation_of(*text) : Json(nullptr);
}

// Takes what the file beside the configuration says of quantised weights, where that says nothing.
void take_quantisation(Source& source, const Expected<std::string>& content, const std::string& where) {
  if (!content || !source.config.is_object() || !quantisation_of(source.config).is_null()) return;
  const auto json = parse_json(*content, where);
  Json found = json ? quantisation_in_file(*json) : Json(nullptr);
  if (found.is_null()) return;
  source.config["quantization_config"] = std::move(found);
  source.assumptions.push_back({Text::assume_quantisation_file, {{"file", where}}});
}

bool looks_like_path(std::string_view name) {
  return name.starts_with('/') || name.starts_with('.') || name.starts_with('~') || ends_with(name, ".json");
}

std::string without_slashes_behind(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// ".../TinyModel/config.json" and ".../TinyModel.json" are both called TinyModel.
std::string name_of_file(const std::string& path) {
  const std::string file = last_part(path);
  if (file != "config.json") return file.substr(0, file.rfind('.'));
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos || slash == 0 ? std::string() : last_part(path.substr(0, slash));
  return folder.empty() || folder == "." || folder == ".." ? "config.json" : folder;
}

Expected<Source> read_config(const std::string& path, const Files& files) {
  return files.read(path, kMaxJsonBytes)
      .and_then([&](const std::string& content) { return parse_json(content, path); })
      .map([&](Json config) {
        Source out{printable(name_of_file(path)), path, std::move(config), {}, {}, {}, {}};
        const std::string beside = path.substr(0, path.rfind('/') + 1) + kQuantisationFile;
        const bool named = last_part(path) == "config.json" && files.kind(beside) == PathKind::file;
        if (named) take_quantisation(out, files.read(beside, kMaxJsonBytes), beside);
        return out;
      });
}

Expected<Source> read_folder(const std::string& path, const Files& files) {
  const std::string folder = without_slashes_behind(path);
  const std::string config = folder == "/" ? "/config.json" : folder + "/config.json";
  if (files.kind(config) == PathKind::none) {
    return fail(ErrorCode::not_found, path,
                "is a folder without config.json; name the folder of a model or its config.json");
  }
  return read_config(config, files).map([&](Source source) {
    auto stored = weights_in(folder, files);
    if (stored) {
      source.stored = *std::move(stored);
    } else {
      source.weights_problem = stored.error();
      source.warnings.push_back({Text::warn_weights_unread, {{"problem", to_string(stored.error())}}});
    }
    return source;
  });
}

// A file of weights says what it is of, or its config.json does.
Expected<Source> read_weight_file(const std::string& path, const Files& files) {
  auto read = read_weights(path, files);
  if (!read) return tl::unexpected<Error>(read.error());
  if (!read->config) return tl::unexpected<Error>(read->config.error());
  return Source{read->name, read->where, *std::move(read->config), {}, {}, std::move(read->checkpoint), {}};
}

Source from_catalogue(model::CatalogueEntry entry) {
  Source out{entry.name, entry.name, std::move(entry.config), {}, {}, {}, {}};
  if (!entry.provenance.empty())
    out.assumptions.push_back({Text::assume_provenance, {{"provenance", entry.provenance}}});
  // docs/data.md: these words mark values that nobody looked up.
  const bool doubtful =
      entry.note.find("recalled") != std::string::npos || entry.note.find("inferred") != std::string::npos;
  if (!entry.note.empty())
    (doubtful ? out.warnings : out.assumptions).push_back({Text::note_on_model, {{"note", entry.note}}});
  return out;
}

// The model that stands for a bare size such as "7B".
Expected<Source> from_size(const std::string& size) {
  const auto name = model::textbook::checked_size(size).and_then(model::textbook::stand_in);
  if (!name) return tl::unexpected<Error>(name.error());
  auto entry = model::find_model(*name);
  if (!entry) return tl::unexpected<Error>(entry.error());
  Source out = from_catalogue(*std::move(entry));
  out.warnings.push_back({Text::warn_stand_in, {{"size", size}, {"model", out.name}}});
  return out;
}

tl::unexpected<Error> unknown(const std::string& name, Error error) {
  if (looks_like_path(name))
    return fail(ErrorCode::not_found, name,
                "no such file; name a config.json, its folder or a model of `ullage models`");
  return tl::unexpected<Error>(std::move(error));
}

// A name that no catalogue has may be one of the Hub's. `error` is the catalogue's.
Expected<Source> read_repository(const std::string& name, const Files& files, Error error) {
  const auto repository = files.repository(name);
  if (!repository) return unknown(name, std::move(error));
  const auto content = (*repository)->read("config.json", kMaxJsonBytes);
  if (!content && content.error().code != ErrorCode::invalid_argument) {
    error.message += "; the Hub: " + to_string(content.error());
    return tl::unexpected<Error>(std::move(error));
  }
  if (!content) return tl::unexpected<Error>(content.error());
  const std::string where = name + "/config.json";
  return parse_json(*content, where).map([&](Json config) {
    Source out{name.substr(0, name.find('@')), where, std::move(config), {}, {}, {}, {}};
    out.assumptions.push_back({Text::assume_from_hub, {{"model", name}, {"commit", (*repository)->commit()}}});
    // NVIDIA's names say so: others are not asked for the file.
    if (contains_ignoring_case(name, "fp4") || contains_ignoring_case(name, "fp8"))
      take_quantisation(out, (*repository)->read(kQuantisationFile, kMaxJsonBytes), name + "/" + kQuantisationFile);
    return out;
  });
}

Expected<Source> find_source(const std::string& name, const Files& files) {
  if (name.empty())
    return fail(ErrorCode::invalid_argument, "MODEL", "is empty; name a model of `ullage models` or a config.json");
  if (const std::string_view form = unread_form(name); !form.empty()) return not_in_this_version(name, form);
  if (names_weights(name)) return read_weight_file(name, files);
  if (model::textbook::bare_size(name)) return from_size(name);
  Error error;
  if (!looks_like_path(name)) {
    auto entry = model::find_model(name);
    if (entry) return from_catalogue(*std::move(entry));
    error = entry.error();
  }
  switch (files.kind(name)) {
    case PathKind::directory: return read_folder(name, files);
    case PathKind::file:
    case PathKind::other: return read_config(name, files);
    case PathKind::none: break;
  }
  const bool of_hub = !looks_like_path(name) && error.code == ErrorCode::not_found;
  return of_hub ? read_repository(name, files, std::move(error)) : unknown(name, std::move(error));
}

Expected<void> set_fields(Source& source, const std::vector<std::string>& fields) {
  std::string list;
  for (const std::string& field : fields) {
    if (!source.config.is_object())
      return fail(ErrorCode::malformed, source.where, "expected a JSON object with the model's configuration");
    if (auto set = model::set_field(source.config, field); !set) return set;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", field);
  }
  if (!list.empty()) source.assumptions.push_back({Text::assume_fields_set, {{"fields", list}}});
  return {};
}

void note_quantisation(Source& source) {
  const Json quantisation = quantisation_of(source.config);
  if (quantisation.is_null()) return;
  const JsonObject object(quantisation, source.where);
  const std::string method = object.string("quant_method", "").value_or("");
  source.warnings.push_back({Text::warn_quantised, {{"method", method.empty() ? std::string("?") : method}}});
}

void note_unread_fields(Source& source, const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    const std::string path = field.substr(0, field.find('='));
    if (!model::reads_field(source.config, path))
      source.warnings.push_back({Text::warn_field_not_read, {{"field", path}}});
  }
}

void note_parts(Source& source, const model::Architecture& architecture) {
  for (const model::Note& note : architecture.notes) {
    const bool text = note.kind == model::NoteKind::text_part_only;
    const Text warning = text ? Text::warn_text_part_only : Text::warn_vision_part_only;
    source.warnings.push_back({warning, {{"model_type", note.subject}}});
  }
}

// A family whose class takes every layer for Mamba where the configuration does not say which attend: no published
// model is so. Source: transformers' configuration_granitemoehybrid.py (layers_block_type).
void note_mixers(Source& source, const model::Architecture& architecture) {
  if (architecture.family != "granitemoehybrid") return;
  const auto text = source.config.find("text_config");
  const Json& config = text != source.config.end() && text->is_object() ? *text : source.config;
  const auto says = [&](const char* key) { return config.contains(key) && !config[key].is_null(); };
  if (says("layer_types") || says("layers_block_type")) return;
  source.warnings.push_back({Text::warn_mixers_by_default, {{"model_type", architecture.family}}});
}

// Weights and configuration that are not of one model would answer for neither.
void note_stored(Source& source, const model::Architecture& architecture) {
  if (!source.stored) return;
  const model::Checkpoint& stored = *source.stored;
  const model::Difference difference = model::compare(architecture, stored);
  const std::int64_t differing =
      static_cast<std::int64_t>(difference.only_in_model.size() + difference.other_shape.size());
  if (differing > 0) source.warnings.push_back({Text::warn_weights_differ, {{"count", differing}}});
  const bool gguf = stored.format == model::CheckpointFormat::gguf;
  source.assumptions.push_back({gguf ? Text::assume_from_gguf : Text::assume_weights_beside,
                                {{"tensors", report::Count{static_cast<std::int64_t>(stored.tensors.size())}},
                                 {"values", report::Count{stored.elements()}},
                                 {"bytes", report::Bytes{stored.tensor_bytes()}}}});
  if (stored.header_only) source.warnings.push_back({Text::warn_header_only, {}});
}

}  // namespace

bool is_of_hub(const std::string& name, const Files& files) {
  if (!hub::is_repository_id(std::string_view(name).substr(0, name.find('@'))) || looks_like_path(name)) return false;
  const auto entry = model::find_model(name);
  return !entry && entry.error().code == ErrorCode::not_found && files.kind(name) == PathKind::none;
}

Expected<LoadedModel> load_model(const std::string& name, const std::vector<std::string>& fields, const Files& files,
                                 Extent extent) {
  auto source = find_source(name, files);
  if (!source) return tl::unexpected<Error>(source.error());
  if (auto set = set_fields(*source, fields); !set) return tl::unexpected<Error>(set.error());
  const bool whole = extent == Extent::outline;
  note_quantisation(*source);
  auto architecture = whole ? model::build_outline(source->config, source->where)
                            : model::build_architecture(source->config, source->where);
  if (!architecture) return tl::unexpected<Error>(architecture.error());
  architecture->name = source->name;
  note_parts(*source, *architecture);
  note_mixers(*source, *architecture);
  note_stored(*source, *architecture);
  note_unread_fields(*source, fields);
  Json quantisation = quantisation_of(source->config);
  return LoadedModel{*std::move(architecture),    std::move(quantisation),           std::move(source->assumptions),
                     std::move(source->warnings), model::textbook::bare_size(name),  std::move(source->config),
                     std::move(source->stored),   std::move(source->weights_problem)};
}

}  // namespace ullage::cli
