"""Python numbers that a tensor decides are known as such to the end of a trace, and tensors are not taken for them."""

from __future__ import annotations

import ast

import pytest

import limelight as ll
from limelight.autograph import converted_cell
from limelight.autograph.python_numbers import kind_of
from limelight.autograph.undefined_variables import AssignedIfRun

PROGRAMS = {
    "counted": ("n = 0\nwhile t > 1:\n    t = t - 1.0\n    n += 1", int, False),
    "made in the loop alone": ("while t > 1:\n    t = t - 1.0\n    n = 3", int, False),
    "of another number": ("m = n = 0\nwhile t > 1:\n    t = t - 1.0\n    m += 1\n    n = m // 2", int, False),
    "of one that becomes a tensor": (
        "m = n = 0\nwhile t > 1:\n    t = t - 1.0\n    n = m + 1\n    m = w + m",
        None,
        False,
    ),
    "a tensor after a round": ("n = 0\nwhile t > 1:\n    t = t - 1.0\n    n = n + w", None, False),
    "by an op": ("n = 0\nwhile t > 1:\n    t = t - 1.0\n    n = ll.add(n, 1)", None, False),
    "in a loop in a loop": (
        "n = 0\nwhile t > 1:\n    t = t - 1.0\n    k = 0\n    while k < n + 2:\n        k += 1\n    n = k",
        int,
        False,
    ),
    "multiplied": ("n = 1\nwhile t > 1:\n    t = t - 1.0\n    n *= 3", int, True),
    "of one that is multiplied": ("m = n = 1\nwhile t > 1:\n    t = t - 1.0\n    n = m + 1\n    m *= 3", int, True),
    "a float": ("n = 1.0\nwhile t > 1:\n    t = t - 1.0\n    n = n / 2", float, True),
    "floats that a float32 has": ("n = 0.5 if t > 1 else 0.25", float, False),
    "floats that it has not": ("n = 0.1 if t > 1 else 0.2", float, True),
    "chosen": ("if t > 1:\n    n = 1\nelse:\n    n = 2", int, False),
    "chosen among kinds": ("if t > 1:\n    n = 1\nelse:\n    n = w", None, False),
    "assigned in one branch": ("if t > 1:\n    n = 1", int, False),
    "negated": ("n = not (t > 1)", bool, False),
    "compared": ("k = 1 if t > 1 else 2\nn = 0 < k < 5", bool, False),
    "compared with a tensor": ("k = 1 if t > 1 else 2\nn = k < w", None, False),
    "divided": ("k = 4 if t > 1 else 2\nn = k / 2", float, True),
    "a count of rounds": ("for n in range(w):\n    t = t * 2.0", int, False),
    "the larger": ("n = 0\nif t > 1:\n    n = max(n, 1 if t > 2 else 3)", int, False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_told_from_tensors(name: str) -> None:
    text, kind, unsure = PROGRAMS[name]
    cell = converted_cell(ast.parse(text), "<cell>")
    found = []

    def run(t: ll.Tensor, w: ll.Tensor) -> ll.Tensor:
        names = {"t": t, "w": w, "ll": ll}
        cell(names)
        n = names["n"].value if isinstance(names["n"], AssignedIfRun) else names["n"]
        assert isinstance(n, ll.Tensor)
        found.append((kind_of(n), getattr(n, "unsure", False)))
        return t

    ll.function(run)(ll.constant(4.0), ll.constant(3))
    assert found == [(kind, unsure)]


def test_functions_return_tensors_as_ever() -> None:
    @ll.function(autograph=True)
    def count(t: ll.Tensor) -> int:
        n = 0
        while t > 1:
            t = t - 1.0
            n += 1
        return n

    assert isinstance(count(ll.constant(4.0)), ll.Tensor)


def test_they_are_printed_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    @ll.function(autograph=True)
    def count(t: ll.Tensor) -> ll.Tensor:
        n, found = 0, False
        while t > 1:
            t = t - 1.0
            n, found = n + 1, True
        print(n, found, t)  # noqa: T201
        return t

    count(ll.constant(4.0))
    assert capsys.readouterr().out.startswith("3 True ll.Tensor(1.")
