#include "engines/pytorch/reserve_nearby.h"

#include <optional>
#include <utility>

#include "engines/pytorch/reserve.h"
#include "engines/pytorch/workspaces.h"

namespace ullage::engines::pytorch {
namespace {

// The neighbour's sizes, where there is such a one.
std::optional<TrainOptions> neighbour_of(const NearbyQuestion& question) {
  TrainOptions options = question.options;
  std::int64_t& size = question.architecture.is_module_tree() ? options.micro_batch : options.seq_len;
  if (--size < 1) return std::nullopt;
  return options;
}

std::optional<TrainRun> simulate(const NearbyQuestion& question, const TrainOptions& options) {
  auto run = run_train_step(question.architecture, options, true, question.room);
  if (!run) return std::nullopt;
  if (question.workspace_bytes > 0) add_workspaces(*run, options.step, question.workspace_bytes);
  return *std::move(run);
}

std::int64_t reserved_by(const NearbyQuestion& question, TrainOptions options) {
  auto run = simulate(question, options);
  if (!run) return 0;
  std::optional<TrainRun> first;
  if (options.step == Step::steady) {
    options.step = Step::first;
    first = simulate(question, options);
  }
  const std::int64_t bytes = reserve({*run, first ? &*first : nullptr, run->before_step, question.settings, {}}).bytes;
  if (question.room == nullptr) return bytes;
  if (first) question.room->give_back(std::move(first->timeline));
  question.room->give_back(std::move(run->timeline));
  return bytes;
}

}  // namespace

std::int64_t reserved_nearby(const NearbyQuestion& question) {
  const auto options = neighbour_of(question);
  return options ? reserved_by(question, *options) : 0;
}

}  // namespace ullage::engines::pytorch
