// LLaVA (transformers: models/llava/modeling_llava.py).
#include "model/families/llava.h"

#include <fmt/core.h>

#include "model/families/clip_vision.h"
#include "model/families/llama.h"
#include "model/families/qwen.h"
#include "model/families/vision_language.h"

namespace ullage::model {
namespace {

// The configuration class's own tower.
const Json& default_tower() {
  static const Json kTower{{"hidden_size", 1024}, {"intermediate_size", 4096}, {"patch_size", 14},
                           {"image_size", 336},   {"num_hidden_layers", 24},   {"num_attention_heads", 16}};
  return kTower;
}

struct Choice {
  std::string_view model_type;
  Expected<Architecture> (*build)(const JsonObject& config);
};

// Text models whose layers are Llama's.
constexpr Choice kTexts[] = {{"llama", build_llama}, {"mistral", build_mistral}, {"qwen2", build_qwen2}};

Expected<Architecture> build_text(const JsonObject& text) {
  const auto type = text.string("model_type", "llama");
  if (!type) return tl::unexpected<Error>(type.error());
  for (const Choice& choice : kTexts) {
    if (choice.model_type == *type) return choice.build(text);
  }
  return fail(
      ErrorCode::unsupported, text.where("model_type"),
      fmt::format("a text model of type '{}' behind this tower is not in this version; known are llama, mistral "
                  "and qwen2",
                  excerpt(*type)));
}

struct LlavaConfig {
  VisionConfig tower;
  Activation activation = Activation::gelu;
  bool bias = true;
  bool keeps_class = false;
  std::int64_t feature_output = 0;  // among the tower's outputs, its embeddings first
};

void read_tower_type(Fields& fields) {
  const auto type = fields.config().string("model_type", "clip_vision_model");
  if (!type) fields.reject(type.error());
  else if (*type != "clip_vision_model")
    fields.reject("model_type", fmt::format("a tower of type '{}' is not in this version; known is clip_vision_model",
                                            excerpt(*type)));
}

void read_feature_layer(Fields& fields, LlavaConfig& c) {
  constexpr std::string_view kKey = "vision_feature_layer";
  const Json* given = fields.config().find(kKey);
  const std::int64_t outputs = c.tower.layers + 1;
  std::int64_t at = -2;
  if (given != nullptr && given->is_number_integer() && *given >= -outputs && *given < outputs) {
    at = given->get<std::int64_t>();
  } else if (given != nullptr) {
    fields.reject(kKey, fmt::format("{} is no number of one of {} outputs; several are not in this version",
                                    value_excerpt(*given), outputs));
  }
  c.feature_output = at < 0 ? outputs + at : at;
}

void read_strategy(Fields& fields, LlavaConfig& c) {
  constexpr std::string_view kKey = "vision_feature_select_strategy";
  const auto strategy = fields.config().string(kKey, "default");
  if (!strategy) return fields.reject(strategy.error());
  c.keeps_class = *strategy == "full";
  if (!c.keeps_class && *strategy != "default")
    fields.reject(kKey, fmt::format("'{}' is not known; choose default or full", excerpt(*strategy)));
}

LayerKind unused(LayerKind kind) {
  kind.name += " (unused)";
  for (Parameter& parameter : kind.parameters) parameter.unused = true;
  return kind;
}

// What lies behind the output that is taken runs, but no gradient ever reaches it.
Architecture tower_of(const LlavaConfig& c) {
  const std::string prefix = "model.vision_tower.";
  Architecture arch;
  arch.encoder_prefix = prefix + "encoder.layers.";
  arch.encoder_layers = c.tower.layers;
  Vision& v = arch.vision;
  v.patch = c.tower.patch_size;
  v.channels = c.tower.channels;
  v.size = c.tower.image_size;
  v.whole_images = true;
  v.keeps_class = c.keeps_class;
  v.feature_output = c.feature_output;
  add_clip_embeddings(arch, c.tower, prefix);
  arch.encoder_at = arch.parameters.size();
  arch.kinds.push_back(clip_vision_layer(c.tower));
  arch.kinds.push_back(unused(clip_vision_layer(c.tower)));
  for (std::int64_t i = 0; i < c.tower.layers; ++i) arch.layers.push_back(i < c.feature_output ? 0 : 1);
  add_clip_post_norm(arch, c.tower, prefix);
  for (const ParameterRef ref : {arch.tower.post_norm.weight, arch.tower.post_norm.bias}) {
    arch.parameters[static_cast<std::size_t>(ref.index)].unused = true;
  }
  return arch;
}

void add_projector(Architecture& arch, const LlavaConfig& c, std::int64_t text_hidden) {
  ParameterList p(arch.parameters, false);
  const Dimension text = axis(Axis::hidden, text_hidden);
  Mlp& projector = arch.projector;
  projector.gated = false;
  projector.activation = c.activation;
  projector.up = p.linear("model.multi_modal_projector.linear_1", axis(Axis::hidden, c.tower.hidden), text, c.bias);
  projector.down = p.linear("model.multi_modal_projector.linear_2", text, text, c.bias);
}

// get_image_features: tokens image by image. The outputs of all blocks, and the last norm's, live until they are made.
std::vector<Tensor> image_features(Modules& m, const Architecture& arch, Tensor pixels) {
  std::vector<Tensor> outputs;
  const ClipVisionOutput seen =
      call([&](Tensor x) { return clip_vision_tower(m, arch, arch.encoder_layers, x, &outputs); }, std::move(pixels));
  Tensor taken = outputs[static_cast<std::size_t>(arch.vision.feature_output)];
  if (!arch.vision.keeps_class) taken = tensor::slice(std::move(taken), 1, 1, seen.last.size(1));
  Tensor tokens = call([&](Tensor x) { return m.mlp(arch.projector, x); }, taken);
  for (Tensor& output : outputs) output.reset();
  return tensor::unbind(std::move(tokens), 0);
}

struct ModelOutput {
  Tensor hidden;
  Tensor images;
};

ModelOutput multimodal_model(Modules& m, const Architecture& arch, const Tensor& ids, const Images& images) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  Tensor features;
  {
    std::vector<Tensor> by_image = image_features(m, arch, images.pixels);
    features = tensor::cat(by_image, 0);
    features = tensor::to(features, embeds.dtype());
    for (Tensor& image : by_image) image.reset();
  }
  const Placed placed = place_images(m, ids, std::move(embeds), std::move(features), false);
  ModelOutput out;
  out.images = placed.images;
  out.hidden = call(
      [&](Tensor x) {
        const Tensor positions = m.position_ids(x);
        return run_text_model(m, arch, x, positions, {llama_layer, true, nullptr});
      },
      placed.embeds);
  return out;
}

}  // namespace

