// Configurations and parameters (transformers: models/qwen2_vl, models/qwen2_5_vl, models/qwen3_vl, modeling_*.py).
#include "model/families/qwen_tower.h"

#include <fmt/core.h>

#include <algorithm>

namespace ullage::model {
namespace {

constexpr std::int64_t kMostOfSide = 1 << 12;  // patches, merged patches, frames and channels of anything real

void check_shape(Fields& fields, const TowerConfig& c, std::string_view width_key) {
  check_divides(fields, "num_heads", c.heads, width_key, c.hidden);
  // A quarter of a head for each of row and column, by pairs.
  if (c.hidden % c.heads == 0 && c.hidden / c.heads % 4 != 0) {
    fields.reject("num_heads",
                  fmt::format("makes heads of {}; the rotary embedding turns pairs of rows and of columns, "
                              "set a number that makes heads a multiple of 4",
                              c.hidden / c.heads));
  }
}

void read_patches(Fields& fields, Vision& vision, std::int64_t patch) {
  vision.channels = fields.integer("in_channels", 3, kMostOfSide);
  vision.patch = fields.integer("patch_size", patch, kMostOfSide);
  vision.merge = fields.integer("spatial_merge_size", 2, kMostOfSide);
  vision.frames = fields.integer("temporal_patch_size", 2, kMostOfSide);
}

// Of the preprocessor_config.json published with the weights. The usual size of an image stands in no file; this one
// makes 256 tokens.
void set_processor(Vision& vision, std::int64_t least_pixels, std::int64_t most_pixels) {
  vision.least_pixels = least_pixels;
  vision.most_pixels = most_pixels;
  vision.size = 16 * vision.merge * vision.patch;
}

// A list of numbers of blocks.
std::vector<std::int64_t> read_blocks(Fields& fields, std::string_view key, std::vector<std::int64_t> fallback) {
  const Json* given = fields.config().find(key);
  if (given == nullptr) return fallback;
  const bool list = given->is_array() && std::all_of(given->begin(), given->end(),
                                                     [](const Json& entry) { return entry.is_number_integer(); });
  std::vector<std::int64_t> out;
  if (!list) fields.reject(key, fmt::format("{} is no list of numbers of blocks", value_excerpt(*given)));
  else
    for (const Json& block : *given) out.push_back(block.get<std::int64_t>());
  return out;
}

// The named blocks attend to whole images; what names none is passed over.
std::vector<bool> read_windowed(Fields& fields, std::int64_t depth) {
  std::vector<bool> out(static_cast<std::size_t>(depth), true);
  for (const std::int64_t block : read_blocks(fields, "fullatt_block_indexes", {7, 15, 23, 31})) {
    if (block >= 0 && block < depth) out[static_cast<std::size_t>(block)] = false;
  }
  return out;
}

void read_deep_layers(Fields& fields, TowerConfig& c) {
  constexpr std::string_view kKey = "deepstack_visual_indexes";
  std::vector<std::int64_t>& deep = c.vision.deep_layers;
  deep = read_blocks(fields, kKey, {8, 16, 24});
  for (std::size_t i = 0; i < deep.size(); ++i) {
    const bool again = std::find(deep.begin(), deep.begin() + static_cast<std::ptrdiff_t>(i), deep[i]) !=
                       deep.begin() + static_cast<std::ptrdiff_t>(i);
    if (deep[i] < 0 || deep[i] >= c.depth || again) {
      fields.reject(kKey,
                    fmt::format("{} names no block, or one again, of {}; give each block once", deep[i], c.depth));
    }
  }
}

Mlp add_mlp(ParameterList& p, const TowerConfig& c, const Dimension& hidden) {
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  Mlp mlp;
  mlp.gated = c.gated;
  mlp.activation = c.activation;
  std::size_t next = 0;
  if (c.gated) mlp.gate = p.linear("mlp." + c.mlp_names[next++], hidden, ffn, true);
  mlp.up = p.linear("mlp." + c.mlp_names[next++], hidden, ffn, true);
  mlp.down = p.linear("mlp." + c.mlp_names[next], ffn, hidden, true);
  return mlp;
}

LayerKind block(const TowerConfig& c, bool windowed) {
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const AxisPart heads{Axis::heads, c.heads, c.hidden / c.heads};
  LayerKind kind;
  kind.name = windowed ? "vision (windows)" : "vision";
  ParameterList p(kind.parameters, true);
  kind.input_norm = p.norm(c.norm, "norm1", hidden);
  kind.post_attention_norm = p.norm(c.norm, "norm2", hidden);
  Attention& a = kind.attention;
  a.heads = a.kv_heads = c.heads;
  a.head_dim = c.hidden / c.heads;
  a.causal = false;
  if (windowed) a.window = c.vision.window;
  a.qkv = p.linear("attn.qkv", hidden, {{heads, heads, heads}}, true);
  a.o = p.linear("attn.proj", {{heads}}, hidden, true);
  kind.mlp = add_mlp(p, c, hidden);
  return kind;
}

PatchMerger add_merger(ParameterList& p, const TowerConfig& c, const std::string& name, bool norms_merged) {
  const Dimension merged = axis(Axis::hidden, c.hidden * c.vision.merge * c.vision.merge);
  PatchMerger out;
  out.norms_merged = norms_merged;
  out.norm = p.norm(c.norm, name + c.merger_names[0], norms_merged ? merged : axis(Axis::hidden, c.hidden));
  out.up = p.linear(name + c.merger_names[1], merged, merged, true);
  out.down = p.linear(name + c.merger_names[2], merged, axis(Axis::hidden, c.out_hidden), true);
  return out;
}

}  // namespace

TowerConfig read_qwen2_tower(Fields& fields) {
  TowerConfig c;
  read_patches(fields, c.vision, 14);
  set_processor(c.vision, 56 * 56, 3584 * 3584);
  c.depth = fields.integer("depth", 32, kMaxLayers);
  c.hidden = fields.integer("embed_dim", 1280, kMaxWidth);
  c.intermediate = c.hidden * fields.integer("mlp_ratio", 4, 1 << 10);
  c.out_hidden = fields.integer("hidden_size", 3584, kMaxWidth);
  c.heads = fields.integer("num_heads", 16, kMaxWidth);
  c.activation = fields.activation("hidden_act", "quick_gelu");
  c.mlp_names = {"fc1", "fc2"};
  c.merger_names = {"ln_q", "mlp.0", "mlp.2"};
  check_shape(fields, c, "embed_dim");
  return c;
}

TowerConfig read_qwen2_5_tower(Fields& fields) {
  TowerConfig c;
  read_patches(fields, c.vision, 14);
  set_processor(c.vision, 56 * 56, 3584 * 3584);
  c.depth = fields.integer("depth", 32, kMaxLayers);
  c.hidden = fields.integer("hidden_size", 3584, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 3420, kMaxWidth);
  c.out_hidden = fields.integer("out_hidden_size", 3584, kMaxWidth);
  c.heads = fields.integer("num_heads", 16, kMaxWidth);
  c.activation = fields.activation("hidden_act", "silu");
  c.norm = NormKind::rms;
  c.gated = true;
  const std::int64_t pixels = fields.integer("window_size", 112, kMaxWidth);
  c.vision.window = pixels / c.vision.merge / c.vision.patch;
  if (c.vision.window == 0) fields.reject("window_size", fmt::format("{} pixels hold no token", pixels));
  c.windowed = read_windowed(fields, c.depth);
  c.mlp_names = {"gate_proj", "up_proj", "down_proj"};
  c.merger_names = {"ln_q", "mlp.0", "mlp.2"};
  check_shape(fields, c, "hidden_size");
  return c;
}

TowerConfig read_qwen3_tower(Fields& fields) {
  TowerConfig c;
  read_patches(fields, c.vision, 16);
  set_processor(c.vision, 256 * 256, 4096 * 4096);
  c.depth = fields.integer("depth", 27, kMaxLayers);
  c.hidden = fields.integer("hidden_size", 1152, kMaxWidth);
  c.intermediate = fields.integer("intermediate_size", 4304, kMaxWidth);
  c.out_hidden = fields.integer("out_hidden_size", 3584, kMaxWidth);
  c.heads = fields.integer("num_heads", 16, kMaxWidth);
  c.activation = fields.activation("hidden_act", "gelu_pytorch_tanh");
  c.patch_bias = true;
  c.positions = fields.integer("num_position_embeddings", 2304, kMaxWidth);
  read_deep_layers(fields, c);
  c.mlp_names = {"linear_fc1", "linear_fc2"};
  c.merger_names = {"norm", "linear_fc1", "linear_fc2"};
  check_shape(fields, c, "hidden_size");
  return c;
}

Architecture qwen_tower(const TowerConfig& c) {
  Architecture arch;
  arch.vision = c.vision;
  arch.encoder_prefix = "model.visual.blocks.";
  arch.encoder_layers = c.depth;
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  const Vision& v = c.vision;
  arch.vision.patch_weight = p.add("model.visual.patch_embed.proj.weight",
                                   {hidden, axis(Axis::channels, v.channels), axis(Axis::kernel, v.frames),
                                    axis(Axis::kernel, v.patch), axis(Axis::kernel, v.patch)});
  arch.parameters.back().module = ModuleKind::convolution;
  if (c.patch_bias) arch.vision.patch_bias = p.add("model.visual.patch_embed.proj.bias", {hidden});
  if (c.positions > 0) {
    arch.vision.positions = p.embedding("model.visual.pos_embed", axis(Axis::position, c.positions), hidden);
  }
  arch.encoder_at = arch.parameters.size();
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const bool windowed = !c.windowed.empty() && c.windowed[static_cast<std::size_t>(i)];
    const auto same = [&](const LayerKind& kind) { return kind.attention.window.has_value() == windowed; };
    const auto at = std::find_if(arch.kinds.begin(), arch.kinds.end(), same);
    arch.layers.push_back(static_cast<std::uint8_t>(at - arch.kinds.begin()));
    if (at == arch.kinds.end()) arch.kinds.push_back(block(c, windowed));
  }
  arch.vision.merger = add_merger(p, c, "model.visual.merger.", false);
  for (std::size_t i = 0; i < v.deep_layers.size(); ++i) {
    const std::string name = fmt::format("model.visual.deepstack_merger_list.{}.", i);
    arch.vision.deep_mergers.push_back(add_merger(p, c, name, true));
  }
  arch.buffers.push_back({"model.visual.rotary_pos_emb.inv_freq", {c.hidden / c.heads / 4}, DType::f32, false, false});
  return arch;
}

}  // namespace ullage::model
