#include "model/checkpoint/gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/json.h"
#include "model/checkpoint/byte_cursor.h"

namespace ullage::model {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;            // "GGUF"
constexpr std::int64_t kLeastBytesOfEntry = 8 + 4 + 1;  // an empty key, a kind and a byte
constexpr std::int64_t kLeastBytesOfTensor = 8 + 4 + 4 + 8;
constexpr std::int64_t kLongestKey = 65'535;  // ggml-org/ggml, docs/gguf.md
constexpr std::int64_t kLongestName = 64;     // GGML_MAX_NAME
constexpr std::uint32_t kMostDimensions = 4;  // GGML_MAX_DIMS
constexpr std::int64_t kLargestAlignment = 1 << 20;
constexpr std::int64_t kMostElements = kMaxBytes / 64;  // no block has as many bytes an element

// Bytes of one value; 0 where its length stands in front of it.
std::int64_t bytes_of(GgufKind kind) {
  switch (kind) {
    case GgufKind::u8:
    case GgufKind::i8:
    case GgufKind::boolean: return 1;
    case GgufKind::u16:
    case GgufKind::i16: return 2;
    case GgufKind::u32:
    case GgufKind::i32:
    case GgufKind::f32: return 4;
    case GgufKind::u64:
    case GgufKind::i64:
    case GgufKind::f64: return 8;
    case GgufKind::text:
    case GgufKind::array: return 0;
  }
  return 0;
}

bool is_real(GgufKind kind) { return kind == GgufKind::f32 || kind == GgufKind::f64; }

class Reader {
 public:
  explicit Reader(ByteSource& source) : source_(source), cursor_(source) {}

  Expected<Gguf> read() {
    out_.file_bytes = source_.size_bytes();
    read_version();
    const std::int64_t tensors = count("tensors", kLeastBytesOfTensor);
    const std::int64_t entries = count("metadata entries", kLeastBytesOfEntry);
    for (std::int64_t i = 0; i < entries && !cursor_.error(); ++i) read_entry();
    const std::int64_t alignment = alignment_of_data();
    for (std::int64_t i = 0; i < tensors && !cursor_.error(); ++i) read_tensor(alignment);
    if (cursor_.error()) return tl::unexpected<Error>(*cursor_.error());
    out_.header_bytes = round_up(cursor_.at(), alignment);
    check_names();
    check_places();
    if (cursor_.error()) return tl::unexpected<Error>(*cursor_.error());
    return std::move(out_);
  }

 private:
  void refuse(std::string message) { cursor_.fail_here(ErrorCode::malformed, std::move(message)); }

  void read_version() {
    if (cursor_.value<std::uint32_t>() != kMagic && !cursor_.error())
      cursor_.fail_at(0, ErrorCode::malformed, "is no GGUF file: it does not begin with the letters GGUF");
    out_.version = cursor_.value<std::uint32_t>();
    if (cursor_.error() || out_.version == 2 || out_.version == 3) return;
    if ((out_.version & 0xFFFF) == 0)
      return cursor_.fail_at(4, ErrorCode::unsupported,
                             "is a big-endian GGUF file; convert it with gguf_convert_endian.py of llama.cpp");
    cursor_.fail_at(4, ErrorCode::unsupported,
                    fmt::format("GGUF version {} is not read; versions 2 and 3 are: convert the model anew with a "
                                "current llama.cpp",
                                out_.version));
  }

  // A number of entries, of which the file must be able to hold that many.
  std::int64_t count(std::string_view what, std::int64_t least_bytes) {
    const auto claimed = cursor_.value<std::uint64_t>();
    if (claimed <= static_cast<std::uint64_t>(cursor_.left() / least_bytes)) return static_cast<std::int64_t>(claimed);
    refuse(fmt::format("claims {} {}, more than its {} bytes can hold; fetch the whole file again", claimed, what,
                       source_.size_bytes()));
    return 0;
  }

