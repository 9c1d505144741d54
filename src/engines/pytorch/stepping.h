// What the optimizers are written with: parameters one after the other or, as torch's foreach functions take them, in
// lists of one type.
#pragma once

#include <vector>

#include "engines/pytorch/model_state.h"
#include "tensor/ops.h"

namespace ullage::engines::pytorch {

using States = std::vector<tensor::Tensor>;  // of one parameter, in the order of their making
using Group = std::vector<std::size_t>;      // indices into ModelState::trainable()
using TensorList = std::vector<tensor::Tensor>;

// One step over the parameters; all members outlive it.
struct Stepping {
  tensor::Context& context;
  const ModelState& model;
  const TrainOptions& options;
  std::vector<States>& states;  // by parameter
};

// Work over all parameters at once is named after the optimizer, layer by layer.
class PerParameter {
 public:
  PerParameter(const Stepping& s, std::size_t i) : PerParameter(s.context, s.model, i) {}
  PerParameter(tensor::Context& context, const ModelState& model, std::size_t i)
      : layer_(context.layer, model.layer_of(i)) {
    context.begin_section(context.layer);
  }

 private:
  tensor::Restore<std::int16_t> layer_;
};

// One tensor for each parameter of the group, as a foreach function returns them.
template <class Make>
TensorList make_list(const Stepping& s, const Group& group, Make make) {
  TensorList out;
  out.reserve(group.size());
  for (const std::size_t i : group) {
    const PerParameter section(s, i);
    out.push_back(make(i));
  }
  return out;
}

inline void release(const Stepping& s, const Group& group, TensorList& list) {
  for (std::size_t k = 0; k < list.size(); ++k) {
    const PerParameter section(s, group[k]);
    list[k].reset();
  }
  list.clear();
}

// A Python name for a list: bound again, it keeps the old list until the new one exists.
class BoundList {
 public:
  explicit BoundList(const Stepping& s) : s_(s) {}
  ~BoundList() { release(s_, group_, list_); }
  BoundList(const BoundList&) = delete;
  BoundList& operator=(const BoundList&) = delete;

  void bind(const Group& group, TensorList list) {
    release(s_, group_, list_);
    group_ = group;
    list_ = std::move(list);
  }
  void unbind() { release(s_, group_, list_); }

 private:
  const Stepping& s_;
  Group group_;
  TensorList list_;
};

// A new tensor in the memory order of `like`, by an operator that reads it.
inline tensor::Tensor unary_like(const Stepping& s, tensor::Op op, const tensor::Tensor& like) {
  s.context.record_op(op, like.numel(), 2 * like.bytes());
  return s.context.make_in_order_of(like, like.dtype());
}

// The parameters as lists of one type each (Optimizer._group_tensors_by_device_and_dtype).
std::vector<Group> groups_by_type(const Stepping& s, const Group& parameters);
Group all_parameters(const ModelState& model);

// --- one step of each optimizer over the parameters named -----------------------------------------------------------
void step_adam(const Stepping& s, const Group& parameters, OptimizerImpl impl);
void step_adagrad(const Stepping& s, const Group& parameters);
void step_rmsprop(const Stepping& s, const Group& parameters);
void step_lion(const Stepping& s, const Group& parameters);
void step_adafactor(const Stepping& s, const Group& parameters);
void step_muon(const Stepping& s, const Group& parameters);
// A kernel that works in place.
void step_in_place(const Stepping& s, const Group& parameters, tensor::Op op);

// Whether torch.optim.Muon takes parameter i: a matrix of a layer.
bool is_muon_matrix(const ModelState& model, std::size_t i);

}  // namespace ullage::engines::pytorch
