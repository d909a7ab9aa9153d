"""What is a Python number on one path and a tensor on the other is, in cells, what the plain code has in each run."""

from __future__ import annotations

import ast
import linecache
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.autograph import converted_cell
from limelight.autograph.python_numbers import MixedNumber, code_of, decoded
from limelight.autograph.undefined_variables import AssignedIfRun
from limelight.core.tensor import Tensor, constant
from limelight.errors import ControlFlowError, DTypeError

PROGRAMS = {
    "a while of no round": "n, u = 0.0, t\nwhile u > 1:\n    u = u - 1.0\n    n = n + u",
    "a range": "n = 0.0\nfor i in range(k):\n    n = n + t",
    "rows of a known number": "n = 0.0\nfor x in xs:\n    n = n + x",
    "no rows": "n = 0.0\nfor x in xs[:0]:\n    n = n + x",
    "the largest so far": "n = 0.0\nfor x in xs:\n    if x > t:\n        n = x",
    "what it was the round before": "m = n = 0.0\nfor i in range(k):\n    n = m\n    m = m + t",
    "the same in a loop that always runs": "m = n = 0.0\nfor x in xs[:1]:\n    n = m\n    m = m + x",
    "of other numbers": "m = n = 0.0\nfor i in range(k):\n    n = m * 2 + 1\n    m = m + t",
    "an int that is divided": "n = 4\nfor i in range(k):\n    n = n / 2",
    "one branch": "n = 2\nif t > 1:\n    n = k",
    "both branches": "if t > 1:\n    n = 0.5\nelse:\n    n = t * 2",
    "ints and floats": "if t > 1:\n    n = 3\nelse:\n    n = 0.5",
    "reckoned with": "n = 0.0\nif t > 1:\n    n = t\nn = -(2 - n * 2 + 1) ** 2",
    "with one another": "m = n = 2.0\nif t > 1:\n    n = t\nif k > 1:\n    m = t\nn = n / m",
    "compared": "m = 0.0\nif t > 1:\n    m = t\nn = 0.5 < m",
    "decides": "m = n = 0.0\nif t > 1:\n    m = t\nif m > 0.5:\n    n = m + 1",
    "loops in loops": "n = 0.0\nfor i in range(k):\n    for x in xs:\n        if x > t:\n            n = n + x",
    "two loops": "n, u = 0.0, t\nwhile u > 3:\n    u = u - 1.0\n    n = n + u\nfor i in range(k):\n    n = n + 1",
    "a tensor that becomes a number": "n = t\nfor i in range(k):\n    n = 1.0",
    "the larger": "n = max(0.75, t)",
    "the smallest of more": "n = min(t, 2.0, 3)",
    "and": "flag = not t > 1\nn = flag and k > 1",
    "any": "n = any([t > 1, k > 1])",
    "all of one number": "n = all([t - 4.0])",
    "asked for its type": "n = 3\nif t > 1:\n    n = 5\nn = 1.5 if type(n) is int and isinstance(n, int) else 2",
    "asked for a type that it never has": "m = 0.5\nif t > 1:\n    m = t\nn = 1.5 if isinstance(m, list) else m",
    "asked for two of three": "n = 0.5\nif t > 1:\n    n = t\nn = isinstance(n, (float, ll.Tensor))",
    "asked for one": "m = 0.5\nif t > 1:\n    m = t\nn = 1 if isinstance(m, float) else 2",
    "asked for what tensors have": "n = 2\nif t > 1:\n    n = k\nn = hasattr(n, 'shape')",
    "rounded": "n = 2.5\nif t > 1:\n    n = t * 0.3\nn = round(n)",
    "rounded to a place": "n = 2.25\nif t > 1:\n    n = t\nn = round(n, 1)",
    "rounded of numbers": "n = 2.5\nif t > 1:\n    n = 3.5\nn = round(n)",
    "rounded down": "import math\nn = 2.5\nif t > 1:\n    n = 3.5\nn = math.floor(n) + math.ceil(n)",
    "made an int": "n = -2.5\nif t > 1:\n    n = 3.5\nn = int(n)",
    "made a float and a bool": "n = 2\nif t > 1:\n    n = 3\nn = float(n) + bool(n)",
    "the power of an int": "n = 2\nif t > 1:\n    n = 3\nn = 2 ** n",
    "the power of a float": "n = 2\nif t > 1:\n    n = 3\nn = 0.5 ** n",
    "the root of an int": "n = 2\nif t > 1:\n    n = 3\nn = n ** 0.5 + n ** -1",
    "a power on one path": "n = 2\nif t > 1:\n    n = k\nn = 3 ** n",
    "a negative power of two kinds": "n = -2\nif t > 1:\n    n = 2.5\nn = 2 ** n",
    "a tensor of it": "n = 0.5\nif t > 1:\n    n = 2.5\nn = ll.constant(n)",
    "an int beside a float": "n = 2\nif t > 1:\n    n = 3\nn = sum([1.5, n]) * 0.5",
    "an int beside a tensor": "n = 2\nif t > 1:\n    n = 3\nn = t / n",
    "a bool is counted": "n = False\nif t > 1:\n    n = True\nn = -n + ~n",
    "NumPy's numbers": "n = np.float32(2.5)\nif t > 1:\n    n = np.float32(1.5)\nn = n * 2",
    "NumPy's number and a tensor": "n = np.float32(2.5)\nif t > 1:\n    n = t\nn = 0.5 * n + 1",
    "beside NumPy's number": "n = 2\nif t > 1:\n    n = 3\nn = np.float64(0.5) * n",
    "in a tuple": "n = 2.0\nif t > 1:\n    n = t\nn = n in (1, 2)",
    "any of one": "n = 2.0\nif t > 1:\n    n = t\nn = any([n])",
    "or": "flag = not t > 1\nn = flag or k > 1",
    "an expression": "n = 0.25 if t > 1 else t",
    "returned": "def f(v):\n    if v > 1:\n        return 0.0\n    return v * 2.0\nn = f(t)",
    "returned from a loop": "def f(v):\n    for x in xs:\n        if x > v:\n            return x\n    return -1.0\n"
    "n = f(t)",
    "after a break": "n = 0.0\nfor x in xs:\n    if x > t:\n        break\n    n = n + x",
    "after a continue": "n = 0.0\nfor x in xs:\n    if x < t:\n        continue\n    n = x",
    "in a list": "box = [0.0, 1]\nfor i in range(k):\n    box[0] = box[0] + t\nn = box[0]",
    "in a dictionary": "d = {'loss': 0.0}\nif t > 1:\n    d['loss'] = t\nn = d['loss']",
    "assigned in a branch alone": "if k > 0:\n    n = 0.5\n    if t > 1:\n        n = t\nelse:\n    n = 1",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_what_the_plain_code_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PROGRAMS[name]
    monkeypatch.setitem(linecache.cache, "<cell>", (len(text), None, text.splitlines(keepends=True), "<cell>"))
    cell = converted_cell(ast.parse(text), "<cell>")
    xs = ll.constant([1.5, 0.5, 2.5])

    def staged(t: Tensor, k: Tensor) -> list[Any]:
        names = {"t": t, "k": k, "xs": xs, "ll": ll, "np": np}
        cell(names)
        n = names["n"].value if isinstance(names["n"], AssignedIfRun) else names["n"]
        return [n, code_of(n)]

    function = ll.function(staged)
    for t, k in [(0.5, 0), (0.5, 2), (4.0, 0), (4.0, 1), (4.0, 2)]:
        names: dict[str, Any] = {"t": ll.constant(t), "k": ll.constant(k), "xs": xs, "ll": ll, "np": np}
        exec(text, names)
        found = decoded(*map(constant, function(names["t"], names["k"])))
        assert type(found) is type(names["n"]), (t, k)
        assert float(found) == pytest.approx(float(names["n"])), (t, k)
    assert function.trace_count == 1


def test_they_are_printed_as_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    cell = converted_cell(ast.parse("n = 0.5\nif t > 1:\n    n = t\nprint(n, [n])"), "<cell>")
    function = ll.function(lambda t: cell({"t": t, "print": print}) or t)
    for t in (0.25, 2.0):
        function(ll.constant(t))
        expected = ll.constant(2.0) if t > 1 else 0.5
        assert capsys.readouterr().out == f"{expected} {[expected]}\n"


def test_functions_have_no_codes() -> None:
    found = []

    @ll.function(autograph=True)
    def f(t: Tensor) -> Tensor:
        n = 0.0
        if t > 1:
            n = t
        found.append(type(n))
        return n  # type: ignore[return-value]

    f(ll.constant(2.0))
    assert not any(issubclass(kind, MixedNumber) for kind in found)
    assert "i32" not in f.trace_cache[0].graph.text()


@pytest.mark.parametrize(
    "text", ["n = 2 ** 40\nif t > 1:\n    n = k", "if t > 1:\n    n = -(2 ** 40)\nelse:\n    n = k"]
)
def test_a_number_that_the_other_paths_dtype_cannot_hold_is_refused(text: str) -> None:
    cell = converted_cell(ast.parse(text), "<cell>")
    with pytest.raises(DTypeError, match=r"1099511627776 does not fit into int32.*ll.astype\(x, ll.int64\).*<cell>"):
        ll.function(lambda t, k: cell({"t": t, "k": k}))(ll.constant(0.5), ll.constant(2))


MEETS = {
    "n = 2\nif t > 1:\n    n = 3\nr = [0] * n": "repeats a list, whose length a graph cannot leave open",
    "n = 2.0\nif t > 1:\n    n = t\nr = type(n)": r"the type is asked of.*write isinstance\(x, float\)",
    "n = 2.0\nif t > 1:\n    n = 3.0\nr = np.sqrt(n)": r"given to np.sqrt: .* Write ll.sqrt\(...\)",
    "n = 2.0\nif t > 1:\n    n = t\nr = np.ones(2) * n": r"array of NumPy's.* Write ll.constant\(array\)",
    "n = 2\nif t > 1:\n    n = 3.5\nr = ll.stack([n, n])": r"stack is given a Python number.* of float32 or int32",
    "n = 2\nif t > 1:\n    n = 3.5\nr = ll.constant(n)": r"constant is given a Python number.* of float32 or int32",
    "n = 2\nif t > 1:\n    n = 3.5\nr = f(n * 2)": r"f is given a Python number.* of float32 or int32",
    "n = 2.0\nif t > 1:\n    n = t\nr = n.__class__": r"the type is asked of.*write isinstance\(x, float\)",
    "n = 2.0\nif t > 1:\n    n = 3.0\nr = n + 1j": r"complex number.* Write ll.constant\(x\)",
}


@pytest.mark.parametrize("text", MEETS)
def test_what_a_graph_cannot_do_for_numbers_is_refused_at_the_line(text: str) -> None:
    cell = converted_cell(ast.parse(text), "<cell>")
    f = ll.function(lambda x: x * 2)
    f.__name__ = "f"
    with pytest.raises(ControlFlowError, match=f"(?s){MEETS[text]}.*<cell> line 4"):
        ll.function(lambda t: cell({"t": t, "np": np, "ll": ll, "f": f}))(ll.constant(0.5))
