// One training step on one GPU with plain PyTorch, as a timeline.
//
// The step: out = model(inputs, labels); loss = out.loss; [after_forward, of the first micro-batch]; del out;
// loss.backward(); del loss; [after_backward, of the last micro-batch]; clipping; optimizer.step(); zero_grad();
// [after_step].
#pragma once

#include "engines/pytorch/options.h"
#include "memory/attribution.h"
#include "model/architecture.h"
#include "tensor/workspace.h"

namespace ullage::engines::pytorch {

struct TrainRun {
  memory::Timeline timeline;
  // Moments, as indices into timeline.events; those that the chosen step does not reach are the end.
  std::uint32_t before_step = 0;
  std::uint32_t after_forward = 0;
  std::uint32_t after_backward = 0;
  std::uint32_t after_step = 0;
  bool spliced = false;  // equal layers were run a few times and repeated
};

// The architecture as the code that runs it builds it, and the options with names and parts in its words. With
// transformers' code both stay as they are.
struct CodedModel {
  model::Architecture architecture;
  TrainOptions options;
};
Expected<CodedModel> in_code(model::Architecture architecture, TrainOptions options);

// Runs the step on the architecture, which is in_code's. With `splice`, equal layers in the middle are simulated a few
// times and their stretch of the timeline is repeated; the result is the same, row for row (see splice.h). A workspace,
// where one is given, lends the memory; give the timeline back to it when it has been read. Fails when the set-up
// cannot be run (a sequence longer than learned positions, an image too small).
Expected<TrainRun> run_train_step(const model::Architecture& architecture, const TrainOptions& options,
                                  bool splice = true, tensor::Workspace* workspace = nullptr);

}  // namespace ullage::engines::pytorch
