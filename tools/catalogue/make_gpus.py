#!/usr/bin/env python3
"""Writes data/gpus.jsonl from two tables of cards.

usage: make_gpus.py DATASHEETS.csv MEMORY.csv OUTPUT.jsonl

DATASHEETS.csv: what vendors publish, with the source of each cell and the list of cells
that were recalled rather than looked up. MEMORY.csv: ids, aliases and the memory that
CUDA (or the vendor's runtime) and nvidia-smi report. docs/data.md explains the output.
"""

import csv
import json
import re
import sys

GIB = 2**30
HALF_CENTI_GIB = 5368709  # half of the last digit of a figure such as 79.15 GiB

# Column of DATASHEETS.csv: (key of ours, type).
CELLS = {
    "architecture": ("architecture", str),
    "compute_capability": ("compute_capability", str),
    "marketing_gb": ("datasheet_gb", int),
    "memory_bandwidth_GBps": ("memory_bandwidth_gb_per_s", float),
    "fp32_tflops": ("fp32_tflops", float),
    "tf32_tflops": ("tf32_tflops", float),
    "fp16_tflops": ("fp16_tflops", float),
    "bf16_tflops": ("bf16_tflops", float),
    "fp8_tflops": ("fp8_tflops", float),
    "fp4_tflops": ("fp4_tflops", float),
    "int8_tops": ("int8_tops", float),
    "nvlink_GBps_bidir": ("link_gb_per_s", float),
    "max_nvlink_domain": ("link_domain", int),
    "pcie_gen": ("pcie_generation", int),
    "tdp_w": ("tdp_w", int),
    "release_year": ("year", int),
    "form_factor": ("form_factor", str),
}

# Boards that show themselves as several devices (AMD's and Intel's product pages; the
# first two confirmed by the totals in the table). Their datasheet cells are per board.
DEVICES_PER_CARD = {"mi250": 2, "mi250x": 2, "data-center-gpu-max-1550": 2}

# Server cards with GDDR memory that ship with ECC on, which costs a sixteenth of it: seen in
# nvidia-smi's totals (T4 15360, A10 23028, L4 23034, A40 46068, L40S 46068 MiB) and in what
# CUDA gives on an M60 (7618.6 MiB of 8 GiB); inferred for the others of the same kind.
INLINE_ECC = {"k80-12gb", "m60-8gb", "p4", "p40", "t4", "a2", "a10", "a10g", "a16-16gb", "a40",
              "l4", "l20", "l40", "l40s"}

# Cards of MEMORY.csv that DATASHEETS.csv lacks. All recalled, except memory sizes that the
# name states.
RECALLED = {
    "v100-dgxs-32gb": ("Volta GV100", "7.0", 32),
    "rtx-2080-super": ("Turing TU104", "7.5", 8),
    "gtx-1660-ti": ("Turing TU116", "7.5", 6),
    "m60-8gb": ("Maxwell GM204", "5.2", 8),
    "quadro-rtx-4000": ("Turing TU104", "7.5", 8),
    "ascend-910b2": ("Da Vinci", "", 64),
    "mi50-radeon-pro-vii": ("Vega 20 gfx906", "", 16),
    "h20-141gb": ("Hopper GH100", "9.0", 141),
}


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def number(text, kind):
    if kind is str:
        return text
    value = float(text)
    return int(value) if value == int(value) else value


def capability(text):
    return text if "." in text or not text else text + ".0"


def tidy(text):
    """Replaces letters that stood for tables in the original by words."""
    text = re.sub(r"; 79\.15 to 79\.35 .*", "", text)
    text = re.sub(r"\b([Ss]ource )?[A-M](?= (lists?|says?|labels?|scales)\b)", "one table", text)
    text = re.sub(r"\b([Ss]ource) [A-M]\b", "one table", text)
    text = re.sub(r"\bC and early material say\b", "early material says", text)
    return text.strip().rstrip(".")


def cell_sources(text):
    """'SOURCE => cell,cell; SOURCE => cell' to [{source, cells}], our keys."""
    out = []
    for part in filter(None, text.split("; ")):
        source, _, cells = part.rpartition(" => ")
        keys = [CELLS[c][0] for c in cells.split(",") if c in CELLS]
        if keys:
            out.append({"source": source, "cells": keys})
    return out


