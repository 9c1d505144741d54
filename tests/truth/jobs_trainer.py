"""Steps of transformers' Trainer: half precision is autocast over weights of that type, outputs become fp32."""

NORMAL = "--micro-batch 2 --seq-len 64 --trainer hf"
ODD = "--micro-batch 3 --seq-len 33 --trainer hf"
FULL = "--recompute full"
REENTRANT = "--recompute full --recompute-reentrant"


def jobs(add, llama, gpt2):
    for base in (llama, gpt2):
        add(base, "trainer-bf16", f"{NORMAL} --precision bf16")
        add(base, "trainer-bf16-full-clip", f"{ODD} --precision bf16 --clip-grad 1.0 {FULL}")
        add(base, "trainer-fp32", f"{ODD} --precision fp32 --clip-grad 1.0")
        add(base, "trainer-amp-bf16-accumulate", f"{NORMAL} --precision amp-bf16 --grad-accum 2 --clip-grad 1.0")
        add(base, "trainer-first-fused", f"{ODD} --precision bf16 --step first --optimizer-impl fused --clip-grad 1.0")
        add(base, "trainer-amp-fp16", f"{NORMAL} --precision amp-fp16 --grad-scaler --clip-grad 1.0")
    add(llama, "trainer-bf16-accumulate-3-reentrant", f"{NORMAL} --precision bf16 --grad-accum 3 {REENTRANT}")
    add(llama, "trainer-tied-eager", f"{ODD} --precision bf16 --attention eager", tie_word_embeddings=True)
    add(llama, "trainer-lora", f"{NORMAL} --precision bf16 --lora 8 --clip-grad 1.0")
    add(llama, "trainer-lora-base-full", f"{ODD} --precision bf16 --lora 8 --lora-dtype base --clip-grad 1.0 {FULL}")
    add(llama, "trainer-lora-save-dropout", f"{ODD} --precision bf16 --lora 8 --lora-dropout 0.1 --modules-to-save embed_tokens,lm_head --clip-grad 1.0 {FULL}")
    add(llama, "trainer-pure-bf16", f"{NORMAL} --precision pure-bf16 --clip-grad 1.0")
