"""--timeline: the snapshot is what PyTorch's own tools read, the trace is Chrome's format, both say what the JSON says."""

import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import jsonschema

ROOT = pathlib.Path(os.environ["ULLAGE_SOURCE_DIR"])
BINARY = os.environ["ULLAGE_BINARY"]
SMALL = ["train", "gpt2", "--set", "n_layer=3", "--seq-len", "128"]
SETUPS = [
    SMALL,
    [*SMALL, "--step", "first"],
    [*SMALL, "--step", "forward", "--kernels", "cuda-traced"],
    [*SMALL, "--alloc-conf", "expandable_segments:True", "--gpu", "h100"],
    [*SMALL, "--recompute", "full", "--grad-accum", "2", "--optimizer", "sgd-momentum"],
]


class NoClasses(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"a snapshot names no class, but {module}.{name}")


def answer(words, suffix):
    """The JSON answer and the file written."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"step{suffix}"
        done = subprocess.run([BINARY, *words, "--json", "--timeline", str(path)], capture_output=True, text=True,
                              encoding="utf-8", timeout=120, check=True)
        return json.loads(done.stdout), path.read_bytes()


def unpickle(data):
    import io
    return NoClasses(io.BytesIO(data)).load()


def rounded(size):
    return (size + 511) // 512 * 512


class Snapshot(unittest.TestCase):
    def test_segments_are_tiled_and_add_up_to_what_is_reserved(self):
        for words in SETUPS:
            with self.subTest(" ".join(words)):
                said, data = answer(words, ".pickle")
                segments = unpickle(data)["segments"]
                self.assertEqual(sum(s["total_size"] for s in segments), said["peak"]["reserved_bytes"])
                for segment in segments:
                    at = segment["address"]
                    for block in segment["blocks"]:
                        self.assertEqual(block["address"], at)
                        at += block["size"]
                    self.assertEqual(at, segment["address"] + segment["total_size"])
                    used = [b for b in segment["blocks"] if b["state"] == "active_allocated"]
                    self.assertEqual(sum(b["size"] for b in used), segment["allocated_size"])
                    self.assertEqual(sum(b["requested_size"] for b in used), segment["requested_size"])

    def test_the_trace_ends_in_the_segments_and_reaches_the_peak(self):
        for words in SETUPS:
            with self.subTest(" ".join(words)):
                said, data = answer(words, ".pickle")
                snapshot = unpickle(data)
                (trace,) = snapshot["device_traces"]
                live, reserved, peak, allocated = {}, 0, 0, 0
                for before, entry in zip([{"time_us": -1}, *trace], trace):
                    self.assertGreater(entry["time_us"], before["time_us"])
                    action, size = entry["action"], entry["size"]
                    if action == "alloc":
                        self.assertNotIn(entry["addr"], live)
                        live[entry["addr"]] = size
                        allocated += rounded(size)
                        peak = max(peak, allocated)
                    elif action == "free_completed":
                        self.assertEqual(live.pop(entry["addr"]), size)
                        allocated -= rounded(size)
                    elif action in ("segment_alloc", "segment_map"):
                        reserved += size
                    elif action in ("segment_free", "segment_unmap"):
                        reserved -= size
                self.assertEqual(reserved, said["peak"]["reserved_bytes"])
                self.assertEqual(peak, said["peak"]["allocated_bytes"])
                blocks = {b["address"]: b["requested_size"] for s in snapshot["segments"] for b in s["blocks"]
                          if b["state"] == "active_allocated"}
                self.assertEqual(blocks, live)


class Trace(unittest.TestCase):
    def test_it_is_chromes_format_and_its_counter_reaches_the_peak(self):
        schema = json.loads((ROOT / "docs/schema/trace.json").read_text(encoding="utf-8"))
        for words in SETUPS:
            with self.subTest(" ".join(words)):
                said, data = answer(words, ".json")
                trace = json.loads(data)
                jsonschema.Draft202012Validator(schema).validate(trace)
                counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
                totals = [sum(e["args"].values()) for e in counters if e["name"] == "allocated bytes"]
                self.assertEqual(max(totals), said["peak"]["allocated_bytes"])
                reserved = [e["args"]["reserved"] for e in counters if e["name"] == "reserved bytes"]
                self.assertEqual(max(reserved), said["peak"]["reserved_bytes"])
                flops = sum(e["args"]["flops"] for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == 2)
                if "--grad-accum" not in words:
                    self.assertEqual(flops, sum(said["work"].values()))


if __name__ == "__main__":
    unittest.main()
