// Sources: transformers' models/{gemma3,glm4v,mistral3,ministral3,qwen2_audio,siglip,pixtral}; the code published
// beside the weights of Kimi-VL, Kimi K2.5, InternVL 2 and LocateAnything.
#include "model/families/outline_vision.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/gemma.h"
#include "model/families/internlm2.h"
#include "model/families/llama.h"
#include "model/families/moe.h"
#include "model/families/outline_latent.h"
#include "model/families/outline_parts.h"
#include "model/families/qwen.h"
#include "model/families/qwen_tower.h"
#include "model/families/vision_language.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kMostOfSide = 1 << 12;  // patches, channels and merged patches of anything real

void rename(std::string& name, std::string_view from, std::string_view to) {
  if (name.starts_with(from)) name.replace(0, from.size(), to);
}

// The nested text model, of whatever family; `otherwise` where it does not say.
Expected<Architecture> text_model(const JsonObject& config, std::string_view key, std::string_view otherwise,
                                  bool tied_by_default) {
  const Json none = Json::object();
  const JsonObject text = nested_config(config, key, none);
  Json fields = text.json();
  if (!fields.contains("model_type")) fields["model_type"] = otherwise;
  const bool outer = config.has("tie_word_embeddings");
  if (outer || !fields.contains("tie_word_embeddings")) {
    const auto tied = config.boolean("tie_word_embeddings", tied_by_default);
    if (!tied) return tl::unexpected<Error>(tied.error());
    fields["tie_word_embeddings"] = *tied;
  }
  return build_outline(fields, text.where());
}

using AddTower = std::function<void(Architecture& arch, Fields& vision, Fields& whole)>;

// A text model with a tower behind it, whose configuration stands under `key`.
Expected<Architecture> with_tower(Expected<Architecture> text, const JsonObject& config, std::string_view key,
                                  std::string_view family, const AddTower& add) {
  if (!text) return text;
  const Json none = Json::object();
  const JsonObject nested = nested_config(config, key, none);
  Fields vision(nested);
  Fields whole(config);
  text->family = family;
  add(*text, vision, whole);
  for (const Fields* fields : {&vision, &whole}) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  return text;
}

struct TowerSizes {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t channels = 0;
  std::int64_t patch = 0;
  std::int64_t image = 0;

  std::int64_t side() const { return std::max<std::int64_t>(1, image / patch); }
  Block block() const { return {.hidden = hidden, .ffn = ffn, .heads = heads}; }
};

TowerSizes read_tower_sizes(Fields& fields, const TowerSizes& defaults) {
  TowerSizes out;
  out.hidden = fields.integer("hidden_size", defaults.hidden, kMaxWidth);
  out.ffn = fields.integer("intermediate_size", defaults.ffn, kMaxWidth);
  out.layers = fields.integer("num_hidden_layers", defaults.layers, kMaxLayers);
  out.heads = fields.integer("num_attention_heads", defaults.heads, kMaxWidth);
  out.channels = fields.integer("num_channels", defaults.channels, kMostOfSide);
  out.patch = fields.integer("patch_size", defaults.patch, kMostOfSide);
  out.image = fields.integer("image_size", defaults.image, 1 << 16);
  check_divides(fields, "num_attention_heads", out.heads, "hidden_size", out.hidden);
  return out;
}

// SigLIP: patches with learned positions, no token for the class.
void add_siglip(ParameterList& p, const std::string& at, const TowerSizes& sizes, bool pools) {
  const std::int64_t positions = sizes.side() * sizes.side();
  const Dimension hidden = width(sizes.hidden);
  add_patches(p, at + "embeddings.patch_embedding", sizes.hidden, sizes.channels, sizes.patch, 0, true);
  p.embedding(at + "embeddings.position_embedding", axis(Axis::position, positions), hidden);
  write_layers(p, at + "encoder.layers", sizes.layers,
               [&](ParameterList& list, const std::string& layer) { add_block(list, layer, sizes.block()); });
  p.layer_norm(at + "post_layernorm", hidden);
  if (!pools) return;
  p.add(at + "head.probe", {width(1), width(1), hidden});
  p.add(at + "head.attention.in_proj_weight", {joined({hidden, hidden, hidden}), hidden});
  p.add(at + "head.attention.in_proj_bias", {joined({hidden, hidden, hidden})});
  p.linear(at + "head.attention.out_proj", hidden, hidden, true);
  p.layer_norm(at + "head.layernorm", hidden);
  add_plain(p, at + "head.mlp.", sizes.hidden, sizes.ffn, true, "fc1", "fc2");
}

}  // namespace

