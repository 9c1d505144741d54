#!/usr/bin/env python3
"""Record what single operators allocate, save and free: tests/data/ops/DEVICE-GROUP.jsonl, one row a line.

See tests/data/ops/README.md for the fields. Usage: record_operators.py [--out FOLDER] [--device cuda|cpu] [GROUP…]
"""
import argparse
import itertools
import json
import os
import sys

import pretend_cuda

pretend_cuda.restart_with_stub()
import torch

pretend_cuda.install()
import torch.nn.functional as F
import torch.utils.checkpoint as checkpointing
from torch._subclasses.fake_tensor import FakeTensorMode

from operator_cases import F32, GROUPS, OPERATORS
from storage_watch import StorageWatch

CUDA_ATTENTION = F.scaled_dot_product_attention
CPU_ATTENTION = torch._C._nn.scaled_dot_product_attention
AUTOCAST = {"autocast-bf16": torch.bfloat16, "autocast-fp16": torch.float16}


def dtype_name(t):
    return str(t.dtype).removeprefix("torch.")


def shape_of(t):
    return {"shape": list(t.shape), "dtype": dtype_name(t), "strides": list(t.stride())}


def storage_of(t):
    return t.untyped_storage()._cdata


class Arrival(torch.autograd.Function):
    """Stands for the operator that made an activation: gives it a node, and keeps the gradient that arrives."""

    @staticmethod
    def forward(ctx, seed, make, keep):
        ctx.keep = keep
        return make()

    @staticmethod
    def backward(ctx, gradient):
        ctx.keep(gradient)
        return None, None, None


class Inputs:
    """The tensors of a case; those whose index is in `needing` get a gradient."""

    def __init__(self, case, needing, device):
        self.case, self.needing = case, needing
        self.arrived = {}
        self.tensors = [self._make(i, spec, device) for i, spec in enumerate(case.inputs)]

    def _make(self, i, spec, device):
        make = lambda: torch.empty_strided(spec.shape, spec.strides(), dtype=spec.dtype, device=device)
        if i not in self.needing:
            return make()
        if spec.role == "parameter":
            return make().requires_grad_()
        seed = torch.empty((), device="meta", requires_grad=True)
        return Arrival.apply(seed, make, lambda g: self.arrived.__setitem__(i, g))

    def gradients(self):
        found = (self.arrived.get(i) if self.case.inputs[i].role == "activation" else self.tensors[i].grad
                 for i in self.needing)
        return [None if g is None else shape_of(g) for g in found]


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


class Recording:
    """Runs a case once under a watch and notes allocations (+bytes) and releases (-bytes), in order."""

    def __init__(self, device):
        self.events = None
        self.watch = StorageWatch(lambda size, *_: self._note(size), lambda size, *_: self._note(-size), device)

    def _note(self, change):
        if self.events is not None:
            self.events.append(change)

    def during(self, action):
        self.events = []
        with self.watch:
            result = action()
        events, self.events = self.events, None
        return result, events

    def hold(self, tensors):
        for t in tensors:
            self.watch.take_in(t)


def apply(case, tensors):
    return OPERATORS[case.op](*tensors, **case.attrs)


def saved_tensors(case, needing, device, region):
    """What the forward pass packs, in order, by where its storage comes from."""
    inputs, packed = Inputs(case, needing, device), []
    before = [storage_of(t) for t in inputs.tensors]

    def pack(t):
        packed.append(t)
        return t

    with region(), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        outputs = as_list(apply(case, inputs.tensors))
    after, fresh = [storage_of(t) for t in outputs], []

    def source(t):
        s = storage_of(t)
        if s in before:
            return f"input {before.index(s)}"
        if s in after:
            return f"output {after.index(s)}"
        if s not in fresh:
            fresh.append(s)
        return f"fresh {fresh.index(s)}"

    return [{"bytes": t.untyped_storage().size(), "source": source(t), "shape": list(t.shape), "dtype": dtype_name(t),
             **({"host": True} if t.device.type != device else {})} for t in packed]


class CountedTicket(checkpointing._Holder):
    count = 0

    def __init__(self):
        super().__init__()
        CountedTicket.count += 1


