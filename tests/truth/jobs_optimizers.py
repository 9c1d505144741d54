"""Every optimizer and implementation: a steady step and a first one, which makes the states."""

NORMAL = "--micro-batch 2 --seq-len 48 --precision bf16"
ODD = "--micro-batch 1 --seq-len 33 --precision fp32"
WAYS = {"adagrad": ("foreach", "loop", "fused"), "rmsprop": ("foreach", "loop"), "adafactor": ("foreach", "loop"),
        "lion": ("foreach", "loop"), "adam": ("foreach",)}


def jobs(add, llama, gpt2):
    for name, ways in WAYS.items():
        for way in ways:
            add(llama, f"{name}-{way}", f"{NORMAL} --optimizer {name} --optimizer-impl {way}")
            add(llama, f"{name}-{way}-first", f"{ODD} --optimizer {name} --optimizer-impl {way} --step first")
        add(gpt2, f"{name}-clip", f"{NORMAL} --optimizer {name} --optimizer-impl {ways[0]} --clip-grad 1.0")
        add(llama, f"{name}-{ways[-1]}-cpu", f"{NORMAL} --optimizer {name} --optimizer-impl {ways[-1]}", kernels="cpu")
    for name in ("muon", "adamw-8bit"):
        add(llama, name, f"{NORMAL} --optimizer {name}")
        add(llama, f"{name}-first", f"{ODD} --optimizer {name} --step first")
        add(gpt2, f"{name}-full", f"{NORMAL} --optimizer {name} --recompute full")
    add(llama, "adafactor", f"{NORMAL} --optimizer adafactor")
    add(llama, "adagrad-forward", f"{NORMAL} --optimizer adagrad --step forward")
    for name in ("adamw", "sgd-momentum", "adafactor", "muon", "adamw-8bit"):
        add(llama, f"in-backward-{name}", f"{NORMAL} --optimizer {name} --optimizer-in-backward")
    add(llama, "in-backward-loop-full", f"{ODD} --optimizer adamw --optimizer-impl loop --optimizer-in-backward --recompute full")
    add(llama, "in-backward-tied-first", f"{NORMAL} --optimizer-in-backward --step first", tie_word_embeddings=True)
    for name in ("adamw", "adagrad", "rmsprop", "adafactor", "lion", "muon"):
        add(llama, f"lora-save-mixed-{name}", f"{NORMAL} --lora 8 --modules-to-save norm,lm_head --optimizer {name}")
    add(llama, "lora-save-mixed-adagrad-first", f"{NORMAL} --lora 8 --modules-to-save norm,lm_head --optimizer adagrad --step first")
    add(llama, "lora-save-mixed-adafactor-foreach", f"{NORMAL} --lora 8 --modules-to-save norm,lm_head --optimizer adafactor --optimizer-impl foreach")
