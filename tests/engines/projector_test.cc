// torch.nn.functional.linear takes apart an input that is not contiguous: a product, to which the bias is added in
// place on a card (PyTorch 2.14: aten/src/ATen/native/Linear.cpp), beside it on a tracer's tensors.
#include <gtest/gtest.h>

#include <algorithm>

#include "engines/pytorch/train.h"
#include "model/family.h"

namespace ullage {
namespace {

using engines::pytorch::Kernels;

constexpr std::string_view kModel =
    R"({"model_type": "llava", "text_config": {"hidden_size": 128, "intermediate_size": 200, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 1001},
        "vision_config": {"hidden_size": 64, "image_size": 56, "patch_size": 14, "intermediate_size": 100,
                          "num_attention_heads": 2, "num_hidden_layers": 3}})";

// How many tensors the first layer of the projector makes in the forward pass.
std::ptrdiff_t tensors_of_projector(Kernels kernels) {
  const auto architecture =
      parse_json(kModel, "c").and_then([](const Json& config) { return model::build_architecture(config, "c"); });
  EXPECT_TRUE(architecture) << to_string(architecture.error());
  engines::pytorch::TrainOptions options;
  options.kernels = kernels;
  options.micro_batch = 2;
  options.seq_len = 64;
  options.image_size = 56;
  options.step = engines::pytorch::Step::forward;
  const auto run = engines::pytorch::run_train_step(*architecture, options);
  EXPECT_TRUE(run) << to_string(run.error());
  const memory::Timeline& timeline = run->timeline;
  return std::count_if(timeline.blocks.begin(), timeline.blocks.end(), [&](const memory::Block& block) {
    if (block.op == memory::kNone) return false;
    const memory::OpRecord& op = timeline.ops[block.op];
    return op.phase == memory::Phase::forward && timeline.names[op.module] == "model.multi_modal_projector.linear_1";
  });
}

TEST(ImageTokens, ABiasIsAddedInPlace) {
  // A copy of the tokens without the first, the product, and its sum with the bias.
  EXPECT_EQ(tensors_of_projector(Kernels::cuda_traced), 3);
  EXPECT_EQ(tensors_of_projector(Kernels::cuda), 2);
}

}  // namespace
}  // namespace ullage