void rename_model(Architecture& arch, std::string_view prefix) {
  for (Parameter& parameter : arch.parameters) rename(parameter.name, "model.", prefix);
  for (Buffer& buffer : arch.buffers) rename(buffer.name, "model.", prefix);
  rename(arch.layer_prefix, "model.", prefix);
}

Expected<void> add_qwen_tower(Architecture& arch, const JsonObject& vision) {
  Json without_deep = vision.json();
  if (without_deep.is_object()) without_deep["deepstack_visual_indexes"] = Json::array();
  const JsonObject given(without_deep, vision.where());
  Fields fields(given);
  const TowerConfig c = read_qwen3_tower(fields);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  Architecture tower = qwen_tower(c);
  tower.layers_at = std::max(tower.layers_at, tower.encoder_at);
  for_each_parameter(tower, [&](const Parameter& parameter, const std::string& name, int) {
    arch.parameters.push_back(parameter);
    arch.parameters.back().name = name;
  });
  return {};
}

// --- Gemma 3: SigLIP, its tokens averaged and projected --------------------------------------------------------------

Expected<Architecture> outline_gemma3(const JsonObject& config) {
  auto text = text_model(config, "text_config", "gemma3_text", true);
  if (text) rename_model(*text, "model.language_model.");
  return with_tower(
      std::move(text), config, "vision_config", "gemma3", [](Architecture& arch, Fields& vision, Fields&) {
        const TowerSizes sizes = read_tower_sizes(vision, {768, 3072, 12, 12, 3, 16, 224});
        const bool pools = vision.boolean("vision_use_head", true);
        if (vision.error()) return;
        ParameterList p = outside(arch);
        add_siglip(p, "model.vision_tower.", sizes, pools);
        p.add("model.multi_modal_projector.mm_input_projection_weight", {width(sizes.hidden), width(arch.hidden)});
        p.rms_norm("model.multi_modal_projector.mm_soft_emb_norm", width(sizes.hidden));
      });
}

// --- Mistral 3: Pixtral, whose patches are merged --------------------------------------------------------------------
namespace {

void add_pixtral(ParameterList& p, const std::string& at, const TowerSizes& sizes) {
  const Projections projections = square_projections(sizes.hidden, sizes.heads, false);
  add_patches(p, at + "patch_conv", sizes.hidden, sizes.channels, sizes.patch, 0, false);
  p.rms_norm(at + "ln_pre", width(sizes.hidden));
  write_layers(p, at + "transformer.layers", sizes.layers, [&](ParameterList& list, const std::string& layer) {
    Attention unused;
    list.rms_norm(layer + "attention_norm", width(sizes.hidden));
    add_gated(list, layer + "feed_forward.", sizes.hidden, sizes.ffn);
    add_attention(list, unused, layer + "attention.", projections);
    list.rms_norm(layer + "ffn_norm", width(sizes.hidden));
  });
}

// Files leave tie_word_embeddings out; their checkpoints hold a head, which the class of transformers 5.12 would tie.
Expected<Architecture> mistral3(const JsonObject& config, std::string_view family, std::string_view text_type) {
  auto text = text_model(config, "text_config", text_type, false);
  if (text) rename_model(*text, "model.language_model.");
  return with_tower(std::move(text), config, "vision_config", family,
                    [](Architecture& arch, Fields& vision, Fields& whole) {
                      const TowerSizes sizes = read_tower_sizes(vision, {1024, 4096, 24, 16, 3, 14, 1540});
                      const std::int64_t merge = whole.integer("spatial_merge_size", 2, 64);
                      const bool bias = whole.boolean("multimodal_projector_bias", false);
                      if (vision.error() || whole.error()) return;
                      ParameterList p = outside(arch);
                      add_pixtral(p, "model.vision_tower.", sizes);
                      const std::string at = "model.multi_modal_projector.";
                      const Dimension tower = width(sizes.hidden);
                      p.rms_norm(at + "norm", tower);
                      p.linear(at + "patch_merger.merging_layer", width(sizes.hidden * merge * merge), tower, false);
                      p.linear(at + "linear_1", tower, width(arch.hidden), bias);
                      p.linear(at + "linear_2", width(arch.hidden), width(arch.hidden), bias);
                    });
}

}  // namespace

