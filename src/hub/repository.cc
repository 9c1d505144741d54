#include "hub/repository.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/file.h"
#include "hub/refusal.h"
#include "hub/remote_source.h"

namespace ullage::hub {
namespace {

// Files that are asked for in one go, between two calls of progress.
constexpr std::size_t kGroup = 32;
constexpr std::int64_t kMostHeaderBytes = 128 * 1024 * 1024;

bool is_safetensors(std::string_view path) { return path.ends_with(".safetensors"); }

// What a reader of headers will want of the file, as far as its first bytes tell: a safetensors file begins with the
// length of its header, 8 bytes, little-endian.
std::int64_t wanted_bytes(std::string_view path, std::string_view beginning, std::int64_t size_bytes) {
  if (!is_safetensors(path) || beginning.size() < 8) return 0;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::uint64_t{static_cast<unsigned char>(beginning[i])} << (8 * i);
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes)) return 0;  // the reader will say what is wrong
  return std::min(static_cast<std::int64_t>(length) + 8, size_bytes);
}

std::string percent_encoded(std::string_view revision) {
  std::string out;
  for (const char c : revision) out += c == '/' ? std::string("%2F") : std::string(1, c);
  return out;
}

// A file on its way to a source.
struct Opening {
  std::size_t index = 0;
  const std::string* path = nullptr;
  RemoteFile file;
};

class HubRepository : public Repository {
 public:
  HubRepository(std::string id, std::string revision, const Settings& settings, const Outside& outside)
      : id_(std::move(id)),
        revision_(std::move(revision)),
        cache_(settings, id_),
        connection_(std::make_shared<Connection>(Connection{settings, outside, nullptr})),
        commit_(cache_.commit_of(revision_).value_or("")) {}

  const std::string& id() const override { return id_; }
  const std::string& commit() const override { return commit_; }

  Expected<std::string> read(const std::string& path, std::int64_t most_bytes) override {
    if (auto checked = check_path(path); !checked) return tl::unexpected<Error>(checked.error());
    if (const auto file = kept(path)) return read_file(*file, most_bytes);
    if (is_known_missing(path)) return missing(path);
    const FileRequest request{url_of(path), std::nullopt, most_bytes};
    auto responses = connection_->fetch({&request, 1}, name_of(path));
    if (!responses) return tl::unexpected<Error>(responses.error());
    Expected<FileResponse>& response = responses->front();
    if (!response) return tl::unexpected<Error>(response.error());
    if (auto good = take_answer(*response, path); !good) return tl::unexpected<Error>(good.error());
    if (response->cut)
      return fail(ErrorCode::too_large, name_of(path), fmt::format("has more than {} bytes", most_bytes));
    keep(*response, path);
    return std::move(response->body);
  }

