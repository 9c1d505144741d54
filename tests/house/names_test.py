"""No two headers define a type of the same name in the same namespace: linked together they would be taken for one."""

import collections
import re
import unittest

import repository

# At the beginning of a line: what is nested in a type or stands in an unnamed namespace is indented or never shared.
TYPE = re.compile(r"^(?:struct|class|enum class|union) (\w+)(?: final)?(?: :[^{;]*)?\s*\{", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)


def types():
    """Where each type is defined, by its namespaces and name."""
    found = collections.defaultdict(list)
    for path in sorted((repository.ROOT / "src").rglob("*.h")):
        text = path.read_text(encoding="utf-8")
        namespace = "::".join(NAMESPACE.findall(text))
        for name in TYPE.findall(text):
            found[namespace, name].append(str(path.relative_to(repository.ROOT)))
    return found


class Names(unittest.TestCase):
    def test_each_type_is_defined_once(self):
        twice = {f"{namespace}::{name}": paths for (namespace, name), paths in types().items() if len(paths) > 1}
        self.assertEqual(twice, {})

    def test_types_are_found(self):
        found = types()
        self.assertEqual(found["ullage::model", "Architecture"], ["src/model/architecture.h"])
        self.assertEqual(found["ullage::model", "CacheType"], ["src/model/cache.h"])
        self.assertGreater(len(found), 300)


if __name__ == "__main__":
    unittest.main()