Expected<Architecture> outline_mistral3(const JsonObject& config) { return mistral3(config, "mistral3", "mistral"); }

// The type of the text model, which some files give to the whole.
Expected<Architecture> outline_ministral3(const JsonObject& config) {
  if (config.has("text_config")) return mistral3(config, "ministral3", "ministral3");
  const std::pair<std::string_view, std::int64_t> defaults[] = {{"vocab_size", 131072},
                                                                {"hidden_size", 4096},
                                                                {"intermediate_size", 14336},
                                                                {"num_hidden_layers", 34},
                                                                {"num_attention_heads", 32},
                                                                {"num_key_value_heads", 8},
                                                                {"head_dim", 128},
                                                                {"max_position_embeddings", 262144}};
  Json fields = config.json();
  for (const auto& [key, value] : defaults) {
    if (!config.has(key)) fields[std::string(key)] = value;
  }
  if (!fields.contains("sliding_window")) fields["sliding_window"] = nullptr;
  return build_mistral(JsonObject(fields, config.where())).map([](Architecture arch) {
    arch.family = "ministral3";
    return arch;
  });
}

// --- GLM-4.1V --------------------------------------------------------------------------------------------------------
namespace {

struct GlmTower {
  TowerSizes sizes;
  std::int64_t out = 0;
  std::int64_t merge = 0;
  std::int64_t frames = 0;
  bool bias = false;
};

GlmTower read_glm_tower(Fields& fields) {
  GlmTower out;
  out.sizes.hidden = fields.integer("hidden_size", 1536, kMaxWidth);
  out.sizes.ffn = fields.integer("intermediate_size", 13696, kMaxWidth);
  out.sizes.layers = fields.integer("depth", 24, kMaxLayers);
  out.sizes.heads = fields.integer("num_heads", 12, kMaxWidth);
  out.sizes.channels = fields.integer("in_channels", 3, kMostOfSide);
  out.sizes.patch = fields.integer("patch_size", 14, kMostOfSide);
  out.sizes.image = fields.integer("image_size", 336, 1 << 16);
  out.out = fields.integer("out_hidden_size", 4096, kMaxWidth);
  out.merge = fields.integer("spatial_merge_size", 2, 64);
  out.frames = fields.integer("temporal_patch_size", 2, 64);
  out.bias = fields.boolean("attention_bias", false);
  return out;
}

void add_glm_tower(ParameterList& p, const GlmTower& from) {
  const std::string at = "model.visual.";
  const TowerSizes& sizes = from.sizes;
  const Dimension hidden = width(sizes.hidden);
  const Dimension out = width(from.out);
  const AxisPart heads{Axis::heads, sizes.heads, sizes.hidden / sizes.heads};
  const Dimension side = axis(Axis::kernel, from.merge);
  p.embedding(at + "embeddings.position_embedding", axis(Axis::position, sizes.side() * sizes.side()), hidden);
  add_patches(p, at + "patch_embed.proj", sizes.hidden, sizes.channels, sizes.patch, from.frames, true);
  write_layers(p, at + "blocks", sizes.layers, [&](ParameterList& list, const std::string& layer) {
    list.rms_norm(layer + "norm1", hidden);
    list.rms_norm(layer + "norm2", hidden);
    list.linear(layer + "attn.qkv", hidden, {{heads, heads, heads}}, from.bias);
    list.linear(layer + "attn.proj", {{heads}}, hidden, false);
    add_gated(list, layer + "mlp.", sizes.hidden, from.out);
  });
  p.linear(at + "merger.proj", out, out, false);
  p.layer_norm(at + "merger.post_projection_norm", out);
  add_gated(p, at + "merger.", from.out, sizes.ffn);
  p.rms_norm(at + "post_conv_layernorm", hidden);
  p.add(at + "downsample.weight", {out, hidden, side, side});
  p.add(at + "downsample.bias", {out});
  p.rms_norm(at + "post_layernorm", hidden);
}

// Norms around both parts, gate and up in one, biases of queries, keys and values.
Expected<Architecture> glm4v_text(const JsonObject& config, bool tied) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 151552,
                                        .hidden = 4096,
                                        .intermediate = 13696,
                                        .layers = 40,
                                        .heads = 32,
                                        .kv_heads = 2,
                                        .max_positions = 32768});
  c.tied = tied;
  c.qkv_bias = true;  // whatever attention_bias says
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return outline(
        read, "glm4v", {.prefix = "model.language_model."}, same_layers(read), [&](const OutlineTraits& traits) {
          LayerKind layer = outline_layer(read, traits);
          ParameterList p(layer.parameters, true);
          add_attention(p, layer.attention, "self_attn.", projections_of(read));
          layer.mlp = add_gate_up(p, "mlp.", read.hidden, read.intermediate);
          for (const char* norm :
               {"input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"}) {
            p.rms_norm(norm, width(read.hidden));
          }
          return layer;
        });
  });
}

}  // namespace