checkpointing._Holder = CountedTicket


def region_of(mode, device):
    if mode in AUTOCAST:
        return lambda: torch.autocast(device, dtype=AUTOCAST[mode])
    return torch.no_grad if mode == "no_grad" else torch.enable_grad


def row_of(case, needing, mode, device):
    recording, inputs = Recording(device), Inputs(case, needing, device)
    recording.hold(inputs.tensors)
    region = region_of(mode, device)
    rerun, calls = [], []

    def operate(*tensors):
        calls.append(None)
        start = len(recording.events)
        try:
            return apply(case, tensors)
        finally:
            if len(calls) > 1:
                rerun.extend(recording.events[start:])

    def forward():
        with region():
            if mode == "recompute":
                out = checkpointing.checkpoint(operate, *inputs.tensors, use_reentrant=False)
            else:
                out = operate(*inputs.tensors)
            before_leaving.append(len(recording.events))
            return out

    CountedTicket.count, before_leaving = 0, []
    inputs_before = [storage_of(t) for t in inputs.tensors]
    described = [{**shape_of(t), "storage_bytes": t.untyped_storage().size(), "role": spec.role,
                  "requires_grad": i in needing} for i, (t, spec) in enumerate(zip(inputs.tensors, case.inputs))]
    result, events = recording.during(forward)
    outputs = as_list(result)
    del result
    cut = before_leaving[0]
    row = {"op": case.op, "attrs": case.attrs, "inputs": described, "mode": mode, "device": device,
           "forward": events[:cut]}
    if events[cut:]:
        row["leaving_region"] = events[cut:]
    alias = lambda t: inputs_before.index(storage_of(t)) if storage_of(t) in inputs_before else None
    row["outputs"] = [{**shape_of(t), "alias_of_input": alias(t)} for t in outputs]
    if mode == "no_grad":
        return row
    if mode == "recompute":
        row["tickets"] = CountedTicket.count
    else:
        row["saved"] = saved_tensors(case, needing, device, region)
    roots = [t for t in outputs if t.requires_grad]
    if not roots:
        return None
    incoming = [torch.empty(t.shape, dtype=t.dtype, device=device) for t in roots]
    recording.hold(incoming)
    _, row["backward"] = recording.during(lambda: torch.autograd.backward(roots, incoming))
    if mode == "recompute":
        row["rerun"] = rerun
    row["grads"] = inputs.gradients()
    return row


def subsets(case):
    can = [i for i, spec in enumerate(case.inputs) if spec.role != "data" and spec.dtype.is_floating_point]
    return [s for n in range(len(can), 0, -1) for s in itertools.combinations(can, n)]


def rows_of(case, device):
    """(inputs that need a gradient, mode). Autocast only where it has something to cast, and not for the CPU."""
    all_subsets = subsets(case)
    fp32 = device == "cuda" and any(spec.dtype is F32 for spec in case.inputs)
    yield (), "no_grad"
    for needing in all_subsets:
        yield needing, "grad"
        if fp32:
            yield needing, "autocast-bf16"
    for needing in all_subsets[:2]:
        if not case.op.endswith("in_place"):  # a second run would see its own result
            yield needing, "recompute"
        if fp32:
            yield needing, "autocast-fp16"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=".")
    p.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    p.add_argument("groups", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    F.scaled_dot_product_attention = CUDA_ATTENTION if a.device == "cuda" else CPU_ATTENTION
    for group in a.groups or GROUPS:
        lines, seen = [], set()
        with FakeTensorMode():
            for case in GROUPS[group]():
                for needing, mode in rows_of(case, a.device):
                    try:
                        row = row_of(case, needing, mode, a.device)
                    except Exception as e:
                        print(f"{a.device} {case.op} {case.attrs} {needing} {mode}: {type(e).__name__}: {str(e)[:200]}",
                              file=sys.stderr)
                        continue
                    line = row and json.dumps(row, separators=(",", ":"))
                    if line and line not in seen:
                        seen.add(line)
                        lines.append(line)
        with open(os.path.join(a.out, f"{a.device}-{group}.jsonl"), "w") as f:
            f.write("\n".join(lines) + "\n")


main()
