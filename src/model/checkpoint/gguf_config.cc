#include "model/checkpoint/gguf_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace ullage::model {
namespace {

// What a metadata entry ("llama.block_count" without the architecture) is called in a configuration.
struct Field {
  std::string_view key;
  std::string_view name;
};

// Every architecture has these.
constexpr std::array kCommon{
    Field{"context_length", "max_position_embeddings"},
    Field{"block_count", "num_hidden_layers"},
    Field{"embedding_length", "hidden_size"},
    Field{"feed_forward_length", "intermediate_size"},
    Field{"attention.head_count", "num_attention_heads"},
    Field{"attention.head_count_kv", "num_key_value_heads"},
};

constexpr std::array kHeads{Field{"attention.key_length", "head_dim"}};
constexpr std::array kWindow{Field{"attention.key_length", "head_dim"},
                             Field{"attention.sliding_window", "sliding_window"}};
constexpr std::array kLocalExperts{Field{"attention.key_length", "head_dim"},
                                   Field{"expert_count", "num_local_experts"},
                                   Field{"expert_used_count", "num_experts_per_tok"}};
constexpr std::array kOss{Field{"attention.key_length", "head_dim"},
                          Field{"attention.sliding_window", "sliding_window"},
                          Field{"expert_count", "num_local_experts"}, Field{"expert_used_count", "num_experts_per_tok"},
                          Field{"expert_feed_forward_length", "intermediate_size"}};
constexpr std::array kQwenExperts{Field{"attention.key_length", "head_dim"}, Field{"expert_count", "num_experts"},
                                  Field{"expert_used_count", "num_experts_per_tok"},
                                  Field{"expert_feed_forward_length", "moe_intermediate_size"},
                                  Field{"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
constexpr std::array kRoutedExperts{Field{"attention.key_length", "head_dim"},
                                    Field{"expert_count", "n_routed_experts"},
                                    Field{"expert_used_count", "num_experts_per_tok"},
                                    Field{"expert_shared_count", "n_shared_experts"},
                                    Field{"expert_feed_forward_length", "moe_intermediate_size"},
                                    Field{"expert_group_count", "n_group"},
                                    Field{"expert_group_used_count", "topk_group"},
                                    Field{"leading_dense_block_count", "first_k_dense_replace"}};
constexpr std::array kLatent{Field{"expert_count", "n_routed_experts"},
                             Field{"expert_used_count", "num_experts_per_tok"},
                             Field{"expert_shared_count", "n_shared_experts"},
                             Field{"expert_feed_forward_length", "moe_intermediate_size"},
                             Field{"expert_group_count", "n_group"},
                             Field{"expert_group_used_count", "topk_group"},
                             Field{"leading_dense_block_count", "first_k_dense_replace"},
                             Field{"attention.q_lora_rank", "q_lora_rank"},
                             Field{"attention.kv_lora_rank", "kv_lora_rank"},
                             Field{"rope.dimension_count", "qk_rope_head_dim"}};

class Configuration {
 public:
  Configuration(const Gguf& gguf, std::string architecture, const std::string& where)
      : gguf_(gguf), architecture_(std::move(architecture)), where_(where) {}

  void take(std::span<const Field> fields) {
    for (const Field& field : fields) {
      if (const auto value = number(field.key)) json_[std::string(field.name)] = *value;
    }
  }

  // Of an array with a value a layer the one that all have.
  std::optional<std::int64_t> number(std::string_view key) {
    const GgufValue* value = gguf_.find(fmt::format("{}.{}", architecture_, key));
    if (value == nullptr || value->kind == GgufKind::text) return std::nullopt;
    if (value->kind != GgufKind::array) return value->whole;
    const std::vector<std::int64_t>& all = value->numbers;
    if (!all.empty() && std::count(all.begin(), all.end(), all.front()) == static_cast<std::ptrdiff_t>(all.size()))
      return all.front();
    if (!error_)
      error_ = Error{ErrorCode::unsupported,
                     "differs from layer to layer, which is not modelled; name the model's config.json",
                     fmt::format("{}: {}.{}", where_, architecture_, key)};
    return std::nullopt;
  }

  bool has_tensor(std::string_view name) const { return holds(gguf_, name); }
  Json& json() { return json_; }
  const std::string& architecture() const { return architecture_; }

  Expected<Json> finish() {
    if (error_) return tl::unexpected<Error>(*error_);
    return std::move(json_);
  }

 private:
  const Gguf& gguf_;
  std::string architecture_;
  const std::string& where_;
  Json json_ = Json::object();
  std::optional<Error> error_;
};

using Complete = void (*)(Configuration&);

void nothing_more(Configuration&) {}

// Mistral's models and Mixtral are "llama" too; the former are built alike.
void complete_llama(Configuration& c) {
  if (c.number("expert_count").value_or(0) > 0) {
    c.json()["model_type"] = "mixtral";
    c.take(kLocalExperts);
  } else {
    c.json()["attention_bias"] = c.has_tensor("blk.0.attn_q.bias");
  }
  if (!c.json().contains("head_dim")) {
    if (const auto dim = c.number("rope.dimension_count")) c.json()["head_dim"] = *dim;
  }
}

void complete_biases(Configuration& c) { c.json()["attention_bias"] = c.has_tensor("blk.0.attn_q.bias"); }

// llama.cpp always normalises the weights of Qwen3's experts (src/models/qwen3moe.cpp).
void complete_qwen3_moe(Configuration& c) { c.json()["norm_topk_prob"] = true; }

// The last layers predict further tokens; block_count counts them in.
void leave_out_predictors(Configuration& c) {
  const std::int64_t predictors = c.number("nextn_predict_layers").value_or(0);
  if (const auto layers = c.number("block_count")) c.json()["num_hidden_layers"] = *layers - predictors;
}

void complete_glm4_moe(Configuration& c) {
  complete_biases(c);
  leave_out_predictors(c);
  c.json()["use_qk_norm"] = c.has_tensor("blk.0.attn_q_norm.weight");
}

// DeepSeek V3 corrects what its router scores; V2 does not. Files from before key_length_mla have the whole key length
// under key_length.
void complete_deepseek2(Configuration& c) {
  const std::int64_t dense = c.number("leading_dense_block_count").value_or(0);
  const bool corrected = c.has_tensor(fmt::format("blk.{}.exp_probs_b.bias", dense));
  if (corrected) c.json()["model_type"] = "deepseek_v3";
  leave_out_predictors(c);
  if (!c.json().contains("q_lora_rank")) c.json()["q_lora_rank"] = nullptr;
  const auto turned = c.number("rope.dimension_count");
  auto key = c.number("attention.key_length_mla");
  if (!key) key = c.number("attention.key_length");
  auto value = c.number("attention.value_length_mla");
  if (!value) value = c.number("attention.value_length");
  if (key && turned) c.json()["qk_nope_head_dim"] = *key - *turned;
  if (value) c.json()["v_head_dim"] = *value;
  // With MLA's cache llama.cpp writes 1; the model has as many as queries.
  if (const auto heads = c.number("attention.head_count")) c.json()["num_key_value_heads"] = *heads;
}

// Part of a head turns.
void complete_partial(Configuration& c) {
  const auto turned = c.number("rope.dimension_count");
  const auto whole = c.number("attention.key_length");
  const auto width = c.number("embedding_length");
  const auto heads = c.number("attention.head_count");
  if (!turned) return;
  const std::int64_t head = whole ? *whole : width && heads && *heads > 0 ? *width / *heads : 0;
  if (head > 0 && *turned > 0 && *turned < head)
    c.json()["partial_rotary_factor"] = static_cast<double>(*turned) / static_cast<double>(head);
}

void complete_glm4(Configuration& c) {
  complete_biases(c);
  complete_partial(c);
}

struct Architectural {
  std::string_view ggml;        // general.architecture
  std::string_view model_type;  // of transformers
  std::span<const Field> fields;
  Complete complete = nothing_more;
};

constexpr std::array kArchitectures{
    Architectural{"llama", "llama", kHeads, complete_llama},
    Architectural{"qwen2", "qwen2", {}},
    Architectural{"qwen2moe", "qwen2_moe", kQwenExperts},
    Architectural{"qwen3", "qwen3", kHeads},
    Architectural{"qwen3moe", "qwen3_moe", kQwenExperts, complete_qwen3_moe},
    Architectural{"gemma", "gemma", kHeads},
    Architectural{"gemma2", "gemma2", kWindow},
    Architectural{"gemma3", "gemma3_text", kWindow},
    Architectural{"phi3", "phi3", {}, complete_partial},
    Architectural{"deepseek2", "deepseek_v2", kLatent, complete_deepseek2},
    Architectural{"gpt-oss", "gpt_oss", kOss},
    Architectural{"glm4", "glm4", kHeads, complete_glm4},
    Architectural{"glm4moe", "glm4_moe", kRoutedExperts, complete_glm4_moe},
    Architectural{"granite", "granite", {}, complete_biases},
    Architectural{"granitemoe", "granitemoe", kLocalExperts},
    Architectural{"olmo2", "olmo2", {}},
    Architectural{"smollm3", "smollm3", kHeads},
    Architectural{"seed_oss", "seed_oss", kHeads, complete_biases},
    Architectural{"command-r", "cohere", {}},
    Architectural{"exaone4", "exaone4", kWindow},
    Architectural{"minimax-m2", "minimax_m2", kLocalExperts},
};

// Rows of the stored embeddings, else what the metadata say.
std::optional<std::int64_t> vocabulary(const Gguf& gguf, const std::string& architecture) {
  for (const GgufTensor& tensor : gguf.tensors) {
    if (tensor.name == "token_embd.weight") return tensor.sizes[1];
  }
  if (const GgufValue* size = gguf.find(architecture + ".vocab_size")) return size->whole;
  if (const GgufValue* tokens = gguf.find("tokenizer.ggml.tokens")) return tokens->count;
  return std::nullopt;
}

tl::unexpected<Error> unknown(const std::string& where, const std::string& architecture) {
  std::string known;
  for (const Architectural& row : kArchitectures) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.ggml);
  return fail(ErrorCode::unsupported, where + ": general.architecture",
              fmt::format("'{}' is not modelled; known are {}; --checkpoint still tells what the file stores",
                          excerpt(architecture), known));
}

}  // namespace

bool holds(const Gguf& gguf, std::string_view tensor) {
  return std::any_of(gguf.tensors.begin(), gguf.tensors.end(),
                     [&](const GgufTensor& held) { return held.name == tensor; });
}

Expected<Json> config_of(const Gguf& gguf, const std::string& where) {
  const GgufValue* named = gguf.find("general.architecture");
  if (named == nullptr || named->kind != GgufKind::text)
    return fail(ErrorCode::malformed, where + ": general.architecture", "missing; this file holds no model");
  const auto row = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                [&](const Architectural& known) { return known.ggml == named->text; });
  if (row == kArchitectures.end()) return unknown(where, named->text);
  Configuration out(gguf, named->text, where);
  out.json()["model_type"] = row->model_type;
  out.take(kCommon);
  out.take(row->fields);
  if (const auto rows = vocabulary(gguf, named->text)) out.json()["vocab_size"] = *rows;
  out.json()["tie_word_embeddings"] = !holds(gguf, "output.weight");
  Json& json = out.json();
  if (!json.contains("num_key_value_heads") && json.contains("num_attention_heads"))
    json["num_key_value_heads"] = json["num_attention_heads"];  // as llama.cpp takes it
  row->complete(out);
  return out.finish();
}

}  // namespace ullage::model
