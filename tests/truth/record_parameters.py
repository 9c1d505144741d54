"""Writes the names and shapes of a model's parameters, as the published class registers them on the meta device.

    python3 record_parameters.py --models models --out config ORG/NAME…

models/ORG__NAME.json is a config.json; config/ORG__NAME.tensors gets a line "name sizes…" for each of named_parameters(),
in the order of registration. Tied parameters appear once, under their first name, as PyTorch lists them.
"""

import argparse
import json
import pathlib

import torch
import transformers

from training_step import model_class


def parameters_of(config_file):
    fields = json.loads(config_file.read_text())
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        model = model_class(config).from_config(config)
    model.tie_weights()
    return model.named_parameters()


def lines_of(config_file):
    for name, parameter in parameters_of(config_file):
        yield " ".join([name, *map(str, parameter.shape)])


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=pathlib.Path, required=True)
    options.add_argument("--out", type=pathlib.Path, required=True)
    options.add_argument("names", nargs="+")
    given = options.parse_args()
    given.out.mkdir(exist_ok=True)
    for name in given.names:
        file = name.replace("/", "__")
        lines = list(lines_of(given.models / f"{file}.json"))
        (given.out / f"{file}.tensors").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
