#include "cli/hub_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "model/checkpoint/safetensors.h"

namespace ullage::cli {
namespace {

using Sources = std::vector<std::unique_ptr<ByteSource>>;

const std::string kIndex = "model.safetensors.index.json";
const std::string kOnlyFile = "model.safetensors";
// The largest indices that are known have a tenth of this.
constexpr std::int64_t kMostIndexBytes = 256 * kMiB;

bool is_missing(const Error& error) { return error.code == ErrorCode::not_found; }

// Hands out what was opened together, each once, by name; the index anew.
model::OpenSource opened(const std::string& index, const std::vector<std::string>& names, Sources& sources) {
  return [&](const std::string& name) -> Expected<std::unique_ptr<ByteSource>> {
    if (name == kIndex) return memory_source(name, index);
    const auto found = std::find(names.begin(), names.end(), name);
    const auto at = static_cast<std::size_t>(found - names.begin());
    if (found == names.end() || sources[at] == nullptr)
      return fail(ErrorCode::not_found, name, "is none of the files that the index names");
    return std::exchange(sources[at], nullptr);
  };
}

Expected<model::Checkpoint> read_set(hub::Repository& repository, const std::string& index) {
  const auto source = memory_source(repository.id() + "/" + kIndex, index);
  const auto parts = model::read_safetensors_index(*source);
  if (!parts) return tl::unexpected<Error>(parts.error());
  auto sources = repository.open(parts->files);
  if (!sources) return tl::unexpected<Error>(sources.error());
  return model::read_safetensors_set(kIndex, opened(index, parts->files, *sources));
}

}  // namespace

Expected<std::optional<model::Checkpoint>> weights_on_hub(hub::Repository& repository) {
  const auto some = [](model::Checkpoint checkpoint) {
    return std::optional<model::Checkpoint>(std::move(checkpoint));
  };
  const auto index = repository.read(kIndex, kMostIndexBytes);
  if (index) return read_set(repository, *index).map(some);
  if (!is_missing(index.error())) return tl::unexpected<Error>(index.error());
  const auto sources = repository.open({&kOnlyFile, 1});
  if (sources) return model::read_safetensors(*sources->front()).map(some);
  if (is_missing(sources.error())) return std::optional<model::Checkpoint>();
  return tl::unexpected<Error>(sources.error());
}

}  // namespace ullage::cli
