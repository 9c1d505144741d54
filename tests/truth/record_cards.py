#!/usr/bin/env python3
"""Record what each of several cards holds while transformers' own generate() runs on a model that accelerate has shared
out: tests/data/cards.jsonl, a row for each set-up below.

Fake tensors on cuda:0, cuda:1, … as in record_generate.py; dispatch_model puts its hooks on, and every storage is
counted where it is. `peak_blocks`: the most bytes in allocator blocks since the prompt was there; the others are bytes.

Usage: record_cards.py [--out FILE]
"""
import argparse
import json

import record_generate as one_card
import torch
from accelerate import dispatch_model, hooks
from generate_jobs import CONFIGS, SPECIAL
from storage_watch import StorageWatch, in_blocks
from torch._subclasses.fake_tensor import FakeTensorMode

from training_step import configuration

JOBS = [
    ("llama", [0, 1], "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16"),
    ("llama", [0, 1], "--batch 2 --seq-len 40 --new-tokens 3 --dtype bf16 --cache static"),
    ("qwen3", [0, 0, 1, 2], "--batch 1 --seq-len 300 --new-tokens 4 --dtype bf16"),
    ("gemma2", [0, 1, 1, 2], "--batch 2 --seq-len 40 --new-tokens 3 --dtype fp16 --attention eager"),
    ("gpt_neox", [0, 1], "--batch 2 --seq-len 64 --new-tokens 3 --dtype fp32"),
    ("mixtral", [0, 1], "--batch 2 --seq-len 64 --new-tokens 3 --dtype bf16"),
]


class CardWatch(StorageWatch):
    """Storages by card."""

    def __init__(self, cards):
        super().__init__(knows_values=True)
        self.cards = [{"live": 0, "blocks": 0, "peak_blocks": 0} for _ in range(cards)]
        self.on_new = lambda size, live, operator, tensor: self.count(tensor.device.index or 0, size, tensor)

    def count(self, card, size, tensor):
        import weakref
        counts = self.cards[card]
        counts["live"] += size
        counts["blocks"] += in_blocks(size)
        counts["peak_blocks"] = max(counts["peak_blocks"], counts["blocks"])
        weakref.finalize(tensor.untyped_storage(), self.uncount, counts, size)

    @staticmethod
    def uncount(counts, size):
        counts["live"] -= size
        counts["blocks"] -= in_blocks(size)

    def restart(self):
        for counts in self.cards:
            counts["peak_blocks"] = counts["blocks"]


def put_tensor(module, name, device, **_):
    """set_module_tensor_to_device, which cannot make a parameter of a fake tensor."""
    *path, last = name.split(".")
    for part in path:
        module = getattr(module, part)
    target = torch.device("cuda", device)
    if last in module._buffers:
        module._buffers[last] = module._buffers[last].to(target)
    elif module._parameters[last].device != target:
        module._parameters[last] = torch.nn.Parameter(module._parameters[last].to(target), requires_grad=False)


hooks.set_module_tensor_to_device = put_tensor


def device_map(model, layers):
    """The embedding on the first card; norm, rotary embedding and head on the last, as the libraries share out."""
    out = {}
    inner = model.base_model
    prefix = model.base_model_prefix
    for name, child in inner.named_children():
        if isinstance(child, torch.nn.ModuleList):
            out |= {f"{prefix}.{name}.{i}": card for i, card in enumerate(layers)}
        else:
            seen = any(".layers." in key or ".h." in key for key in out)
            out[f"{prefix}.{name}"] = layers[-1] if seen else 0
    for name, _ in model.named_children():
        if name != prefix:
            out[name] = layers[-1]
    if model.config.tie_word_embeddings:
        out["lm_head"] = 0
    return out


def record(name, layers, args):
    o = one_card.parse_options(args.split())
    config = CONFIGS[name] | SPECIAL | {"num_hidden_layers": len(layers)}
    watch, moments = CardWatch(max(layers) + 1), {}

    def mark(moment):
        moments[moment] = [counts["live"] for counts in watch.cards]

    with FakeTensorMode(allow_non_fake_inputs=True):
        settings = configuration(config)
        model = one_card.built(settings, o, "cuda:0")
        model = dispatch_model(model, device_map(model, layers), skip_keys=model._skip_keys_device_placement)
        for tensor in [*model.parameters(), *model.buffers()]:
            watch.take_in(tensor)
        with watch:
            ids, attention = one_card.prompt(settings, o, "cuda:0")
            watch.restart()
            mark("before_prefill")
            one_card.generate(model, ids, attention, o, one_card.counter(o, mark))
    return {"model": config, "layers": layers, "args": args, **moments,
            "peak_blocks": [counts["peak_blocks"] for counts in watch.cards]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="cards.jsonl")
    options = parser.parse_args()
    with open(options.out, "w", encoding="utf-8") as out:
        for job in JOBS:
            out.write(json.dumps(record(*job), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
