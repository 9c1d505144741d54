// The modules as the transformers library writes them (5.12), on the data-less tensor library.
#pragma once

#include <vector>

#include "engines/pytorch/model_state.h"
#include "model/modules.h"

namespace ullage::engines::pytorch {

struct KeyValue {
  tensor::Tensor key;
  tensor::Tensor value;
};

class TransformersModules : public model::Modules {
 public:
  TransformersModules(tensor::Context& context, ModelState& state, const TrainOptions& options)
      : context_(context), state_(state), options_(options) {}

  tensor::Context& context() override { return context_; }
  tensor::Tensor embedding(const model::Embedding& module, tensor::Tensor ids) override;
  tensor::Tensor linear(const model::Linear& module, tensor::Tensor x) override;
  tensor::Tensor linear_in_fp32(const model::Linear& module, tensor::Tensor x) override;
  tensor::Tensor norm(const model::Norm& module, tensor::Tensor x) override;
  tensor::Tensor activation(model::Activation kind, tensor::Tensor x) override;
  tensor::Tensor dropout(double p, tensor::Tensor x) override;
  tensor::Tensor mlp(const model::Mlp& module, tensor::Tensor x) override;
  tensor::Tensor buffer(std::int32_t index) override { return state_.layer_buffer(index, context_.layer); }
  tensor::Tensor linear_by_shares(model::ParameterRef weight, tensor::Tensor x,
                                  std::span<const std::int64_t> shares) override;
  tensor::Tensor model_buffer(std::int32_t index) override { return state_.buffer(static_cast<std::size_t>(index)); }
  tensor::Tensor experts(const model::Experts& module, tensor::Tensor x, tensor::Tensor chosen,
                         tensor::Tensor weights) override;
  tensor::Tensor weight(model::ParameterRef ref) override { return parameter(ref); }
  tensor::Tensor position_ids(const tensor::Tensor& hidden) override;
  model::RotaryTables rotary(const model::Rotary& module, const tensor::Tensor& hidden,
                             tensor::Tensor position_ids) override;
  void apply_rotary(tensor::Tensor& query, tensor::Tensor& key, const model::RotaryTables& tables) override;
  model::RotaryTables& kept_rotary() override { return kept_rotary_; }
  tensor::Tensor causal_mask(std::optional<std::int64_t> window, const tensor::Tensor& hidden,
                             model::MaskSource source) override;
  void extend_past(tensor::Tensor& key, tensor::Tensor& value) override;
  // What the input embedding is to give instead of looking tokens up; empty: it looks them up.
  void give_embeddings(tensor::Tensor embeddings) { given_embeddings_ = std::move(embeddings); }
  // Of the next layer, tokens before the sequence.
  void add_past(KeyValue layer) { cache_.push_back(std::move(layer)); }
  const std::vector<KeyValue>& past() const { return cache_; }
  void drop_past();
  bool is_eager(const model::Attention& module) const override {
    return module.eager_only || options_.attention == AttentionImpl::eager;
  }
  bool is_flash() const override { return options_.attention == AttentionImpl::flash; }
  model::AttentionOutput attention(const model::Attention& module, tensor::Tensor query, tensor::Tensor key,
                                   tensor::Tensor value, tensor::Tensor mask) override;
  void cache(const model::Attention& module, tensor::Tensor& key, tensor::Tensor& value) override;
  void drop_cache();  // with the model's output
  void remember(tensor::Tensor tensor) override {
    tensor::Tensor old = std::exchange(remembered_, std::move(tensor));
    old.reset();
  }
  bool checkpoints() const override { return options_.recompute != Recompute::none; }
  tensor::Tensor layer(std::int64_t number, tensor::Region region, tensor::Tensor hidden, tensor::Tensor extra,
                       tensor::Tensor* second) override;
  tensor::Tensor causal_lm_loss(tensor::Tensor logits, tensor::Tensor labels) override;
  // The loss is a sum over so many targets instead of a mean (num_items_in_batch).
  void count_targets(tensor::Tensor count) { target_count_ = std::move(count); }
  bool counted() const { return counted_; }
  tensor::Tensor conv2d(const model::Conv2d& module, tensor::Tensor x) override;
  tensor::Tensor conv1d(const model::Conv1d& module, tensor::Tensor x) override;
  void mark_input(const tensor::Tensor& x) override;
  tensor::Tensor batch_norm2d(const model::BatchNorm2d& module, tensor::Tensor x) override;
  tensor::Tensor classification_loss(tensor::Tensor logits, tensor::Tensor labels) override;

