"""Jobs of record_generate.py: prompts and continuations of small models, within their windows and beyond."""
from family_decoders import CONFIGS as DECODERS
from family_decoders import base
from family_gpt import CONFIGS as GPT
from family_moe import CONFIGS as MOE
from jobs import Job

KINDS = {
    "bf16": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16",
    "fp32": "--batch 1 --seq-len 33 --new-tokens 2 --dtype fp32",
    "eager": "--batch 2 --seq-len 24 --new-tokens 2 --dtype fp16 --attention eager",
    "static": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --cache static",
    "short": "--batch 3 --seq-len 22 --new-tokens 5 --dtype bf16",
    "short-static": "--batch 1 --seq-len 22 --new-tokens 5 --dtype bf16 --cache static",
}
WINDOWS = ("mistral", "gemma2", "gemma3-text", "qwen2-windows", "olmo3", "cohere2", "exaone4", "smollm3-windows")
MORE = {
    "llama": base("llama"),
    "mistral": base("mistral", sliding_window=24),
}
CONFIGS = MORE | DECODERS | GPT | MOE
NAMES = ["llama", *WINDOWS, "qwen2", "qwen3", "phi3", "gemma", "smollm3", "olmo", "olmo2", "granite", "stablelm",
         "stablelm-qk-norm", "cohere", "glm4", "seed_oss", "starcoder2", "gpt_neox", "phi", "mixtral",
         "qwen2-moe", "qwen3-moe", "deepseek-v2", "deepseek-v3", "glm4-moe", "minimax-m2", "olmoe", "granitemoe"]

# The tokens that a real configuration names; without one that pads, the one that ends a sequence does.
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

JOBS = [Job(f"{name}-{kind}", CONFIGS[name] | SPECIAL, args) for name in NAMES for kind, args in KINDS.items()
        if name in (*WINDOWS, "llama") or kind in ("bf16", "eager", "static")
        if name not in MOE or kind != "eager"]
