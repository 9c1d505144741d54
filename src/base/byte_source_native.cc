#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/byte_source.h"

namespace ullage {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

class MappedFile : public ByteSource {
 public:
  MappedFile(std::string path, const char* bytes, std::size_t size)
      : path_(std::move(path)), bytes_(bytes), size_(size) {}
  ~MappedFile() override {
    if (size_ > 0) ::munmap(const_cast<char*>(bytes_), size_);
  }

  const std::string& name() const override { return path_; }
  std::int64_t size_bytes() const override { return static_cast<std::int64_t>(size_); }

  Expected<std::string_view> read(std::int64_t offset, std::int64_t length) override {
    return check_range(*this, offset, length).map([&] {
      return std::string_view(bytes_ + offset, static_cast<std::size_t>(length));
    });
  }

 private:
  std::string path_;
  const char* bytes_;
  std::size_t size_;
};

tl::unexpected<Error> system_failure(const std::string& path, const char* doing) {
  const int error = errno;
  if (error == ENOENT) return fail(ErrorCode::not_found, path, "no such file");
  return fail(ErrorCode::io, path, std::string("cannot ") + doing + ": " + std::strerror(error));
}

}  // namespace

Expected<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer must not be waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return system_failure(path, "open");
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return system_failure(path, "look at");
  if (S_ISDIR(facts.st_mode)) return fail(ErrorCode::invalid_argument, path, "is a directory; name a file in it");
  if (!S_ISREG(facts.st_mode)) return fail(ErrorCode::invalid_argument, path, "is not a regular file");
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return std::make_unique<MappedFile>(path, "", 0);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (bytes == MAP_FAILED) return system_failure(path, "map");
  return std::make_unique<MappedFile>(path, static_cast<const char*>(bytes), size);
}

}  // namespace ullage
