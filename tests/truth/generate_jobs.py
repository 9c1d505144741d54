"""Jobs of record_generate.py: prompts and continuations of small models, within their windows and beyond."""
from family_decoders import CONFIGS as DECODERS
from family_decoders import base
from family_gpt import CONFIGS as GPT
from family_gpt import EAGER as EAGER_GPT
from family_moe import MODELS as MOE
from family_moe import SDPA_REFUSED
from jobs import Job

KINDS = {
    "bf16": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16",
    "fp32": "--batch 1 --seq-len 33 --new-tokens 2 --dtype fp32",
    "eager": "--batch 2 --seq-len 24 --new-tokens 2 --dtype fp16 --attention eager",
    "static": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --cache static",
    "short": "--batch 3 --seq-len 22 --new-tokens 5 --dtype bf16",
    "flash": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --attention flash",
    "short-static": "--batch 1 --seq-len 22 --new-tokens 5 --dtype bf16 --cache static",
}
WINDOWS = ("mistral", "gemma2", "gemma3-text", "qwen2-windows", "olmo3", "cohere2", "exaone4", "smollm3-windows")
MORE = {
    "llama": base("llama"),
    "mistral": base("mistral", sliding_window=24),
    "gpt2": {"model_type": "gpt2", "n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 1000, "n_positions": 256},
}
CONFIGS = MORE | DECODERS | GPT | EAGER_GPT | MOE
NAMES = ["llama", *WINDOWS, "qwen2", "qwen3", "phi3", "gemma", "smollm3", "olmo", "olmo2", "granite", "stablelm",
         "stablelm-qk-norm", "cohere", "glm4", "seed_oss", "starcoder2", "gpt_neox", "phi",
         "gpt2", "opt", "opt-after", "falcon", "falcon-new", "falcon-alibi", "gpt_bigcode", "gpt_bigcode-all-heads",
         *EAGER_GPT, "mixtral",
         "qwen2-moe", "qwen3-moe", "deepseek-v2", "deepseek-v3", "glm4-moe", "minimax-m2", "olmoe", "granitemoe",
         "glm4-moe-lite", "gpt-oss"]

# Their static caches are not modelled; with falcon's transformers itself fails.
ALIBI = ("falcon-alibi", "bloom", "mpt")
FLASH = ("llama", "mistral", "gemma2", "phi", "gpt2", "qwen3-moe")

# Caches whose tokens are quantised but the last ones, which become so when there are as many as `residual_length`.
QUANTIZED = {
    "llama-quanto": "--batch 2 --seq-len 40 --new-tokens 7 --dtype bf16 --cache quantized"
                    ' --cache-config {"residual_length":3}',
    "llama-quanto-two-bits": "--batch 1 --seq-len 33 --new-tokens 5 --dtype fp32 --cache quantized"
                             ' --cache-config {"nbits":2,"q_group_size":32,"residual_length":3}',
    "llama-quanto-last-axis": "--batch 1 --seq-len 32 --new-tokens 5 --dtype bf16 --cache quantized"
                              ' --cache-config {"axis_key":-1,"axis_value":-1,"q_group_size":32}',
    "gpt2-quanto": "--batch 2 --seq-len 40 --new-tokens 4 --dtype fp16 --cache quantized",
    "mistral-quanto": "--batch 1 --seq-len 40 --new-tokens 5 --dtype bf16 --attention eager --cache quantized"
                      ' --cache-config {"residual_length":3}',
    "llama-hqq": "--batch 2 --seq-len 40 --new-tokens 7 --dtype bf16 --cache quantized"
                 ' --cache-config {"backend":"hqq","axis_key":1,"axis_value":1,"residual_length":3}',
    "llama-hqq-axis-0": "--batch 1 --seq-len 33 --new-tokens 5 --dtype fp16 --cache quantized"
                        ' --cache-config {"backend":"hqq","q_group_size":32,"residual_length":3}',
    "llama-hqq-two-bits": "--batch 1 --seq-len 64 --new-tokens 5 --dtype fp32 --cache quantized"
                          ' --cache-config {"backend":"hqq","nbits":2,"axis_key":1,"axis_value":1}',
    "llama-hqq-eight-bits": "--batch 1 --seq-len 40 --new-tokens 5 --dtype bf16 --cache quantized"
                            ' --cache-config {"backend":"hqq","nbits":8,"axis_key":1,"axis_value":0,"residual_length":3}',
    "llama-offloaded": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --cache offloaded",
    "mistral-offloaded": "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --cache offloaded",
}

# The tokens that a real configuration names; without one that pads, the one that ends a sequence does.
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def arguments_of(name, args):
    eager = (name in EAGER_GPT or name in SDPA_REFUSED) and "--attention" not in args
    return f"{args} --attention eager" if eager else args


JOBS = [Job(f"{name}-{kind}", CONFIGS[name] | SPECIAL, arguments_of(name, args))
        for name in NAMES for kind, args in KINDS.items()
        if name in (*WINDOWS, "llama") and kind != "flash" or kind in ("bf16", "eager", "static")
        or kind == "flash" and name in FLASH
        if name not in MOE or kind != "eager"
        if kind != "static" or not name.startswith(ALIBI)]
JOBS += [Job(name, CONFIGS[name.split("-")[0]] | SPECIAL, args) for name, args in QUANTIZED.items()]
