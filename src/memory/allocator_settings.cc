#include "memory/allocator_settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/bytes.h"
#include "base/printable.h"

namespace ullage::memory {
namespace {

std::size_t interval_of(std::int64_t bytes) {
  const int log = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
  return static_cast<std::size_t>(std::clamp(log - 20, 0, static_cast<int>(kRoundupIntervals) - 1));
}

bool is_power_of_two(std::int64_t number) {
  return number > 0 && std::has_single_bit(static_cast<std::uint64_t>(number));
}

// The next of the divisions of the gap between two powers of two.
std::int64_t next_division(std::int64_t bytes, std::int64_t divisions) {
  if (is_power_of_two(bytes)) return bytes;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  const std::int64_t step = power >> (std::bit_width(static_cast<std::uint64_t>(divisions)) - 1);
  return step == 0 ? power << 1 : round_up(bytes, step);
}

// Words, and the signs : , [ ] as words of their own; blanks separate nothing.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) out.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      finish();
      out.emplace_back(1, c);
    } else if (c != ' ' && c != '\t') {
      word.push_back(c);
    }
  }
  finish();
  return out;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view where, TorchVersion version)
      : words_(words_of(text)), where_(where), version_(version) {}

  Expected<AllocatorSettings> read() {
    if (version_ < TorchVersion{2, 0}) out_.fewest_divisions = 1;
    while (next_ < words_.size()) {
      if (auto done = entry(); !done) return tl::unexpected<Error>(done.error());
      if (next_ < words_.size() && !take(",")) return wrong("expected a comma before '" + here() + "'");
    }
    if (auto checked = check_segment(); !checked) return tl::unexpected<Error>(checked.error());
    return out_;
  }

 private:
  using Done = Expected<void>;

  std::string here() const { return next_ < words_.size() ? printable(words_[next_].substr(0, 40)) : "the end"; }

  bool take(std::string_view word) {
    if (next_ >= words_.size() || words_[next_] != word) return false;
    ++next_;
    return true;
  }

  tl::unexpected<Error> wrong(std::string message) const {
    return fail(ErrorCode::invalid_argument, std::string(where_), std::move(message));
  }

  Expected<std::int64_t> whole_number() {
    std::int64_t value = 0;
    const std::string text = next_ < words_.size() ? words_[next_] : std::string();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
      return wrong(key_ + ": expected a whole number, not '" + here() + "'");
    ++next_;
    return value;
  }

  // A share of the card: 0 < x < most.
  Expected<double> share(bool may_be_all) {
    const std::string text = next_ < words_.size() ? words_[next_] : std::string();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool read = !text.empty() && end == text.c_str() + text.size();
    if (!read || !(value > 0) || !(value < 1 || (may_be_all && value == 1)))
      return wrong(key_ + ": expected a share between 0 and 1, not '" + here() + "'");
    ++next_;
    return value;
  }

  Expected<bool> truth() {
    if (take("True")) return true;
    if (take("False")) return false;
    return wrong(key_ + ": expected True or False, not '" + here() + "'");
  }

  Expected<std::int64_t> mebibytes() {
    const auto number = whole_number();
    if (!number) return number;
    if (*number > (kUnlimitedBytes >> 20)) return wrong(key_ + ": too many MiB");
    return *number << 20;
  }

  Done since(TorchVersion first) const {
    if (version_ >= first) return {};
    return wrong(key_ + ": PyTorch knows it from " + std::to_string(first.major) + "." + std::to_string(first.minor) +
                 " on; leave it out");
  }

  template <class Read, class T>
  Done into(T& field, Read read) {
    const auto value = read();
    if (!value) return tl::unexpected<Error>(value.error());
    field = *value;
    return {};
  }

  Done entry() {
    key_ = printable(words_[next_++].substr(0, 40));
    if (!take(":")) return wrong("expected ':' behind '" + key_ + "'");
    if (key_ == "max_split_size_mb") return into(out_.max_split_bytes, [&] { return mebibytes(); });
    if (key_ == "roundup_power2_divisions") return roundup();
    if (key_ == "garbage_collection_threshold")
      return into(out_.garbage_collection_threshold, [&] { return share(false); });
    if (key_ == "expandable_segments") {
      return since({2, 1}).and_then([&] { return into(out_.expandable_segments, [&] { return truth(); }); });
    }
    if (key_ == "max_non_split_rounding_mb") {
      return since({2, 6}).and_then(
          [&] { return into(out_.max_non_split_rounding_bytes, [&] { return mebibytes(); }); });
    }
    if (key_ == "large_segment_size_mb") {
      return since({2, 11}).and_then([&] { return into(out_.large_segment_bytes, [&] { return mebibytes(); }); });
    }
    if (key_ == "per_process_memory_fraction") {
      return since({2, 10}).and_then([&] { return into(out_.memory_fraction, [&] { return share(true); }); });
    }
    if (key_ == "backend") return backend();
    return without_effect();
  }

  Done backend() {
    if (take("native")) return {};
    if (here() != "cudaMallocAsync") return wrong("backend: expected native, not '" + here() + "'");
    return fail(ErrorCode::unsupported, std::string(where_),
                "backend:cudaMallocAsync is the driver's own allocator, whose rules are not known; use native");
  }

  // What concerns locks and memory of the host.
  Done without_effect() {
    static constexpr std::string_view kKeys[] = {"release_lock_on_cudamalloc",        "release_lock_on_hipmalloc",
                                                 "pinned_use_cuda_host_register",     "pinned_use_hip_host_register",
                                                 "pinned_num_register_threads",       "pinned_use_background_threads",
                                                 "graph_capture_record_stream_reuse", "pinned_reserve_segment_size_mb"};
    if (std::find(std::begin(kKeys), std::end(kKeys), key_) == std::end(kKeys))
      return wrong("'" + key_ + "' is no setting of PyTorch's allocator");
    if (next_ >= words_.size()) return wrong(key_ + ": expected a value");
    ++next_;
    return {};
  }

  Expected<std::int64_t> divisions() {
    const auto number = whole_number();
    if (number && *number != 0 && !is_power_of_two(*number)) return wrong(key_ + ": divisions are powers of two");
    return number;
  }

  Done roundup() {
    if (!take("[")) {
      const auto number = divisions();
      if (!number) return tl::unexpected<Error>(number.error());
      out_.roundup_divisions.fill(*number);
      return {};
    }
    std::size_t last = 0;
    bool first = true;
    while (!take("]")) {
      if (auto done = interval(last, first); !done) return done;
      if (next_ < words_.size() && words_[next_] == "]") continue;
      if (!take(",")) return wrong(key_ + ": expected ']' before '" + here() + "'");
    }
    return {};
  }

  // "256:4", or ">:1" for all above the last.
  Done interval(std::size_t& last, bool& first) {
    auto& to = out_.roundup_divisions;
    const bool above = take(">");
    std::int64_t mebi = 1;
    if (!above) {
      const auto number = whole_number();
      if (!number) return tl::unexpected<Error>(number.error());
      if (!is_power_of_two(*number)) return wrong(key_ + ": intervals are powers of two");
      mebi = *number;
    }
    if (!take(":")) return wrong(key_ + ": expected ':' before '" + here() + "'");
    const auto number = divisions();
    if (!number) return tl::unexpected<Error>(number.error());
    if (above) {
      std::fill(to.begin() + static_cast<std::ptrdiff_t>(last), to.end(), *number);
      return {};
    }
    last = interval_of(multiply_saturated(mebi, kMiB));
    if (first) std::fill(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(last), *number);
    first = false;
    to[last] = *number;
    return {};
  }

  // Both limits must lie above a segment, whatever the order of the keys.
  Done check_segment() const {
    if (out_.large_segment_bytes <= kSmallBytes) return wrong("large_segment_size_mb: must be greater than 1");
    const std::string than = " must be greater than " + std::to_string(out_.large_segment_bytes >> 20);
    if (out_.max_split_bytes <= out_.large_segment_bytes) return wrong("max_split_size_mb:" + than);
    const bool of_its_own = out_.max_non_split_rounding_bytes != kLargeSegmentBytes;
    if (of_its_own && out_.max_non_split_rounding_bytes <= out_.large_segment_bytes)
      return wrong("max_non_split_rounding_mb:" + than);
    return {};
  }

  std::vector<std::string> words_;
  std::string_view where_;
  TorchVersion version_;
  std::size_t next_ = 0;
  std::string key_;
  AllocatorSettings out_;
};

