// The parameters and buffers of one model, allocated in a context.
#pragma once

#include <vector>

#include "engines/pytorch/options.h"
#include "tensor/quantised.h"

namespace ullage::engines::pytorch {

// A frozen weight of four or of eight bits.
struct Quantised {
  tensor::FourBitWeight four;
  tensor::EightBitWeight eight;
  tensor::PackedWeight packed;
  tensor::NF4Weight nf4;
  tensor::BlockScaledWeight blocks;
  explicit operator bool() const { return four.packed || eight.codes || packed.codes || nf4.packed || blocks.codes; }
};

// What is added to a linear: out + B(A(x)) * scale, and DoRA's magnitude; or what scales its result or its input.
// Empty tensors: no adapter.
struct Adapter {
  tensor::Tensor scale;  // [out, 1] or [1, in]
  bool scales_input = false;
  tensor::Tensor a;          // [rank, in]
  tensor::Tensor b;          // [out, rank]
  tensor::Tensor magnitude;  // [out]; empty but for DoRA
  NameId a_module = 0;       // "self_attn.q_proj.lora_A"
  NameId b_module = 0;
};

class ModelState {
 public:
  ModelState(tensor::Context& context, const model::Architecture& architecture, const model::TuningPlan& plan,
             const TrainOptions& options);

  const tensor::Tensor& parameter(model::ParameterRef ref, std::int64_t layer) const;
  // Module name of a parameter, interned: "self_attn.q_proj".
  NameId module(model::ParameterRef ref, std::int64_t layer) const;
  // The adapter of a linear's weight; null: it has none.
  const Adapter* adapter(model::ParameterRef weight, std::int64_t layer) const;
  // The quantised form of a linear's weight; null: it is plain.
  const Quantised* quantised(model::ParameterRef weight, std::int64_t layer) const;
  bool adapted() const { return plan_.adapted; }
  // The table of virtual tokens; empty: there are none.
  const tensor::Tensor& virtual_tokens() const { return virtual_tokens_; }
  bool is_input_embedding(model::ParameterRef weight) const {
    return !weight.in_layer && (weight.index == input_embedding_ || weight.index == decoder_embedding_);
  }
  bool is_head(model::ParameterRef weight) const { return !weight.in_layer && weight.index == head_; }
  // How many of the first layers are a vision tower's.
  std::int64_t tower_layers() const { return tower_layers_; }
  // Distinct parameters that train, in registration order; tied ones once.
  const std::vector<tensor::Tensor>& trainable() const { return trainable_; }
  // The layer of trainable()[i].
  std::int16_t layer_of(std::size_t i) const { return layers_of_[i]; }
  // By index into the Architecture's buffers.
  const tensor::Tensor& buffer(std::size_t index) const { return buffers_[index]; }
  // By index into the buffers of the layer's kind.
  const tensor::Tensor& layer_buffer(std::int32_t index, std::int64_t layer) const {
    return layer_buffers_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(index)];
  }
  // Long RoPE registers its original frequencies in place of the copy when it first runs.
  void drop_rotary_copy(const model::Rotary& rotary) { buffers_[rotary.buffer] = buffers_[rotary.buffer + 1]; }

 private:
  void add_globals(const model::Architecture& architecture, std::size_t from, std::size_t to);
  void add_layer(const model::LayerKind& kind, const std::vector<model::ParameterRole>& roles,
                 const std::vector<NameId>& labels);
  tensor::Tensor make(const model::Parameter& parameter, NameId label, DType dtype, bool trains);
  tensor::Tensor make_weight(const model::Parameter& parameter, NameId label, const model::ParameterRole& role,
                             std::vector<Quantised>& quantised);
  const tensor::Tensor& make_quantised(Quantised& form, const tensor::Dims& shape);
  Adapter make_adapter(const model::ParameterRole& role);
  // The adapter that is registered behind parameter i, put in its weight's place.
  void add_adapter(std::vector<Adapter>& adapters, const std::vector<model::ParameterRole>& roles, std::size_t i);
  std::vector<tensor::Tensor> make_buffers(const std::vector<model::Buffer>& buffers);

  tensor::Context& context_;
  const model::TuningPlan& plan_;
  const TrainOptions& options_;
  DType dtype_;  // of what is not quantised
  DType adapter_dtype_;
  std::int32_t input_embedding_;
  std::int32_t decoder_embedding_;
  std::int32_t head_;
  std::int64_t tower_layers_;

  std::vector<tensor::Tensor> globals_;           // what the modules use: the copies, where there are any
  std::vector<tensor::Tensor> global_originals_;  // what the model came with
  std::vector<NameId> global_modules_;
  std::vector<std::vector<tensor::Tensor>> layers_;
  std::vector<tensor::Tensor> layer_originals_;  // those that a copy replaces
  std::vector<std::vector<NameId>> kind_modules_;
  std::vector<std::uint8_t> kinds_;
  std::vector<Adapter> global_adapters_;              // as globals_; empty without adapters
  std::vector<std::vector<Adapter>> layer_adapters_;  // as layers_
  std::vector<Quantised> global_quantised_;
  std::vector<std::vector<Quantised>> layer_quantised_;
  tensor::Tensor virtual_tokens_;
  std::vector<tensor::Tensor> buffers_;
  std::vector<std::vector<tensor::Tensor>> layer_buffers_;
  std::vector<tensor::Tensor> trainable_;
  std::vector<std::int16_t> layers_of_;
};

}  // namespace ullage::engines::pytorch
