#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/bytes.h"
#include "base/json.h"
#include "base/json_scanner.h"
#include "model/checkpoint/safetensors.h"

namespace ullage::model {
namespace {

// What one entry takes, about: for reserving.
constexpr std::size_t kBytesOfEntry = 100;

// A name below the folder of the index, which must not lead out of it.
bool is_plain(std::string_view file) {
  return !file.empty() && file.front() != '/' && file.find("..") == std::string_view::npos &&
         file.find('\\') == std::string_view::npos;
}

class Reader {
 public:
  Reader(const ByteSource& source, std::string_view text) : source_(source), scanner_(text) {
    out_.entries.reserve(text.size() / kBytesOfEntry);
  }

  Expected<SafetensorsIndex> read() {
    bool mapped = false;
    scanner_.enter_object();
    while (!error_ && scanner_.next_member()) {
      if (scanner_.key() == "weight_map") {
        mapped = true;
        read_map();
      } else if (scanner_.key() == "metadata" && scanner_.object_is_next()) {
        read_metadata();
      } else {
        scanner_.skip();
      }
    }
    scanner_.finish();
    if (!error_ && scanner_.failed()) refuse("is not the JSON of an index here; fetch the whole file again");
    if (!error_ && (!mapped || out_.files.empty())) refuse("names no files in weight_map; this is no index of a model");
    if (error_) return tl::unexpected<Error>(*std::move(error_));
    return std::move(out_);
  }

 private:
  void refuse(std::string message) {
    error_ = Error{ErrorCode::malformed, std::move(message), fmt::format("{}: byte {}", source_.name(), scanner_.at())};
  }

  void read_metadata() {
    scanner_.enter_object();
    while (scanner_.next_member()) {
      const bool counted = scanner_.key() == "total_size" && !scanner_.text_is_next();
      if (counted) read_total();
      else scanner_.skip();
    }
  }

  // Some writers give a floating-point number, which counts as none.
  void read_total() {
    JsonScanner ahead = scanner_;
    const std::int64_t bytes = ahead.whole();
    if (!ahead.failed()) out_.total_bytes = bytes;
    scanner_.skip();
  }

  void read_map() {
    scanner_.enter_object();
    while (!error_ && scanner_.next_member()) {
      std::string_view tensor = scanner_.key();
      if (scanner_.text_was_escaped()) tensor = out_.unescaped.emplace_back(tensor);
      const std::string_view file = scanner_.text();
      if (scanner_.failed()) return;
      out_.entries.push_back({tensor, number_of(file)});
    }
  }

  // Neighbours are nearly always in one file.
  std::uint32_t number_of(std::string_view file) {
    if (!out_.files.empty() && out_.files[last_] == file) return last_;
    const auto [found, is_new] = numbers_.try_emplace(std::string(file), static_cast<std::uint32_t>(out_.files.size()));
    last_ = found->second;
    if (is_new) {
      out_.files.emplace_back(file);
      if (!is_plain(file))
        refuse(fmt::format("names a file '{}' outside of its folder; this index is not to be trusted", excerpt(file)));
    }
    return last_;
  }

  const ByteSource& source_;
  JsonScanner scanner_;
  SafetensorsIndex out_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint32_t last_ = 0;
  std::optional<Error> error_;
};

std::string beside(const std::string& path, const std::string& file) {
  return path.substr(0, path.rfind('/') + 1) + file;
}

void append(Checkpoint& whole, Checkpoint&& part) {
  std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(whole.tensors));
  whole.header_bytes += part.header_bytes;
  whole.file_bytes = add_saturated(whole.file_bytes, part.file_bytes);
  whole.header_only = whole.header_only || part.header_only;
  ++whole.files;
}

// Every tensor of the index is in the file that it names there.
Expected<void> check_entries(const SafetensorsIndex& index, const std::vector<std::size_t>& begins,
                             const Checkpoint& whole, const std::string& where) {
  std::vector<std::unordered_set<std::string_view>> names(index.files.size());
  for (std::size_t file = 0; file < index.files.size(); ++file) {
    names[file].reserve(begins[file + 1] - begins[file]);
    for (std::size_t i = begins[file]; i < begins[file + 1]; ++i) names[file].insert(whole.tensors[i].name);
  }
  for (const SafetensorsIndex::Entry& entry : index.entries) {
    if (names[entry.file].count(entry.tensor) == 0)
      return fail(ErrorCode::malformed, where,
                  fmt::format("promises tensor '{}' in {}, which does not hold it; fetch both again",
                              excerpt(entry.tensor), excerpt(index.files[entry.file])));
  }
  return {};
}

}  // namespace

Expected<SafetensorsIndex> read_safetensors_index(ByteSource& source) {
  if (source.size_bytes() > kMaxSafetensorsIndex)
    return fail(ErrorCode::too_large, source.name(),
                fmt::format("has {} bytes; an index has at most {}", source.size_bytes(), kMaxSafetensorsIndex));
  const auto text = source.read(0, source.size_bytes());
  if (!text) return tl::unexpected<Error>(text.error());
  return Reader(source, *text).read();
}

Expected<Checkpoint> read_safetensors_set(const std::string& path, const OpenSource& open) {
  const auto source = open(path);
  if (!source) return tl::unexpected<Error>(source.error());
  const auto index = read_safetensors_index(**source);
  if (!index) return tl::unexpected<Error>(index.error());
  Checkpoint whole;
  std::vector<std::size_t> begins{0};
  for (const std::string& file : index->files) {
    const std::string name = beside(path, file);
    const auto part_source = open(name);
    if (!part_source && part_source.error().code == ErrorCode::not_found)
      return fail(ErrorCode::not_found, name,
                  fmt::format("is missing, one of {} files of this model; fetch it into the folder of the index",
                              index->files.size()));
    if (!part_source) return tl::unexpected<Error>(part_source.error());
    auto part = read_safetensors(**part_source);
    if (!part) return part;
    append(whole, *std::move(part));
    begins.push_back(whole.tensors.size());
  }
  if (auto checked = check_entries(*index, begins, whole, path); !checked)
    return tl::unexpected<Error>(checked.error());
  return whole;
}

}  // namespace ullage::model
