"""What proposers of fixes share: expressions replaced in a statement, and what stands beside it on its lines."""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Callable, Iterator

import pytest

import limelight as ll
from limelight.explain import fix
from limelight.user_code.source_line import Source

_numbers = itertools.count()


@pytest.fixture
def written() -> Iterator[Callable[[str], str]]:
    """Makes a file of a text, which only `linecache` knows."""
    files = []

    def write(text: str) -> str:
        file = f"<fix {next(_numbers)}>"
        files.append(file)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        return file

    yield write
    for file in files:
        del linecache.cache[file]


def test_one_expression_is_replaced_where_others_are_alike():
    tree = ast.parse("y = f(x) + f(x)").body[0]
    assert isinstance(tree, ast.Assign)
    assert isinstance(tree.value, ast.BinOp)
    assert fix.replaced(tree, tree.value.right, fix.expression("z")) == "y = f(x) + z"
    assert ast.unparse(tree) == "y = f(x) + f(x)"


def test_inner_expressions_are_rewritten_first():
    def change(node: ast.expr) -> ast.expr | None:
        return node.args[0] if isinstance(node, ast.Call) and fix.called(node) == "f" else None

    assert fix.rewritten(ast.parse("y = m.f(g(f(x)))"), change) == "y = g(x)"
    assert fix.rewritten(ast.parse("y = g(x)"), change) == ""


@pytest.mark.parametrize(
    ("text", "line", "whole"),
    [
        ("y = f(x)", 1, "Y"),
        ("if x: y = f(x)", 1, "if x:\n    Y"),
        ("if x:\n    z = 1\nelse: y = f(x)", 3, "else:\n    Y"),
        ("a = 1; y = f(x)", 1, "Y\ny = f(x)"),  # the first statement of a line stands for it
        ("y = f(\n    x\n); b = 2", 2, "Y\nb = 2"),
        ("y = (\n", 1, None),
    ],
)
def test_the_rest_of_the_lines_is_kept(written: Callable[[str], str], text: str, line: int, whole: str | None) -> None:
    source = Source(written(text), line, "<module>")
    statement = fix.statement_at(source)
    if whole is None:
        assert statement is None
        return
    assert statement is not None
    assert fix.whole_lines(source, statement, "Y") == whole


def test_names_around_a_line_are_those_of_its_function(written):
    file = written("a = 1\ndef f(b):\n    c = b\n    return c\n")
    assert fix.names_around(Source(file, 3, "f")) == {"b", "c"}
    assert {"a", "b", "c"} <= fix.names_around(Source(file, 1, "<module>"))


def _entropy(p):
    y = p * ll.log(p)
    return ll.sum(y)


def test_a_line_of_a_function_is_no_cell_as_its_names_are_known_only_there():
    found = ll.explain.nan(_entropy, ll.constant([0.0, 1.0]))
    (inside,) = found.to_story().fixes
    assert (bool(inside.code), inside.as_cell) == (True, "")
    outermost = Source("cell.py", 3, "<module>")
    assert [one.as_cell for one in fix.Fix.of_line("y = ll.log(x)", outermost)] == ["y = ll.log(x)"]
