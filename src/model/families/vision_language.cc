#include "model/families/vision_language.h"

#include <fmt/core.h>

namespace ullage::model {
namespace {

using tensor::Op;

void move_on(ParameterRef& ref, std::size_t by) {
  if (ref && !ref.in_layer) ref.index += static_cast<std::int32_t>(by);
}

constexpr std::string_view kBefore = "model.";
constexpr std::string_view kText = "model.language_model.";

void rename(std::string& name) {
  if (name.starts_with(kBefore)) name.replace(0, kBefore.size(), kText);
}

}  // namespace

JsonObject nested_config(const JsonObject& whole, std::string_view key, const Json& otherwise) {
  const Json* nested = whole.find(key);
  const bool given = nested != nullptr && nested->is_object();
  return {given ? *nested : otherwise, given || &otherwise != &whole.json() ? whole.where(key) : whole.where()};
}

Expected<void> check_widths(const Fields& tower, std::string_view key, std::int64_t tower_width,
                            std::int64_t text_width) {
  if (tower_width == text_width) return {};
  return fail(ErrorCode::malformed, tower.config().where(key),
              fmt::format("{}, but the text model's tokens have {}; make them equal", tower_width, text_width));
}

Architecture join(Architecture tower, Architecture text, std::string_view family) {
  const std::size_t parameters = tower.parameters.size();
  const std::size_t buffers = tower.buffers.size();
  const std::size_t kinds = tower.kinds.size();
  Architecture out = std::move(text);
  for (LayerKind& kind : out.kinds) kind.attention.caches = true;
  out.family = family;
  out.vision = tower.vision;
  out.tower = tower.tower;
  out.projector = tower.projector;
  out.encoder_layers = tower.encoder_layers;
  out.encoder_at = tower.encoder_at;
  out.encoder_prefix = tower.encoder_prefix;
  for (Parameter& parameter : out.parameters) {
    rename(parameter.name);
    if (parameter.tied_to) *parameter.tied_to += static_cast<std::int32_t>(parameters);
  }
  for (Buffer& buffer : out.buffers) rename(buffer.name);
  rename(out.layer_prefix);
  for (ParameterRef* ref : {&out.embedding.weight, &out.final_norm.weight, &out.head.weight}) move_on(*ref, parameters);
  out.layers_at += parameters;
  out.rotary.buffer += buffers;
  for (std::uint8_t& kind : out.layers) kind = static_cast<std::uint8_t>(kind + kinds);
  out.parameters.insert(out.parameters.begin(), tower.parameters.begin(), tower.parameters.end());
  out.buffers.insert(out.buffers.begin(), tower.buffers.begin(), tower.buffers.end());
  out.kinds.insert(out.kinds.begin(), tower.kinds.begin(), tower.kinds.end());
  out.layers.insert(out.layers.begin(), tower.layers.begin(), tower.layers.end());
  return out;
}

Placed place_images(Modules& m, const Tensor& ids, Tensor embeds, Tensor images, bool knows_videos) {
  tensor::Context& context = m.context();
  const tensor::Scope named(context, context.intern("placeholder_mask"));
  Placed out;
  out.images = std::move(images);
  {
    out.image_mask = tensor::empty(context, Op::compare, ids.sizes(), DType::boolean);
    if (knows_videos) out.video_mask = tensor::empty(context, Op::compare, ids.sizes(), DType::boolean);
    const Tensor counted = tensor::empty(context, Op::sum, {}, DType::i64);
    {
      Tensor equal;
      {
        const Tensor elements = tensor::empty(context, Op::mul, {}, DType::i64);
        equal = tensor::empty(context, Op::compare, {}, DType::boolean);
      }
      tensor::empty(context, Op::logical_and, {}, DType::boolean);
    }
    if (knows_videos) tensor::empty(context, Op::sum, {}, DType::i64);
  }
  Tensor mask = tensor::unsqueeze(out.image_mask, -1);
  out.embeds = tensor::masked_scatter(std::move(embeds), std::move(mask), out.images);
  return out;
}

Tensor run_text_model(Modules& m, const Architecture& arch, Tensor embeds, Tensor position_ids, const TextRun& run) {
  std::vector<Tensor> masks;
  MaskSource source;
  source.positions = run.shares_positions;
  for (const auto& window : arch.mask_windows) masks.push_back(m.causal_mask(window, embeds, source));
  Tensor hidden = embeds;
  Tensor output;  // of a layer, which stays bound until the next one's
  const Tensor shared = run.shares_positions ? position_ids : Tensor{};
  const RotaryTables rotary = m.rotary(arch.rotary, hidden, position_ids);
  for (std::int64_t i = arch.encoder_layers; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    output = m.layer(
        i,
        [&m, &kind, layer = run.layer, rotary, mask = masks[kind.attention.mask], shared](Tensor x, Tensor) {
          return layer(m, kind, std::move(x), rotary, mask);
        },
        hidden);
    hidden = output;
    if (run.between) hidden = run.between(i - arch.encoder_layers, hidden);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  for (Tensor& mask : masks) mask.reset();
  return hidden;
}

Output finish_language_model(Modules& m, const Architecture& arch, const Tensor& hidden, const Batch& batch) {
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, tensor::slice(hidden, 1, 0, hidden.size(1)));
  if (batch.labels) out.loss = m.causal_lm_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
