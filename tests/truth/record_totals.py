#!/usr/bin/env python3
"""Record peak and phases of training steps of published models, as cases for `ullage validate`.

Reads jobs, one a line (`MODEL options of ullage train`; # starts a comment), where MODEL is ORG/NAME, found in a folder
as ORG__NAME.json, or a torchvision name. Writes one case a line: the arguments and what each path into the
answer must be, in bytes, each storage rounded up to 512 as torch.cuda.memory_allocated counts.

Usage: record_totals.py --models FOLDER --jobs FILE > CASES       record_totals.py --models FOLDER --check CASES
(--check runs the cases of a file again and prints what differs)
"""
import argparse
import json
import os
import re
import shlex
import sys

import pretend_cuda

pretend_cuda.restart_with_stub()
import torch

pretend_cuda.install()
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

import torchvision

from image_models import NAMES, image_inputs, image_loss, image_model
from storage_watch import StorageWatch
from training_step import Step, configuration, inputs, language_loss, language_model, parse_options
from vision_inputs import VISION_LANGUAGE

FIXED = ["--engine", "pytorch", "--kernels", "cuda-traced", "--gpu", "h100-sxm-80gb"]
PEAK_AT = {"after_forward": "forward_peak", "after_backward": "forward_backward_peak"}


def parts_of(name, folder, o):
    """Model, its inputs and its loss; call under fake tensors."""
    if name in NAMES:
        return image_model(name, o), lambda: image_inputs(o), image_loss
    with open(os.path.join(folder, name.replace("/", "__", 1) + ".json")) as f:
        config = configuration(json.load(f), o.set)
    return language_model(config, o), lambda: inputs(config, o), language_loss(o)


def reads_back(name, folder):
    """Whether the model's code reads numbers back from its inputs."""
    if name in NAMES:
        return False
    with open(os.path.join(folder, name.replace("/", "__", 1) + ".json")) as f:
        return json.load(f)["model_type"] in VISION_LANGUAGE


def measure(name, folder, o):
    watch, expect = StorageWatch(knows_values=reads_back(name, folder)), {}

    def on_mark(name, sizes):
        live, parameters, gradients, states = (blocks for _, blocks in sizes)
        if name in PEAK_AT:
            expect[f"phases.{PEAK_AT[name]}.allocated_bytes"] = watch.peak_blocks
        expect[f"phases.{name}.allocated_bytes"] = live
        for component, size in (("parameters", parameters), ("gradients", gradients), ("optimizer", states)):
            expect[f"phases.{name}.components.{component}"] = size

    with FakeTensorMode(allow_non_fake_inputs=True):
        model, next_inputs, loss_of = parts_of(name, folder, o)
        parameters = list(model.parameters())
        expect["model.parameters"] = sum(p.numel() for p in parameters)
        expect["model.trainable_parameters"] = sum(p.numel() for p in parameters if p.requires_grad)
        expect["model.parameter_bytes"] = sum(p.numel() * p.element_size() for p in parameters)
        Step(model, next_inputs, loss_of, o, watch, on_mark).play()
    expect["peak.allocated_bytes"] = watch.peak_blocks
    return expect


def case_of(line, folder):
    name, *options = shlex.split(line)
    o = parse_options(options)
    expect = measure(name, folder, o)
    library = torchvision if name in NAMES else transformers
    label = re.sub(r"[^a-z0-9]+", "-", line.lower()).strip("-")
    return {"id": f"lab-{label}", "source": "lab", "engine": "pytorch", "args": ["train", name, *FIXED, *options],
            "expect": expect, "confidence": "high", "method": "lab",
            "notes": f"torch {torch.__version__}, {library.__name__} {library.__version__}, fake CUDA tensors"}


def recorded_options(args):
    """The options of a case that decide the step, without engine and GPU."""
    rest, out = args[2:], []
    while rest:
        word = rest.pop(0)
        if word in ("--engine", "--gpu", "--gpus"):
            rest.pop(0)
        else:
            out.append(word)
    return out


def check(cases, folder):
    wrong = 0
    for case in map(json.loads, cases):
        try:
            o = parse_options(recorded_options(case["args"]))
            found = measure(case["args"][1], folder, o)
        except (Exception, SystemExit) as e:
            print(f"skipped {case['id']}: {type(e).__name__}", file=sys.stderr)
            continue
        differing = {k: (v, found[k]) for k, v in case["expect"].items() if k in found and found[k] != v}
        wrong += bool(differing)
        print(f"{'DIFFERS' if differing else 'equal  '} {case['id']} {differing or ''}", flush=True)
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--models", required=True)
    p.add_argument("--jobs")
    p.add_argument("--check")
    a = p.parse_args()
    if a.check:
        with open(a.check) as f:
            sys.exit(1 if check(f, a.models) else 0)
    with open(a.jobs) as f:
        lines = [line.split("#")[0].strip() for line in f]
    for line in filter(None, lines):
        print(json.dumps(case_of(line, a.models)), flush=True)


main()
