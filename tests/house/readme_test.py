"""The examples of the READMEs are what the program prints. `python3 tests/house/readme_test.py --update` prints
them anew into the files (ULLAGE_BINARY names the program; build/release/bin/ullage otherwise).

An example is a block of ```console whose lines start with "$ ./ullage"; what follows up to the next such line is
its output."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

import repository

READMES = ("README.md", "README.zh-CN.md")
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
COMMAND = re.compile(r"^\$ \./ullage(.*)$", re.MULTILINE)


def program():
    return pathlib.Path(os.environ.get("ULLAGE_BINARY", repository.ROOT / "build/release/bin/ullage"))


def printed(arguments):
    """Standard output, without colour and in English unless the arguments say otherwise."""
    done = subprocess.run([str(program()), *shlex.split(arguments)], capture_output=True, text=True, timeout=60,
                          cwd=repository.ROOT, env={"LANG": "C.UTF-8", "PATH": os.environ["PATH"]}, check=False)
    return done.stdout if done.returncode == 0 else f"{done.stderr}(status {done.returncode})\n"


def renewed_block(block):
    return "".join(f"$ ./ullage{arguments}\n{printed(arguments)}" for arguments in COMMAND.findall(block))


def renewed(text):
    return BLOCK.sub(lambda found: renewed_block(found.group()) if COMMAND.search(found.group()) else found.group(), text)


def present_readmes():
    return [repository.ROOT / name for name in READMES if (repository.ROOT / name).is_file()]


class Readme(unittest.TestCase):
    def test_examples_are_what_the_program_prints(self):
        if not program().is_file():
            self.skipTest("the program is not part of this build")
        for path in present_readmes():
            text = path.read_text(encoding="utf-8")
            self.maxDiff = None
            self.assertEqual(text, renewed(text), f"{path.name}: renew with tests/house/readme_test.py --update")

    def test_links_lead_somewhere(self):
        for path in [*present_readmes(), repository.ROOT / "HACKING.md"]:
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
                self.assertTrue((repository.ROOT / target).exists(), f"{path.name}: {target}")


if __name__ == "__main__":
    if "--update" in sys.argv:
        for readme in present_readmes():
            readme.write_text(renewed(readme.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        unittest.main()
