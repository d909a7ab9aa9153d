"""From the text of a cell to code whose lines are the cell's."""

from __future__ import annotations

import linecache

import pytest

from limelight_kernel.cell.cell_source import cell_number, lines_above, register, renumber
from limelight_kernel.cell.compiled_cell import StagedSyntaxError, compile_cell


def compiled(shell, text, above=("%%stage",)):
    return compile_cell(shell, text, list(above))


def test_lines_count_from_the_top_of_the_notebook_cell(shell):
    cell = compiled(shell, "x = 1\n\n1 / 0\n", above=("%%time", "%%stage f"))
    assert linecache.getline(cell.filename, 3) == "x = 1\n"
    assert linecache.getline(cell.filename, 2) == "# %%stage f\n"
    with pytest.raises(ZeroDivisionError) as caught:
        eval(cell.result, {}) if exec(cell.body, {}) is None else None
    assert caught.traceback[-1].lineno + 1 == 5


def test_the_last_expression_is_the_result(shell):
    assert eval(compiled(shell, "a = 2\na + 1").result, {"a": 2}) == 3
    assert compiled(shell, "a = 2").result is None
    assert compiled(shell, "# nothing\n").result is None


def test_a_cell_that_is_indented_as_a_whole_is_dedented(shell):
    assert compiled(shell, "\n    x = 1\n    x").text == "\nx = 1\nx"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\nx = = 2\n", 3, ["invalid syntax"]),
        ("x = 1\n  y = 2", 3, ["unexpected indent"]),
        ("x = 1\nreturn x", 3, ["'return'", "last expression is its result"]),
        ("for i in x:\n    yield i", 3, ["'yield'", "list"]),
        ("x = 1\nif x:\n    await f()", 4, ["'await'", "event loop"]),
        ("async for i in x:\n    pass", 2, ["'async for'"]),
        ("async with x:\n    pass", 2, ["'async with'"]),
        ("[i async for i in x]", 2, ["'async for'"]),
        ("from math import *", 2, ["by name"]),
        ("x = 1\n%time y = x", 3, ["%time y = x", "while the cell is traced", "cell of its own"]),
        ("x = 1\n!ls", 3, ["!ls"]),
        ("files = !ls", 2, ["files = !ls"]),
        ("x = 1\nx?", 3, ["x?"]),
    ],
)
def test_what_cannot_be_staged_is_refused_at_its_line(shell, text, line, words):
    with pytest.raises(StagedSyntaxError) as caught:
        compiled(shell, text)
    assert caught.value.lineno == line
    assert caught.value.text.strip() == text.splitlines()[line - 2].strip()
    assert shell.compile.format_code_name(caught.value.filename) == ("Cell", f"In[{cell_number(shell)}]")
    for word in words:
        assert word in caught.value.msg


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return 1",
        "async def f():\n    await g()",
        "lambda: (yield)",
        "class A:\n    def f(self): return 1",
    ],
)
def test_inside_functions_all_is_allowed(shell, text):
    assert compiled(shell, text).body


def test_transformers_of_the_syntax_tree_apply(shell):
    import ast

    class Double(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.copy_location(ast.Constant(node.value * 2), node)

    shell.ast_transformers.append(Double())
    assert eval(compiled(shell, "21").result) == 42


def test_a_cell_that_runs_again_has_the_new_number(shell):
    filename = register(shell, "x = 1", ["%%stage"])
    shell.execution_count += 4
    renumber(shell, filename)
    assert shell.compile.format_code_name(filename) == ("Cell", f"In[{cell_number(shell)}]")


def test_the_lines_above_come_from_the_notebook_cell(shell):
    shell.run_cell("%%time\n%%capture\npass\n", store_history=True)
    assert lines_above(shell, "", "pass\n") == ["%%time", "%%capture"]
    assert lines_above(shell, "-q f", "something else\n") == ["%%stage -q f"]
