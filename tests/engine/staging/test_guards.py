"""A guard lets a call through to the entry that its key leads to, or does not know it."""

from __future__ import annotations

import collections
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
MANY = [ll.Variable([float(i), 0.0]) for i in range(5)]
LEAVES = [
    *(ll.ones(2), ll.zeros(2), ll.ones(3), ll.ones(2, dtype="float64"), ll.constant(1.0), ll.ones((1, 2))),
    *(np.ones(2, np.float32), np.ones(2), np.float32(1.0), np.int64(3), np.ones((2, 1), np.float32)),
    *(0, 1, True, False, 1.0, 0.0, -0.0, float("nan"), float("inf"), 2**70, 1e300, 1j, -1j, "a", "b", b"a", None, ...),
    *(range(2), range(3), int, float, slice(1), slice(2), Colour.RED, Colour.BLUE, np.dtype("int8"), ll.float32),
    *THINGS,
    *VARIABLES,
]  # fmt: skip
T, U, V = ll.constant([1.0, 2.0]), ll.ones(3), VARIABLES
CONTAINERS = [
    *([T], [T] * 2, [T] * 5, [T] * 6, (T,) * 5, [T] * 4 + [U], [U] * 5, [T] * 4 + [1.0], [1.0] * 5, [], (), {}),
    *([T, [T]], [[T], T], [(T,), T], ((T,), T), [None, T], [T, None]),
    *({"a": T}, {"b": T}, {"a": T, "b": U}, {"b": U, "a": T}, {"a": U, "b": T}, {"c d": T}, {"a": {"a": T}}),
    *({1: T}, {True: T}, {1.0: T}, {"a": [T]}, {"a": (T,)}, collections.OrderedDict(a=T)),
    *(Pair(T, U), Pair(U, T), (T, U), Fields(T, U), Fields(U, T), Fields(T, 1), Fields(T, 1.0), Fields(T, True)),
    *(V, V[:2], V[1::-1], [V[0]] * 2, [V[1]] * 2, [V[2], V[0]], [V[0]] * 5, [V[0], V[0], V[1]], {"a": V[0], "b": V[0]}),
    *({"a": V[0], "b": V[1]}, [V[0], T], [T, V[0]], [THINGS[0]], [THINGS[1]]),
    *(MANY, MANY[::-1], MANY[:4], [*MANY[:4], MANY[0]], [*MANY[:4], V[2]], [V[2], *MANY[1:]], [*MANY[:4], T]),
    *([-0.0, 0.0], [0.0, 0.0], [float("nan")]),
]  # fmt: skip


@pytest.mark.parametrize("samples", [LEAVES, CONTAINERS], ids=["leaves", "containers"])
def test_a_guard_lets_through_what_its_key_would_find(samples):
    for known in samples:
        f = ll.function(lambda x, y=1.0, *rest, key=None, **more: ll.constant(0.0))
        for _ in range(5):
            f([known], key=known)
        for other in samples:
            check(f, ([other],), {"key": other})
            check(f, ([known],), {"key": other})
            check(f, (other,), {"key": known})


