"""Dense decoders in the manner of Llama. Each configuration has its family's features on."""
from jobs import Job


def base(model_type, **changes):
    return {"model_type": model_type, "hidden_size": 128, "intermediate_size": 200, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1001, "max_position_embeddings": 512,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **changes}


def longrope(pairs):
    return {"rope_type": "longrope", "short_factor": [1.0] * pairs, "long_factor": [2.0] * pairs, "rope_theta": 10000.0}


CONFIGS = {
    "qwen2": base("qwen2"),
    "qwen2-windows": base("qwen2", num_hidden_layers=3, use_sliding_window=True, sliding_window=20, max_window_layers=1,
                          tie_word_embeddings=True, attention_dropout=0.1),
    "qwen3": base("qwen3", head_dim=48, tie_word_embeddings=True),
    "qwen3-windows": base("qwen3", num_hidden_layers=3, head_dim=32, attention_bias=True, use_sliding_window=True,
                          sliding_window=64, max_window_layers=2),
    "phi3": base("phi3"),
    "phi3-window": base("phi3", sliding_window=40, resid_pdrop=0.1, attention_dropout=0.1, num_key_value_heads=None),
    "phi3-long": base("phi3", hidden_size=256, partial_rotary_factor=0.75, tie_word_embeddings=True,
                      original_max_position_embeddings=256, rope_scaling=longrope(24)),
    "gemma": base("gemma", head_dim=48, num_key_value_heads=1),
    "gemma-untied": base("gemma", head_dim=32, attention_bias=True, tie_word_embeddings=False, hidden_act="gelu",
                         attention_dropout=0.1),
    "gemma2": base("gemma2", head_dim=48, sliding_window=24, query_pre_attn_scalar=48),
    "gemma2-plain": base("gemma2", head_dim=32, num_hidden_layers=3, sliding_window=100, attention_bias=True,
                         final_logit_softcapping=None, attn_logit_softcapping=None, attention_dropout=0.1),
    "gemma3-text": base("gemma3_text", num_hidden_layers=3, head_dim=48, sliding_window=24, sliding_window_pattern=2),
    "gemma3-text-local": base("gemma3_text", head_dim=32, sliding_window=40, attention_bias=True,
                              tie_word_embeddings=False, final_logit_softcapping=30.0,
                              rope_scaling={"rope_type": "linear", "factor": 8.0}),
    "smollm3": base("smollm3", num_hidden_layers=3, no_rope_layer_interval=2),
    "smollm3-windows": base("smollm3", num_hidden_layers=3, no_rope_layers=[1, 0, 1], use_sliding_window=True,
                            sliding_window=20, attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
                            attention_dropout=0.1),
    "olmo": base("olmo"),
    "olmo-clipped": base("olmo", clip_qkv=8.0, attention_bias=True, tie_word_embeddings=True, attention_dropout=0.1,
                         num_key_value_heads=4),
    "olmo2": base("olmo2"),
    "olmo2-bias": base("olmo2", attention_bias=True, tie_word_embeddings=True, attention_dropout=0.1,
                       num_key_value_heads=4),
    "olmo3": base("olmo3", num_hidden_layers=4, sliding_window=20),
    "granite": base("granite", embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22,
                    attention_multiplier=0.1, tie_word_embeddings=True),
    "granite-bias": base("granite", attention_bias=True, mlp_bias=True, attention_dropout=0.1),
    "stablelm": base("stablelm", use_qkv_bias=True),
    "stablelm-parallel": base("stablelm", hidden_size=192, qk_layernorm=True, use_parallel_residual=True,
                              hidden_dropout=0.1, attention_dropout=0.1, partial_rotary_factor=0.5,
                              tie_word_embeddings=True),
    "stablelm-qk-norm": base("stablelm", qk_layernorm=True, num_key_value_heads=4),
    "cohere": base("cohere"),
    "cohere-qk-norm": base("cohere", use_qk_norm=True, attention_bias=True, tie_word_embeddings=False,
                           attention_dropout=0.1),
    "cohere2": base("cohere2", num_hidden_layers=4, sliding_window=20),
    "glm4": base("glm4", head_dim=48),
    "glm4-whole-heads": base("glm4", head_dim=32, partial_rotary_factor=1.0, attention_bias=False,
                             attention_dropout=0.1, tie_word_embeddings=True),
    "seed_oss": base("seed_oss", head_dim=48),
    "seed_oss-still": base("seed_oss", num_key_value_heads=None, head_dim=None, attention_bias=False,
                           attention_out_bias=True, mlp_bias=True, attention_dropout=0, residual_dropout=0,
                           tie_word_embeddings=True),
    "exaone4": base("exaone4", num_hidden_layers=4, sliding_window=20),
    "exaone4-global": base("exaone4", sliding_window=None, layer_types=["full_attention"] * 2, attention_dropout=0.1,
                           num_key_value_heads=4, tie_word_embeddings=True),
    "exaone4-local": base("exaone4", head_dim=48, sliding_window=40, sliding_window_pattern=3),
    "starcoder2": base("starcoder2", residual_dropout=0.1, embedding_dropout=0.1, attention_dropout=0.1,
                       sliding_window=40),
    "starcoder2-plain": base("starcoder2", use_bias=False, tie_word_embeddings=False),
}


def extra(name, kind, args):
    return Job(f"{name}-{kind}", CONFIGS[name], f"--kernels cuda-traced {args}")


JOBS = [extra(name, "fp32-eager-reentrant", "--micro-batch 2 --seq-len 33 --precision fp32 --attention eager "
                                            "--recompute full --recompute-reentrant")
        for name in CONFIGS if "-" not in name]
JOBS += [extra(name, f"{tuner}-bf16", f"--micro-batch 2 --seq-len 64 --precision bf16 --tuner {tuner} --virtual-tokens 6")
         for name in ("qwen2", "qwen3") for tuner in ("prompt", "prefix")]
