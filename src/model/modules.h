// The modules that a family's forward is written in. An engine implements them in the flavour it models, on the
// data-less tensor library.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "tensor/ops.h"

namespace ullage::model {

using tensor::Tensor;

// A module call keeps its arguments until it returns, as nn.Module.__call__ does through its argument tuple; a plain
// function lets them go when it rebinds them. Write call(f, x) where Python writes self.f(x).
template <class Function, class... Arguments>
auto call(Function&& function, Arguments... arguments) {
  const std::tuple<Arguments...> held(std::move(arguments)...);
  return std::apply(function, held);
}

// cos and sin of the rotary embedding, [1, seq, dim] in the type of their form ([3, batch, seq, dim] with sections);
// empty without one. Where the form is complex, `cos` holds both.
struct RotaryTables {
  Tensor cos;
  Tensor sin;
  RotaryForm form = RotaryForm::halves;
  std::array<std::int64_t, 3> sections{};  // as in Rotary
};

// What an attention function returns: output [batch, seq, heads, dim] and, where they were made, the probabilities.
struct AttentionOutput {
  Tensor output;
  Tensor weights;
};

// What the model hands to the function that makes its causal mask.
struct MaskSource {
  Tensor padding;               // which tokens count, [batch, seq]; models that make one themselves
  bool positions = true;        // positions, which are searched for packed sequences
  bool more_functions = false;  // a function of the model's own, so that the mask is always made
  bool eager_only = false;      // the model knows no fused kernel
};

class Modules {
 public:
  virtual ~Modules() = default;
  Modules() = default;
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  virtual tensor::Context& context() = 0;

  virtual Tensor embedding(const Embedding& module, Tensor ids) = 0;
  virtual Tensor linear(const Linear& module, Tensor x) = 0;
  virtual Tensor linear_in_fp32(const Linear& module, Tensor x) = 0;  // casts both sides; without a bias
  virtual Tensor norm(const Norm& module, Tensor x) = 0;
  virtual Tensor activation(Activation kind, Tensor x) = 0;
  virtual Tensor dropout(double p, Tensor x) = 0;
  virtual Tensor mlp(const Mlp& module, Tensor x) = 0;
  // Of the current layer, by index.
  virtual Tensor buffer(std::int32_t index) = 0;
  // The rows of x in consecutive shares, each times its own matrix of `weight` [shares, out, in].
  virtual Tensor linear_by_shares(ParameterRef weight, Tensor x, std::span<const std::int64_t> shares) = 0;
  // Of the model, by index.
  virtual Tensor model_buffer(std::int32_t index) = 0;
  // x [tokens, hidden] through the experts `chosen` [tokens, top_k] for each token, weighted [tokens, top_k] and
  // summed.
  virtual Tensor experts(const Experts& module, Tensor x, Tensor chosen, Tensor weights) = 0;

  // A parameter of the model or of the running layer, for modules that are written out.
  virtual Tensor weight(ParameterRef ref) = 0;

  // [1, seq], from 0.
  virtual Tensor position_ids(const Tensor& hidden) = 0;
  // Which tokens count, those before the sequence included, [batch, tokens] in i64, where the caller of the model says
  // so; empty otherwise.
  virtual Tensor counted_tokens() { return {}; }
  virtual RotaryTables rotary(const Rotary& module, const Tensor& hidden, Tensor position_ids) = 0;
  // query and key [batch, heads, seq, dim], replaced by the rotated ones.
  virtual void apply_rotary(Tensor& query, Tensor& key, const RotaryTables& tables) = 0;
  // Tables that the model itself keeps from one forward pass to the next; empty before the first.
  virtual RotaryTables& kept_rotary() = 0;
  // The causal mask that attention needs, [batch, 1, seq, seq] in the hidden type; empty where the kernel knows
  // causality. With a window a query sees that many tokens, itself included.
  virtual Tensor causal_mask(std::optional<std::int64_t> window, const Tensor& hidden, MaskSource source = {}) = 0;
  // Puts keys and values of tokens before the sequence in front, [batch, heads, tokens, dim], and keeps them where a
  // cache is kept; where there are none and none is kept, nothing happens.
  virtual void extend_past(Tensor& key, Tensor& value) = 0;
  // Whether attention is composed of products and a softmax instead of one kernel; for modules that write both out.
  virtual bool is_eager(const Attention& module) const = 0;
  // Whether it is the flash-attn package's function; for modules that call it by themselves.
  virtual bool is_flash() const = 0;
  // query, key and value [batch, heads, seq, dim]; the caller keeps what it gets for
  // as long as its attention module runs.
  virtual AttentionOutput attention(const Attention& module, Tensor query, Tensor key, Tensor value, Tensor mask) = 0;

