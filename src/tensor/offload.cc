#include "tensor/offload.h"

#include <algorithm>

namespace ullage::tensor {

SavedOffload::SavedOffload(Context& context, Rules rules) : context_(context), rules_(rules) { context.offload = this; }

Tensor SavedOffload::on_host(const Tensor& tensor) {
  const Restore<memory::Space> space(context_.space, memory::Space::host_pinned);
  const Restore<memory::Component> component(context_.component, memory::Component::activations);
  context_.record_op(Op::copy, 0, tensor.bytes());
  return context_.make_in_order_of(tensor, tensor.dtype());
}

Tensor SavedOffload::on_device(const Tensor& copy) {
  const Restore<std::uint8_t> stream(context_.stream, std::uint8_t{1});
  const Restore<memory::Component> component(context_.component, memory::Component::activations);
  context_.record_op(Op::copy, 0, copy.bytes());
  return context_.make_in_order_of(copy, copy.dtype());
}

std::uint32_t SavedOffload::pack(const Tensor& tensor) {
  const std::uint32_t number = ++last_;
  if (tensor.impl()->is_parameter || tensor.bytes() < rules_.smallest_bytes) return 0;
  while (!leaving_.empty() && leaving_.front().number + rules_.window <= number) leaving_.pop_front();
  away_.push_back({number, on_host(tensor)});
  leaving_.push_back({number, tensor});
  return number;
}

Tensor SavedOffload::unpack(std::uint32_t number) {
  const auto is_it = [&](const Numbered& entry) { return entry.number == number; };
  if (used_.empty()) used_before_ = back_.size();
  const auto left = std::find_if(leaving_.begin(), leaving_.end(), is_it);
  const auto copy = std::find_if(away_.begin(), away_.end(), is_it);
  Tensor out;
  if (left != leaving_.end()) {
    out = left->tensor;
  } else {
    out = on_device(copy->tensor);
    back_.push_back({number, out});
  }
  used_.push_back({number, left == leaving_.end()});
  away_.erase(copy);
  return out;
}

// The hooks that were laid on the node, one for each use, in that order.
void SavedOffload::let_go() {
  for (const Use& use : used_) {
    if (use.brought) {
      const auto found =
          std::find_if(back_.begin(), back_.end(), [&](const Numbered& entry) { return entry.number == use.number; });
      const TensorImpl& impl = *found->tensor.impl();
      if (impl.refs > 1 || impl.storage->refs > 1) back_.erase(found);
    }
    while (!leaving_.empty()) leaving_.pop_front();
    for (; used_before_ > 0; --used_before_) back_.pop_front();
  }
  used_.clear();
}

void SavedOffload::end_of_backward() {
  if (!used_.empty()) let_go();
  while (!back_.empty()) back_.pop_front();
}

}  // namespace ullage::tensor
