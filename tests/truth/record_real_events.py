#!/usr/bin/env python3
"""Record the allocations of steps that really ran, on the CPU, from torch.profiler: tests/data/lab/real-events/NAME.events.

Fake tensors make autograd add gradients out of place; real tensors show where it adds in place. The jobs use eager
attention and no dropout, where PyTorch's operators for the CPU and for CUDA allocate alike, so that these files say what
`--kernels cuda` must do. The format is that of record_events.py, without the shape. Left out of lines and sums: what is
under 64 bytes (kernels for the CPU make tensors of Python numbers, step counters live here), scratch that a kernel frees
before it ends, and the random states of checkpoints, which lie on the host in any case.

Usage: record_real_events.py [--out FOLDER] [NAME…]
"""
import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
import transformers
from torch.profiler import ProfilerActivity, profile, record_function

from real_event_jobs import JOBS
from training_step import Step, configuration, language_loss, language_model, parse_options, text_inputs

SMALLEST = 64  # bytes
RANDOM_STATE = 5056  # bytes that a checkpoint keeps on the host
KERNELS = ("aten.mm", "aten.bmm", "aten.addmm", "aten.native_layer_norm_backward", "aten.copy_", "aten.clone")
MARK = "phase "


class NoWatch:
    """Stands where Step expects a watch: the profiler does the watching."""
    live = live_blocks = 0

    def take_in(self, tensor):
        pass

    def restart_peak(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def play(job):
    """The profile of everything from the model's birth on, and the sizes at each mark."""
    o, sizes_at = parse_options(job.args.split()), {}

    def on_mark(name, sizes):
        sizes_at[name] = [exact for exact, _ in sizes[1:]]
        with record_function(MARK + name):
            pass

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        config = configuration(job.model, o.set)
        model = language_model(config, o)
        Step(model, lambda: text_inputs(config, o), language_loss(o), o, NoWatch(), on_mark).play()
    return p, sizes_at


def operator_of(stack):
    """(name, end) of the innermost operator that is not just an allocation."""
    operators = [entry for entry in stack if entry[0].startswith("aten::")]
    allocating = [entry for entry in operators if not entry[0].startswith(("aten::empty", "aten::resize_"))]
    name, end = (allocating or operators or [("engine", 0)])[-1]
    return name.replace("aten::", "aten."), end


def is_workspace(steps, i):
    """Whether an allocation is gone before its kernel ends: scratch of the CPU's library, not a tensor of PyTorch's."""
    size, operator, _, end = steps[i]
    if operator not in KERNELS:
        return False
    for later_size, _, start, _ in steps[i + 1:]:
        if start > end:
            return False
        if later_size == -size:
            return True
    return False


def steps_of(p):
    """(bytes or phase name, operator, time, end of the operator), in order of time."""
    events = sorted(p.profiler.kineto_results.events(), key=lambda e: (e.start_ns(), -e.duration_ns()))
    stack, steps = [], []
    for e in events:
        start, end = e.start_ns(), e.start_ns() + e.duration_ns()
        while stack and stack[-1][1] < end:
            stack.pop()
        if e.name() != "[memory]":
            stack.append((e.name(), end))
            if e.name().startswith(MARK):
                steps.append((e.name().removeprefix(MARK), "", start, end))
        elif abs(e.nbytes()) >= SMALLEST and abs(e.nbytes()) != RANDOM_STATE:
            name, until = operator_of(stack)
            steps.append((e.nbytes(), name, start, until))
    return steps


def lines_of(p, sizes_at):
    steps, live, peak, lines, scratch = steps_of(p), 0, 0, [], []
    for i, (size, operator, _, _) in enumerate(steps):
        if isinstance(size, str):
            lines.append(" ".join(map(str, ["@", size, live, *sizes_at[size]])))
            peak = live if size == "before_step" else peak
        elif size > 0 and is_workspace(steps, i):
            scratch.append(-size)
        elif size in scratch:
            scratch.remove(size)
        else:
            live += size
            peak = max(peak, live)
            if size > 0 and lines:
                lines.append(f"+ {size} {live} {operator}")
    return lines, peak


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=".")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    torch.set_num_threads(1)
    for job in JOBS:
        if a.names and not any(name in job.name for name in a.names):
            continue
        lines, peak = lines_of(*play(job))
        header = {"model": json.dumps(job.model), "args": job.args, "torch": torch.__version__,
                  "transformers": transformers.__version__, "peak": peak}
        with open(os.path.join(a.out, job.name + ".events"), "w") as f:
            f.write("\n".join([*(f"# {k} {v}" for k, v in header.items()), *lines]) + "\n")


main()
