#include "base/byte_source.h"

#include <fmt/core.h>

namespace ullage {
namespace {

class MemorySource : public ByteSource {
 public:
  MemorySource(std::string name, std::string content) : name_(std::move(name)), content_(std::move(content)) {}

  const std::string& name() const override { return name_; }
  std::int64_t size_bytes() const override { return static_cast<std::int64_t>(content_.size()); }

  Expected<std::string_view> read(std::int64_t offset, std::int64_t length) override {
    return check_range(*this, offset, length).map([&] {
      return std::string_view(content_).substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
    });
  }

 private:
  std::string name_;
  std::string content_;
};

}  // namespace

Expected<void> check_range(const ByteSource& source, std::int64_t offset, std::int64_t length) {
  const std::int64_t size = source.size_bytes();
  if (offset >= 0 && length >= 0 && offset <= size && length <= size - offset) return {};
  return fail(ErrorCode::malformed, source.name(),
              fmt::format("ends at byte {}; {} bytes from byte {} on were expected; fetch the whole file again", size,
                          length, offset));
}

std::unique_ptr<ByteSource> memory_source(std::string name, std::string content) {
  return std::make_unique<MemorySource>(std::move(name), std::move(content));
}

}  // namespace ullage
