// What models share that are told each token they should give: encoders trained on masked tokens and encoder-decoders.
#pragma once

#include "model/modules.h"

namespace ullage::model {

// The layers of BART and of those that were written after it.
struct PairedLayers {
  std::int64_t hidden = 0;
  Activation activation = Activation::gelu;
  double dropout = 0;  // of what attention and feed-forward give
  double attention_dropout = 0;
  double activation_dropout = 0;
  bool key_bias = true;
  bool norms_first = false;  // norms stand in front of what they would follow
};
// A layer of one side; the decoder's attends to the encoder, too.
LayerKind paired_layer(const PairedLayers& c, std::int64_t heads, std::int64_t intermediate, bool decodes);

// Mean cross entropy of each token with the label at its own place; logits [batch, seq, vocab], labels [batch, seq].
Tensor token_loss(Modules& m, const Tensor& logits, const Tensor& labels);

// The decoder's tokens: the labels moved on by one, behind a start token.
Tensor shift_right(Modules& m, const Tensor& labels);

}  // namespace ullage::model
