#include "model/checkpoint/predictors.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/bytes.h"

namespace ullage::model {
namespace {

enum class Layer : std::uint8_t {
  last,           // as the model's last one
  dense_sliding,  // the attention of those with a window, the feed-forward part of those without experts
};

struct Family {
  std::string_view family;
  std::string_view key = "num_nextn_predict_layers";
  Layer layer = Layer::last;
  bool has_vocabulary = false;  // embeddings and a head of its own
  std::int64_t unsaid = 0;      // how many there are where the configuration does not say
  std::string_view source;
};

constexpr std::string_view kDeepSeekSource = "README_WEIGHTS.md of the published weights";
constexpr std::string_view kQwenSource = "vllm/model_executor/models/qwen3_5_mtp.py";
constexpr std::array kFamilies{
    Family{.family = "deepseek_v3", .has_vocabulary = true, .source = kDeepSeekSource},
    Family{.family = "deepseek_v32", .has_vocabulary = true, .source = kDeepSeekSource},
    Family{.family = "glm4_moe", .has_vocabulary = true, .source = "vllm/model_executor/models/glm4_moe_mtp.py"},
    Family{.family = "glm_moe_dsa", .source = "llm-compressor, modeling/glm_moe_dsa_mtp.py"},
    Family{.family = "mimo_v2_flash",
           .layer = Layer::dense_sliding,
           .unsaid = 3,
           .source = "llm-compressor, modeling/mimo_v2_flash_mtp.py"},
    Family{.family = "qwen3_5", .key = "mtp_num_hidden_layers", .source = kQwenSource},
    Family{.family = "qwen3_5_moe", .key = "mtp_num_hidden_layers", .source = kQwenSource},
    Family{.family = "qwen3_next", .unsaid = 1, .source = "vllm/model_executor/models/qwen3_next_mtp.py"},
};

constexpr std::int64_t kNorms = 3;  // of the hidden state, of the next token's embedding, of the result

std::int64_t elements_of(const Buffer& buffer) {
  std::int64_t out = 1;
  for (const std::int64_t size : buffer.sizes) out = multiply_saturated(out, size);
  return out;
}

// Of a wrapper, its text model says it.
std::int64_t said_of(const JsonObject& config, std::string_view key) {
  if (config.has(key)) return config.integer(key, 0, 0, 64).value_or(0);
  const auto text = config.object("text_config");
  return text ? text->integer(key, 0, 0, 64).value_or(0) : 0;
}

bool is_feed_forward(const std::string& name) { return name.starts_with("mlp."); }

LayerKind dense_sliding_layer(const Architecture& architecture) {
  LayerKind out;
  const auto take = [&](const LayerKind& kind, bool feed_forward) {
    for (const Parameter& parameter : kind.parameters) {
      if (is_feed_forward(parameter.name) == feed_forward) out.parameters.push_back(parameter);
    }
    for (const Buffer& buffer : kind.buffers) {
      if (is_feed_forward(buffer.name) == feed_forward) out.buffers.push_back(buffer);
    }
  };
  const auto slides = [](const LayerKind& kind) { return kind.attention.window.has_value(); };
  const auto is_dense = [](const LayerKind& kind) { return kind.mixture.experts.count == 0; };
  const auto sliding = std::find_if(architecture.kinds.begin(), architecture.kinds.end(), slides);
  const auto dense = std::find_if(architecture.kinds.begin(), architecture.kinds.end(), is_dense);
  if (sliding == architecture.kinds.end() || dense == architecture.kinds.end()) return out;
  take(*sliding, false);
  take(*dense, true);
  return out;
}

}  // namespace

std::int64_t stored_elements(const std::vector<Buffer>& buffers) {
  std::int64_t out = 0;
  for (const Buffer& buffer : buffers) {
    if (buffer.persistent) out = add_saturated(out, elements_of(buffer));
  }
  return out;
}

std::int64_t stored_elements(const LayerKind& kind) {
  std::int64_t out = stored_elements(kind.buffers);
  for (const Parameter& parameter : kind.parameters) out = add_saturated(out, parameter.elements());
  return out;
}

std::int64_t Predictors::elements() const { return add_saturated(stored_elements(layer), besides); }

std::optional<Predictors> predictors_of(const Architecture& architecture, const JsonObject& config) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const Family& row) { return row.family == architecture.family; });
  if (found == kFamilies.end() || architecture.layers.empty()) return std::nullopt;
  const std::int64_t said = said_of(config, found->key);
  Predictors out;
  out.count = said > 0 ? said : found->unsaid;
  out.said = said > 0;
  out.source = found->source;
  if (out.count == 0) return std::nullopt;
  if (found->layer == Layer::dense_sliding) out.layer = dense_sliding_layer(architecture);
  else out.layer = architecture.kind_of(architecture.layer_count() - 1);
  const std::int64_t hidden = architecture.hidden;
  out.besides = add_saturated(kNorms * hidden, multiply_saturated(2 * hidden, hidden));
  if (found->has_vocabulary)
    out.besides = add_saturated(out.besides, multiply_saturated(2 * architecture.vocab, hidden));
  return out;
}

}  // namespace ullage::model
