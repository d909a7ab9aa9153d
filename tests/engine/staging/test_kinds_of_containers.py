"""Dictionaries and lists of other types arrive in a staged function, and come back, as what they were."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any

import pytest

import limelight as ll


class Named(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


@pytest.mark.parametrize(
    "given",
    [
        defaultdict(list, b=[1.0], a=[2.0]),
        OrderedDict(b=1.0, a=2.0),
        Counter("aab"),
        Named(b=1.0, a=2.0),
        Row([1.0, 2.0]),
        Row([[1.0], 2.0]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_container_keeps_its_type(given: Any) -> None:
    seen = []

    @ll.function
    def f(x: Any) -> Any:
        seen.append(type(x))
        return x

    result = f(given)
    assert seen == [type(given)]
    assert type(result) is type(given)
    assert list(result) == list(given) or isinstance(given, Row)


def test_missing_keys_of_a_default_dictionary_are_made() -> None:
    @ll.function
    def f(d: Any) -> Any:
        return len(d["missing"]), d["there"] * 2.0

    n, doubled = f(defaultdict(list, there=ll.ones(2)))
    assert (n.item(), doubled.tolist()) == (0, [2.0, 2.0])


def test_attributes_of_a_subclass_arrive() -> None:
    given = Named(x=ll.ones(2))
    given.scale = 3.0  # type: ignore[attr-defined]
    assert ll.function(lambda d: d["x"] * d.scale)(given).tolist() == [3.0, 3.0]
