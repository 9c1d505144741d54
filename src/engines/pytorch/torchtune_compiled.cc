// torchtune's layers under compile=True (torchtune/training/_compile.py): each is one graph. Embedding, last norm and
// head run as they are.
#include "engines/pytorch/torchtune.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::LayerKind;
using t::CompiledProduct;
using t::Tensor;

CompiledProduct TorchtuneModules::compiled_linear(const model::Linear& module, Tensor x, Tensor for_adapter) {
  CompiledProduct made;
  made.out = base_product(module, std::move(x));
  const Adapter* adapter = state().adapter(module.weight, context().layer);
  if (adapter == nullptr) return made;
  const auto factor = [&](const Tensor& weight, NameId name, Tensor h) {
    const t::Scope named(context(), name);
    return t::linear(std::move(h), weight, {});
  };
  Tensor dropped = t::compiled_dropout(std::move(for_adapter), options().lora_dropout);
  Tensor low = factor(adapter->a, adapter->a_module, std::move(dropped));
  made.update = factor(adapter->b, adapter->b_module, std::move(low));
  return made;
}

namespace {

// A kernel's result for the products that read it, and their adapters.
class Source {
 public:
  Source(TorchtuneModules& m, t::Readers readers) : m_(m), readers_(std::move(readers)) {}

  CompiledProduct product(const model::Linear& module) {
    Tensor x = next();
    Tensor for_adapter = next();
    return m_.compiled_linear(module, std::move(x), std::move(for_adapter));
  }

 private:
  Tensor next() { return std::move(readers_[used_++]); }

  TorchtuneModules& m_;
  t::Readers readers_;
  std::size_t used_ = 0;
};

constexpr std::size_t kEach = 2;  // readers of a product's input

// The kernel that reads a product sums it; what the adapter added lives until then.
Tensor sum_of(const CompiledProduct& product) {
  return product.update ? t::compiled_scaled_add(product.out, product.update) : product.out;
}

Source norm(TorchtuneModules& m, const model::Norm& module, Tensor x, std::size_t products) {
  return {m, t::compiled_rms_norm(std::move(x), m.weight(module.weight), kEach * products)};
}

Tensor heads_of(const CompiledProduct& product, std::int64_t head_dim) {
  Tensor sum = sum_of(product);
  const t::Dims sizes{sum.size(0), sum.size(1), -1, head_dim};
  return t::view(std::move(sum), sizes);
}

Tensor attention(TorchtuneModules& m, const model::Attention& a, Source x, const Tensor& cache) {
  const std::int64_t times = a.heads / a.kv_heads;
  Tensor query;
  {
    const CompiledProduct product = x.product(a.q);
    query = t::compiled_rotary(heads_of(product, a.head_dim), cache, 1);
  }
  Tensor key;
  {
    const CompiledProduct product = x.product(a.k);
    key = t::compiled_rotary(heads_of(product, a.head_dim), cache, times);
  }
  Tensor value;
  {
    const CompiledProduct product = x.product(a.v);
    value = t::compiled_repeat_heads(heads_of(product, a.head_dim), times);
  }
  const t::Scope named(m.context(), m.context().intern("attention"));
  const t::Dims merged{query.size(0), query.size(2), a.heads * a.head_dim};
  Tensor out = t::scaled_dot_product_attention(std::move(query), std::move(key), std::move(value), {}, 0, false);
  out = t::transpose(std::move(out), 1, 2);
  return t::reshape(std::move(out), merged);
}

CompiledProduct feed_forward(TorchtuneModules& m, const model::Mlp& mlp, Source x) {
  CompiledProduct gate = x.product(mlp.gate);
  CompiledProduct up = x.product(mlp.up);
  Source gated(m, t::compiled_gate(gate, up, kEach));
  CompiledProduct down = gated.product(mlp.down);
  return down;
}

}  // namespace

Tensor torchtune_compiled_layer(TorchtuneModules& m, const LayerKind& kind, Tensor x_in, const Tensor& cache) {
  const Tensor x = std::move(x_in);
  Tensor attended = attention(m, kind.attention, norm(m, kind.input_norm, x, 3), cache);
  CompiledProduct product = m.compiled_linear(kind.attention.o, attended, attended);
  attended.reset();
  const Tensor h = t::compiled_add(sum_of(product), x);
  Source second = norm(m, kind.post_attention_norm, h, 2);
  product = {};
  product = feed_forward(m, kind.mlp, std::move(second));
  return t::compiled_add(sum_of(product), h);
}

}  // namespace ullage::engines::pytorch
