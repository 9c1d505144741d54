// Reading Hugging Face configurations field by field: the fields that decide memory, with the defaults of transformers'
// configuration classes, checked against what can be built.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

// Largest values that are taken for a dimension; what lies beyond is a slip or an attack, not a model.
inline constexpr std::int64_t kMaxWidth = 1 << 24;  // hidden, ffn, heads x head_dim, positions per row
inline constexpr std::int64_t kMaxVocab = 1 << 26;
inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxExperts = 1 << 16;
inline constexpr std::int64_t kMaxPositions = 1 << 30;

// Reads fields one after the other and keeps the first error, so that a reader is a list of fields. transformers'
// classes refuse an explicit null (configuration classes are strict data classes) except where its type allows None:
// the readers named optional_ take null for the fallback.
class Fields {
 public:
  explicit Fields(const JsonObject& config) : config_(config) {}

  std::int64_t count(std::string_view key, std::int64_t fallback, std::int64_t high);  // from 0 to `high`
  // From 1 to `high`.
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t high);
  std::int64_t optional_integer(std::string_view key, std::int64_t fallback, std::int64_t high);
  bool boolean(std::string_view key, bool fallback);
  bool optional_boolean(std::string_view key, bool fallback);
  double number(std::string_view key, double fallback);
  // From 0 to less than 1.
  double probability(std::string_view key, double fallback);
  double optional_probability(std::string_view key, double fallback);
  Activation activation(std::string_view key, std::string_view fallback);
  // Of a list with one name for each of `layers` layers, which are "sliding_attention" rather than "full_attention";
  // empty where there is no list.
  std::vector<bool> sliding_layers(std::string_view key, std::int64_t layers);

  void reject(std::string_view key, std::string message);
  void reject(Error error);
  bool has(std::string_view key) const { return config_.has(key); }
  bool is_null(std::string_view key) const { return !has(key) && config_.contains(key); }
  const JsonObject& config() const { return config_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  void refuse_null(std::string_view key, std::string_view fallback);
  template <class T>
  T take(Expected<T> value, T fallback) {
    if (value) return *std::move(value);
    reject(std::move(value).error());
    return fallback;
  }

  const JsonObject& config_;
  std::optional<Error> error_;
};

// What was read, or the first error.
template <class Config>
Expected<Config> finish(const Fields& fields, Config config) {
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  return config;
}

// Rejects a number of heads that does not divide a width.
void check_divides(Fields& fields, std::string_view key, std::int64_t heads, std::string_view width_key,
                   std::int64_t width);

// The form of the rotary embedding (rope_scaling or rope_parameters).
Rotary read_rotary(Fields& fields, std::int64_t head_dim, std::int64_t max_positions);

// The same for classes that turn a part of a head only: `partial_rotary_factor` of its dimensions, rounded down.
Rotary read_partial_rotary(Fields& fields, std::int64_t head_dim, std::int64_t max_positions, double fallback);

// The form of one layer type, "full_attention" or "sliding_attention", where rope_parameters holds one of each and
// rope_scaling means the former.
Rotary read_layer_rotary(Fields& fields, std::string_view layer_type, std::int64_t head_dim,
                         std::int64_t max_positions);

// The inverse frequencies that a rotary module registers: the current ones and the original copy. `prefix` stands in
// front of their names.
std::vector<Buffer> rotary_buffers(const Rotary& rotary, std::string_view prefix = "");

// A dimension of `count` units along one axis.
Dimension axis(Axis axis, std::int64_t count, std::int64_t unit = 1);

}  // namespace ullage::model
