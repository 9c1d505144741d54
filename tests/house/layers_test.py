"""Includes respect the layers: a module uses itself and what stands above it in DESIGN's table."""

import re
import unittest

import repository

# Module: what it may use directly; what those use, it may use too.
USES = {
    "base": [],
    "memory": ["base"],
    "tensor": ["memory"],
    "model": ["tensor"],
    "hardware": ["base"],
    "hub": ["base"],
    "engines": ["model", "hardware"],
    "speed": ["tensor", "hardware"],
    "plan": ["engines", "speed"],
    "launch": ["engines"],
    "evidence": ["memory"],
    "reconcile": ["engines", "evidence"],
    "corpus": ["plan", "launch"],
    "report": ["base", "memory", "tensor", "model", "hardware", "hub", "engines", "speed", "plan", "launch",
               "evidence", "reconcile", "corpus"],
    "cli": ["report"],
}

# Not modules: the generated headers of the embedded data.
EVERYWHERE = {"data"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def allowed(module):
    reached = {module}
    waiting = [module]
    while waiting:
        for used in USES[waiting.pop()]:
            if used not in reached:
                reached.add(used)
                waiting.append(used)
    return reached


def own_includes():
    for name in repository.sources("src"):
        for line, text in repository.numbered_lines(name):
            found = INCLUDE.match(text)
            if found:
                yield name, line, found.group(1)


class Layers(unittest.TestCase):
    def test_every_folder_of_src_is_a_module(self):
        folders = {name.split("/")[1] for name in repository.sources("src")}
        self.assertLessEqual(folders, set(USES))

    def test_the_table_has_no_circle(self):
        for module in USES:
            for used in USES[module]:
                self.assertNotIn(module, allowed(used))

    def test_includes_name_their_module(self):
        wrong = [f"{name}:{line}: {path}" for name, line, path in own_includes()
                 if path.split("/")[0] not in set(USES) | EVERYWHERE]
        self.assertEqual(wrong, [])

    def test_no_include_points_up(self):
        wrong = [f"{name}:{line}: {path}" for name, line, path in own_includes()
                 if path.split("/")[0] not in allowed(name.split("/")[1]) | EVERYWHERE]
        self.assertEqual(wrong, [])

    def test_headers_do_without_fmt(self):
        """The installed package does not ask its users for it."""
        wrong = [name for name in repository.sources("src") if name.endswith(".h") and "<fmt/" in repository.text_of(name)]
        self.assertEqual(wrong, [])

    def test_the_table_is_the_one_of_the_build(self):
        """src/*/CMakeLists.txt names no dependency that the table forbids."""
        for module in USES:
            found = re.search(r"DEPS([a-z\s]*)", repository.text_of(f"src/{module}/CMakeLists.txt"))
            declared = set(found.group(1).split()) if found else set()
            self.assertLessEqual(declared, allowed(module), module)


if __name__ == "__main__":
    unittest.main()
