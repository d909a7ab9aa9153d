"""The body of a notebook cell, converted (`converted_cell`); and what autograph=True costs."""

import ast
import linecache
import subprocess
import sys

import pytest

import limelight as ll
from limelight.autograph import converted_cell
from limelight.autograph.undefined_variables import AssignedIfRun, Doubtful
from limelight.errors import ControlFlowError

pytestmark = pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")  # what `cell` is for
NAME = "<cell of a test>"


def cell(text, **inputs):
    """Runs a cell in a trace; the namespace afterwards, values of tensors included, and its result."""
    linecache.cache[NAME] = (len(text), None, text.splitlines(True), NAME)
    run = converted_cell(ast.parse(text), NAME)
    found = {}

    def body(**given):
        namespace = dict(given)
        result = run(namespace)
        found.update(namespace)
        names = [k for k, v in namespace.items() if isinstance(v, ll.Tensor | int | float) and k not in given]
        return result, {name: namespace[name] for name in names}

    f = ll.function(body)
    result, assigned = f(**{k: ll.constant(v) for k, v in inputs.items()})
    values = {k: v.tolist() for k, v in assigned.items()}
    return None if result is None else result.tolist(), values, found, f


def test_names_are_those_of_the_notebook():
    result, values, found, _ = cell("if x > 0:\n    y = x\nelse:\n    y = -x\ny + 1\n", x=-2.0)
    assert (result, values) == (3.0, {"y": 2.0})
    assert sorted(k for k in found if k != "__builtins__") == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total = (t := x * 2.0).sum() + t", {"t": 4.0, "total": 8.0}),
        ("y = max((n := 3), 2) + n", {"n": 3, "y": 6}),
        ("y = [a := 2, n := 3][(n := 1)] + a + n", {"a": 2, "n": 1, "y": 6}),
        ("y = len(names := [k := 1, 2]) + k", {"k": 1, "y": 3}),
        ("y = 2 + ((n := 3) in [3, 4]) + n", {"n": 3, "y": 6}),
        ("y = 3 in (both := [n := 3, 4])\ny = y + len(both)", {"n": 3, "y": 3}),
        ("y = not (n := 0)", {"n": 0, "y": True}),
        ("if (y := x * 3.0) > 5.0:\n    y = (z := y) - 1.0\nelse:\n    z = y", {"y": 5.0, "z": 6.0}),
    ],
)
def test_assignments_within_expressions(text, expected):
    assert cell(text, x=2.0)[1] == expected


@pytest.mark.parametrize("text", ["if x > 5.0:\n    q = x\ndel q", "if x > 5.0:\n    q = x\ndel (x, q)"])
def test_a_name_that_a_run_has_not_assigned_cannot_be_deleted(text):
    assert cell(text, x=6.0)[1] == {}
    with pytest.raises(UnboundLocalError, match=r"`q` has no value here.*only in the `if` branch"):
        cell(text, x=2.0)
    with pytest.raises(UnboundLocalError, match="`q` has no value here"):
        ll.function(deleting, autograph=True)(ll.constant(2.0))
    assert ll.function(deleting, autograph=True)(ll.constant(6.0)).item() == 7.0


def deleting(x):
    if x > 5.0:
        q = x
    x = x + 1.0
    del q
    return x


LOOP = """
import math

def double(a):
    if a > 2:
        a = a * SCALE
    return a

total = 0
for i in range(n):
    if i == 1:
        continue
    total += double(i)
    if total > 25:
        break
SCALE_USED = math.floor(1.5)
"""


def test_functions_of_a_cell_are_plain_and_converted_when_called():
    text = "SCALE = 2\n" + LOOP
    result, values, found, _ = cell(text, n=9)
    assert result is None
    assert values["total"] == 2 * 3 + 2 * 4 + 2 * 5 + 2
    assert values["SCALE_USED"] == 1
    assert found["double"](3) == 6  # outside, as it was written
    assert not hasattr(found["double"], "__limelight_autograph__")


def test_names_that_may_have_no_value_know_whether_they_have():
    _, values, found, _ = cell("k = 0\nwhile k < n:\n    k += 1\n    last = k\nflag = 1\n", n=3)
    assert values == {"k": 3, "flag": 1}
    assert type(found["last"]) is AssignedIfRun
    _, _, found, _ = cell("k = 0\nwhile k < n:\n    k += 1\n    last = lambda: k\n", n=3)  # none that a tensor can tell
    assert type(found["last"]) is Doubtful


