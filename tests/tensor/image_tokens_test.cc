// What putting image tokens among text takes on a card beyond what a tracer sees (PyTorch 2.14:
// aten/src/ATen/native/cuda/IndexKernel.cpp, TensorAdvancedIndexing.cpp).
#include <gtest/gtest.h>

#include "tensor/masked_rows.h"
#include "tensor/ops.h"
#include "tensor/tape.h"

namespace ullage::tensor {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kWidth = 32;
constexpr std::int64_t kImageTokens = 5;
constexpr std::int64_t kElements = kTokens * kWidth;

Policy exact(Policy policy) {
  policy.granularity_bytes = 1;
  return policy;
}

// Sizes of what is allocated from `start` on, in order.
Sizes allocated(Context& context, std::size_t start) {
  Sizes out;
  for (std::size_t i = start; i < context.timeline().events.size(); ++i) {
    const memory::Event& event = context.timeline().events[i];
    if (event.kind == memory::EventKind::alloc) out.push_back(context.timeline().blocks[event.block].requested_bytes);
  }
  return out;
}

Tensor leaf(Context& context, const Dims& sizes) {
  Tensor x = context.make(sizes, DType::f32);
  x.impl()->leaf_requires_grad = true;
  return x;
}

struct Run {
  Sizes forward;
  Sizes backward;
};

Run scatter(const Policy& policy) {
  Context context(exact(policy));
  Tensor source = leaf(context, {kImageTokens, kWidth});
  const Tensor x = context.make({1, kTokens, kWidth}, DType::f32);
  const Tensor mask = context.make({1, kTokens, 1}, DType::boolean);
  std::size_t start = context.timeline().events.size();
  Tensor out = masked_scatter(x, mask, source);
  Run run;
  run.forward = allocated(context, start);
  Tensor sum = sum_all(std::move(out));
  start = context.timeline().events.size();
  run_backward(std::move(sum));
  run.backward = allocated(context, start);
  return run;
}

TEST(ImageTokens, AreCountedByAPrefixSumOverTheExpandedMask) {
  const std::int64_t whole = kElements * 4;
  EXPECT_EQ(scatter(cuda_traced_policy()).forward, Sizes{whole});
  EXPECT_EQ(scatter(cuda_policy()).forward, (Sizes{whole, kElements * 8, kElements}));
}

TEST(ImageTokens, TheirGradientIsSelectedByTheNumbersOfAllElements) {
  const std::int64_t tokens = kImageTokens * kWidth;
  const Sizes traced = scatter(cuda_traced_policy()).backward;
  const Sizes real = scatter(cuda_policy()).backward;
  ASSERT_GE(traced.size(), 1u);
  EXPECT_EQ(traced.back(), tokens * 4);
  ASSERT_GE(real.size(), 3u);
  EXPECT_EQ(Sizes(real.end() - 3, real.end()), (Sizes{kElements, tokens * 3 * 8, tokens * 4}));
}

Sizes picked(const Policy& policy) {
  Context context(exact(policy));
  const Tensor x = context.make({1, kTokens, kWidth}, DType::f32);
  const Tensor mask = context.make({1, kTokens}, DType::boolean);
  const std::size_t start = context.timeline().events.size();
  const Tensor rows = index_by_mask(x, mask, kImageTokens);
  return allocated(context, start);
}

TEST(ImageTokens, RowsAreFoundByTheirNumbers) {
  const std::int64_t rows = kImageTokens * kWidth * 4;
  EXPECT_EQ(picked(cuda_traced_policy()), Sizes{rows});
  EXPECT_EQ(picked(cuda_policy()), (Sizes{kImageTokens * 2 * 8, rows}));
}

Sizes reordered(const Policy& policy) {
  Context context(exact(policy));
  const Tensor x = context.make({kTokens, kWidth}, DType::f32);
  const std::size_t start = context.timeline().events.size();
  const Tensor rows = index_rows_by_host(x, kTokens);
  return allocated(context, start);
}

TEST(ImageTokens, AListOfRowsOnTheHostIsCopiedToTheCardFirst) {
  EXPECT_EQ(reordered(cuda_traced_policy()), Sizes{kElements * 4});
  EXPECT_EQ(reordered(cuda_policy()), (Sizes{kTokens * 8, kElements * 4}));
}

}  // namespace
}  // namespace ullage::tensor
