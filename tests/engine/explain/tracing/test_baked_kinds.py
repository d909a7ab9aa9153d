"""Values that are baked in wherever a program may keep them, and what is to be written instead."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import importlib
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

X = ll.constant(1.0)


def changed(f: Any) -> dict[str, tuple[str, str]]:
    return {value.name: (value.then, value.now) for value in ll.explain.baked(f).changed}


def test_functions_and_objects_in_a_list() -> None:
    class Layer:
        def __call__(self, x: Any) -> Any:
            return x

    layers: list[Any] = [ll.tanh, Layer(), "text".join]

    @ll.function
    def f(x: Any) -> Any:
        return layers[0](layers[1](x)) if len(layers) > 1 else x

    f(X)
    assert not changed(f)
    layers[0] = ll.exp
    assert changed(f)["layers"][1].startswith("[function exp, a Layer, ")
    layers[0] = ll.tanh
    assert not changed(f)
    layers[1] = Layer()
    assert "layers" in changed(f)


def run(text: str, file: str, names: dict[str, Any]) -> None:
    """Runs a program as a notebook runs a cell: its source can be had under its file name."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)


def test_the_defaults_of_a_helper() -> None:
    names: dict[str, Any] = {"ll": ll}
    run("def helper(x, k=2.0): return x * k\nf = ll.function(lambda x: helper(x))", "<defaults 1>", names)
    names["f"](X)
    run("def helper(x, k=3.0): return x * k", "<defaults 2>", names)
    assert changed(names["f"])["helper"] == (
        "function helper {'k': 2.0} (<defaults 1> line 1)",
        "function helper {'k': 3.0} (<defaults 2> line 1)",
    )


def test_a_default_that_is_changed_in_place() -> None:
    def helper(x: Any, settings: dict[str, float] = {"rate": 2.0}) -> Any:  # noqa: B006  # what this is about
        return x * settings["rate"]

    f = ll.function(lambda x: helper(x) + 1.0)
    f(X)
    helper.__defaults__[0]["rate"] = 3.0  # type: ignore[index]
    assert changed(f)["settings['rate']"] == ("2.0", "3.0")


def scaled(rates: list[float], settings: Any, x: Any, power: int = 1) -> Any:
    return x * sum(rates) * settings.rate * power


def test_what_a_partial_function_gives() -> None:
    rates, settings = [1.0, 2.0], types.SimpleNamespace(rate=2.0)
    whole = ll.function(functools.partial(scaled, rates, settings))
    helper = functools.partial(scaled, rates, power=2)
    inside = ll.function(lambda x: helper(settings, x))
    whole(X), inside(X)
    assert "power" not in [value.name for value in ll.explain.baked(whole).records], "it is a part of the key"
    assert "power" in [value.name for value in ll.explain.baked(inside).records]
    rates[0] = 3.0
    settings.rate = 1.0
    assert changed(whole) == {"rates": ("[1.0, 2.0]", "[3.0, 2.0]"), "settings.rate": ("2.0", "1.0")}
    assert "rates" in changed(inside)


