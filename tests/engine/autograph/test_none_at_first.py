"""Variables that are None before a `for` and tensors after its first round, which is traced apart."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ControlFlowError


def largest(xs):
    best = None
    for x in xs:
        if best is None or x > best:
            best = x
    return best


def largest_and_where(xs):
    best = None
    for i, x in enumerate(xs):
        if best is None or x > best[0]:
            best = (x, i)
    return best


def products_with_the_last_but_one(xs):
    before = last = None
    total = xs[0] * 0
    for x in xs:
        if before is not None:
            total = total + before * x
        before, last = last, x
    return total


def until_one_is_large(xs):
    best = None
    for x in xs:
        if best is None or x > best:
            best = x
        if x > 2.5:
            break
    return best


def until_the_first(xs):
    first = None
    for x in xs:
        if first is None:
            first = x * 2
            break
        first = first + 1
    return first


def backwards(xs):
    total = None
    for x in reversed(xs):
        total = x if total is None else total * 2.0 + x
    return total


def pairs(xs):
    most = None
    for x, y in zip(xs, xs * 2, strict=True):
        most = x + y if most is None else ll.maximum(most, x * y)
    return most


PROGRAMS = [
    largest,
    largest_and_where,
    products_with_the_last_but_one,
    until_one_is_large,
    until_the_first,
    backwards,
    pairs,
]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_loop_with_a_sure_first_round_does_as_python(program, n):
    xs = ll.constant([1.0, 3.0, 2.0, 5.0])[:n]
    found, right = ll.function(program, autograph=True)(xs), program(xs)
    for x, y in zip(ll.tree.leaves(found), ll.tree.leaves(right), strict=True):
        assert float(x) == float(y)


def test_it_is_differentiated_and_nests():
    def rows(xs):
        best = None
        for row in xs:
            inner = largest(row)
            if best is None or inner > best:
                best = inner
        return best

    xs = ll.constant([[1.0, 3.0], [7.0, 2.0]])
    assert ll.grad(ll.function(rows, autograph=True))(xs).tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_the_rest_stays_a_loop():
    graph = ll.function(largest, autograph=True).get_concrete_function(ll.zeros((1000,))).graph
    assert len(graph.nodes) < 20


def test_an_unknown_number_of_rounds_is_refused():
    staged = ll.function(largest, autograph=True, input_signature=[ll.TensorSpec((None,))])
    with pytest.raises(ControlFlowError, match=r"`best` is None on entry of this `for` loop and f32\[\] after one"):
        staged(ll.constant([1.0, 2.0]))


def test_what_is_none_again_and_again_is_refused():
    def alternating(xs):
        x = None
        for y in xs:
            x = y if x is None else None
        return x

    with pytest.raises(ControlFlowError):
        ll.function(alternating, autograph=True)(ll.zeros((20,)))
