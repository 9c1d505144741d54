// PyTorch's choice of attention kernel by card, type, mask, dropout and size of heads, and what each kernel allocates
// on a real card. Sources: torch 2.14, aten/src/ATen/native/transformers/cuda/{sdp_utils.cpp, attention.cu,
// attention_backward.cu, flash_attn/flash_api.cpp} and transformers/attention.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tensor/autocast.h"
#include "tensor/ops.h"
#include "tensor/tape.h"

namespace ullage::tensor {
namespace {

constexpr Capability kPascal{6, 1};
constexpr Capability kTuring{7, 5};
constexpr Capability kA100{8, 0};
constexpr Capability kAmpereConsumer{8, 6};
constexpr Capability kAda{8, 9};
constexpr Capability kHopper{9, 0};
constexpr Capability kBlackwell{10, 0};
constexpr Capability kBlackwellConsumer{12, 0};

struct Choice {
  Capability card;
  DType dtype;
  bool mask;
  double dropout;
  std::int64_t head_dim;
  std::int64_t value_head_dim;
  AttentionKernel kernel;
};

using enum AttentionKernel;

constexpr Choice kChoices[] = {
    // flash: half precision, no mask, equal heads up to 256, from 8.0 on
    {kA100, DType::bf16, false, 0, 128, 128, flash},
    {kA100, DType::f16, false, 0.1, 256, 256, flash},
    {kA100, DType::bf16, false, 0, 100, 100, flash},
    {kA100, DType::bf16, false, 0, 264, 264, efficient},
    {kA100, DType::bf16, false, 0, 192, 128, efficient},
    {kA100, DType::bf16, true, 0, 128, 128, efficient},
    {kA100, DType::f32, false, 0, 128, 128, efficient},
    {kA100, DType::f64, false, 0, 128, 128, math},
    {kTuring, DType::f16, false, 0, 64, 64, efficient},
    {kTuring, DType::bf16, false, 0, 64, 64, math},
    {kPascal, DType::f16, false, 0, 64, 64, efficient},
    // small shared memory: no flash backward for wide heads
    {kAmpereConsumer, DType::bf16, false, 0, 192, 192, flash},
    {kAmpereConsumer, DType::bf16, false, 0, 224, 224, efficient},
    {kAda, DType::bf16, false, 0, 256, 256, flash},
    {kAda, DType::bf16, false, 0.1, 256, 256, efficient},
    {kBlackwellConsumer, DType::bf16, false, 0.1, 256, 256, efficient},
    {kA100, DType::bf16, false, 0.1, 256, 256, flash},
    // memory-efficient: heads in multiples of 8 halves or 4 floats where tensor cores run, any before them
    {kA100, DType::bf16, true, 0, 100, 100, math},
    {kA100, DType::f32, false, 0, 100, 100, efficient},
    {kA100, DType::f32, false, 0, 98, 98, math},
    {kTuring, DType::f32, false, 0, 98, 98, efficient},
    {kTuring, DType::f16, false, 0, 100, 100, math},
    {kPascal, DType::f16, false, 0, 99, 99, efficient},
    // cuDNN first on data-centre Hopper and Blackwell
    {kHopper, DType::bf16, false, 0, 128, 128, cudnn},
    {kBlackwell, DType::f16, true, 0, 64, 64, cudnn},
    {kHopper, DType::bf16, false, 0, 192, 128, cudnn},
    {kHopper, DType::bf16, false, 0, 256, 256, flash},
    {kHopper, DType::bf16, true, 0, 256, 256, efficient},
    {kHopper, DType::bf16, false, 0, 100, 100, flash},
    {kHopper, DType::bf16, false, 0.1, 128, 128, flash},
    {kHopper, DType::bf16, false, 0.125, 128, 128, cudnn},
    {kHopper, DType::f32, false, 0, 128, 128, efficient},
    {kBlackwellConsumer, DType::bf16, false, 0, 128, 128, flash},
};

TEST(AttentionKernel, IsPyTorchsChoice) {
  for (const Choice& choice : kChoices) {
    AttentionRequest request;
    request.card = choice.card;
    request.dtype = choice.dtype;
    request.mask = choice.mask;
    request.dropout = choice.dropout;
    request.head_dim = choice.head_dim;
    request.value_head_dim = choice.value_head_dim;
    EXPECT_EQ(attention_on_cuda(request), choice.kernel)
        << choice.card.major << "." << choice.card.minor << " " << name_of(choice.dtype) << " mask " << choice.mask
        << " dropout " << choice.dropout << " heads of " << choice.head_dim << " and " << choice.value_head_dim;
  }
}

TEST(AttentionKernel, WithoutGradientFlashTakesWideHeadsOnSmallCardsToo) {
  AttentionRequest request;
  request.card = kAda;
  request.head_dim = request.value_head_dim = 224;
  request.needs_gradient = false;
  EXPECT_EQ(attention_on_cuda(request), flash);
}

TEST(AttentionKernel, OneKeyIsNotForCudnn) {
  AttentionRequest request;
  request.card = kHopper;
  request.head_dim = request.value_head_dim = 64;
  request.queries = request.keys = 1;
  EXPECT_EQ(attention_on_cuda(request), flash);
}

// --- what the kernels allocate ---------------------------------------------------------------------------------------

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kSeq = 130;

class OnACard : public ::testing::Test {
 protected:
  // Sizes of what forward and backward allocate, in order.
  struct Run {
    std::vector<std::int64_t> forward;
    std::vector<std::int64_t> backward;
    std::string kernel;
  };
  using Signs = bool;  // releases too, negative; then what is under 64 bytes is left out

