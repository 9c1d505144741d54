// Qwen3-VL (transformers: models/qwen3_vl/modeling_qwen3_vl.py). The text model is Qwen3's but for its positions.
#include "model/families/qwen3_vl.h"

#include "model/families/qwen.h"
#include "model/families/qwen_images.h"
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
Tensor multimodal_model(Modules& m, const Architecture& arch, const Tensor& ids, const Images& images) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  ImageFeatures seen = qwen_image_features(m, arch, images);
  Tensor features = tensor::cat(seen.by_image, 0);
  features = tensor::to(features, embeds.dtype());
  const Placed placed = place_images(m, ids, std::move(embeds), std::move(features), true);
  const Tensor positions = qwen_token_positions(m, arch, images, ids);
  const auto between = [&](std::int64_t layer, Tensor hidden) {
    if (layer >= static_cast<std::int64_t>(seen.deep.size())) return hidden;
    return add_deep(hidden, placed.image_mask, seen.deep[static_cast<std::size_t>(layer)]);
  };
  Tensor hidden = call(
      [&](Tensor x, Tensor position_ids) {
        return run_text_model(m, arch, std::move(x), std::move(position_ids), text_layer, between);
      },
      placed.embeds, positions);
  for (std::vector<Tensor>* list : {&seen.by_image, &seen.deep}) {
    for (Tensor& tensor : *list) tensor.reset();
  }
  return hidden;
}

}  // namespace

Expected<Architecture> build_qwen3_vl(const JsonObject& config) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  const JsonObject text = nested_config(config, "text_config", none);
  Fields vision_fields(vision);
  Fields text_fields(text);
  Fields whole(config);
  const TowerConfig tower = read_qwen3_tower(vision_fields);
  DecoderConfig c = read_text(text_fields);
  c.tied = whole.boolean("tie_word_embeddings", false);
  for (const Fields* fields : {&vision_fields, &text_fields, &whole}) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  if (auto fit = check_widths(vision_fields, "out_hidden_size", tower.out_hidden, c.hidden); !fit)
    return tl::unexpected<Error>(fit.error());
  return join(qwen_tower(tower), decoder(c, "qwen3_vl", NormKind::rms, qwen3_dense_kind), "qwen3_vl");
}

Output forward_qwen3_vl(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return multimodal_model(m, arch, ids, batch.images); }, batch.inputs);
  return finish_language_model(m, arch, hidden, batch);
}

}  // namespace ullage::model
