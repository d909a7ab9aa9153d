"""Kernels on arrays of `array_api_strict`, which has what the Python Array API says and nothing else.

Kernels are written for what NumPy, CuPy and JAX share, which is more: arrays with methods, NumPy's dtypes, indices of
any kind. Those listed need nothing beyond the standard but NumPy's names of its functions, and shall not come to.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest
from cases import CASES
from opcase import agree, each, one_of_each, op_of

import limelight as ll
from limelight.core import dispatch, dtypes
from limelight.core.tensor import wrap

strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed: pip install '.[test]'")
STANDARD_NAMES = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "concatenate": "concat", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
}  # fmt: skip
WITHIN_THE_STANDARD = (
    "abs acos acosh add all any argsort asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
    "bitwise_or bitwise_right_shift bitwise_xor broadcast_to complex_sign conj copysign cos cosh det divide either "
    "ensure_shape equal exp expand_dims expm1 fftshift flip greater greater_equal hollow hypot identity kept_if less "
    "less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum mean minimum "
    "multiply negative nextafter not_equal pack_indices positive reciprocal relu remainder rfft rsqrt sigmoid "
    "sigmoid_cross_entropy sign signbit sin sinh slogdet split sqrt square stack stop_gradient subtract tan tile "
    "uneven where zero_over zero_times "
)
OPS = frozenset(WITHIN_THE_STANDARD.split())


class Namespace:
    """The standard's functions, by NumPy's names too."""

    def __getattr__(self, name):
        return getattr(strict, STANDARD_NAMES.get(name, name))


class OnStrictArrays(dispatch.Interpreter):
    def process(self, op, inputs, attrs):
        by_name = isinstance(op.kernel, str)
        kernel = getattr(Namespace(), op.kernel) if by_name else functools.partial(op.kernel, Namespace())
        result = kernel(*[strict.asarray(x._data) if hasattr(x, "_data") else x for x in inputs], *attrs)
        return tuple(map(of_host, result)) if op.multiple else of_host(result)


def of_host(x):
    return wrap(np.asarray(x._array))


@each([(case,) for case in one_of_each(CASES, op_of) if case.op in OPS])
def test_needs_no_more_than_the_standard(case):
    dtype = dtypes.float32 if dtypes.float32 in case.tried else case.tried[0]
    tensors = [ll.constant(array) for array in case.arrays(dtype)]
    wanted = case.call(*tensors)
    interpreter = OnStrictArrays()
    dispatch.push(interpreter, sys._getframe())
    try:
        found = case.call(*tensors)
    finally:
        dispatch.remove(interpreter)
    agree(found, wanted)