  static Run attend(Capability card, DType dtype, std::int64_t kv_heads, std::int64_t dim, std::optional<DType> mask,
                    Signs signs = false) {
    Policy policy = cuda_policy(card);
    policy.granularity_bytes = 1;
    Context context(policy);
    const auto leaf = [&](std::int64_t heads) {
      Tensor x = context.make({kBatch, heads, kSeq, dim}, dtype);
      x.impl()->leaf_requires_grad = true;
      return x;
    };
    Tensor query = leaf(kHeads);
    Tensor key = leaf(kv_heads);
    Tensor value = leaf(kv_heads);
    Tensor bias;
    if (mask) bias = context.make({kBatch, 1, kSeq, kSeq}, *mask);
    const std::size_t start = context.timeline().events.size();
    Tensor out = scaled_dot_product_attention(query, key, value, bias, 0, kv_heads != kHeads);
    const std::size_t middle = context.timeline().events.size();
    const std::size_t ops = context.timeline().ops.size();
    const Tensor gradient = context.make(out.sizes(), dtype);
    const std::size_t after_seed = context.timeline().events.size();
    run_backward(out, gradient);
    Run run;
    run.forward = changes(context, start, middle, signs);
    run.backward = changes(context, after_seed, context.timeline().events.size(), signs);
    run.kernel = context.timeline().names[context.timeline().ops[ops - 1].name];
    return run;
  }

