// One model's repository on the Hub: its small files whole, its large ones as sources of bytes.
//
// What is on this machine already is not asked for again: a revision means the commit that it meant when it was first
// asked for. Requests are made for what is missing, many at once, and only then is libcurl loaded.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/expected.h"
#include "hub/cache.h"
#include "hub/fetch.h"
#include "hub/settings.h"

namespace ullage::hub {

// What a repository does to the outside.
struct Outside {
  std::function<Expected<std::unique_ptr<Transport>>(const Settings&)> connect = open_transport;
  Wait wait = wait_really;
  // So many of so many files are here; called between requests.
  std::function<void(std::size_t done, std::size_t all)> progress = [](std::size_t, std::size_t) {};
};

// So much of a file is fetched when it is opened.
inline constexpr std::int64_t kFirstBytes = 64 * 1024;

class Repository {
 public:
  virtual ~Repository() = default;

  virtual const std::string& id() const = 0;
  // That the revision means; empty before the Hub has said it.
  virtual const std::string& commit() const = 0;

  // The whole of a file. ErrorCode::not_found: the model or the file does not exist; invalid_argument: it is not to be
  // had without a token or an agreement; too_large: it has more than `most_bytes`; io: nobody answered, or offline.
  virtual Expected<std::string> read(const std::string& path, std::int64_t most_bytes) = 0;

  // The files at `paths`, opened together: of each the first kFirstBytes are there, and of a safetensors file its whole
  // header. Reading on fetches more. Errors as of read(), and the sources' own io. The sources may outlive this.
  virtual Expected<std::vector<std::unique_ptr<ByteSource>>> open(std::span<const std::string> paths) = 0;

 protected:
  Repository() = default;
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;
};

// "org/name" or "org/name@revision". Asks nobody yet; fails on what can be no repository's name.
Expected<std::unique_ptr<Repository>> open_repository(std::string_view id, const Settings& settings,
                                                      const Outside& outside = {});

}  // namespace ullage::hub
