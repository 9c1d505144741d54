"""Losses other than the model's own."""

NORMAL = "--micro-batch 2 --seq-len 64 --loss fused"
ODD = "--micro-batch 3 --seq-len 33 --loss fused"
FULL_LOSS = "--micro-batch 2 --seq-len 64"
ODD_LOSS = "--micro-batch 3 --seq-len 33"


def jobs(add, llama, gpt2):
    add(llama, "fused-loss", f"{NORMAL} --precision bf16")
    add(llama, "fused-loss-fp32-tied", f"{ODD} --precision fp32", tie_word_embeddings=True)
    add(llama, "fused-loss-one-chunk", f"{NORMAL} --precision bf16 --recompute full", vocab_size=200)
    add(llama, "fused-loss-accumulate", f"{ODD} --precision bf16 --grad-accum 2")
    add(llama, "fused-loss-lora", f"{NORMAL} --precision bf16 --lora 8")
    add(llama, "fused-loss-forward", f"{NORMAL} --precision bf16 --step forward --optimizer none")
    for version in ("4.44", "4.47"):
        name = version.replace(".", "-")
        add(llama, f"loss-{name}", f"{FULL_LOSS} --precision bf16 --transformers {version}")
        add(llama, f"loss-{name}-fp32-full", f"{ODD_LOSS} --precision fp32 --recompute full --transformers {version}")
        add(llama, f"loss-{name}-amp", f"{ODD_LOSS} --precision amp-bf16 --transformers {version}")
        add(llama, f"loss-{name}-lora", f"{FULL_LOSS} --precision bf16 --lora 8 --transformers {version}")
        add(gpt2, f"loss-{name}", f"{FULL_LOSS} --precision bf16 --transformers {version}")
    add(gpt2, "loss-4-47-amp", f"{ODD_LOSS} --precision amp-fp16 --transformers 4.47")
