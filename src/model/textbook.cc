#include "model/textbook.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "base/lines.h"
#include "data/sizes.h"

namespace ullage::model::textbook {
namespace {

constexpr double kGiga = 1e9;
constexpr std::size_t kLongestSize = 12;
constexpr double kFarthest = 10;  // of a model from the size that it stands for

double scale_of(char suffix) {
  switch (ascii_lower(suffix)) {
    case 'm': return 1e6;
    case 'b': return 1e9;
    case 't': return 1e12;
    default: return 0;
  }
}

double as_number(std::int64_t count) { return static_cast<double>(count); }

}  // namespace

std::optional<double> bare_size(std::string_view text) {
  if (text.size() < 2 || text.size() > kLongestSize) return std::nullopt;
  const double scale = scale_of(text.back());
  text.remove_suffix(1);
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  if (scale == 0 || !digits || text.front() == '.' || std::count(text.begin(), text.end(), '.') > 1)
    return std::nullopt;
  const double parameters = std::strtod(std::string(text).c_str(), nullptr) * scale;
  if (parameters < 1) return std::nullopt;
  return parameters;
}

Expected<double> checked_size(std::string_view text) {
  constexpr double kMost = 1e14;
  const std::optional<double> size = bare_size(text);
  if (!size)
    return fail(ErrorCode::invalid_argument, std::string(text.substr(0, 60)),
                "is no size; write one such as 7B or 350M");
  if (*size <= kMost) return *size;
  return fail(ErrorCode::invalid_argument, std::string(text),
              "is no size of a model: more than 100T parameters; write one such as 7B or 350M");
}

double weights(double parameters, double bits) { return parameters * bits / 8; }

double training_units(double parameters, double bits) { return (1 + 1 + 2) * weights(parameters, bits); }

double zero_stage(double parameters, std::int64_t devices, int stage) {
  const double share = parameters / as_number(devices);
  const double weight_bytes = 2 * (stage >= 3 ? share : parameters);
  const double gradient_bytes = 2 * (stage >= 2 ? share : parameters);
  const double state_bytes = 12 * (stage >= 1 ? share : parameters);
  return weight_bytes + gradient_bytes + state_bytes;
}

double layer_parameters(const Shape& shape) {
  return 12 * as_number(shape.layers) * as_number(shape.hidden) * as_number(shape.hidden);
}

double activations(const Shape& shape, std::int64_t micro_batch, std::int64_t seq_len) {
  const double scores = 5 * as_number(shape.heads) * as_number(seq_len) / as_number(shape.hidden);
  return as_number(seq_len) * as_number(micro_batch) * as_number(shape.hidden) * as_number(shape.layers) *
         (34 + scores);
}

double course_activations(const Shape& shape, std::int64_t seq_len, double bits) {
  return (as_number(shape.hidden) + as_number(shape.ffn)) * as_number(seq_len) * as_number(shape.layers) * bits / 8;
}

double kv_cache(const Shape& shape, std::int64_t seq_len) {
  return 2 * as_number(shape.layers) * as_number(shape.hidden) * as_number(seq_len) * 2;
}

std::int64_t lora_parameters(std::int64_t in, std::int64_t out, std::int64_t rank) { return rank * (in + out); }

std::int64_t cache_blocks(std::int64_t cache_bytes, std::int64_t block_size, std::int64_t bytes_per_token) {
  return cache_bytes / multiply_saturated(block_size, bytes_per_token);
}

std::int64_t request_blocks(std::int64_t input_len, std::int64_t output_len, std::int64_t block_size) {
  return (input_len + block_size - 1) / block_size + (output_len + block_size - 1) / block_size;
}

std::int64_t cards(double bytes, double gigabytes_of_card) {
  return static_cast<std::int64_t>(std::ceil(bytes / (gigabytes_of_card * kGiga)));
}

Expected<std::string_view> stand_in(double parameters) {
  std::string_view best;
  double best_ratio = HUGE_VAL;
  for_each_line(data::sizes(), [&](std::string_view line) {
    const std::string_view model = quoted_after(line, "{\"model\":\"");
    std::string_view rest = line.substr(std::min(line.size(), line.find("\"parameters\":") + 13));
    std::int64_t count = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (count <= 0) return;
    const double ratio = std::abs(std::log(as_number(count) / parameters));
    if (ratio >= best_ratio) return;
    best_ratio = ratio;
    best = model;
  });
  if (best.empty()) return fail(ErrorCode::internal, "data/sizes.jsonl", "names no model");
  if (best_ratio > std::log(kFarthest))
    return fail(ErrorCode::invalid_argument, fmt::format("{:.3g} parameters", parameters),
                fmt::format("no model of about this size is known; the nearest is {}: name a model, or ask `ullage "
                            "textbook` for the formulas alone",
                            best));
  return best;
}

}  // namespace ullage::model::textbook
