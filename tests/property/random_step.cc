#include <gtest/gtest.h>

#include "base/json.h"
#include "model/family.h"
#include "random_decoder.h"
#include "random_gpt.h"

namespace ullage::testing {
namespace {

using namespace engines::pytorch;

Json gpt2_config(Dice& dice, std::int64_t most_layers) {
  const std::int64_t heads = dice.between(1, 5);
  Json config{{"model_type", "gpt2"},
              {"n_layer", dice.between(1, most_layers)},
              {"n_head", heads},
              {"n_embd", heads * dice.between(1, 20)},
              {"n_positions", 64},
              {"vocab_size", dice.between(5, 300)},
              {"tie_word_embeddings", !dice.once_in(4)},
              {"reorder_and_upcast_attn", dice.once_in(4)},
              {"activation_function", dice.any_of<std::string>({"gelu_new", "gelu", "relu", "silu", "tanh"})}};
  if (dice.once_in(3)) config["n_inner"] = dice.between(1, 100);
  if (dice.once_in(3)) config["resid_pdrop"] = 0.0;
  if (dice.once_in(3)) config["attn_pdrop"] = 0.0;
  return config;
}

TrainOptions draw_options(Dice& dice) {
  TrainOptions o;
  o.kernels = dice.any_of<Kernels>({Kernels::cuda, Kernels::cuda_traced, Kernels::cpu});
  o.micro_batch = dice.between(1, 4);
  o.seq_len = dice.between(1, 16);
  o.grad_accum = dice.once_in(3) ? dice.between(2, 3) : 1;
  o.dtype = dice.any_of<DType>({DType::f32, DType::bf16, DType::f16});
  if (o.dtype == DType::f32 && dice.once_in(2)) o.autocast = dice.any_of<DType>({DType::bf16, DType::f16});
  o.grad_scaler = o.autocast && dice.once_in(2);
  o.optimizer = dice.any_of<Optimizer>({Optimizer::adamw, Optimizer::sgd, Optimizer::sgd_momentum, Optimizer::none,
                                        Optimizer::adagrad, Optimizer::rmsprop, Optimizer::adafactor, Optimizer::lion,
                                        Optimizer::muon, Optimizer::adamw_8bit, Optimizer::paged_adamw_8bit,
                                        Optimizer::adamw_4bit, Optimizer::adamw_fp8});
  o.optimizer_impl = dice.any_of<OptimizerImpl>({OptimizerImpl::foreach, OptimizerImpl::fused, OptimizerImpl::loop});
  if (!has_impl(o.optimizer, o.optimizer_impl)) o.optimizer_impl = usual_impl(o.optimizer);
  o.recompute = dice.once_in(2) ? Recompute::full : Recompute::none;
  o.recompute_reentrant = dice.once_in(2);
  o.attention = dice.once_in(2) ? AttentionImpl::sdpa : AttentionImpl::eager;
  o.loss = dice.once_in(4) ? Loss::none : Loss::full;
  o.step = dice.any_of<Step>({Step::steady, Step::steady, Step::first, Step::forward});
  o.clip_grad = dice.once_in(3) ? 1.0 : 0.0;
  const bool at_once = o.grad_accum == 1 && o.clip_grad == 0 && !o.grad_scaler && o.optimizer != Optimizer::none;
  o.optimizer_in_backward = at_once && dice.once_in(2);
  return o;
}

std::string last_part(const model::Parameter& parameter) {
  const std::string module = parameter.name.substr(0, parameter.name.rfind('.'));
  return module.substr(module.rfind('.') + 1);
}

// The name of a random module of the first kind of layer, with a weight of so many dimensions.
std::string module_name(Dice& dice, const model::Architecture& architecture, std::size_t dims) {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : architecture.kinds[0].parameters) {
    const bool linear = parameter.module == model::ModuleKind::linear || parameter.module == model::ModuleKind::conv1d;
    if (parameter.dims.size() == dims && (dims == 1 || linear)) names.push_back(last_part(parameter));
  }
  return names.empty() ? "" : names[static_cast<std::size_t>(dice.between(0, static_cast<int>(names.size()) - 1))];
}

// Adapters on some linears or all, or a frozen part.
void draw_tuning(Dice& dice, TrainOptions& o, const model::Architecture& architecture) {
  const std::string linear = module_name(dice, architecture, 2);
  const std::string norm = module_name(dice, architecture, 1);
  if (linear.empty() || norm.empty()) return;
  if (dice.once_in(5)) o.tuning.frozen = {linear};
  if (!o.tuning.frozen.empty() || !dice.once_in(3)) return;
  o.tuning.tuner = dice.any_of<model::Tuner>({model::Tuner::lora, model::Tuner::lora_fa, model::Tuner::dora});
  o.tuning.rank = dice.between(1, 4);
  o.tuning.targets = {dice.any_of<std::string>({"all-linear", linear})};
  if (dice.once_in(3)) o.tuning.saved = {norm};
  o.lora_dropout = dice.once_in(2) ? 0.1 : 0.0;
  o.lora_in_fp32 = dice.once_in(2);
  const bool reentrant = o.recompute == Recompute::full && o.recompute_reentrant;
  if (o.kernels == Kernels::cpu || o.tuning.tuner == model::Tuner::dora || !dice.once_in(2)) return;
  o.tuning.base = dice.any_of<model::BaseFormat>(
      {model::BaseFormat::nf4, model::BaseFormat::nf4_dq, model::BaseFormat::fp4, model::BaseFormat::int8});
  o.tuning.prepared = reentrant || dice.once_in(2);
  if (o.tuning.base == model::BaseFormat::int8 && !reentrant) o.recompute = Recompute::none;
}

}  // namespace

