#!/usr/bin/env python3
"""Plays the requests of a predicted step to PyTorch's own caching allocator and compares segments and addresses.

Run in the lab's folder /lab/allocator (see prepare) on what `ullage train ... --timeline FILE.pickle` wrote.
Usage: check_snapshot.py FILE.pickle [ALLOC_CONF]; exit status 1 where they differ.
"""
import os
import pickle
import subprocess
import sys

CARD = 1 << 42  # without a limit


def requests_of(trace):
    """The lines that play reads; a free names its request by number."""
    lines, numbers, made = [], {}, 0
    for entry in trace:
        if entry["action"] == "alloc":
            lines.append(f"a {entry['size']} 0")
            numbers[entry["addr"]] = made
            made += 1
        elif entry["action"] == "free_completed":
            lines.append(f"f {numbers.pop(entry['addr'])} 0")
    return lines


def play(lines, conf):
    setup = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, CARD_BYTES=str(CARD), LD_LIBRARY_PATH=".")
    done = subprocess.run(["./play"], input="\n".join(lines) + "\n", env=setup, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def main():
    path, conf = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    (trace,) = snapshot["device_traces"]
    theirs = play(requests_of(trace), conf)
    segments = [int(words[2]) for words in theirs if words[0] == "S"]
    mapped = sum(int(words[2]) for words in theirs if words[0] == "M")
    ours = [entry["size"] for entry in trace if entry["action"] == "segment_alloc"]
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    addresses = [int(words[1]) for words in theirs if words[0] == "@"]
    shifts = {a - e["addr"] for a, e in zip(addresses, (e for e in trace if e["action"] == "alloc"))}
    equal = ours == segments and reserved == int(theirs[-1][2])
    print(f"{len(addresses)} requests, {len(segments)} segments, {mapped} bytes mapped, {reserved} reserved; "
          f"{'equal' if equal else 'NOT EQUAL'}; addresses shifted by {len(shifts)} constants")
    sys.exit(0 if equal else 1)


main()
