// Qwen2-VL and Qwen2.5-VL (transformers: models/qwen2_vl/modeling_qwen2_vl.py,
// models/qwen2_5_vl/modeling_qwen2_5_vl.py). The text model is Qwen2's but for its rotary embedding.
#include "model/families/qwen_vl.h"

#include <fmt/core.h>

#include <numeric>

#include "model/families/llama.h"
#include "model/families/qwen.h"
#include "model/families/qwen_images.h"
#include "model/families/vision_language.h"

namespace ullage::model {
namespace {

// Where the rotary embedding's form stands, if anywhere; the old name wins.
const Json* rotary_form(const JsonObject& text) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const Json* form = text.find(key);
    if (form != nullptr && form->is_object() && !form->empty()) return form;
  }
  return nullptr;
}

// "mrope" is what the class itself calls the default form.
Json without_mrope(const JsonObject& text) {
  Json copy = text.json();
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!copy.contains(key) || !copy[key].is_object()) continue;
    for (const char* type : {"rope_type", "type"}) {
      if (copy[key].contains(type) && copy[key][type] == "mrope") copy[key][type] = "default";
    }
  }
  return copy;
}

void read_sections(Fields& fields, Rotary& rotary) {
  const Json* form = rotary_form(fields.config());
  const Json* given = form != nullptr && form->contains("mrope_section") ? &(*form)["mrope_section"] : nullptr;
  const auto wrong = [&](std::string_view what) {
    fields.reject("rope_scaling", fmt::format("mrope_section {}; expected three numbers of pairs, for time, height and "
                                              "width, that add up to half a head, {}",
                                              what, rotary.dim / 2));
  };
  if (given == nullptr) return wrong("is missing");
  if (!given->is_array() || given->size() != rotary.sections.size()) return wrong("is no list of three");
  for (std::size_t i = 0; i < rotary.sections.size(); ++i) {
    const Json& entry = (*given)[i];
    if (!entry.is_number_integer() || entry < 0 || entry > kMaxWidth) return wrong("holds what is no such number");
    rotary.sections[i] = entry.get<std::int64_t>();
  }
  const std::int64_t sum = std::accumulate(rotary.sections.begin(), rotary.sections.end(), std::int64_t{0});
  if (sum != rotary.dim / 2) wrong(fmt::format("adds up to {}", sum));
}

DecoderConfig read_text(Fields& fields) {
  DecoderConfig c = read_decoder(fields, {.vocab = 152064,
                                          .hidden = 8192,
                                          .intermediate = 29568,
                                          .layers = 80,
                                          .heads = 64,
                                          .kv_heads = 8,
                                          .max_positions = 32768});
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  c.qkv_bias = true;
  read_qwen_windows(fields, c, 80);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.rotary.type = "default";  // its forward pass updates no frequencies
  c.rotary.form = RotaryForm::sections;
  read_sections(fields, c.rotary);
  return c;
}

Expected<Architecture> build(const JsonObject& config, std::string_view family,
                             TowerConfig (*read_tower)(Fields& fields), std::string_view width_key) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  Fields vision_fields(vision);
  const TowerConfig tower = read_tower(vision_fields);
  // Published files hold the text model's fields beside the tower's.
  const JsonObject nested = nested_config(config, "text_config", config.json());
  const Json plain = without_mrope(nested);
  const JsonObject text(plain, nested.where());
  Fields text_fields(text);
  DecoderConfig c = read_text(text_fields);
  Fields whole(config);
  c.tied = whole.boolean("tie_word_embeddings", false);
  for (const Fields* fields : {&vision_fields, &text_fields, &whole}) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  if (auto fit = check_widths(vision_fields, width_key, tower.out_hidden, c.hidden); !fit)
    return tl::unexpected<Error>(fit.error());
  return join(qwen_tower(tower), decoder(c, family, NormKind::rms, llama_kind), family);
}

// All three are projected before the first is taken apart.
AttentionOutput text_attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const auto project = [&](const Linear& linear) {
    return call([&](Tensor h) { return m.linear(linear, h); }, hidden);
  };
  const auto by_head = [&](Tensor& x) {
    x = split_heads(std::move(x), a.head_dim);
    x = tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q);
  Tensor key = project(a.k);
  Tensor value = project(a.v);
  by_head(query);
  by_head(key);
  by_head(value);
  return attend(m, a, std::move(query), std::move(key), std::move(value), rotary, std::move(mask));
}

Tensor text_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  return pre_norm_layer(m, layer, text_attention, std::move(hidden), rotary, std::move(mask));
}

Tensor multimodal_model(Modules& m, const Architecture& arch, const Tensor& ids, const Images& images) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  Tensor features;
  {
    std::vector<Tensor> of_images = qwen_image_features(m, arch, images).by_image;
    features = tensor::cat(of_images, 0);
    features = tensor::to(features, embeds.dtype());
    for (Tensor& image : of_images) image.reset();
  }
  const Placed placed = place_images(m, ids, std::move(embeds), std::move(features), true);
  const Tensor positions = qwen_token_positions(m, arch, images, ids);
  return call(
      [&](Tensor x, Tensor position_ids) {
        return run_text_model(m, arch, std::move(x), std::move(position_ids), {text_layer, false, nullptr});
      },
      placed.embeds, positions);
}

}  // namespace

Expected<Architecture> build_qwen2_vl(const JsonObject& config) {
  return build(config, "qwen2_vl", read_qwen2_tower, "hidden_size");
}

Expected<Architecture> build_qwen2_5_vl(const JsonObject& config) {
  return build(config, "qwen2_5_vl", read_qwen2_5_tower, "out_hidden_size");
}

Output forward_qwen2_vl(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return multimodal_model(m, arch, ids, batch.images); }, batch.inputs);
  return finish_language_model(m, arch, hidden, batch);
}

}  // namespace ullage::model
