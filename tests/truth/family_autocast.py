"""Autocast with composed attention and with reentrant recompute, for families that differ where autocast does."""
from family_decoders import CONFIGS as DECODERS
from jobs import Job

CONFIGS = {}

KINDS = {
    "amp-fp16-eager": "--micro-batch 2 --seq-len 48 --precision amp-fp16 --attention eager",
    "amp-bf16-reentrant": "--micro-batch 1 --seq-len 33 --precision amp-bf16 --recompute full --recompute-reentrant",
}
NAMES = ("olmo2", "olmo2-bias", "gemma2", "gemma3-text", "phi3", "stablelm-parallel", "cohere", "granite", "qwen3-windows",
         "smollm3")

JOBS = [Job(f"{name}-{kind}", DECODERS[name], f"--kernels cuda-traced {args}")
        for name in NAMES for kind, args in KINDS.items()]