 protected:
  tensor::Tensor plain_linear(const model::Linear& module, tensor::Tensor x);
  const tensor::Tensor& parameter(model::ParameterRef ref) const { return state_.parameter(ref, context_.layer); }
  tensor::Tensor optional_parameter(model::ParameterRef ref) const { return ref ? parameter(ref) : tensor::Tensor{}; }
  NameId scope(model::ParameterRef ref) const { return ref ? state_.module(ref, context_.layer) : context_.module; }
  ModelState& state() const { return state_; }
  const TrainOptions& options() const { return options_; }
  bool makes_eager_mask(const model::MaskSource& source) const {
    return source.eager_only || options_.attention == AttentionImpl::eager;
  }

 private:
  bool goes_without_mask(std::optional<std::int64_t> window, const model::MaskSource& source, std::int64_t seq);
  tensor::Tensor adapted_linear(const model::Linear& module, const Adapter& adapter, tensor::Tensor x);
  tensor::Tensor scaled_linear(const model::Linear& module, const Adapter& adapter, tensor::Tensor x);
  tensor::Tensor dora(const model::Linear& module, const Adapter& adapter, tensor::Tensor x, tensor::Tensor base);
  tensor::Tensor with_dora(const model::Linear& module, const Adapter& adapter, const tensor::Tensor& x,
                           const tensor::Tensor& result);
  tensor::Tensor quantised_linear(const model::Linear& module, const Quantised& weight, tensor::Tensor x);
  tensor::Tensor adapted_quantised(const model::Linear& module, const Adapter& adapter, bool four_bit,
                                   tensor::Tensor x);
  tensor::Tensor gptq_linear(const model::Linear& module, const tensor::PackedWeight& weight, tensor::Tensor x);
  tensor::Tensor awq_linear(const model::Linear& module, const tensor::PackedWeight& weight, tensor::Tensor x);
  tensor::Tensor adapted_awq(const model::Linear& module, const Adapter& adapter, tensor::Tensor x);
  tensor::Tensor update_of(const Adapter& adapter, tensor::Tensor x);
  tensor::Tensor leave_to_loss(const model::Linear& module, tensor::Tensor x);
  tensor::Tensor fused_loss(tensor::Tensor labels);
  tensor::Tensor by_count(tensor::Tensor loss);
  tensor::Tensor sliced_loss(tensor::Tensor logits, tensor::Tensor labels);
  tensor::Tensor any_linear(const model::Linear& module, tensor::Tensor x);
  tensor::Tensor full_loss(tensor::Tensor logits, tensor::Tensor labels);
  static void want_gradient(const tensor::Tensor& x);
  void update_frequencies(const model::Rotary& module, const tensor::Tensor& position_ids);

  model::AttentionOutput eager_attention(const model::Attention& module, tensor::Tensor query, tensor::Tensor key,
                                         tensor::Tensor value, tensor::Tensor mask);
  model::AttentionOutput upcast_attention(const model::Attention& module, tensor::Tensor query, tensor::Tensor key,
                                          tensor::Tensor value, tensor::Tensor mask);
  model::AttentionOutput fused_attention(const model::Attention& module, tensor::Tensor query, tensor::Tensor key,
                                         tensor::Tensor value, tensor::Tensor mask);

  model::AttentionOutput flash_attention(const model::Attention& module, tensor::Tensor query, tensor::Tensor key,
                                         tensor::Tensor value);

  model::AttentionOutput sink_attention(const model::Attention& module, tensor::Tensor query, tensor::Tensor key,
                                        tensor::Tensor value, tensor::Tensor mask);

  tensor::Tensor gate_experts(const model::Experts& module, tensor::Tensor gate_up);
  tensor::Tensor grouped_linear(const model::Experts& module, model::ParameterRef weight, tensor::Tensor x,
                                const tensor::Tensor& offsets, const tensor::Tensor& bias);
  tensor::Tensor grouped_experts(const model::Experts& module, tensor::Tensor x, tensor::Tensor chosen,
                                 tensor::Tensor weights);
  tensor::Tensor batched_linear(const model::Experts& module, tensor::Tensor x, tensor::Tensor weight,
                                const tensor::Tensor& bias);
  tensor::Tensor batched_experts(const model::Experts& module, tensor::Tensor x, tensor::Tensor chosen,
                                 tensor::Tensor weights);

  std::int64_t cached_tokens() const { return cache_.empty() ? 0 : cache_[0].key.size(2); }

  tensor::Tensor given_embeddings_;
  std::vector<KeyValue> cache_;  // by layer
  model::RotaryTables kept_rotary_;
  tensor::Tensor target_count_;
  bool counted_ = false;  // whether the last loss was a sum over them
  // What the head was given, where the loss multiplies.
  tensor::Tensor head_input_;
  tensor::Tensor head_weight_;
  tensor::Tensor remembered_;
  std::vector<tensor::Tensor> cached_;
  tensor::Context& context_;
  ModelState& state_;
  const TrainOptions& options_;
};

}  // namespace ullage::engines::pytorch
