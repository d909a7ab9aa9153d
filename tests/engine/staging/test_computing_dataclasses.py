"""Dataclasses and attrs classes that compute when they are made: as nests they are copied as they are."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import attrs
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import limelight as ll

T = ll.constant([1.0, 2.0])
runs: list[Any] = []


@dataclasses.dataclass
class Doubles:
    a: Any
    b: Any = 0

    def __post_init__(self) -> None:
        runs.append(self)
        self.b = self.a * 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        runs.append(self)
        object.__setattr__(self, "b", self.a + 1)


@dataclasses.dataclass
class WithInitVar:
    a: Any
    given: dataclasses.InitVar[Any] = 3.0
    b: Any = dataclasses.field(init=False)

    def __post_init__(self, given: Any) -> None:
        runs.append(self)
        self.b = self.a * given


@dataclasses.dataclass(slots=True)
class Slotted:
    a: Any
    b: Any = 0.0

    def __post_init__(self) -> None:
        runs.append(self)
        self.b = self.b + self.a


@dataclasses.dataclass
class KeepsMore:
    a: Any

    def __post_init__(self) -> None:
        runs.append(self)
        self.b = self.a * 5

    @functools.cached_property
    def total(self) -> Any:
        return ll.sum(self.a)


@dataclasses.dataclass
class Checks:
    a: Any
    b: Any = 1.0

    def __post_init__(self) -> None:
        runs.append(self)
        if not isinstance(self.a, np.ndarray):
            raise TypeError("an array")


@dataclasses.dataclass
class Inherits(Doubles):
    c: Any = dataclasses.field(default_factory=lambda: T)


@dataclasses.dataclass(init=False)
class OwnInit:
    a: Any
    b: Any

    def __init__(self, both: Any) -> None:
        runs.append(self)
        self.a, self.b = both, both * 2


@attrs.define
class Attrs:
    _a: Any
    b: Any = attrs.field(init=False)

    @property
    def a(self) -> Any:
        return self._a

    def __attrs_post_init__(self) -> None:
        runs.append(self)
        self.b = self._a * 2


KINDS = [Doubles, Frozen, WithInitVar, Slotted, KeepsMore, Inherits, OwnInit, Attrs]


@pytest.mark.parametrize("kind", KINDS)
def test_no_argument_is_made_anew(kind: Any) -> None:
    value = kind(T)
    n, wanted = len(runs), (value.a.tolist(), value.b.tolist())
    f = ll.function(lambda p: p)
    for _ in range(2):
        result = f(value)
        assert type(result) is kind
        assert (result.a.tolist(), result.b.tolist()) == wanted
    assert f.trace_count == 1
    assert ll.function(lambda p: ll.sum(p.a) + ll.sum(p.b))(value).item() == pytest.approx(sum(map(sum, wanted)))
    assert ll.grad(lambda p: ll.sum(p.b * 3))(value).b.tolist() == [3.0, 3.0]
    assert ll.vectorize(lambda p: p.b)(value).tolist() == wanted[1]
    assert len(runs) == n


def test_a_check_does_not_see_what_stands_for_its_fields() -> None:
    value = Checks(np.ones(2, np.float32))
    assert ll.function(lambda p: p.a * p.b)(value).tolist() == [1.0, 1.0]


def test_what_a_cached_property_keeps_is_no_part() -> None:
    value = KeepsMore(T)
    assert ll.tree.leaves(value) == [value.a, value.b]
    assert value.total.item() == 3.0
    assert len(ll.tree.leaves(value)) == 2
    changed = ll.tree.map(lambda x: x * 10, value)
    assert changed.total.item() == 30.0


@hypothesis.given(st.sampled_from(KINDS), st.sampled_from([list, tuple, lambda x: {"k": x[0]}]), st.integers(1, 3))
def test_flattening_and_back(kind: Any, around: Any, n: int) -> None:
    tree = around([kind(ll.constant(float(i))) for i in range(n)])
    leaves, structure = ll.tree.flatten(tree)
    n_runs = len(runs)
    again = ll.tree.unflatten(structure, leaves)
    assert ll.tree.structure(again) == structure
    assert all(a is b for a, b in zip(ll.tree.leaves(again), leaves, strict=True))
    assert len(runs) == n_runs


def test_another_set_of_attributes_is_another_trace() -> None:
    f = ll.function(lambda p: p.a + (p.more if hasattr(p, "more") else 0.0))
    value = KeepsMore(T)
    for _ in range(3):
        assert f(value).tolist() == [1.0, 2.0]
    value.more = T
    assert f(value).tolist() == [2.0, 4.0]
    del value.b
    assert f(value).tolist() == [2.0, 4.0]
    assert f.trace_count == 3


def test_a_new_attribute_in_a_staged_function_is_a_lost_change() -> None:
    def f(p: Any) -> Any:
        p.more = p.a
        return p.a

    with pytest.warns(ll.errors.LostChangeWarning, match=r"p\.more"):
        ll.function(f)(KeepsMore(T))
