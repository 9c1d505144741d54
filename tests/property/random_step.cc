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

// Experts, groups of them, and where they stand among dense layers.
void draw_experts(Dice& dice, const std::string& family, Json& config) {
  const std::int64_t groups = dice.between(1, 3);
  const std::int64_t experts = groups * dice.between(2, 4);
  const std::int64_t top_groups = dice.between(1, groups);
  const std::int64_t top_k = dice.between(1, top_groups * (experts / groups));
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) config[key] = experts;
  config["num_experts_per_tok"] = family == "phimoe" ? 2 : top_k;
  config["n_group"] = groups;
  config["topk_group"] = top_groups;
  config["moe_intermediate_size"] = dice.between(1, 60);
  config["n_shared_experts"] = dice.between(1, 2);
  config["shared_expert_intermediate_size"] = dice.between(1, 60);
  config["norm_topk_prob"] = dice.once_in(2);
  config["first_k_dense_replace"] = dice.between(0, 2);
  config["decoder_sparse_step"] = dice.between(1, 2);
  if (family == "deepseek_v2" && dice.once_in(2)) config["topk_method"] = "group_limited_greedy";
  if (dice.once_in(3)) config["experts_implementation"] = "batched_mm";
}

// What every mixture has in common with a plain decoder.
Json plain_parts(Dice& dice, const std::string& family, std::int64_t most_layers) {
  const std::int64_t kv_heads = dice.between(1, 3);
  const std::int64_t heads = kv_heads * dice.between(1, 3);
  const std::int64_t head_dim = 2 * dice.between(1, 9);
  const std::int64_t other_width = heads * dice.between(1, 30);
  return {{"model_type", family},
          {"num_hidden_layers", dice.between(1, most_layers)},
          {"num_attention_heads", heads},
          {"num_key_value_heads", kv_heads},
          {"head_dim", head_dim},
          {"hidden_size", dice.once_in(3) ? other_width : heads * head_dim},
          {"intermediate_size", dice.between(3, 150)},
          {"vocab_size", dice.between(5, 300)},
          {"max_position_embeddings", 64},
          {"tie_word_embeddings", dice.once_in(3)},
          {"attention_dropout", dice.once_in(4) ? 0.1 : 0.0},
          {"hidden_act", dice.any_of<std::string>({"silu", "gelu", "gelu_pytorch_tanh", "gelu_new", "relu"})}};
}

Json mixture_config(Dice& dice, std::int64_t most_layers) {
  const std::string family = dice.any_of<std::string>(
      {"mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe", "gpt_oss", "deepseek_v2", "deepseek_v3", "phimoe"});
  Json config = plain_parts(dice, family, most_layers);
  draw_experts(dice, family, config);
  config["sliding_window"] = dice.between(1, 12);
  config["use_sliding_window"] = dice.once_in(2);
  config["use_qk_norm"] = dice.once_in(2);
  config["attention_bias"] = dice.once_in(2);
  if (family == "glm4_moe") config["head_dim"] = 4 * dice.between(1, 5);
  if (!family.starts_with("deepseek")) return config;
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["hidden_size"] = config["num_attention_heads"].get<std::int64_t>() * dice.between(1, 20);
  config["kv_lora_rank"] = dice.between(1, 30);
  if (dice.once_in(2)) config["q_lora_rank"] = dice.between(1, 30);
  else config["q_lora_rank"] = nullptr;
  config["qk_nope_head_dim"] = dice.between(1, 20);
  config["qk_rope_head_dim"] = 2 * dice.between(1, 8);
  config["v_head_dim"] = dice.between(1, 20);
  config["rope_interleave"] = dice.once_in(2);
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
  const std::int64_t kind = dice.between(1, 9);
  const Json config = kind == 1   ? gpt2_config(dice, most_layers)
                      : kind <= 3 ? gpt_style_config(dice, most_layers)
                      : kind == 4 ? mixture_config(dice, most_layers)
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