// Files of the first release hold the text's fields beside the tower's.
Expected<Architecture> outline_glm4v(const JsonObject& config) {
  const bool tied = config.boolean("tie_word_embeddings", false).value_or(false);
  const JsonObject text = nested_config(config, "text_config", config.json());
  return with_tower(glm4v_text(text, tied), config, "vision_config", "glm4v",
                    [](Architecture& arch, Fields& vision, Fields&) {
                      const GlmTower tower = read_glm_tower(vision);
                      if (vision.error()) return;
                      ParameterList p = outside(arch);
                      add_glm_tower(p, tower);
                    });
}

// --- MoonViT: Kimi-VL, Kimi K2.5, LocateAnything ---------------------------------------------------------------------
namespace {

void add_moonvit(ParameterList& p, const std::string& at, const TowerSizes& sizes, std::int64_t rows,
                 std::int64_t columns) {
  const Dimension hidden = width(sizes.hidden);
  const AxisPart heads{Axis::heads, sizes.heads, sizes.hidden / sizes.heads};
  add_patches(p, at + "patch_embed.proj", sizes.hidden, 3, sizes.patch, 0, true);
  p.add(at + "patch_embed.pos_emb.weight", {axis(Axis::position, rows), axis(Axis::position, columns), hidden});
  write_layers(p, at + "encoder.blocks", sizes.layers, [&](ParameterList& list, const std::string& layer) {
    list.layer_norm(layer + "norm0", hidden);
    list.layer_norm(layer + "norm1", hidden);
    list.linear(layer + "wqkv", hidden, {{heads, heads, heads}}, true);
    list.linear(layer + "wo", {{heads}}, hidden, true);
    add_plain(list, layer + "mlp.", sizes.hidden, sizes.ffn, true, "fc0", "fc1");
  });
  p.layer_norm(at + "encoder.final_layernorm", hidden);
}

// The projector of merged patches: as wide as they are, then as the text (Kimi), or as the text at once.
struct Projector {
  std::string norm, first, second;
  bool norms_merged = false;
};

// `k25` names fields anew.
void add_moonvit_and_projector(Architecture& arch, Fields& vision, bool k25, const Projector& projector) {
  const auto key = [&](std::string_view name) { return fmt::format("{}{}", k25 ? "vt_" : "", name); };
  TowerSizes sizes;
  sizes.hidden = vision.integer(key("hidden_size"), 1152, kMaxWidth);
  sizes.ffn = vision.integer(key("intermediate_size"), 4304, kMaxWidth);
  sizes.layers = vision.integer(key("num_hidden_layers"), 27, kMaxLayers);
  sizes.heads = vision.integer(key("num_attention_heads"), 16, kMaxWidth);
  sizes.patch = vision.integer("patch_size", 14, kMostOfSide);
  const std::int64_t rows = vision.integer("init_pos_emb_height", 64, 1 << 16);
  const std::int64_t columns = vision.integer("init_pos_emb_width", 64, 1 << 16);
  if (vision.error()) return;
  ParameterList p = outside(arch);
  add_moonvit(p, "vision_tower.", sizes, rows, columns);
  constexpr std::int64_t kMerged = 4;  // merge_kernel_size is 2 x 2 in all of them
  const Dimension merged = width(sizes.hidden * kMerged);
  const Dimension text = width(arch.hidden);
  p.layer_norm(projector.norm, projector.norms_merged ? merged : width(sizes.hidden));
  p.linear(projector.first, merged, projector.norms_merged ? text : merged, true);
  p.linear(projector.second, projector.norms_merged ? text : merged, text, true);
}

void rename_all(Architecture& arch, std::string_view prefix) {
  for (Parameter& parameter : arch.parameters) parameter.name.insert(0, prefix);
  for (Buffer& buffer : arch.buffers) buffer.name.insert(0, prefix);
  arch.layer_prefix.insert(0, prefix);
}

}  // namespace

