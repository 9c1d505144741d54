"""Jobs of record_generate.py: prompts and continuations of small models."""
from family_decoders import CONFIGS as DECODERS
from family_decoders import base
from jobs import Job

LLAMA = base("llama", num_hidden_layers=2)
KINDS = {
    "bf16": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16",
    "fp32-one": "--batch 1 --seq-len 33 --new-tokens 3 --dtype fp32",
    "eager": "--batch 2 --seq-len 24 --new-tokens 3 --dtype fp16 --attention eager",
    "static": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --cache static",
}
CONFIGS = {"llama": LLAMA}

JOBS = [Job(f"{name}-{kind}", config, args) for name, config in CONFIGS.items() for kind, args in KINDS.items()]
