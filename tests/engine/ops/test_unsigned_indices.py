"""Indices of uint64: NumPy casts those from 2**63 on to negative ones, from the end, and JAX compares them wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import base

VALUES = np.arange(4, dtype=np.float32)


def _updated(method: str) -> Callable[[ll.Tensor, ll.Tensor], Any]:
    def update(x: ll.Tensor, i: ll.Tensor) -> Any:
        variable = ll.Variable(VALUES)
        getattr(variable, method)(i, ll.ones(1))
        return variable.read_value()

    return update


OPS: dict[str, Callable[[ll.Tensor, ll.Tensor], Any]] = {
    "take": ll.take,
    "x[i]": lambda x, i: x[i],
    "x[i[0]]": lambda x, i: x[i[0]],
    "x[:, i]": lambda x, i: x.reshape((2, 2))[:, i],
    "x[i, i]": lambda x, i: x.reshape((2, 2))[i, i],
    "take_along_axis": lambda x, i: ll.take_along_axis(x, i, 0),
    "put_along_axis": lambda x, i: ll.put_along_axis(x, i, ll.ones(1), 0),
    "gather_nd": lambda x, i: ll.gather_nd(x, i.reshape((1, 1))),
    "scatter": lambda x, i: ll.scatter(i.reshape((1, 1)), ll.ones(1), (4,)),
    "segment_sum": lambda x, i: ll.segment_sum(ll.ones(1), i, 2),
    "segment_max": lambda x, i: ll.segment_max(ll.ones(1), i, 2),
    "index_update": lambda x, i: ll.index_update(x, i, ll.ones(1)),
    "index_update at a position": lambda x, i: ll.index_update(x, i[0], 1.0),
    "index_add": lambda x, i: ll.index_add(x, i, ll.ones(1)),
    "index_multiply": lambda x, i: ll.index_multiply(x, i, ll.ones(1)),
    "index_max": lambda x, i: ll.index_max(x, i, ll.ones(1)),
    "embedding": lambda x, i: ll.nn.embedding(x.reshape((2, 2)), i),
    "bincount": lambda x, i: ll.bincount(i),
    **{name: _updated(name) for name in ("scatter_update", "scatter_add", "scatter_max")},
}
HUGE = (2**63, 2**64 - 1)
EAGER_ONLY = ("scatter_update", "scatter_add", "scatter_max")  # each call makes a variable
WAYS = [
    ("eager", *OPS),
    *[
        (way, *[name for name in OPS if name not in EAGER_ONLY])
        for way in ("plan", "loops", "xla")
        if way in base.names()
    ],
]
DEVICES = ["CPU:0", *["XLA:0" for way in base.names() if way == "xla"]]


@pytest.mark.parametrize(("way", "name"), [(way, name) for way, *names in WAYS for name in names])
def test_what_is_no_place_as_uint64_is_none_from_the_end(way: str, name: str) -> None:
    x, op = ll.constant(VALUES), OPS[name]
    with ll.config.executor("plan" if way == "eager" else way):
        call = op if way == "eager" else ll.function(op)
        for huge in HUGE:
            with pytest.raises(ll.errors.OutOfBoundsError, match=f"{huge}|a row is out of bounds"):
                call(x, ll.constant(np.array([huge], np.uint64)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPS)
def test_places_of_uint64_are_those_of_int64(name: str, device: str) -> None:
    with ll.device(device):
        x = ll.constant(VALUES)
        given, wanted = (OPS[name](x, ll.constant(np.array([1], kind))) for kind in (np.uint64, np.int64))
    np.testing.assert_array_equal(given.numpy(), wanted.numpy())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("place", [4, -5, 2**63])
@pytest.mark.parametrize("name", ["scatter", "put_along_axis", "scatter_add"])
def test_what_is_written_to_no_place_is_an_error_on_each_device(name: str, place: int, device: str) -> None:
    with ll.device(device), pytest.raises(ll.errors.OutOfBoundsError, match=f"{place} is out|a row is out"):
        OPS[name](ll.constant(VALUES), ll.constant(np.array([place], np.uint64 if place > 4 else np.int64)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [-1, 2**63, 2**64 - 1])
def test_repeats_that_are_no_number_of_times_are_refused(count: int, device: str) -> None:
    with ll.device(device), pytest.raises(ll.errors.RunError, match="repeats must be 0 or more"):
        ll.repeat(ll.ones(2), ll.constant(np.array([count, 1], np.uint64 if count > 0 else np.int64)))
