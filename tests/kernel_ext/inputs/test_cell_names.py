"""Names that a cell reads, writes and deletes."""

from __future__ import annotations

import ast

import pytest

from limelight_kernel.inputs.cell_names import Names, analyse


def names_of(text: str, **indirect: list[str]) -> Names:
    return analyse(ast.parse(text), lambda name: indirect.get(name, []))


def reads(text: str, **indirect: list[str]) -> set[str]:
    return set(names_of(text, **indirect).reads)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = x @ w", {"x", "w"}),
        ("x = 1\ny = x", set()),
        ("x = x + 1", {"x"}),
        ("x += 1", {"x"}),
        ("x[0] = y", {"x", "y"}),
        ("a.b = c", {"a", "c"}),
        ("x: int = y", {"int", "y"}),
        ("x: int\nx", {"int", "x"}),
        ("del x", {"x"}),
        ("x = 1\ndel x\nx", set()),
        ("(y := x) + y", {"x"}),
        ("import numpy as np\nnp.sum(x)", {"x"}),
        ("import os.path\nos", set()),
        ("from math import pi as p\np", set()),
        ("a, (b, *c) = z\na, b, c", {"z"}),
        ("f'{x:{y}}'", {"x", "y"}),
        ("with f() as (a, b):\n    a + b + c", {"f", "c"}),
    ],
)
def test_statements(text, expected):
    assert reads(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if c:\n    y = 1\ny", {"c", "y"}),
        ("if c:\n    y = 1\nelse:\n    y = 2\ny", {"c"}),
        ("if c:\n    y = 1\nelif d:\n    y = 2\nelse:\n    raise E\ny", {"c", "d", "E"}),
        ("for i in r:\n    y = i\ny", {"r"}),
        ("for i in r:\n    y = h\n    h = y", {"r", "h"}),
        ("for i in r:\n    if i:\n        continue\n    y = 1\ny", {"r"}),
        ("while c:\n    y = 1\ny", {"c"}),
        ("try:\n    y = f()\nexcept E as e:\n    y = e\ny", {"f", "E"}),
        ("try:\n    y = f()\nexcept E:\n    pass\ny", {"f", "E", "y"}),
        ("try:\n    y = f()\nexcept E:\n    raise\ny", {"f", "E"}),
        ("try:\n    y = 1\nexcept* E:\n    pass\nfinally:\n    y", {"E", "y"}),
        ("match v:\n    case [a, *b]:\n        y = a\n    case {'k': k, **r}:\n        y = k\ny", {"v", "y"}),
        ("match v:\n    case P(a) if a:\n        y = a\n    case other:\n        y = other\ny", {"v", "P"}),
    ],
)
def test_control_flow(text, expected):
    assert reads(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[i for i in a if i > b]", {"a", "b"}),
        ("{k: v for k, v in p for q in k}", {"p"}),
        ("list(i for i in a)\ni", {"list", "a", "i"}),
        ("[y := i for i in a]\ny", {"a"}),
        ("(lambda q, r=s: q + t)(1)", {"s", "t"}),
        ("lambda w: f(w)", {"f"}),
        ("def f(a, b=c) -> d:\n    return a + g", {"c", "d"}),
        ("def f():\n    return z\nz = 1\nf()", set()),
        ("def f():\n    return z\nf()\nz = 1", {"z"}),
        ("def f():\n    def g():\n        return z\n    return g\nf()()", {"z"}),
        ("@dec\ndef f():\n    return f", {"dec"}),
        ("class A(B, metaclass=M):\n    q = w\n    def m(self):\n        return A, u", {"B", "M", "w", "u"}),
        ("def f():\n    x = 1\n    return x\nf()", set()),
    ],
)
def test_scopes(text, expected):
    assert reads(text) == expected


def test_what_a_helper_reads_counts_where_the_helper_is_named():
    assert reads("y = loss(x)", loss=["helper", "scale"], helper=["deep"]) == {"loss", "x", "helper", "scale", "deep"}
    assert names_of("y = loss(x)", loss=["scale"]).reads["scale"] == "loss"
    assert "scale" not in reads("scale = 2\ny = loss(x)", loss=["scale"])
    assert "scale" in reads("y = loss(x)\nscale = 2", loss=["scale"])
    assert "loss" not in reads("def loss(q): return q\nloss(1)", loss=["scale"])


def test_a_parameter_of_the_same_name_does_not_hide_what_a_helper_reads():
    assert "w" in reads("lambda w: loss(w)", loss=["w"])
    assert "w" in reads("[loss(w) for w in ws]", loss=["w"])


def test_helpers_that_call_each_other_end():
    assert reads("f()", f=["g"], g=["f"]) == {"f", "g"}


@pytest.mark.parametrize(
    ("text", "writes", "deletes"),
    [
        ("y = 1\nx = y", ("y", "x"), set()),
        ("if c:\n    a = 1\nfor i in r:\n    b = i", ("a", "i", "b"), set()),
        ("import os.path, sys as s", ("os", "s"), set()),
        ("def f(): pass\nclass A: pass", ("f", "A"), set()),
        ("def f():\n    global n\n    n = 1\n    m = 2", ("f", "n"), set()),
        ("y = 1\ndel y", ("y",), {"y"}),
        ("try:\n    pass\nexcept E as e:\n    q = e", ("q",), set()),
        ("[z := i for i in r]", ("z",), set()),
        ("x[0] = 1\na.b = 2", (), set()),
        ("global x\nx = 1", ("x",), set()),
    ],
)
def test_writes_in_order_of_first_assignment(text, writes, deletes):
    found = names_of(text)
    assert (found.writes, set(found.deletes)) == (writes, deletes)
