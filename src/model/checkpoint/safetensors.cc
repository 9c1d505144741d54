#include "model/checkpoint/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/json.h"
#include "base/json_scanner.h"

namespace ullage::model {
namespace {

// Dtype and its bitsize() in safetensors/src/tensor.rs.
constexpr std::array kTypes{
    StoredType{"BF16", 1, 2},        StoredType{"F32", 1, 4},         StoredType{"F16", 1, 2},
    StoredType{"F8_E4M3", 1, 1},     StoredType{"F8_E5M2", 1, 1},     StoredType{"F8_E8M0", 1, 1},
    StoredType{"F8_E4M3FNUZ", 1, 1}, StoredType{"F8_E5M2FNUZ", 1, 1}, StoredType{"F4", 2, 1},
    StoredType{"F6_E2M3", 4, 3},     StoredType{"F6_E3M2", 4, 3},     StoredType{"U8", 1, 1},
    StoredType{"I8", 1, 1},          StoredType{"BOOL", 1, 1},        StoredType{"I16", 1, 2},
    StoredType{"U16", 1, 2},         StoredType{"I32", 1, 4},         StoredType{"U32", 1, 4},
    StoredType{"I64", 1, 8},         StoredType{"U64", 1, 8},         StoredType{"F64", 1, 8},
    StoredType{"C64", 1, 8},
};

const StoredType* find_type(std::string_view name) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const StoredType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : &*found;
}

struct Place {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t tensor = 0;
};

class Reader {
 public:
  Reader(ByteSource& source, std::string_view header) : source_(source), scanner_(header), header_(header) {}

  Expected<Checkpoint> read() {
    out_.files = 1;
    out_.header_bytes = kLengthBytes + static_cast<std::int64_t>(header_.size());
    out_.file_bytes = source_.size_bytes();
    const std::size_t expected = header_.size() / 96;  // what one tensor takes, about
    out_.tensors.reserve(expected);
    places_.reserve(expected);
    scanner_.enter_object();
    while (!error_ && scanner_.next_member()) {
      if (scanner_.key() == "__metadata__") scanner_.skip();
      else read_tensor();
    }
    scanner_.finish();
    if (scanner_.failed() && !error_)
      refuse("is not the JSON of a safetensors header here; fetch the whole file again");
    if (!error_) check_places();
    if (error_) return tl::unexpected<Error>(*std::move(error_));
    return std::move(out_);
  }

  static constexpr std::int64_t kLengthBytes = 8;

 private:
  void refuse(std::string message) {
    if (error_) return;
    const std::int64_t at = kLengthBytes + static_cast<std::int64_t>(scanner_.at());
    error_ = Error{ErrorCode::malformed, std::move(message), fmt::format("{}: byte {}", source_.name(), at)};
  }

  void refuse_tensor(const StoredTensor& tensor, std::string_view problem) {
    refuse(
        fmt::format("tensor '{}' {}; the file is damaged or newer than this program", excerpt(tensor.name), problem));
  }

  void read_tensor() {
    StoredTensor tensor;
    tensor.name = scanner_.key();
    Place place;
    if (read_usual(tensor, place)) return keep(std::move(tensor), place);
    read_members(tensor, place);
  }

  // The form in which the format's own library writes every tensor; false: it is another, and nothing was read.
  bool read_usual(StoredTensor& tensor, Place& place) {
    const std::size_t begin = scanner_.at();
    const StoredType* type = nullptr;
    if (scanner_.skip_exactly(R"({"dtype":)") && scanner_.text_is_next()) type = find_type(scanner_.text());
    bool usual = type != nullptr && scanner_.skip_exactly(R"(,"shape":[)");
    for (bool more = usual && !scanner_.skip_exactly("]"); more && usual; more = scanner_.skip_exactly(",")) {
      usual = scanner_.digit_is_next() && tensor.sizes.size() < kMaxSafetensorsRank;
      if (usual) tensor.sizes.push_back(scanner_.whole());
    }
    const bool closed = tensor.sizes.size() == 0 || scanner_.skip_exactly("]");
    usual = usual && closed && scanner_.skip_exactly(R"(,"data_offsets":[)") && scanner_.digit_is_next();
    if (usual) place.begin = scanner_.whole();
    usual = usual && scanner_.skip_exactly(",") && scanner_.digit_is_next();
    if (usual) place.end = scanner_.whole();
    usual = usual && scanner_.skip_exactly("]}");
    if (usual) {
      tensor.type = *type;
    } else if (!scanner_.failed()) {
      scanner_.go_back(begin);
      tensor.sizes.clear();
    }
    return usual;
  }

