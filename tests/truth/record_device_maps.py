#!/usr/bin/env python3
"""Record where transformers and accelerate put the modules of a model (device_map="auto" and its kin):
tests/data/device-maps.jsonl, a row for each set-up below.

Models are built on the meta device; how much each card has free is what the rows say, in place of a driver's answer.
bitsandbytes' linear layers are stood in for by classes of their names, which is all that the library asks of them.

Usage: record_device_maps.py [--out FILE]      (configurations are read from models/ORG__NAME.json)
"""
import argparse
import json
import sys
import types

import torch

BNB = types.ModuleType("bitsandbytes")
BNB.nn = types.ModuleType("bitsandbytes.nn")
for name in ("Linear4bit", "Linear8bitLt"):
    setattr(BNB.nn, name, type(name, (torch.nn.Linear,), {}))
sys.modules["bitsandbytes"], sys.modules["bitsandbytes.nn"] = BNB, BNB.nn

import transformers
from transformers.integrations import accelerate as placing
from transformers.quantizers.quantizer_bnb_4bit import Bnb4BitHfQuantizer
from transformers.quantizers.quantizer_bnb_8bit import Bnb8BitHfQuantizer

GIB = 1 << 30
QUANTIZERS = {"nf4": (Bnb4BitHfQuantizer, "Linear4bit"), "int8": (Bnb8BitHfQuantizer, "Linear8bitLt")}
MODELS = ["meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-0.5B", "meta-llama/Llama-2-13b-hf", "google/gemma-2-9b-it",
          "Qwen/Qwen3-30B-A3B", "EleutherAI/pythia-12b", "meta-llama/Llama-3.1-70B", "microsoft/phi-2"]
CARDS = {"two": [22.8, 22.8], "unequal": [10.5, 22.8], "four": [11.0] * 4, "small": [5.0, 5.0, 5.0], "one": [22.8],
         "eight": [78.5] * 8}


def build(config):
    settings = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if not k.startswith("_")})
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16)


def quantize(model, kind):
    """As replace_with_bnb_linear does: every linear layer but the head."""
    if kind is None:
        return None
    quantizer, name = QUANTIZERS[kind]
    head = model.get_output_embeddings()
    for module in model.modules():
        if type(module) is torch.nn.Linear and module is not head:
            module.__class__ = getattr(BNB.nn, name)
    out = quantizer.__new__(quantizer)
    out.validate_environment = lambda **_: None
    return out


def place(model, kind, free, how):
    memory = {i: int(gib * GIB) for i, gib in enumerate(free)}
    known = placing.accelerate_max_memory
    placing.accelerate_max_memory = lambda given=None: dict(memory, cpu=1 << 50) if given is None else known(given)
    try:
        return list(memory.values()), placing._get_device_map(model, how, None, quantize(model, kind))
    finally:
        placing.accelerate_max_memory = known


def in_ranges(found):
    """"model.layers.0-13": neighbours that are on one card; -1 is the processor."""
    out = {}
    for name, device in found.items():
        device = -1 if device in ("cpu", "disk") else device
        parent, _, number = name.rpartition(".")
        last = next(reversed(out), "")
        before, _, numbers = last.rpartition(".")
        if number.isdigit() and before == parent and out[last] == device and int(numbers.split("-")[-1]) == int(number) - 1:
            del out[last]
            name = f"{parent}.{numbers.split('-')[0]}-{number}"
        out[name] = device
    return out


def rows():
    for name in MODELS:
        with open(f"models/{name.replace('/', '__')}.json", encoding="utf-8") as file:
            config = json.load(file)
        for kind in (None, "nf4", "int8"):
            for cards, free in CARDS.items():
                for how in ("auto", "sequential", "balanced_low_0"):
                    if how == "balanced_low_0" and (kind is not None or cards != "four"):
                        continue
                    memory, found = place(build(config), kind, free, how)
                    yield {"model": name, "quantization": kind or "none", "device_map": how, "free_bytes": memory,
                           "modules": in_ranges(found)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="device-maps.jsonl")
    options = parser.parse_args()
    with open(options.out, "w", encoding="utf-8") as out:
        for row in rows():
            out.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
