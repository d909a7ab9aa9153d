"""Strategies for the arguments of the standard's functions, with arrays as NumPy arrays.

Values are small, so that no library has reason to round differently, and
for functions of elements infinities, NaN and negative zero are among them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

BOOL, INTEGER = ["bool"], ["int8", "int32", "int64", "uint8", "uint32"]
FLOATING, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
REAL, INEXACT = INTEGER + FLOATING, FLOATING + COMPLEX
NUMERIC = REAL + COMPLEX
ALL = BOOL + NUMERIC
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), -float("inf"), float("nan"))
TAME = (0.5, 1.0, -1.5, 2.0, -0.25, 0.75)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


class Call(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    options: dict[str, Any]


def elements(dtype: str, special: bool) -> st.SearchStrategy[Any]:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        return st.integers(0 if kind == "u" else -4, 5)
    real = st.sampled_from(SPECIAL if special else TAME)
    return st.builds(complex, st.sampled_from(TAME), st.sampled_from(TAME)) if kind == "c" else real


@st.composite
def arrays(
    draw: Any, dtypes: list[str], shape: Any = SHAPES, special: bool = False, unique: bool = False
) -> np.ndarray[Any, Any]:
    dtype = draw(st.sampled_from(dtypes))
    return draw(hnp.arrays(dtype, shape, elements=elements(dtype, special), unique=unique))


def tuples(*parts: Any, **options: Any) -> st.SearchStrategy[Call]:
    """Arguments from strategies; by name they may be left out."""
    return st.builds(Call, st.tuples(*parts), st.fixed_dictionaries({}, optional=options))


@st.composite
def same_dtype(draw: Any, dtypes: list[str], n: int = 2, special: bool = True) -> Call:
    """Arrays of one dtype whose shapes broadcast."""
    dtype = draw(st.sampled_from(dtypes))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=n, max_dims=3, max_side=3)).input_shapes
    return Call(tuple([draw(arrays([dtype], shape, special)) for shape in shapes]), {})


@st.composite
def over_axes(
    draw: Any,
    dtypes: list[str],
    several: bool = True,
    keepdims: bool = True,
    special: bool = False,
    **options: Any,
) -> Call:
    """An array without empty axes, and perhaps an axis of it."""
    x = draw(arrays(dtypes, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3), special))
    found = {name: draw(strategy) for name, strategy in options.items() if draw(st.booleans())}
    if draw(st.booleans()):
        one = st.integers(-x.ndim, x.ndim - 1)
        axes = one | st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple) if several else one
        found["axis"] = draw(axes)
    if keepdims and draw(st.booleans()):
        found["keepdims"] = draw(st.booleans())
    return Call((x,), found)


@st.composite
def along_axis(draw: Any, dtypes: list[str], make: Callable[..., Call], min_dims: int = 1) -> Call:
    """Whatever `make(draw, x, axis)` says of an array and one of its axes."""
    x = draw(arrays(dtypes, hnp.array_shapes(min_dims=min_dims, max_dims=3, min_side=1, max_side=3)))
    return make(draw, x, draw(st.integers(-x.ndim, x.ndim - 1)))
