"""Frozen models with adapters, and partly frozen ones."""

NORMAL = "--micro-batch 2 --seq-len 64 --precision bf16"
ODD = "--micro-batch 3 --seq-len 33 --precision bf16"
FULL = "--recompute full"
REENTRANT = "--recompute full --recompute-reentrant"
ALL = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"


def low_rank(add, llama, gpt2):
    for dtype in ("fp32", "base"):
        two = f"--lora 8 --lora-targets q_proj,v_proj --lora-dtype {dtype}"
        every = f"--lora 5 --lora-targets {ALL} --lora-dtype {dtype}"
        add(llama, f"lora-{dtype}", f"{NORMAL} {two}")
        add(llama, f"lora-{dtype}-dropout", f"{ODD} {two} --lora-dropout 0.1")
        add(llama, f"lora-{dtype}-all", f"{ODD} {every}")
        add(llama, f"lora-{dtype}-all-dropout-full", f"{NORMAL} {every} --lora-dropout 0.1 {FULL}")
        add(llama, f"lora-{dtype}-reentrant", f"{ODD} {every} {REENTRANT}")
        add(llama, f"lora-{dtype}-full", f"{NORMAL} {two} {FULL}")
        add(gpt2, f"lora-{dtype}", f"{NORMAL} --lora 8 --lora-targets c_attn --lora-dtype {dtype}")
        add(gpt2, f"lora-{dtype}-all-full", f"{ODD} --lora 8 --lora-targets c_attn,c_proj,c_fc --lora-dtype {dtype} {FULL}")
    add(llama, "lora-default-targets", f"{NORMAL} --lora 4")
    add(gpt2, "lora-default-targets", f"{NORMAL} --lora 4")
    add(llama, "lora-all-linear-biases", f"{NORMAL} --lora 4 --lora-targets all-linear", attention_bias=True, mlp_bias=True)
    add(llama, "lora-head-tied", f"{NORMAL} --lora 4 --lora-targets q_proj,lm_head", tie_word_embeddings=True)
    add(llama, "lora-down-fp32", f"--micro-batch 2 --seq-len 64 --precision fp32 --lora 4 --lora-targets down_proj")
    add(llama, "lora-mlp-fp16-eager", "--micro-batch 2 --seq-len 48 --precision fp16 --attention eager --lora 4 --lora-targets mlp.up_proj")
    add(llama, "lora-accumulate-clip", f"{NORMAL} --lora 8 --lora-targets {ALL} --grad-accum 2 --clip-grad 1.0")
    add(llama, "lora-first-loop", f"{NORMAL} --lora 8 --lora-targets {ALL} --step first --optimizer-impl loop")
    add(llama, "lora-sgd-momentum-fused", f"{NORMAL} --lora 8 --lora-targets o_proj --optimizer sgd-momentum --optimizer-impl fused")
    add(llama, "lora-no-loss-forward", f"{NORMAL} --lora 8 --loss none --step forward --optimizer none {FULL}")


def other_tuners(add, llama, gpt2):
    for dtype in ("fp32", "base"):
        every = f"--lora 5 --lora-targets {ALL} --lora-dtype {dtype}"
        add(llama, f"lora-fa-{dtype}", f"{NORMAL} --tuner lora-fa {every}")
        add(llama, f"lora-fa-{dtype}-dropout-full", f"{ODD} --tuner lora-fa {every} --lora-dropout 0.1 {FULL}")
        add(llama, f"dora-{dtype}", f"{NORMAL} --tuner dora {every}")
        add(llama, f"dora-{dtype}-dropout-full", f"{ODD} --tuner dora {every} --lora-dropout 0.1 {FULL}")
        add(gpt2, f"dora-{dtype}", f"{NORMAL} --tuner dora --lora 8 --lora-targets c_attn --lora-dtype {dtype}")


def without_rank(add, llama, gpt2):
    for dtype in ("fp32", "base"):
        add(llama, f"ia3-{dtype}", f"{NORMAL} --tuner ia3 --lora-dtype {dtype}")
        add(llama, f"ia3-{dtype}-full", f"{ODD} --tuner ia3 --lora-dtype {dtype} {FULL}")
        add(gpt2, f"ia3-{dtype}", f"{NORMAL} --tuner ia3 --lora-dtype {dtype}")
    add(llama, "ia3-amp-bf16", "--micro-batch 3 --seq-len 33 --precision amp-bf16 --tuner ia3 --lora-targets q_proj,down_proj")
    add(llama, "ia3-reentrant", f"{ODD} --tuner ia3 {REENTRANT}")
    add(llama, "ia3-fp32-accumulate", "--micro-batch 2 --seq-len 33 --precision fp32 --tuner ia3 --grad-accum 2")
    add(llama, "prompt", f"{NORMAL} --tuner prompt --virtual-tokens 8")
    add(llama, "prompt-full", f"{ODD} --tuner prompt --virtual-tokens 7 {FULL}")
    add(llama, "prompt-one-fp32", "--micro-batch 1 --seq-len 33 --precision fp32 --tuner prompt --virtual-tokens 20")
    add(llama, "prompt-amp-bf16", "--micro-batch 3 --seq-len 33 --precision amp-bf16 --tuner prompt --virtual-tokens 5")
    add(llama, "prompt-fp16-eager", "--micro-batch 2 --seq-len 48 --precision fp16 --attention eager --tuner prompt --virtual-tokens 5")
    add(llama, "prefix", f"{NORMAL} --tuner prefix --virtual-tokens 8")
    add(llama, "prefix-fp32-first", "--micro-batch 3 --seq-len 33 --precision fp32 --tuner prefix --virtual-tokens 7 --step first")
    add(llama, "prefix-amp-bf16", "--micro-batch 3 --seq-len 33 --precision amp-bf16 --tuner prefix --virtual-tokens 5")
    add(llama, "prefix-fp16-eager", "--micro-batch 1 --seq-len 48 --precision fp16 --attention eager --tuner prefix --virtual-tokens 5")


def partly_trained(add, llama, gpt2):
    for saved in ("lm_head", "embed_tokens", "embed_tokens,lm_head"):
        name = saved.replace(",", "-").replace("_", "-")
        add(llama, f"lora-save-{name}", f"{NORMAL} --lora 8 --modules-to-save {saved}")
        add(llama, f"lora-save-{name}-base-full", f"{ODD} --lora 8 --lora-dtype base --modules-to-save {saved} {FULL}")
    add(llama, "lora-save-norms-clip", f"{NORMAL} --lora 8 --modules-to-save input_layernorm,norm --clip-grad 1.0")
    add(llama, "lora-save-norms-loop", f"{NORMAL} --lora 8 --modules-to-save input_layernorm,norm --optimizer-impl loop")
    add(llama, "freeze-embed", f"{NORMAL} --freeze embed_tokens")
    add(llama, "freeze-mlp-full", f"{ODD} --freeze mlp {FULL}")
    add(llama, "freeze-attention-fp32", "--micro-batch 2 --seq-len 48 --precision fp32 --freeze self_attn,input_layernorm")
    add(llama, "freeze-head-reentrant", f"{NORMAL} --freeze lm_head,norm {REENTRANT}")
    add(gpt2, "freeze-wte-wpe", f"{NORMAL} --freeze wte,wpe")
    add(gpt2, "freeze-attn-full", f"{NORMAL} --freeze attn,ln_1 {FULL}")


def jobs(add, llama, gpt2):
    low_rank(add, llama, gpt2)
    other_tuners(add, llama, gpt2)
    without_rank(add, llama, gpt2)
    partly_trained(add, llama, gpt2)
