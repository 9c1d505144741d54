// Bytes as a GGUF file, and as two parts of one that was split: read, and its metadata as a configuration. The second
// part begins where the letters GGUF stand a second time, and is missing behind an m; else both are the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/checkpoint/gguf.h"
#include "model/checkpoint/gguf_config.h"

namespace {

using namespace ullage;

void require(bool holds) {
  if (!holds) std::abort();
}

// Errors are one line of a length that a terminal can show.
void check_error(const Error& error) {
  require(!error.message.empty());
  require(to_string(error).size() < 1500);
}

void check(const model::Gguf& gguf) {
  std::int64_t bytes = 0;
  for (const model::GgufTensor& tensor : gguf.tensors) {
    require(tensor.bytes >= 0 && tensor.offset >= 0 && tensor.rank <= 4 && tensor.name.size() <= 64);
    bytes = add_saturated(bytes, tensor.bytes);
  }
  const model::Checkpoint checkpoint = model::checkpoint_of(gguf);
  require(checkpoint.tensor_bytes() == bytes);
  require(gguf.header_only || bytes <= gguf.file_bytes);
  if (const auto config = model::config_of(gguf, "x.gguf"); !config) check_error(config.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(reinterpret_cast<const char*>(data), size);
  const auto read = model::read_gguf(*memory_source("x.gguf", content));
  if (read) check(*read);
  else check_error(read.error());
  const auto open = [&](const std::string& name) -> Expected<std::unique_ptr<ByteSource>> {
    const std::size_t second = content.find("GGUF", 1);
    const bool is_second = name == "x-00002-of-00002.gguf" && second != std::string::npos;
    if (is_second && content[second - 1] == 'm') return fail(ErrorCode::not_found, name, "no such file");
    return memory_source(name, is_second ? content.substr(second) : content);
  };
  const auto whole = model::read_gguf_files("x-00001-of-00002.gguf", open);
  if (whole) check(*whole);
  else check_error(whole.error());
  return 0;
}
