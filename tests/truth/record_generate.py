#!/usr/bin/env python3
"""Record every allocation of transformers' own generate() on small models: tests/data/generate/NAME.events.

The format is record_events.py's; args are options of `ullage serve MODEL --engine transformers`. Moments: before_prefill
(weights, prompt and its attention mask), after_prefill (the first forward pass has returned), after_decode (the last has), end (generate
has returned). Greedy decoding of --new-tokens tokens, none of which ends a sequence.

Usage: record_generate.py [--out FOLDER] [NAME…]
"""
import argparse
import json
import os
import sys

# The order of a set of words, which is that of the masks of a fixed cache.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import pretend_cuda

pretend_cuda.restart_with_stub()
import torch

pretend_cuda.install()
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

import even_routing
import known_values
from generate_jobs import JOBS
from storage_watch import StorageWatch, describe, in_blocks
from training_step import DTYPES, configuration

even_routing.install()


def none_ends_a_sequence():
    """Which token comes next is not known; that it is not the one that ends a sequence has to be."""
    is_in = torch.isin

    def is_not_in(*args, **kwargs):
        out = is_in(*args, **kwargs)
        with _disable_current_modes():
            out.known = torch.zeros(out.shape, dtype=torch.bool)
        return out

    torch.isin = is_not_in


none_ends_a_sequence()


def parse_options(words):
    p = argparse.ArgumentParser(prog="job", allow_abbrev=False)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--seq-len", type=int, default=64)
    p.add_argument("--new-tokens", type=int, default=3)
    p.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="bf16")
    p.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    p.add_argument("--cache", choices=["dynamic", "static"], default="dynamic")
    return p.parse_args(words)


def held(tensors):
    storages = {t.untyped_storage()._cdata: t.untyped_storage().size() for t in tensors}
    return sum(storages.values()), sum(map(in_blocks, storages.values()))


def generate(model, ids, mask, o, on_forward):
    handle = model.register_forward_hook(lambda *_: on_forward())
    settings = {"cache_implementation": "static"} if o.cache == "static" else {}
    model.generate(ids, attention_mask=mask, max_new_tokens=o.new_tokens, do_sample=False, use_cache=True,
                   disable_compile=True, **settings)
    handle.remove()


def built(config, o, device="cuda"):
    """The model of a transformers configuration, on fake tensors."""
    torch.tensor = known_values.make_tensor  # a model is built with numbers that nobody reads back
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=DTYPES[o.dtype], attn_implementation=o.attention)
    torch.tensor = known_values.tensor_of_numbers
    model.eval()
    return model


def prompt(config, o, device="cuda"):
    """Tokens, and the mask that says that all of them count."""
    ids = torch.randint(0, config.vocab_size, (o.batch, o.seq_len), device=device)
    return ids, torch.ones(o.batch, o.seq_len, dtype=torch.long, device=device)


def counter(o, mark):
    """What is to be called at each forward pass: marks the first and the last of them."""
    count = 0

    def on_forward():
        nonlocal count
        count += 1
        if count == 1:
            mark("after_prefill")
        if count == o.new_tokens:
            mark("after_decode")
        if count > o.new_tokens:
            raise ValueError("the loop does not end")

    return on_forward


def record(job):
    lines, recording = [], False
    o = parse_options(job.args.split())

    def on_new(size, live, operator, tensor):
        if recording:
            lines.append(f"+ {size} {live} {operator} {describe(tensor)}")

    watch = StorageWatch(on_new, knows_values=True)

    def mark(name):
        lines.append(f"@ {name} {watch.live} {parameters} 0 0")

    with FakeTensorMode(allow_non_fake_inputs=True):
        config = configuration(job.model)
        model = built(config, o)
        for tensor in [*model.parameters(), *model.buffers()]:
            watch.take_in(tensor)
        parameters, _ = held(model.parameters())
        with watch:
            ids, attention = prompt(config, o)
            watch.restart_peak()
            mark("before_prefill")
            recording = True
            generate(model, ids, attention, o, counter(o, mark))
            mark("end")
    header = {"model": json.dumps(job.model), "args": job.args, "torch": torch.__version__,
              "transformers": transformers.__version__, "peak": watch.peak, "peak_blocks": watch.peak_blocks}
    return "\n".join([*(f"# {k} {v}" for k, v in header.items()), *lines]) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=".")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    failed = 0
    for job in JOBS:
        if a.names and not any(name in job.name for name in a.names):
            continue
        try:
            text = record(job)
        except Exception as e:  # one model that cannot run must not cost the others
            failed += 1
            print(f"{job.name}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
            if os.environ.get("RAISE"):
                raise
            continue
        with open(os.path.join(a.out, job.name + ".events"), "w") as f:
            f.write(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