def keys_of(cells):
    return sorted(CELLS[c][0] for c in cells.split() if c in CELLS)


def datasheet(row):
    out = {}
    for column, (key, kind) in CELLS.items():
        if row[column]:
            out[key] = number(row[column], kind)
    if "compute_capability" in out:
        out["compute_capability"] = capability(out["compute_capability"])
    out["recalled"] = keys_of(row["recalled_cells"])
    out["inferred"] = keys_of(row["inferred_cells"])
    out["sources"] = cell_sources(row["cell_sources"])
    if row["note"]:
        out["note"] = tidy(row["note"])
    return out


def recalled(card):
    architecture, compute, gb = RECALLED[card]
    out = {"architecture": architecture, "compute_capability": compute, "datasheet_gb": gb}
    out = {k: v for k, v in out.items() if v}
    named = f"{gb}gb" in card
    return out | {"recalled": sorted(k for k in out if not (named and k == "datasheet_gb")),
                  "inferred": [], "sources": []}


def totals_seen(text):
    """Every other total that somebody reported, as [{bytes, precision_bytes, platform, source}]."""
    out = []
    for part in filter(None, (p.strip() for p in text.split("; "))):
        figures = re.sub(r"https?://\S+|\bof \d+\.\d+", " ", part)
        windows = re.search(r"windows|wsl", part, re.I)
        for figure in re.findall(r"(?<![\w./-])(\d{10,}|\d+\.\d\d)(?![\w./])", figures):
            exact = "." not in figure
            seen = {"bytes": int(figure) if exact else round(float(figure) * GIB),
                    "precision_bytes": 0 if exact else HALF_CENTI_GIB}
            if windows:
                seen["platform"] = "windows"
            out.append(seen | {"source": re.sub(r"^[\d., GiBand]+ (in |for )?", "", part)})
    return out


def memory(row):
    out = {}
    if row["cuda_total_bytes"]:
        out["cuda_total_bytes"] = int(row["cuda_total_bytes"])
        out["cuda_total_precision_bytes"] = int(row["total_precision_bytes"])
        out["cuda_total_platform"] = row["platform"]
    seen = totals_seen(row["other_cuda_totals_seen"])
    if seen:
        out["cuda_totals_seen"] = seen
    if row["nvidia_smi_total_mib"]:
        out["nvidia_smi_total_mib"] = int(row["nvidia_smi_total_mib"])
    return out


def memory_sources(row):
    pairs = [("cuda_total_bytes", row["cuda_source"]),
             ("nvidia_smi_total_mib", re.sub(r"^gpus\.csv usable_mib: ", "", row["nvidia_smi_source"]))]
    return [{"source": s.replace(" per gpus.csv", ""), "cells": [k]}
            for k, s in pairs if s and not s.startswith("recalled")]


def card(row, sheets):
    sheet = datasheet(sheets[row["name"]]) if row["name"] in sheets else recalled(row["id"])
    out = {"id": row["id"], "aliases": row["aliases"].split(), "vendor": row["vendor"], "name": row["name"]}
    lists = {key: sheet.pop(key) for key in ("recalled", "inferred", "sources")}
    note = sheet.pop("note", "")
    out |= sheet | memory(row)
    if row["id"] in DEVICES_PER_CARD:
        out["devices_per_card"] = DEVICES_PER_CARD[row["id"]]
    if row["id"] in INLINE_ECC:
        out["inline_ecc"] = True
    if "unified" in out.get("form_factor", ""):
        out["unified_memory"] = True
    if "recalled" in row["nvidia_smi_source"]:
        lists["recalled"] = sorted(lists["recalled"] + ["nvidia_smi_total_mib"])
    lists["sources"] += memory_sources(row)
    out |= {key: value for key, value in lists.items() if value}
    if note:
        out["note"] = note
    return out


def main(datasheets, totals, output):
    sheets = {row["name"]: row for row in read(datasheets)}
    cards = [card(row, sheets) for row in read(totals)]
    missing = set(sheets) - {c["name"] for c in cards}
    assert not missing, f"no id for {missing}"
    names = [n for c in cards for n in [c["id"], *c["aliases"]]]
    assert len(names) == len(set(names)), "two cards have one id or alias"
    with open(output, "w", encoding="utf-8") as out:
        for c in sorted(cards, key=lambda c: c["id"].encode()):
            out.write(json.dumps(c, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
