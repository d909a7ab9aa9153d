"""Fixes of `explain.nan` stand where their line stood: in a lambda, beside the head of an `if`, beside other names."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest

import limelight as ll

_numbers = itertools.count()


def made(text: str) -> Any:
    """The function `f` of a file with this text."""
    file = f"<remedy in place {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"ll": ll}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def mended(text: str, found: Any) -> str:
    """The text with the fix in the place of the line, as far to the right as that is."""
    lines = text.splitlines()
    old = lines[found.line.line - 1]
    indent = old[: len(old) - len(old.lstrip())]
    lines[found.line.line - 1] = "\n".join(indent + line for line in found.fix.splitlines())
    return "\n".join(lines)


ROWS = [[1.0, 1.0], [0.0, 0.0]]
PLACES = [
    ("def f(xs):\n    return ll.map_fn(lambda row: row / ll.sum(row), xs)\n", ROWS),
    ("def f(xs):\n    return ll.scan(lambda h, x: (h + x / ll.sum(x * x), h), ll.zeros((2,)), xs)[0]\n", ROWS),
    ("f = lambda x: x / ll.sum(x)\n", ROWS[1]),
    ("def f(x): return x / ll.sum(x)\n", ROWS[1]),
    ("def f(x, flag=True):\n    if flag: x = ll.log(ll.sum(x) + 0.0)\n    return x\n", ROWS[1]),
    ("def f(x, flag=False):\n    if flag: return x\n    else: x = ll.log(ll.sum(x) + 0.0); return x\n", ROWS[1]),
    ("def f(x):\n    if True: a = 0.0; x = ll.log(ll.sum(x) + a); a = 1.0\n    return x * a\n", ROWS[1]),
    ("def f(x, t=2.0):\n    y = x / ll.sum(x * x)\n    return y * t\n", ROWS[1]),
]


@pytest.mark.parametrize(("text", "x"), PLACES, ids=[text for text, _ in PLACES])
def test_the_fix_can_be_pasted_over_its_line(text: str, x: Any) -> None:
    found = ll.explain.nan(made(text), ll.constant(x))
    if ";" in text and "a = 0.0" in text:  # which of the statements it is cannot be told from a line
        assert found.fix == ""
        return
    assert found.fix
    again = made(mended(text, found))
    assert not ll.explain.nan(again, ll.constant(x))
    ordinary = ll.constant(ROWS if np.ndim(x) == 2 else ROWS[0]) + 1.0
    assert ll.allclose(again(ordinary), made(text)(ordinary)), "elsewhere nothing is different"


LOGS = [
    ("ll.nn.softmax", "    p = ll.nn.softmax(z)\n    return -ll.sum(t * ll.log(p))\n"),
    ("ll.nn.softmax", "    return -ll.sum(t * ll.log(ll.nn.softmax(z, axis=-1)))\n"),
    ("ll.sigmoid", "    p = ll.sigmoid(-z)\n    return -ll.sum(t * ll.log(p))\n"),
]


@pytest.mark.parametrize(("op", "body"), LOGS, ids=[body for _, body in LOGS])
def test_the_logarithm_of_a_softmax_is_one_op_and_keeps_the_loss(op: str, body: str) -> None:
    text = "def f(z, t):\n" + body
    worst = ll.constant([1000.0, 0.0]), ll.constant([float(op == "ll.sigmoid"), float(op != "ll.sigmoid")])
    found = ll.explain.nan(made(text), *worst)
    again = made(mended(text, found))
    assert again(*worst).item() == 1000.0
    ordinary = ll.constant([1.0, 2.0]), worst[1]
    assert ll.allclose(again(*ordinary), made(text)(*ordinary))


def test_a_softmax_of_another_value_has_a_hint_alone() -> None:
    text = "def f(z):\n    p = ll.nn.softmax(z)\n    z = z * 2.0\n    return ll.log(p) + z\n"
    found = ll.explain.nan(made(text), ll.constant([1000.0, 0.0]))
    assert found.fix == ""
    assert "ll.nn.log_softmax" in found.hint
