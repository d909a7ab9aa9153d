"""Shape and dtype rules that many ops share: functions from specs (and attributes) to the output's spec."""

from __future__ import annotations

from typing import Any

from limelight import dtypes, shapes
from limelight.spec import TensorSpec, known


def same(x: TensorSpec, *attrs: Any) -> TensorSpec:
    """The output is as the input."""
    return known(x.shape, x.dtype)


def real_of(x: TensorSpec) -> TensorSpec:
    """As the input, but real where the input is complex (abs, real, imag)."""
    real = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
    return known(x.shape, real.get(x.dtype, x.dtype))


def predicate(x: TensorSpec) -> TensorSpec:
    """A boolean for each element."""
    return known(x.shape, dtypes.bool_)


def broadcast(name: str) -> Any:
    """The operands' common shape, in their own dtype; `name` is the op's, for messages."""

    def infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        shape = x.shape if x.shape == y.shape and None not in x.shape else shapes.broadcast(name, x.shape, y.shape)
        return known(shape, x.dtype)

    return infer


def compare(name: str) -> Any:
    """A boolean for each element of the operands' common shape."""

    def infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        return known(shapes.broadcast(name, x.shape, y.shape), dtypes.bool_)

    return infer
