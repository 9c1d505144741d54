"""What a job is, and the jobs that every family is measured with."""
from dataclasses import dataclass


@dataclass
class Job:
    name: str
    model: dict | str  # a configuration, or a torchvision name
    args: str


# One plain step, one with each kind of recompute on odd shapes, one with composed attention, one under autocast.
STANDARD = {
    "bf16": "--micro-batch 2 --seq-len 64 --precision bf16",
    "fp32-full": "--micro-batch 3 --seq-len 33 --precision fp32 --recompute full",
    "bf16-reentrant": "--micro-batch 1 --seq-len 33 --precision bf16 --recompute full --recompute-reentrant",
    "fp16-eager": "--micro-batch 2 --seq-len 48 --precision fp16 --attention eager",
    "amp-bf16": "--micro-batch 2 --seq-len 64 --precision amp-bf16",
    "amp-bf16-full": "--micro-batch 3 --seq-len 33 --precision amp-bf16 --recompute full",
}


def standard(name, config, without=()):
    """The standard jobs of a configuration; `without` names those that the lab refuses."""
    return [Job(f"{name}-{kind}", config, f"--kernels cuda-traced {args}")
            for kind, args in STANDARD.items() if kind not in without]