  void read_members(StoredTensor& tensor, Place& place) {
    int offsets = 0;
    std::string_view type;
    scanner_.enter_object();
    while (scanner_.next_member()) {
      const std::string_view key = scanner_.key();
      if (key == "dtype") {
        type = scanner_.text();
        const StoredType* found = find_type(type);
        if (found != nullptr) tensor.type = *found;
        else if (!scanner_.failed())
          return refuse_tensor(tensor, fmt::format("is of type '{}', which is not known", excerpt(type)));
      } else if (key == "shape") {
        read_shape(tensor);
      } else if (key == "data_offsets") {
        offsets = read_offsets(place);
      } else {
        scanner_.skip();
      }
    }
    if (scanner_.failed()) return;
    if (tensor.type.name.empty() || offsets != 2) return refuse_tensor(tensor, "lacks its dtype or its data_offsets");
    keep(std::move(tensor), place);
  }

  void keep(StoredTensor&& tensor, Place place) {
    place.tensor = out_.tensors.size();
    if (const std::string problem = complete(tensor, place); !problem.empty()) return refuse_tensor(tensor, problem);
    places_.push_back(place);
    out_.tensors.push_back(std::move(tensor));
  }

  void read_shape(StoredTensor& tensor) {
    tensor.sizes.clear();
    scanner_.enter_array();
    while (scanner_.next_element()) {
      if (tensor.sizes.size() == kMaxSafetensorsRank)
        return refuse_tensor(tensor, fmt::format("has more than {} dimensions", kMaxSafetensorsRank));
      tensor.sizes.push_back(scanner_.whole());
    }
  }

  // How many there were.
  int read_offsets(Place& place) {
    int count = 0;
    scanner_.enter_array();
    for (; scanner_.next_element(); ++count) (count == 0 ? place.begin : place.end) = scanner_.whole();
    return count;
  }

  // Fills in what follows from shape and type; says what is wrong with them.
  static std::string complete(StoredTensor& tensor, const Place& place) {
    tensor.elements = 1;
    for (const std::int64_t size : tensor.sizes) tensor.elements = multiply_saturated(tensor.elements, size);
    const StoredType& type = tensor.type;
    if (tensor.elements > kMaxBytes / 8) return "has more elements than can be counted";
    if (tensor.elements % type.block != 0) return "does not end at a whole byte";
    tensor.bytes = tensor.elements / type.block * type.bytes_of_block;
    if (place.end < place.begin || place.end - place.begin != tensor.bytes)
      return fmt::format("takes bytes {} to {}, but its shape and type {}", place.begin, place.end, tensor.bytes);
    return {};
  }

  void check_places() {
    const auto before = [](const Place& a, const Place& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    };
    if (!std::is_sorted(places_.begin(), places_.end(), before)) std::sort(places_.begin(), places_.end(), before);
    std::int64_t end = 0;
    for (const Place& place : places_) {
      if (place.begin != end)
        return refuse_tensor(out_.tensors[place.tensor],
                             place.begin < end ? "overlaps another" : "leaves a gap in front");
      end = place.end;
    }
    const std::int64_t present = source_.size_bytes() - out_.header_bytes;
    if (present == end) return;
    out_.header_only = present == 0;
    if (out_.header_only) return;
    error_ =
        Error{ErrorCode::malformed,
              fmt::format("has {} bytes of tensors, its header promises {}; fetch the whole file again", present, end),
              source_.name()};
  }

  ByteSource& source_;
  JsonScanner scanner_;
  std::string_view header_;
  Checkpoint out_;
  std::vector<Place> places_;
  std::optional<Error> error_;
};

}  // namespace

std::span<const StoredType> safetensors_types() { return kTypes; }

Expected<Checkpoint> read_safetensors(ByteSource& source) {
  const auto start = source.read(0, Reader::kLengthBytes);
  if (!start) return tl::unexpected<Error>(start.error());
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, start->data(), sizeof bytes);
  if (bytes > static_cast<std::uint64_t>(kMaxSafetensorsHeader))
    return fail(ErrorCode::malformed, source.name(),
                fmt::format("is no safetensors file: it would begin with a header of {} bytes; at most {} are possible",
                            bytes, kMaxSafetensorsHeader));
  const auto header = source.read(Reader::kLengthBytes, static_cast<std::int64_t>(bytes));
  if (!header) return tl::unexpected<Error>(header.error());
  return Reader(source, *header).read();
}

}  // namespace ullage::model
