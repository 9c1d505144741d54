"""Jobs of record_real_events.py: eager attention, no dropout."""
from event_jobs import GPT2, LLAMA, STILL, Job, NORMAL, ODD, ONE, FULL, REENTRANT

JOBS = []


def add(base, name, args, **changes):
    JOBS.append(Job(f"{base['model_type']}-{name}", {**base, **changes}, f"--kernels cpu --attention eager {args}"))


add(LLAMA, "fp32", f"{NORMAL} --precision fp32 --optimizer none")
add(LLAMA, "bf16", f"{NORMAL} --precision bf16 --optimizer none")
add(LLAMA, "fp32-tied", f"{NORMAL} --precision fp32 --optimizer sgd", tie_word_embeddings=True)
add(LLAMA, "bf16-tied-accumulate", f"{ODD} --precision bf16 --optimizer none --grad-accum 2", tie_word_embeddings=True)
add(LLAMA, "bf16-full", f"{NORMAL} --precision bf16 --optimizer none {FULL}")
add(LLAMA, "fp32-reentrant", f"{ODD} --precision fp32 --optimizer none {REENTRANT}")
add(LLAMA, "bf16-reentrant", f"{NORMAL} --precision bf16 --optimizer none {REENTRANT}")
add(LLAMA, "fp32-biases", f"{ONE} --precision fp32 --optimizer none", attention_bias=True, mlp_bias=True)
add(LLAMA, "bf16-adamw-foreach", f"{NORMAL} --precision bf16 --optimizer adamw")
add(LLAMA, "fp32-adamw-loop-clip", f"{NORMAL} --precision fp32 --optimizer adamw --optimizer-impl loop --clip-grad 1.0")
add(LLAMA, "bf16-sgd-momentum", f"{ODD} --precision bf16 --optimizer sgd-momentum")
add(LLAMA, "fp32-all-heads", f"{ODD} --precision fp32 --optimizer none", num_key_value_heads=4)
# not in half precision: layer norm's statistics have another type on the CPU
add(GPT2, "fp32", f"{NORMAL} --precision fp32 --optimizer none", **STILL)
add(GPT2, "fp32-full", f"{ODD} --precision fp32 --optimizer none {FULL}", **STILL)
add(GPT2, "fp32-accumulate-reentrant", f"{NORMAL} --precision fp32 --optimizer none --grad-accum 2 {REENTRANT}", **STILL)
add(GPT2, "fp32-untied", f"{NORMAL} --precision fp32 --optimizer adamw", tie_word_embeddings=False, **STILL)
