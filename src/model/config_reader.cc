#include "model/config_reader.h"

#include <fmt/core.h>

#include "base/nearest.h"

namespace ullage::model {
namespace {

// Reads fields one after the other and keeps the first error, so that a reader is a list of fields.
class Fields {
 public:
  explicit Fields(const JsonObject& config) : config_(config) {}

  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t high, std::int64_t low = 1) {
    return take(config_.integer(key, fallback, low, high), fallback);
  }
  double number(std::string_view key, double fallback) { return take(config_.number(key, fallback), fallback); }
  bool boolean(std::string_view key, bool fallback) { return take(config_.boolean(key, fallback), fallback); }
  std::string text(std::string_view key, std::string_view fallback) {
    return take(config_.string(key, fallback), std::string(fallback));
  }

  double probability(std::string_view key, double fallback) {
    const double value = number(key, fallback);
    if (!(value >= 0 && value < 1)) reject(key, "is not a dropout probability; expected 0 or more and less than 1");
    return value;
  }

  Activation activation(std::string_view key, std::string_view fallback);

  void reject(std::string_view key, std::string message) {
    if (!error_) error_ = Error{ErrorCode::malformed, std::move(message), config_.where(key)};
  }
  bool has(std::string_view key) const { return config_.has(key); }
  const JsonObject& config() const { return config_; }
  const std::optional<Error>& error() const { return error_; }

 private:
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
    {"silu", Activation::silu},           {"swish", Activation::silu},
    {"gelu", Activation::gelu},           {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_new", Activation::gelu_new},   {"relu", Activation::relu},
    {"tanh", Activation::tanh},           {"sigmoid", Activation::sigmoid},
    {"linear", Activation::linear},
};

Activation Fields::activation(std::string_view key, std::string_view fallback) {
  const std::string name = text(key, fallback);
  std::vector<std::string_view> known;
  for (const ActivationName& entry : kActivations) {
    if (entry.name == name) return entry.activation;
    known.push_back(entry.name);
  }
  reject(key, fmt::format("activation '{}' is not modelled; {}", name, did_you_mean(nearest_names(name, known))));
  return Activation::silu;
}

Rotary read_rotary(Fields& fields, std::int64_t head_dim, std::int64_t max_positions) {
  Rotary rotary;
  rotary.dim = head_dim;
  rotary.max_positions = max_positions;
  rotary.original_max_positions = max_positions;
  const JsonObject& config = fields.config();
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    const Json* scaling = config.find(key);
    if (scaling == nullptr) continue;
    if (!scaling->is_object()) {
      fields.reject(key, "expected an object");
      return rotary;
    }
    const JsonObject object(*scaling, config.where(key));
    for (const std::string_view name : {"rope_type", "type"}) {
      if (const Json* type = object.find(name); type != nullptr && type->is_string()) {
        rotary.type = type->get<std::string>();
        break;
      }
    }
    if (const auto original = object.integer("original_max_position_embeddings", max_positions, 1, kMaxPositions)) {
      rotary.original_max_positions = *original;
    }
    break;
  }
  return rotary;
}

void read_decoder(Fields& fields, DecoderConfig& c) {
  c.vocab = fields.integer("vocab_size", 32000, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 32, kMaxWidth);
  c.activation = fields.activation("hidden_act", "silu");
  c.tied = fields.boolean("tie_word_embeddings", false);
  c.attention_dropout = fields.probability("attention_dropout", 0);
  c.head_dim = fields.integer("head_dim", std::max<std::int64_t>(1, c.hidden / c.heads), kMaxWidth);
}

void check_heads(Fields& fields, const DecoderConfig& c) {
  if (!fields.has("head_dim") && c.hidden % c.heads != 0) {
    fields.reject("num_attention_heads", fmt::format("{} heads do not divide hidden_size {}; set head_dim or another number of heads", c.heads, c.hidden));
  }
  if (c.heads % c.kv_heads != 0) {
    fields.reject("num_key_value_heads", fmt::format("{} key and value heads do not divide {} query heads", c.kv_heads, c.heads));
  }
  if (c.heads * c.head_dim > kMaxWidth) {
    fields.reject("head_dim", fmt::format("{} heads of {} are wider than any model; at most {} in all", c.heads, c.head_dim, kMaxWidth));
  }
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
  c.intermediate = fields.integer("intermediate_size", 11008, kMaxWidth);
  c.kv_heads = fields.integer("num_key_value_heads", c.heads, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 2048, kMaxPositions);
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
  c.intermediate = fields.integer("intermediate_size", 14336, kMaxWidth);
  c.kv_heads = fields.integer("num_key_value_heads", fields.config().json().contains("num_key_value_heads") ? c.heads : 8, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 4096 * 32, kMaxPositions);
  // An explicit null turns the window off; an absent field means the class's default.
  const bool off = config.json().contains("sliding_window") && !config.has("sliding_window");
  if (!off) c.window = fields.integer("sliding_window", 4096, kMaxPositions);
  check_heads(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

Expected<Gpt2Config> read_gpt2_config(const JsonObject& config) {
  Fields fields(config);
  Gpt2Config c;
  const auto either = [&](std::string_view own, std::string_view common, std::int64_t fallback, std::int64_t high) {
    return fields.integer(fields.has(own) ? own : common, fallback, high);
  };
  c.vocab = fields.integer("vocab_size", 50257, kMaxVocab);
  c.positions = either("n_positions", "max_position_embeddings", 1024, kMaxPositions);
  c.hidden = either("n_embd", "hidden_size", 768, kMaxWidth);
  c.layers = either("n_layer", "num_hidden_layers", 12, kMaxLayers);
  c.heads = either("n_head", "num_attention_heads", 12, kMaxWidth);
  c.inner = fields.integer("n_inner", 4 * c.hidden, 4 * kMaxWidth);
  c.activation = fields.activation("activation_function", "gelu_new");
  c.residual_dropout = fields.probability("resid_pdrop", 0.1);
  c.embedding_dropout = fields.probability("embd_pdrop", 0.1);
  c.attention_dropout = fields.probability("attn_pdrop", 0.1);
  c.upcast = fields.boolean("reorder_and_upcast_attn", false);
  c.tied = fields.boolean("tie_word_embeddings", true);
  if (c.hidden % c.heads != 0) {
    fields.reject("n_head", fmt::format("{} heads do not divide n_embd {}", c.heads, c.hidden));
  }
  if (fields.boolean("add_cross_attention", false)) fields.reject("add_cross_attention", "cross attention in GPT-2 is not modelled");
  return finish(fields, std::move(c));
}

}  // namespace ullage::model
