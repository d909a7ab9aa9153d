"""Random programs with control flow on tensors: plain Python on values and the staged, converted function agree.

Also their gradients: what the programs compute with is whole numbers, of an integer or a floating dtype.
"""

import contextlib
import itertools
import linecache
import os
import re
import textwrap

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ControlFlowError

NAMES = ("a", "b", "c")
_count = itertools.count()

number = st.integers(-3, 3).map("{}!".format)  # in place of the ! comes ".0" or nothing
operand = st.one_of(st.sampled_from(NAMES), number)
sum_ = st.builds("{} {} {}".format, st.sampled_from(NAMES), st.sampled_from("+-"), operand)
expression = st.one_of(operand, sum_, st.builds("({}) * {} % 7".format, sum_, st.sampled_from("123")))
comparison = st.builds("{} {} {}".format, operand, st.sampled_from(["<", ">=", "==", "!="]), operand)
chain = st.builds("{} < {} <= {}".format, operand, st.sampled_from(NAMES), operand)
condition = st.recursive(
    st.one_of(comparison, chain),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not {}".format, inner),
    ),
    max_leaves=3,
)
value = st.recursive(
    st.one_of(expression, st.builds("{}({})".format, st.sampled_from(["pick", "late"]), operand)),
    lambda inner: st.builds("({} if {} else {})".format, inner, condition, inner),
    max_leaves=3,
)
assignment = st.builds("{} = {}".format, st.sampled_from(NAMES), value)
update = st.builds("{} {}= {}".format, st.sampled_from(NAMES), st.sampled_from("+-"), operand)
other = st.one_of(
    st.builds("bump({})".format, operand),
    st.builds("b = bump({})".format, operand),
    st.builds("a, b = {}, {}".format, value, operand),
    st.builds("b = sum([v * {} for v in xs], b)".format, operand),
    st.builds("a = sum([g(1) for g in [lambda v, k=k: v * k + c for k in range(3)]])".format),
    st.builds("box.total = {0}; c += box.total".format, operand),
    st.builds("d['p'] = {}".format, value),
    st.builds("e['q'] += {}; a = a - d['q']".format, operand),
    st.builds("y[0], y[1] = y[1], {}; b = b + y[0]".format, operand),
    st.builds("z = [y[1], {}]; z[0] = z[0] + 1!; y[{}] = z[0]".format, operand, st.integers(0, 1)),
    st.builds("r[0][1] = r[1][0] - {}; put(r[1])".format, operand),
    st.builds("c = max({}, {}) - min(a, {})".format, operand, operand, operand),
    st.builds("a = a + 1! if {} in (a, b, 2!) else a".format, operand),
)


def block(statements):
    return textwrap.indent("\n".join(statements), "    ")


def compound(inner):
    body = st.lists(inner, min_size=1, max_size=3).map(block)
    leaving = st.sampled_from(["break", "continue", "return a - b"])
    leave = st.builds("    if {}:\n        {}\n".format, condition, leaving) | st.just("")
    left = st.builds("{}\n{}{}".format, body, leave, body)
    end = st.builds("\nelse:\n{}".format, body) | st.just("")
    places = st.sampled_from(["range(n)", "range(3)", "range(n + 1)", "range(n, 0, -1)", "reversed(range(n))"])
    rows = st.sampled_from(
        ["x in xs", "x in reversed(xs)", "x, _ in zip(xs, xs)", "_, x in enumerate(xs)", "x in (a, c)"]
    )
    return st.one_of(
        st.builds("if {}:\n{}".format, condition, body),
        st.builds("if {}:\n{}\nelse:\n{}".format, condition, body, body),
        st.builds("if {}:\n{}\nelif {}:\n{}".format, condition, body, condition, body),
        st.builds("for i in {}:\n{}\n    a += STEP{}".format, places, left, end),
        st.builds("for {}:\n{}\n    b += x{}".format, rows, left, end),
        st.builds("k = 0\nwhile k < n and {}:\n    k += 1\n{}{}".format, condition, left, end),
        st.builds("k = 0\nwhile True:\n    k += 1\n    if k > n or {}:\n        break\n{}".format, condition, left),
        st.builds("try:\n{}\nfinally:\n    a += 1".format, body),
        st.builds("with contextlib.suppress(KeyError):\n{}".format, body),
    )


statement = st.recursive(st.one_of(assignment, update, other), compound, max_leaves=5)
program = st.lists(statement, min_size=1, max_size=4)


BEGIN = """def f(n, xs, a, b, c):
    def bump(v):
        nonlocal c
        if v > 0:
            c = c + v
        return c % 5

    def late(v):
        return a - v if a > v else b

    def put(items):
        items[0] = items[0] + 1!

    pick = lambda v: a if v > b else c
    box = Box()
    d = {"p": a, "q": 0!}
    e, y = d, [b, 1!]
    r = [[a, 1!], y]
"""


class Box:
    """What may be changed where Python decides."""


def made(statements, step, point=""):
    """The program as a function whose source can be read."""
    name = f"<program {next(_count)}>"
    text = (
        re.sub(r"(\d)!", rf"\1{point}", BEGIN + block(statements)).replace("STEP", step)
        + "\n    return a + 2 * b - c + d['p'] * 3 + e['q'] - y[0] + y[1] * 2 + r[0][1]\n"
    )
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"Box": Box, "contextlib": contextlib}
    exec(compile(text, name, "exec"), space)
    return space["f"], text


def staged_as(f, text, n, xs, dtype):
    """The converted function, and its arguments; None for a program that changes what a staged block must not."""
    g = ll.function(f, autograph=True)
    numbers = [ll.constant(n), *[ll.constant(x, dtype=dtype) for x in (xs, 1, -2, 3)]]
    try:
        g(*numbers)
    except ControlFlowError as error:
        if "`box.total` is assigned in" in str(error):
            return None
        raise AssertionError(text) from error
    return g, numbers


PROGRAMS = int(os.environ.get("AUTOGRAPH_PROGRAMS", "15"))
quick = settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow  # hundreds of random programs
@quick
@given(program, st.integers(0, 3), st.lists(st.integers(-2, 2), min_size=2, max_size=2))
def test_converted_programs_do_what_python_does(statements, n, xs):
    f, text = made(statements, "i")
    staged = staged_as(f, text, n, xs, "int32")
    if staged is not None:
        g, numbers = staged
        assert g(*numbers).item() == f(n, xs, 1, -2, 3), text
        assert g.trace_count == 1, text


@pytest.mark.slow  # hundreds of random programs
@quick
@given(program, st.integers(0, 3), st.lists(st.integers(-2, 2), min_size=2, max_size=2))
def test_converted_programs_have_the_gradients_of_python(statements, n, xs):
    f, text = made(statements, "1", ".0")
    staged = staged_as(f, text, n, xs, "float32")
    if staged is None:
        return
    g, (n, *numbers) = staged
    sources = (1, 2, 3, 4)
    expected = ll.grad(lambda *given: f(n, *given) * 1.0, argnums=(0, 1, 2, 3))(*numbers)
    found = ll.grad(lambda *given: g(n, *given) * 1.0, argnums=(0, 1, 2, 3))(*numbers)
    assert [x.tolist() for x in found] == [x.tolist() for x in expected], (text, sources)
