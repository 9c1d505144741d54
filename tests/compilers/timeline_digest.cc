// Prints one line for each of a fixed set of training steps: its name, a digest of the timeline's bytes, the peak, and
// what PyTorch's allocator reserves, without and with expandable segments.
// Builds of different compilers must print the same (DESIGN: order of evaluation, lifetimes of temporaries).
#include <cstdint>
#include <cstdio>
#include <string>

#include "engines/pytorch/train.h"
#include "engines/pytorch/virtual_tokens.h"
#include "memory/timeline_replay.h"
#include "model/family.h"

namespace {

using namespace ullage;
using engines::pytorch::TrainOptions;

// FNV-1a, 64 bits.
std::uint64_t digest(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

struct Model {
  const char* name;
  const char* config;
};

// clang-format off
constexpr Model kModels[] = {
    {"llama",
     R"({"model_type":"llama","hidden_size":256,"intermediate_size":688,"num_hidden_layers":9,"num_attention_heads":8,"num_key_value_heads":2,"vocab_size":1001,"attention_bias":true,"attention_dropout":0.1})"},
    {"llama-tied",
     R"({"model_type":"llama","hidden_size":256,"intermediate_size":688,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000,"tie_word_embeddings":true,"rope_scaling":{"rope_type":"dynamic","factor":2.0}})"},
    {"mistral",
     R"({"model_type":"mistral","hidden_size":256,"intermediate_size":688,"num_hidden_layers":8,"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":1000,"sliding_window":16})"},
    {"mixtral",
     R"({"model_type":"mixtral","hidden_size":64,"intermediate_size":48,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":101,"num_local_experts":5})"},
    {"qwen2_moe",
     R"({"model_type":"qwen2_moe","hidden_size":64,"intermediate_size":48,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":101,"moe_intermediate_size":24,"shared_expert_intermediate_size":40,"num_experts":6,"decoder_sparse_step":2})"},
    {"qwen3_moe",
     R"({"model_type":"qwen3_moe","hidden_size":64,"intermediate_size":48,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":101,"moe_intermediate_size":24,"num_experts":6,"num_experts_per_tok":3,"norm_topk_prob":true,"experts_implementation":"batched_mm"})"},
    {"glm4_moe",
     R"({"model_type":"glm4_moe","hidden_size":64,"intermediate_size":48,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":101,"moe_intermediate_size":24,"n_routed_experts":8,"num_experts_per_tok":3,"n_group":4,"topk_group":2,"use_qk_norm":true})"},
    {"gpt_oss",
     R"({"model_type":"gpt_oss","hidden_size":64,"intermediate_size":48,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":101,"num_local_experts":5,"sliding_window":16})"},
    {"deepseek_v2",
     R"({"model_type":"deepseek_v2","hidden_size":64,"intermediate_size":48,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":101,"moe_intermediate_size":24,"n_routed_experts":8,"num_experts_per_tok":3,"first_k_dense_replace":1,"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":16,"qk_rope_head_dim":8,"v_head_dim":12})"},
    {"deepseek_v3",
     R"({"model_type":"deepseek_v3","hidden_size":64,"intermediate_size":48,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":4,"vocab_size":101,"moe_intermediate_size":24,"n_routed_experts":8,"num_experts_per_tok":3,"n_group":4,"topk_group":2,"first_k_dense_replace":1,"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":16,"qk_rope_head_dim":8,"v_head_dim":12})"},
    {"phimoe",
     R"({"model_type":"phimoe","hidden_size":64,"intermediate_size":48,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":101,"num_local_experts":5,"lm_head_bias":true})"},
    {"gpt2",
     R"({"model_type":"gpt2","n_embd":192,"n_head":3,"n_layer":7,"vocab_size":997,"n_positions":128})"},
    {"gpt2-upcast",
     R"({"model_type":"gpt2","n_embd":192,"n_head":3,"n_layer":3,"vocab_size":997,"n_positions":128,"reorder_and_upcast_attn":true})"},
    {"gpt_neox",
     R"({"model_type":"gpt_neox","hidden_size":96,"intermediate_size":300,"num_hidden_layers":7,"num_attention_heads":3,"vocab_size":997})"},
    {"opt",
     R"({"model_type":"opt","hidden_size":96,"ffn_dim":300,"num_hidden_layers":7,"num_attention_heads":3,"vocab_size":997,"word_embed_proj_dim":64})"},
    {"bloom",
     R"({"model_type":"bloom","hidden_size":96,"n_layer":7,"n_head":3,"vocab_size":997,"hidden_dropout":0.1})"},
    {"falcon",
     R"({"model_type":"falcon","hidden_size":96,"num_hidden_layers":7,"num_attention_heads":3,"vocab_size":997})"},
    {"falcon-new",
     R"({"model_type":"falcon","hidden_size":96,"num_hidden_layers":7,"num_attention_heads":6,"num_kv_heads":2,"new_decoder_architecture":true,"vocab_size":997})"},
    {"falcon-alibi",
     R"({"model_type":"falcon","hidden_size":96,"num_hidden_layers":3,"num_attention_heads":3,"alibi":true,"multi_query":false,"parallel_attn":false,"bias":true,"vocab_size":997})"},
    {"gptj",
     R"({"model_type":"gptj","n_embd":96,"n_layer":7,"n_head":3,"n_positions":64,"rotary_dim":16,"vocab_size":997})"},
    {"gpt_neo",
     R"({"model_type":"gpt_neo","hidden_size":96,"num_layers":7,"num_heads":3,"max_position_embeddings":64,"vocab_size":997})"},
    {"mpt",
     R"({"model_type":"mpt","d_model":96,"n_layers":7,"n_heads":3,"max_seq_len":64,"attn_config":{"clip_qkv":8},"vocab_size":997})"},
    {"gpt_bigcode",
     R"({"model_type":"gpt_bigcode","n_embd":96,"n_layer":7,"n_head":3,"n_positions":64,"vocab_size":997})"},
    {"phi",
     R"({"model_type":"phi","hidden_size":96,"intermediate_size":300,"num_hidden_layers":7,"num_attention_heads":3,"qk_layernorm":true,"vocab_size":997})"},
    {"qwen",
     R"({"model_type":"qwen","hidden_size":96,"intermediate_size":300,"num_hidden_layers":7,"num_attention_heads":3,"kv_channels":32,"vocab_size":997})"},
    {"internlm2",
     R"({"model_type":"internlm2","hidden_size":96,"intermediate_size":300,"num_hidden_layers":7,"num_attention_heads":6,"num_key_value_heads":2,"vocab_size":997})"},
    {"baichuan",
     R"({"model_type":"baichuan","hidden_size":96,"intermediate_size":300,"num_hidden_layers":7,"num_attention_heads":3,"max_position_embeddings":64,"vocab_size":997})"},
    {"chatglm",
     R"({"model_type":"chatglm","hidden_size":96,"ffn_hidden_size":300,"num_layers":7,"num_attention_heads":6,"kv_channels":16,"multi_query_attention":true,"multi_query_group_num":2,"padded_vocab_size":997})"},
    {"cohere",
     R"({"model_type":"cohere","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"use_qk_norm":true})"},
    {"cohere2",
     R"({"model_type":"cohere2","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":9,"sliding_window":20,"sliding_window_pattern":2})"},
    {"gemma",
     R"({"model_type":"gemma","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"head_dim":48})"},
    {"gemma2",
     R"({"model_type":"gemma2","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":15,"head_dim":48,"sliding_window":20})"},
    {"gemma3-text",
     R"({"model_type":"gemma3_text","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":22,"head_dim":48,"sliding_window":20,"sliding_window_pattern":3})"},
    {"granite",
     R"({"model_type":"granite","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"attention_bias":true})"},
    {"olmo",
     R"({"model_type":"olmo","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"clip_qkv":8.0})"},
    {"olmo2",
     R"({"model_type":"olmo2","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"attention_dropout":0.1})"},
    {"olmo3",
     R"({"model_type":"olmo3","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":5,"sliding_window":20})"},
    {"phi3",
     R"({"model_type":"phi3","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"sliding_window":20,"resid_pdrop":0.1})"},
    {"qwen2",
     R"({"model_type":"qwen2","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"use_sliding_window":true,"sliding_window":20,"max_window_layers":4})"},
    {"qwen3",
     R"({"model_type":"qwen3","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"head_dim":48})"},
    {"qwen2_vl",
     R"({"model_type":"qwen2_vl","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":3,"rope_scaling":{"type":"mrope","mrope_section":[4,6,6]},"vision_config":{"depth":2,"embed_dim":64,"hidden_size":128,"num_heads":2,"patch_size":56}})"},
    {"qwen2_5_vl",
     R"({"model_type":"qwen2_5_vl","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":3,"rope_scaling":{"type":"mrope","mrope_section":[4,6,6]},"vision_config":{"depth":3,"hidden_size":64,"intermediate_size":100,"num_heads":2,"out_hidden_size":128,"patch_size":28,"window_size":112,"fullatt_block_indexes":[1]}})"},
    {"qwen3_vl",
     R"({"model_type":"qwen3_vl","text_config":{"hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"vocab_size":1001,"num_hidden_layers":3},"vision_config":{"depth":3,"hidden_size":64,"intermediate_size":100,"num_heads":2,"out_hidden_size":128,"patch_size":32,"num_position_embeddings":64,"deepstack_visual_indexes":[0,2]}})"},
    {"llava",
     R"({"model_type":"llava","text_config":{"hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"vocab_size":1001,"num_hidden_layers":3},"vision_config":{"hidden_size":64,"image_size":224,"patch_size":56,"intermediate_size":100,"num_attention_heads":2,"num_hidden_layers":3}})"},
    {"smollm3",
     R"({"model_type":"smollm3","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":15,"no_rope_layer_interval":2})"},
    {"stablelm",
     R"({"model_type":"stablelm","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"qk_layernorm":true,"use_parallel_residual":true,"hidden_dropout":0.1})"},
    {"starcoder2",
     R"({"model_type":"starcoder2","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"residual_dropout":0.1,"embedding_dropout":0.1})"},
    {"seed_oss",
     R"({"model_type":"seed_oss","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":7,"head_dim":48})"},
    {"exaone4",
     R"({"model_type":"exaone4","hidden_size":128,"intermediate_size":200,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1001,"num_hidden_layers":9,"sliding_window":20})"},
    {"bert",
     R"({"model_type":"bert","hidden_size":128,"intermediate_size":200,"num_hidden_layers":8,"num_attention_heads":4,"vocab_size":1001,"max_position_embeddings":64})"},
    {"roberta",
     R"({"model_type":"roberta","hidden_size":128,"intermediate_size":200,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1001,"max_position_embeddings":64,"tie_word_embeddings":false})"},
    {"bart",
     R"({"model_type":"bart","d_model":128,"encoder_layers":3,"decoder_layers":2,"encoder_ffn_dim":200,"decoder_ffn_dim":232,"encoder_attention_heads":4,"decoder_attention_heads":2,"vocab_size":1001,"max_position_embeddings":64})"},
    {"t5",
     R"({"model_type":"t5","d_model":96,"d_kv":32,"d_ff":200,"num_layers":3,"num_decoder_layers":2,"num_heads":4,"vocab_size":1001})"},
    {"vit",
     R"({"model_type":"vit","hidden_size":128,"intermediate_size":200,"num_hidden_layers":8,"num_attention_heads":4,"patch_size":32,"hidden_dropout_prob":0.1})"},
    {"clip_vision_model",
     R"({"model_type":"clip_vision_model","hidden_size":128,"intermediate_size":200,"num_hidden_layers":8,"num_attention_heads":4,"attention_dropout":0.1})"},
    {"whisper",
     R"({"model_type":"whisper","d_model":128,"encoder_layers":3,"decoder_layers":2,"encoder_ffn_dim":200,"decoder_ffn_dim":232,"encoder_attention_heads":4,"decoder_attention_heads":2,"vocab_size":1001,"num_mel_bins":20,"max_source_positions":40})"},
};
// clang-format on  // namespace

