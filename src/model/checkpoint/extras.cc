#include "model/checkpoint/extras.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/bytes.h"
#include "model/checkpoint/predictors.h"
#include "model/checkpoint/scales.h"

namespace ullage::model {
namespace {

std::int64_t persistent_elements(const Architecture& architecture) {
  std::int64_t out = stored_elements(architecture.buffers);
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer)
    out = add_saturated(out, stored_elements(architecture.kind_of(layer).buffers));
  return out;
}

// --- what older releases stored --------------------------------------------------------------------------------------

bool has_tied_head(const Architecture& architecture) {
  const ParameterRef& head = architecture.head.weight;
  return head && !head.in_layer && architecture.parameters[static_cast<std::size_t>(head.index)].tied_to.has_value();
}

// Families whose classes once registered frequencies (and GPT-NeoX's masks, too) in every layer's attention. What
// Kimi K2's checkpoints hold of them are those of a head as wide as the hidden state over the number of heads.
StoredExtra frequencies_of(const Architecture& architecture) {
  StoredExtra out{Extra::frequencies, false, 0, "transformers 4.28, models/llama and models/gpt_neox"};
  if (architecture.family == "llama" || architecture.family == "gpt_neox")
    out.elements = architecture.layer_count() * (architecture.rotary.dim / 2);
  if (architecture.family == "kimi_k2" && !architecture.layers.empty()) {
    const std::int64_t heads = architecture.kind_of(0).attention.heads;
    out.elements = heads == 0 ? 0 : architecture.layer_count() * (architecture.hidden / heads / 2);
    out.source = "the counts of published checkpoints, whose loaders skip rotary_emb.inv_freq";
  }
  return out;
}

StoredExtra masks_of(const Architecture& architecture) {
  StoredExtra out{Extra::masks, false, 0, "transformers 4.28, models/gpt_neox"};
  if (architecture.family == "gpt_neox")
    out.elements = multiply_saturated(architecture.layer_count(),
                                      multiply_saturated(architecture.max_positions, architecture.max_positions));
  return out;
}

}  // namespace

std::vector<StoredExtra> stored_extras(const Architecture& architecture, const JsonObject& config) {
  std::vector<StoredExtra> out;
  const auto add = [&](StoredExtra extra) {
    if (extra.elements > 0) out.push_back(extra);
  };
  add({Extra::buffers, true, persistent_elements(architecture), "the class's persistent buffers"});
  const std::optional<Predictors> predictors = predictors_of(architecture, config);
  const Scales scales = scales_of(architecture, config, predictors);
  std::int64_t certain_scales = scales.elements;
  if (predictors) {
    StoredExtra extra{Extra::predictors, predictors->said,
                      multiply_saturated(predictors->count, predictors->elements()), predictors->source};
    // Scales of layers that may not be there come with them.
    std::int64_t& with = extra.certain ? certain_scales : extra.elements;
    with = add_saturated(with, scales.of_predictors);
    add(extra);
  }
  add({Extra::scales, true, certain_scales, scales.source});
  if (has_tied_head(architecture))
    add({Extra::tied_head, false, multiply_saturated(architecture.vocab, architecture.hidden),
         "checkpoints saved without regard to the sharing"});
  add(frequencies_of(architecture));
  add(masks_of(architecture));
  return out;
}

}  // namespace ullage::model
