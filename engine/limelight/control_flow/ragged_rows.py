"""Ops for the rows of a loop: marks of rows whose shapes vary from step to step, and choices by a flag of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.autodiff import filled, zeros
from limelight.batching import Site
from limelight.core import dispatch, shapes
from limelight.core.op import Op, defop, get
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, constant
from limelight.graph.ir import Graph, Value
from limelight.ops._shape_rules import same

# uneven, hollow: mark a row that a body returns as one that may have another shape in another step (and is filled up
# with zeros, and cropped in the backward pass), or may be empty where nobody reads it (and is not cropped)


def crop(g: Tensor, x_shape: Any) -> Tensor:
    """The part of shape `x_shape`, a tuple or a vector known at run time, of a row that was filled up."""
    if not isinstance(x_shape, Tensor):
        row: Tensor = dispatch.apply(get("crop_or_fill_to"), (g,), (tuple(x_shape),))
        return row
    return dispatch.apply(get("crop_or_fill_to_dynamic"), (g, x_shape), (g.ndim,))  # type: ignore[no-any-return]


def _batch_marker(site: Site) -> Any:
    return site.run(site.inputs, *[(site.size if isinstance(site.size, int) else None, *shape) for shape in site.attrs])


uneven_op: Op = defop(
    "uneven",
    inputs="x",
    infer=same,
    kernel=lambda xp, x: x,
    vjp={"x": crop},
    linear="x",
    batching=_batch_marker,
    maths={"x": "x̄ = ȳ, cropped to the shape of x: the loop may have filled it up with 0"},
)


def _zeros_if_empty(xp: Any, x: Any, shape: Shape) -> Any:
    """`x`, or zeros where it is empty and its shape is known. Where it is not known, the loop fills it up."""
    return x if x.size or None in shape else xp.zeros(shape, dtype=x.dtype)


hollow_op: Op = defop(
    "hollow",
    inputs="x",
    attrs="shape",
    infer=lambda x, shape: known(shape, x.dtype),
    kernel=_zeros_if_empty,
    vjp={"x": lambda g: g},
    linear="x",
    batching=_batch_marker,
    maths={"x": "x̄ = ȳ: where x is empty, nobody reads it"},
)


def marked_value(value: Value) -> Value | None:
    """The value behind a marked result of a body; None where it is not marked, so that all rows must have one shape."""
    node = value.node
    while node is not None and node.op == "to_device":
        node = node.inputs[0].node
    return node.inputs[0] if node is not None and node.op in (uneven_op, hollow_op) else None


def ragged_results(graph: Graph) -> frozenset[int]:
    """The numbers of the results of a body that are marked."""
    return frozenset([i for i, value in enumerate(graph.outputs) if marked_value(value) is not None])


# kept_if: a tensor, or zeros


def _batch_choice(site: Site) -> Any:
    """Where examples differ in the condition, `where` chooses."""
    condition, *operands = site.inputs
    leading = [site.lead(i) for i in range(1, len(operands) + 1)]
    if not site.mask[0]:
        return site.run((condition, *leading))
    other: Any = leading[1] if len(leading) > 1 else constant(0, leading[0].dtype)
    return condition.reshape((-1,) + (1,) * (leading[0].ndim - 1)).where(leading[0], other)


def _kept_numpy(xp: Any, condition: Any, x: Any) -> Any:
    if not isinstance(x, np.ndarray | np.generic):  # a stand-in for an array (executors.loops)
        return np.where(condition, x, np.zeros((), x.dtype))
    return x if condition else np.zeros_like(x)


kept_if: Op = defop(
    "kept_if",
    inputs="condition:bool x",
    infer=lambda condition, x: known(x.shape, x.dtype),
    kernel=lambda xp, condition, x: x if condition else xp.zeros_like(x),
    special={
        "numpy": _kept_numpy,
        "jax": lambda xp, condition, x: xp.where(condition, x, xp.zeros_like(x)),
    },  # it may be traced
    vjp={"x": lambda g, condition: dispatch.apply(kept_if, (condition, g))},
    linear="x",
    batching=_batch_choice,
    maths={"x": "x̄ = ȳ if the condition holds, else 0"},
)

# either: one of two tensors, which need not have one shape


def _infer_either(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    return known(shapes.generalise(x.shape, y.shape) or x.shape, x.dtype)


def _pull_either(g: Any, condition: Any, x_shape: Any, y_shape: Any) -> Any:
    """The gradient of the operand `x` that the condition chooses.

    Args:
        g: the gradient of the result.
        condition: whether `x` is the result.
        x_shape: the shape of `x`, a tuple or a tensor.
        y_shape: the shape of the other operand.
    """
    if isinstance(x_shape, tuple) and isinstance(y_shape, tuple) and x_shape == y_shape:
        return dispatch.apply(kept_if, (condition, g))
    return dispatch.apply(either, (condition, g, zeros(x_shape, g.dtype)))


def _jvp_either(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    condition, *values = inputs
    moved = [filled(0, x) if t is None else t for x, t in zip(values, tangents[1:], strict=True)]
    return dispatch.apply(either, inputs), (dispatch.apply(either, (condition, *moved)),)


def _either_of_jax(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """Of equal shapes, one of both, also where the condition is traced."""
    return xp.where(condition, x, y) if x.shape == y.shape else (x if condition else y)


def _either_numpy(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(x, np.ndarray | np.generic) and x.shape == y.shape:  # stand-ins for arrays (executors.loops)
        return np.where(condition, x, y)
    return x if condition else y


either: Op = defop(
    "either",
    inputs="condition:bool x y",
    infer=_infer_either,
    kernel=lambda xp, condition, x, y: x if condition else y,
    special={"numpy": _either_numpy, "jax": _either_of_jax},
    vjp={
        "x": _pull_either,
        "y": lambda g, condition, x_shape, y_shape: _pull_either(g, ~condition, y_shape, x_shape),
    },
    jvp=_jvp_either,
    batching=_batch_choice,
    maths={"x": "x̄ = z̄ if the condition holds, else 0", "y": "ȳ = z̄ if it does not, else 0"},
)
