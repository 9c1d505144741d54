// Qwen3-VL (transformers: models/qwen3_vl/modeling_qwen3_vl.py, models/qwen3_vl_moe/modeling_qwen3_vl_moe.py). The text
// models are Qwen3's but for their positions.
#include "model/families/qwen3_vl.h"

#include "model/families/moe.h"
#include "model/families/qwen.h"
#include "model/families/qwen_images.h"
#include "model/families/qwen_moe.h"
#include "model/families/vision_language.h"
#include "tensor/masked_rows.h"

namespace ullage::model {
namespace {

DecoderConfig read_text(Fields& fields) {
  DecoderConfig c = read_decoder(
      fields, {.vocab = 151936, .intermediate = 22016, .kv_heads = 32, .head_dim = 128, .max_positions = 128000});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.rotary.form = RotaryForm::interleaved;
  return c;
}

DecoderConfig read_sparse_text(Fields& fields) {
  DecoderConfig c = read_decoder(fields, {.vocab = 151936,
                                          .hidden = 2048,
                                          .intermediate = 5632,
                                          .layers = 24,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .max_positions = 128000,
                                          .null_kv_heads = false});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  read_sparse_layers(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.rotary.form = RotaryForm::interleaved;
  read_qwen_mixture(fields, c, {.experts = 60, .top_k = 4, .intermediate = 1408});
  refuse_router_loss(fields, "the load-balancing loss of a vision-language model is not modelled");
  c.mixture.normalizes = true;  // its router has no choice
  return c;
}

// _deepstack_process: what the tower saw is added to the image tokens of a copy.
Tensor add_deep(const Tensor& hidden, const Tensor& mask, const Tensor& features) {
  const Tensor cast = tensor::to(features, hidden.dtype());
  Tensor copy = tensor::clone_in_graph(hidden);
  Tensor picked = tensor::index_by_mask(copy, mask, cast.size(0));
  const Tensor sum = tensor::add(std::move(picked), cast);
  tensor::put_by_mask(copy, mask, sum);
  return copy;
}

Tensor text_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, qwen3_attention, std::move(hidden), rotary, std::move(mask));
}

// All that the tower gave stays bound to the end.
Tensor multimodal_model(Modules& m, const Architecture& arch, LayerFunction layer, const Tensor& ids,
                        const Images& images) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  ImageFeatures seen = qwen_image_features(m, arch, images);
  Tensor features = tensor::cat(seen.by_image, 0);
  features = tensor::to(features, embeds.dtype());
  const Placed placed = place_images(m, ids, std::move(embeds), std::move(features), true);
  const Tensor positions = qwen_token_positions(m, arch, images, ids);
  const auto between = [&](std::int64_t number, Tensor hidden) {
    if (number >= static_cast<std::int64_t>(seen.deep.size())) return hidden;
    return add_deep(hidden, placed.image_mask, seen.deep[static_cast<std::size_t>(number)]);
  };
  Tensor hidden = call(
      [&](Tensor x, Tensor position_ids) {
        return run_text_model(m, arch, std::move(x), std::move(position_ids), {layer, false, between});
      },
      placed.embeds, positions);
  for (std::vector<Tensor>* list : {&seen.by_image, &seen.deep}) {
    for (Tensor& tensor : *list) tensor.reset();
  }
  return hidden;
}

Output run(Modules& m, const Architecture& arch, LayerFunction layer, const Batch& batch) {
  const Tensor hidden =
      call([&](Tensor ids) { return multimodal_model(m, arch, layer, ids, batch.images); }, batch.inputs);
  return finish_language_model(m, arch, hidden, batch);
}

// There may be fewer layers of text than mergers.
void mark_unused_mergers(Architecture& arch, std::int64_t text_layers) {
  for (std::size_t i = 0; i < arch.vision.deep_mergers.size(); ++i) {
    if (static_cast<std::int64_t>(i) < text_layers) continue;
    const PatchMerger& merger = arch.vision.deep_mergers[i];
    for (const ParameterRef ref : {merger.norm.weight, merger.norm.bias, merger.up.weight, merger.up.bias,
                                   merger.down.weight, merger.down.bias}) {
      arch.parameters[static_cast<std::size_t>(ref.index)].unused = true;
    }
  }
}

using TextConfig = DecoderConfig (*)(Fields& fields);
using TextKind = LayerKind (*)(const DecoderConfig& c, const LayerTraits& traits);

Expected<Architecture> build(const JsonObject& config, std::string_view family, TextConfig read_config, TextKind kind) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  const JsonObject text = nested_config(config, "text_config", none);
  Fields vision_fields(vision);
  Fields text_fields(text);
  Fields whole(config);
  const TowerConfig tower = read_qwen3_tower(vision_fields);
  DecoderConfig c = read_config(text_fields);
  c.tied = whole.boolean("tie_word_embeddings", false);
  for (const Fields* fields : {&vision_fields, &text_fields, &whole}) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  if (auto fit = check_widths(vision_fields, "out_hidden_size", tower.out_hidden, c.hidden); !fit)
    return tl::unexpected<Error>(fit.error());
  Architecture out = join(qwen_tower(tower), decoder(c, family, NormKind::rms, kind), family);
  mark_unused_mergers(out, c.layers);
  return out;
}

}  // namespace

Expected<Architecture> build_qwen3_vl(const JsonObject& config) {
  return build(config, "qwen3_vl", read_text, qwen3_dense_kind);
}

Expected<Architecture> build_qwen3_vl_moe(const JsonObject& config) {
  return build(config, "qwen3_vl_moe", read_sparse_text, qwen3_sparse_kind);
}

Output forward_qwen3_vl(Modules& m, const Architecture& arch, Batch batch) { return run(m, arch, text_layer, batch); }

Output forward_qwen3_vl_moe(Modules& m, const Architecture& arch, Batch batch) {
  return run(m, arch, qwen3_moe_layer, batch);
}

}  // namespace ullage::model
