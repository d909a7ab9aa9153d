"""Dictionaries and lists of other types arrive in a staged function, and come back, as what they were."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import limelight as ll
from limelight.errors import LostChangeWarning, SignatureError


class Named(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


class Sized(list[Any]):
    def __new__(cls, size: int) -> Any:  # as users write it
        return super().__new__(cls)

    def __init__(self, size: int) -> None:
        super().__init__([1.0] * size)


class Filled(OrderedDict[str, Any]):
    def __new__(cls, value: float) -> Any:
        return super().__new__(cls)

    def __init__(self, value: float) -> None:
        super().__init__(b=value, a=value)


class Config(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


@pytest.mark.parametrize(
    "given",
    [
        defaultdict(list, b=[1.0], a=[2.0]),
        OrderedDict(b=1.0, a=2.0),
        Counter("aab"),
        Named(b=1.0, a=2.0),
        Row([1.0, 2.0]),
        Row([[1.0], 2.0]),
        Sized(2),
        Filled(1.0),
        Config(b=1.0, a=2.0),
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
    assert list(result) == list(given) or isinstance(given, list)


def test_items_that_are_attributes_too_stay_both() -> None:
    @ll.function
    def f(config: Any) -> Any:
        config.x = config.x * 2.0
        config["y"] = config["x"] + 1.0
        return config

    for _ in range(2):
        result = f(Config(x=ll.constant(2.0), z=1.0))
        assert list(result) == ["x", "z", "y"]
        assert [result.x.item(), result["x"].item(), result.y.item(), result["y"].item()] == [4.0, 4.0, 5.0, 5.0]
    assert f.trace_count == 1


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


class Pair(tuple[Any, ...]):  # noqa: SLOT001  # it has attributes
    def first(self) -> Any:
        return self[0]


class Point(NamedTuple):
    x: Any


class Marked(Point):
    pass


def with_attributes(made: Any, **attributes: Any) -> Any:
    vars(made).update(attributes)
    return made


MADE: list[Callable[[], Any]] = [
    lambda: Row([ll.ones(2), 1.0]),
    Row,
    lambda: Named(b=ll.ones(2), a=1.0),
    lambda: Pair((ll.ones(2), 1.0)),
    lambda: Marked(ll.ones(2)),
]


@pytest.mark.parametrize("make", MADE)
def test_attributes_travel(make: Callable[[], Any]) -> None:
    seen = []

    @ll.function
    def f(c: Any, x: Any) -> Any:
        seen.append((type(c), c.rate))
        return c, c.scale * c.rate + x

    for rate, scale in [(2.0, 1.0), (2.0, 3.0), (4.0, 3.0), (2.0, 5.0), (2.0, 5.0), (2.0, 5.0), (2.0, 5.0)]:
        given = with_attributes(make(), rate=rate, scale=ll.constant(scale))
        result, y = f(given, ll.ones(2))
        assert y.tolist() == [rate * scale + 1.0] * 2
        assert (type(result), result.rate.item(), result.scale.item()) == (type(given), rate, scale)
        assert len(result) == len(given)
    assert seen == [(type(make()), 2.0), (type(make()), 4.0)]
    assert "c.scale: f32[]" in f.trace_cache[0].signature


@pytest.mark.parametrize("make", MADE)
def test_a_new_attribute_is_another_trace(make: Callable[[], Any]) -> None:
    f = ll.function(lambda c: getattr(c, "bias", 0.0) + ll.ones(1))
    given = make()
    for _ in range(6):
        assert f(given).tolist() == [1.0]
    with_attributes(given, bias=1.0)
    for _ in range(6):
        assert f(given).tolist() == [2.0]
    assert f.trace_count == 2


def test_an_item_and_an_attribute_of_one_name_are_two() -> None:
    f = ll.function(lambda d: d["n"] if "n" in d else d.n * 2.0)
    assert f(Named(n=3.0)).item() == 3.0
    assert f(with_attributes(Named(), n=3.0)).item() == 6.0


def test_an_attribute_that_is_set_is_told_of() -> None:
    def f(c: Any) -> Any:
        c.total = c[0] * 2.0
        return c.total

    with pytest.warns(LostChangeWarning, match=r"c\.total"):
        ll.function(f)(Row([ll.ones(2)]))


def test_what_cannot_travel_is_refused() -> None:
    f = ll.function(lambda c: c)
    with pytest.raises(SignatureError, match=r"argument `c\.names`: a set"):
        f(with_attributes(Row([1.0]), names={"a"}))
    with pytest.raises(SignatureError, match=r"a str at `result\.name`"):
        f(with_attributes(Row([1.0]), name="a"))


def test_records_of_python_are_plain_tuples() -> None:
    assert ll.function(lambda t: t[0])(time.gmtime(0)).item() == 1970
