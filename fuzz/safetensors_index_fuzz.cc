// Bytes as the index of a model in several safetensors files, all of which hold one tensor called "a".

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/checkpoint/safetensors.h"

namespace {

using namespace ullage;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_error(const Error& error) {
  require(!error.message.empty());
  require(to_string(error).size() < 3000);  // with the name of a file that the index chose
}

constexpr char kFile[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  \0\0\0\0";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(reinterpret_cast<const char*>(data), size);
  const auto source = memory_source("index", content);
  if (const auto index = model::read_safetensors_index(*source); index) {
    for (const auto& entry : index->entries) require(entry.file < index->files.size());
    for (const std::string& file : index->files) require(file.find("..") == std::string::npos && file.front() != '/');
  } else {
    check_error(index.error());
  }
  const auto open = [&](const std::string& name) -> Expected<std::unique_ptr<ByteSource>> {
    if (name == "folder/index") return memory_source(name, content);
    if (name.size() % 7 == 0) return fail(ErrorCode::not_found, name.substr(0, 100), "no such file");
    return memory_source(name.substr(0, 100), std::string(kFile, sizeof kFile - 1));
  };
  if (const auto whole = model::read_safetensors_set("folder/index", open); !whole) check_error(whole.error());
  return 0;
}
