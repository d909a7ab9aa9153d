"""How to call each function of the standard: strategies for its arguments, grouped by what the functions take."""

from __future__ import annotations

from typing import Any

import numpy as np
from arguments import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NUMERIC,
    REAL,
    SHAPES,
    Call,
    along_axis,
    arrays,
    over_axes,
    same_dtype,
    tuples,
)
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

Calls = st.SearchStrategy[Call]
UNSIGNED = ["uint8", "uint32"]


def _each(names: str, strategy: Calls) -> dict[str, Calls]:
    return dict.fromkeys(names.split(), strategy)


def _unary(names: str, dtypes: list[str]) -> dict[str, Calls]:
    return _each(names, tuples(arrays(dtypes, special=True)))


ELEMENTS: dict[str, Calls] = {
    **_unary("abs negative positive sign square isfinite isinf isnan round", NUMERIC),
    **_unary("acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal", INEXACT),
    **_unary("sin sinh sqrt tan tanh", INEXACT),
    **_unary("ceil floor trunc", REAL),
    **_unary("signbit", FLOATING),
    **_unary("conj real imag", COMPLEX),
    **_unary("logical_not", BOOL),
    **_unary("bitwise_invert", BOOL + INTEGER),
    **_each("add subtract multiply", same_dtype(NUMERIC)),
    **_each("divide", same_dtype(INEXACT)),
    **_each("equal not_equal", same_dtype(ALL)),
    **_each("less less_equal greater greater_equal maximum minimum remainder", same_dtype(REAL)),
    **_each("floor_divide", same_dtype(REAL, special=False)),
    **_each("pow", same_dtype(UNSIGNED + FLOATING)),
    **_each("atan2 copysign hypot logaddexp nextafter", same_dtype(FLOATING)),
    **_each("bitwise_and bitwise_or bitwise_xor", same_dtype(BOOL + INTEGER)),
    **_each("bitwise_left_shift bitwise_right_shift", same_dtype(UNSIGNED)),
    **_each("logical_and logical_or logical_xor", same_dtype(BOOL)),
}


@st.composite
def _clip(draw: Any) -> Call:
    x = draw(arrays(REAL, special=True))
    kind = int if x.dtype.kind in "iu" else float
    low, high = sorted(draw(st.tuples(st.integers(0, 3), st.integers(0, 3))))
    bounds = {"min": kind(low), "max": kind(high)}
    if draw(st.booleans()):
        bounds = {name: np.full(x.shape[1:], value, x.dtype) for name, value in bounds.items()}
    return Call((x,), {name: value for name, value in bounds.items() if draw(st.booleans())})


@st.composite
def _where(draw: Any) -> Call:
    args = draw(same_dtype(ALL, n=3)).args
    return Call((np.asarray(args[0] != 0), *args[1:]), {})


ELEMENTS |= {"clip": _clip(), "where": _where()}

REDUCTIONS: dict[str, Calls] = {
    **_each("sum prod", over_axes(NUMERIC, dtype=st.just("complex128"))),
    **_each("mean", over_axes(INEXACT)),
    **_each("std var", over_axes(FLOATING, correction=st.sampled_from([0.0, 0.5]))),
    **_each("max min", over_axes(REAL)),
    **_each("all any", over_axes(ALL)),
    **_each("count_nonzero", over_axes(ALL)),
    **_each("argmax argmin", over_axes(REAL, several=False)),
    **_each(
        "cumulative_sum cumulative_prod",
        along_axis(
            NUMERIC,
            lambda draw, x, axis: Call((x,), {"axis": axis, "include_initial": draw(st.booleans())}),
        ),
    ),
    **_each("sort argsort", along_axis(REAL, lambda draw, x, axis: Call((x,), _order(draw, axis)))),
    **_each("unique_all unique_counts unique_inverse unique_values", tuples(arrays(ALL, special=True))),
    **_each("nonzero", tuples(arrays(ALL, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0)))),
    **_each("isin", tuples(arrays(["int32"]), arrays(["int32"]))),  # theirs (2.6.1) takes no notice of `invert`
    **_each(
        "searchsorted",
        tuples(
            arrays(["float32"], st.integers(1, 4)).map(np.sort),
            arrays(["float32"]),
            side=st.sampled_from(["left", "right"]),
        ),
    ),
}


def _order(draw: Any, axis: int) -> dict[str, Any]:
    return {"axis": axis, "descending": draw(st.booleans()), "stable": True}