def check(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Holds the guard of a call, if there is one, against its key."""
    found = f.trace_cache.guards.find(args, kwargs)
    if found is not None:
        entry, payloads = found
        call = f._call(args, kwargs)
        assert f._find(call.lookup) is entry
        inputs = [x for x, part in zip(call.leaves, entry.key.parts, strict=True) if part.is_input]
        for mine, its in zip(payloads, inputs, strict=True):
            assert mine is its._data or np.array_equal(mine, its._data)
    return found is not None


TREES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(lambda x, n: [x] * n, inner, st.integers(4, 7)),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Fields, inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(TREES, max_size=3), st.dictionaries(st.sampled_from(["key", "p", "q"]), TREES, max_size=2), TREES)
def test_a_guard_knows_the_calls_that_it_was_written_for(rest, kwargs, other):
    f = ll.function(lambda x, y=1.0, *rest, key=None, **more: ll.constant(0.0))
    for _ in range(5):
        f([T], *rest, **kwargs)
    check(f, ([T], *rest), kwargs)
    for i in range(len(rest)):
        check(f, ([T], *rest[:i], other, *rest[i + 1 :]), kwargs)
    for name in kwargs:
        check(f, ([T], *rest), kwargs | {name: other})


def test_most_kinds_of_arguments_have_guards():
    without = []
    for known in [*LEAVES, *CONTAINERS]:
        f = ll.function(lambda x, y: ll.constant(0.0))
        for _ in range(5):
            f([T], known)
        if not check(f, ([T], known), {}):
            without.append(known)
    assert [repr(x) for x in without] == [repr(x) for x in CONTAINERS if is_aliased(x) or has_numbers_as_keys(x)]


def is_aliased(x: Any) -> bool:
    uids = [leaf._uid for leaf in ll.nest.flatten(x)[0] if isinstance(leaf, ll.Variable)]
    return len(uids) != len({*uids})


def has_numbers_as_keys(x: Any) -> bool:
    return isinstance(x, dict) and not all(isinstance(key, str) for key in x)


def warm(f: Any, *args: Any, **kwargs: Any) -> Any:
    for _ in range(5):
        result = f(*args, **kwargs)
    return result


def test_results_are_those_of_the_call_and_not_of_the_one_that_wrote_the_guard():
    v, w = ll.Variable([1.0, 1.0]), ll.Variable([5.0, 5.0])
    f = ll.function(lambda p, v, a, n: p["x"] * n + v + a)
    warm(f, {"x": T}, v, np.zeros(2, np.float32), n=2.0)
    assert f({"x": T * 3}, w, np.ones(2, np.float32), n=2.0).tolist() == [12.0, 18.0]
    w.assign([0.0, 0.0])
    assert f({"x": T * 3}, w, np.ones(2, np.float32), n=2.0).tolist() == [7.0, 13.0]
    assert f.trace_count == 1


def test_an_array_is_copied_for_whoever_changes_it_later():
    f = ll.function(lambda v: v[0])
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
    assert check(f, ([w, v],), {})
    assert not check(f, ([v, v],), {})
    assert not check(f, ([w, closed],), {})
    assert f([v, v]).item() == v.read_value().item() + 3.0
    assert f([w, closed]).item() == 6.0
    assert f([closed, w]).item() == 4.0 + w.read_value().item()


def test_a_default_that_changes_is_seen():
    setting = [1, 2]
    f = ll.function(lambda v, s=setting: v[0] * s[0])
    assert warm(f, [T]).tolist() == [1.0, 2.0]
    setting[0] = 5
    assert f([T]).tolist() == [5.0, 10.0]


def test_clearing_and_running_eagerly_forget_guards():
    ran = []
    f = ll.function(lambda v: ran.append(1) or v[0] + 1.0)
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


def test_a_call_without_arguments_may_get_a_guard() -> None:
    """Where another thread's interpreter hid, for a moment, that it needs none."""
    f = ll.function(lambda: ll.ones(2))
    f()
    guards, entry = f._cache.guards, f.trace_cache[0]
    guards.add(entry, f._signature, f._call((), {}), (), {}, f._closed_over)
    found = guards.find((), {})
    assert found is not None
    assert found[0] is entry
    assert found[1] == []


def test_a_mapping_that_answers_for_keys_it_lacks_is_asked_by_its_key():
    t = ll.constant([1.0, 2.0])
    f = ll.function(lambda d: d["a"] * (10 if "n" in d else 1))
    for _ in range(8):
        f(collections.defaultdict(int, {"a": t, "n": 0}))
    d = collections.defaultdict(int, {"a": t, "m": 0})
    assert f(d).tolist() == [1.0, 2.0]
    assert list(d) == ["a", "m"]
