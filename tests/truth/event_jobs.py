"""The jobs whose allocations are recorded: a small model of two layers and options of `ullage train`."""
from dataclasses import dataclass

LLAMA = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
         "tie_word_embeddings": False}
MISTRAL = {"model_type": "mistral", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
           "sliding_window": None, "tie_word_embeddings": False}
GPT2 = {"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "n_positions": 1024, "vocab_size": 1000}

NORMAL = "--micro-batch 2 --seq-len 64"
ODD = "--micro-batch 3 --seq-len 33"
ONE = "--micro-batch 1 --seq-len 33"
FULL = "--recompute full"
REENTRANT = "--recompute full --recompute-reentrant"


@dataclass
class Job:
    name: str
    model: dict
    args: str


JOBS = []


def add(base, name, args, **changes):
    family = base["model_type"]
    JOBS.append(Job(f"{family}-{name}", {**base, **changes}, f"--kernels cuda-traced {args}"))


add(LLAMA, "bf16-sdpa", f"{NORMAL} --precision bf16")
add(LLAMA, "fp32-eager", f"{NORMAL} --precision fp32 --attention eager")
add(LLAMA, "bf16-full", f"{NORMAL} --precision bf16 {FULL}")
add(LLAMA, "bf16-reentrant", f"{NORMAL} --precision bf16 {REENTRANT}")
add(GPT2, "bf16-sdpa", f"{NORMAL} --precision bf16")
add(GPT2, "fp32-eager", f"{NORMAL} --precision fp32 --attention eager")
