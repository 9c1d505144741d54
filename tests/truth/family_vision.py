"""Encoders of images and of speech. Each configuration has its family's features on."""
from jobs import STANDARD, Job

SIZE = 40
VIT = {"model_type": "vit", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
       "intermediate_size": 200, "image_size": SIZE, "patch_size": 8, "num_labels": 11}
TOWER = {"model_type": "clip_vision_model", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 200, "image_size": SIZE, "patch_size": 8}
WHISPER = {"model_type": "whisper", "d_model": 128, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 200,
           "decoder_ffn_dim": 232, "encoder_attention_heads": 4, "decoder_attention_heads": 2, "vocab_size": 1001,
           "num_mel_bins": 20, "max_source_positions": 75, "max_target_positions": 64, "pad_token_id": 0,
           "decoder_start_token_id": 1}

IMAGES = {
    "vit": {**VIT, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
    "vit-plain": {**VIT, "image_size": 43, "qkv_bias": False, "hidden_act": "gelu_new", "num_hidden_layers": 3},
    "clip-vision": {**TOWER, "attention_dropout": 0.1, "num_labels": 7},
    "clip": {"model_type": "clip", "vision_config": {**TOWER, "image_size": 47, "hidden_act": "gelu"}},
}
CONFIGS = {
    "whisper": {**WHISPER, "dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1},
    "whisper-plain": {**WHISPER, "encoder_layers": 1, "decoder_layers": 2, "activation_function": "relu",
                      "tie_word_embeddings": False},
}
# A sequence to sequence is not run with a reentrant checkpoint: what its layers share would have to pass through.
WITHOUT = {name: ["bf16-reentrant"] for name in CONFIGS}


def of_image(config, args):
    size = config.get("vision_config", config)["image_size"]
    batch, _ = args.split(" --seq-len ")
    return f"--kernels cuda-traced {batch} --image-size {size} {' '.join(args.split()[4:])}"


JOBS = [Job(f"{name}-{kind}", config, of_image(config, args))
        for name, config in IMAGES.items() for kind, args in STANDARD.items()]

NORMAL, ODD = "--micro-batch 2 --seq-len 64 --precision", "--micro-batch 3 --seq-len 33 --precision"
MORE = {
    "fp32-accumulate": f"{ODD} fp32 --grad-accum 2 --optimizer sgd-momentum",
    "amp-fp16-eager-full-first": f"{NORMAL} amp-fp16 --attention eager --recompute full --step first",
    "fp16-loop-clip": f"{NORMAL} fp16 --recompute full --optimizer-impl loop --clip-grad 1.0",
}
ADAPTED = {
    "lora": f"{NORMAL} bf16 --lora 4 --lora-targets q_proj,v_proj",
    "lora-all-full": f"{ODD} fp32 --lora 4 --lora-targets all-linear --recompute full",
    "lora-amp-bf16": f"{ODD} amp-bf16 --lora 4 --lora-targets q_proj,v_proj,fc1 --lora-dropout 0.1",
}
JOBS += [Job(f"{name}-{kind}", IMAGES[name], of_image(IMAGES[name], args))
         for name in ("vit", "clip-vision") for kind, args in (MORE | ADAPTED).items()]
JOBS += [Job(f"{name}-lora-reentrant", IMAGES[name], of_image(
             IMAGES[name], f"{ODD} bf16 --lora 4 --lora-targets q_proj,v_proj --recompute full --recompute-reentrant"))
         for name in ("vit", "clip-vision")]
JOBS += [Job(f"whisper-{kind}", CONFIGS["whisper"], f"--kernels cuda-traced {args}")
         for kind, args in (MORE | ADAPTED).items()]