constexpr const char* kImages[] = {"alexnet",  "vgg11",       "vgg16_bn",    "resnet18",
                                   "resnet50", "densenet121", "mobilenet_v2"};

model::Tuning adapters(model::Tuner tuner) {
  model::Tuning out;
  out.tuner = tuner;
  out.rank = 4;
  out.virtual_tokens = 5;
  if (!adds_tokens(tuner)) out.targets = {"all-linear"};
  return out;
}

// Named changes of one small step.
class SetUps {
 public:
  SetUps() {
    base_.micro_batch = 2;
    base_.seq_len = 48;
  }

  template <class Change>
  void add(std::string name, Change change) {
    TrainOptions options = base_;
    change(options);
    out_.emplace_back(std::move(name), options);
  }

  std::vector<std::pair<std::string, TrainOptions>> take() { return std::move(out_); }

 private:
  TrainOptions base_;
  std::vector<std::pair<std::string, TrainOptions>> out_;
};

void add_precisions(SetUps& set_ups) {
  using namespace engines::pytorch;
  const auto add = [&](std::string name, auto change) { set_ups.add(std::move(name), change); };
  add("bf16", [](TrainOptions&) {});
  add("traced", [](TrainOptions& o) { o.kernels = Kernels::cuda_traced; });
  add("cpu", [](TrainOptions& o) { o.kernels = Kernels::cpu; });
  add("fp32-eager-clip", [](TrainOptions& o) {
    o.dtype = DType::f32;
    o.attention = AttentionImpl::eager;
    o.clip_grad = 1;
  });
  add("fp16-eager-loop", [](TrainOptions& o) {
    o.dtype = DType::f16;
    o.attention = AttentionImpl::eager;
    o.optimizer_impl = OptimizerImpl::loop;
  });
  add("full", [](TrainOptions& o) {
    o.recompute = Recompute::full;
    o.grad_accum = 2;
  });
  add("amp", [](TrainOptions& o) {
    o.dtype = DType::f32;
    o.autocast = DType::bf16;
  });
  add("amp-fp16-eager-full", [](TrainOptions& o) {
    o.dtype = DType::f32;
    o.autocast = DType::f16;
    o.attention = AttentionImpl::eager;
    o.recompute = Recompute::full;
  });
  add("amp-reentrant", [](TrainOptions& o) {
    o.dtype = DType::f32;
    o.autocast = DType::bf16;
    o.recompute = Recompute::full;
    o.recompute_reentrant = true;
    o.kernels = Kernels::cuda_traced;
  });
  add("reentrant", [](TrainOptions& o) {
    o.recompute = Recompute::full;
    o.recompute_reentrant = true;
    o.kernels = Kernels::cuda_traced;
  });
}

