"""Traces whose variables have been deleted: made again where the variable belonged to an object that the call reads."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import limelight as ll
from limelight.errors import DeadVariableError

x = ll.constant(2.0)


class Config:
    """An object that is no module."""

    def __init__(self, value: float = 1.0) -> None:
        self.w = ll.Variable(value, name="w")

    @ll.function
    def times(self, x: Any) -> Any:
        return x * self.w


class Model(ll.Module):
    def __init__(self, value: float = 1.0) -> None:
        self.w = ll.Variable(value, name="w")


@pytest.mark.parametrize("make", [Config, Model])
def test_an_attribute_made_again_is_seen(make: Any) -> None:
    f = ll.function(lambda config, x: x * config.w)
    config = make()
    for value in (1.0, 3.0, 5.0):
        config.w = ll.Variable(value, name="w")
        assert [f(config, x).item() for _ in range(6)] == [2.0 * value] * 6  # by the key, and by a guard
        assert len(f.trace_cache) == 1
    assert f.trace_count == 3
    assert "uses `w`, a variable that has been deleted" in f.trace_cache[0].reason


def test_an_attribute_of_self_made_again_is_seen() -> None:
    config = Config()
    for value in (1.0, 3.0, 5.0):
        config.w = ll.Variable(value)
        assert [config.times(x).item() for _ in range(6)] == [2.0 * value] * 6
    assert config.times.trace_count == 3


def test_a_hit_is_predicted_as_it_will_be() -> None:
    f = ll.function(lambda config, x: x * config.w)
    config = Config()
    f(config, x)
    assert f.explain(config, x)
    config.w = ll.Variable(2.0)
    assert "a variable that has been deleted" in str(f.explain(config, x))
    f(config, x)
    assert f.explain(config, x)


def test_an_attribute_that_has_gone_is_an_error_of_the_code() -> None:
    f = ll.function(lambda config, x: x * config.w)
    config = Config()
    f(config, x)
    del config.w
    with pytest.raises(AttributeError, match="w"):
        f(config, x)


def test_through_an_outer_function() -> None:
    inner = ll.function(lambda config, x: x * config.w)
    outer = ll.function(lambda config, x: inner(config, x) + 1.0)
    config = Config()
    for value in (1.0, 3.0):
        config.w = ll.Variable(value)
        assert [outer(config, x).item() for _ in range(5)] == [2.0 * value + 1.0] * 5
    assert (outer.trace_count, inner.trace_count) == (2, 2)


def test_what_is_closed_over_directly_is_still_an_error() -> None:
    held = [ll.Variable(1.0, name="w")]
    f = ll.function(lambda x: x * held[0])
    f(x)
    held[0] = ll.Variable(2.0)
    with pytest.raises(DeadVariableError, match="'w', which has been deleted"):
        f(x)


def test_a_function_and_its_traces_go_with_their_last_reference() -> None:
    gc.collect()
    gc.disable()
    try:
        f = ll.function(lambda config, x: x * config.w)
        config = Config()
        f(config, x)
        cache = weakref.ref(f.trace_cache)
        del f
        assert cache() is None
        config.w = ll.Variable(2.0)  # of which the trace would have been told
    finally:
        gc.enable()
