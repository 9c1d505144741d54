#!/usr/bin/env python3
"""Record every allocation of transformers' own generate() on small models: tests/data/generate/NAME.events.

The format is record_events.py's; args are options of `ullage serve MODEL --engine transformers`. Moments: before_prefill
(weights, prompt and its attention mask), after_prefill (the first forward pass has returned), after_decode (the last has), end (generate
has returned). Greedy decoding of --new-tokens tokens, none of which ends a sequence.

Usage: record_generate.py [--out FOLDER] [NAME…]
"""
import argparse
import contextlib
import json
import os
import sys
import types

# The order of a set of words, which is that of the masks of a fixed cache.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import pretend_cuda

pretend_cuda.restart_with_stub()
import torch

# hqq's colours, which nothing here shows
sys.modules.setdefault("termcolor", types.SimpleNamespace(colored=lambda text, *_: text))
inference_mode, torch.inference_mode = torch.inference_mode, lambda: torch.no_grad()  # hqq's, for fake tensors
pretend_cuda.install()
import transformers
import transformers.cache_utils as cache_utils
torch.inference_mode = inference_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

import even_routing
import known_values
import storage_watch
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


def show_quanto():
    """quanto's operators step by step, and packed, which quanto does for exactly torch.Tensor."""
    from optimum.quanto.tensor.packed import PackedTensor
    from optimum.quanto.tensor.weights.qbits import WeightQBitsTensor
    for module, name in (("quantize", "quantize_affine"), ("unpack", "unpack")):
        setattr(torch.ops.quanto, name, getattr(sys.modules[f"optimum.quanto.library.{module}"], name))
    init = WeightQBitsTensor.__init__

    def packed_init(self, qtype, axis, group_size, size, stride, data, *rest):
        init(self, qtype, axis, group_size, size, stride, PackedTensor.pack(data, qtype.bits), *rest)

    WeightQBitsTensor.__init__ = packed_init


def run_hqq_twice():
    """Of hqq's solver two steps: from the second on they are alike, and how many there are depends on values."""
    from hqq.core import optimize
    steps, step, stand_in = 0, optimize.optimize_weights_proximal_legacy_step, storage_watch.stand_in_number

    def counted(*args):
        nonlocal steps
        steps += 1
        return step(*args)

    optimize.optimize_weights_proximal_legacy_step = counted
    storage_watch.stand_in_number = lambda x: True if steps % 2 and x.dtype is torch.bool else stand_in(x)


def add_quantized_caches():
    """The backends' published sources are on PYTHONPATH (optimum-quanto e33f820, hqq e0b1d00) without being installed;
    quanto's own CUDA kernel, which needs a compiler, is not built: its PyTorch one runs."""
    register = torch.library.impl

    def impl(name, types, func=None, **kwargs):
        """Gives the function back, which the original does not."""
        made = register(name, types, func, **kwargs)
        return made if func else lambda given: (made(given), given)[1]

    def imported(name, attribute):
        try:
            return getattr(__import__(name, fromlist=[attribute]), attribute)
        except ImportError:
            return None

    torch.library.impl = impl
    if imported("optimum.quanto", "qint4"):
        show_quanto()
    cache_utils.is_optimum_quanto_available = lambda: imported("optimum.quanto", "qint4") is not None
    cache_utils.is_quanto_greater = lambda *_, **__: True
    if imported("hqq.core.optimize", "optimize_weights_proximal_legacy"):
        run_hqq_twice()
    cache_utils.HQQQuantizer = imported("hqq.core.quantize", "Quantizer")
    cache_utils.is_hqq_available = lambda: cache_utils.HQQQuantizer is not None


def forget_streams():
    """Of an offloaded cache: copies are the same on one stream."""
    cache_utils._is_torch_greater_or_equal_than_2_7 = False
    torch.cuda.Stream = types.SimpleNamespace
    torch.cuda.stream = contextlib.nullcontext
    torch.cuda.default_stream = lambda *_: types.SimpleNamespace(wait_stream=lambda *_: None)


def flash_attention(query, key, value, **_):
    """What the function of the flash-attn package makes: the output, sums of the rows, the state of its generator."""
    out = torch.empty_like(query)
    sums = torch.empty(query.shape[0], query.shape[2], query.shape[1], dtype=torch.float32, device=query.device)
    state = torch.empty(2, dtype=torch.int64, device=query.device)
    del state
    return out, sums


def add_flash_attention(model):
    from transformers import modeling_flash_attention_utils as utils
    model.config._attn_implementation_internal = "flash_attention_2"
    utils.lazy_import_flash_attention = lambda *_, **__: ((flash_attention, None, None, None, None), lambda **k: {})


def parse_options(words):
    p = argparse.ArgumentParser(prog="job", allow_abbrev=False)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--seq-len", type=int, default=64)
    p.add_argument("--new-tokens", type=int, default=3)
    p.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="bf16")
    p.add_argument("--attention", choices=["sdpa", "eager", "flash"], default="sdpa")
    p.add_argument("--cache", choices=["dynamic", "static", "quantized", "offloaded"], default="dynamic")
    p.add_argument("--cache-config", type=json.loads, default={})
    return p.parse_args(words)


def held(tensors):
    storages = {t.untyped_storage()._cdata: t.untyped_storage().size() for t in tensors}
    return sum(storages.values()), sum(map(in_blocks, storages.values()))


def generate(model, ids, mask, o, on_forward):
    handle = model.register_forward_hook(lambda *_: on_forward())
    settings = {} if o.cache == "dynamic" else {"cache_implementation": o.cache}
    if o.cache_config:
        settings["cache_config"] = dict(o.cache_config)
    model.generate(ids, attention_mask=mask, max_new_tokens=o.new_tokens, do_sample=False, use_cache=True,
                   disable_compile=True, **settings)
    handle.remove()


def built(config, o, device="cuda"):
    """The model of a transformers configuration, on fake tensors."""
    torch.tensor = known_values.make_tensor  # a model is built with numbers that nobody reads back
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=DTYPES[o.dtype],
                                                              attn_implementation="eager" if o.attention == "flash"
                                                              else o.attention)
    torch.tensor = known_values.tensor_of_numbers
    model.eval()
    if o.attention == "flash":
        add_flash_attention(model)
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
    add_quantized_caches()
    forget_streams()
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
