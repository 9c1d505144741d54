"""The tables and the picture of docs/what-moves-memory.md are what the program answers. Renew them with
`tools/docs/what_moves_memory.py --write` (ULLAGE_BINARY names the program; build/release/bin/ullage otherwise)."""

import os
import pathlib
import sys
import unittest

import repository

sys.path.insert(0, str(repository.ROOT / "tools/docs"))
import what_moves_memory


class WhatMovesMemory(unittest.TestCase):
    def test_pages_are_what_the_program_answers(self):
        binary = pathlib.Path(os.environ.get("ULLAGE_BINARY", repository.ROOT / "build/release/bin/ullage"))
        if not binary.is_file():
            self.skipTest("the program is not part of this build")
        self.assertEqual(sorted(what_moves_memory.outdated(binary)), [])

    def test_both_languages_compare_the_same(self):
        pages = [(repository.ROOT / page).read_text(encoding="utf-8") for page in what_moves_memory.PAGES.values()]
        for name in what_moves_memory.TABLES:
            for page in pages:
                self.assertIn(f"<!-- table {name} -->", page)


if __name__ == "__main__":
    unittest.main()
