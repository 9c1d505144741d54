#include "model/config_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/nearest.h"

namespace ullage::model {

void Fields::refuse_null(std::string_view key, std::string_view fallback) {
  if (is_null(key)) reject(key, fmt::format("is null; give a value, or leave the field out for {}", fallback));
}

std::int64_t Fields::count(std::string_view key, std::int64_t fallback, std::int64_t high) {
  refuse_null(key, fmt::format("{}", fallback));
  return take(config_.integer(key, fallback, 0, high), fallback);
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

bool Fields::optional_boolean(std::string_view key, bool fallback) {
  return take(config_.boolean(key, fallback), fallback);
}

double Fields::optional_probability(std::string_view key, double fallback) {
  const double value = take(config_.number(key, fallback), fallback);
  if (!(value >= 0 && value < 1)) {
    reject(key, fmt::format("{} is no dropout probability; expected 0 or more and less than 1", value));
  }
  return value;
}

double Fields::number(std::string_view key, double fallback) {
  refuse_null(key, fmt::format("{}", fallback));
  return take(config_.number(key, fallback), fallback);
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
    {"gelu_new", Activation::gelu_new}, {"quick_gelu", Activation::quick_gelu},
    {"relu", Activation::relu},         {"tanh", Activation::tanh},
    {"sigmoid", Activation::sigmoid},   {"linear", Activation::linear},
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

std::vector<bool> Fields::sliding_layers(std::string_view key, std::int64_t layers) {
  std::vector<bool> out;
  for (const std::string& name : take(config_.strings(key), std::vector<std::string>{})) {
    if (name != "sliding_attention" && name != "full_attention") {
      reject(key, fmt::format("'{}' is not modelled; expected full_attention or sliding_attention", excerpt(name)));
    }
    out.push_back(name == "sliding_attention");
  }
  if (has(key) && static_cast<std::int64_t>(out.size()) != layers) {
    reject(key, fmt::format("{} entries for {} layers; give one for each", out.size(), layers));
    out.assign(static_cast<std::size_t>(layers), false);
  }
  return out;
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

Rotary read_form(Fields& fields, std::string_view field, const JsonObject& form, std::int64_t max_positions) {
  Rotary rotary;
  rotary.max_positions = max_positions;
  rotary.type = rotary_type(fields, field, form);
  rotary.original_max_positions = original_positions(fields, rotary.type, form, max_positions);
  return rotary;
}

Rotary default_form(std::int64_t max_positions) {
  Rotary rotary;
  rotary.max_positions = max_positions;
  rotary.original_max_positions = max_positions;
  return rotary;
}

Rotary read_form(Fields& fields, std::int64_t max_positions) {
  const std::string_view field = rotary_field(fields);
  if (field.empty()) return default_form(max_positions);
  return read_form(fields, field, JsonObject(*fields.config().find(field), fields.config().where(field)),
                   max_positions);
}

void check_even(Fields& fields, std::int64_t head_dim) {
  if (head_dim % 2 == 0) return;
  fields.reject("head_dim", fmt::format("{} is odd; the rotary embedding turns pairs, set an even one", head_dim));
}

// The nested factor wins over the one at the top level.
double partial_factor(Fields& fields, double fallback) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  double factor = fields.number(kKey, fallback);
  if (const std::string_view field = rotary_field(fields); !field.empty()) {
    const auto nested = JsonObject(*fields.config().find(field), fields.config().where(field)).number(kKey, factor);
    if (!nested) fields.reject(nested.error());
    factor = nested.value_or(factor);
  }
  if (factor > 0 && factor <= 1) return factor;
  fields.reject(kKey, fmt::format("{} is no share of a head; expected more than 0 and at most 1", factor));
  return 1;
}

}  // namespace

Rotary read_rotary(Fields& fields, std::int64_t head_dim, std::int64_t max_positions) {
  Rotary rotary = read_form(fields, max_positions);
  rotary.dim = head_dim;
  check_even(fields, head_dim);
  return rotary;
}

Rotary read_partial_rotary(Fields& fields, std::int64_t head_dim, std::int64_t max_positions, double fallback) {
  Rotary rotary = read_form(fields, max_positions);
  rotary.dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * partial_factor(fields, fallback));
  if (rotary.dim % 2 != 0 || rotary.dim == 0) {
    fields.reject("partial_rotary_factor", fmt::format("{} of {} dimensions are turned; the rotary embedding turns "
                                                       "pairs, set a factor that gives an even number",
                                                       rotary.dim, head_dim));
  }
  return rotary;
}

void check_divides(Fields& fields, std::string_view key, std::int64_t heads, std::string_view width_key,
                   std::int64_t width) {
  if (width % heads == 0) return;
  fields.reject(key, fmt::format("{} heads do not divide {} {}; change one of them", heads, width_key, width));
}

Dimension axis(Axis axis, std::int64_t count, std::int64_t unit) { return {{{axis, count, unit}}}; }

Rotary read_layer_rotary(Fields& fields, std::string_view layer_type, std::int64_t head_dim,
                         std::int64_t max_positions) {
  constexpr std::string_view kField = "rope_parameters";
  check_even(fields, head_dim);
  Rotary rotary = default_form(max_positions);
  const JsonObject& config = fields.config();
  const Json* old = config.find("rope_scaling");
  if (old != nullptr && layer_type == "full_attention") {
    rotary = read_form(fields, max_positions);
  } else if (const Json* both = config.find(kField); both != nullptr) {
    const JsonObject by_type(*both, config.where(kField));
    const Json* form = by_type.find(layer_type);
    if (form == nullptr || !form->is_object()) {
      fields.reject(kField, fmt::format("has no {}; give a form such as {{\"rope_type\": \"default\"}} for it and one "
                                        "for the other layers",
                                        layer_type));
    } else {
      rotary = read_form(fields, kField, JsonObject(*form, by_type.where(layer_type)), max_positions);
    }
  }
  rotary.dim = head_dim;
  return rotary;
}

std::vector<Buffer> rotary_buffers(const Rotary& rotary, std::string_view prefix) {
  if (rotary.dim == 0) return {};
  const auto named = [&](std::string_view name) { return fmt::format("model.rotary_emb.{}{}", prefix, name); };
  return {{named("inv_freq"), {rotary.dim / 2}, DType::f32, false, false},
          {named("original_inv_freq"), {rotary.dim / 2}, DType::f32, false, false}};
}

}  // namespace ullage::model
