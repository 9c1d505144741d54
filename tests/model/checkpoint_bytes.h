// Headers of checkpoints, written by hand: whole ones and broken ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "model/checkpoint/checkpoint.h"

namespace ullage::model {

// Little-endian values one behind the other.
class Bytes {
 public:
  template <class T>
  Bytes& add(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
    return *this;
  }
  Bytes& text(std::string_view text) {
    add<std::uint64_t>(text.size());
    out_ += text;
    return *this;
  }
  Bytes& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  Bytes& pad(std::size_t alignment) {
    while (out_.size() % alignment != 0) out_ += '\0';
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

// "GGUF", the version and the two counts.
inline Bytes gguf_start(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
  Bytes out;
  out.raw("GGUF").add(version).add(tensors).add(entries);
  return out;
}

inline void add_number(Bytes& out, std::string_view key, std::uint32_t value) {
  out.text(key).add<std::uint32_t>(4).add(value);
}

// Two dimensions, `row` the innermost.
inline void add_tensor(Bytes& out, std::string_view name, std::uint32_t type, std::uint64_t row, std::uint64_t rows,
                       std::uint64_t offset) {
  out.text(name).add<std::uint32_t>(2).add(row).add(rows).add(type).add(offset);
}

// The length in front of a safetensors header, the header, and `data` zeros.
inline std::string safetensors_bytes(std::string_view header, std::size_t data) {
  Bytes out;
  out.text(header).raw(std::string(data, '\0'));
  return out.str();
}

// Files in memory.
inline OpenSource opener(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& name) -> Expected<std::unique_ptr<ByteSource>> {
    const auto found = files.find(name);
    if (found == files.end()) return fail(ErrorCode::not_found, name, "no such file");
    return memory_source(name, found->second);
  };
}

}  // namespace ullage::model
