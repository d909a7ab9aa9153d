"""Marks of a cell's lines, from graphs alone."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from limelight.core.spec import TensorSpec
from limelight.graph import Graph, Node, Value
from limelight.user_code.source_line import Source
from limelight_kernel.cell.compiled_cell import compile_cell
from limelight_kernel.report.line_marks import (
    CONSTANT,
    DEAD,
    GLYPHS,
    MEANING,
    MERGED,
    RESULT,
    STAGED,
    TRACE_TIME,
    Line,
    annotate,
)
from limelight_kernel.report.listing import html_legend, html_listing, text_listing

SPEC = TensorSpec([2])


class Builder:
    """Writes graphs whose nodes come from chosen lines of a cell (0: from elsewhere), innermost first."""

    def __init__(self, shell, text):
        self.cell = compile_cell(shell, text, ["%%stage"])
        self.x = Value(SPEC)
        self.nodes = []

    def node(self, op, inputs, *lines, effect=None, functions=()):
        stack = tuple(Source(self.cell.filename if line else "elsewhere.py", line, "<module>") for line in lines)
        attrs = tuple(f"f{i}" for i in range(len(functions)))
        kind = SimpleNamespace(name=op, effect=effect, attrs=attrs, higher_order=bool(functions))
        made = Node(kind, tuple(inputs), tuple(functions), [SPEC], stack=stack)
        self.nodes.append(made)
        return made.outputs[0]

    def graph(self, *outputs):
        return Graph("step", [self.x], self.nodes, outputs)

    def marks(self, traced, optimised=None):
        return {line.number: line.mark for line in annotate(self.cell, traced, optimised or traced) if line.mark}


@pytest.fixture
def builder(shell):
    return lambda text: Builder(shell, text)


def test_without_a_graph_every_statement_ran_at_trace_time_only(builder):
    b = builder("# comment\n\nx = 1\nif x:\n    y = (1,\n         2)\nelse:\n    pass\n")
    assert b.marks(None) == dict.fromkeys([4, 5, 6, 7, 8, 9], TRACE_TIME)


def test_a_line_whose_ops_are_in_the_optimised_graph_is_staged(builder):
    b = builder("y = tanh(x)\nprint('traced')")
    y = b.node("tanh", [b.x], 2)
    assert b.marks(b.graph(y)) == {2: STAGED, 3: TRACE_TIME}


def test_a_line_that_calls_a_helper_is_staged(builder):
    b = builder("def f(x):\n    return x + x\ny = f(x)")
    y = b.node("add", [b.x, b.x], 3, 4)
    z = b.node("mul", [y, y], 0, 4)
    assert b.marks(b.graph(z)) == {2: TRACE_TIME, 3: STAGED, 4: STAGED}


def test_a_line_of_literals_alone_is_constant_even_when_folded_away(builder):
    b = builder("c = ones(2)\nd = c + c\ny = x + d")
    c = b.node("constant", [], 2)
    d = b.node("add", [c, c], 3)
    y = b.node("add", [b.x, d], 4)
    traced = b.graph(y)
    b.nodes = []
    folded = b.node("constant", [], 3)
    optimised = b.graph(b.node("add", [b.x, folded], 4))
    assert b.marks(traced, optimised) == {2: CONSTANT, 3: CONSTANT, 4: STAGED}


def test_a_line_that_nothing_uses_is_dead(builder):
    b = builder("tanh(x)\ny = x + x")
    b.node("tanh", [b.x], 2)
    y = b.node("add", [b.x, b.x], 3)
    traced = b.graph(y)
    b.nodes = b.nodes[1:]
    assert b.marks(traced, b.graph(y)) == {2: DEAD, 3: STAGED}


def test_a_line_that_repeats_another_is_merged(builder):
    b = builder("y = x + x\nz = x + x")
    y = b.node("add", [b.x, b.x], 2)
    z = b.node("add", [b.x, b.x], 3)
    traced = b.graph(y, z)
    b.nodes = b.nodes[:1]
    assert b.marks(traced, b.graph(y, y)) == {2: STAGED, 3: MERGED}


def test_an_effect_keeps_what_it_needs_alive(builder):
    b = builder("d = x + x\nv.assign(d)")
    d = b.node("add", [b.x, b.x], 2)
    b.node("assign", [b.x, d], 3, effect="write")
    assert b.marks(b.graph()) == {2: STAGED, 3: STAGED}


def test_what_only_an_effect_uses_is_not_dead(builder):
    b = builder("d = x + x\ne = x + x\nv.assign(e)")
    d = b.node("add", [b.x, b.x], 2)
    e = b.node("add", [b.x, b.x], 3)
    b.node("assign", [b.x, e], 4, effect="write")
    traced = b.graph(d)
    b.nodes = b.nodes[:1]
    b.node("assign", [b.x, d], 4, effect="write")
    assert b.marks(traced, b.graph(d)) == {2: STAGED, 3: MERGED, 4: STAGED}


def test_literals_are_not_random_draws(builder):
    b = builder("n = normal([2])\ny = x + n")
    n = b.node("normal", [], 2, effect="random")
    assert b.marks(b.graph(b.node("add", [b.x, n], 3)))[2] == STAGED


def test_lines_inside_functions_that_the_graph_calls_are_staged(builder):
    b = builder("def f(x):\n    y = x + x\n    return y\nz = call(f, x)")
    inner = b.graph(b.node("add", [b.x, b.x], 3))
    b.nodes = []
    callee = SimpleNamespace(name="f", graph=inner, run=lambda *payloads: ())
    z = b.node("call", [b.x], 5, functions=[callee])
    assert b.marks(b.graph(z)) == {2: TRACE_TIME, 3: STAGED, 4: TRACE_TIME, 5: STAGED}


def test_lines_of_a_statement_that_made_no_op_are_as_those_that_did(builder):
    b = builder("y = (\n    x\n\n    # both\n    + x\n)\ny")
    y = b.node("add", [b.x, b.x], 6)
    assert b.marks(b.graph(y)) == {2: STAGED, 3: STAGED, 6: STAGED, 7: STAGED, 8: RESULT}


def test_lines_between_the_blocks_of_a_statement_are_as_its_head(builder):
    b = builder("if x:\n    y = x\nelse:  # not\n    y = x + x\ny")
    y = b.node("add", [b.x, b.x], 5)
    assert b.marks(b.graph(y)) == {2: TRACE_TIME, 3: TRACE_TIME, 4: TRACE_TIME, 5: STAGED, 6: RESULT}


def test_ops_are_counted_once_at_the_innermost_line(builder):
    b = builder("def f(x):\n    return x + x\ny = f(x)\nz = call(f, x)")
    inner = b.graph(b.node("add", [b.x, b.x], 3))
    b.nodes = []
    y = b.node("mul", [b.node("add", [b.x, b.x], 0, 3, 4), b.x], 4)
    callee = SimpleNamespace(name="f", graph=inner, run=lambda *payloads: ())
    traced = b.graph(b.node("call", [y], 5, functions=[callee]))
    counts = {line.number: line.nodes for line in annotate(b.cell, traced, traced)}
    assert counts == {2: 0, 3: 1, 4: 1, 5: 1}


def test_literals_count_as_the_headline_counts_them(builder):
    b = builder("y = 2 * x + x")
    two = b.node("constant", [], 2)
    y = b.node("add", [b.node("mul", [two, b.x], 2), b.x], 2)
    assert annotate(b.cell, b.graph(y), b.graph(y))[0] == Line(2, "y = 2 * x + x", STAGED, 3)


def test_the_columns_of_the_html_listing_stand_apart_without_styles():
    html = html_listing([Line(2, "y = x", STAGED, 1), Line(3, "z = y", STAGED, 1200)])
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", re.sub("</?div[^>]*>", "", html))
    assert cells[0] == "line&nbsp;&nbsp;&nbsp;"
    assert all(cell.endswith("&nbsp;&nbsp;&nbsp;") for i, cell in enumerate(cells) if i % 3 < 2)
    assert ("● staged, 1 op&" in html, "● staged, 1,200 ops&" in html, "style" in html) == (True, True, False)


def test_the_text_listing_fits_a_terminal():
    lines = [Line(9, "x" * 200, STAGED, 1), Line(10, "    y", "", 0)]
    rows = text_listing(lines).split("\n")
    assert rows[0].startswith("  9 ● staged")
    assert rows[0].endswith("…")
    assert len(rows[0]) == 80
    assert rows[1].endswith("     y")
    assert text_listing([Line(2, "\ty", STAGED, 1)]).endswith("      y"), "a tab is as wide as four blanks"


def test_the_html_listing_escapes_and_keeps_the_indent():
    html = html_listing([Line(2, "    y = '<script>' # &", DEAD, 0)])
    assert "<code>\xa0\xa0\xa0\xa0y = '&lt;script&gt;'" in html.replace("&#x27;", "'")
    assert "<script>" not in html
    assert "✕ dead" in html


def test_every_mark_has_a_glyph_of_its_own_and_a_meaning():
    assert set(MEANING) | {""} == set(GLYPHS)
    assert len(set(GLYPHS.values())) == len(GLYPHS)
    assert f"<li>● staged: {MEANING[STAGED]}</li>" in html_legend([Line(1, "x", STAGED, 1), Line(2, "", "", 0)])
    assert MEANING[DEAD] not in html_legend([Line(1, "x", STAGED, 1)])
    assert html_legend([Line(1, "", "", 0)]) == ""


@pytest.mark.parametrize(("last", "mark"), [("y, x", RESULT), ("{'loss': y}", RESULT), ("print(y)", TRACE_TIME)])
def test_names_in_a_tuple_at_the_end_are_the_result_as_a_name_is(builder, last, mark):
    b = builder(f"y = x + x\n{last}")
    y = b.node("add", [b.x, b.x], 2)
    assert b.marks(b.graph(y))[3] == mark