@st.composite
def _take(draw: Any) -> Call:
    x = draw(arrays(ALL, hnp.array_shapes(max_dims=3, max_side=3)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return Call((x, np.array(draw(st.lists(st.integers(0, x.shape[axis] - 1), max_size=4)), "int64")), {"axis": axis})


def _along(draw: Any, x: Any, axis: int) -> Call:
    shape = list(x.shape)
    shape[axis] = draw(st.integers(0, 4))
    places = hnp.arrays("int64", tuple(shape), elements=st.integers(0, x.shape[axis] - 1))
    return Call((x, draw(places)), {"axis": axis})


def _repeated(draw: Any, x: Any, axis: int) -> Call:
    each = hnp.arrays("int64", (x.shape[axis],), elements=st.integers(0, 3))
    return Call((x, draw(st.integers(0, 3) | each)), {"axis": axis})


def _diff(draw: Any, x: Any, axis: int) -> Call:
    options = {"axis": axis, "n": draw(st.integers(0, 3))}
    ends = {"prepend": x, "append": x}
    return Call((x,), options | {name: value for name, value in ends.items() if draw(st.booleans())})


@st.composite
def _several(draw: Any, low: int, high: int) -> Call:
    """Arrays of one shape, joined along an axis."""
    like = draw(arrays(ALL, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)))
    return Call(([like] * draw(st.integers(1, 3)),), {"axis": draw(st.integers(-like.ndim + low, like.ndim + high))})


@st.composite
def _reshape(draw: Any) -> Call:
    x = draw(arrays(ALL, hnp.array_shapes(min_dims=1, max_dims=3)))
    order = draw(st.permutations(x.shape))
    return Call((x, (-1,) if draw(st.booleans()) else tuple(order)), {})


@st.composite
def _broadcast_to(draw: Any) -> Call:
    found = draw(hnp.mutually_broadcastable_shapes(num_shapes=1, max_dims=3, max_side=3))
    return Call((draw(arrays(ALL, found.input_shapes[0])), found.result_shape), {})


MATRICES = hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=3)
SHAPING: dict[str, Calls] = {
    **_each("tril triu", tuples(arrays(ALL, MATRICES), k=st.integers(-3, 3))),
    "take": _take(),
    "take_along_axis": along_axis(ALL, _along),
    "repeat": along_axis(ALL, _repeated),
    "diff": along_axis(NUMERIC, _diff),
    "concat": _several(0, -1),
    "stack": _several(-1, 0),
    "reshape": _reshape(),
    "broadcast_to": _broadcast_to(),
    "broadcast_arrays": same_dtype(ALL, n=3),
    "meshgrid": tuples(arrays(["float32"], 2), arrays(["float32"], 3), indexing=st.sampled_from(["xy", "ij"])),
    "matrix_transpose": tuples(arrays(ALL, MATRICES)),
    "expand_dims": along_axis(ALL, lambda draw, x, axis: Call((x,), {"axis": axis})),
    "squeeze": along_axis(ALL, lambda draw, x, axis: Call((x[:1, ...], 0), {})),
    "flip": over_axes(ALL, keepdims=False),
    "unstack": along_axis(ALL, lambda draw, x, axis: Call((x,), {"axis": axis})),
    "moveaxis": along_axis(ALL, lambda draw, x, axis: Call((x, axis, draw(st.integers(-x.ndim, x.ndim - 1))), {})),
    "permute_dims": along_axis(ALL, lambda draw, x, axis: Call((x, tuple(draw(st.permutations(range(x.ndim))))), {})),
    "roll": along_axis(ALL, lambda draw, x, axis: Call((x, draw(st.integers(-4, 4))), {"axis": axis})),
    "tile": along_axis(
        ALL, lambda draw, x, axis: Call((x, tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)))), {})
    ),
    "matmul": tuples(arrays(["float64"], (2, 3)), arrays(["float64"], st.sampled_from([(3,), (3, 2), (2, 3, 1)]))),
    "tensordot": st.builds(
        lambda x, y, axes: Call((x, y), {"axes": axes}),
        arrays(["int32"], (2, 3)),
        arrays(["int32"], (3, 2)),
        st.sampled_from([0, 1, ((0,), (1,)), ((1, 0), (0, 1))]),
    ),
    "vecdot": tuples(arrays(["complex128"], (2, 3)), arrays(["complex128"], (3,))),
    "astype": tuples(arrays(["int32", "float32"]), st.sampled_from(["float64", "complex64"])),
}

MADE = {"dtype": st.sampled_from(ALL)}
CREATION: dict[str, Calls] = {
    **_each("zeros ones empty", tuples(SHAPES, **MADE)),
    **_each("zeros_like ones_like empty_like", tuples(arrays(ALL), **MADE)),
    "full": tuples(SHAPES, st.sampled_from([True, 3, 2.5, 1j])),
    "full_like": tuples(arrays(NUMERIC), st.integers(0, 3)),
    "eye": tuples(st.integers(0, 3), st.integers(0, 3), k=st.integers(-3, 3), **MADE),
    "arange": tuples(st.integers(-3, 3), st.integers(-3, 9), st.integers(1, 3), dtype=st.sampled_from(REAL[:3])),
    "linspace": tuples(st.integers(-3, 3), st.floats(-3, 3), st.integers(0, 5), endpoint=st.booleans()),
    "asarray": tuples(st.sampled_from([True, 3, 2.5, 1j, [1, 2], [[1.5], [2.0]], [True, False]])),
}

CALLS = ELEMENTS | REDUCTIONS | SHAPING | CREATION