  // A length in front of a text.
  std::int64_t length() {
    const auto claimed = cursor_.value<std::uint64_t>();
    return claimed > static_cast<std::uint64_t>(kMaxBytes) ? -1 : static_cast<std::int64_t>(claimed);
  }

  // A text of at most `most` bytes.
  std::string short_text(std::string_view what, std::int64_t most) {
    const std::int64_t bytes = length();
    if (bytes < 0 || bytes > most) {
      refuse(fmt::format("the name of a {} has more than {} bytes; the file is damaged", what, most));
      return {};
    }
    return bytes == 0 ? std::string() : std::string(cursor_.take(bytes));
  }

  std::optional<GgufKind> kind() {
    const auto number = cursor_.value<std::uint32_t>();
    if (number <= static_cast<std::uint32_t>(GgufKind::f64)) return static_cast<GgufKind>(number);
    refuse(fmt::format("{} is no kind of value; the file is damaged or newer than this program", number));
    return std::nullopt;
  }

  std::int64_t whole(GgufKind kind) {
    switch (kind) {
      case GgufKind::u8: return cursor_.value<std::uint8_t>();
      case GgufKind::i8: return cursor_.value<std::int8_t>();
      case GgufKind::boolean: return cursor_.value<std::uint8_t>() != 0 ? 1 : 0;
      case GgufKind::u16: return cursor_.value<std::uint16_t>();
      case GgufKind::i16: return cursor_.value<std::int16_t>();
      case GgufKind::u32: return cursor_.value<std::uint32_t>();
      case GgufKind::i32: return cursor_.value<std::int32_t>();
      case GgufKind::u64:
        return static_cast<std::int64_t>(
            std::min(cursor_.value<std::uint64_t>(), static_cast<std::uint64_t>(kMaxBytes)));
      default: return cursor_.value<std::int64_t>();
    }
  }

  void read_entry() {
    std::string key = short_text("metadata entry", kLongestKey);
    const auto kind_read = kind();
    if (!kind_read) return;
    GgufValue value;
    value.kind = *kind_read;
    if (value.kind == GgufKind::text) read_text(value);
    else if (value.kind == GgufKind::array) read_array(value);
    else if (value.kind == GgufKind::f32) value.real = cursor_.value<float>();
    else if (value.kind == GgufKind::f64) value.real = cursor_.value<double>();
    else value.whole = whole(value.kind);
    if (!cursor_.error()) out_.metadata.emplace_back(std::move(key), std::move(value));
  }

  void read_text(GgufValue& value) {
    value.count = length();
    if (value.count < 0 || value.count > cursor_.left()) return cursor_.skip(value.count);  // says what is missing
    const std::int64_t kept = std::min(value.count, kGgufTextBytes);
    if (kept > 0) value.text = cursor_.take(kept);
    cursor_.skip(value.count - kept);
  }

  void read_array(GgufValue& value) {
    const auto kind_read = kind();
    if (!kind_read) return;
    value.element = *kind_read;
    if (value.element == GgufKind::array)
      return refuse("holds an array of arrays, which llama.cpp does not read either");
    const std::int64_t each = bytes_of(value.element);
    value.count = count("elements of an array", each == 0 ? 8 : each);
    if (each == 0) return skip_texts(value.count);
    if (value.count > kGgufArrayKept || is_real(value.element)) return cursor_.skip(value.count * each);
    value.numbers.reserve(static_cast<std::size_t>(value.count));
    for (std::int64_t i = 0; i < value.count; ++i) value.numbers.push_back(whole(value.element));
  }

  void skip_texts(std::int64_t texts) {
    for (std::int64_t i = 0; i < texts && !cursor_.error(); ++i) cursor_.skip(length());
  }

  std::int64_t alignment_of_data() {
    const GgufValue* given = out_.find("general.alignment");
    if (given == nullptr) return 32;  // GGUF_DEFAULT_ALIGNMENT
    const std::int64_t bytes = given->whole;
    if (bytes > 0 && bytes <= kLargestAlignment && (bytes & (bytes - 1)) == 0) return bytes;
    refuse(fmt::format("general.alignment is {}; expected a power of two", bytes));
    return 1;
  }