def test_what_is_imported_within_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "own_settings.py").write_text("rate = 2.0\nscale = 3.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("own_settings")
    monkeypatch.setitem(sys.modules, "own_settings", module)

    @ll.function
    def f(x: Any) -> Any:
        import own_settings
        from own_settings import scale

        return x * own_settings.rate * scale

    f(X)
    vars(module).update(rate=4.0, scale=5.0)
    assert changed(f) == {"own_settings.rate": ("2.0", "4.0"), "own_settings.scale": ("3.0", "5.0")}


Pair = collections.namedtuple("Pair", "rate")


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: float = 2.0


class Settings(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__


class Odd:
    @functools.cached_property
    def rate(self) -> float:
        return 2.0


@pytest.mark.parametrize("make", [Pair, Frozen, lambda rate: types.SimpleNamespace(rate=rate)])
def test_settings_of_all_kinds(make: Callable[..., Any]) -> None:
    settings = make(rate=2.0)
    f = ll.function(lambda x: x * settings.rate)
    f(X)
    settings = make(rate=3.0)
    (value,) = ll.explain.baked(f).changed
    assert value[:5] == ("settings.rate", "attribute", "constant", "2.0", "3.0")
    assert value.fix.startswith("pass it as an argument, F(x, ll.constant(settings.rate))")
    assert ("ll.Variable" in value.fix) == (make not in (Pair, Frozen)), "the others take no assignments"


def test_settings_that_are_dictionaries_with_attributes() -> None:
    settings = Settings(rate=2.0)
    f = ll.function(lambda x: x * settings.rate)
    f(X)
    settings["rate"] = 3.0
    assert changed(f) == {"settings": ("{'rate': 2.0}", "{'rate': 3.0}")}


def test_by_getattr_and_of_defaultdicts() -> None:
    settings, counts = types.SimpleNamespace(rate=2.0), collections.defaultdict(float, n=1.0)
    f = ll.function(lambda x: x * getattr(settings, "rate") * counts["n"])  # noqa: B009  # what this is about
    f(X)
    settings.rate, counts["n"] = 3.0, 4.0
    assert changed(f) == {"settings.rate": ("2.0", "3.0"), "counts['n']": ("1.0", "4.0")}
    assert list(counts) == ["n"]


def test_a_property_that_is_computed_once_is_no_change() -> None:
    odd = Odd()
    f = ll.function(lambda x: x * odd.rate)
    f(X)
    assert not changed(f)


def test_one_number_of_a_large_array() -> None:
    table = np.zeros(1 << 19, np.float32)
    f = ll.function(lambda x: x * ll.sum(ll.constant(table)))
    f(X)
    table[12345] = 1.0
    assert "table" in changed(f)


def test_a_number_that_counts_or_decides_is_no_variable() -> None:
    rounds, on = 2, True
    f = ll.function(lambda x: sum([x for _ in range(rounds)]) if on else x)
    f(X)
    rounds, on = 3, False
    fixes = {value.name: value.fix for value in ll.explain.baked(f).changed}
    assert fixes["rounds"] == "pass it as an argument, F(x, rounds)"
    assert "ll.Variable" not in fixes["on"]


class Rude(enum.Enum):
    A = 1

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_value_that_cannot_be_shown_does_not_hide_the_others() -> None:
    rude, rate = Rude.A, 2.0
    f = ll.function(lambda x: x * rate if rude is Rude.A else x)
    f(X)
    rate = 3.0
    assert changed(f) == {"rate": ("2.0", "3.0")}


class Registry:
    items = {"rate": 2.0}  # noqa: RUF012  # what this is about

    @classmethod
    def get(cls, name: str) -> float:
        return cls.items[name]


@pytest.mark.parametrize("owner", [Registry, Registry()])
def test_what_a_class_method_reads(monkeypatch: pytest.MonkeyPatch, owner: Any) -> None:
    f = ll.function(lambda x: x * owner.get("rate"))
    f(X)
    monkeypatch.setitem(Registry.items, "rate", 3.0)
    assert changed(f) == {"cls.items": ("{'rate': 2.0}", "{'rate': 3.0}")}


def test_a_function_whose_default_holds_the_function() -> None:
    def helper(x: Any, known: list[Any] = []) -> Any:  # noqa: B006  # what this is about
        return x * 2.0

    known = helper.__defaults__[0]  # type: ignore[index]  # it has one
    known.append(helper)
    steps = [helper, 3.0]

    @ll.function
    def f(x: Any) -> Any:
        for one in steps:
            x = one(x) if callable(one) else x * one
        return x

    f(X)
    assert [value.name for value in ll.explain.baked(f).records] == ["steps"]
    assert not changed(f)
    known.append(1.0)
    assert set(changed(f)) == {"steps"}
