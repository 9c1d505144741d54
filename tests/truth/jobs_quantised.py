"""Adapters on weights of four and eight bits."""

NORMAL = "--micro-batch 2 --seq-len 64"
ODD = "--micro-batch 3 --seq-len 33"
FULL = "--recompute full"
REENTRANT = "--recompute full --recompute-reentrant"
ALL = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"


def jobs(add, llama, gpt2):
    for kind in ("nf4", "nf4-dq", "int8"):
        two = f"--lora 8 --lora-targets q_proj,v_proj --quantize-base {kind}"
        every = f"--lora 5 --lora-targets {ALL} --quantize-base {kind}"
        add(llama, f"qlora-{kind}", f"{NORMAL} --precision bf16 {two}")
        if kind != "int8":  # it keeps its inputs where recompute does not see them
            add(llama, f"qlora-{kind}-full", f"{ODD} --precision bf16 {every} --lora-dropout 0.1 {FULL}")
        add(llama, f"qlora-{kind}-all-reentrant", f"{NORMAL} --precision bf16 {every} --prepare-kbit {REENTRANT}")
        add(llama, f"qlora-{kind}-amp", f"{NORMAL} --precision amp-bf16 {every} --prepare-kbit")
        add(gpt2, f"qlora-{kind}", f"{NORMAL} --precision fp16 --lora 8 --lora-targets c_attn --quantize-base {kind}")
    add(llama, "qlora-fp4-biases-fp32", f"{NORMAL} --precision fp32 --lora 4 --lora-targets {ALL} --quantize-base fp4",
        attention_bias=True, mlp_bias=True)
    add(llama, "qlora-nf4-save-head", f"{NORMAL} --precision bf16 --lora 4 --modules-to-save lm_head --quantize-base nf4 --prepare-kbit")
    add(llama, "qlora-nf4-8bit-adamw", f"{NORMAL} --precision bf16 --lora 16 --lora-targets {ALL} --quantize-base nf4 --optimizer adamw-8bit")
    for kind in ("gptq", "awq"):
        two = f"--lora 8 --lora-targets q_proj,v_proj --quantize-base {kind}"
        every = f"--lora 5 --lora-targets {ALL} --quantize-base {kind}"
        wide = {"intermediate_size": 768}  # whole groups
        add(llama, f"qlora-{kind}", f"{NORMAL} --precision bf16 {two}", **wide)
        add(llama, f"qlora-{kind}-fp16-full", f"{ODD} --precision fp16 {every} --lora-dropout 0.1 {FULL}", **wide)
        add(llama, f"qlora-{kind}-all-reentrant", f"{NORMAL} --precision bf16 {every} {REENTRANT}", **wide)
        add(llama, f"qlora-{kind}-amp", f"{NORMAL} --precision amp-bf16 {every}", **wide)
        add(llama, f"qlora-{kind}-biases", f"{ODD} --precision fp16 {every}", attention_bias=True, mlp_bias=True, **wide)
        add(llama, f"qlora-{kind}-trainer", f"{NORMAL} --precision bf16 {every} --trainer hf --clip-grad 1.0", **wide)
        add(gpt2, f"qlora-{kind}", f"{NORMAL} --precision fp16 --lora 8 --lora-targets c_attn --quantize-base {kind}")