 private:
  static std::vector<std::int64_t> changes(Context& context, std::size_t from, std::size_t to, Signs signs) {
    std::vector<std::int64_t> out;
    for (std::size_t i = from; i < to; ++i) {
      const memory::Event& event = context.timeline().events[i];
      const std::int64_t bytes = context.timeline().blocks[event.block].requested_bytes;
      if (signs && bytes < 64) continue;
      if (event.kind == memory::EventKind::alloc) out.push_back(bytes);
      if (signs && event.kind == memory::EventKind::free) out.push_back(-bytes);
    }
    return out;
  }
};

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t tokens(std::int64_t heads, std::int64_t dim, std::int64_t bytes) {
  return kBatch * heads * kSeq * dim * bytes;
}

TEST_F(OnACard, FlashBackwardKeepsRowSumsAndTheQuerysGradientInFp32) {
  const Run run = attend(kA100, DType::bf16, kHeads, 64, {});
  EXPECT_EQ(run.kernel, "flash_attention");
  EXPECT_EQ(run.forward, (Sizes{tokens(4, 64, 2), tokens(4, 1, 4), 16, 8}));
  const std::int64_t grad = tokens(4, 64, 2);
  const std::int64_t rows = 256;  // 130, rounded up to 128
  EXPECT_EQ(run.backward, (Sizes{grad, grad, grad, kBatch * kHeads * rows * 4, kBatch * rows * kHeads * 64 * 4}));
}

TEST_F(OnACard, FlashBackwardMakesGradientsOfSharedHeadsForAllHeadsFirst) {
  const Run run = attend(kA100, DType::bf16, 2, 64, {});
  ASSERT_EQ(run.backward.size(), 7U);
  EXPECT_EQ(run.backward[1], tokens(2, 64, 2));
  EXPECT_EQ(run.backward[5], tokens(4, 64, 2));
  EXPECT_EQ(run.backward[6], tokens(4, 64, 2));
}

TEST_F(OnACard, FlashPadsHeadsToEight) {
  const Run run = attend(kA100, DType::bf16, kHeads, 100, {});
  const std::int64_t wide = tokens(4, 104, 2);
  EXPECT_EQ(run.forward, (Sizes{wide, wide, wide, wide, tokens(4, 1, 4), 16, 8}));
  // The result's gradient in zeros, three wide gradients, the workspace, and three cut ones.
  ASSERT_EQ(run.backward.size(), 9U);
  EXPECT_EQ(run.backward.front(), wide);
  EXPECT_EQ(run.backward.back(), tokens(4, 100, 2));
}

TEST_F(OnACard, CudnnTakesTheMaskAndKeepsWhatFlashKeeps) {
  const Run run = attend(kHopper, DType::bf16, kHeads, 64, DType::bf16);
  EXPECT_EQ(run.kernel, "cudnn_attention");
  EXPECT_EQ(run.forward, (Sizes{tokens(4, 64, 2), tokens(4, 1, 4), 16, 8}));
  EXPECT_EQ(run.backward, (Sizes{tokens(4, 64, 2), tokens(4, 64, 2), tokens(4, 64, 2)}));
}

TEST_F(OnACard, MemoryEfficientAttentionTakesGroupsOfHeadsAsTheyAre) {
  const Run run = attend(kA100, DType::f32, 2, 64, {});
  EXPECT_EQ(run.kernel, "efficient_attention");
  EXPECT_EQ(run.forward, (Sizes{tokens(4, 64, 4), kBatch * kHeads * 160 * 4})) << "rows in multiples of 32";
  // Gradients lie in memory as [batch, seq, heads, dim], so that leaves of another order take copies.
  const Sizes gradients{tokens(4, 64, 4), tokens(2, 64, 4), tokens(2, 64, 4)};
  Sizes expected = gradients;
  expected.insert(expected.end(), gradients.begin(), gradients.end());
  EXPECT_EQ(run.backward, expected);
}

TEST_F(OnACard, ABooleanMaskIsConvertedAndPaddedForEachCall) {
  const Run run = attend(kA100, DType::bf16, kHeads, 64, DType::boolean);
  EXPECT_EQ(run.kernel, "efficient_attention");
  const std::int64_t rows = kBatch * kSeq;
  // Two numbers, the mask in the query's type, the same in rows of sixteens; result and statistics.
  EXPECT_EQ(run.forward, (Sizes{2, 2, rows * 130 * 2, rows * 144 * 2, tokens(4, 64, 2), kBatch * kHeads * 160 * 4}));
}

// Its wrapper casts whatever is a floating-point tensor, the last argument first.
TEST_F(OnACard, AutocastCastsTheMaskToo) {
  for (const bool traced : {false, true}) {
    Policy policy = traced ? cuda_traced_policy() : cuda_policy(kHopper);
    policy.granularity_bytes = 1;
    Context context(policy);
    const Tensor query = context.make({1, 2, 16, 8}, DType::f32);
    const Tensor mask = context.make({1, 1, 16, 16}, DType::f32);
    const std::size_t before = context.timeline().ops.size();
    const AutocastRegion region(context, {true, DType::bf16});
    const Tensor out = scaled_dot_product_attention(query, query, query, mask, 0, false);
    std::size_t casts = 0;
    for (std::size_t i = before; i < context.timeline().ops.size(); ++i) {
      casts += context.timeline().names[context.timeline().ops[i].name] == "cast" ? 1 : 0;
    }
    EXPECT_EQ(casts, traced ? 3U : 4U);
  }
}

// Each stretch of releases in one order: what a function lets go of at its end meets no allocation.
Sizes by_stretch(Sizes changes) {
  const auto is_release = [](std::int64_t change) { return change < 0; };
  for (auto from = std::find_if(changes.begin(), changes.end(), is_release); from != changes.end();) {
    const auto to = std::find_if_not(from, changes.end(), is_release);
    std::sort(from, to);
    from = std::find_if(to, changes.end(), is_release);
  }
  return changes;
}

// Recorded with torch.profiler from steps that really ran on the CPU (SDPBackend.MATH, the same composed operators),
// heads of 98 floats, which no fused kernel takes: a mask is added in place, and rows that may look at nothing are
// searched for with a byte a score.
TEST_F(OnACard, ComposedAttentionDoesWhatARealStepDoes) {
  const Run masked = attend(kA100, DType::f32, kHeads, 98, DType::f32, true);
  EXPECT_EQ(masked.forward, (Sizes{407680, 407680, 540800, 540800, 135200, 1040, -1040, -135200, -540800, 407680}));
  EXPECT_EQ(masked.backward, (Sizes{407680, 540800, 540800, -540800, -540800, 407680, 407680, -540800, -407680, -407680,
                                    407680, -407680, 407680, -407680, 407680, -407680}));
  const Run causal = attend(kA100, DType::f32, 2, 98, {}, true);
  EXPECT_EQ(by_stretch(causal.forward),
            by_stretch({407680, 16900, 16900, -16900, 67600, -16900, 407680, 407680, 407680, 540800, 540800, 135200,
                        1040, -1040, -135200, -540800, 407680, -407680, -67600}));
  EXPECT_EQ(by_stretch(causal.backward),
            by_stretch({407680, 540800, -407680, 540800, -540800, -540800, 407680, 407680, -540800, -407680, -407680,
                        407680, -407680, 203840, -407680, 203840, -407680, 407680, -407680}));
}

}  // namespace
}  // namespace ullage::tensor
