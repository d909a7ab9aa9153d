"""Tests of results: the code that puts a nested one together does as the walk over its structure."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import Any, NamedTuple

import pytest

import limelight as ll
from limelight.staging import structured_outputs
from limelight.staging.guards import HITS
from limelight.staging.structured_outputs import Outputs, split


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    loss: Any
    more: Any


def _tensors(count: int) -> list[ll.Tensor]:
    return [ll.constant(float(i)) for i in range(count)]


A, B, C = _tensors(3)
NESTS = [
    (),
    [],
    {},
    None,
    (A,),
    [A, None, (B, [C])],
    {"z": A, "a": {"loss": B, "'\"\n": [None]}, "m": (C,)},
    {3: A, "three": B},
    {True: A},
    collections.defaultdict(list, {"b": A, "a": B}),
    collections.OrderedDict(b=A, a=B),
    Pair(A, [Pair(B, None)]),
    Record(A, {"pair": Pair(B, C)}),
    functools.reduce(lambda inner, _: [inner, A], range(300), A),  # more than Python's parser takes
]


@pytest.mark.parametrize("nest", NESTS)
def test_compiled_results_are_those_of_the_walk(nest: Any) -> None:
    tensors, outputs = split(nest, "f")
    given = _tensors(len(tensors))
    walked, compiled = outputs.rebuild(given), outputs.compiled("f")(given)
    assert type(compiled) is type(walked)
    assert str(compiled) == str(walked)  # keys in their order, too


def test_a_generator_is_the_one_that_the_trace_refers_to() -> None:
    generator = ll.random.Generator(0)
    x = ll.constant(1.0)
    _, outputs = split({"draws": generator, "x": x}, "f")
    result = outputs.compiled("f")([x])
    assert result["draws"] is generator
    assert result["x"] is x


def test_leaves_and_containers_that_are_the_same_stay_so() -> None:
    @ll.function
    def shared(x: Any) -> Any:
        y, rows = x + 1, [x + 2]
        return {"y": y, "again": y, "rows": rows}, [y]

    @ll.function
    def one_list(x: Any) -> Any:
        rows = [x + 2]
        return rows, rows

    for _ in range(HITS + 3):
        first, second = shared(A)
        assert first["y"] is first["again"] is second[0]
        first["rows"].append(None)  # the caller's own, at each call a new one
        assert len(first["rows"]) == 2
        rows, same = one_list(A)
        assert rows is same


def test_a_result_has_code_of_its_own_from_as_many_hits_on_as_a_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    compiled = Outputs.compiled

    def count(self: Outputs, name: str) -> Any:
        calls.append(name)
        return compiled(self, name)

    monkeypatch.setattr(Outputs, "compiled", count)

    @ll.function
    def nested(x: Any) -> Any:
        return {"loss": x + 1, "more": (x + 2, [x + 3])}

    made = []
    for _ in range(HITS + 3):
        assert str(nested(A)) == str({"loss": A + 1, "more": (A + 2, [A + 3])})
        made.append(len(calls))
    assert made == [0] * HITS + [1] * 3


def test_a_result_of_many_leaves_has_no_code_of_its_own() -> None:
    tensors, outputs = split([A] * (structured_outputs._MOST + 1), "f")
    assert len(outputs.compiled("f")(tensors)) == len(tensors)
