#!/usr/bin/env python3
"""Record what loading a model takes of host memory: tests/data/lab/host-peaks.jsonl.

A checkpoint of random weights is written, then loaded in a new process in one of these ways, while a thread reads the
process's resident pages: anonymous ones and those of files.
    torch        model = Class(config); model.load_state_dict(torch.load(file))
    safetensors  Class.from_pretrained(folder), of model.safetensors
What the process held before is taken off. Moving to a card is not part of it, so no GPU is needed.

Usage: record_host_peaks.py [--folder FOLDER] > CASES
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading

CONFIGS = {
    "llama-140m": {"model_type": "llama", "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
                   "num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 32000,
                   "tie_word_embeddings": False},
    "gpt2-tied": {"model_type": "gpt2", "n_embd": 768, "n_layer": 8, "n_head": 12, "vocab_size": 50257},
}
WAYS = ["torch", "safetensors"]


def resident():
    with open("/proc/self/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile")]


class Peaks(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.start_at = resident()
        self.highest = list(self.start_at)

    def run(self):
        while not self.stopped.wait(0.002):
            self.highest = [max(a, b) for a, b in zip(self.highest, resident())]

    def grown(self):
        self.stopped.set()
        self.join()
        return [high - start for high, start in zip(self.highest, self.start_at)]


def configuration(name):
    import transformers
    fields = dict(CONFIGS[name])
    return transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)


def write(name, folder):
    import torch
    import transformers
    model = transformers.AutoModelForCausalLM.from_config(configuration(name), dtype=torch.bfloat16)
    model.save_pretrained(folder)
    torch.save(model.state_dict(), os.path.join(folder, "model.bin"))


def load(name, way, folder):
    import torch
    import transformers
    config = configuration(name)
    transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model("llama", hidden_size=64, intermediate_size=64, num_hidden_layers=1,
                                          num_attention_heads=2, vocab_size=100))  # imports what is imported late
    peaks = Peaks()
    peaks.start()
    if way == "torch":
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        model.load_state_dict(torch.load(os.path.join(folder, "model.bin")))
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        for parameter in model.parameters():  # a copy to a card would read them
            parameter.sum()
    anonymous, file = peaks.grown()
    held = {p.data_ptr(): p.numel() * p.element_size() for p in model.parameters()}
    return {"model": CONFIGS[name], "load": way, "weights_bytes": sum(held.values()), "anonymous_bytes": anonymous,
            "file_bytes": file, "torch": torch.__version__, "transformers": transformers.__version__}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--folder", default=tempfile.gettempdir())
    p.add_argument("--write", nargs=2)
    p.add_argument("--load", nargs=3)
    a = p.parse_args()
    if a.write:
        return write(*a.write)
    if a.load:
        return print(json.dumps(load(*a.load)), flush=True)
    again = [sys.executable, os.path.abspath(__file__)]
    for name in CONFIGS:
        folder = os.path.join(a.folder, name)
        os.makedirs(folder, exist_ok=True)
        subprocess.run([*again, "--write", name, folder], check=True)
        for way in WAYS:
            subprocess.run([*again, "--load", name, way, folder], check=True)


main()
