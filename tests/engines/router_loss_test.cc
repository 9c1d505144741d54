// What a card does otherwise than fake tensors in the load-balancing loss and in flash-attn's packed sequences
// (docs/traced-and-real.md); the rest equals recordings (event_log_test.cc).
#include <gtest/gtest.h>

#include <algorithm>

#include "engines/pytorch/train.h"
#include "model/family.h"
#include "tensor/tape.h"
#include "tensor/varlen.h"

namespace ullage {
namespace {

using namespace engines::pytorch;

std::vector<std::int64_t> sizes_of(const memory::Timeline& timeline, std::string_view operation) {
  std::vector<std::int64_t> out;
  for (const memory::Block& block : timeline.blocks) {
    if (block.op != memory::kNone && timeline.names[timeline.ops[block.op].name] == operation)
      out.push_back(block.requested_bytes);
  }
  return out;
}

TEST(RouterLoss, WritesOnesIntoZerosOnACard) {
  const Json config{{"model_type", "mixtral"},     {"hidden_size", 64},        {"intermediate_size", 48},
                    {"num_hidden_layers", 2},      {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                    {"vocab_size", 200},           {"num_local_experts", 6},   {"num_experts_per_tok", 2},
                    {"output_router_logits", true}};
  const auto architecture = model::build_architecture(config, "config");
  ASSERT_TRUE(architecture);
  TrainOptions options;
  options.card = {8, 0};
  options.micro_batch = 2;
  options.seq_len = 64;
  const std::int64_t ones = 2 * 128 * 2 * 6 * 8;  // layers, tokens, choices, experts
  const auto held = [&](Kernels kernels, std::string_view operation) {
    options.kernels = kernels;
    const auto run = run_train_step(*architecture, options);
    const std::vector<std::int64_t> sizes = sizes_of(run->timeline, operation);
    return std::count(sizes.begin(), sizes.end(), ones);
  };
  EXPECT_EQ(held(Kernels::cuda, "zeros"), 1);
  EXPECT_EQ(held(Kernels::cuda, "cast"), 0);
  EXPECT_EQ(held(Kernels::cuda_traced, "zeros"), 0);
  EXPECT_EQ(held(Kernels::cuda_traced, "cast"), 1);
}

// Three sequences of 40 tokens, 4 heads of 64.
std::vector<std::int64_t> backward_of(const tensor::Policy& policy) {
  namespace t = tensor;
  t::Context context(policy);
  t::Tensor query = t::empty(context, t::Op::parameter, {120, 4, 64}, DType::bf16);
  query.impl()->leaf_requires_grad = true;
  const t::Tensor starts = t::empty(context, t::Op::pad, {4}, DType::i32);
  t::Tensor out = t::flash_attention_packed(query, query, query, {3, 40, starts, starts}, {}, true);
  t::Tensor sum = t::sum_all(out);
  t::run_backward(std::move(sum));
  return sizes_of(context.take_timeline(), "flash_attention_backward");
}

TEST(PackedSequences, TheGradientOfTheQueryIsAccumulatedInFp32OnACardOnly) {
  const std::int64_t gradient = 120 * 4 * 64 * 2;
  const std::int64_t rows = 120 + 3 * 128;
  const std::vector<std::int64_t> traced{gradient, gradient, gradient, 4 * rows * 4};
  EXPECT_EQ(backward_of(tensor::cuda_traced_policy()), traced);
  std::vector<std::int64_t> real = traced;
  real.push_back(rows * 4 * 64 * 4);
  EXPECT_EQ(backward_of(tensor::cuda_policy({8, 0})), real);
}

}  // namespace
}  // namespace ullage
