#!/usr/bin/env python3
"""Render the figures and the examples of docs/questions.md (and .zh-CN.md) from the program's answers.

Prose is written by hand in the pages; what stands between `<!-- table figures -->` and `<!-- end -->`, and what follows
a command in a block of ```console, is made here, so that no figure is typed. A test makes them again and compares.

Usage: questions.py [--binary FILE] [--write]     (without --write: says which of the files are out of date)
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {"en": "docs/questions.md", "zh": "docs/questions.zh-CN.md"}
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
COMMAND = re.compile(r"^\$ \./ullage(.*)$", re.MULTILINE)
GB, GIB = (1e9, "GB"), (2.0**30, "GiB")

# (command, where its JSON has the figure, unit and digits to show it in, what is taught)
FIGURES = [
    ("7B --dtype fp32", "weights", GIB, 2, "26.08 GiB"),
    ("13B --dtype fp32", "weights", GB, 0, "52 GB"),
    ("11B --dtype fp32", "weights", GIB, 0, "41 GiB"),
    ("65B --dtype fp16 --gpu v100-pcie-32gb", "cards", None, 0, "5"),
    ("6B --dtype int8", "training_units_kernels", GB, 1, "6 + 6 + 12 + 1.3 = 25.3 GB"),
    ("6B --dtype int8 --layers 32 --hidden 4096 --ffn 11008", "sample", (1e6, "MB"), 0, "990 MB"),
    ("6B --dtype int8 --layers 32 --hidden 4096 --ffn 11008 --gpu a100-sxm-80gb", "samples", None, 0, "50 (55, rounded)"),
    ("13B", "serving_1.3", GB, 1, "33.8 GB"),
    ("13B --quantization int8", "serving_1.3", GB, 1, "16.9 GB"),
    ("70B --quantization int4", "serving_1.3", GB, 1, "45.5 GB"),
    ("70B --dtype fp16", "serving_1.2", GB, 0, "168 GB"),
    ("textbook --lora 8 --matrix 1024x512", "lora", None, 0, "12,288"),
    ("textbook --bytes-per-token 57344 --micro-batch 16", "cache_batch", GIB, 2, "1.75 GiB"),
    ("textbook --bytes-per-token 57344 --cache-memory 40GiB", "cache_blocks", None, 0, "5851"),
    ("textbook --bytes-per-token 57344 --cache-memory 40GiB", "cache_sequences", None, 0, "365"),
    ("7.5B --gpus 64", "zero_0", GB, 0, "120 GB"),
    ("7.5B --gpus 64", "zero_1", GB, 1, "31.4 GB"),
    ("7.5B --gpus 64", "zero_2", GB, 1, "16.6 GB"),
    ("7.5B --gpus 64", "zero_3", GB, 1, "1.9 GB"),
    ("inspect --tensor 32x3x256x256 --dtype fp32", ("tensor", "bytes"), (2.0**20, "MiB"), 0, "24 MiB"),
    ("mfu --cores 1280 --clock-ghz 1.4", ("device", "peak_tflops"), (1, "TFLOPS"), 3, "3.584 TFLOPS"),
    ("mfu --tflops 100 --gpu a100-sxm-80gb", ("mfu",), (0.01, "%"), 2, "32.05 %"),
    ("mfu --examples-per-second 3 --seq-len 2048 --gpus 4", ("measured", "tokens_per_second_per_gpu"), (1, "tokens/s"), 0,
     "1536 tokens/s"),
    ("mfu --examples-per-second 3 --seq-len 2048 --gpus 4 --reference 3300", ("reference", "ratio"), (0.01, "%"), 1,
     "46.5 %"),
]
HEADS = {"en": "| command | answer | taught |", "zh": "| 命令 | 答案 | 通行说法 |"}


def run(binary, arguments):
    return subprocess.run([str(binary), *shlex.split(arguments)], capture_output=True, text=True, timeout=60, check=False,
                          cwd=ROOT, env={"LANG": "C.UTF-8", "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"})


def figure(binary, arguments, where):
    """The number that the command's JSON has there: a line of the textbook by its name, or a path."""
    answer = json.loads(run(binary, arguments + " --json").stdout)
    if isinstance(where, str):
        return next(line["value"] for line in answer["lines"] if line["name"] == where)
    for key in where:
        answer = answer[key]
    return answer


def shown(value, unit, digits):
    scale, name = unit or (1, "")
    return f"{value / scale:,.{digits}f} {name}".strip()


def table(binary, language):
    lines = [HEADS[language], "| --- | ---: | --- |"]
    for arguments, where, unit, digits, taught in FIGURES:
        lines.append(f"| `ullage {arguments}` | {shown(figure(binary, arguments, where), unit, digits)} | {taught} |")
    return "\n".join(lines)


def printed(binary, arguments):
    done = run(binary, arguments)
    return done.stdout if done.returncode == 0 else done.stderr


def renewed_block(binary, block):
    return "\n".join(f"$ ./ullage{arguments}\n{printed(binary, arguments)}" for arguments in COMMAND.findall(block))


def render(binary):
    """By file name: what it should hold."""
    out = {}
    for language, page in PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        text = re.sub(r"(<!-- table figures -->\n).*?(<!-- end -->)",
                      lambda place, made=table(binary, language): f"{place[1]}{made}\n{place[2]}", text, flags=re.DOTALL)
        out[page] = BLOCK.sub(lambda found: renewed_block(binary, found.group()), text)
    return out


def outdated(binary):
    return {name: text for name, text in render(binary).items()
            if (ROOT / name).read_text(encoding="utf-8") != text}


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