@pytest.mark.parametrize("after", ["after = last * 2", "def f(x=last):\n    return x * 2\nafter = f()"])
def test_reading_such_a_name_checks_that_it_has_a_value(after):
    text = f"k = 0\nwhile k < n:\n    k += 1\n    last = k\n{after}\n"
    assert cell(text, n=3)[1]["after"] == 6
    with pytest.raises(UnboundLocalError, match="`last` has no value here"):
        cell(text, n=0)


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("def last():\n    return 3", "last()"),
        ("class last:\n    value = 3", "last.value"),
        ("from math import floor as last", "last(3.5)"),
        ("class Box:\n    last = 3", "Box.last"),
    ],
)
def test_binding_such_a_name_anew_reads_nothing(statement, after):
    text = f"k = 0\nwhile k < n:\n    k += 1\n    last = k\n{statement}\nafter = {after}\n"
    assert [cell(text, n=n)[1]["after"] for n in (0, 3)] == [3, 3]


def test_bodies_of_classes_read_such_names():
    text = "k = 0\nwhile k < n:\n    k += 1\n    last = k\nclass Box:\n    value = last\nafter = Box.value * 2\n"
    assert cell(text, n=3)[1]["after"] == 6
    with pytest.raises(UnboundLocalError, match="`last` has no value here"):
        cell(text, n=0)


@pytest.mark.parametrize(
    "body",
    [
        "value = last",
        "value = [last for _ in 'a'][0]",
        "def get(self, k=last):\n            return k\n        value = property(get)",
        "class Inner:\n            v = last\n        value = Inner.v",
        "value = (lambda: last)()",
    ],
)
def test_bodies_of_classes_in_converted_functions_read_such_names(body):
    text = f"""\
def f(n):
    k = 0
    while k < n:
        k += 1
        last = k
    class Box:
        {body}
    return Box().value * 2
after = f(n)
"""
    assert cell(text, n=3)[1]["after"] == 6
    with pytest.raises(UnboundLocalError, match="`last` has no value here"):
        cell(text, n=0)


def test_names_that_helpers_read_are_theirs_too():
    helper = "def helper():\n    return limit * 2\n"
    result, _, _, _ = cell(helper + "limit = x\nif x > 1:\n    limit = x - 1\nhelper()", x=5.0)
    assert result == 8.0


def test_lines_are_those_of_the_cell():
    _, _, _, f = cell("z = x * 2\nif z > 1:\n    z = z + 1\n", x=3.0)
    lines = {node.op.name: node.stack[0].line for node in f.trace_cache[0].graph.nodes}
    assert (lines["multiply"], lines["greater"], lines["cond"]) == (1, 2, 2)
    branch = next(iter(f.trace_cache[0].graph.functions())).graph
    assert {node.stack[0].line for node in branch.nodes} == {3}
    with pytest.raises(UnboundLocalError, match=r"`w` has no value here \(<cell of a test> line 3: w"):
        cell("if x > 0:\n    w = 1\nw", x=-1.0)


def test_what_cannot_be_converted_runs_as_it_is():
    text = "match 3:\n    case 3:\n        y = x + 1\ny * 2"
    assert cell(text, x=2.0)[0] == 6.0
    with pytest.raises(ControlFlowError, match="could not be converted: it has a `match` statement"):
        cell("match 3:\n    case 3:\n        y = x if x > 0 else -x", x=2.0)


@pytest.mark.slow  # starts another Python
def test_the_library_is_imported_when_a_function_is_converted():
    program = (
        "import sys, limelight as ll\n"
        "f = ll.function(abs, autograph=True)\n"
        "assert 'malt' not in sys.modules\n"
        "import statistics\n"
        "@ll.function(autograph=True)\n"
        "def g(x):\n"
        "    return x\n"
        "assert 'malt' not in sys.modules\n"
        "g(ll.constant(1.0))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_code_is_converted_once(monkeypatch):
    from limelight.autograph import transpiler

    made = []
    make = transpiler._make
    monkeypatch.setattr(transpiler, "_make", lambda f: made.append(f.__name__) or make(f))

    def of(limit):
        def f(x):
            return x if x > limit else -x

        return f

    for limit in (1.0, 2.0, 3.0):
        assert ll.function(of(limit), autograph=True)(ll.constant(1.5)).item() == (1.5 if limit < 1.5 else -1.5)
    assert made == ["f"]
