#!/usr/bin/env python3
"""Writes data/usable_memory.jsonl: how much of a card's memory a program can have.

usage: fit_usable_memory.py GPUS.jsonl OUTPUT.jsonl

Derives rules from the cards of GPUS.jsonl for which the runtime's total is known, for those
for which it is not. usable = ratio * basis - gap, each as [low, middle, high]; the basis is
nvidia-smi's total or the datasheet's size read as GiB. The first rule that fits a card wins.
Totals seen on Windows are left out: there the driver lends the system's memory and reports
the whole card. docs/data.md describes the file.
"""

import json
import statistics
import sys

MIB = 2**20
GIB = 2**30

FROM_ROWS = "derived from the rows of gpus.jsonl that are listed, each with its own source"
APPLE_SMALL = ("Metal's recommended working set in llama.cpp logs: 10922.67 MiB of 16 GiB "
               "(github.com/abetlen/llama-cpp-python/issues/687), 21845.34 MiB of 32 GiB "
               "(github.com/ggml-org/llama.cpp/pull/2011, github.com/ollama/ollama/issues/434)")
APPLE_LARGE = ("Metal's recommended working set in a llama.cpp log: 73728 MiB of 96 GiB "
               "(github.com/ggml-org/llama.cpp/issues/3213)")
RECALLED_36 = "; that the step lies between 36 and 48 GiB is recalled"


def on_linux(gpu):
    return "cuda_total_bytes" in gpu and gpu["cuda_total_platform"].startswith("linux")


def datasheet_bytes(gpu):
    return gpu["datasheet_gb"] * GIB // gpu.get("devices_per_card", 1)


def rule(name, kind, condition, basis, ratio, gap_mib, rows, source):
    return {"name": name, "kind": kind, **condition, "basis": basis, "ratio": [round(r, 5) for r in ratio],
            "gap_mib": [round(g, 1) for g in gap_mib], "rows": [r["id"] for r in rows], "source": source}


def theil_sen(points):
    """The line with the median of all slopes: a few odd cards do not move it."""
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1:] if x1 != x2]
    slope = statistics.median(slopes)
    return slope, statistics.median(y - slope * x for x, y in points)


def nvidia_smi_rule(gpus):
    """The reserve of the driver grows with the card. Older drivers left it out of nvidia-smi's
    total too; those rows show no gap and would teach nothing about the newer ones."""
    gap = {g["id"]: g["nvidia_smi_total_mib"] - g["cuda_total_bytes"] / MIB for g in gpus if "nvidia_smi_total_mib" in g}
    rows = [g for g in gpus if gap.get(g["id"], 0) > 10]
    slope, start = theil_sen([(g["nvidia_smi_total_mib"], gap[g["id"]]) for g in rows])
    rest = [gap[g["id"]] - slope * g["nvidia_smi_total_mib"] for g in rows]
    ratio = 1 - slope
    return rule("nvidia-by-nvidia-smi", "measured fit", {"vendor": "NVIDIA"}, "nvidia_smi", [ratio] * 3,
                [max(rest), start, min(rest)], rows, FROM_ROWS)


def ratio_rule(name, condition, rows):
    ratios = sorted(g["cuda_total_bytes"] / datasheet_bytes(g) for g in rows)
    middle = statistics.median(ratios)
    return rule(name, "measured fit", condition, "datasheet", [ratios[0], middle, ratios[-1]], [0, 0, 0], rows, FROM_ROWS)


def amd_rule(gpus):
    """Exactly 16 MiB less on every card; a virtual function of an MI300X gets 560 MiB less."""
    rows = [g for g in gpus if g["vendor"] == "AMD"]
    gaps = [(datasheet_bytes(g) - t) / MIB for g in rows
            for t in [g["cuda_total_bytes"], *(s["bytes"] for s in g.get("cuda_totals_seen", []))]]
    return rule("amd-by-datasheet", "measured fit", {"vendor": "AMD"}, "datasheet", [1, 1, 1],
                [max(gaps), statistics.median(gaps), min(gaps)], rows, FROM_ROWS)


def apple_rules():
    small, large = 2 / 3, 3 / 4
    return [rule("apple-to-36-gib", "measured fit", {"vendor": "Apple", "datasheet_at_most_gb": 36}, "datasheet",
                 [small, small, large], [0, 0, 0], [], APPLE_SMALL + RECALLED_36),
            rule("apple-above-36-gib", "measured fit", {"vendor": "Apple"}, "datasheet",
                 [small, large, large], [0, 0, 0], [], APPLE_LARGE + RECALLED_36)]


def main(gpus, output):
    gpus = [json.loads(line) for line in open(gpus, encoding="utf-8")]
    known = [g for g in gpus if on_linux(g)]
    stated = [g for g in gpus if g.get("cuda_total_platform") == "not stated"]
    apart = [g for g in known if not g.get("unified_memory")]
    nvidia = [g for g in apart if g["vendor"] == "NVIDIA"]
    guess = "a guess: no card of this kind in gpus.jsonl has a known total"
    rules = [
        nvidia_smi_rule(nvidia),
        rule("unified-memory", "guess", {"vendor": "NVIDIA", "unified_memory": True}, "datasheet", [0.75, 0.95, 1],
             [0, 0, 0], [g for g in known if g.get("unified_memory") and g["vendor"] == "NVIDIA"],
             "a guess around the one card known; the system and its programs share this memory"),
        rule("amd-unified-memory", "guess", {"vendor": "AMD", "unified_memory": True}, "datasheet", [0.48, 0.75, 1],
             [0, 0, 0], [g for g in known if g.get("unified_memory") and g["vendor"] == "AMD"],
             "a guess: the carve-out and the GTT settings decide; 96 of 128 GiB on an MI300A "
             "(github.com/ROCm/legacy-rocm-build/pull/3587)"),
        ratio_rule("nvidia-inline-ecc", {"vendor": "NVIDIA", "inline_ecc": True}, [g for g in nvidia if g.get("inline_ecc")]),
        ratio_rule("nvidia-by-datasheet", {"vendor": "NVIDIA"},
                   [g for g in nvidia if not g.get("inline_ecc") and "ECC on" not in g["cuda_total_platform"]]),
        amd_rule([g for g in apart + stated if g["vendor"] == "AMD"]),
        ratio_rule("huawei-by-datasheet", {"vendor": "Huawei"}, [g for g in apart if g["vendor"] == "Huawei"]),
        *apple_rules(),
        rule("any", "guess", {}, "datasheet", [0.9, 0.97, 1], [0, 0, 0], [], guess),
    ]
    with open(output, "w", encoding="utf-8") as out:
        for r in rules:
            out.write(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
