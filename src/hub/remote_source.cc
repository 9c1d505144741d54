#include "hub/remote_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>

namespace ullage::hub {
namespace {

constexpr std::int64_t kMostAhead = 4 * 1024 * 1024;
// From a server without ranges everything before has to be fetched too.
constexpr std::int64_t kMostWhole = 256 * 1024 * 1024;

struct Piece {
  std::int64_t offset = 0;
  std::string bytes;

  std::int64_t end() const { return offset + static_cast<std::int64_t>(bytes.size()); }
  bool holds(std::int64_t at) const { return at >= offset && at < end(); }
};

class RemoteSource : public ByteSource {
 public:
  RemoteSource(std::shared_ptr<Connection> connection, RemoteFile file, Keep keep)
      : connection_(std::move(connection)), file_(std::move(file)), keep_(std::move(keep)) {
    kept_bytes_ = static_cast<std::int64_t>(file_.beginning.size());
    pieces_.push_back({0, std::move(file_.beginning)});
  }

  ~RemoteSource() override {
    if (pieces_.size() < 2) return;
    const std::string beginning = joined_beginning();
    if (static_cast<std::int64_t>(beginning.size()) > kept_bytes_) keep_(beginning);
  }

  const std::string& name() const override { return file_.name; }
  std::int64_t size_bytes() const override { return file_.size_bytes; }

  Expected<std::string_view> read(std::int64_t offset, std::int64_t length) override {
    if (auto checked = check_range(*this, offset, length); !checked) return tl::unexpected<Error>(checked.error());
    if (length == 0) return std::string_view{};
    if (const auto here = view(offset, length)) return *here;
    Piece piece{offset, held_from(offset)};
    const std::int64_t missing = offset + length - piece.end();
    const std::int64_t wanted = std::min(std::max(missing, ahead_bytes()), file_.size_bytes - piece.end());
    const auto more = fetch(piece.end(), wanted);
    if (!more) return tl::unexpected<Error>(more.error());
    if (static_cast<std::int64_t>(more->size()) < missing) return broken_off(piece.end());
    piece.bytes += *more;
    pieces_.push_back(std::move(piece));
    return view(offset, length).value_or(std::string_view{});
  }

 private:
  std::optional<std::string_view> view(std::int64_t offset, std::int64_t length) const {
    for (const Piece& piece : pieces_) {
      if (piece.holds(offset) && offset + length <= piece.end())
        return std::string_view(piece.bytes)
            .substr(static_cast<std::size_t>(offset - piece.offset), static_cast<std::size_t>(length));
    }
    return std::nullopt;
  }

  // What one piece has from there on; it need not be fetched again.
  std::string held_from(std::int64_t offset) const {
    for (const Piece& piece : pieces_) {
      if (piece.holds(offset)) return piece.bytes.substr(static_cast<std::size_t>(offset - piece.offset));
    }
    return {};
  }

  std::int64_t ahead_bytes() const { return std::clamp(fetched_bytes_, kFirstBytes, kMostAhead); }

  Expected<std::string> fetch(std::int64_t offset, std::int64_t length) {
    if (!ranges_ && offset + length > kMostWhole)
      return fail(ErrorCode::too_large, file_.name, "the server sends whole files only, and this one is too large");
    const std::int64_t most = ranges_ ? std::min(offset + length, kMostWhole) : offset + length;
    const FileRequest request{file_.url, ByteSpan{offset, length}, std::max(most, length)};
    auto responses = connection_->fetch({&request, 1}, file_.name);
    if (!responses) return tl::unexpected<Error>(responses.error());
    Expected<FileResponse>& response = responses->front();
    if (!response) return tl::unexpected<Error>(response.error());
    ranges_ = response->status == 206;
    fetched_bytes_ += length;
    const auto part = part_of(*response, offset);
    if (!part) return broken_off(offset);
    return std::string(part->substr(0, static_cast<std::size_t>(length)));
  }

  tl::unexpected<Error> broken_off(std::int64_t offset) const {
    return fail(ErrorCode::io, file_.name,
                fmt::format("the server did not send what was asked for, from byte {} on; try again", offset));
  }

  std::string joined_beginning() const {
    std::string out;
    bool grown = true;
    while (grown) {
      const auto size = static_cast<std::int64_t>(out.size());
      grown = false;
      for (const Piece& piece : pieces_) {
        if (piece.offset > size || piece.end() <= size) continue;
        out += piece.bytes.substr(static_cast<std::size_t>(size - piece.offset));
        grown = true;
        break;
      }
    }
    return out;
  }

  std::shared_ptr<Connection> connection_;
  RemoteFile file_;
  Keep keep_;
  std::int64_t kept_bytes_ = 0;
  std::int64_t fetched_bytes_ = 0;
  std::deque<Piece> pieces_;  // views into them are out: they stay where they are
  bool ranges_ = true;        // as far as is known
};

}  // namespace

Expected<std::vector<Expected<FileResponse>>> Connection::fetch(std::span<const FileRequest> requests,
                                                                const std::string& where) {
  if (settings.offline)
    return fail(ErrorCode::io, where, "is not on this machine, and HF_HUB_OFFLINE forbids to fetch it; unset that");
  if (!transport) {
    auto opened = outside.connect(settings);
    if (!opened) return tl::unexpected<Error>(opened.error());
    transport = *std::move(opened);
  }
  return fetch_files(*transport, settings.token, requests, outside.wait);
}

std::optional<std::string_view> part_of(const FileResponse& response, std::int64_t offset) {
  const std::string_view body = response.body;
  if (response.status == 206) {
    const auto range = parse_content_range(response.last.find("Content-Range"));
    if (!range || range->first != offset || body.empty()) return std::nullopt;
    return body.substr(0, static_cast<std::size_t>(range->last - range->first) + 1);
  }
  if (response.status != 200 || static_cast<std::int64_t>(body.size()) <= offset) return std::nullopt;
  return body.substr(static_cast<std::size_t>(offset));
}

std::optional<std::int64_t> whole_size(const FileResponse& response) {
  if (response.status == 206) {
    const auto range = parse_content_range(response.last.find("Content-Range"));
    return range ? std::optional(range->whole) : std::nullopt;
  }
  if (response.status == 416) return 0;  // a range that begins at 0 is wrong in an empty file only
  if (const auto linked = parse_count(response.hub.find("X-Linked-Size"))) return linked;
  if (const auto length = parse_count(response.last.find("Content-Length"))) return length;
  return response.cut ? std::nullopt : std::optional(static_cast<std::int64_t>(response.body.size()));
}

std::unique_ptr<ByteSource> remote_source(std::shared_ptr<Connection> connection, RemoteFile file, Keep keep) {
  return std::make_unique<RemoteSource>(std::move(connection), std::move(file), std::move(keep));
}

}  // namespace ullage::hub
