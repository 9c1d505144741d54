#include "engines/pytorch/causal_mask.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Dims;
using t::Op;
using t::Tensor;

namespace {

// The functions below make 0-dimensional and broadcast truth values as and_masks() does: it starts from a single one.

// Ahead of the query, or further back than the window reaches: [1, 1, seq, seq].
Tensor within_window(t::Context& context, const Dims& square) {
  Tensor result = t::empty(context, Op::ones_like, {}, DType::boolean);
  Tensor condition;
  {
    const Tensor oldest = t::empty(context, Op::sub, {1, 1, square[2], 1}, DType::i64);
    condition = t::empty(context, Op::compare, square, DType::boolean);
  }
  result = t::empty(context, Op::logical_and, square, DType::boolean);
  condition.reset();
  condition = t::empty(context, Op::compare, square, DType::boolean);
  return t::empty(context, Op::logical_and, square, DType::boolean);
}

// Not ahead of the query, nor further back than a window reaches, and a token that counts: [batch, 1, seq, seq].
Tensor unpadded(t::Context& context, std::optional<std::int64_t> window, std::int64_t batch, const Dims& square) {
  Tensor result = t::empty(context, Op::ones_like, {}, DType::boolean);
  {
    const Tensor condition =
        window ? within_window(context, square) : t::empty(context, Op::compare, square, DType::boolean);
    result = t::empty(context, Op::logical_and, square, DType::boolean);
  }
  const Tensor counts = t::empty(context, Op::index, {batch, 1, 1, square[3]}, DType::boolean);
  return t::empty(context, Op::logical_and, {batch, 1, square[2], square[3]}, DType::boolean);
}

// Not ahead of the query, and what a function of the model's own says (always yes), by vmap: one index of each
// dimension at a time, so that results have those dimensions alone that were used; and of several sequences a token
// that counts.
Tensor by_vmap(t::Context& context, std::int64_t batch, bool padded, const Dims& square) {
  const Dims plane{square[2], square[3]};
  Tensor all = padded ? t::empty(context, Op::ones_like, {square[2]}, DType::boolean) : Tensor{};
  Tensor result = t::empty(context, Op::ones_like, {square[2]}, DType::boolean);
  {
    const Tensor condition = t::empty(context, Op::compare, plane, DType::boolean);
    result = t::empty(context, Op::logical_and, plane, DType::boolean);
  }
  {
    const Tensor yes = t::empty(context, Op::cast, {}, DType::boolean);
    result = t::empty(context, Op::logical_and, plane, DType::boolean);
  }
  if (!padded) return t::view(std::move(result), square);
  result = t::empty(context, Op::logical_and, plane, DType::boolean);
  all.reset();
  const Tensor counts = t::empty(context, Op::index, {batch, square[3]}, DType::boolean);
  Tensor out = t::empty(context, Op::logical_and, {batch, square[2], square[3]}, DType::boolean);
  return t::view(std::move(out), {batch, 1, square[2], square[3]});
}

}  // namespace

Tensor allowed_keys(t::Context& context, std::optional<std::int64_t> window, const model::MaskSource& source,
                    const MaskShape& shape) {
  const auto [batch, seq, keys] = shape;
  const Dims square{1, 1, seq, keys};
  const Tensor batch_index = t::empty(context, Op::arange, {batch}, DType::i64);
  const Tensor head_index = t::empty(context, Op::arange, {1}, DType::i64);
  Tensor query_index = t::empty(context, Op::arange, {seq}, DType::i64);
  query_index = t::add_scalar(std::move(query_index));
  Tensor key_index = t::empty(context, Op::arange, {keys}, DType::i64);
  key_index = t::add_scalar(std::move(key_index));
  if (source.more_functions) return by_vmap(context, batch, bool(source.padding), square);
  if (source.padding) return unpadded(context, window, batch, square);
  if (window) return within_window(context, square);
  return t::empty(context, Op::compare, square, DType::boolean);
}

}  // namespace ullage::engines::pytorch
