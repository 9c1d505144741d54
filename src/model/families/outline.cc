#include "model/families/outline.h"

#include <fmt/core.h>

#include <algorithm>

namespace ullage::model {
namespace {

std::string_view name_of(Mixer mixer) {
  switch (mixer) {
    case Mixer::attention: return "attention";
    case Mixer::latent_attention: return "latent attention";
    case Mixer::cross_attention: return "cross attention";
    case Mixer::linear_attention: return "linear attention";
    case Mixer::mamba: return "mamba";
    case Mixer::convolution: return "convolution";
    case Mixer::both: return "attention and mamba";
    case Mixer::none: return "feed-forward";
  }
  return "";
}

std::string name_of(const OutlineTraits& traits) {
  const std::string_view slides = traits.slides ? "sliding " : "";
  if (traits.mixer == Mixer::none && traits.sparse) return "experts";
  return fmt::format("{}{}{}", slides, name_of(traits.mixer), traits.sparse ? ", experts" : "");
}

bool attends(Mixer mixer) {
  return mixer == Mixer::attention || mixer == Mixer::latent_attention || mixer == Mixer::both;
}

}  // namespace

DecoderConfig read_sizes(Fields& fields, const DecoderDefaults& defaults) {
  DecoderConfig c;
  c.vocab = fields.integer("vocab_size", defaults.vocab, kMaxVocab);
  c.hidden = fields.integer("hidden_size", defaults.hidden, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", defaults.layers, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", defaults.heads, kMaxWidth);
  c.tied = fields.boolean("tie_word_embeddings", defaults.tied);
  const std::int64_t share = std::max<std::int64_t>(1, c.hidden / c.heads);
  c.head_dim = fields.optional_integer("head_dim", defaults.head_dim == 0 ? share : defaults.head_dim, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", defaults.intermediate, kMaxWidth);
  c.kv_heads =
      fields.optional_integer("num_key_value_heads", defaults.kv_heads == 0 ? c.heads : defaults.kv_heads, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", defaults.max_positions, kMaxPositions);
  return c;
}

std::vector<std::string> read_layer_names(Fields& fields, std::string_view key, std::int64_t layers) {
  auto names = fields.config().strings(key);
  if (!names) {
    fields.reject(std::move(names).error());
    return {};
  }
  if (!names->empty() && layers > 0 && static_cast<std::int64_t>(names->size()) != layers) {
    fields.reject(key, fmt::format("{} entries for {} layers; give one for each", names->size(), layers));
    return {};
  }
  return *std::move(names);
}

std::vector<bool> read_indices(Fields& fields, std::string_view key, std::int64_t layers) {
  std::vector<bool> out(static_cast<std::size_t>(layers), false);
  const Json* list = fields.config().find(key);
  if (list == nullptr) return out;
  if (!list->is_array()) fields.reject(key, "is no list of layers");
  for (const Json& entry : *list) {
    const std::int64_t index = entry.is_number_integer() ? entry.get<std::int64_t>() : -1;
    if (index < 0 || index >= layers) {
      fields.reject(key, fmt::format("{} is no layer of {}", value_excerpt(entry), layers));
      return out;
    }
    out[static_cast<std::size_t>(index)] = true;
  }
  return out;
}

std::vector<OutlineTraits> read_mixers(Fields& fields, std::string_view key, const DecoderConfig& c, Mixer fallback,
                                       std::initializer_list<NamedMixer> known) {
  std::vector<OutlineTraits> out = same_layers(c, {.mixer = fallback});
  const std::vector<std::string> names = read_layer_names(fields, key, c.layers);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto at = std::find_if(known.begin(), known.end(), [&](const NamedMixer& n) { return n.name == names[i]; });
    if (at == known.end()) fields.reject(key, fmt::format("'{}' is not modelled", excerpt(names[i])));
    else out[i].mixer = at->mixer;
  }
  return out;
}

Architecture outline(const DecoderConfig& c, std::string_view family, const OutlineNames& names,
                     const std::vector<OutlineTraits>& layers, const OutlineLayer& make) {
  Architecture arch;
  arch.family = family;
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = names.prefix + names.layers;
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding(names.prefix + names.embedding, vocab, hidden_axis(c));
  arch.layers_at = arch.parameters.size();
  std::vector<OutlineTraits> seen;
  for (const OutlineTraits& traits : layers) {
    const auto at = std::find(seen.begin(), seen.end(), traits);
    arch.layers.push_back(static_cast<std::uint8_t>(at - seen.begin()));
    if (at != seen.end()) continue;
    seen.push_back(traits);
    arch.kinds.push_back(make(traits));
  }
  arch.has_final_norm = !names.norm.empty();
  if (arch.has_final_norm) arch.final_norm = p.norm(names.norm_kind, names.prefix + names.norm, hidden_axis(c));
  if (names.head.empty()) return arch;
  arch.head = p.linear(names.head, hidden_axis(c), vocab, false);
  if (c.tied) arch.parameters[static_cast<std::size_t>(arch.head.weight.index)].tied_to = arch.embedding.weight.index;
  return arch;
}

std::vector<OutlineTraits> same_layers(const DecoderConfig& c, OutlineTraits traits) {
  return std::vector<OutlineTraits>(static_cast<std::size_t>(c.layers), traits);
}

LayerKind outline_layer(const DecoderConfig& c, const OutlineTraits& traits) {
  LayerKind layer;
  layer.name = name_of(traits);
  if (!attends(traits.mixer)) {
    layer.attention.kind = AttentionKind::none;
    return layer;
  }
  layer.attention.heads = c.heads;
  layer.attention.kv_heads = c.kv_heads;
  layer.attention.head_dim = c.head_dim;
  if (traits.slides) layer.attention.window = c.window;
  return layer;
}

ParameterList outside(Architecture& architecture) { return {architecture.parameters, false}; }

void write_layers(ParameterList& p, const std::string& prefix, std::int64_t layers,
                  const std::function<void(ParameterList& p, const std::string& at)>& add) {
  for (std::int64_t i = 0; i < layers; ++i) add(p, fmt::format("{}.{}.", prefix, i));
}

void add_stored_buffer(LayerKind& layer, std::string name, std::vector<std::int64_t> sizes) {
  layer.buffers.push_back({std::move(name), std::move(sizes), DType::f32, false, true});
}

}  // namespace ullage::model
