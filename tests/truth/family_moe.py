"""Mixtures of experts, with and without latent attention: small models with every feature of their family on.

By default the experts run as one grouped product, which fake tensors allow in bf16 only; the batched product runs in
every precision and shows the rest of the model there.
"""
from jobs import STANDARD, Job, standard

BASE = {"hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 200, "max_position_embeddings": 2048, "tie_word_embeddings": False}
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 256, "mscale": 0.707,
        "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1}
LATENT = {**BASE, "num_key_value_heads": 4, "moe_intermediate_size": 40, "n_routed_experts": 8, "num_experts_per_tok": 3,
          "first_k_dense_replace": 1, "kv_lora_rank": 48, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
          "v_head_dim": 24, "rope_scaling": YARN, "rope_theta": 10000}

MODELS = {
    "mixtral": {**BASE, "model_type": "mixtral", "num_local_experts": 6, "num_experts_per_tok": 2},
    "qwen2-moe": {**BASE, "model_type": "qwen2_moe", "moe_intermediate_size": 40, "shared_expert_intermediate_size": 80,
                  "num_experts": 10, "num_experts_per_tok": 4, "mlp_only_layers": [1]},
    "qwen3-moe": {**BASE, "model_type": "qwen3_moe", "head_dim": 32, "moe_intermediate_size": 40, "num_experts": 12,
                  "num_experts_per_tok": 4, "norm_topk_prob": True, "decoder_sparse_step": 2, "attention_bias": True},
    "glm4-moe": {**BASE, "model_type": "glm4_moe", "head_dim": 32, "moe_intermediate_size": 40, "n_routed_experts": 16,
                 "num_experts_per_tok": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "use_qk_norm": True,
                 "attention_bias": True, "n_group": 4, "topk_group": 2},
    "deepseek-v2": {**LATENT, "model_type": "deepseek_v2", "q_lora_rank": 56, "n_shared_experts": 2},
    "deepseek-v3": {**LATENT, "model_type": "deepseek_v3", "q_lora_rank": 56, "n_shared_experts": 1, "n_group": 4,
                    "topk_group": 2},
    "phimoe": {**BASE, "model_type": "phimoe", "num_local_experts": 6, "num_experts_per_tok": 2, "attention_bias": True,
               "lm_head_bias": True},
    "olmoe": {**BASE, "model_type": "olmoe", "num_experts": 10, "num_experts_per_tok": 3, "norm_topk_prob": True,
              "attention_bias": True},
    "minimax-m2": {**BASE, "model_type": "minimax_m2", "head_dim": 32, "num_local_experts": 10, "num_experts_per_tok": 3,
                   "partial_rotary_factor": 0.5},
    "glm4-moe-lite": {**LATENT, "model_type": "glm4_moe_lite", "q_lora_rank": 56, "n_shared_experts": 1},
    "granitemoe": {**BASE, "model_type": "granitemoe", "num_local_experts": 6, "num_experts_per_tok": 2,
                   "embedding_multiplier": 12.0, "logits_scaling": 6.0, "residual_multiplier": 0.22,
                   "attention_multiplier": 0.0156},
    "gpt-oss": {**BASE, "model_type": "gpt_oss", "head_dim": 32, "num_local_experts": 6, "num_experts_per_tok": 4,
                "sliding_window": 16},
}
GROUPED_REFUSES = ("fp32-full", "fp16-eager", "amp-bf16", "amp-bf16-full")  # grouped products on fake tensors: bf16
# No job has deepseek_v2's topk_method group_limited_greedy: the class of transformers 5.12.1 asks for a number of
# experts that it has not.
SDPA_REFUSED = ("gpt-oss",)  # attention sinks: the class has no SDPA path

EXTRA = {
    "bf16-full": "--micro-batch 3 --seq-len 33 --precision bf16 --recompute full",
    "bf16-eager": "--micro-batch 2 --seq-len 48 --precision bf16 --attention eager",
    "bf16-eager-full": "--micro-batch 1 --seq-len 33 --precision bf16 --attention eager --recompute full",
}

CONFIGS = {name: config for name, config in MODELS.items() if name not in SDPA_REFUSED}
ONE_BY_ONE = ("granitemoe",)  # experts of the family's own, in every precision
WITHOUT = {name: () if name in ONE_BY_ONE else GROUPED_REFUSES for name in CONFIGS}
JOBS = []


def add(name, config, args):
    JOBS.append(Job(name, config, f"--kernels cuda-traced {args}"))


for name, config in MODELS.items():
    batched = {**config, "experts_implementation": "batched_mm"}
    eager = " --attention eager" if name in SDPA_REFUSED else ""
    for kind, args in EXTRA.items():
        if not eager or "eager" in kind:
            add(f"{name}-{kind}", config, args)
    for kind in () if name in ONE_BY_ONE else GROUPED_REFUSES:
        add(f"{name}-batched-{kind}", batched, STANDARD[kind] + ("" if "eager" in kind else eager))
    if eager:
        add(f"{name}-eager-reentrant", config, STANDARD["bf16-reentrant"] + eager)

LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "short_mscale": 1.2,
            "long_mscale": 1.3, "original_max_position_embeddings": 256}
