// What operator rows (operator_rows_test.cc) do not show of the operators on images: work done, and edges.
#include <gtest/gtest.h>

#include "tensor/ops.h"
#include "tensor/tape.h"
#include "tensor/windows.h"

namespace ullage::tensor {
namespace {

TEST(Windows, AreCountedAsTorchDoes) {
  EXPECT_EQ(window_positions(224, 7, 2, 3), 112);  // ResNet's first convolution
  EXPECT_EQ(window_positions(224, 11, 4, 2), 55);  // AlexNet's
  EXPECT_EQ(window_positions(55, 3, 2, 0), 27);
  EXPECT_EQ(window_positions(12, 3, 1, 1), 12);
  EXPECT_EQ(window_positions(3, 3, 2, 0), 1);
  EXPECT_EQ(window_positions(2, 3, 2, 0), 0);  // one pixel short, where division would round towards zero
  EXPECT_EQ(window_positions(0, 3, 2, 0), 0);
}

struct Convolution {
  Context context{cuda_policy()};
  Tensor x;
  Tensor weight;
  Tensor bias;

  Convolution(std::int64_t channels, std::int64_t out, std::int64_t groups)
      : x(context.make({2, channels, 10, 10}, DType::f32)),
        weight(context.make({out, channels / groups, 3, 3}, DType::f32)),
        bias(context.make({out}, DType::f32)) {}
};

TEST(Conv2d, CountsTwoOperationsForEachMultiplyAccumulate) {
  Convolution plain(6, 8, 1);
  const Tensor out = conv2d(plain.x, plain.weight, plain.bias, {1, 1, 1});
  EXPECT_EQ(out.sizes(), (Dims{2, 8, 10, 10}));
  EXPECT_EQ(plain.context.timeline().ops.back().flops, 2 * (2 * 8 * 10 * 10) * (6 * 3 * 3));
}

TEST(Conv2d, GroupsReadTheirOwnChannelsOnly) {
  Convolution depthwise(6, 6, 6);
  const Tensor out = conv2d(depthwise.x, depthwise.weight, {}, {1, 1, 6});
  EXPECT_EQ(depthwise.context.timeline().ops.back().flops, 2 * (2 * 6 * 10 * 10) * (1 * 3 * 3));
}

TEST(Conv2d, BackwardCountsOnlyTheGradientsThatAreWanted) {
  for (const bool input_wanted : {false, true}) {
    Convolution c(6, 8, 1);
    c.weight.impl()->leaf_requires_grad = true;
    c.x.impl()->leaf_requires_grad = input_wanted;
    Tensor out = conv2d(c.x, c.weight, {}, {1, 1, 1});
    const std::int64_t forward = c.context.timeline().ops.back().flops;
    run_backward(std::move(out));
    EXPECT_EQ(c.context.timeline().ops.back().flops, (input_wanted ? 2 : 1) * forward);
    EXPECT_EQ(static_cast<bool>(c.x.grad()), input_wanted);
  }
}

// ReLU6 in place copies its input for backward, ReLU in place keeps its result: without a graph neither costs anything.
TEST(InPlace, CostsNothingWithoutAGraph) {
  Context context(cuda_policy());
  const Tensor x = context.make({2, 3, 4, 4}, DType::f32);
  const std::size_t before = context.timeline().events.size();
  relu_in_place(x);
  hardtanh_in_place(x);
  EXPECT_EQ(context.timeline().events.size(), before);
}

}  // namespace
}  // namespace ullage::tensor
