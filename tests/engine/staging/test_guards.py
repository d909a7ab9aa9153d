"""A guard lets a call through to the entry that its key leads to, or does not know it."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import gc
import weakref
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import limelight as ll

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Fields:
    a: Any
    b: Any


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Thing:
    pass


THINGS = [Thing(), Thing(), abs]
VARIABLES = [ll.Variable([1.0, 2.0]), ll.Variable([3.0, 4.0]), ll.Variable([1.0, 2.0, 3.0])]
LEAVES = st.sampled_from([
    *(ll.ones(2), ll.ones(2), ll.ones(3), ll.ones(2, dtype="float64"), ll.constant(1.0), ll.ones((1, 2))),
    *(np.ones(2, np.float32), np.ones(2), np.float32(1.0), np.int64(3), np.ones((2, 1), np.float32)),
    *(0, 1, True, False, 1.0, 0.0, -0.0, float("nan"), float("inf"), 2**70, 1e300, 1j, -1j, "a", "b", b"a", None, ...),
    *(range(2), range(3), int, float, slice(1), slice(2), Colour.RED, Colour.BLUE, np.dtype("int8"), ll.float32),
    *THINGS,
    *VARIABLES,
])  # fmt: skip
KEYS = st.one_of(st.sampled_from(["a", "b", "c d"]), st.sampled_from([0, 1, True, 1.0]))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(lambda x, n: [x] * n, LEAVES, st.integers(4, 7)),
        st.permutations(VARIABLES * 2).map(lambda vs: vs[:5]),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(collections.OrderedDict),
        st.builds(Pair, inner, inner),
        st.builds(Fields, inner, inner),
    ),
    max_leaves=8,
)


def body(x: Any, y: Any = 1.0, *rest: Any, key: Any = None, **more: Any) -> ll.Tensor:
    return ll.constant(0.0)


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
    args = draw(st.lists(TREES, min_size=1, max_size=3))
    return args, draw(st.dictionaries(st.sampled_from(["key", "p", "q"]), TREES, max_size=2))


@settings(max_examples=60, deadline=None)
@given(calls(), st.data())
def test_a_guard_lets_through_what_its_key_would_find(known: tuple[list[Any], dict[str, Any]], data: st.DataObject):
    f = ll.function(body)
    args, kwargs = known
    for _ in range(6):
        f(*args, **kwargs)
    other = data.draw(st.one_of(calls(), st.just(known), st.builds(changed, st.just(known), TREES)))
    for args, kwargs in (known, other):
        found = f.trace_cache.guards.find(tuple(args), kwargs)
        if found is not None:
            entry, payloads = found
            call = f._call(tuple(args), kwargs)
            assert f._find(call.lookup) is entry
            inputs = [x for x, part in zip(call.leaves, entry.key.parts, strict=True) if part.is_input]
            assert len(payloads) == len(inputs)
            for mine, its in zip(payloads, inputs, strict=True):
                assert mine is its._data or np.array_equal(mine, its._data)


def changed(call: tuple[list[Any], dict[str, Any]], leaf: Any) -> tuple[list[Any], dict[str, Any]]:
    """The same call but for one part, which is replaced by `leaf`."""
    args, kwargs = [shallow(x) for x in call[0]], dict(call[1])
    for x in args:
        if isinstance(x, list) and x:
            x[-1] = leaf
            return args, kwargs
        if isinstance(x, dict) and x:
            x[next(iter(x))] = leaf
            return args, kwargs
    args[-1] = leaf
    return args, kwargs


def shallow(x: Any) -> Any:
    return copy.copy(x) if isinstance(x, (list, dict)) else x


def warm(f: Any, *args: Any, **kwargs: Any) -> Any:
    for _ in range(5):
        result = f(*args, **kwargs)
    return result


T = ll.constant([1.0, 2.0])


def test_results_are_those_of_the_call_and_not_of_the_one_that_wrote_the_guard():
    v, w = ll.Variable([1.0, 1.0]), ll.Variable([5.0, 5.0])
    f = ll.function(lambda p, v, a, n: p["x"] * n + v + a)
    warm(f, {"x": T}, v, np.zeros(2, np.float32), n=2.0)
    assert f({"x": T * 3}, w, np.ones(2, np.float32), n=2.0).tolist() == [12.0, 18.0]
    w.assign([0.0, 0.0])
    assert f({"x": T * 3}, w, np.ones(2, np.float32), n=2.0).tolist() == [7.0, 13.0]
    assert f.trace_count == 1


def test_an_array_is_copied_for_whoever_changes_it_later():
    f = ll.function(lambda l: l[0])
    array = np.ones(2, np.float32)
    kept = warm(f, [array])
    array[:] = 7.0
    assert kept.tolist() == [1.0, 1.0]
    assert f([array]).tolist() == [7.0, 7.0]


def test_aliases_and_closed_over_variables_go_by_the_key():
    v, w, closed = ll.Variable(1.0), ll.Variable(2.0), ll.Variable(3.0)

    @ll.function
    def f(vs):
        vs[0].assign_add(1.0)
        return vs[1] + closed

    warm(f, [v, w])
    assert f([v, v]).item() == v.read_value().item() + 3.0
    assert f([w, closed]).item() == 6.0
    assert f([closed, w]).item() == 4.0 + w.read_value().item()


def test_a_default_that_changes_is_seen():
    setting = [1, 2]
    f = ll.function(lambda l, s=setting: l[0] * s[0])
    assert warm(f, [T]).tolist() == [1.0, 2.0]
    setting[0] = 5
    assert f([T]).tolist() == [5.0, 10.0]


def test_clearing_and_running_eagerly_forget_guards():
    ran = []
    f = ll.function(lambda l: ran.append(1) or l[0] + 1.0)
    warm(f, [T])
    f.run_eagerly = True
    f([T])
    assert len(ran) == 2
    f.run_eagerly = False
    warm(f, [T])
    f.clear_cache()
    f([T])
    assert len(ran) == 3


def test_a_guard_keeps_no_object_alive():
    thing = Thing()
    f = ll.function(lambda x, o: x[0] + 1.0)
    warm(f, [T], thing)
    died = weakref.ref(thing)
    del thing
    gc.collect()
    assert died() is None
    f([T], None)
    assert f.trace_count == 2


def test_calls_that_differ_each_time_get_no_more_guards():
    f = ll.function(lambda d: d["x"] * 2.0, reduce_retracing=True)
    for n in range(1, 60):
        f({"x": ll.ones(n)})
    assert f.trace_count == 2
    assert f.trace_cache.guards.by_form == {1: ()}
    assert f({"x": ll.ones(3)}).tolist() == [2.0] * 3


def test_least_recently_used_counts_guarded_calls():
    f = ll.function(lambda d, n: d["x"] * n, cache_size=2)
    warm(f, {"x": T}, 1)
    f({"x": T}, 2)
    f({"x": T}, 1)
    f({"x": T}, 3)
    assert [entry.key.parts[-1].value for entry in f.trace_cache] == [1, 3]
