#include "model/config_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/nearest.h"

namespace ullage::model {

void Fields::refuse_null(std::string_view key, std::string_view fallback) {
  if (is_null(key)) reject(key, fmt::format("is null; give a value, or leave the field out for {}", fallback));
}

std::int64_t Fields::integer(std::string_view key, std::int64_t fallback, std::int64_t high) {
  refuse_null(key, fmt::format("{}", fallback));
  return optional_integer(key, fallback, high);
}

std::int64_t Fields::optional_integer(std::string_view key, std::int64_t fallback, std::int64_t high) {
  return take(config_.integer(key, fallback, 1, high), fallback);
}

bool Fields::boolean(std::string_view key, bool fallback) {
  refuse_null(key, fallback ? "true" : "false");
  return take(config_.boolean(key, fallback), fallback);
}

double Fields::optional_probability(std::string_view key, double fallback) {
  const double value = take(config_.number(key, fallback), fallback);
  if (!(value >= 0 && value < 1)) {
    reject(key, fmt::format("{} is no dropout probability; expected 0 or more and less than 1", value));
  }
  return value;
}

double Fields::probability(std::string_view key, double fallback) {
  refuse_null(key, fmt::format("{}", fallback));
  return optional_probability(key, fallback);
}

void Fields::reject(std::string_view key, std::string message) {
  reject(Error{ErrorCode::malformed, std::move(message), config_.where(key)});
}

void Fields::reject(Error error) {
  if (!error_) error_ = std::move(error);
}

namespace {

struct ActivationName {
  std::string_view name;
  Activation activation;
};

constexpr ActivationName kActivations[] = {
    {"silu", Activation::silu},         {"swish", Activation::silu},
    {"gelu", Activation::gelu},         {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_new", Activation::gelu_new}, {"relu", Activation::relu},
    {"tanh", Activation::tanh},         {"sigmoid", Activation::sigmoid},
    {"linear", Activation::linear},
};

std::string suggestion(std::string_view wanted, std::span<const std::string_view> known) {
  const std::vector<std::string> near = nearest_names(wanted, known);
  if (!near.empty()) return did_you_mean(near);
  std::string list = "known are ";
  for (const std::string_view name : known) list += fmt::format("{}{}", name, name == known.back() ? "" : ", ");
  return list;
}

}  // namespace

Activation Fields::activation(std::string_view key, std::string_view fallback) {
  refuse_null(key, fallback);
  const std::string name = take(config_.string(key, fallback), std::string(fallback));
  std::vector<std::string_view> known;
  for (const ActivationName& entry : kActivations) {
    if (entry.name == name) return entry.activation;
    known.push_back(entry.name);
  }
  reject(key, fmt::format("activation '{}' is not modelled; {}", excerpt(name), suggestion(name, known)));
  return Activation::silu;
}

namespace {

// modeling_rope_utils.py: what a rotary module can be asked for.
constexpr std::string_view kRotaryTypes[] = {"default",  "linear", "dynamic",     "yarn",
                                             "longrope", "llama3", "proportional"};

// The field that holds the rotary embedding's form: the old name wins, unless it holds nothing; empty: neither does.
std::string_view rotary_field(Fields& fields) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const Json* value = fields.config().find(key);
    if (value == nullptr) continue;
    if (!value->is_object())
      fields.reject(key,
                    fmt::format("{} is no object; expected one such as {{\"rope_type\": \"linear\", \"factor\": 2.0}}",
                                value_excerpt(*value)));
    else if (!value->empty()) return key;
  }
  return {};
}

// `rope_type`, or `type` as older files call it; the newer name wins.
std::string rotary_type(Fields& fields, std::string_view field, const JsonObject& form) {
  const std::string_view key = form.contains("rope_type") ? "rope_type" : "type";
  const std::string type = form.string(key, form.contains("rope_type") ? "null" : "default").value_or("");
  if (std::find(std::begin(kRotaryTypes), std::end(kRotaryTypes), type) != std::end(kRotaryTypes)) return type;
  const Json* value = form.find(key);
  const std::string shown = value != nullptr && !value->is_string() ? value_excerpt(*value) : excerpt(type);
  fields.reject(field, fmt::format("{} '{}' is not modelled; {}", key, shown, suggestion(type, kRotaryTypes)));
  return "default";
}

// For the types that stretch positions, the top level's length before stretching wins over the nested one.
std::int64_t original_positions(Fields& fields, const std::string& type, const JsonObject& form,
                                std::int64_t max_positions) {
  if (type != "llama3" && type != "yarn" && type != "longrope") return max_positions;
  constexpr std::string_view kKey = "original_max_position_embeddings";
  const auto nested = form.integer(kKey, max_positions, 1, kMaxPositions);
  if (!nested) fields.reject(nested.error());
  return fields.optional_integer(kKey, nested.value_or(max_positions), kMaxPositions);
}

}  // namespace

Rotary read_rotary(Fields& fields, std::int64_t head_dim, std::int64_t max_positions) {
  Rotary rotary;
  rotary.dim = head_dim;
  rotary.max_positions = max_positions;
  rotary.original_max_positions = max_positions;
  const std::string_view field = rotary_field(fields);
  if (field.empty()) return rotary;
  const JsonObject form(*fields.config().find(field), fields.config().where(field));
  rotary.type = rotary_type(fields, field, form);
  rotary.original_max_positions = original_positions(fields, rotary.type, form, max_positions);
  return rotary;
}

void check_divides(Fields& fields, std::string_view key, std::int64_t heads, std::string_view width_key,
                   std::int64_t width) {
  if (width % heads == 0) return;
  fields.reject(key, fmt::format("{} heads do not divide {} {}; change one of them", heads, width_key, width));
}

Dimension axis(Axis axis, std::int64_t count, std::int64_t unit) { return {{{axis, count, unit}}}; }

std::vector<Buffer> rotary_buffers(const Rotary& rotary) {
  if (rotary.dim == 0) return {};
  return {{"model.rotary_emb.inv_freq", {rotary.dim / 2}, DType::f32, false, false},
          {"model.rotary_emb.original_inv_freq", {rotary.dim / 2}, DType::f32, false, false}};
}

}  // namespace ullage::model