void add_training(SetUps& set_ups) {
  using namespace engines::pytorch;
  const auto add = [&](std::string name, auto change) { set_ups.add(std::move(name), change); };
  add("sgd-momentum-first", [](TrainOptions& o) {
    o.optimizer = Optimizer::sgd_momentum;
    o.step = Step::first;
  });
  add("no-loss-no-optimizer", [](TrainOptions& o) {
    o.optimizer = Optimizer::none;
    o.loss = Loss::none;
  });
  add("lora", [](TrainOptions& o) {
    o.tuning = adapters(model::Tuner::lora);
    o.lora_dropout = 0.1;
  });
  add("dora-full-adafactor", [](TrainOptions& o) {
    o.tuning = adapters(model::Tuner::dora);
    o.recompute = Recompute::full;
    o.optimizer = Optimizer::adafactor;
  });
  add("ia3", [](TrainOptions& o) { o.tuning = adapters(model::Tuner::ia3); });
  add("prompt-full", [](TrainOptions& o) {
    o.tuning = adapters(model::Tuner::prompt);
    o.recompute = Recompute::full;
  });
  add("prefix", [](TrainOptions& o) { o.tuning = adapters(model::Tuner::prefix); });
  for (const auto& [name, optimizer] : {std::pair{"adagrad", Optimizer::adagrad},
                                        {"adafactor", Optimizer::adafactor},
                                        {"lion", Optimizer::lion},
                                        {"muon", Optimizer::muon},
                                        {"adamw-8bit", Optimizer::adamw_8bit}}) {
    add(name, [optimizer = optimizer](TrainOptions& o) { o.optimizer = optimizer; });
  }
  add("in-backward", [](TrainOptions& o) { o.optimizer_in_backward = true; });
  add("forward", [](TrainOptions& o) { o.step = Step::forward; });
}