Expected<Architecture> outline_kimi_vl(const JsonObject& config) {
  auto text = text_model(config, "text_config", "deepseek_v3", false);
  if (text) rename_all(*text, "language_model.");
  return with_tower(
      std::move(text), config, "vision_config", "kimi_vl", [](Architecture& arch, Fields& vision, Fields&) {
        add_moonvit_and_projector(
            arch, vision, false,
            {"multi_modal_projector.pre_norm", "multi_modal_projector.linear_1", "multi_modal_projector.linear_2"});
      });
}

Expected<Architecture> outline_kimi_k25(const JsonObject& config) {
  auto text = text_model(config, "text_config", "kimi_k2", false);
  if (text) rename_all(*text, "language_model.");
  return with_tower(std::move(text), config, "vision_config", "kimi_k25",
                    [](Architecture& arch, Fields& vision, Fields&) {
                      add_moonvit_and_projector(
                          arch, vision, true, {"mm_projector.pre_norm", "mm_projector.proj.0", "mm_projector.proj.2"});
                    });
}

// --- InternVL: InternViT, its tokens shuffled to a quarter
// ------------------------------------------------------------

Expected<Architecture> outline_internvl_chat(const JsonObject& config) {
  auto text = text_model(config, "llm_config", "internlm2", false);
  if (text) rename_all(*text, "language_model.");
  return with_tower(
      std::move(text), config, "vision_config", "internvl_chat", [](Architecture& arch, Fields& vision, Fields& whole) {
        const TowerSizes sizes = read_tower_sizes(vision, {3200, 12800, 48, 25, 3, 14, 224});
        const bool qkv_bias = vision.boolean("qkv_bias", false);
        const bool qk_norm = vision.boolean("qk_normalization", true);
        const double ratio = whole.number("downsample_ratio", 0.5);
        if (ratio <= 0 || ratio > 1) whole.reject("downsample_ratio", "is no share; expected more than 0, at most 1");
        if (vision.error() || whole.error()) return;
        const bool rms = vision.config().string("norm_type", "rms_norm").value_or("") == "rms_norm";
        ParameterList p = outside(arch);
        const std::string at = "vision_model.";
        const Dimension hidden = width(sizes.hidden);
        const AxisPart heads{Axis::heads, sizes.heads, sizes.hidden / sizes.heads};
        const NormKind norm = rms ? NormKind::rms : NormKind::layer;
        p.add(at + "embeddings.class_embedding", {width(1), width(1), hidden});
        p.add(at + "embeddings.position_embedding",
              {width(1), axis(Axis::position, sizes.side() * sizes.side() + 1), hidden});
        add_patches(p, at + "embeddings.patch_embedding", sizes.hidden, sizes.channels, sizes.patch, 0, true);
        write_layers(p, at + "encoder.layers", sizes.layers, [&](ParameterList& list, const std::string& layer) {
          list.linear(layer + "attn.qkv", hidden, {{heads, heads, heads}}, qkv_bias);
          if (qk_norm) {
            list.rms_norm(layer + "attn.q_norm", hidden);
            list.rms_norm(layer + "attn.k_norm", hidden);
          }
          list.linear(layer + "attn.proj", {{heads}}, hidden, true);
          add_plain(list, layer + "mlp.", sizes.hidden, sizes.ffn, true, "fc1", "fc2");
          list.norm(norm, layer + "norm1", hidden);
          list.norm(norm, layer + "norm2", hidden);
          list.add(layer + "ls1", {hidden});
          list.add(layer + "ls2", {hidden});
        });
        const auto merged = static_cast<std::int64_t>(static_cast<double>(sizes.hidden) / ratio / ratio);
        p.layer_norm("mlp1.0", width(merged));
        p.linear("mlp1.1", width(merged), width(arch.hidden), true);
        p.linear("mlp1.3", width(arch.hidden), width(arch.hidden), true);
      });
}

