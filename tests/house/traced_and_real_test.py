"""The table of docs/traced-and-real.md: its tests exist, and both languages have the same rows."""

import re
import unittest

import repository

PAGES = ("docs/traced-and-real.md", "docs/traced-and-real.zh-CN.md")


def rows(page):
    lines = [line for line in repository.text_of(page).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:] if not line.startswith("| ---")]


def defined_tests():
    """Suite.Name of every test, and the suites alone."""
    names = set()
    for name in repository.sources("tests"):
        for suite, test in re.findall(r"TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", repository.text_of(name)):
            names |= {suite, f"{suite}.{test}"}
    return names


class TracedAndReal(unittest.TestCase):
    def test_every_test_named_exists(self):
        known = defined_tests()
        for page in PAGES:
            for row in rows(page):
                for name in re.findall(r"`([^`]+)`", row[4]):
                    self.assertIn(name, known, f"{page}: {row[0]}")

    def test_every_row_has_a_test_or_says_that_it_is_left_out(self):
        for page, left_out in zip(PAGES, ("left out", "未计入")):
            for row in rows(page):
                self.assertEqual(len(row), 5, row)
                self.assertTrue("`" in row[4] or row[4].startswith(left_out), f"{page}: {row[0]}")

    def test_both_languages_have_the_same_rows(self):
        def evidence(page):
            return [(re.findall(r"`[^`]+`", row[3]), re.findall(r"`[^`]+`", row[4])) for row in rows(page)]

        self.assertEqual(evidence(PAGES[0]), evidence(PAGES[1]))


if __name__ == "__main__":
    unittest.main()
