#include "plan/alternatives.h"

#include <utility>

namespace ullage::plan {
namespace {

namespace pt = engines::pytorch;

constexpr const char* kRank = "16";  // PEFT's examples use 8 to 64; memory hardly depends on it

class Candidates {
 public:
  Candidates(const model::Architecture& architecture, const pt::TrainOptions& options)
      : architecture_(architecture), options_(options) {}

  std::vector<Alternative> take() {
    add_equal_ones();
    add_smaller_batches();
    add_other_numbers();
    add_other_training();
    return std::move(out_);
  }

 private:
  void add(Change change, Cost cost, std::vector<std::string> args) { out_.push_back({change, cost, std::move(args)}); }

  bool learns() const { return options_.step != pt::Step::forward; }
  bool is_adam() const {
    return options_.optimizer == pt::Optimizer::adamw || options_.optimizer == pt::Optimizer::adam;
  }
  bool has_layers() const { return !architecture_.is_module_tree(); }

  void add_equal_ones() {
    if (options_.attention == pt::AttentionImpl::eager)
      add(Change::fused_attention, Cost::time, {"--attention", "sdpa"});
    add(Change::expandable_segments, Cost::time, {"--alloc-conf", "expandable_segments:True"});
    if (!learns()) return;
    if (options_.optimizer_impl == pt::OptimizerImpl::foreach &&
        pt::has_impl(options_.optimizer, pt::OptimizerImpl::fused))
      add(Change::fused_optimizer, Cost::time, {"--optimizer-impl", "fused"});
    if (!options_.optimizer_in_backward && options_.grad_accum == 1 && options_.clip_grad == 0)
      add(Change::optimizer_in_backward, Cost::time, {"--optimizer-in-backward"});
    if (options_.loss == pt::Loss::full && has_layers() && options_.code == nullptr)
      add(Change::fused_loss, Cost::time, {"--loss", "fused"});
    if (options_.recompute == pt::Recompute::none && has_layers())
      add(Change::recompute, Cost::time, {"--recompute", "full"});
  }

  // Smaller micro-batches, as many more of them.
  void add_smaller_batches() {
    const std::int64_t batch = options_.micro_batch;
    const auto of_size = [&](std::int64_t size) {
      std::vector<std::string> args{"--micro-batch", std::to_string(size)};
      if (learns()) args.insert(args.end(), {"--grad-accum", std::to_string(options_.grad_accum * (batch / size))});
      return args;
    };
    if (batch > 2 && batch % 2 == 0) add(Change::half_micro_batch, Cost::time, of_size(batch / 2));
    if (batch > 1) add(Change::micro_batch_of_one, Cost::time, of_size(1));
  }

  void add_other_numbers() {
    if (learns() && is_adam()) add(Change::paged_8bit_optimizer, Cost::numbers, {"--optimizer", "paged-adamw-8bit"});
    if (options_.dtype == DType::f32) add(Change::weights_in_bf16, Cost::numbers, {"--precision", "bf16"});
  }

  void add_other_training() {
    if (!learns() || !has_layers()) return;
    if (options_.tuning.tuner != model::Tuner::none) {
      if (options_.tuning.base == model::BaseFormat::plain)
        add(Change::qlora, Cost::numbers, {"--quantize-base", four_bits()});
      return;
    }
    add(Change::lora, Cost::training, {"--lora", kRank});
    add(Change::qlora, Cost::training, {"--lora", kRank, "--quantize-base", four_bits()});
  }

  // torchtune has no other.
  std::string four_bits() const {
    const bool torchtune = options_.code != nullptr && options_.code->code == pt::CodeBase::torchtune;
    return torchtune ? "nf4-dq" : "nf4";
  }

  const model::Architecture& architecture_;
  const pt::TrainOptions& options_;
  std::vector<Alternative> out_;
};

}  // namespace

std::vector<Alternative> alternatives(const model::Architecture& architecture, const pt::TrainOptions& options) {
  return Candidates(architecture, options).take();
}

}  // namespace ullage::plan
