#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/json.h"
#include "model/checkpoint/gguf.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kMostParts = 10'000;

// "NAME-00001-of-00003.gguf" (llama_split_path in ggml-org/llama.cpp).
struct PartName {
  std::string stem;
  std::int64_t number = 1;  // from 1 on
  std::int64_t count = 1;
};

std::optional<std::int64_t> five_digits(std::string_view text) {
  std::int64_t out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    out = 10 * out + (c - '0');
  }
  return out;
}

std::optional<PartName> part_name(std::string_view name) {
  constexpr std::string_view kForm = "-00001-of-00003.gguf";
  if (name.size() < kForm.size()) return std::nullopt;
  const std::string_view ending = name.substr(name.size() - kForm.size());
  if (ending[0] != '-' || ending.substr(6, 4) != "-of-" || ending.substr(15) != ".gguf") return std::nullopt;
  const auto number = five_digits(ending.substr(1, 5));
  const auto count = five_digits(ending.substr(10, 5));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return PartName{std::string(name.substr(0, name.size() - kForm.size())), *number, *count};
}

std::string name_of_part(const PartName& name, std::int64_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.stem, number, name.count);
}

std::int64_t number_in(const Gguf& file, std::string_view key, std::int64_t fallback) {
  const GgufValue* value = file.find(key);
  return value == nullptr ? fallback : value->whole;
}

Expected<Gguf> read_one(const std::string& name, const OpenSource& open) {
  return open(name).and_then([](const std::unique_ptr<ByteSource>& source) { return read_gguf(*source); });
}

Expected<Gguf> read_part(const PartName& name, std::int64_t number, const OpenSource& open) {
  const std::string path = name_of_part(name, number);
  auto part = read_one(path, open);
  if (!part && part.error().code == ErrorCode::not_found)
    return fail(
        ErrorCode::not_found, path,
        fmt::format("is missing, part {} of {} of this model; put all parts into one folder", number, name.count));
  if (!part) return part;
  if (number_in(*part, "split.no", -1) != number - 1 || number_in(*part, "split.count", 1) != name.count)
    return fail(ErrorCode::malformed, path,
                fmt::format("is named part {} of {}, but says of itself that it is part {} of {}", number, name.count,
                            number_in(*part, "split.no", 0) + 1, number_in(*part, "split.count", 1)));
  return part;
}

void append(Gguf& whole, Gguf&& part) {
  std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(whole.tensors));
  whole.header_bytes += part.header_bytes;
  whole.file_bytes = add_saturated(whole.file_bytes, part.file_bytes);
  whole.header_only = whole.header_only || part.header_only;
  ++whole.files;
}

Expected<void> check_tensors(const Gguf& whole, const std::string& where) {
  const std::int64_t wanted = number_in(whole, "split.tensors.count", -1);
  const auto found = static_cast<std::int64_t>(whole.tensors.size());
  if (wanted >= 0 && wanted != found)
    return fail(ErrorCode::malformed, where,
                fmt::format("its parts hold {} tensors, {} were expected; fetch all parts again", found, wanted));
  std::vector<std::string_view> names;
  for (const GgufTensor& tensor : whole.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return fail(ErrorCode::malformed, where, fmt::format("two parts hold tensor '{}'", excerpt(*twice)));
  return {};
}

}  // namespace

Expected<Gguf> read_gguf_files(const std::string& name, const OpenSource& open) {
  const auto parts = part_name(name);
  if (!parts || parts->count == 1 || parts->count > kMostParts) {
    auto file = read_one(name, open);
    if (file && number_in(*file, "split.count", 1) > 1)
      return fail(
          ErrorCode::invalid_argument, name,
          "is one part of several, but is not named like one (NAME-00001-of-00002.gguf); give it its name back");
    return file;
  }
  auto whole = read_part(*parts, 1, open);
  for (std::int64_t number = 2; whole && number <= parts->count; ++number) {
    auto part = read_part(*parts, number, open);
    if (!part) return part;
    append(*whole, *std::move(part));
  }
  if (!whole) return whole;
  if (auto checked = check_tensors(*whole, name); !checked) return tl::unexpected<Error>(checked.error());
  return whole;
}

Checkpoint checkpoint_of(const Gguf& gguf) {
  Checkpoint out;
  out.format = CheckpointFormat::gguf;
  out.files = gguf.files;
  out.header_bytes = gguf.header_bytes;
  out.file_bytes = gguf.file_bytes;
  out.header_only = gguf.header_only;
  for (const GgufTensor& tensor : gguf.tensors) {
    const GgmlLayout& layout = layout_of(tensor.type);
    StoredTensor& stored = out.tensors.emplace_back();
    stored.name = tensor.name;
    for (std::size_t i = tensor.rank; i > 0; --i) stored.sizes.push_back(tensor.sizes[i - 1]);
    stored.type = {layout.name, layout.block, layout.bytes_of_block};
    stored.elements = tensor.elements();
    stored.bytes = tensor.bytes;
  }
  return out;
}

}  // namespace ullage::model