std::uint64_t Dice::next() {
  state_ += 0x9E3779B97F4A7C15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::string RandomStep::text() const {
  const TrainOptions& o = options;
  const auto number = [](const char* name, auto value) {
    return std::string(" ") + name + "=" + std::to_string(value);
  };
  return "seed " + std::to_string(seed) + " " + config + number("kernels", static_cast<int>(o.kernels)) +
         number("batch", o.micro_batch) + number("seq", o.seq_len) + number("accum", o.grad_accum) + " " +
         std::string(name_of(o.dtype)) + (o.autocast ? " under autocast " + std::string(name_of(*o.autocast)) : "") +
         number("optimizer", static_cast<int>(o.optimizer)) + number("impl", static_cast<int>(o.optimizer_impl)) +
         number("recompute", static_cast<int>(o.recompute)) + number("reentrant", o.recompute_reentrant) +
         number("attention", static_cast<int>(o.attention)) + number("loss", static_cast<int>(o.loss)) +
         number("step", static_cast<int>(o.step)) + number("clip", o.clip_grad);
}

RandomStep random_step(std::uint64_t seed, std::int64_t most_layers) {
  Dice dice(seed);
  const std::int64_t kind = dice.between(1, 8);
  const Json config = kind == 1   ? gpt2_config(dice, most_layers)
                      : kind <= 3 ? gpt_style_config(dice, most_layers)
                                  : random_decoder(dice, most_layers);
  RandomStep setup;
  setup.seed = seed;
  setup.config = config.dump();
  auto architecture = model::build_architecture(config, "config");
  EXPECT_TRUE(architecture) << setup.config << ": " << to_string(architecture.error());
  if (architecture) setup.architecture = *std::move(architecture);
  setup.options = draw_options(dice);
  draw_tuning(dice, setup.options, setup.architecture);
  return setup;
}

TrainRun run(const model::Architecture& architecture, const TrainOptions& options, bool splice) {
  auto done = run_train_step(architecture, options, splice);
  EXPECT_TRUE(done) << to_string(done.error());
  return done ? *std::move(done) : TrainRun{};
}

memory::Moment peak_of(const TrainRun& run) {
  return memory::peak_between(run.timeline, run.before_step, static_cast<std::uint32_t>(run.timeline.events.size()));
}

}  // namespace ullage::testing