  // Puts key and value into the cache that the model returns with its output: copies take their place. Not where layers
  // are checkpointed.
  virtual void cache(const Attention& module, Tensor& key, Tensor& value) = 0;
  // Keeps a tensor beyond the forward pass, in place of the one before.
  virtual void remember(Tensor tensor) = 0;

  // What a layer's router gave, [tokens, experts]: kept where somebody collects it (families/router_loss.h). A layer
  // that runs again for the backward pass adds nothing.
  void keep_router_logits(const Tensor& logits) {
    if (router_logits_ != nullptr) router_logits_->push_back(logits);
  }
  // Collects into the given list, or nowhere; gives back where it went before.
  std::vector<Tensor>* collect_router_logits(std::vector<Tensor>* into) { return std::exchange(router_logits_, into); }

  // Whether layers are checkpointed.
  virtual bool checkpoints() const = 0;
  // Runs one layer, checkpointed where the set-up says so.
  // `extra` is a second positional tensor (GPT-2 passes its mask so): a reentrant checkpoint lets go of it with its
  // saved tensors, while what the region captures lives as long as the graph.
  // `second` is the name under which the caller holds what the layer returns beside its output, from one layer to the
  // next.
  virtual Tensor layer(std::int64_t number, tensor::Region region, Tensor hidden, Tensor extra = {},
                       Tensor* second = nullptr) = 0;
  // Mean cross entropy of the next token; logits [batch, seq, vocab], labels [batch, seq].
  virtual Tensor causal_lm_loss(Tensor logits, Tensor labels) = 0;

  // Images, [batch, channels, height, width]; batch norm in training mode.
  virtual Tensor conv2d(const Conv2d& module, Tensor x) = 0;
  virtual Tensor conv1d(const Conv1d& module, Tensor x) = 0;  // x [batch, channels, length]
  // Where a frozen model's layers are checkpointed, what its first module gives is made to want a gradient.
  virtual void mark_input(const Tensor& x) = 0;
  virtual Tensor batch_norm2d(const BatchNorm2d& module, Tensor x) = 0;
  // Mean cross entropy; logits [batch, classes], labels [batch].
  virtual Tensor classification_loss(Tensor logits, Tensor labels) = 0;

 private:
  std::vector<Tensor>* router_logits_ = nullptr;
};

// One image for each sequence, all of one size.
struct Images {
  Tensor pixels;  // [patches, values of a patch] in fp32, or [batch, channels, height, width]
  Tensor grids;   // frames, height and width in patches, [batch, 3]
  Tensor kinds;   // of the tokens: text or image, [batch, seq]
  std::int64_t patches_of_side = 0;
};

// What a forward pass is given. Labels may be empty: then there is no loss.
struct Batch {
  Tensor inputs;  // token ids [batch, seq], images [batch, channels, height, width] or sound [batch, mels, frames]
  Tensor labels;
  Images images;                    // of a vision-language model
  std::int64_t logits_to_keep = 0;  // the head is given so many of the last tokens; 0: all
};

// What the model returns; the caller owns it, so the logits live until it lets go.
struct Output {
  Tensor loss;
  Tensor logits;
  Tensor encoder_hidden;  // of an encoder-decoder; of a tower, what was put among the text
  Tensor balance;         // the load-balancing loss, where there is one, and what it was made of
  std::vector<Tensor> router_logits;
};

}  // namespace ullage::model