  Expected<std::vector<std::unique_ptr<ByteSource>>> open(std::span<const std::string> paths) override {
    std::vector<std::unique_ptr<ByteSource>> out(paths.size());
    std::vector<Opening> remote;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (auto checked = check_path(paths[i]); !checked) return tl::unexpected<Error>(checked.error());
      if (is_known_missing(paths[i])) return missing(paths[i]);
      if (const auto file = kept(paths[i])) {
        auto source = open_file(*file);
        if (!source) return tl::unexpected<Error>(source.error());
        out[i] = *std::move(source);
      } else {
        remote.push_back({i, &paths[i], {}});
      }
    }
    for (std::size_t at = 0; at < remote.size(); at += kGroup) {
      const std::span<Opening> group = std::span(remote).subspan(at, std::min(kGroup, remote.size() - at));
      if (auto opened = open_group(group, out); !opened) return tl::unexpected<Error>(opened.error());
      connection_->outside.progress(at + group.size(), remote.size());
    }
    return out;
  }

 private:
  std::string name_of(const std::string& path) const { return id_ + "/" + path; }

  std::string url_of(const std::string& path) const {
    const std::string revision = commit_.empty() ? percent_encoded(revision_) : commit_;
    return fmt::format("{}/{}/resolve/{}/{}", connection_->settings.endpoint, id_, revision, path);
  }

  Expected<void> check_path(const std::string& path) const {
    if (is_repository_path(path)) return {};
    return fail(ErrorCode::malformed, id_, "names a file that is none of its own; nothing is read of it");
  }

  std::optional<std::string> kept(const std::string& path) const {
    if (commit_.empty()) return std::nullopt;
    return cache_.find(commit_, path);
  }

  bool is_known_missing(const std::string& path) const {
    return !commit_.empty() && cache_.is_known_missing(commit_, path);
  }

  tl::unexpected<Error> missing(const std::string& path) const {
    return fail(ErrorCode::not_found, name_of(path), "the model has no such file");
  }

  // What the Hub says about the commit, and whether it refuses.
  Expected<void> take_answer(const FileResponse& response, const std::string& path) {
    const std::string_view commit = response.hub.find("X-Repo-Commit");
    if (commit_.empty() && is_commit(commit)) {
      commit_ = commit;
      cache_.keep_commit(revision_, commit_);
    }
    if (lacks_file(response) && !commit_.empty()) cache_.keep_missing(commit_, path);
    return check_answer(response, {id_, revision_, path, connection_->settings});
  }

  void keep(const FileResponse& response, const std::string& path) const {
    if (commit_.empty()) return;
    std::string_view etag = response.hub.find("X-Linked-Etag");
    if (etag.empty()) etag = response.hub.find("ETag");
    cache_.keep_file(commit_, path, etag_name(etag), response.body);
  }

  Expected<void> open_group(std::span<Opening> group, std::vector<std::unique_ptr<ByteSource>>& out) {
    std::vector<Opening*> unknown;
    for (Opening& one : group) {
      one.file.name = name_of(*one.path);
      if (!take_beginning(one)) unknown.push_back(&one);
    }
    if (auto begun = fetch_beginnings(unknown); !begun) return begun;
    if (auto finished = fetch_headers(unknown); !finished) return finished;
    for (Opening& one : group) {
      one.file.url = url_of(*one.path);
      const std::int64_t size = one.file.size_bytes;
      out[one.index] = remote_source(connection_, std::move(one.file), keeper(*one.path, size));
    }
    return {};
  }

  // Of what an earlier call has kept.
  bool take_beginning(Opening& one) const {
    if (commit_.empty()) return false;
    auto beginning = cache_.find_beginning(commit_, *one.path);
    if (!beginning) return false;
    one.file.size_bytes = beginning->size_bytes;
    one.file.beginning = std::move(beginning->bytes);
    return true;
  }

  Keep keeper(const std::string& path, std::int64_t size_bytes) const {
    if (commit_.empty()) return [](const std::string&) {};
    return [cache = cache_, commit = commit_, path, size_bytes](const std::string& beginning) {
      cache.keep_beginning(commit, path, {size_bytes, beginning});
    };
  }

  Expected<void> fetch_beginnings(std::span<Opening* const> files) {
    std::vector<FileRequest> requests;
    for (const Opening* one : files) requests.push_back({url_of(*one->path), ByteSpan{0, kFirstBytes}, kFirstBytes});
    if (requests.empty()) return {};
    auto responses = connection_->fetch(requests, files.front()->file.name);
    if (!responses) return tl::unexpected<Error>(responses.error());
    for (std::size_t i = 0; i < files.size(); ++i) {
      Expected<FileResponse>& response = (*responses)[i];
      if (!response) return tl::unexpected<Error>(response.error());
      if (auto good = take_answer(*response, *files[i]->path); !good) return good;
      if (auto begun = begin_with(*response, *files[i]); !begun) return begun;
    }
    return {};
  }

  static Expected<void> begin_with(const FileResponse& response, Opening& one) {
    const auto size = whole_size(response);
    if (!size) return fail(ErrorCode::io, one.file.name, "the server does not say how large it is; try a mirror");
    one.file.size_bytes = *size;
    if (*size == 0) return {};
    const auto part = part_of(response, 0);
    if (!part || static_cast<std::int64_t>(part->size()) < std::min(*size, kFirstBytes))
      return fail(ErrorCode::io, one.file.name, "the server did not send its beginning; try again");
    one.file.beginning = part->substr(0, static_cast<std::size_t>(std::min(*size, kFirstBytes)));
    return {};
  }

  // The rest of headers that are longer than the beginning, then all of them into the cache.
  Expected<void> fetch_headers(std::span<Opening* const> files) {
    std::vector<Opening*> open;
    std::vector<FileRequest> requests;
    for (Opening* one : files) {
      const auto have = static_cast<std::int64_t>(one->file.beginning.size());
      const std::int64_t wanted = wanted_bytes(*one->path, one->file.beginning, one->file.size_bytes);
      if (wanted <= have) continue;
      open.push_back(one);
      requests.push_back({url_of(*one->path), ByteSpan{have, wanted - have}, wanted});
    }
    if (!requests.empty()) {
      auto responses = connection_->fetch(requests, open.front()->file.name);
      if (!responses) return tl::unexpected<Error>(responses.error());
      for (std::size_t i = 0; i < open.size(); ++i) {
        Expected<FileResponse>& response = (*responses)[i];
        if (!response) return tl::unexpected<Error>(response.error());
        RemoteFile& file = open[i]->file;
        const auto part = part_of(*response, static_cast<std::int64_t>(file.beginning.size()));
        if (!part) return fail(ErrorCode::io, file.name, "the server did not send the rest of its header; try again");
        file.beginning += part->substr(0, static_cast<std::size_t>(requests[i].range->length));
      }
    }
    if (commit_.empty()) return {};
    for (const Opening* one : files)
      cache_.keep_beginning(commit_, *one->path, {one->file.size_bytes, one->file.beginning});
    return {};
  }

  std::string id_;
  std::string revision_;
  Cache cache_;
  std::shared_ptr<Connection> connection_;
  std::string commit_;  // empty: not known yet
};

}  // namespace

Expected<std::unique_ptr<Repository>> open_repository(std::string_view id, const Settings& settings,
                                                      const Outside& outside) {
  const std::size_t at = id.find('@');
  const std::string_view name = id.substr(0, at);
  const std::string_view revision = at == std::string_view::npos ? "main" : id.substr(at + 1);
  if (!is_repository_id(name) || !is_repository_path(revision))
    return fail(ErrorCode::invalid_argument, std::string(id.substr(0, 120)),
                "is no model's name on the Hub; write one such as org/name or org/name@revision");
  return std::make_unique<HubRepository>(std::string(name), std::string(revision), settings, outside);
}

}  // namespace ullage::hub
