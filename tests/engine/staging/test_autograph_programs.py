"""Random programs with control flow on tensors: plain Python on values and the staged, converted function agree."""

import itertools
import linecache
import os
import textwrap

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import limelight as ll

NAMES = ("a", "b", "c")
_count = itertools.count()

number = st.integers(-3, 3).map(str)
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
value = st.one_of(expression, st.builds("({} if {} else {})".format, expression, condition, expression))
assignment = st.builds("{} = {}".format, st.sampled_from(NAMES), value)
update = st.builds("{} {}= {}".format, st.sampled_from(NAMES), st.sampled_from("+-"), operand)


def block(statements):
    return textwrap.indent("\n".join(statements), "    ")


def compound(inner):
    body = st.lists(inner, min_size=1, max_size=3).map(block)
    leaving = st.sampled_from(["break", "continue", "return a - b"])
    leave = st.builds("    if {}:\n        {}\n".format, condition, leaving) | st.just("")
    left = st.builds("{}\n{}{}".format, body, leave, body)
    return st.one_of(
        st.builds("if {}:\n{}".format, condition, body),
        st.builds("if {}:\n{}\nelse:\n{}".format, condition, body, body),
        st.builds("if {}:\n{}\nelif {}:\n{}".format, condition, body, condition, body),
        st.builds("for i in range({}):\n{}\n    a += i".format, st.sampled_from(["n", "3", "n + 1"]), left),
        st.builds("for x in xs:\n{}\n    b += x".format, left),
        st.builds("k = 0\nwhile k < n and {}:\n    k += 1\n{}".format, condition, left),
        st.builds("for i in range(n):\n{}\nelse:\n    c += 1".format, left),
    )


statement = st.recursive(st.one_of(assignment, update), compound, max_leaves=5)
program = st.lists(statement, min_size=1, max_size=4)


def made(statements):
    """The program as a function whose source can be read."""
    name = f"<program {next(_count)}>"
    text = "def f(n, xs, a, b, c):\n" + block(statements) + "\n    return a + 2 * b - c\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    exec(compile(text, name, "exec"), space)
    return space["f"], text


@settings(
    max_examples=int(os.environ.get("AUTOGRAPH_PROGRAMS", "25")), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(program, st.integers(0, 3), st.lists(st.integers(-2, 2), min_size=2, max_size=2))
def test_converted_programs_do_what_python_does(statements, n, xs):
    f, text = made(statements)
    expected = f(n, xs, 1, -2, 3)
    staged = ll.function(f, autograph=True)
    numbers = [ll.constant(x, dtype="int32") for x in (n, xs, 1, -2, 3)]
    assert staged(*numbers).item() == expected, text
    assert staged.trace_count == 1, text
