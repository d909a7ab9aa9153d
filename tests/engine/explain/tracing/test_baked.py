"""What became a constant of a trace is listed, then and now (behaviours 11, 12, 150; state read while tracing)."""

from __future__ import annotations

import gc
import linecache
import sys
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.explain.tracing import snapshot as snapshots

SCALE: Any = 2.0
LIMITS: Any = {"low": 0.0, "high": 1.0}
WEIGHT: Any = ll.constant([1.0, 2.0])
TABLE: Any = np.arange(4.0, dtype=np.float32)
MODE: Any = "train"


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCALE", "LIMITS", "WEIGHT", "TABLE", "MODE"):
        monkeypatch.setitem(globals(), name, globals()[name])


def changes(F: Any) -> dict[str, tuple[str, str]]:
    return {value.name: (value.then, value.now) for value in ll.explain.baked(F).changed}


def scaled(x: Any) -> Any:
    return x * SCALE


def test_a_global_read_by_a_helper_is_listed_then_and_now() -> None:
    global SCALE
    f = ll.function(lambda x: scaled(x) + 1.0)
    f(ll.constant(1.0))
    (value,) = [v for v in ll.explain.baked(f).records if v.name == "SCALE"]
    assert (value.then, value.now, value.changed, value.line.text) == ("2.0", "2.0", False, "return x * SCALE")
    SCALE = 3.0
    assert f(ll.constant(1.0)).item() == 3.0  # the trace has not seen it
    assert changes(f) == {"SCALE": ("2.0", "3.0")}
    assert "ll.Variable(2.0)" in ll.explain.baked(f).changed[0].fix


def test_a_fix_names_an_argument() -> None:
    rates, options = [1.0, 2.0], {"from": 3.0, "decay": 4.0}
    f = ll.function(lambda x: x * rates[0] * options["from"] + options["decay"])
    f(ll.constant(1.0))
    rates[0], options["from"], options["decay"] = 5.0, 6.0, 7.0
    passed = {value.name: value.fix.partition(") (")[0] for value in ll.explain.baked(f).changed}
    assert [fix.rpartition(", ")[2] for fix in passed.values()] == [
        "ll.constant(rates[0])",
        'll.constant(options["from"])',
        'll.constant(options["decay"])',
    ]


class Model:
    bias = 1.0

    def __init__(self) -> None:
        self.rate = 0.5
        self.shift = ll.Variable(1.0)
        self.sizes = [1, 2]

    @property
    def doubled(self) -> float:
        return self.rate * 2

    @ll.function
    def step(self, x: Any) -> Any:
        inner = lambda y: y * self.rate  # noqa: E731  # a function that closes over self
        return inner(x) + self.bias + self.doubled + self.shift + float(len(self.sizes))

    def __call__(self, x: Any) -> Any:
        return x * self.rate


def test_attributes_of_self_in_lambdas_properties_and_classes() -> None:
    model = Model()
    model.step(ll.constant(1.0))
    assert not changes(model.step)
    names = {(v.name, v.where, v.then) for v in ll.explain.baked(model.step).records}
    assert {("self.rate", "attribute", "0.5"), ("self.bias", "attribute", "1.0")} <= names
    model.rate = 0.25
    model.sizes.append(3)
    assert changes(model.step) == {"self.rate": ("0.5", "0.25"), "self.sizes": ("[1, 2]", "[1, 2, 3]")}
    assert changes(Model.step) == changes(model.step)


def test_assigning_a_variable_is_seen_and_another_variable_is_not() -> None:
    model = Model()
    model.step(ll.constant(1.0))
    model.shift.assign(5.0)
    assert not changes(model.step)
    model.shift = ll.Variable(7.0)
    assert list(changes(model.step)) == ["self.shift"]


class Settings:
    def __init__(self) -> None:
        self.rate = 2.0


def test_attributes_of_an_object_that_is_an_argument() -> None:
    f = ll.function(lambda settings, x: x * settings.rate)
    settings = Settings()
    f(settings, ll.constant(1.0))
    settings.rate = 4.0
    assert changes(f) == {"settings.rate": ("2.0", "4.0")}


def test_objects_that_are_called() -> None:
    model = Model()
    f = ll.function(lambda x: model(x) + 1.0)
    f(ll.constant(1.0))
    model.rate = 8.0
    assert changes(f) == {"self.rate": ("0.5", "8.0")}


def test_items_of_containers_and_contents_of_arrays() -> None:
    f = ll.function(lambda x: ll.clip(x, LIMITS["low"], LIMITS["high"]) + TABLE[0])
    f(ll.constant(1.0))
    LIMITS["high"], kept = 3.0, LIMITS["high"]
    TABLE[0] = 9.0
    try:
        assert set(changes(f)) == {"LIMITS['high']", "TABLE"}
    finally:
        LIMITS["high"], TABLE[0] = kept, 0.0