Expected<Architecture> outline_locateanything(const JsonObject& config) {
  auto text = text_model(config, "text_config", "qwen2", false);
  if (text) rename_all(*text, "language_model.");
  return with_tower(std::move(text), config, "vision_config", "locateanything",
                    [](Architecture& arch, Fields& vision, Fields&) {
                      add_moonvit_and_projector(arch, vision, false, {"mlp1.0", "mlp1.1", "mlp1.3", true});
                    });
}

// --- Qwen2-Audio: Whisper's encoder ----------------------------------------------------------------------------------

Expected<Architecture> outline_qwen2_audio(const JsonObject& config) {
  auto text = text_model(config, "text_config", "qwen2", false);
  if (text) rename_model(*text, "model.language_model.");
  return with_tower(
      std::move(text), config, "audio_config", "qwen2_audio", [](Architecture& arch, Fields& sound, Fields&) {
        const std::int64_t hidden = sound.integer("d_model", 1280, kMaxWidth);
        const std::int64_t mels = sound.integer("num_mel_bins", 128, kMaxWidth);
        const std::int64_t layers = sound.integer("encoder_layers", 32, kMaxLayers);
        const std::int64_t heads = sound.integer("encoder_attention_heads", 20, kMaxWidth);
        const std::int64_t ffn = sound.integer("encoder_ffn_dim", 5120, kMaxWidth);
        const std::int64_t positions = sound.integer("max_source_positions", 1500, kMaxPositions);
        if (sound.error()) return;
        ParameterList p = outside(arch);
        const std::string at = "model.audio_tower.";
        const Dimension kernel = axis(Axis::kernel, 3);
        p.add(at + "conv1.weight", {width(hidden), axis(Axis::channels, mels), kernel});
        p.add(at + "conv1.bias", {width(hidden)});
        p.add(at + "conv2.weight", {width(hidden), width(hidden), kernel});
        p.add(at + "conv2.bias", {width(hidden)});
        p.embedding(at + "embed_positions", axis(Axis::position, positions), width(hidden));
        const Block block{.hidden = hidden, .ffn = ffn, .heads = heads, .k_bias = false};
        const BlockNames names{.mlp = "", .norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"};
        write_layers(p, at + "layers", layers,
                     [&](ParameterList& list, const std::string& layer) { add_block(list, layer, block, names); });
        p.layer_norm(at + "layer_norm", width(hidden));
        p.linear("model.multi_modal_projector.linear", width(hidden), width(arch.hidden), true);
      });
}

}  // namespace ullage::model
