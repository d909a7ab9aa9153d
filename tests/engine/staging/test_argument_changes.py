"""A change of a container that was passed is lost, and said at the line that makes it."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from typing import Any

import pytest

import limelight as ll
from limelight.errors import LostChangeWarning

T = ll.constant([1.0, 2.0])


@dataclasses.dataclass
class Setting:
    rate: Any = 1.0


def told(body: Any, *args: Any, **kwargs: Any) -> list[str]:
    """The paths that a call warns of, and what stands on the line that it names."""
    f = ll.function(body)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        f(*args, **kwargs)
        f(*args, **kwargs)
    if not heard:
        return []
    [warning] = heard
    assert warning.category is LostChangeWarning
    assert warning.filename == __file__
    line = inspect.getsource(inspect.getmodule(told)).splitlines()[warning.lineno - 1]
    return [*str(warning.message).partition("(")[2].partition("),")[0].replace("`", "").split(", "), line.strip()]


def sets(d, x):
    y = d["a"] * x
    d["n"] = y
    return y


def overwrites(d, x):
    d["a"] = x * 2
    return x


def takes_out(d, x):
    return d.pop("a") * x


def deletes(d, x):
    del d["a"]
    return x


def appends(d, x):
    d["l"].append(x)
    return x


def sorts_keyword(x, *, d):
    d["l"].reverse()
    return x


def of_the_rest(*rest):
    rest[1]["s"].rate = 2.0
    return rest[0]


def within(**named):
    named["d"]["k"] = None
    return named["d"]["a"]


def many(d, x):
    for name in "abcde":
        d[name] = x
    return x


@pytest.mark.parametrize(
    ("body", "args", "kwargs", "expected"),
    [
        (sets, ({"a": T}, T), {}, ['d["n"]', 'd["n"] = y']),
        (overwrites, ({"a": T}, T), {}, ['d["a"]', 'd["a"] = x * 2']),
        (takes_out, ({"a": T}, T), {}, ['d["a"]', 'return d.pop("a") * x']),
        (deletes, ({"a": T}, T), {}, ['d["a"]', 'del d["a"]']),
        (appends, ({"l": [T]}, T), {}, ['d["l"][1]', 'd["l"].append(x)']),
        (sorts_keyword, (T,), {"d": {"l": [T, 1]}}, ['d["l"][0]', 'd["l"][1]', 'd["l"].reverse()']),
        (of_the_rest, (T, {"s": Setting()}), {}, ['rest[1]["s"].rate', "def of_the_rest(*rest):"]),
        (within, (), {"d": {"a": T}}, ['d["k"]', "def within(**named):"]),
        (many, ({}, T), {}, ['d["a"]', 'd["b"]', 'd["c"]', "2 more", "d[name] = x"]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_each_change_is_named_with_its_line(body, args, kwargs, expected):
    assert told(body, *args, **kwargs) == expected


def test_nothing_is_said_where_nothing_is_lost():
    def copies(d, x):
        d = dict(d)
        d["n"] = x
        return d["n"]

    def returns(d, x):
        d["a"] = x * 2
        return x, {"all": d}

    def reads(d, x):
        for key in sorted(d):
            x = x + d[key]
        return x

    def own(d, x):
        out = []
        out.append(d["a"])
        return out

    def of_keywords(x, **named):
        named["d"] = x
        return named

    for body in (copies, returns, reads, own):
        assert told(body, {"a": T, "b": T}, T) == []
    assert told(of_keywords, T, a=T) == []


def test_what_lies_in_a_returned_container_is_not_lost_and_what_lies_beside_it_is():
    def body(d):
        d["in"]["n"] = T
        d["out"]["n"] = T
        return d["in"]

    assert told(body, {"in": {}, "out": {}})[0] == 'd["out"]["n"]'


def test_a_change_by_a_helper_is_told_at_the_function():
    def change(d):
        d["n"] = 1

    def body(d):
        change(d)
        return d["a"]

    assert told(body, {"a": T}) == ['d["n"]', "def body(d):"]


def test_side_effects_tells_of_it_too():
    f = ll.function(sets)
    with pytest.warns(LostChangeWarning):
        f({"a": T}, T)
    [record] = ll.explain.side_effects(f).records
    assert (record.kind, record.what) == ("lost change", 'd["n"]')
    assert str(record.line).startswith("test_argument_changes.py line")
    assert "Instead: Return `d`" in str(record)


def test_declared_signatures_methods_and_partial_functions():
    class Model:
        @ll.function
        def step(self, d):
            d["n"] = 1
            return d["a"]

    eager = ll.function(lambda d: d.pop("a"), run_eagerly=True)
    declared = ll.function(lambda d: d.pop("a"), input_signature=[{"a": ll.TensorSpec((2,))}])
    for call in (declared, eager, Model().step):
        with pytest.warns(LostChangeWarning, match=r'`d\["[an]"\]`'):
            call({"a": T})


EQUAL = {
    "float": (lambda: 1.5, lambda x: float(repr(x))),
    "int": (lambda: 10**6, lambda x: int(str(x))),
    "nan": (lambda: float("nan"), lambda x: float("nan")),
    "str": (lambda: "a word", lambda x: "".join(list(x))),
    "complex": (lambda: 1.5j, lambda x: complex(repr(x))),
    "bytes": (lambda: b"two words", lambda x: bytes(bytearray(x))),
}


@pytest.mark.parametrize("kind", EQUAL)
def test_an_equal_value_in_place_of_another_is_no_change(kind):
    make, again = EQUAL[kind]

    def body(items, x):
        items[0] = again(items[0])
        return x

    assert again(make()) is not make()
    assert told(body, [make()], T) == []


@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), (1, 1.0), (1, True), (1.0, 2.0), ("a", "b"), (1, None)])
def test_what_python_takes_for_equal_and_is_not_is_a_change(before, after):
    def body(items, x):
        items[0] = after
        return x

    assert told(body, [before], T)[0] == "items[0]"


def test_equal_tensors_are_told_apart_where_the_trace_is_for_others_too():
    def body(items, x):
        items[0] = ll.constant([1.0, 2.0])
        return x

    assert told(body, [T], T)[0] == "items[0]"
    eager = ll.function(body, run_eagerly=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eager([ll.constant([1.0, 2.0])], T)
    with pytest.warns(LostChangeWarning):
        eager([T + 1], T)


def test_a_warning_that_is_raised_leaves_no_trace_and_no_state():
    made = []

    def body(d, x):
        if not made:
            made.append(ll.Variable(1.0))
        d["n"] = x
        return x * made[0]

    f = ll.function(body)
    for _ in range(3):
        with warnings.catch_warnings(), pytest.raises(LostChangeWarning, match=r"d\[\"n\"\]"):
            warnings.simplefilter("error")
            f({}, T)
        assert len(list(f.trace_cache)) == 0
        made.clear()
    with pytest.warns(LostChangeWarning):
        assert f({}, T).tolist() == [1.0, 2.0]
    assert len(list(f.trace_cache)) == 1
    assert f({}, T).tolist() == [1.0, 2.0]
