// SmolLM3 (transformers: models/smollm3/modeling_smollm3.py): Llama with layers that know no positions.
#include "model/families/smollm3.h"

#include <fmt/core.h>

#include "model/families/llama.h"

namespace ullage::model {
namespace {

// no_rope_layers holds, against its name, 1 for each layer that turns; without it every so many layers one does not.
std::vector<bool> read_turning_layers(Fields& fields, std::int64_t layers) {
  constexpr std::string_view kKey = "no_rope_layers";
  const std::int64_t interval = fields.integer("no_rope_layer_interval", 4, kMaxLayers);
  std::vector<bool> out;
  const Json* list = fields.config().find(kKey);
  if (list == nullptr) {
    for (std::int64_t i = 0; i < layers; ++i) out.push_back((i + 1) % interval != 0);
    return out;
  }
  if (!list->is_array() || static_cast<std::int64_t>(list->size()) != layers) {
    fields.reject(kKey, fmt::format("expected a list with 0 or 1 for each of {} layers", layers));
    return std::vector<bool>(static_cast<std::size_t>(layers), true);
  }
  for (const Json& entry : *list) {
    if (!entry.is_number_integer()) fields.reject(kKey, "holds something that is no whole number; expected 0 or 1");
    out.push_back(entry != 0);
  }
  return out;
}

Expected<DecoderConfig> read_smollm3_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 128256,
                                          .hidden = 2048,
                                          .layers = 36,
                                          .heads = 16,
                                          .kv_heads = 4,
                                          .max_positions = 32768,
                                          .tied = true});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  const std::vector<bool> turns = read_turning_layers(fields, c.layers);
  const bool used = fields.boolean("use_sliding_window", false);
  if (fields.has("sliding_window")) c.window = fields.integer("sliding_window", 1, kMaxPositions);
  const bool windows = used && c.window;
  read_layer_types(fields, c, false,
                   [&](std::int64_t layer) { return windows && !turns[static_cast<std::size_t>(layer)]; });
  for (std::size_t i = 0; i < turns.size(); ++i) c.traits[i].rotates = turns[i];
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_smollm3(const JsonObject& config) {
  return read_smollm3_config(config).map(
      [](const DecoderConfig& c) { return decoder(c, "smollm3", NormKind::rms, llama_kind); });
}

}  // namespace ullage::model