add("phimoe-longrope-bf16", {**MODELS["phimoe"], "rope_scaling": LONGROPE, "rope_theta": 10000.0}, STANDARD["bf16"])
add("deepseek-v2-whole-queries-bf16", {**MODELS["deepseek-v2"], "q_lora_rank": None, "attention_bias": True}, STANDARD["bf16"])
add("deepseek-v3-halves-bf16", {**MODELS["deepseek-v3"], "q_lora_rank": None, "rope_interleave": False, "attention_bias": True,
                                "n_group": 1, "topk_group": 1, "norm_topk_prob": False}, STANDARD["bf16"])
add("deepseek-v3-equal-heads-bf16", {**MODELS["deepseek-v3"], "v_head_dim": 48}, STANDARD["bf16"])
add("glm4-moe-one-group-bf16", {**MODELS["glm4-moe"], "n_group": 1, "topk_group": 1, "use_qk_norm": False}, STANDARD["bf16"])
add("qwen2-moe-window-bf16", {**MODELS["qwen2-moe"], "use_sliding_window": True, "sliding_window": 16}, STANDARD["bf16"])
add("mixtral-window-bf16", {**MODELS["mixtral"], "sliding_window": 16, "head_dim": 32}, STANDARD["bf16"])
add("gpt-oss-dropout-bf16", {**MODELS["gpt-oss"], "attention_dropout": 0.1}, STANDARD["bf16"] + " --attention eager")
add("phimoe-jitter-bf16", {**MODELS["phimoe"], "input_jitter_noise": 0.01}, STANDARD["bf16"])
add("phimoe-jitter-bf16-full", {**MODELS["phimoe"], "input_jitter_noise": 0.01}, EXTRA["bf16-full"])
add("mixtral-jitter-bf16", {**MODELS["mixtral"], "router_jitter_noise": 0.01}, STANDARD["bf16"])
add("mixtral-jitter-bf16-full", {**MODELS["mixtral"], "router_jitter_noise": 0.01}, EXTRA["bf16-full"])

# The load-balancing loss of all routers. Granite's class collects no logits and so fails with it (5.12.1).
BALANCED = {"bf16": STANDARD["bf16"], "bf16-full": EXTRA["bf16-full"], "bf16-reentrant": STANDARD["bf16-reentrant"]}
BALANCED_UNDER_AUTOCAST = {kind: STANDARD[kind] for kind in ("amp-bf16", "amp-bf16-full")}
for name in ("mixtral", "qwen2-moe", "qwen3-moe", "phimoe", "olmoe", "minimax-m2", "gpt-oss"):
    config = {**MODELS[name], "output_router_logits": True, "num_hidden_layers": 4}
    eager = " --attention eager" if name in SDPA_REFUSED else ""
    for kind, args in BALANCED.items():
        add(f"{name}-balanced-{kind}", config, args + eager)
    for kind, args in BALANCED_UNDER_AUTOCAST.items():
        add(f"{name}-balanced-{kind}", {**config, "experts_implementation": "batched_mm"}, args + eager)
BALANCED_MIXTRAL = {**MODELS["mixtral"], "output_router_logits": True, "experts_implementation": "batched_mm"}
add("mixtral-balanced-accumulate", BALANCED_MIXTRAL, "--micro-batch 2 --seq-len 48 --precision bf16 --grad-accum 2")
add("mixtral-balanced-forward", BALANCED_MIXTRAL, "--micro-batch 2 --seq-len 48 --precision bf16 --step forward --optimizer none")
add("mixtral-balanced-loss-none", BALANCED_MIXTRAL, "--micro-batch 2 --seq-len 48 --precision bf16 --loss none")
add("mixtral-balanced-trainer", BALANCED_MIXTRAL, "--trainer hf --micro-batch 2 --seq-len 48 --precision amp-bf16 "
    "--optimizer-impl fused --clip-grad 1.0")