std::string share_text(double share) {
  char buffer[32];
  const int length = std::snprintf(buffer, sizeof buffer, "%g", share);
  return {buffer, static_cast<std::size_t>(length)};
}

std::string roundup_text(const std::array<std::int64_t, kRoundupIntervals>& divisions) {
  const bool all_alike =
      std::all_of(divisions.begin(), divisions.end(), [&](std::int64_t d) { return d == divisions[0]; });
  if (all_alike) return std::to_string(divisions[0]);
  std::string out = "[";
  for (std::size_t i = 0; i < divisions.size(); ++i) {
    if (i > 0) out += ",";
    out += std::to_string(std::int64_t{1} << i) + ":" + std::to_string(divisions[i]);
  }
  return out + "]";
}

}  // namespace

std::int64_t rounded_bytes(const AllocatorSettings& settings, std::int64_t requested_bytes) {
  if (requested_bytes < kMinBlockBytes) return kMinBlockBytes;
  const std::int64_t divisions = settings.roundup_divisions[interval_of(requested_bytes)];
  if (divisions >= settings.fewest_divisions && divisions > 0 &&
      requested_bytes > multiply_saturated(kMinBlockBytes, divisions)) {
    return next_division(requested_bytes, divisions);
  }
  return round_up(requested_bytes, kMinBlockBytes);
}

std::int64_t segment_bytes(const AllocatorSettings& settings, std::int64_t rounded) {
  if (rounded <= kSmallBytes) return kSmallSegmentBytes;
  if (rounded < kLargeRequestBytes) return settings.large_segment_bytes;
  return round_up(rounded, kSegmentGranularity);
}

Expected<AllocatorSettings> parse_allocator_settings(std::string_view text, std::string_view where,
                                                     TorchVersion version) {
  return Reader(text, where, version).read();
}

std::string to_string(const AllocatorSettings& settings) {
  std::string out;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!out.empty()) out += ",";
    out += key;
    out += ":" + value;
  };
  const AllocatorSettings defaults;
  if (settings.expandable_segments) add("expandable_segments", "True");
  if (settings.max_split_bytes != defaults.max_split_bytes)
    add("max_split_size_mb", std::to_string(settings.max_split_bytes >> 20));
  if (settings.max_non_split_rounding_bytes != defaults.max_non_split_rounding_bytes)
    add("max_non_split_rounding_mb", std::to_string(settings.max_non_split_rounding_bytes >> 20));
  if (settings.large_segment_bytes != defaults.large_segment_bytes)
    add("large_segment_size_mb", std::to_string(settings.large_segment_bytes >> 20));
  if (settings.garbage_collection_threshold > 0)
    add("garbage_collection_threshold", share_text(settings.garbage_collection_threshold));
  if (settings.memory_fraction > 0) add("per_process_memory_fraction", share_text(settings.memory_fraction));
  if (settings.roundup_divisions != defaults.roundup_divisions)
    add("roundup_power2_divisions", roundup_text(settings.roundup_divisions));
  return out;
}

}  // namespace ullage::memory
