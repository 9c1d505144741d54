// PyTorch's operators, without data: what each allocates, aliases, saves for backward and frees, with its FLOPs and
// bytes moved. Names and arguments follow torch's; dimensions may be negative.
//
// Operators take tensors by value and hold them exactly as long as they run, like Python's argument stack: move what
// must not live longer. Never put two calls that allocate into one expression; the order of evaluation differs
// between compilers.
#pragma once

#include <span>
#include <vector>

#include "tensor/context.h"

namespace ullage::tensor {

// --- creation ----------------------------------------------------------------------------------------------------
Tensor empty(Context& context, Op op, const Dims& sizes, DType dtype);
Tensor ones_like(const Tensor& like);
Tensor zeros_like(const Tensor& like);

// --- views (no memory) ---------------------------------------------------------------------------------------------
Tensor view(Tensor x, Dims sizes);  // one size may be -1; the strides must allow it
Tensor transpose(Tensor x, int a, int b);
Tensor unsqueeze(Tensor x, int at);
Tensor squeeze(Tensor x, int at);  // a dimension of size one
Tensor expand(Tensor x, const Dims& sizes);
Tensor slice(Tensor x, int dim, std::int64_t from, std::int64_t to);
Tensor slice(Tensor x, int dim, std::int64_t from, std::int64_t to, std::int64_t step);
Tensor select(Tensor x, int dim, std::int64_t index);  // one index, without the dimension
// Equal parts of `size` along `dim`, or parts of the given sizes.
std::vector<Tensor> split(Tensor x, std::int64_t size, int dim);
// One for each of `sizes`, which add up to the whole.
std::vector<Tensor> split(Tensor x, std::span<const std::int64_t> sizes, int dim);
// One for each index of `dim`, without it.
std::vector<Tensor> unbind(Tensor x, int dim);
// fp32 [..., 2] as complex64 [...] and back.
Tensor view_as_complex(Tensor x);
Tensor view_as_real(Tensor x);
std::vector<Tensor> split(Tensor x, std::initializer_list<std::int64_t> sizes, int dim);

// --- copies ----------------------------------------------------------------------------------------------------------
Tensor clone(const Tensor& x, const Dims& strides);  // outside of the graph, with the given strides
Tensor clone_in_graph(Tensor x);                     // with x's strides
Tensor contiguous(Tensor x);                         // the same tensor if it is already
Tensor copy_contiguous(Tensor x);                    // a copy even then
Tensor reshape(Tensor x, Dims sizes);                // a view where possible, else a copy
Tensor to(Tensor x, DType dtype);                    // the same tensor if it already has the type
Tensor cat(std::vector<Tensor> parts, int dim);
Tensor stack_last(std::vector<Tensor> parts);   // along a new last dimension
Tensor pad_last(Tensor x, std::int64_t right);  // integers only: no gradient
// `into`, which has no gradient, with x's entries along the last dimension where `columns` names them; in place
// (index_copy_) or as a copy (index_copy).
Tensor index_copy_last(Tensor into, Tensor columns, Tensor x, bool in_place);
Tensor repeat_first(Tensor x, std::int64_t times);  // the first dimension, which has one element; a copy always
// One index of `dim`, given as a list from the host: a copy that keeps the dimension.
Tensor take_one(Tensor x, int dim);

// --- elementwise -----------------------------------------------------------------------------------------------------
Tensor add(Tensor a, Tensor b);
Tensor sub(Tensor a, Tensor b);
Tensor mul(Tensor a, Tensor b);
Tensor complex_mul(Tensor x, Tensor factor);          // complex64; the factor has no gradient
Tensor div(Tensor a, Tensor b);                       // b is no part of the graph
void add_in_place(const Tensor& a, const Tensor& b);  // no graph
Tensor add_scalar(Tensor x);
Tensor mul_scalar(Tensor x);
Tensor div_scalar(Tensor x);
Tensor neg(Tensor x);
Tensor pow_scalar(Tensor x);
Tensor rsqrt(Tensor x);
Tensor cos(Tensor x);
Tensor log(Tensor x);  // no gradient
Tensor sin(Tensor x);
Tensor tanh(Tensor x);
Tensor sigmoid(Tensor x);
Tensor silu(Tensor x);
Tensor gelu(Tensor x);  // both the exact one and the tanh approximation
Tensor relu(Tensor x);
Tensor clamp(Tensor x);                           // on both sides
Tensor clamp(Tensor x, Tensor low, Tensor high);  // by tensors without dimensions and gradient
Tensor clamp_above(Tensor x);                     // on one side
// gelu_tanh as an autograd function of elementary operators that saves its input alone and computes the rest again.
Tensor gelu_by_hand(Tensor x);
// A number takes the place of x where `mask`, of Booleans, is false.
Tensor where(Tensor mask, Tensor x, Tensor number);
Tensor normalize_last(Tensor x);     // each row divided by its length (torch.nn.functional.normalize)
Tensor dropout(Tensor x, double p);  // training mode; the same tensor if p is 0
// `x` itself becomes the result (torch's inplace=True); it must own its graph position and be nobody's view.
void relu_in_place(const Tensor& x);
// These need the input in backward, so a graph keeps a copy of it.
void clamp_view_in_place(const Tensor& x);  // of a view of a contiguous whole of the same size
void hardtanh_in_place(const Tensor& x);    // ReLU6 too
void iadd(const Tensor& x, Tensor y);       // x += y, recorded
void mul_scalar_in_place(const Tensor& x);
void div_scalar_in_place(const Tensor& x);

// --- reductions ------------------------------------------------------------------------------------------------------
// Over the last dimension, kept. With `keeps_input`, which PyTorch did before 2.2, backward holds on to x.
Tensor mean_last(Tensor x, bool keeps_input = false);
Tensor mean_dim(Tensor x, int dim);  // over one dimension, which goes
Tensor sum_all(Tensor x);
Tensor sum_to(Tensor x, const Dims& sizes);  // undoes a broadcast; no graph
Tensor softmax(Tensor x, DType dtype);       // over the last dimension, computed and returned in dtype
Tensor softmax(Tensor x);                    // no dtype given: its own, under autocast fp32
Tensor log_softmax(Tensor x);

// --- matrix products -------------------------------------------------------------------------------------------------
// x [..., in], weight [out, in], bias [out] or empty.
Tensor linear(Tensor x, Tensor weight, Tensor bias);
// x [..., in], weight [in, out], bias [out] (GPT-2's Conv1D).
Tensor conv1d_addmm(Tensor x, Tensor weight, Tensor bias);
// Batched, [..., n, k] x [..., k, m], leading sizes broadcast; or [..., k] x [k, m].
Tensor matmul(Tensor a, Tensor b);
// alpha * a @ b, and `out`, which has no gradient, broadcast and added unless beta is 0.
Tensor baddbmm(Tensor out, Tensor a, Tensor b);

// --- routing to experts
// ------------------------------------------------------------------------------------------------
struct Ranked {
  Tensor values;
  Tensor indices;  // int64, no gradient
};
Ranked topk(Tensor x, std::int64_t k);                   // over the last dimension
Ranked max_last(Tensor x, bool keep);                    // over the last dimension
Ranked sort(Tensor x);                                   // integers only: no gradient
Tensor index_rows(Tensor x, Tensor rows);                // x[rows], rows of any sizes
Tensor index_rows_by_host(Tensor x, std::int64_t rows);  // x[rows] with a list of rows that lives on the host
// Zeros, [rows, n], with each row of x added to the row that `rows` names; only x has a gradient.
Tensor index_add(Tensor x, Tensor rows, std::int64_t into);
Tensor gather_last(Tensor x, Tensor indices);      // along the last dimension
Tensor repeat_rows(Tensor x, std::int64_t times);  // each row of [rows, n] so many times, one behind the other
Tensor scatter_value(Tensor x, Tensor indices);    // x with a number at each row's indices
// factor * picked, with a gradient of its own for the scores that `gates` come from (PhimoeMultiplier); `picked` and
// `gates` get none.
Tensor mixer_multiplier(Tensor scores, Tensor picked, Tensor chosen, Tensor gates, Tensor factor);
Tensor masked_fill(Tensor x, Tensor mask);
void masked_fill_in_place(const Tensor& x, Tensor mask);  // recorded
// x with the elements of `source`, one after the other, where `mask` says so; the mask is broadcast.
Tensor masked_scatter(Tensor x, Tensor mask, Tensor source);
Tensor sum_dim(Tensor x, int dim, bool keep);
// x *= factor, which has no gradient; recorded. The second one does so through a view of x in the factor's shape.
void mul_in_place(const Tensor& x, Tensor factor);
void mul_view_in_place(const Tensor& x, Tensor factor);
void div_in_place(const Tensor& x, Tensor y);  // x /= y, recorded; a graph keeps a copy of x as it was
// x.squeeze(at) += y, recorded.
void add_to_squeezed(const Tensor& x, int at, Tensor y);
// Rows of x [rows, in] in consecutive groups that end at `offsets` [groups], each times its own matrix of
// weight [groups, in, out].
Tensor grouped_mm(Tensor x, Tensor weight, Tensor offsets);

// --- networks --------------------------------------------------------------------------------------------------------
Tensor embedding(Tensor weight, Tensor ids);
Tensor layer_norm(Tensor x, Tensor weight, Tensor bias);  // weight and bias may be empty
Tensor rms_norm(Tensor x, Tensor weight);                 // over the last dimension, by one kernel
// Attention over [batch, heads, seq, dim]; key and value may have fewer heads. `mask` may be empty: then it is causal
// where `causal` says so.
Tensor scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor mask, double dropout_p, bool grouped,
                                    bool causal = true);
