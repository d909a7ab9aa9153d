"""Dictionaries and lists of other types arrive in a staged function, and come back, as what they were."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any

import pytest

import limelight as ll
from limelight.errors import LostChangeWarning


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

    with pytest.warns(LostChangeWarning, match="missing"):
        n, doubled = f(defaultdict(list, there=ll.ones(2)))
    assert (n.item(), doubled.tolist()) == (0, [2.0, 2.0])


@pytest.mark.parametrize("give", [lambda d: d, lambda d: [d], lambda d: {"d": d}])
def test_another_type_or_factory_is_another_trace(give: Any) -> None:
    @ll.function
    def f(x: Any) -> Any:
        d = x if isinstance(x, dict) and "x" in x else next(iter(x.values() if isinstance(x, dict) else x))
        return (
            d["x"] + {dict: 0.0, Named: 1.0, defaultdict: 2.0}[type(d)] + float(getattr(d, "default_factory", 0) is int)
        )

    x = ll.constant(1.0)
    kinds = [{"x": x}, Named(x=x), defaultdict(list, x=x), defaultdict(int, x=x)]
    for _ in range(4):  # from then on calls are compared with an earlier one
        assert [f(give(d)).item() for d in kinds] == [1.0, 2.0, 3.0, 4.0]
