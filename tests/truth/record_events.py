#!/usr/bin/env python3
"""Record every allocation of one training step of small models: tests/data/events/NAME.events.

A file is text, one fact a line.
    # KEY VALUE                                    header; keys: model (the configuration as JSON, or a torchvision
                                                   name), args (options of `ullage train`), torch, transformers or
                                                   torchvision, peak (bytes), peak_blocks, offloaded (bytes on the
                                                   host behind the last forward pass, where there are any)
    @ PHASE LIVE PARAMETERS GRADIENTS OPTIMIZER    a moment of the step: bytes held, and how much of it is what
    + BYTES LIVE OPERATOR DTYPE[SHAPE]             an allocation: its bytes, the bytes held with it, who made it
Sizes are the tensors' own, not rounded; empty storages are left out. What died between two lines is the difference
of their LIVE. peak_blocks is the peak with each storage rounded up to 512 bytes. With --kernels cuda-traced tensors
on the CPU are not counted; with --kernels cpu they are all there is.

Usage: record_events.py [--cpu] [--out FOLDER] [NAME…]     (all of event_jobs.py when no name is given; a word matches
names that contain it; --cpu: the jobs with the CPU's operators)
"""
import argparse
import json
import os
import sys

import pretend_cuda

pretend_cuda.restart_with_stub()
import torch

pretend_cuda.install()
import torch.nn.functional as F
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

import torchvision

import even_routing
from event_jobs import CPU_JOBS, JOBS
from image_models import image_inputs, image_loss, image_model
from storage_watch import StorageWatch, describe
from training_step import (AUTOCAST, DTYPES, ComposerStep, LoopStep, RecipeStep, Step, TitanStep, configuration, device_of, inputs, language_loss,
                           language_model, parse_options)
from vision_inputs import VISION_LANGUAGE

ATTENTION = {"cuda": F.scaled_dot_product_attention, "cpu": torch._C._nn.scaled_dot_product_attention}
even_routing.install()

def play(model, o, watch, on_mark):
    if isinstance(model, str):
        Step(image_model(model, o), lambda: image_inputs(o), image_loss, o, watch, on_mark).play()
        return
    if o.modules == "litgpt":
        from litgpt_models import Loop, litgpt_inputs, litgpt_model
        made, loss = litgpt_model(o.modules_version, model, o, DTYPES[o.precision])
        loop = Loop(made, loss, o, AUTOCAST.get(o.precision))
        LoopStep(loop, lambda: litgpt_inputs(model, o), None, o, watch, on_mark).play()
        return
    if o.modules == "torchtitan":
        from torchtitan_models import cross_entropy_loss, torchtitan_model
        shape = (o.micro_batch, o.seq_len)
        batch = lambda: tuple(torch.randint(0, model["vocab_size"], shape) for _ in range(2))
        TitanStep(torchtitan_model(model, o, DTYPES[o.precision]), batch, cross_entropy_loss, o, watch, on_mark).play()
        return
    if o.modules == "llm-foundry":
        from llm_foundry_models import host_batch, llm_foundry_model
        ComposerStep(llm_foundry_model(model, o), lambda: host_batch(model, o), None, o, watch, on_mark).play()
        return
    if o.modules == "torchtune":
        from torchtune_models import Recipe
        shape = (o.micro_batch, o.seq_len)
        batch = lambda: {name: torch.randint(0, model["vocab_size"], shape, device="cuda")
                         for name in ("tokens", "labels")}
        RecipeStep(Recipe(model, o, DTYPES[o.precision]), batch, None, o, watch, on_mark).play()
        return
    config = configuration(model, o.set)
    if o.trainer == "hf":
        from trainer_loop import train
        return train(language_model(config, o), config, o, watch, on_mark)
    Step(language_model(config, o), lambda: inputs(config, o), language_loss(o), o, watch, on_mark).play()


def record(job):
    lines, recording = [], False

    def on_new(size, live, operator, tensor):
        if recording:
            lines.append(f"+ {size} {live} {operator} {describe(tensor)}")

    def on_mark(name, sizes):
        nonlocal recording
        recording = True
        lines.append(" ".join(["@", name, *(str(exact) for exact, _ in sizes)]))

    o = parse_options(job.args.split())
    device = device_of(o)
    F.scaled_dot_product_attention = ATTENTION[device]
    reads_back = o.modules == "llm-foundry" or not isinstance(job.model, str) and job.model["model_type"] in VISION_LANGUAGE
    watch = StorageWatch(on_new, device=device, knows_values=reads_back)
    library = torchvision if isinstance(job.model, str) else transformers
    with FakeTensorMode(allow_non_fake_inputs=True):
        play(job.model, o, watch, on_mark)
    model = job.model if library is torchvision else json.dumps(job.model)
    header = {"model": model, "args": job.args, "torch": torch.__version__, library.__name__: library.__version__,
              "peak": watch.peak, "peak_blocks": watch.peak_blocks}
    if watch.offloaded:
        header["offloaded"] = watch.offloaded
    return "\n".join([*(f"# {k} {v}" for k, v in header.items()), *lines]) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=".")
    p.add_argument("--cpu", action="store_true")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    failed = 0
    for job in CPU_JOBS if a.cpu else JOBS:
        if a.names and not any(name in job.name for name in a.names):
            continue
        try:
            text = record(job)
        except Exception as e:  # one model that cannot run must not cost the others
            failed += 1
            print(f"{job.name}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
            continue
        with open(os.path.join(a.out, job.name + ".events"), "w") as f:
            f.write(text)
    sys.exit(1 if failed else 0)


main()
