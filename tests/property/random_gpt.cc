#include "random_gpt.h"

#include <cstdint>

namespace ullage::testing {
namespace {

// What all have, under the names of each.
struct Size {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  std::int64_t hidden() const { return heads * head_dim; }
};

double dropout(Dice& dice) { return dice.once_in(3) ? 0.1 : 0.0; }

Json gpt_neox(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"intermediate_size", dice.between(3, 90)},
          {"hidden_dropout", dropout(dice)},
          {"attention_dropout", dropout(dice)},
          {"rotary_pct", dice.once_in(2) ? 0.5 : 1.0},
          {"attention_bias", dice.once_in(2)},
          {"use_parallel_residual", dice.once_in(2)},
          {"tie_word_embeddings", dice.once_in(3)}};
}

Json opt(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"ffn_dim", dice.between(3, 90)},
          {"word_embed_proj_dim", dice.once_in(2) ? s.hidden() : s.head_dim},
          {"do_layer_norm_before", dice.once_in(2)},
          {"enable_bias", dice.once_in(2)},
          {"layer_norm_elementwise_affine", dice.once_in(2)},
          {"dropout", dropout(dice)},
          {"attention_dropout", dropout(dice)}};
}

Json bloom(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"n_layer", s.layers},
          {"n_head", s.heads},
          {"hidden_dropout", dropout(dice)},
          {"attention_dropout", dropout(dice)},
          {"apply_residual_connection_post_layernorm", dice.once_in(2)}};
}

Json falcon(Dice& dice, const Size& s) {
  const bool grouped = dice.once_in(3);
  const bool parallel = grouped || dice.once_in(2);
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"num_kv_heads", s.heads},
          {"new_decoder_architecture", grouped},
          {"multi_query", dice.once_in(2)},
          {"parallel_attn", parallel},
          {"alibi", dice.once_in(3)},
          {"bias", dice.once_in(2)},
          {"hidden_dropout", dropout(dice)},
          {"attention_dropout", dropout(dice)}};
}

Json gptj(Dice& dice, const Size& s) {
  return {{"n_embd", s.hidden()},
          {"n_layer", s.layers},
          {"n_head", s.heads},
          {"n_positions", 40},
          {"rotary_dim", s.head_dim},
          {"resid_pdrop", dropout(dice)},
          {"embd_pdrop", dropout(dice)},
          {"attn_pdrop", dropout(dice)},
          {"n_inner", dice.between(3, 90)},
          {"tie_word_embeddings", dice.once_in(3)}};
}

Json gpt_neo(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},         {"num_layers", s.layers},         {"num_heads", s.heads},
          {"max_position_embeddings", 40},     {"resid_dropout", dropout(dice)}, {"embed_dropout", dropout(dice)},
          {"attention_dropout", dropout(dice)}};
}

Json mpt(Dice& dice, const Size& s) {
  return {{"d_model", s.hidden()},
          {"n_layers", s.layers},
          {"n_heads", s.heads},
          {"max_seq_len", 40},
          {"attn_config", {{"clip_qkv", dice.once_in(2) ? 8.0 : 0.0}, {"attn_pdrop", dropout(dice)}}}};
}

Json gpt_bigcode(Dice& dice, const Size& s) {
  return {{"n_embd", s.hidden()},        {"n_layer", s.layers},           {"n_head", s.heads},
          {"n_positions", 40},           {"resid_pdrop", dropout(dice)},  {"embd_pdrop", dropout(dice)},
          {"attn_pdrop", dropout(dice)}, {"multi_query", dice.once_in(2)}};
}

Json phi(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"num_key_value_heads", dice.once_in(2) ? 1 : s.heads},
          {"intermediate_size", dice.between(3, 90)},
          {"resid_pdrop", dropout(dice)},
          {"embd_pdrop", dropout(dice)},
          {"attention_dropout", dropout(dice)},
          {"qk_layernorm", dice.once_in(2)},
          {"partial_rotary_factor", 0.5}};
}

Json qwen(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"kv_channels", s.head_dim},
          {"no_bias", dice.once_in(2)},
          {"emb_dropout_prob", dropout(dice)},
          {"intermediate_size", 2 * dice.between(3, 50)}};
}

Json internlm2(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"num_key_value_heads", dice.once_in(2) ? 1 : s.heads},
          {"intermediate_size", dice.between(3, 90)},
          {"max_position_embeddings", 40},
          {"bias", dice.once_in(2)}};
}

Json baichuan(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_hidden_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"intermediate_size", dice.between(3, 90)},
          {"max_position_embeddings", 40},
          {"architectures", {dice.once_in(2) ? "BaiChuanForCausalLM" : "BaichuanForCausalLM"}}};
}

Json chatglm(Dice& dice, const Size& s) {
  return {{"hidden_size", s.hidden()},
          {"num_layers", s.layers},
          {"num_attention_heads", s.heads},
          {"kv_channels", s.head_dim},
          {"multi_query_attention", true},
          {"multi_query_group_num", dice.once_in(2) ? 1 : s.heads},
          {"ffn_hidden_size", dice.between(3, 90)},
          {"padded_vocab_size", s.vocab},
          {"seq_length", 40},
          {"hidden_dropout", dropout(dice)},
          {"add_qkv_bias", dice.once_in(2)},
          {"apply_residual_connection_post_layernorm", dice.once_in(2)}};
}

struct Maker {
  const char* family;
  Json (*make)(Dice& dice, const Size& size);
};

}  // namespace

Json gpt_style_config(Dice& dice, std::int64_t most_layers) {
  const auto maker = dice.any_of<Maker>({{"gpt_neox", gpt_neox},
                                         {"opt", opt},
                                         {"bloom", bloom},
                                         {"falcon", falcon},
                                         {"gptj", gptj},
                                         {"gpt_neo", gpt_neo},
                                         {"mpt", mpt},
                                         {"gpt_bigcode", gpt_bigcode},
                                         {"phi", phi},
                                         {"qwen", qwen},
                                         {"internlm2", internlm2},
                                         {"baichuan", baichuan},
                                         {"chatglm", chatglm}});
  Size size;
  size.layers = dice.between(1, most_layers);
  size.heads = dice.between(1, 6);
  size.head_dim = 4 * dice.between(1, 5);
  size.vocab = dice.between(5, 300);
  Json config = maker.make(dice, size);
  config["model_type"] = maker.family;
  config["vocab_size"] = size.vocab;
  return config;
}

}  // namespace ullage::testing
