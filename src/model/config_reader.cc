#include "model/config_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/nearest.h"

namespace ullage::model {
namespace {

// Reads fields one after the other and keeps the first error, so that a reader is a list of fields. transformers'
// classes refuse an explicit null (configuration classes are strict data classes) except where its type allows None.
class Fields {
 public:
  explicit Fields(const JsonObject& config) : config_(config) {}

  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t high) {
    refuse_null(key, fallback);
    return optional_integer(key, fallback, high);
  }
  // null means the fallback.
  std::int64_t optional_integer(std::string_view key, std::int64_t fallback, std::int64_t high) {
    return take(config_.integer(key, fallback, 1, high), fallback);
  }
  bool boolean(std::string_view key, bool fallback) {
    refuse_null(key, fallback);
    return take(config_.boolean(key, fallback), fallback);
  }

  double optional_probability(std::string_view key, double fallback) {
    const double value = take(config_.number(key, fallback), fallback);
    if (!(value >= 0 && value < 1)) {
      reject(key, fmt::format("{} is no dropout probability; expected 0 or more and less than 1", value));
    }
    return value;
  }
  double probability(std::string_view key, double fallback) {
    refuse_null(key, fallback);
    return optional_probability(key, fallback);
  }

  Activation activation(std::string_view key, std::string_view fallback);

  void reject(std::string_view key, std::string message) {
    reject(Error{ErrorCode::malformed, std::move(message), config_.where(key)});
  }
  void reject(Error error) {
    if (!error_) error_ = std::move(error);
  }
  bool has(std::string_view key) const { return config_.has(key); }
  bool is_null(std::string_view key) const { return !has(key) && config_.contains(key); }
  const JsonObject& config() const { return config_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  void refuse_null(std::string_view key, const T& fallback) {
    if (is_null(key)) reject(key, fmt::format("is null; give a value, or leave the field out for {}", fallback));
  }
  template <class T>
  T take(Expected<T> value, T fallback) {
    if (value) return *std::move(value);
    if (!error_) error_ = std::move(value).error();
    return fallback;
  }

  const JsonObject& config_;
  std::optional<Error> error_;
};

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

void read_decoder(Fields& fields, DecoderConfig& c) {
  c.vocab = fields.integer("vocab_size", 32000, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.activation = fields.activation("hidden_act", "silu");
  c.tied = fields.boolean("tie_word_embeddings", false);
  c.head_dim = fields.optional_integer("head_dim", std::max<std::int64_t>(1, c.hidden / c.heads), kMaxWidth);
}

void check_heads(Fields& fields, const DecoderConfig& c) {
  if (c.heads % c.kv_heads != 0) {
    fields.reject(
        "num_key_value_heads",
        fmt::format("{} key and value heads do not divide {} query heads; set a divisor", c.kv_heads, c.heads));
  }
  if (c.heads * c.head_dim > kMaxWidth) {
    fields.reject("head_dim", fmt::format("{} heads of {} are wider than any model; expected at most {} in all",
                                          c.heads, c.head_dim, kMaxWidth));
  }
  if (c.head_dim % 2 != 0) {
    fields.reject("head_dim", fmt::format("{} is odd; the rotary embedding turns pairs, set an even one", c.head_dim));
  }
}

void check_divides(Fields& fields, std::string_view key, std::int64_t heads, std::string_view width_key,
                   std::int64_t width) {
  if (width % heads == 0) return;
  fields.reject(key, fmt::format("{} heads do not divide {} {}; change one of them", heads, width_key, width));
}

template <class Config>
Expected<Config> finish(const Fields& fields, Config config) {
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  return config;
}

}  // namespace

Dimension axis(Axis axis, std::int64_t count, std::int64_t unit) { return {{{axis, count, unit}}}; }

std::vector<Buffer> rotary_buffers(const Rotary& rotary) {
  if (rotary.dim == 0) return {};
  return {{"model.rotary_emb.inv_freq", {rotary.dim / 2}, DType::f32, false, false},
          {"model.rotary_emb.original_inv_freq", {rotary.dim / 2}, DType::f32, false, false}};
}

Expected<DecoderConfig> read_llama_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c;
  read_decoder(fields, c);
  // LlamaConfig insists on this even where head_dim is given.
  check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  c.intermediate = fields.integer("intermediate_size", 11008, kMaxWidth);
  c.kv_heads = fields.optional_integer("num_key_value_heads", c.heads, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  c.attention_bias = fields.boolean("attention_bias", false);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  check_heads(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<DecoderConfig> read_mistral_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c;
  read_decoder(fields, c);
  // MistralConfig would round the width of a head down; nobody means that.
  if (!fields.has("head_dim")) check_divides(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  c.intermediate = fields.integer("intermediate_size", 14336, kMaxWidth);
  c.kv_heads = fields.integer("num_key_value_heads", 8, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 4096 * 32, kMaxPositions);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  // An explicit null turns the window off; an absent field means the class's default.
  if (!fields.is_null("sliding_window")) c.window = fields.integer("sliding_window", 4096, kMaxPositions);
  check_heads(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<Gpt2Config> read_gpt2_config(const JsonObject& config) {
  Fields fields(config);
  Gpt2Config c;
  // The common spelling is an alias that is assigned later, and so wins.
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(config.contains(common) ? common : own, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 50257, kMaxVocab);
  c.positions = either("n_positions", "max_position_embeddings", 1024, kMaxPositions);
  c.hidden = either("n_embd", "hidden_size", 768, kMaxWidth);
  c.layers = either("n_layer", "num_hidden_layers", 12, kMaxLayers);
  c.heads = either("n_head", "num_attention_heads", 12, kMaxWidth);
  c.inner = fields.optional_integer("n_inner", 4 * c.hidden, 4 * kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_pdrop", 0.1);
  c.embedding_dropout = fields.probability("embd_pdrop", 0.1);
  c.attention_dropout = fields.probability("attn_pdrop", 0.1);
  c.upcast = fields.boolean("reorder_and_upcast_attn", false);
  c.tied = fields.boolean("tie_word_embeddings", true);
  check_divides(fields, "n_head", c.heads, "n_embd", c.hidden);
  if (fields.boolean("add_cross_attention", false)) {
    fields.reject("add_cross_attention", "cross attention in GPT-2 is not modelled; set it to false");
  }
  return finish(fields, std::move(c));
}

}  // namespace ullage::model
