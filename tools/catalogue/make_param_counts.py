#!/usr/bin/env python3
"""Writes tests/data/param-counts.jsonl: what checkpoints of some families hold.

usage: make_param_counts.py COUNTS.csv MODELS.jsonl OUTPUT.jsonl [MODEL_TYPE…]

`stored_parameters` is the total that the source states (the Hub's metadata, a checkpoint's
index); `computed_parameters` is an independent count from the configuration and
`agreement` says how the two compare.
"""

import csv
import json
import sys


def row(source, models):
    name = source["model_file"].removesuffix(".json").replace("__", "/")
    out = {"model": name, "model_type": models.get(name)}
    for column, key in [("exact_total_params", "stored_parameters"), ("active_params", "active_parameters"),
                        ("safetensors_total_size_bytes", "stored_bytes"), ("computed_params", "computed_parameters")]:
        if source[column]:
            out[key] = int(source[column])
    return out | {key: source[key] for key in ("agreement", "note", "source") if source[key]}


def main(counts, models, output, *types):
    with open(models, encoding="utf-8") as f:
        models = {m["name"]: m.get("model_type") for m in map(json.loads, f)}
    with open(counts, newline="", encoding="utf-8") as f:
        rows = [row(r, models) for r in csv.DictReader(f)]
    rows = sorted((r for r in rows if not types or r["model_type"] in types), key=lambda r: r["model"].lower())
    with open(output, "w", encoding="utf-8") as out:
        for r in rows:
            out.write(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
