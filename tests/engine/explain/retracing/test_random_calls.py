"""Explanations of random calls: none fails, each says what differs, and predictions come true."""

from __future__ import annotations

import collections
import enum
import functools
import warnings

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import limelight as ll
from limelight.core import nest

Point = collections.namedtuple("Point", "x y")
VARIABLES = [ll.Variable(1.0), ll.Variable(2.0), ll.Variable([1.0])]


class Rude(enum.Enum):
    """Does not want to be looked at."""

    A = 1
    B = 2

    def __repr__(self):
        raise RuntimeError("no")


class Opaque:
    """An object that answers every question with an error."""

    def __getattr__(self, name):
        raise RuntimeError(name)


TOUCHY = {"rude a": Rude.A, "rude b": Rude.B, "opaque 1": Opaque(), "opaque 2": Opaque()}
"""Hypothesis prints what it draws, so it draws these by name."""


def real(tree):
    return nest.map_structure(lambda leaf: TOUCHY.get(leaf, leaf) if type(leaf) is str else leaf, tree)


def array(shape, dtype):
    return np.ones(shape, dtype)


leaves = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, float("nan"), 1j, True, None, "relu", "a" * 500, b"x" * 500, range(3), int, ...]),
    st.sampled_from([*TOUCHY, len, ll.tanh, functools.partial(len, "x"), "x".join, slice(1, 2)]),
    st.sampled_from(VARIABLES),
    st.builds(
        array,
        st.lists(st.integers(0, 3), max_size=3).map(tuple),
        st.sampled_from(["float32", "int32", "complex64"]),
    ),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["x", "y", 1, (2, 3)]), inner, max_size=3),
        st.builds(Point, inner, inner),
    ),
    max_leaves=8,
)
calls = st.tuples(st.lists(trees, max_size=3), st.dictionaries(st.sampled_from(["a", "b"]), trees, max_size=2))


@pytest.mark.slow  # hundreds of random calls
@hypothesis.settings(max_examples=120)
@hypothesis.given(st.lists(calls, min_size=2, max_size=5))
def test_explanations_of_random_calls(several):
    f = ll.function(lambda *args, **options: 1.0, name="f")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        for args, options in map(real, several):
            predicted = f.explain(*args, **options)
            assert str(predicted)
            before = f.trace_count
            f(*args, **options)
            assert predicted.hit == (f.trace_count == before)
            if not predicted.hit:
                record = ll.explain.retrace(f).records[-1]
                assert len(record.differences) == len(predicted.miss.differences)
                assert record.differences or before == 0
                assert all(d.before != d.after or d.detail for d in record.differences), record
                assert str(record)
    assert ll.explain.retrace(f).table()


def test_a_default_that_cannot_be_keyed_does_not_stand_in_the_way():
    f = ll.function(lambda x, options={1}: x)
    for n in (2, 3):
        assert f(ll.ones((n,)), None).shape == (n,)
    with pytest.raises(ll.errors.SignatureError, match="`options`"):
        f(ll.ones((2,)))
