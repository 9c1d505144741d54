// What PyTorch's own allocator did with requests drawn at random (tests/truth/allocator), line by line.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "memory/caching_allocator.h"
#include "memory/out_of_memory_text.h"

namespace ullage::memory {
namespace {

struct LogLine {
  char what = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::string text;
};

struct Log {
  AllocatorSettings settings;
  CardMemory card;
  std::vector<LogLine> lines;
};

Log read_log(const std::string& path) {
  Log log;
  std::ifstream file(path);
  std::string line;
  std::string conf;
  double fraction = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("conf ")) conf = line.substr(5);
    else if (line.starts_with("card ")) log.card.total_bytes = std::stoll(line.substr(5));
    else if (line.starts_with("fraction ")) fraction = std::stod(line.substr(9));
    else {
      LogLine row{line[0], 0, 0, line.size() > 2 ? line.substr(2) : ""};
      if (row.what != 'o') std::istringstream(row.text) >> row.a >> row.b;
      log.lines.push_back(row);
    }
  }
  log.settings = parse_allocator_settings(conf, "conf", {2, 6}).value();
  log.settings.memory_fraction = fraction;
  log.card.first_address = 0;
  return log;
}

std::vector<std::string> log_names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(ULLAGE_TEST_DATA "/allocator"))
    if (entry.path().extension() == ".log") out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

// Plays a log and compares.
class Player {
 public:
  explicit Player(const Log& log) : log_(log), allocator_(log.settings, log.card) {}

  void play() {
    for (std::size_t i = 0; i < log_.lines.size(); ++i) {
      const LogLine& line = log_.lines[i];
      std::size_t end = i + 1;
      while (end < log_.lines.size() &&
             std::string_view("SFMUR@o").find(log_.lines[end].what) != std::string_view::npos)
        ++end;
      place_segments(i + 1, end);
      const std::size_t events = allocator_.segment_events().size();
      const Handle handle = perform(line);
      if (line.what == '=') {
        EXPECT_EQ(allocator_.allocated_bytes(), line.a);
        EXPECT_EQ(allocator_.reserved_bytes(), line.b);
      }
      ASSERT_EQ(made_since(events, handle, line), recorded(i + 1, end))
          << "line " << i + 4 << ": " << line.what << ' ' << line.text;
      i = end - 1;
    }
  }

 private:
  void place_segments(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (log_.lines[i].what == 'S') allocator_.place_next_segment(static_cast<std::uint64_t>(log_.lines[i].a));
    }
  }

  Handle perform(const LogLine& line) {
    switch (line.what) {
      case 'a': {
        if (!busy_) complete_all();
        const bool captured = pool_ != 0 && line.b == 1;
        handles_.push_back(allocator_.allocate(line.a, static_cast<Stream>(line.b), captured ? pool_ : PoolId{0}));
        if (allocator_.awaited_blocks() == 0) awaited_.clear();  // the card was full, all streams were waited for
        return handles_.back();
      }
      case 'f': free(static_cast<std::size_t>(line.a)); break;
      case 'u':
        if (handles_[static_cast<std::size_t>(line.a)] != kNone) shared_.insert(static_cast<std::size_t>(line.a));
        break;
      case 'y': busy_ = line.a != 0; break;
      case 'e': allocator_.empty_cache(); break;
      case 'b':
        pool_ = static_cast<PoolId>(line.a);
        allocator_.begin_capture();
        break;
      case 'n':
        pool_ = 0;
        allocator_.end_capture();
        break;
      case 'd': allocator_.release_pool(static_cast<PoolId>(line.a)); break;
      default: break;
    }
    return kNone;
  }

  void free(std::size_t request) {
    Handle& handle = handles_[request];
    if (handle == kNone) return;
    if (shared_.contains(request)) {
      allocator_.free_requested(handle);
      awaited_.push_back(handle);
    } else {
      allocator_.free(handle);
    }
    handle = kNone;
  }

  // PyTorch asks whether streams are done at each request.
  void complete_all() {
    for (const Handle handle : awaited_) allocator_.free_completed(handle);
    awaited_.clear();
  }

  // Mapped and unmapped ranges go page by page, as the driver sees them.
  void add_pages(std::vector<std::string>& out, char what, const SegmentEvent& event) const {
    const std::int64_t page = page_of(event);
    for (std::int64_t at = 0; at < event.bytes; at += page) {
      out.push_back(std::string(1, what) + " " + std::to_string(static_cast<std::int64_t>(event.address) + at) + " " +
                    std::to_string(page));
    }
  }

  std::int64_t page_of(const SegmentEvent& event) const {
    for (const BlockView& block : allocator_.blocks()) {
      if (block.address <= event.address && event.address < block.address + static_cast<std::uint64_t>(block.bytes))
        return block.small ? kSmallSegmentBytes : log_.settings.large_segment_bytes;
    }
    return event.bytes % log_.settings.large_segment_bytes == 0 ? log_.settings.large_segment_bytes
                                                                : kSmallSegmentBytes;
  }

  std::vector<std::string> made_since(std::size_t events, Handle handle, const LogLine& line) const {
    std::vector<std::string> out;
    for (std::size_t i = events; i < allocator_.segment_events().size(); ++i) {
      const SegmentEvent& event = allocator_.segment_events()[i];
      if (event.kind == EventKind::segment_map) add_pages(out, 'M', event);
      else if (event.kind == EventKind::segment_unmap) add_pages(out, 'U', event);
      else {
        out.push_back((event.kind == EventKind::segment_alloc ? "S " : "F ") +
                      std::to_string(static_cast<std::int64_t>(event.address)) + " " + std::to_string(event.bytes));
      }
    }
    if (line.what != 'a') return out;
    if (handle == kNone) out.push_back("o " + out_of_memory_text(allocator_.last_failure(), log_.card, {2, 6}));
    else out.push_back("@ " + std::to_string(static_cast<std::int64_t>(allocator_.block_address(handle))));
    return out;
  }

  std::vector<std::string> recorded(std::size_t from, std::size_t to) const {
    std::vector<std::string> out;
    for (std::size_t i = from; i < to; ++i) {
      const LogLine& line = log_.lines[i];
      if (line.what != 'R') out.push_back(std::string(1, line.what) + " " + line.text);
    }
    return out;
  }

  const Log& log_;
  CachingAllocator allocator_;
  std::vector<Handle> handles_;
  PoolId pool_ = 0;
  std::set<std::size_t> shared_;  // requests whose block another stream uses
  std::vector<Handle> awaited_;
  bool busy_ = false;
};

class AllocatorLog : public ::testing::TestWithParam<std::string> {};

TEST_P(AllocatorLog, IsWhatWeDo) {
  const Log log = read_log(ULLAGE_TEST_DATA "/allocator/" + GetParam() + ".log");
  ASSERT_GT(log.lines.size(), 100u);
  Player(log).play();
}

std::string test_name(const ::testing::TestParamInfo<std::string>& log) {
  std::string name = log.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Memory, AllocatorLog, ::testing::ValuesIn(log_names()), test_name);

}  // namespace
}  // namespace ullage::memory
