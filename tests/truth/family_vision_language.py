"""Vision-language models, their towers included: one image in each sequence."""
from jobs import STANDARD, Job

TEXT = {"hidden_size": 128, "intermediate_size": 200, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 1001, "max_position_embeddings": 2048}
TOKENS = {"image_token_id": 990, "video_token_id": 991, "vision_start_token_id": 992, "vision_end_token_id": 993}
MROPE = {"rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]}}
QWEN2 = {"model_type": "qwen2_vl", **TEXT, **TOKENS, **MROPE, "tie_word_embeddings": True,
         "vision_config": {"depth": 2, "embed_dim": 64, "hidden_size": 128, "mlp_ratio": 3, "num_heads": 2,
                           "patch_size": 14}}
QWEN2_5 = {"model_type": "qwen2_5_vl", **TEXT, **TOKENS, **MROPE,
           "vision_config": {"depth": 2, "hidden_size": 64, "intermediate_size": 100, "num_heads": 2,
                             "out_hidden_size": 128, "patch_size": 14, "window_size": 56,
                             "fullatt_block_indexes": [1]}}
WINDOWS = {**QWEN2_5, "use_sliding_window": True, "sliding_window": 24, "max_window_layers": 1}
QWEN3 = {"model_type": "qwen3_vl", **TOKENS, "tie_word_embeddings": True,
         "text_config": {**TEXT, "model_type": "qwen3_vl_text", "head_dim": 48, "attention_bias": True,
                         "rope_scaling": {"rope_type": "default", "mrope_interleaved": True,
                                          "mrope_section": [8, 8, 8]}},
         "vision_config": {"depth": 3, "hidden_size": 64, "intermediate_size": 100, "num_heads": 2,
                           "out_hidden_size": 128, "patch_size": 32, "num_position_embeddings": 64,
                           "deepstack_visual_indexes": [0, 2]}}
QWEN3_MOE = {**QWEN3, "model_type": "qwen3_vl_moe",
             "text_config": {**QWEN3["text_config"], "model_type": "qwen3_vl_moe_text", "moe_intermediate_size": 24,
                             "num_experts": 6, "num_experts_per_tok": 3, "decoder_sparse_step": 2}}
LLAVA = {"model_type": "llava", "image_token_index": 990, "vision_feature_layer": -2,
         "text_config": {**TEXT, "model_type": "llama"},
         "vision_config": {"model_type": "clip_vision_model", "hidden_size": 64, "image_size": 56, "patch_size": 14,
                           "intermediate_size": 100, "num_attention_heads": 2, "num_hidden_layers": 3}}
LLAVA_FULL = {**LLAVA, "vision_feature_layer": -1, "vision_feature_select_strategy": "full",
              "multimodal_projector_bias": False, "text_config": {**TEXT, "model_type": "mistral"}}

NORMAL = "--micro-batch 2 --seq-len 64"
ODD = "--micro-batch 3 --seq-len 33"
LANGUAGE = "--lora 8 --lora-targets q_proj,v_proj"

CONFIGS = {}
JOBS = []


def add(name, config, image, args):
    JOBS.append(Job(name, config, f"--kernels cuda-traced {args} --image-size {image}"))


for name, config, image in (("qwen2_vl", QWEN2, 84), ("qwen2_5_vl", QWEN2_5, 84), ("qwen3_vl", QWEN3, 256),
                            ("llava", LLAVA, 56)):
    tower = "vision_tower" if name == "llava" else "visual"
    for kind, args in STANDARD.items():
        add(f"{name}-{kind}", config, image, args)
    add(f"{name}-frozen", config, image, f"{NORMAL} --precision bf16 --freeze {tower} --grad-accum 2")
    add(f"{name}-frozen-full", config, image, f"{ODD} --precision bf16 --freeze {tower} --recompute full")
    add(f"{name}-lora", config, image, f"{NORMAL} --precision bf16 {LANGUAGE}")
    add(f"{name}-lora-full", config, image, f"{ODD} --precision bf16 {LANGUAGE} --recompute full")
    add(f"{name}-tower-full", config, image, f"{NORMAL} --precision bf16 --recompute-vision")
    add(f"{name}-tower-lora", config, image, f"{ODD} --precision bf16 {LANGUAGE} --recompute-vision")
    add(f"{name}-tower-reentrant", config, image, f"{ODD} --precision bf16 --recompute-vision --recompute-reentrant")
    add(f"{name}-fp32", config, image, f"{ODD} --precision fp32 --optimizer sgd")
    add(f"{name}-first", config, image, "--micro-batch 1 --seq-len 17 --precision bf16 --step first --loss none")
# Products by group are in bf16 only.
for kind in ("bf16", "bf16-reentrant"):
    add(f"qwen3_vl_moe-{kind}", QWEN3_MOE, 256, STANDARD[kind])
add("qwen3_vl_moe-bf16-full", QWEN3_MOE, 256, f"{ODD} --precision bf16 --recompute full")
add("llava-full-bf16", LLAVA_FULL, 56, f"{ODD} --precision bf16")
add("llava-full-amp-bf16", LLAVA_FULL, 56, f"{ODD} --precision amp-bf16")
add("qwen2_5_vl-all-linear", QWEN2_5, 84, f"{ODD} --precision bf16 --lora 8 --lora-targets all-linear")
add("qwen2_5_vl-windows", WINDOWS, 56, f"{NORMAL} --precision bf16")
add("qwen2_5_vl-most-pixels", QWEN2_5, 300, f"{NORMAL} --precision bf16 --image-max-pixels 10000 --step forward")