def test_a_string_that_chose_a_branch() -> None:
    global MODE
    f = ll.function(lambda x: x * 2.0 if MODE == "train" else x)
    f(ll.constant(1.0))
    MODE = "serve"
    (value,) = ll.explain.baked(f).changed
    assert (value.then, value.now) == ("'train'", "'serve'")
    assert "another trace" in value.fix


def test_a_closure_value_and_a_redefined_helper() -> None:
    def make(rate: float) -> Any:
        def helper(x: Any) -> Any:
            return x * rate

        def body(x: Any) -> Any:
            return helper(x)

        def change() -> None:
            nonlocal rate, helper
            rate = 9.0
            helper = lambda x: x  # noqa: E731  # another function under that name

        return ll.function(body), change

    f, change = make(2.0)
    f(ll.constant(1.0))
    assert {(v.name, v.kind) for v in ll.explain.baked(f).records} == {("helper", "function"), ("rate", "constant")}
    change()
    assert {"helper"} <= set(changes(f))


def test_150_a_captured_tensor_whose_name_was_rebound_is_said() -> None:
    global WEIGHT
    f = ll.function(lambda x: x * WEIGHT)
    f(ll.constant(1.0))
    assert not ll.explain.baked(f).records
    WEIGHT = ll.constant([5.0, 6.0])
    assert f(ll.constant(1.0)).tolist() == [1.0, 2.0]
    (value,) = ll.explain.baked(f).changed
    assert (value.name, value.kind, value.now) == ("WEIGHT", "tensor", "another tensor f32[2]")


def test_each_trace_has_its_own_values() -> None:
    global SCALE
    f = ll.function(lambda x: x * SCALE)
    f(ll.ones((2,)))
    SCALE = 4.0
    f(ll.ones((3,)))
    found = {(v.trace, v.then, v.changed) for v in ll.explain.baked(f).records}
    assert found == {(1, "2.0", True), (2, "4.0", False)}


def test_names_of_installed_packages_are_left_out_and_nothing_is_said_plainly() -> None:
    f = ll.function(lambda x: x * np.pi + ll.pi)
    f(ll.constant(1.0))
    assert "no values baked in" in str(ll.explain.baked(f))
    with pytest.raises(ll.errors.ArgumentError, match="stage it first"):
        ll.explain.baked(scaled)  # type: ignore[arg-type]


def traced_with_an_array() -> tuple[Any, Any]:
    big = np.ones(1000)
    g = ll.function(lambda x: x * float(big.size))
    g(ll.constant(1.0))
    return g.trace_cache[0], weakref.ref(big)


def test_no_code_of_the_users_runs_and_nothing_is_kept_alive() -> None:
    class Shy:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]

    shy = Shy()
    f = ll.function(lambda x: (x, shy is None)[0])
    f(ll.constant(1.0))
    ll.explain.baked(f)
    entry, alive = traced_with_an_array()
    gc.collect()
    assert entry.baked
    assert alive() is None


def test_a_snapshot_costs_little() -> None:
    model = Model()
    model.step(ll.constant(1.0))
    entry = model.step.trace_cache[0]

    snapshots.take(model.step.python_function, entry.paths, entry.key.parts)  # code is read once
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        snapshots.take(model.step.python_function, entry.paths, entry.key.parts)
    finally:
        sys.setprofile(None)
    assert len(calls) < 400, Counter(calls).most_common(9)


def test_equal_code_from_another_file_has_its_own_lines() -> None:
    found = []
    text = "def f(x):\n    return (lambda y: y * rate)(x)\n"
    for file in ("first cell", "second cell"):
        names: dict[str, Any] = {"ll": ll, "rate": 2.0}
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)
        f = ll.function(names["f"])
        f(ll.constant(1.0))
        found += [value.line.file for value in ll.explain.baked(f).records]
    assert found == ["first cell", "second cell"]


unnamed = ll.function(lambda x: x * SCALE)


def test_a_lambda_is_called_by_the_name_that_it_has() -> None:
    global SCALE
    unnamed(ll.constant(1.0))
    local = ll.function(lambda x: x * SCALE)
    local(ll.constant(1.0))
    SCALE = 3.0
    said = str(ll.explain.baked(unnamed))
    assert said.startswith("1 value is baked into `<lambda>`, and out of date:")
    assert "pass it as an argument, unnamed(x, ll.constant(SCALE))" in said
    assert "pass it as an argument, F(x, ll.constant(SCALE))" in str(ll.explain.baked(local))
    unnamed.clear_cache()
