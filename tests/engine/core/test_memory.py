"""What `memory_info` counts."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

import limelight as ll
from limelight.core import backends
from limelight.core.devices import find


@pytest.mark.usefixtures("no_garbage")
def test_a_class_that_is_called_variable_is_not_one() -> None:
    class Payload:
        array = ll.zeros((1000,)).numpy().copy()

    class Variable:
        _device = ll.list_devices()[0]
        _data = Payload

    before = ll.memory_info()
    pretender = Variable()
    after = ll.memory_info()
    assert (after.current, after.tensors) == (before.current, before.tensors)
    del pretender


@pytest.mark.usefixtures("no_garbage")
@pytest.mark.slow  # looks through all objects of the process
def test_subclasses_of_variables_count_and_stand_ins_do_not_count_twice() -> None:
    class Weight(ll.Variable):
        pass

    before = ll.memory_info()
    seen: list[int] = []
    weight: Any = Weight(ll.zeros((1000,)).numpy())

    @ll.function
    def f(v: Any) -> Any:
        seen.append(ll.memory_info().current)
        return v * 2

    gc.collect()
    assert ll.memory_info().current - before.current == 4000
    assert ll.memory_info().tensors - before.tensors == 1
    f(weight)
    assert seen[0] - before.current == 4000


def test_to_ask_about_a_device_imports_no_library(monkeypatch):
    place = find("XLA:0")
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(backends, "load", lambda name: pytest.fail(f"imports {name}"))
    info = ll.memory_info(place)
    assert (info.device, info.in_use, info.reserved) == ("XLA:0", None, None)
