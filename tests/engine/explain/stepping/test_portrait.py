"""Small portraits of tensors' values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from limelight.explain.stepping.portrait import FEW, SHADES, SIDE, portrait

DTYPES = st.sampled_from(["float32", "float64", "float16", "int8", "uint64", "bool", "complex64", ml_dtypes.bfloat16])


@given(st.data(), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=20), DTYPES)
def test_of_any_array(data, shape, dtype):
    wide = data.draw(arrays.arrays(np.float64, shape, elements=st.floats(width=16), fill=st.just(0.5)))
    with np.errstate(all="ignore"):
        array = wide.astype(dtype)
    shown = portrait(array)
    assert shown is not None
    assert len(shown.shades) <= SIDE * SIDE
    assert len(shown.numbers) == (array.size if array.size <= FEW else 0)
    assert shown.rows * shown.columns >= len(shown.shades)
    if array.dtype.kind != "c":
        numbers = array.astype(np.float64)
        assert shown.nans == np.isnan(numbers).sum()
        assert shown.infinities == np.isinf(numbers).sum()
        kept = numbers[np.isfinite(numbers)]
        assert (shown.low, shown.high) == ((kept.min(), kept.max()) if kept.size else (None, None))
    assert str(shown).startswith(shown.spec)


def test_samples_go_from_pale_to_dark_and_mark_what_is_not_finite():
    shown = portrait(np.asarray([[0.0, 1.0, np.nan], [np.inf, -np.inf, 0.5], [1, 1, 1]], np.float32))
    assert shown.shades == f"0{SHADES[63]}!^~{SHADES[31]}{SHADES[63] * 3}"


def test_the_extremes_of_a_dtype_do_not_overflow():
    top = np.finfo(np.float64).max
    assert set(portrait(np.linspace(-top / 2, top / 2, 100) * 2).shades) <= set(SHADES)


def test_a_large_tensor_is_sampled_and_its_shape_told():
    shown = portrait(np.zeros((3000, 1000), np.float32))
    assert shown.sampled
    assert shown.spec == "f32[3000,1000]"
    assert (shown.rows, shown.columns) == (SIDE, SIDE)


def test_what_is_no_array_of_numbers():
    assert portrait(object()) is None
    assert portrait(np.asarray(["a"] * 3, object)) is None
