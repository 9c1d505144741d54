#include "model/families/encoder_decoder.h"

namespace ullage::model {

Tensor token_loss(Modules& m, const Tensor& logits, const Tensor& labels) {
  Tensor rows = tensor::view(logits, {-1, logits.size(-1)});
  Tensor targets = tensor::view(labels, {-1});
  return m.classification_loss(std::move(rows), std::move(targets));
}

// Labels that are to be ignored become padding in place.
Tensor shift_right(Modules& m, const Tensor& labels) {
  tensor::Context& context = m.context();
  const tensor::Restore<memory::Component> component(context.component, memory::Component::inputs);
  const tensor::Scope named(context, context.intern("shift_right"));
  Tensor shifted = tensor::empty(context, tensor::Op::zeros, labels.sizes(), DType::i64);
  tensor::empty(context, tensor::Op::clone, {labels.size(0), labels.size(1) - 1}, DType::i64);
  tensor::empty(context, tensor::Op::compare, labels.sizes(), DType::boolean);
  return shifted;
}

}  // namespace ullage::model
