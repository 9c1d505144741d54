"""The program as a process: streams, exit status, full disks, memory and work."""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

BINARY = os.environ["ULLAGE_BINARY"]
TRAIN = ["train", "meta-llama/Llama-3.1-8B", "--gpu", "h100-sxm-80gb"]
# Instructions from start to end, a third of them for the range of what is reserved; a machine of 2 GHz does 4 million in a
# millisecond, and a call may take 15.
MOST_INSTRUCTIONS = 36_600_000
# A search may take 50 ms.
SEARCH = ["train", "meta-llama/Llama-3.1-70B", "--gpu", "h200", "--lora", "8", "--recompute", "full"]
MOST_INSTRUCTIONS_OF_A_SEARCH = 135_000_000
# Files of 20 to 30 KB that end with their header.
GGUF = ["mistralai__Mixtral-8x7B-v0.1.Q4_K.gguf", "google__gemma-2-9b-it.Q4_K.gguf"]
MOST_INSTRUCTIONS_OF_A_GGUF = 9_000_000
MOST_KIB = 30 * 1024
# A sanitizer takes address space and memory of its own.
SANITIZED = bool(os.environ.get("ULLAGE_SANITIZE"))


def run(words, **more):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **more)


class Process(unittest.TestCase):
    def test_answers_and_leaves_standard_error_empty(self):
        done = run(TRAIN)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("H100", done.stdout)

    def test_exit_statuses(self):
        self.assertEqual(run(["train", "gpt2", "--gpu", "h100", "--gpu-memory", "1MiB", "--require-fit"]).returncode, 3)
        self.assertEqual(run(["train", "no-such-model"]).returncode, 2)
        self.assertEqual(run(["--version"]).returncode, 0)

    def test_a_full_disk_is_one_line_and_status_2(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        for words in (TRAIN, [*TRAIN, "--json"], ["models"], ["gpus"], ["--help"], ["inspect", "gpt2"]):
            with self.subTest(" ".join(words)), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([BINARY, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr, "ullage: standard output: cannot write: No space left on device\n")

    @unittest.skipIf(SANITIZED, "built with a sanitizer")
    def test_a_configuration_of_two_gigabytes_costs_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.touch()
            os.truncate(path, 2 << 30)
            # With so little memory an attempt to read it would end in a crash.
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))  # noqa: E731
            done = run(["train", folder], preexec_fn=limit)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"ullage: {path}: has 2147483648 bytes; at most 4194304 are read here\n")

    def test_the_language_comes_from_the_environment(self):
        chinese = run(TRAIN, env={**os.environ, "LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"})
        self.assertIn("峰值", chinese.stdout)
        english = run(TRAIN, env={**os.environ, "LC_ALL": "C", "LANG": "zh_CN.UTF-8"})
        self.assertNotIn("峰值", english.stdout)

    @unittest.skipIf(SANITIZED, "built with a sanitizer")
    def test_memory_stays_small(self):
        script = "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,check=True);" \
                 "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run(["python3", "-c", script, BINARY, *TRAIN], capture_output=True, text=True, timeout=60, check=True)
        self.assertLess(int(done.stdout), MOST_KIB)

    def instructions_of(self, words):
        counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", BINARY, *words]
        done = subprocess.run(counted, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(re.search(r"Collected : (\d+)", done.stderr).group(1))

    @unittest.skipIf(SANITIZED, "built with a sanitizer")
    @unittest.skipIf(shutil.which("valgrind") is None, "no valgrind here")
    def test_a_call_does_little_work(self):
        self.assertLess(self.instructions_of(TRAIN), MOST_INSTRUCTIONS)

    @unittest.skipIf(SANITIZED, "built with a sanitizer")
    @unittest.skipIf(shutil.which("valgrind") is None, "no valgrind here")
    def test_a_gguf_file_takes_little_work(self):
        folder = pathlib.Path(os.environ["ULLAGE_TEST_DATA"]) / "checkpoints"
        for name in GGUF:
            for more in ([], ["--checkpoint"]):
                with self.subTest(f"{name} {more}"):
                    self.assertLess(self.instructions_of(["inspect", str(folder / name), *more]),
                                    MOST_INSTRUCTIONS_OF_A_GGUF)

    @unittest.skipIf(SANITIZED, "built with a sanitizer")
    @unittest.skipIf(shutil.which("valgrind") is None, "no valgrind here")
    def test_a_search_does_little_work(self):
        self.assertLess(self.instructions_of([*SEARCH, "--micro-batch", "max"]), MOST_INSTRUCTIONS_OF_A_SEARCH)


if __name__ == "__main__":
    unittest.main()
