#!/usr/bin/env python3
"""Records what PyTorch's CUDA caching allocator does with requests drawn at random, under its various settings.

Run in the lab's folder /lab/allocator (see prepare). Usage: record_allocator.py --out FOLDER
Each log begins with lines "conf", "card" and "fraction"; then come a request a line and, behind it, what the
allocator did: S, F a segment made and freed; M, U pages mapped and unmapped; R address space; @ the address handed
out; o the error. Addresses count from 0x7f0000000000. Requests are those of play.cc; u: another stream uses the block of
a request; y: whether streams are still at work.
"""
import argparse
import os
import random
import subprocess

MIB = 1 << 20
BASE = 0x7F0000000000
CARD = 80 << 30
JOBS = {  # name: settings, bytes of the card, fraction, streams, requests, weight of large sizes, further
    "plain": ("", CARD, None, 1, 700, 1, ""),
    "plain-streams": ("", CARD, None, 3, 500, 1, ""),
    "plain-downwards": ("", CARD, None, 2, 500, 1, "down"),
    "plain-full": ("", 800 * MIB, None, 1, 600, 2, ""),
    "plain-full-streams": ("", 2000 * MIB, None, 3, 500, 2, ""),
    "plain-empty-cache": ("", CARD, None, 2, 500, 1, "empty"),
    "plain-pools": ("", 6000 * MIB, None, 2, 500, 1, "pools"),
    "awaited-streams": ("", CARD, None, 3, 600, 1, "awaited"),
    "awaited-full": ("", 1200 * MIB, None, 3, 600, 2, "awaited"),
    "awaited-expandable-full": ("expandable_segments:True", 1000 * MIB, None, 2, 600, 2, "awaited"),
    "split-64": ("max_split_size_mb:64", CARD, None, 1, 600, 2, ""),
    "split-128-full": ("max_split_size_mb:128", 2500 * MIB, None, 1, 600, 3, ""),
    "split-32-rounding-100-full": ("max_split_size_mb:32,max_non_split_rounding_mb:100", 2500 * MIB, None, 2, 500, 3, ""),
    "roundup-4": ("roundup_power2_divisions:4", CARD, None, 1, 500, 1, ""),
    "roundup-8-full": ("roundup_power2_divisions:8", 2000 * MIB, None, 1, 500, 2, ""),
    "roundup-list": ("roundup_power2_divisions:[2:8,16:4,64:2,>:1]", CARD, None, 1, 500, 1, ""),
    "roundup-list-low": ("roundup_power2_divisions:[1:16,4:2,128:0]", CARD, None, 1, 500, 1, ""),
    "garbage-60": ("garbage_collection_threshold:0.6", 1000 * MIB, 0.8, 1, 600, 2, ""),
    "garbage-30-streams": ("garbage_collection_threshold:0.3", 1800 * MIB, 1.0, 2, 500, 2, ""),
    "garbage-50-split-64": ("garbage_collection_threshold:0.5,max_split_size_mb:64", 1800 * MIB, 0.9, 1, 500, 2, ""),
    "fraction-50": ("", 4000 * MIB, 0.5, 1, 400, 2, ""),
    "expandable": ("expandable_segments:True", CARD, None, 1, 600, 1, ""),
    "expandable-streams": ("expandable_segments:True", CARD, None, 3, 500, 1, ""),
    "expandable-full": ("expandable_segments:True", 800 * MIB, None, 1, 600, 2, ""),
    "expandable-full-streams": ("expandable_segments:True", 2000 * MIB, None, 2, 500, 2, ""),
    "expandable-empty-cache": ("expandable_segments:True", CARD, None, 2, 500, 1, "empty"),
    "expandable-fraction-50": ("expandable_segments:True", 4000 * MIB, 0.5, 1, 400, 2, ""),
    "expandable-split-64-full": ("expandable_segments:True,max_split_size_mb:64", 1500 * MIB, None, 1, 500, 3, ""),
    "expandable-roundup-4": ("expandable_segments:True,roundup_power2_divisions:4", CARD, None, 1, 400, 1, ""),
}


def draw_size(dice, favourites, large):
    if favourites and dice.random() < 0.5:
        return dice.choice(favourites)
    kind = dice.choices(["tiny", "small", "edge", "medium", "large"], [2, 3, 1, 3, large])[0]
    if kind == "tiny":
        return dice.randint(1, 2048)
    if kind == "small":
        return dice.randint(2049, MIB)
    if kind == "edge":
        return dice.choice([511, 512, 513, MIB - 1, MIB, MIB + 1, 10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 19 * MIB, 20 * MIB])
    if kind == "medium":
        return dice.randint(MIB + 1, 10 * MIB)
    return dice.randint(10 * MIB, 160 * MIB)


def requests_of(name, streams, count, large, further):
    """Waves: memory fills, then most of it is freed in no order, as from step to step."""
    dice = random.Random(name)
    favourites, alive, out, made, pool, pools = [], [], [], 0, None, 0
    for _ in range(count):
        filling = (len(out) // 60) % 2 == 0
        if further == "empty" and dice.random() < 0.02:
            out.append("e 0 0")
        if further == "awaited" and dice.random() < 0.1:
            out.append(f"y {dice.randint(0, 1)} 0")
        if further == "awaited" and alive and dice.random() < 0.2:
            out.append(f"u {dice.choice(alive)} {8 * dice.randint(1, 3)}")
        if further == "pools" and pool is None and dice.random() < 0.02:
            pools += 1
            pool = pools
            out.append(f"b {pool} 1")
        elif further == "pools" and pool is not None and dice.random() < 0.08:
            out.append(f"n {pool} 1")
            if dice.random() < 0.5:
                out.append(f"d {pool} 0")
            pool = None
        if alive and dice.random() < (0.2 if filling else 0.6):
            out.append(f"f {alive.pop(dice.randrange(len(alive)))} 0")
            continue
        size = draw_size(dice, favourites, large)
        if len(favourites) < 12 and dice.random() < 0.3:
            favourites.append(size)
        out.append(f"a {size} {dice.randrange(streams)}")
        alive.append(made)
        made += 1
    if pool is not None:
        out.append(f"n {pool} 1")
    return out


def play(lines, conf, card, fraction, down):
    setup = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, CARD_BYTES=str(card), LD_LIBRARY_PATH=".")
    if fraction is not None:
        setup["FRACTION"] = str(fraction)
    if down:
        setup["DOWNWARDS"] = "1"
    result = subprocess.run(["./play"], input="\n".join(lines) + "\n", env=setup, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(result.stderr)
    return result.stdout.splitlines()


def relative(line):
    if line[0] not in "SFMUR@":
        return line
    words = line.split()
    words[1] = str(int(words[1]) - BASE)
    return " ".join(words)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", required=True)
    out = options.parse_args().out
    os.makedirs(out, exist_ok=True)
    for name, (conf, card, fraction, streams, count, large, further) in JOBS.items():
        lines = requests_of(name, streams, count, large, further)
        log = [f"conf {conf}", f"card {card}", f"fraction {fraction or 0}"]
        log += [relative(l) for l in play(lines, conf, card, fraction, further == "down")]
        open(f"{out}/{name}.log", "w").write("\n".join(log) + "\n")
        print(name, len(log), sum(l[0] == "o" for l in log))


main()
