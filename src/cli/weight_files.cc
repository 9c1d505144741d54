#include "cli/weight_files.h"

#include <fmt/core.h>

#include "base/lines.h"
#include "base/printable.h"
#include "model/checkpoint/gguf.h"
#include "model/checkpoint/gguf_config.h"
#include "model/checkpoint/safetensors.h"

namespace ullage::cli {
namespace {

constexpr std::string_view kIndexEnding = ".safetensors.index.json";

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && compare_ignoring_case(text.substr(text.size() - ending.size()), ending) == 0;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string name_of(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return printable(file.substr(0, file.find(".safetensors")));
}

Expected<WeightFiles> read_gguf_model(const std::string& path, const Files& files) {
  return model::read_gguf_files(path, files.open).map([&](const model::Gguf& gguf) {
    const model::GgufValue* named = gguf.find("general.name");
    const std::string file = path.substr(path.rfind('/') + 1);
    std::string name = named != nullptr && !named->text.empty() ? named->text : file.substr(0, file.rfind('.'));
    return WeightFiles{printable(std::move(name)), path, model::config_of(gguf, path), model::checkpoint_of(gguf)};
  });
}

Expected<Json> config_beside(const std::string& path, const Files& files) {
  const std::string config = folder_of(path) + "config.json";
  if (files.kind(config) == PathKind::none)
    return fail(ErrorCode::not_found, path,
                "has no config.json beside it, which says what model it is of; put it there or ask for --checkpoint");
  return files.read(config, kMaxJsonBytes).and_then([&](const std::string& content) {
    return parse_json(content, config);
  });
}

// "model-00002-of-00003.safetensors" is a part of what "model.safetensors.index.json" lists; empty: it is whole.
std::string index_of_part(const std::string& path) {
  constexpr std::string_view kForm = "-00001-of-00003.safetensors";
  if (path.size() <= kForm.size()) return {};
  const std::string_view ending = std::string_view(path).substr(path.size() - kForm.size());
  if (ending[0] != '-' || ending.substr(6, 4) != "-of-") return {};
  return path.substr(0, path.size() - kForm.size()).append(kIndexEnding);
}

Expected<model::Checkpoint> read_safetensors_files(const std::string& path, const Files& files) {
  if (ends_with(path, kIndexEnding)) return model::read_safetensors_set(path, files.open);
  const std::string index = index_of_part(path);
  if (!index.empty() && files.kind(index) != PathKind::none) return model::read_safetensors_set(index, files.open);
  return files.open(path).and_then(
      [](const std::unique_ptr<ByteSource>& source) { return model::read_safetensors(*source); });
}

}  // namespace

bool names_weights(const std::string& name) {
  return ends_with(name, ".gguf") || ends_with(name, ".safetensors") || ends_with(name, kIndexEnding);
}

Expected<WeightFiles> read_weights(const std::string& path, const Files& files) {
  if (ends_with(path, ".gguf")) return read_gguf_model(path, files);
  return read_safetensors_files(path, files).map([&](model::Checkpoint checkpoint) {
    return WeightFiles{name_of(path), folder_of(path) + "config.json", config_beside(path, files),
                       std::move(checkpoint)};
  });
}

Expected<std::optional<model::Checkpoint>> weights_in(const std::string& folder, const Files& files) {
  for (const char* name : {"/model.safetensors.index.json", "/model.safetensors"}) {
    const std::string path = folder + name;
    if (files.kind(path) != PathKind::none)
      return read_safetensors_files(path, files).map([](model::Checkpoint checkpoint) {
        return std::optional<model::Checkpoint>(std::move(checkpoint));
      });
  }
  return std::optional<model::Checkpoint>();
}

}  // namespace ullage::cli
