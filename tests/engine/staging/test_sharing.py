"""What is one and the same among the arguments of a staged function is so to its code, and in its results."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.staging import sharing

T = ll.constant([1.0, 2.0])


def appended(a, b, x):
    b.append(x)
    return len(a), a, b


def replaced(d, e, x):
    e["w"] = e["w"] * x
    return d["w"], d, e


def moved(rows, row, x):
    row[0], row[1] = row[1], row[0] + x
    return rows[0][0] - rows[-1][1], rows, row


def asked(a, b, x):
    return (a is b, x * 1.0) if len(a) == 2 else (b is not a, x)


def by_number(a, b, x):
    return id(a) == id(b), operator.is_not(a, b), x


def helped(a, b, x):
    return is_one(a, b), x


def is_one(a, b):
    return a is b


def watched(a, b, x):
    with ll.GradientTape() as tape:
        tape.watch(a)
        y = ll.sum(a * b * x)
    return tape.gradient(y, a)


def lists():
    one = [ll.ones(2), ll.zeros(2)]
    return [(one, one), (one, list(one)), (list(one), one), (one, one)]


def dictionaries():
    one = {"w": ll.ones(2)}
    return [(one, dict(one)), (one, one), (dict(one), one)]


def rows():
    one = [ll.ones(2), ll.zeros(2)]
    return [([one, one], one), ([one, list(one)], one), ([list(one), one], one), ([one, one], list(one))]


def tensors():
    return [(T, T), (T, T + 1), (T, ll.constant([1.0, 2.0])), (T, T)]


def plain_values(result: Any) -> Any:
    """A result, with arrays for tensors, and with a number for each container: the same for the same."""
    met: dict[int, int] = {}

    def visit(x: Any) -> Any:
        if isinstance(x, (list, dict)):
            number = met.setdefault(id(x), len(met))
            return number, [visit(item) for item in (x.values() if isinstance(x, dict) else x)]
        return [visit(item) for item in x] if isinstance(x, tuple) else np.asarray(x).tolist()

    return visit(result)


@pytest.mark.parametrize("calls_first", [True, False])
@pytest.mark.parametrize(
    ("body", "calls"),
    [
        (appended, lists), (replaced, dictionaries), (moved, rows), (asked, lists), (asked, tensors),
        (by_number, tensors), (helped, tensors), (helped, lists), (watched, tensors),
    ],
)  # fmt: skip
def test_a_trace_tells_apart_what_python_does(body: Any, calls: Any, calls_first: bool) -> None:
    staged = ll.function(body)
    ways = list(range(len(calls()))) * 3
    for way in ways if calls_first else reversed(ways):
        plain = body(*calls()[way], T)
        assert plain_values(staged(*calls()[way], T)) == plain_values(plain)


@pytest.mark.parametrize("by_name", [True, False])
def test_arguments_by_name_and_in_each_other(by_name: bool) -> None:
    @ll.function
    def f(a, *, b, **more):
        b.append(a[0])
        return len(a), len(more["c"]["k"]), (a, b, more)

    def lengths(a, b, c):
        result = f(a=a, b=b, c={"k": c}) if by_name else f(a, b=b, c={"k": c})
        return [int(n) for n in result[:2]]

    one, other = [T], [T]
    assert lengths(one, one, one) == [2, 2]
    assert lengths(one, other, other) == [1, 2]
    assert lengths(other, one, [T]) == [1, 1]
    assert lengths(one, one, one) == [2, 2]
    assert f.trace_count == 3


def test_a_miss_says_what_is_the_same():
    f = ll.function(appended)
    one = [T]
    f(one, one, T)
    f(one, [T], T)
    assert "what is one and the same among the arguments b is a -> nothing" in str(f.trace_cache[1].reason)
    assert not f.explain([T], [T], T).miss
    assert f.explain(one, one, T)


def test_functions_that_cannot_tell_share_traces():
    f = ll.function(lambda a, b: a[0] + b[0])
    one = [T]
    f(one, [T])
    f(one, one)
    f(T, T)
    f(T, T + 1)
    assert f.trace_count == 2


def summed(a, b, x):
    return a[0] + 2.0 * b[0] + x, {"a": a, "b": b}


def summed_by_name(a, b, x):
    return a["w"] + 2.0 * b["w"] + x


def summed_deep(rows, row, x):
    return rows[0][0] + 2.0 * rows[-1][1] + 3.0 * row[0] + x


def other_values(calls: list[Any]) -> list[Any]:
    """The same calls, with other numbers at each place of each of them."""
    numbers = iter(range(100))

    def visit(x: Any, made: dict[int, Any]) -> Any:
        if id(x) in made:
            return made[id(x)]
        if isinstance(x, ll.Tensor):
            return x + float(next(numbers))
        if isinstance(x, tuple):
            return tuple(visit(item, made) for item in x)
        items = x.items() if isinstance(x, dict) else enumerate(x)
        parts = {key: visit(item, made) for key, item in items}
        made[id(x)] = parts if isinstance(x, dict) else list(parts.values())
        return made[id(x)]

    return [visit(call, {}) for call in calls]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize(
    ("body", "calls"), [(summed, lists), (summed_by_name, dictionaries), (summed_deep, rows), (summed, tensors)]
)
def test_code_that_only_reads_reads_each_of_its_arguments(body: Any, calls: Any, first: int) -> None:
    """A trace made for arguments that are one and the same reads one of them, and serves no others."""
    staged = ll.function(body)
    ways = other_values(calls()) * 2
    for way in [*ways[first:], *ways[:first]]:
        plain, found = body(*way, T), staged(*way, T)
        for wanted, got in zip(ll.nest.leaves_of(plain), ll.nest.leaves_of(found), strict=True):
            assert np.array_equal(got.numpy(), wanted.numpy())


def test_results_that_are_one_stay_one():
    @ll.function
    def f(x):
        made = [x * 2.0]
        return made, {"again": made}, made[0], x

    a, b, y, x = f(T)
    assert a is b["again"]
    assert y is a[0]
    assert x is not y
    with ll.GradientTape() as tape:
        tape.watch(T)
        a, b, y, _ = f(T)
        z = ll.sum(y * b["again"][0])
    assert tape.gradient(z, T).numpy().tolist() == [8.0, 16.0]


def test_branches_keep_their_own_results():
    @ll.function
    def f(x):
        return ll.cond(x[0] > 0, lambda: [x, x], lambda: [x, x * 2.0])

    assert [y.numpy().tolist() for y in f(-T)] == [[-1.0, -2.0], [-2.0, -4.0]]
    assert [y.numpy().tolist() for y in f(T)] == [[1.0, 2.0]] * 2


def test_words_and_places():
    one = [T, 1.0]
    found = sharing.of((one, {"k": one, "t": T}), ("a", "b"))
    assert found.words == 'b["k"] is a, b["t"] is a[0]'
    assert found.leaves == {2: 0, 3: 1, 4: 0}
    rebuilt = sharing.rebuilt(sharing.nest.flatten((one, {"k": one, "t": T}))[1], [T, 1.0, T, 1.0, T], found)
    assert rebuilt[0] is rebuilt[1]["k"]


def test_concrete_functions_take_arguments_of_their_own():
    spec = [ll.TensorSpec((2,))]
    f = ll.function(summed)
    concrete = f.get_concrete_function(spec, spec, spec[0])
    a, b = [T], [T * 10.0]
    assert concrete(a, b, T)[0].numpy().tolist() == summed(a, b, T)[0].numpy().tolist()
    f(a, a, T)
    assert f.trace_cache[-1] is concrete


@pytest.mark.usefixtures("no_garbage")
def test_a_trace_for_the_same_arguments_leaves_no_garbage():
    """Which would be searched for as a leak, by each such trace."""
    f = ll.function(lambda a, b: a["w"] + b["w"])
    f(same := {"w": T}, same)
    assert f._tracer() is None


def test_a_trace_for_the_same_arguments_refuses_others(tmp_path):
    f = ll.function(summed)
    a, b = [T], [T * 10.0]
    f(a, a, T)
    trace = f.trace_cache[0]
    assert trace(a, a, T)[0].numpy().tolist() == [4.0, 8.0]
    with pytest.raises(ll.errors.SignatureError, match="traced for a call in which b is a, and reads one of them"):
        trace(a, b, T)
    with pytest.raises(ll.errors.ExportError, match="for calls in which b is a"):
        ll.save(f, tmp_path / "f.ll")
    f.clear_cache()
    f(a, b, T)
    ll.save(f, tmp_path / "f.ll")
    assert ll.load(tmp_path / "f.ll")(a, b, T)[0].numpy().tolist() == [22.0, 44.0]


@settings(max_examples=8)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=4))
def test_guards_of_calls_ask_which_containers_are_the_same(patterns):
    @ll.function
    def f(x, rows, *, last):
        return x["w"] + 10.0 * rows[0]["w"] + 100.0 * rows[1]["w"] + 1000.0 * last["w"]

    f({"w": ll.constant(0.0)}, [{"w": ll.constant(0.0)}] * 2, last={"w": ll.constant(0.0)})
    parts = [{"w": ll.constant(float(i))} for i in (1, 2, 3)]
    for _ in range(5):  # from the third hit on a guard answers
        for a, b, c, d in patterns:
            result = f(parts[a], [parts[b], parts[c]], last=parts[d]).item()
            assert result == (a + 1) + 10 * (b + 1) + 100 * (c + 1) + 1000 * (d + 1)
    guards = [guard for form in f.trace_cache.guards.by_form.values() for guard in form]
    assert guards
