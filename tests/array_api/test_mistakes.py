"""What the standard's functions say of arguments that they cannot take: the same eagerly and staged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import ArgumentError, AxisError, DTypeError, ShapeError

v, m = ll.asarray([1.0, 2.0, 3.0]), ll.ones((2, 3))
ints, scalar = ll.asarray([0, 1]), ll.asarray(1.0)

MISTAKES: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (ll.sort, (scalar,), AxisError, "sort: axis -1 is out of range for a tensor of rank 0"),
    (lambda x: ll.argsort(x, axis=2), (m,), AxisError, "argsort: axis 2 is out of range"),
    (ll.sort, (v + 1j,), DTypeError, r"sort needs integer or floating operands, got complex64"),
    (ll.tril, (v,), ShapeError, r"tril: f32\[3\] is no matrix"),
    (ll.triu, (v,), ShapeError, r"triu: f32\[3\] is no matrix"),
    (ll.searchsorted, (m, v), ShapeError, r"searchsorted: f32\[2,3\] must be a sorted vector"),
    (lambda x: ll.searchsorted(x, x, side="up"), (v,), ArgumentError, r'side must be "left" or "right", got \'up\''),
    (ll.searchsorted, (v, ints), DTypeError, r"f32\[3\] and i32\[2\] do not mix"),
    (ll.take_along_axis, (m, ints), ShapeError, r"take_along_axis: f32\[2,3\] and the indices i32\[2\]"),
    (ll.take_along_axis, (v, v), DTypeError, "take_along_axis needs integer operands, got float32"),
    (ll.isin, (v, ints), DTypeError, r"isin: f32\[3\] and i32\[2\] do not mix"),
    (ll.broadcast_arrays, (v, ints), ShapeError, r"broadcast_arrays: shapes \(3,\) and \(2,\) do not broadcast"),
    (ll.meshgrid, (v, m), ShapeError, r"meshgrid: needs vectors, got f32\[2,3\]"),
    (lambda x: ll.meshgrid(x, indexing="yx"), (v,), ArgumentError, "indexing must be"),
    (lambda x: ll.diff(x, n=-1), (v,), ArgumentError, "diff: n must not be negative, got -1"),
    (ll.cumulative_sum, (m,), ArgumentError, r"cumulative_sum: f32\[2,3\] has 2 axes; say along which"),
    (lambda x: ll.repeat(x, ints), (v,), ShapeError, r"repeat: axis 0 of f32\[3\] .* i32\[2\]"),
    (lambda x: ll.nextafter(x, 1), (ints,), DTypeError, "nextafter needs floating operands, got int32"),
    (lambda x: ll.hypot(x, 1j), (v,), DTypeError, "hypot needs floating operands, got complex64"),
    (lambda x: x[ll.asarray([True, False])], (v,), IndexError, r"a mask of shape \(2,\) does not fit"),
    (lambda x: ll.from_dlpack([x]), (v,), DTypeError, "needs an array with the method __dlpack__, got list"),
    (ll.finfo, (ints,), DTypeError, "finfo: int32 is not a floating dtype; write ll.iinfo"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda part: part[3][:40])
def test_mistakes_read_the_same_eager_and_staged(mistake: Any) -> None:
    function, given, kind, message = mistake
    said = []
    for run in (function, ll.function(function)):
        with pytest.raises(kind, match=message) as caught:
            run(*given)
        said.append(caught.value.bare)
    assert said[0] == said[1]
