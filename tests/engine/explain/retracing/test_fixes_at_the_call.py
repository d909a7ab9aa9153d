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