// The function of the flash-attn package (2.x), for half precision; it knows windows and groups of heads by itself.
// What it allocates: csrc/flash_attn/flash_api.cpp and flash_attn_interface.py of its version 2.8.
Tensor flash_attention(Tensor query, Tensor key, Tensor value, bool causal);
// logits [n, classes], targets [n]; mean reduction.
Tensor cross_entropy(Tensor logits, Tensor targets);
// The loss of each target by itself: [n].
Tensor cross_entropy_each(Tensor logits, Tensor targets);
// The same of x [n, hidden] times weight [classes, hidden], whose logits never exist as a whole (Liger).
Tensor fused_linear_cross_entropy(Tensor x, Tensor weight, Tensor targets);

// x [n, channels, h, w], weight [out, in/groups, kh, kw], bias [out] or empty; square stride and padding.
struct Convolution {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
};
Tensor conv2d(Tensor x, Tensor weight, Tensor bias, Convolution options);
// x [n, channels, length], weight [out, in/groups, kernel].
Tensor conv1d(Tensor x, Tensor weight, Tensor bias, Convolution options);
// x [n, channels, depth, h, w] by a kernel as large as itself, weight [out, channels, depth, h, w]: [n, out, 1, 1, 1].
Tensor conv3d_whole(Tensor x, Tensor weight, Tensor bias);
// Training mode: the running statistics, [channels] each, are updated in place and saved; on CUDA those of the batch
// are fp32 for half precision.
Tensor batch_norm(Tensor x, Tensor weight, Tensor bias, Tensor running_mean, Tensor running_var);
struct Pool2d {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};
Tensor max_pool2d(Tensor x, Pool2d options);
Tensor avg_pool2d(Tensor x, Pool2d options);
Tensor adaptive_avg_pool2d(Tensor x, std::int64_t out);  // to out x out pixels

}  // namespace ullage::tensor
