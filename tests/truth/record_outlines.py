"""Writes what a model's checkpoint holds, as the published class registers it on the meta device: for models of which
Ullage knows the outline alone.

    python3 record_outlines.py --models models --out outlines ORG__NAME…

models/ORG__NAME.json is a config.json. outlines/ORG__NAME.outline gets a line "name sizes… : numbers" for each parameter,
tied ones once, and, with "~" in front, for each buffer that is stored. The first number in a name is written "*"; behind
the colon stands which numbers have it ("0-2,5"); names without a number have none. Sizes of scalars are empty.
"""

import argparse
import json
import pathlib
import re

import torch
import transformers

from training_step import model_class


def class_of(config, named):
    """The class that the configuration names, if the library has it."""
    for name in named or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    return None


def build(fields):
    named = fields.get("architectures")
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    published = class_of(config, named)
    with torch.device("meta"):
        model = published._from_config(config) if published else model_class(config).from_config(config)
    model.tie_weights()
    return model


def stored(model):
    parameters = dict(model.named_parameters())
    every = dict(model.named_parameters(remove_duplicate=False))
    yield from parameters.items()
    for name, value in model.state_dict().items():
        if name not in every:
            yield f"~{name}", value


def ranges(numbers):
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def lines_of(tensors):
    groups = {}
    for name, value in tensors:
        number = re.search(r"(?<=\.)\d+(?=\.)", name)
        pattern = name if number is None else f"{name[:number.start()]}*{name[number.end():]}"
        groups.setdefault((pattern, tuple(value.shape)), []).append(None if number is None else int(number.group()))
    for (pattern, shape), numbers in groups.items():
        words = [pattern, *map(str, shape), ":"]
        yield " ".join(words + ([ranges(numbers)] if numbers != [None] else []))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=pathlib.Path, required=True)
    options.add_argument("--out", type=pathlib.Path, required=True)
    options.add_argument("names", nargs="+")
    given = options.parse_args()
    given.out.mkdir(exist_ok=True)
    for name in given.names:
        try:
            lines = list(lines_of(stored(build(json.loads((given.models / f"{name}.json").read_text())))))
        except Exception as problem:  # the rest is still wanted; what is missing is seen
            print(f"{name}: {type(problem).__name__}: {str(problem)[:300]}")
            continue
        (given.out / f"{name}.outline").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