Expected<Architecture> build_llava(const JsonObject& config) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", default_tower());
  const JsonObject text = nested_config(config, "text_config", none);
  Fields vision_fields(vision);
  Fields whole(config);
  LlavaConfig c;
  read_tower_type(vision_fields);
  c.tower = read_clip_vision(vision_fields);
  c.activation = whole.activation("projector_hidden_act", "gelu");
  c.bias = whole.boolean("multimodal_projector_bias", true);
  read_feature_layer(whole, c);
  read_strategy(whole, c);
  const bool tied = whole.boolean("tie_word_embeddings", false);
  for (const Fields* fields : {&vision_fields, &whole}) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  return build_text(text).map([&](Architecture built) {
    if (tied)
      built.parameters[static_cast<std::size_t>(built.head.weight.index)].tied_to = built.embedding.weight.index;
    Architecture tower = tower_of(c);
    add_projector(tower, c, built.hidden);
    return join(std::move(tower), std::move(built), "llava");
  });
}

Output forward_llava(Modules& m, const Architecture& arch, Batch batch) {
  const ModelOutput seen = call([&](Tensor ids) { return multimodal_model(m, arch, ids, batch.images); }, batch.inputs);
  Output out = finish_language_model(m, arch, seen.hidden, batch);
  out.encoder_hidden = seen.images;
  return out;
}

}  // namespace ullage::model
