"""House rules that are cheap to hold: sizes, names, and what the oldest compiler cannot do."""

import re
import statistics
import unittest

import repository

LONGEST_FILE = 500      # lines
LONGEST_FUNCTION = 80   # lines, of those that start at the left margin
VAGUE = re.compile(r"(^|_)(util|utils|helper|helpers|common|manager|misc)(_|\.|$)")

# Clang 14 or Emscripten 3.1.6 do not have these.
ABSENT = re.compile(r"std::(expected|format|source_location|bit_cast|pmr|views|ranges)\b"
                    r"|#\s*include\s*<(expected|format|source_location|memory_resource|ranges)>")


def function_lengths(name):
    """(first line, lines) of every function whose opening line is not indented."""
    start = None
    for line, text in repository.numbered_lines(name):
        opens = text.endswith("{") and text[:1].strip() and not text.startswith(("namespace", "struct", "class", "enum", "}"))
        if opens and "(" in text:
            start = line
        elif text.startswith("}") and start is not None:
            yield start, line - start + 1
            start = None


def reaches_cstdint(name, met):
    """Whether a file includes <cstdint>, itself or through another of ours."""
    met.add(name)
    text = repository.text_of(name)
    if "#include <cstdint>" in text:
        return True
    for included in re.findall(r'#include "([^"]+)"', text):
        for path in (f"src/{included}", f"tests/{included}"):
            if path not in met and (repository.ROOT / path).exists() and reaches_cstdint(path, met):
                return True
    return False


class Style(unittest.TestCase):
    def test_files_are_short(self):
        long = {name: len(repository.text_of(name).splitlines()) for name in repository.sources("src", "tests", "fuzz", "bench")}
        self.assertEqual({name: lines for name, lines in long.items() if lines > LONGEST_FILE}, {})

    def test_functions_are_short(self):
        lengths = [(f"{name}:{line}", lines) for name in repository.sources("src") for line, lines in function_lengths(name)]
        self.assertEqual([entry for entry in lengths if entry[1] > LONGEST_FUNCTION], [])
        if len(lengths) > 100:
            self.assertLessEqual(statistics.median(lines for _, lines in lengths), 10)

    def test_headers_are_included_once(self):
        wrong = [name for name in repository.sources("src", "tests")
                 if name.endswith(".h") and "#pragma once" not in repository.text_of(name)]
        self.assertEqual(wrong, [])

    def test_names_of_files_say_something(self):
        wrong = [name for name in repository.sources("src", "tests")
                 if VAGUE.search(name.split("/")[-1]) or not re.fullmatch(r"[a-z0-9_]+\.(h|cc)", name.split("/")[-1])]
        self.assertEqual(wrong, [])

    def test_lines_are_clean(self):
        wrong = [f"{name}:{line}" for name in repository.sources("src", "tests", "fuzz", "bench")
                 for line, text in repository.numbered_lines(name) if "\t" in text or text != text.rstrip()]
        self.assertEqual(wrong, [])

    def test_integers_of_a_size_are_included(self):
        # Newer standard libraries do not bring them along: GCC 13's <string> has no std::int64_t.
        wrong = [name for name in repository.sources("src", "tests", "fuzz", "bench")
                 if re.search(r"std::u?int(8|16|32|64)_t\b", repository.text_of(name)) and not reaches_cstdint(name, set())]
        self.assertEqual(wrong, [])

    def test_every_compiler_has_what_is_used(self):
        wrong = [f"{name}:{line}: {text.strip()}" for name in repository.sources("src")
                 for line, text in repository.numbered_lines(name) if ABSENT.search(text.split("//")[0])]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
