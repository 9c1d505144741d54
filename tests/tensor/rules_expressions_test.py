"""No expression holds two calls that allocate: GCC and Clang order operands differently, and the peak would move. Nor
does one move a tensor away and ask it for something."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("ULLAGE_SOURCE_DIR", pathlib.Path(__file__).parents[2])).resolve()
FOLDERS = ("src/tensor", "src/model/families", "src/engines")

# Views make no memory, whatever their number in an expression.
VIEWS = {"view", "transpose", "unsqueeze", "expand", "slice", "select", "split", "detach", "alias"}


def names_in(header, pattern):
    return set(re.findall(pattern, (ROOT / header).read_text(encoding="utf-8"), re.MULTILINE))


def operators():
    """Of the tensor library, those that may make a tensor."""
    return (names_in("src/tensor/ops.h", r"^(?:Tensor|std::vector<Tensor>) (\w+)\(") | {"elementwise"}) - VIEWS


def methods():
    """Of the modules that a family's forward is written in."""
    return names_in("src/model/modules.h", r"virtual (?:Tensor|RotaryTables) (\w+)\(")


def pattern_of(text, own):
    modules = "|".join(re.findall(r"Modules& (\w+)", text)) or "modules"
    forms = [rf"(?:t|tensor)::(?:{'|'.join(sorted(operators()))})", rf"(?:{modules})\.(?:{'|'.join(sorted(methods()))})",
             r"\w+(?:\.|->)make", r"(?:model::)?call"]
    if own:
        forms.append(rf"(?<![\w:.>])(?:{'|'.join(sorted(own))})")
    return re.compile(r"(?<![\w:])(" + "|".join(forms) + r")\s*\(")


def may_allocate(text, inside_tensor):
    """A pattern for the calls of one file: operators, modules, Context::make, and those of the file's own functions
    that call such."""
    own = operators() if inside_tensor else set()
    defined = re.compile(r"^(?:template <[^>]*> )?(?:inline )?Tensor (?:\w+::)?(\w+)(\(.*?^\})", re.MULTILINE | re.DOTALL)
    bodies = {name: body for name, body in defined.findall(text) if name not in VIEWS}
    while True:
        pattern = pattern_of(text, own)
        more = {name for name, body in bodies.items() if pattern.search(body)} - own
        if not more:
            return pattern
        own |= more


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


def expressions(text):
    """(line, expression): what stands between semicolons, the braces of blocks and the parts of a conditional. The
    braces of a list in an expression do not end it."""
    start, braces = 0, []
    for found in re.finditer(r"[;{}]|\s\?\s|\s:\s|\n\s*#[^\n]*|$", text):
        mark = found.group()
        if mark == "{":
            before = text[:found.start()].rstrip()
            braces.append(not before or before[-1] in ")]{};:" or re.search(r"\b(else|const|mutable|noexcept|override|do|try)$", before))
            if not braces[-1]:
                continue
        elif mark == "}" and braces and not braces.pop():
            continue
        yield text.count("\n", 0, start) + 1, text[start:found.start()]
        start = found.end()


def calls(expression, pattern):
    """Calls in an expression; a definition, with a type before the name, is none."""
    return [found.group(1) for found in pattern.finditer(expression)
            if not re.search(r"\b(?:Tensor|void)\s+$", expression[:found.start()])]


def offences():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cc")):
            text = without_comments(path.read_text(encoding="utf-8"))
            pattern = may_allocate(text, folder == "src/tensor")
            for line, expression in expressions(text):
                several = calls(expression, pattern)
                if len(several) > 1:
                    line += expression[:len(expression) - len(expression.lstrip())].count("\n")
                    yield f"{path.relative_to(ROOT)}:{line}: {' and '.join(several)}: {' '.join(expression.split())}"


MOVED_AND_READ = re.compile(r"std::move\((\w+)\).*\b\1\.\w+\(|\b(\w+)\.\w+\(.*std::move\(\2\)", re.DOTALL)


def reads_of_what_is_moved():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cc")):
            text = without_comments(path.read_text(encoding="utf-8"))
            for line, expression in expressions(text):
                # The condition of an `if` is evaluated before what it guards.
                if any(MOVED_AND_READ.search(part) for part in re.split(r"\)\s*return\b", expression)):
                    yield f"{path.relative_to(ROOT)}:{line}: {' '.join(expression.split())}"


def found_in(text, inside_tensor=False):
    pattern = may_allocate(text, inside_tensor)
    return [calls(expression, pattern) for _, expression in expressions(text) if calls(expression, pattern)]


class Expressions(unittest.TestCase):
    def test_the_names_are_found(self):
        self.assertLessEqual({"neg", "cat", "matmul", "conv2d", "reshape"}, operators())
        self.assertLessEqual({"linear", "norm", "mlp", "layer"}, methods())
        self.assertNotIn("view", operators())

    def test_the_lint_sees_what_it_is_for(self):
        self.assertEqual(found_in("x = t::cat({t::neg(a), b}, -1);"), [["t::cat", "t::neg"]])
        self.assertEqual(found_in("x = t::neg(a); y = t::neg(x);"), [["t::neg"], ["t::neg"]])
        self.assertEqual(found_in("y = c ? t::neg(a) : t::neg(b);"), [["t::neg"], ["t::neg"]])
        self.assertEqual(found_in("x = t::view(t::neg(a), b);"), [["t::neg"]])
        self.assertEqual(found_in("out = add(neg(a), b);", inside_tensor=True), [["add", "neg"]])
        self.assertEqual(found_in("Output forward(Modules& m) { x = m.norm(m.linear(w, x)); }"), [["m.norm", "m.linear"]])
        self.assertEqual(found_in("Tensor rotate(Tensor x) {\n  y = rotate(context.make(s));\n}"), [["rotate", "context.make"]])

    def test_no_expression_allocates_twice(self):
        self.assertEqual(list(offences()), [])

    def test_no_expression_reads_what_it_moves(self):
        self.assertTrue(MOVED_AND_READ.search("x = t::view(std::move(x), {batch, x.size(1)})"))
        self.assertTrue(MOVED_AND_READ.search("f(x.numel(), std::move(x))"))
        self.assertFalse(MOVED_AND_READ.search("x = t::view(std::move(x), {batch, y.size(1)})"))
        self.assertEqual(list(reads_of_what_is_moved()), [])


if __name__ == "__main__":
    unittest.main()
