"""Encoders and encoder-decoders. Each configuration has its family's features on."""
from jobs import STANDARD, Job

NORMAL = "--micro-batch 2 --seq-len 64"
BERT = {"hidden_size": 128, "intermediate_size": 200, "num_hidden_layers": 2, "num_attention_heads": 4,
        "vocab_size": 1001, "max_position_embeddings": 130}
T5 = {"model_type": "t5", "d_model": 96, "d_kv": 32, "d_ff": 200, "num_layers": 1, "num_decoder_layers": 2,
      "num_heads": 4, "vocab_size": 1001, "decoder_start_token_id": 0, "pad_token_id": 0}
BART = {"model_type": "bart", "d_model": 128, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 200,
        "decoder_ffn_dim": 232, "encoder_attention_heads": 4, "decoder_attention_heads": 2, "vocab_size": 1001,
        "max_position_embeddings": 128}

CONFIGS = {
    "bert": {"model_type": "bert", **BERT},
    "bert-plain": {"model_type": "bert", **BERT, "hidden_act": "gelu_new", "hidden_dropout_prob": 0.0,
                   "attention_probs_dropout_prob": 0.0, "tie_word_embeddings": False, "type_vocab_size": 1},
    "roberta": {"model_type": "roberta", **BERT, "type_vocab_size": 1},
    "roberta-relu": {"model_type": "roberta", **BERT, "hidden_act": "relu", "attention_probs_dropout_prob": 0.0,
                     "tie_word_embeddings": False},
    "t5": T5,
    "t5-gated": {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "dropout_rate": 0.0,
                 "num_layers": 2, "num_decoder_layers": 1},
    "bart": {**BART, "attention_dropout": 0.1, "activation_dropout": 0.1},
    "bart-scaled": {**BART, "scale_embedding": True, "activation_function": "relu", "dropout": 0.0,
                    "encoder_layers": 1, "decoder_layers": 2, "tie_word_embeddings": False},
}

# T5 has no other attention than the composed one, and its class refuses another.
T5_NAMES = [name for name in CONFIGS if name.startswith("t5")]
WITHOUT = {name: [kind for kind in STANDARD if "eager" not in kind] for name in T5_NAMES}

# A sequence to sequence is not run with a reentrant checkpoint: what its layers share would have to pass through.
WITHOUT |= {name: ["bf16-reentrant"] for name in CONFIGS if name.startswith("bart")}

JOBS = [Job(f"{name}-{kind}-eager", CONFIGS[name], f"--kernels cuda-traced {STANDARD[kind]} --attention eager")
        for name in T5_NAMES for kind in ("bf16", "fp32-full", "amp-bf16")]
JOBS += [Job("t5-amp-bf16-full-eager", T5, f"--kernels cuda-traced {STANDARD['amp-bf16-full']} --attention eager")]
JOBS += [Job(f"{name}-{kind}-full-eager", CONFIGS[name],
             f"--kernels cuda-traced {NORMAL} --precision {kind} --recompute full --attention eager")
         for name in ("bert", "roberta", "bart") for kind in ("bf16", "fp16")]
ADAPTED = {
    "bert": ("query,value", ("bf16", "fp32-full", "amp-bf16")),
    "bart": ("q_proj,v_proj", ("bf16", "fp32-full", "amp-bf16")),
    "t5": ("q,v", ()),
}
JOBS += [Job(f"{name}-lora-{kind}", CONFIGS[name],
             f"--kernels cuda-traced {STANDARD[kind]} --lora 4 --lora-targets {targets}")
         for name, (targets, kinds) in ADAPTED.items() for kind in kinds]
JOBS += [Job(f"t5-lora-{kind}", T5, f"--kernels cuda-traced {STANDARD[kind]} --lora 4 --attention eager")
         for kind in ("bf16", "fp32-full")]