std::vector<std::pair<std::string, TrainOptions>> text_set_ups() {
  SetUps set_ups;
  add_precisions(set_ups);
  add_training(set_ups);
  return set_ups.take();
}

long long reserved(const memory::Timeline& timeline, bool expandable) {
  memory::AllocatorSettings settings;
  settings.expandable_segments = expandable;
  memory::CachingAllocator allocator(settings);
  memory::TimelineReplay(allocator).run(timeline, 0, static_cast<std::uint32_t>(timeline.events.size()));
  return static_cast<long long>(allocator.reserved_bytes());
}

// Steps in the code of other code bases, for models that they have.
std::vector<std::pair<std::string, TrainOptions>> code_set_ups() {
  using namespace engines::pytorch;
  std::vector<std::pair<std::string, TrainOptions>> out;
  for (const Choices& row : all_choices()) {
    TrainOptions options;
    options.micro_batch = 2;
    options.seq_len = 160;
    options.grad_accum = 2;
    options.code = &row;
    const bool titan = row.code == CodeBase::torchtitan;
    options.loss = titan || row.code == CodeBase::llm_foundry ? Loss::full : Loss::chunked;
    if (row.autocasts) options.autocast = options.dtype;
    if (row.code == CodeBase::llm_foundry) {
      options.seq_len = 48;  // the models here have no more positions than 64
      options.dtype = DType::f32;
      options.autocast = DType::bf16;
      options.optimizer_impl = OptimizerImpl::loop;
    }
    const std::string name = std::string(row.name) + " " + std::string(row.version);
    out.emplace_back(name, options);
    if (titan || row.code == CodeBase::llm_foundry) continue;
    if (row.code == CodeBase::torchtune) {
      TrainOptions away = options;
      away.recompute = Recompute::full;
      away.offload_activations = true;
      out.emplace_back(name + " offload", away);
    }
    options.tuning.tuner = model::Tuner::lora;
    options.tuning.rank = 4;
    options.lora_dropout = 0.05;
    out.emplace_back(name + " lora", options);
    if (row.code != CodeBase::litgpt) continue;
    options.tuning.targets = {"q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "lm_head"};
    options.tuning.base = model::BaseFormat::nf4_dq;
    out.emplace_back(name + " qlora", options);
  }
  return out;
}

bool print(const std::string& name, const Json& config, const TrainOptions& given) {
  const auto coded = model::build_architecture(config, name).and_then([&](model::Architecture built) {
    return engines::pytorch::in_code(std::move(built), given);
  });
  // Not every code base has every model.
  if (!coded && given.code != nullptr && coded.error().code == ErrorCode::unsupported) return true;
  if (!coded) return std::fprintf(stderr, "%s\n", to_string(coded.error()).c_str()), false;
  const model::Architecture* architecture = &coded->architecture;
  const TrainOptions& options = coded->options;
  // What an encoder-decoder's own code does not offer.
  const bool refused = options.recompute_reentrant || options.loss == engines::pytorch::Loss::none;
  const bool sees = static_cast<bool>(architecture->vision);
  if (architecture->encoder_layers > 0 && !sees && refused) return true;
  if (sees && options.kernels == engines::pytorch::Kernels::cpu) return true;
  if (adds_tokens(options.tuning.tuner) && !engines::pytorch::check_virtual_tokens(*architecture, options.tuning))
    return true;
  for (const bool splice : {false, true}) {
    const auto run = engines::pytorch::run_train_step(*architecture, options, splice);
    if (!run) return std::fprintf(stderr, "%s: %s\n", name.c_str(), to_string(run.error()).c_str()), false;
    const auto end = static_cast<std::uint32_t>(run->timeline.events.size());
    const std::int64_t peak = memory::peak_between(run->timeline, run->before_step, end).bytes;
    std::printf("%s%s %016llx %lld %lld %lld\n", name.c_str(), splice ? " spliced" : "",
                static_cast<unsigned long long>(digest(memory::serialise(run->timeline))), static_cast<long long>(peak),
                reserved(run->timeline, false), reserved(run->timeline, true));
  }
  return true;
}

}  // namespace

int main() {
  bool good = true;
  for (const Model& model : kModels) {
    const auto config = parse_json(model.config, model.name);
    for (const auto& [name, options] : text_set_ups())
      good = print(std::string(model.name) + " " + name, *config, options) && good;
    for (const auto& [name, options] : code_set_ups())
      good = print(std::string(model.name) + " " + name, *config, options) && good;
  }
  for (const char* arch : kImages) {
    TrainOptions options;
    options.micro_batch = 2;
    options.dtype = DType::f32;
    const Json config{{"model_type", "torchvision"}, {"arch", arch}};
    good = print(arch, config, options) && good;
    options.kernels = engines::pytorch::Kernels::cuda_traced;
    good = print(std::string(arch) + " traced", config, options) && good;
  }
  return good ? 0 : 1;
}
