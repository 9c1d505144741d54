#include "model/families/router_loss.h"

#include <algorithm>

namespace ullage::model {
namespace {

using tensor::Op;

// Which experts each token goes to, as zeros and ones. PyTorch scatters ones into zeros; on fake tensors it compares
// with all numbers (ATen/native/Onehot.cpp).
Tensor one_hot(const Tensor& chosen, std::int64_t experts) {
  tensor::Context& context = chosen.context();
  const tensor::Dims sizes{chosen.size(0), chosen.size(1), experts};
  if (!context.policy().traced) return tensor::empty(context, Op::zeros, sizes, DType::i64);
  const Tensor numbers = tensor::empty(context, Op::arange, {experts}, DType::i64);
  const Tensor equal = tensor::empty(context, Op::compare, sizes, DType::boolean);
  return tensor::to(equal, DType::i64);
}

// load_balancing_loss_func
Tensor balance_of(const Mixture& mixture, const std::vector<Tensor>& router_logits) {
  const Tensor logits = tensor::cat(router_logits, 0);
  const Tensor weights = tensor::softmax(logits);
  const tensor::Ranked top = tensor::topk(weights, mixture.top_k);
  const Tensor mask = one_hot(top.indices, mixture.experts.count);
  Tensor tokens;
  {
    Tensor counts = tensor::to(mask, DType::f32);
    tokens = tensor::mean_dim(std::move(counts), 0);
  }
  const Tensor probabilities = tensor::mean_dim(weights, 0);
  Tensor products;
  {
    Tensor row = tensor::unsqueeze(probabilities, 0);
    products = tensor::mul(tokens, std::move(row));
  }
  const Tensor sum = tensor::sum_all(std::move(products));
  return tensor::mul_scalar(sum);
}

}  // namespace

void add_balance(const Architecture& arch, Output& out) {
  const auto sparse = std::find_if(arch.kinds.begin(), arch.kinds.end(),
                                   [](const LayerKind& kind) { return kind.mixture.experts.count > 0; });
  // A kind that no layer has gives no logits.
  if (sparse == arch.kinds.end() || out.router_logits.empty()) return;
  out.balance = balance_of(sparse->mixture, out.router_logits);
  if (!out.loss) return;
  Tensor share = tensor::mul_scalar(out.balance);
  tensor::iadd(out.loss, std::move(share));
}

}  // namespace ullage::model
