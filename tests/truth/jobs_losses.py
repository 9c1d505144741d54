"""Losses other than the model's own."""

NORMAL = "--micro-batch 2 --seq-len 64 --loss fused"
ODD = "--micro-batch 3 --seq-len 33 --loss fused"


def jobs(add, llama, gpt2):
    add(llama, "fused-loss", f"{NORMAL} --precision bf16")
    add(llama, "fused-loss-fp32-tied", f"{ODD} --precision fp32", tie_word_embeddings=True)
    add(llama, "fused-loss-one-chunk", f"{NORMAL} --precision bf16 --recompute full", vocab_size=200)
    add(llama, "fused-loss-accumulate", f"{ODD} --precision bf16 --grad-accum 2")
    add(llama, "fused-loss-lora", f"{NORMAL} --precision bf16 --lora 8")
    add(llama, "fused-loss-forward", f"{NORMAL} --precision bf16 --step forward --optimizer none")