  void read_tensor(std::int64_t alignment) {
    GgufTensor tensor;
    const std::int64_t begin = cursor_.at();
    tensor.name = short_text("tensor", kLongestName);
    const auto rank = cursor_.value<std::uint32_t>();
    if (rank > kMostDimensions)
      return cursor_.fail_at(begin, ErrorCode::malformed,
                             fmt::format("tensor '{}' has {} dimensions; at most {} are possible", excerpt(tensor.name),
                                         rank, kMostDimensions));
    tensor.rank = static_cast<std::uint8_t>(rank);
    for (std::uint32_t i = 0; i < rank; ++i) tensor.sizes[i] = whole(GgufKind::i64);
    const auto type = cursor_.value<std::uint32_t>();
    tensor.offset = whole(GgufKind::u64);
    if (cursor_.error()) return;
    const GgmlLayout* layout = find_ggml_type(type);
    const std::string problem = layout == nullptr ? fmt::format("is of type {}, which ggml does not have", type)
                                                  : complete(tensor, *layout, alignment);
    if (!problem.empty())
      return cursor_.fail_at(begin, ErrorCode::malformed,
                             fmt::format("tensor '{}' {}; the file is damaged or of another version of ggml",
                                         excerpt(tensor.name), problem));
    out_.tensors.push_back(std::move(tensor));
  }

  // Fills in what follows from shape and type; says what is wrong with them.
  static std::string complete(GgufTensor& tensor, const GgmlLayout& layout, std::int64_t alignment) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
      if (tensor.sizes[i] < 0) return "has a negative size";
      if (i > 0) rows = multiply_saturated(rows, tensor.sizes[i]);
    }
    if (multiply_saturated(rows, tensor.sizes[0]) > kMostElements) return "has more elements than can be counted";
    const auto row = row_bytes(layout, tensor.sizes[0]);
    if (!row)
      return fmt::format("has rows of {} elements, not whole blocks of {}'s {}", tensor.sizes[0], layout.name,
                         layout.block);
    if (tensor.offset % alignment != 0)
      return fmt::format("lies at {}, not a multiple of {} bytes", tensor.offset, alignment);
    tensor.type = layout.type;
    tensor.bytes = *row * rows;
    return {};
  }

  void check_names() {
    std::vector<std::string_view> names;
    for (const GgufTensor& tensor : out_.tensors) names.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
      refuse(fmt::format("holds tensor '{}' twice", excerpt(*twice)));
  }

  void check_places() {
    std::vector<const GgufTensor*> tensors;
    for (const GgufTensor& tensor : out_.tensors) tensors.push_back(&tensor);
    const auto before = [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; };
    if (!std::is_sorted(tensors.begin(), tensors.end(), before)) std::sort(tensors.begin(), tensors.end(), before);
    std::int64_t end = 0;
    const GgufTensor* last = nullptr;
    for (const GgufTensor* tensor : tensors) {
      if (tensor->offset < end)
        return refuse(fmt::format("tensors '{}' and '{}' overlap; the file is damaged", excerpt(last->name),
                                  excerpt(tensor->name)));
      end = add_saturated(tensor->offset, tensor->bytes);
      last = tensor;
    }
    const std::int64_t present = source_.size_bytes() - out_.header_bytes;
    if (present >= end) return;
    out_.header_only = present <= 0;
    if (!out_.header_only)
      cursor_.fail_at(source_.size_bytes(), ErrorCode::malformed,
                      fmt::format("the file ends here, {} bytes before its last tensor '{}' does; fetch it again",
                                  end - present, excerpt(last->name)));
  }

  ByteSource& source_;
  ByteCursor cursor_;
  Gguf out_;
};

}  // namespace

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found =
      std::find_if(metadata.begin(), metadata.end(), [&](const auto& entry) { return entry.first == key; });
  return found == metadata.end() ? nullptr : &found->second;
}

Expected<Gguf> read_gguf(ByteSource& source) { return Reader(source).read(); }

}  // namespace ullage::model
