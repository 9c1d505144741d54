"""The figures and the examples of docs/questions.md are what the program answers. Renew them with
`tools/docs/questions.py --write` (ULLAGE_BINARY names the program; build/release/bin/ullage otherwise)."""

import os
import pathlib
import re
import sys
import unittest

import repository

sys.path.insert(0, str(repository.ROOT / "tools/docs"))
import questions


def binary():
    return pathlib.Path(os.environ.get("ULLAGE_BINARY", repository.ROOT / "build/release/bin/ullage"))


class Questions(unittest.TestCase):
    def test_pages_are_what_the_program_answers(self):
        if not binary().is_file():
            self.skipTest("the program is not part of this build")
        self.assertEqual(sorted(questions.outdated(binary())), [])

    def test_figures_are_those_that_are_taught(self):
        """What is taught begins or ends with the figure as it is shown here; one is rounded and says so."""
        if not binary().is_file():
            self.skipTest("the program is not part of this build")
        for arguments, where, unit, digits, taught in questions.FIGURES:
            value = questions.figure(binary(), arguments, where)
            with self.subTest(arguments):
                self.assertIn(f"{value / (unit or (1, ''))[0]:,.{digits}f}".replace(",", ""), taught.replace(",", ""))

    def test_both_languages_ask_the_same(self):
        commands = []
        for page in questions.PAGES.values():
            text = (repository.ROOT / page).read_text(encoding="utf-8")
            commands.append([line.replace(" --lang zh", "") for line in questions.COMMAND.findall(text)])
            self.assertEqual(len(re.findall(r"^## \d+\. ", text, re.MULTILINE)), 24)
        self.assertEqual(commands[0], commands[1])


if __name__ == "__main__":
    unittest.main()
