// Files of the Hub on this machine.
//
// Whole files lie as the Hub's own tools lay them: models--ORG--NAME/refs/REVISION holds a commit,
// snapshots/COMMIT/PATH leads to blobs/ETAG, .no_exist/COMMIT/PATH marks what the commit does not have. What those
// tools have fetched is found here, and the other way round. Beginnings of large files are no files of theirs and lie
// in a folder of ours. Source: huggingface_hub 1.23, file_download.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hub/settings.h"

namespace ullage::hub {

// "org/name", each of letters, digits, '-', '_' and '.'; what could lead out of a folder is none.
bool is_repository_id(std::string_view id);
// A relative path of such names.
bool is_repository_path(std::string_view path);

class Cache {
 public:
  Cache(const Settings& settings, std::string_view id);

  // The commit that a revision ("main") meant when it was last asked for; a commit means itself.
  std::optional<std::string> commit_of(std::string_view revision) const;
  // The file's path on this machine; nothing where it is not kept whole.
  std::optional<std::string> find(std::string_view commit, std::string_view path) const;
  bool is_known_missing(std::string_view commit, std::string_view path) const;

  // All of these keep what they can: a full or read-only disk makes the next call slower, nothing else.
  void keep_commit(std::string_view revision, std::string_view commit) const;
  void keep_file(std::string_view commit, std::string_view path, std::string_view etag, std::string_view content) const;
  void keep_missing(std::string_view commit, std::string_view path) const;

  struct Beginning {
    std::int64_t size_bytes = 0;  // of the whole file
    std::string bytes;
  };
  std::optional<Beginning> find_beginning(std::string_view commit, std::string_view path) const;
  void keep_beginning(std::string_view commit, std::string_view path, const Beginning& beginning) const;

 private:
  std::string folder_;      // empty: nothing is kept
  std::string beginnings_;  // empty: they are not
};

}  // namespace ullage::hub
