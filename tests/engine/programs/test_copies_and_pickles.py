"""Copies and pickles of tensors, devices, variables and what holds them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core.devices import CPU0

Again = Callable[[Any], Any]

WAYS: dict[str, Again] = {f"pickle {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in (2, 4, 5)}
WAYS |= {"copy": copy.copy, "deepcopy": copy.deepcopy}

each_way = pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)


@each_way
def test_a_device_is_one_object(again: Again, second_cpu: Any) -> None:
    assert again(CPU0) is CPU0
    assert again(second_cpu) is second_cpu


@each_way
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", "bfloat16"])
def test_tensors_come_back_with_dtype_and_value(again: Again, dtype: str) -> None:
    x = ll.constant(np.ones((2, 3)).astype(ll.constant(1, "int32").astype(dtype).dtype))
    other = again(x)
    assert type(other) is type(x)
    assert (other.dtype, other.shape, other.tolist()) == (x.dtype, (2, 3), x.tolist())
    assert other.device is CPU0


@each_way
def test_a_tensor_stays_on_its_device(again: Again, second_cpu: Any) -> None:
    with ll.device("CPU:1"):
        x = ll.constant([1.0, 2.0])
    assert again(x).device is second_cpu


def test_an_immutable_tensor_is_its_own_copy() -> None:
    x = ll.constant([1.0])
    assert copy.copy(x) is x
    assert copy.deepcopy([x, x])[1] is x


def test_the_number_under_which_a_tape_knows_a_tensor_is_not_copied() -> None:
    x = ll.constant(3.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        other = pickle.loads(pickle.dumps(x))
        y = x * other
    assert tape.gradient(y, x).item() == 3.0
    assert tape.gradient(y, other) is None


def test_what_is_unpickled_shares_no_memory_with_the_buffers_it_came_from() -> None:
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(ll.constant([1.0, 2.0]), 5, buffer_callback=buffers.append)
    own = [bytearray(buffer) for buffer in buffers]
    x = pickle.loads(text, buffers=own)
    for buffer in own:
        buffer[:] = bytes(len(buffer))
    assert len(own) == 1
    assert x.tolist() == [1.0, 2.0]


def test_copies_inside_a_trace_are_the_same_symbolic_tensor() -> None:
    seen: list[bool] = []

    @ll.function
    def f(a: Any) -> Any:
        other = copy.deepcopy({"a": a})["a"]
        seen.append(other is a)
        return other * 2

    assert f(ll.constant(2.0)).item() == 4.0
    assert seen == [True]


def test_a_symbolic_tensor_cannot_be_pickled() -> None:
    with pytest.raises(ll.errors.SymbolicValueError, match="of a symbolic tensor"):
        ll.function(pickle.dumps)(ll.constant(1.0))


@each_way
def test_variables_come_back_as_variables_of_their_own(again: Again, second_cpu: Any) -> None:
    with ll.device("CPU:1"):
        v = ll.Variable([1.0, 2.0], name="v", trainable=False, shape=(None,))
    other = again(v)
    assert (other.name, other.trainable, other.shape, other.device) == ("v", False, (None,), second_cpu)
    other.assign([5.0])
    assert (v.numpy().tolist(), other.numpy().tolist()) == ([1.0, 2.0], [5.0])
    x, y = ll.Variable(2.0), ll.Variable(3.0)
    x2, y2 = again(x), again(y)
    with ll.GradientTape() as tape:
        out = x * y + x2 * y2 * 10
    assert [g.item() for g in tape.gradient(out, [x, y, x2, y2])] == [3.0, 2.0, 30.0, 20.0]


def test_layers_are_pickled_with_their_weights() -> None:
    layer = ll.nn.Dense(2)
    x = ll.ones((1, 3))
    layer(x)  # creates the weights
    other = pickle.loads(pickle.dumps(layer))
    assert other(x).tolist() == layer(x).tolist()
