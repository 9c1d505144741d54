#!/usr/bin/env python3
"""Render the tables and the picture of docs/what-moves-memory.md (and .zh-CN.md) from the program's answers.

Prose is written by hand in the pages; what stands between `<!-- table NAME -->` and `<!-- end -->` and the picture
docs/what-moves-memory.svg are made here, so that no figure is typed. A test makes them again and compares.

Usage: what_moves_memory.py [--binary FILE] [--write]     (without --write: says which of the files are out of date)
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["train", "meta-llama/Llama-3.1-8B", "--gpu", "h100-sxm-80gb"]
PAGES = {"en": "docs/what-moves-memory.md", "zh": "docs/what-moves-memory.zh-CN.md"}
PICTURE = "docs/what-moves-memory.svg"

FULL = "full fine-tuning, bf16"
# By table: the options of each set-up that it compares; the first is what the others are compared with.
TABLES = {
    "lora": {FULL: "", "LoRA, rank 16": "--lora 16 --lora-targets q_proj,v_proj"},
    "amp": {"bf16": "", "amp-bf16": "--precision amp-bf16", "fp32": "--precision fp32"},
    "optimizer": {"foreach": "", "fused": "--optimizer-impl fused", "loop": "--optimizer-impl loop"},
    "attention": {"sdpa": "", "eager": "--attention eager"},
    "recompute": {"none": "", "full": "--recompute full",
                  "full, fused": "--recompute full --optimizer-impl fused"},
}
PARTS = ["parameters", "gradients", "optimizer", "buffers", "inputs", "activations", "temporaries"]
COLOURS = {"parameters": "#4e79a7", "gradients": "#f28e2b", "optimizer": "#76b7b2", "activations": "#59a14f",
           "temporaries": "#e15759"}
WORDS = {
    "en": {"parameters": "parameters", "gradients": "gradients", "optimizer": "optimizer states",
           "buffers": "buffers", "inputs": "inputs", "activations": "activations", "temporaries": "temporaries",
           "trainable": "trainable parameters", "saved": "saved activations after the forward pass",
           "peak": "**peak, allocated**", "at": "the peak is in", "unit": "GiB", "flops": "FLOPs of a step, 10¹²",
           FULL: FULL, "LoRA, rank 16": "LoRA, rank 16"},
    "zh": {"parameters": "参数", "gradients": "梯度", "optimizer": "优化器状态", "buffers": "缓冲区", "inputs": "输入",
           "activations": "激活", "temporaries": "临时张量", "trainable": "可训练参数量",
           "saved": "前向之后保存的激活", "peak": "**峰值(已分配)**", "at": "峰值所在", "unit": "GiB",
           "flops": "一步的 FLOPs,10¹²", FULL: "全量微调,bf16", "LoRA, rank 16": "LoRA,秩 16"},
}


def answer(binary, options):
    done = subprocess.run([str(binary), *BASE, *options.split(), "--json"], capture_output=True, text=True,
                          timeout=60, check=True, env={"LANG": "C.UTF-8", "PATH": os.environ["PATH"]})
    return json.loads(done.stdout)


def phase(prediction, name):
    return next(p for p in prediction["phases"] if p["name"] == name)


def gib(size):
    return f"{size / 2**30:.2f}"


def rows(predictions):
    """(word, one text for each set-up)."""
    peaks = [phase(p, "peak")["components"] for p in predictions]
    yield "trainable", [f"{p['model']['trainable_parameters']:,}" for p in predictions]
    for part in PARTS:
        sizes = [peak.get(part, 0) for peak in peaks]
        if any(size >= 2**20 for size in sizes):
            yield part, [gib(size) for size in sizes]
    yield "peak", [f"**{gib(p['peak']['allocated_bytes'])}**" for p in predictions]
    yield "at", [f"`{p['peak']['at']}`" for p in predictions]
    yield "saved", [gib(phase(p, "after_forward")["components"].get("activations", 0)) for p in predictions]
    yield "flops", [f"{sum(p['work'].values()) / 1e12:.1f}" for p in predictions]


def table(setups, predictions, language):
    word = WORDS[language]
    names = [word.get(name, f"`{name}`") for name in setups]
    lines = [f"| {word['unit']} | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    lines += [f"| {word[name]} | " + " | ".join(cells) + " |" for name, cells in rows(predictions)]
    return "\n".join(lines)


def picture(answers):
    """One bar for each set-up, a colour for each component at the peak."""
    bars = {}
    for setups in TABLES.values():
        for name, options in setups.items():
            bars.setdefault(options, name)
    bars[""] = FULL
    height, width, left, scale = 26, 860, 210, 5.0
    lines, y = [], 34
    for options, name in bars.items():
        peak = phase(answers[options], "peak")["components"]
        label = options.strip("-").replace("optimizer-impl", "AdamW").replace("lora 16 --lora-targets q_proj,v_proj",
                                                                               "lora 16 (q_proj, v_proj)")
        lines.append(f'<text x="{left - 8}" y="{y + 16}" text-anchor="end">{label or name}</text>')
        x = float(left)
        for part, colour in COLOURS.items():
            size = peak.get(part, 0) / 2**30 * scale
            if size < 0.5:
                continue
            lines.append(f'<rect x="{x:.1f}" y="{y}" width="{size:.1f}" height="20" fill="{colour}"/>')
            x += size
        lines.append(f'<text x="{x + 5:.1f}" y="{y + 15}">{gib(answers[options]["peak"]["allocated_bytes"])}</text>')
        y += height
    key, x = [], left
    for part, colour in COLOURS.items():
        key.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}"/>'
                   f'<text x="{x + 17}" y="20">{part}</text>')
        x += 110
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 8}" width="{width}" '
                      'font-family="sans-serif" font-size="12">',
                      "<title>Llama-3.1-8B, one sequence of 2048 tokens: what is allocated at the peak, GiB</title>",
                      f'<rect width="{width}" height="{y + 8}" fill="#ffffff"/>', *key, *lines, "</svg>", ""])


def render(binary):
    """By file name: what it should hold."""
    wanted = {options for setups in TABLES.values() for options in setups.values()}
    answers = {options: answer(binary, options) for options in sorted(wanted)}
    out = {PICTURE: picture(answers)}
    for language, page in PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        for name, setups in TABLES.items():
            made = table(setups, [answers[options] for options in setups.values()], language)
            text, found = re.subn(rf"(<!-- table {name} -->\n).*?(<!-- end -->)",
                                  lambda place, made=made: f"{place[1]}{made}\n{place[2]}", text, flags=re.DOTALL)
            if found != 1:
                sys.exit(f"{page}: expected one table {name}, found {found}")
        out[page] = text
    return out


def outdated(binary):
    rendered = render(binary)
    return {name: text for name, text in rendered.items()
            if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != text}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=ROOT / "build/release/bin/ullage")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    changed = outdated(options.binary)
    for name, text in changed.items():
        if options.write:
            (ROOT / name).write_text(text, encoding="utf-8")
        print(f"{name}: {'written' if options.write else 'out of date'}")
    sys.exit(1 if changed and not options.write else 0)


if __name__ == "__main__":
    main()
