"""Fixes that are the user's own call, mended: they say no more than is needed, and then find the trace."""

from __future__ import annotations

import linecache

import pytest

import limelight as ll

FILE = "<a script for fixes>"


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ('ll.astype(z, "float64")', 'f(ll.astype(z, "float32"))'),
        ("z.astype(ll.float64)", 'f(ll.astype(z, "float32"))'),
        ('ll.constant([1.0, 2.0], "float64")', 'f(ll.constant([1.0, 2.0], "float32"))'),
        ("ll.constant([1.0, 2.0], dtype=ll.float64)", 'f(ll.constant([1.0, 2.0], "float32"))'),
        ("ll.reshape(z, (2, 1))", "f(ll.reshape(z, (2,)))"),
        ('ll.astype(ll.reshape(z, (1, 2)), "float64")', 'f(ll.astype(ll.reshape(z, (2,)), "float32"))'),
        ('ll.astype(z, "int32")', 'f(ll.astype(ll.astype(z, "int32"), "float32"))'),  # the numbers are whole ones then
        ('ll.astype(z * 2, "float64")', 'f(ll.astype(z * 2, "float32"))'),
    ],
)
def test_a_cast_or_reshape_is_written_once(given: str, fix: str) -> None:
    space = {"ll": ll, "z": ll.constant([1.5, 2.5]), "f": ll.function(lambda x: x * 2)}
    eval("f(z)", space)
    text = f"f.explain({given})"
    linecache.cache[FILE] = (len(text), None, [f"{text}\n"], FILE)
    found = eval(compile(text, FILE, "eval"), space)
    assert [one.code for one in found.miss.fixes] == [fix]
    eval(fix, space)
    assert space["f"].trace_count == 1


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ("make(3)", "f(list(make(3)))"),  # the argument of a function is not what it returns
        ("makers[0](3)", "f(list(makers[0](3)))"),
        ("tuple(make(3))", "f(list(make(3)))"),
    ],
)
def test_a_container_is_made_of_what_the_call_returns(given: str, fix: str) -> None:
    def make(n: int) -> tuple[ll.Tensor, ...]:
        return (ll.ones((n,)), ll.zeros((n,)))

    space = {"ll": ll, "make": make, "makers": [make], "f": ll.function(lambda xs: xs[0] + xs[1])}
    eval("f([ll.ones((3,)), ll.zeros((3,))])", space)
    text = f"f.explain({given})"
    linecache.cache[FILE] = (len(text), None, [f"{text}\n"], FILE)
    prediction = eval(compile(text, FILE, "eval"), space)
    assert [one.code for one in prediction.miss.fixes] == [fix]
    eval(fix, space)
    assert space["f"].trace_count == 1


EARLIER = {
    "on a line above": ("f(ll.ones((2,)), 2.0)\n", 'f(ll.ones((2,)), ll.constant(2.0, "float32"))'),
    "by keyword": ("f(k=2.0, x=ll.ones((2,)))\n", 'f(k=ll.constant(2.0, "float32"), x=ll.ones((2,)))'),
    "on the same line": ("f(ll.ones((2,)), 2.0); ", 'f(ll.ones((2,)), ll.constant(2.0, "float32"))'),
    "under a name": ("k = 2.0\nf(ll.ones((2,)), k)\n", 'f(ll.ones((2,)), ll.constant(k, "float32"))'),
}


@pytest.mark.parametrize(("call", "mended"), EARLIER.values(), ids=EARLIER)
def test_the_earlier_call_is_shown_mended(program, call, mended):
    head = "@ll.function\ndef f(x, k):\n    return x * k\n"
    (fix,) = program(f"{head}{call}f(ll.ones((2,)), ll.constant(2.0))").miss.fixes
    assert (fix.code, fix.as_cell) == (mended, mended)
    assert program(f"{head}k = 2.0\n{fix.as_cell}\nf(ll.ones((2,)), ll.constant(2.0))").f.trace_count == 1


FRAGMENTS = {
    "two calls alike on a line": (
        "def f(x, k):\n    return x * k\n",
        "k = 2.0\n[f(ll.ones((2,)), k), f(ll.ones((2,)), k)]\nf(ll.ones((2,)), ll.constant(2.0))",
    ),
    "a part of a display": (
        "def f(b):\n    return b['a'] * b['k']\n",
        "f({'a': ll.ones((2,)), 'k': 2.0})\nf({'a': ll.ones((2,)), 'k': 3.0})",
    ),
    "a part of a tuple": (
        "def f(b):\n    return b[0] * b[1]\n",
        "for b in ((ll.ones((2,)), 2.0), (ll.ones((2,)), 3.0)):\n    f(b)",
    ),
    "a call in a function": (
        "def f(x, k):\n    return x * k\n",
        "def main():\n    for n in (2.0, 3.0):\n        f(ll.ones((2,)), n)\nmain()",
    ),
}


@pytest.mark.parametrize(("written", "calls"), FRAGMENTS.values(), ids=FRAGMENTS)
def test_what_is_a_part_of_other_code_is_no_cell(program, written, calls):
    fixes = program(f"@ll.function\n{written}{calls}").miss.fixes
    assert [(bool(fix.code), fix.as_cell) for fix in fixes] == [(True, "")]


def test_the_options_of_a_function_that_was_staged_by_a_call_are_no_cell(program):
    (fix,) = program("f = ll.function(lambda x: x + 1)\nfor n in (2, 3):\n    f(ll.ones((n,)))").miss.fixes
    assert fix.code.startswith("ll.function(fn, ")
    assert fix.as_cell == ""


LISTS = {
    "numbers": ("ll.ones((3,))", "[1., 2., 3.]", "ll.constant([1., 2., 3.])"),
    "whole numbers": ("ll.ones((3,))", "(1, 2, 3)", 'll.constant((1, 2, 3), "float32")'),
    "rows": ("ll.ones((2, 2))", "[[1., 2.], [3., 4.]]", "ll.constant([[1., 2.], [3., 4.]])"),
    "tensors": ("ll.ones((2, 3))", "[ll.ones((3,)), ll.ones((3,))]", "ll.stack([ll.ones((3,)), ll.ones((3,))])"),
}


@pytest.mark.parametrize(("tensor", "given", "mended"), LISTS.values(), ids=LISTS)
def test_a_list_in_the_place_of_a_tensor_becomes_one(program, tensor, given, mended):
    head = "@ll.function\ndef f(x):\n    return ll.sum(x) if isinstance(x, ll.Tensor) else x[0]\n"
    (fix,) = program(f"{head}f({tensor})\nf({given})").miss.fixes
    assert fix.code == f"f({mended})"
    assert program(f"{head}f({tensor})\n{fix.code}").f.trace_count == 1


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ("ll.ones((2,))", "[1.0, 2.0, 3.0]", "ll.constant makes one of numbers"),
        ("[1.0, 2.0]", "ll.ones((2,))", "Pass a tensor as `x` in each call"),
        ("vs[:2]", "vs", "tensors of several shapes or dtypes cannot be one"),
        ("[vs[0]]", "[vs[0], vs[0] * 2.0]", "ll.stack makes one tensor of them"),
        ("[1.0]", "[1.0, 2.0]", "ll.constant makes one tensor of them"),
    ],
)
def test_lists_that_no_code_mends_have_advice_that_can_be_followed(program, first, then, said):
    head = "vs = [ll.ones((n,)) for n in (2, 3, 4)]\n@ll.function\ndef f(x):\n    return x[0]\n"
    miss = program(f"{head}f({first})\nf({then})").miss
    assert miss.fix == ""
    assert said in str(miss)
