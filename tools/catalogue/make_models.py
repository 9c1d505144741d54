#!/usr/bin/env python3
"""Writes data/models.jsonl from a folder of configurations.

usage: make_models.py SOURCE_FOLDER OUTPUT.jsonl

SOURCE_FOLDER holds `org__name.json` files, each a Hugging Face configuration with two
keys of ours, `_provenance` and `_note`; those in `partial/` lack what a count needs.
The output has one model a line, sorted by lower-case name, because the reader finds a
name by binary search over the lines. See docs/data.md.
"""

import json
import math
import pathlib
import re
import sys

# name: (paper with the shape, ...) of the networks torchvision publishes under these names.
TORCHVISION = {
    "alexnet": "Krizhevsky 2014, arXiv:1404.5997",
    "densenet121": "Huang et al. 2016, arXiv:1608.06993",
    "mobilenet_v2": "Sandler et al. 2018, arXiv:1801.04381",
    "resnet18": "He et al. 2015, arXiv:1512.03385",
    "resnet34": "He et al. 2015, arXiv:1512.03385",
    "resnet50": "He et al. 2015, arXiv:1512.03385",
    "resnet101": "He et al. 2015, arXiv:1512.03385",
    "resnet152": "He et al. 2015, arXiv:1512.03385",
    "vgg11": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg11_bn": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg13": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg13_bn": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg16": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg16_bn": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg19": "Simonyan and Zisserman 2014, arXiv:1409.1556",
    "vgg19_bn": "Simonyan and Zisserman 2014, arXiv:1409.1556",
}

BOOKKEEPING = {"_provenance", "_note", "_from_model_config"}
FOLD_ABOVE = 100_000  # characters of JSON


def tidy(text):
    """Drops what says where we looked rather than what was found, and repeated clauses."""
    text = re.sub(r"\s*(found by string )?\(index id[^)]*\)", "", text)
    text = re.sub(r",? and not looked up.*$", "", text)
    clauses = []
    for clause in text.split("; "):
        if clause not in clauses:
            clauses.append(clause)
    return "; ".join(clauses)


def fold_experts(layers):
    """Replaces the entries of one layer's experts by one `experts.*` where all agree."""
    folded = {}
    for name, value in layers.items():
        pattern = re.sub(r"(\.experts\.)\d+(\.)", r"\1*\2", name)
        if folded.setdefault(pattern, value) != value:
            return layers
    return folded


def strict(value):
    """Writes the floats that JSON lacks in the tagged form that transformers uses."""
    if isinstance(value, dict):
        return {key: strict(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    return value


def shrink(config):
    """Folds a per-expert quantisation table; returns a remark when it did."""
    quantization = config.get("quantization_config", {})
    layers = quantization.get("quantized_layers", {})
    if len(json.dumps(layers)) < FOLD_ABOVE:
        return ""
    quantization["quantized_layers"] = fold_experts(layers)
    kept = len(quantization["quantized_layers"])
    return f"quantized_layers: {len(layers)} entries as {kept}, experts.* standing for a layer's experts, which all agree"


def row(name, model_type, provenance, note, partial, config):
    out = {"name": name}
    if model_type:
        out["model_type"] = model_type
    out["provenance"] = provenance
    if note:
        out["note"] = note
    if partial:
        out["partial"] = True
    out["config"] = strict(config)
    return out


def from_file(path, partial):
    config = json.loads(path.read_text())
    notes = [tidy(config["_note"])] if "_note" in config else []
    provenance = tidy(config["_provenance"])
    config = {k: v for k, v in config.items() if k not in BOOKKEEPING}
    remark = shrink(config)
    if remark:
        notes.append(remark)
    name = path.stem.replace("__", "/")
    return row(name, config.get("model_type"), provenance, "; ".join(notes), partial, config)


def from_torchvision():
    for arch, paper in TORCHVISION.items():
        config = {"model_type": "torchvision", "arch": arch, "num_classes": 1000, "image_size": 224}
        yield row(arch, "torchvision", f"torchvision's published architectures ({paper})", "", False, config)


def main(source, output):
    source = pathlib.Path(source)
    rows = [from_file(p, False) for p in sorted(source.glob("*.json"))]
    rows += [from_file(p, True) for p in sorted((source / "partial").glob("*.json"))]
    rows += from_torchvision()
    rows.sort(key=lambda r: r["name"].lower().encode())
    keys = [r["name"].lower() for r in rows]
    assert len(keys) == len(set(keys)), "two models have one name"
    with open(output, "w", encoding="utf-8") as out:
        for r in rows:
            out.write(json.dumps(r, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
