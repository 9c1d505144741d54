"""What no committed file and no source may say."""

import json
import re
import unittest

import repository

# Written in two halves, so that this file passes its own test.
FORBIDDEN = {
    "a path of somebody's machine": r"(?<![\w.])/(" "work|root|home" r")/\w",
    "a folder outside of the project": r"\.\./" "shared",
    "a package registry's host": "(" "pypi" r"\.org|python" r"hosted\.org|npm" r"js\.org|crates" r"\.io|proxy\.go" r"lang\.org)",
}

# Recorded evidence is quoted as it was found.
QUOTED = ("tests/data/", "data/", "fuzz/corpus/")

# The most digits that a decimal literal in src/ may have unless it is round: sizes measured somewhere are longer.
MOST_DIGITS = 7


def catalogue():
    name = "data/models.jsonl"
    if not (repository.ROOT / name).is_file():
        return []
    return [json.loads(line) for line in repository.text_of(name).splitlines() if line.strip()]


def is_ordinary_word(short, config):
    """gpt2 is a family, resnet50 an architecture: such a name is a word of the field, not one model's."""
    return config.get("model_type") in ("torchvision", short.lower()) or not re.search(r"\d", short)


def model_names():
    for row in catalogue():
        short = row["name"].split("/")[-1]
        if not is_ordinary_word(short, row.get("config", {})):
            yield short
        if "/" in row["name"]:
            yield row["name"]


def case_ids():
    for name in repository.files():
        if name.startswith("tests/data/") and name.endswith(".jsonl"):
            for line in repository.text_of(name).splitlines():
                if '"expect"' in line:
                    yield json.loads(line)["id"]


def is_round(number):
    return number % (1 << 20) == 0 or number % 10**6 == 0 or (number & (number + 1)) == 0


def long_literals(text):
    """Decimal literals that could be a total measured somewhere; hexadecimal and round ones are not."""
    for found in re.finditer(r"(?<![\w.'])\d[\d']*\d(?![\w']*[xX.])", text):
        digits = found.group().replace("'", "")
        if len(digits) > MOST_DIGITS and not is_round(int(digits)):
            yield found.group()


def occurrences(words, names):
    """The words, as whole words and in any case, that stand in the files."""
    wanted = {word.lower() for word in words}
    token = re.compile(r"[\w./-]+")
    for name in names:
        for line, text in repository.numbered_lines(name):
            for found in token.findall(text.lower()):
                if found in wanted or found.strip(".-/") in wanted:
                    yield f"{name}:{line}: {found}"


class Words(unittest.TestCase):
    def test_nothing_names_a_machine(self):
        wrong = []
        for name in repository.files():
            if name.startswith(QUOTED):
                continue
            for line, text in repository.numbered_lines(name):
                wrong += [f"{name}:{line}: {what}" for what, pattern in FORBIDDEN.items() if re.search(pattern, text)]
        self.assertEqual(wrong, [])

    def test_data_names_no_folder_outside(self):
        pattern = re.compile(FORBIDDEN["a folder outside of the project"])
        wrong = [name for name in repository.files()
                 if name.startswith(QUOTED) and pattern.search(repository.text_of(name))]
        self.assertEqual(wrong, [])

    def test_no_model_name_in_src(self):
        self.assertEqual(list(occurrences(model_names(), repository.sources("src"))), [])

    def test_no_case_id_in_src(self):
        self.assertEqual(list(occurrences(case_ids(), repository.sources("src"))), [])

    def test_no_measured_total_in_src(self):
        wrong = [f"{name}:{line}: {literal}" for name in repository.sources("src")
                 for line, text in repository.numbered_lines(name) for literal in long_literals(text)]
        self.assertEqual(wrong, [])

    def test_the_literal_finder_finds(self):
        self.assertEqual(list(long_literals("a = 61'100'840; b = 16060522496ull;")), ["61'100'840", "16060522496"])
        self.assertEqual(list(long_literals("0x12345678 1099511627776 100000000 4294967295 1234567 1.23456789")), [])


if __name__ == "__main__":
    unittest.main()
