"""GPT-style decoders: learned, rotary or ALiBi positions, fused projections, layer norms.

BLOOM, GPT-J, GPT-Neo and MPT know the composed attention alone, so all their jobs ask for it.
"""
from jobs import STANDARD, Job

TINY = {"vocab_size": 1000}
NEOX = {"model_type": "gpt_neox", **TINY, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 256}
OPT = {"model_type": "opt", **TINY, "hidden_size": 128, "ffn_dim": 320, "num_hidden_layers": 2,
       "num_attention_heads": 4, "max_position_embeddings": 256, "word_embed_proj_dim": 128}
BLOOM = {"model_type": "bloom", **TINY, "hidden_size": 128, "n_layer": 2, "n_head": 4}
FALCON = {"model_type": "falcon", **TINY, "hidden_size": 160, "num_hidden_layers": 2, "num_attention_heads": 5}
FALCON_NEW = {**FALCON, "hidden_size": 128, "num_attention_heads": 4, "num_kv_heads": 2,
              "new_decoder_architecture": True}
FALCON_ALIBI = {**FALCON, "alibi": True, "multi_query": False, "parallel_attn": False, "bias": True,
                "hidden_dropout": 0.1, "attention_dropout": 0.1}
GPTJ = {"model_type": "gptj", **TINY, "n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 256, "rotary_dim": 8}
MPT = {"model_type": "mpt", **TINY, "d_model": 128, "n_heads": 4, "n_layers": 2, "max_seq_len": 96}
BIGCODE = {"model_type": "gpt_bigcode", **TINY, "n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 256}
PHI = {"model_type": "phi", **TINY, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 2,
       "num_attention_heads": 4, "max_position_embeddings": 256}
NEO = {"model_type": "gpt_neo", **TINY, "hidden_size": 128, "num_layers": 2, "num_heads": 4,
       "attention_types": [[["global", "local"], 1]], "window_size": 16, "max_position_embeddings": 96}

CONFIGS = {
    "gpt_neox": NEOX,
    "gpt_neox-sequential": {**NEOX, "use_parallel_residual": False, "attention_bias": False, "hidden_dropout": 0.1,
                            "attention_dropout": 0.1, "rotary_pct": 1.0, "tie_word_embeddings": True,
                            "hidden_act": "gelu_new"},
    "opt": OPT,
    "opt-after": {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 64, "attention_dropout": 0.1},
    "opt-plain": {**OPT, "enable_bias": False, "layer_norm_elementwise_affine": False, "tie_word_embeddings": False,
                  "dropout": 0.0},
    "falcon": FALCON,
    "falcon-new": FALCON_NEW,
    "falcon-alibi": FALCON_ALIBI,
    "gpt_bigcode": BIGCODE,
    "gpt_bigcode-all-heads": {**BIGCODE, "multi_query": False, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
                              "attn_pdrop": 0.0, "tie_word_embeddings": False, "n_inner": 300},
    "phi": {**PHI, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attention_dropout": 0.1},
    "phi-norms": {**PHI, "num_key_value_heads": 2, "qk_layernorm": True, "partial_rotary_factor": 0.25},
}

# Where a checkpointed layer picks elements by a list or makes a tensor of a number, its rerun leaves the fake tensors.
RERUNS_FAIL = {"falcon", "falcon-new", "gpt_neo", "gpt_neo-dropout"}
WITHOUT = {name: ("fp32-full", "bf16-reentrant", "amp-bf16-full") for name in ("falcon", "falcon-new")}

EAGER = {
    "bloom": BLOOM,
    "bloom-dropout": {**BLOOM, "n_head": 6, "hidden_size": 96, "hidden_dropout": 0.1, "attention_dropout": 0.1,
                      "apply_residual_connection_post_layernorm": True, "tie_word_embeddings": False},
    "gptj": GPTJ,
    "gptj-dropout": {**GPTJ, "rotary_dim": 32, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
                     "n_inner": 300, "tie_word_embeddings": True},
    "mpt": MPT,
    "mpt-clip": {**MPT, "n_heads": 6, "d_model": 96, "attn_config": {"clip_qkv": 8.0}, "tie_word_embeddings": False},
    "gpt_neo": NEO,
    "gpt_neo-dropout": {**NEO, "resid_dropout": 0.1, "embed_dropout": 0.1, "attention_dropout": 0.1,
                        "intermediate_size": 300, "tie_word_embeddings": False},
}

ODD = "--micro-batch 3 --seq-len 33"
MORE = {
    "fp32-eager-full": f"{ODD} --precision fp32 --recompute full",
    "bf16-eager-reentrant": f"{ODD} --precision bf16 --recompute full --recompute-reentrant",
    "fp32-eager-accumulate": "--micro-batch 1 --seq-len 48 --precision fp32 --grad-accum 2 --optimizer sgd",
}


def with_eager_attention(kinds):
    for kind, args in kinds.items():
        yield kind, args if "--attention" in args else f"{args} --attention eager"


def jobs(name, config, kinds):
    return [Job(f"{name}-{kind}", config, f"--kernels cuda-traced {args}") for kind, args in with_eager_attention(kinds)
            if "--recompute" not in args or name not in RERUNS_FAIL]


JOBS = []
for name, config in EAGER.items():
    JOBS += jobs(name, config, STANDARD)
for name, config in {**CONFIGS, **EAGER}.items():
    JOBS += jobs(name, config, MORE)
