"""--timeline in the tools that it is for: the trace in Chromium's own performance panel, the snapshot in PyTorch's
torch/cuda/_memory_viz.py (of an installed torch, or the file that ULLAGE_MEMORY_VIZ names)."""

import importlib.util
import io
import json
import os
import pathlib
import pickle
import re
import subprocess
import tempfile
import unittest

from page_test import chromium, webdriver

BINARY = os.environ["ULLAGE_BINARY"]
SETUPS = [
    ["train", "gpt2", "--set", "n_layer=3", "--seq-len", "128"],
    ["train", "gpt2", "--set", "n_layer=3", "--seq-len", "128", "--step", "first", "--recompute", "full"],
    ["train", "gpt2", "--set", "n_layer=3", "--alloc-conf", "expandable_segments:True", "--gpu", "h100"],
]


def answer(words, suffix):
    """The JSON answer and the file written."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"step{suffix}"
        done = subprocess.run([BINARY, *words, "--json", "--timeline", str(path)], capture_output=True, text=True,
                              encoding="utf-8", timeout=120, check=True)
        return json.loads(done.stdout), path.read_bytes()


# The code behind DevTools' performance panel is a module that Chromium ships.
READ_TRACE = """
const [events, done] = arguments;
(async () => {
  const module = await import('devtools://devtools/bundled/models/trace/trace.js').catch(() => null);
  if (module === null) return {absent: true};
  const model = module.TraceModel.Model.createWithAllHandlers();
  await model.parse(events, {metadata: {}});
  const {Meta, Renderer} = model.parsedTrace(0).data;
  const threads = {};
  for (const [pid, process] of Renderer.processes)
    for (const thread of process.threads.values())
      threads[thread.name] = thread.entries.map(e => [e.name, e.ts, e.dur, e.args]);
  return {processes: [...Meta.processNames.values()].map(e => e.args.name), threads};
})().then(done, error => done({error: String(error)}));
"""


@unittest.skipIf(webdriver is None or not os.path.exists("/usr/bin/chromedriver"), "no Chromium with its driver here")
class InChromium(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium()
        cls.browser.set_script_timeout(120)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()

    def test_the_performance_panel_reads_every_operator_and_phase(self):
        for words in SETUPS:
            with self.subTest(" ".join(words)):
                _, data = answer(words, ".json")
                events = json.loads(data)["traceEvents"]
                self.browser.get("devtools://devtools/bundled/devtools_app.html")
                read = self.browser.execute_async_script(READ_TRACE, events)
                if "absent" in read:
                    self.skipTest("this Chromium keeps the module elsewhere")
                self.assertNotIn("error", read)
                self.assertEqual(read["processes"], ["GPU memory"])
                for row, name in ((1, "phases"), (2, "operators")):
                    written = [[e["name"], e["ts"], e["dur"], e["args"]] for e in events
                               if e["ph"] == "X" and e["tid"] == row]
                    self.assertGreater(len(written), 0)
                    self.assertEqual(read["threads"][name], written)


def memory_viz():
    """PyTorch's module, without torch itself; None where there is none."""
    path = os.environ.get("ULLAGE_MEMORY_VIZ")
    if path is None:
        torch = importlib.util.find_spec("torch")
        if torch is None:
            return None
        path = pathlib.Path(torch.submodule_search_locations[0]) / "cuda/_memory_viz.py"
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class InPyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.viz = memory_viz()
        if cls.viz is None:
            raise unittest.SkipTest("no torch here, and ULLAGE_MEMORY_VIZ names no file of it")

    def test_the_summary_of_segments_says_what_we_say(self):
        for words in SETUPS:
            with self.subTest(" ".join(words)):
                said, data = answer(words, ".pickle")
                snapshot = pickle.load(io.BytesIO(data))
                text = self.viz.segsum(snapshot)  # asserts by itself that blocks add up to segments
                reserved = self.viz.Bytes(said["peak"]["reserved_bytes"])
                self.assertIn(f"total_reserved: {reserved}\n", text)
                live = sum(b["requested_size"] for s in snapshot["segments"] for b in s["blocks"]
                           if b["state"] == "active_allocated")
                self.assertIn(f"total_allocated: {self.viz.Bytes(live)}\n", text)
                active = sum(self.viz.calc_active(segment) for segment in snapshot["segments"])
                self.assertEqual(active, sum(s["active_size"] for s in snapshot["segments"]))

    def test_the_trace_and_both_plots_are_made(self):
        for words in SETUPS:
            with self.subTest(" ".join(words)):
                _, data = answer(words, ".pickle")
                snapshot = pickle.load(io.BytesIO(data))
                (entries,) = snapshot["device_traces"]
                text = self.viz.trace(snapshot)
                self.assertIn(f"{len(entries)} entries\n", text)
                for action, line in (("segment_alloc", r" = cudaMalloc\("), ("free_requested", r"^del ")):
                    count = sum(e["action"] == action for e in entries)
                    self.assertEqual(len(re.findall(line, text, re.MULTILINE)), count)
                for plot in (self.viz.trace_plot, self.viz.segment_plot):
                    self.assertIn("MemoryViz.js", plot(snapshot))


if __name__ == "__main__":
    unittest.main()
