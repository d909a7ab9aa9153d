"""Parameters of distributions: numbers or tensors, which broadcast; the shape and dtype of what is drawn.

Without a shape each parameter gets a draw. With one, parameters that would make the result larger are an error, since
several results would share a draw.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dispatch import active
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.tensor import Tensor, as_tensor, constant, wrap
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError
from limelight.ops._given_shape import as_shape
from limelight.ops.random._draws import floating

ShapeLike: TypeAlias = int | Sequence[int] | Tensor | None
_EXACT: Final = {int: True, float: True}


_CALLS: Final = {
    "normal": "shape, mean, stddev",
    "uniform": "shape, low, high",
    "exponential": "shape, scale",
    "laplace": "shape, mean, scale",
    "gumbel": "shape, mode, scale",
    "cauchy": "shape, median, scale",
    "truncated_normal": "shape, mean, stddev, low, high",
    "gamma": "concentration, scale, shape",
    "beta": "a, b, shape",
    "dirichlet": "concentration, shape",
    "integers": "low, high, shape",
    "bernoulli": "p, shape",
    "poisson": "rate, shape",
    "categorical": "logits, shape",
    "choice": "x, shape",
    "multinomial": "n, p, shape",
}
"""The order of arguments: the shape comes first where the others have defaults, and last where they do not."""


def call_hint(name: str) -> str:
    """How to write a call of a distribution whose arguments were perhaps given in another order."""
    return f"write random.{name}({_CALLS[name]}), shape=... by name where in doubt"


def refuse_generator(name: str, given: Any) -> None:
    """Raises CallError for a generator where an argument belongs: JAX's functions take a key first."""
    if hasattr(given, "reset") and hasattr(given, "split"):
        raise CallError(
            f"random.{name}: a generator is no argument; draws are its methods: write "
            f"generator.{name}({_CALLS.get(name, '...')})"
        )


def whole(name: str, what: str, n: Any) -> int:
    """`n` as a Python int. Raises ArgumentError that shows the call."""
    refuse_generator(name, n)
    if isinstance(n, (tuple, list, float, str)):
        raise ArgumentError(f"random.{name}: {what} must be an int, got {n!r} ({type(n).__name__}); {call_hint(name)}")
    return shapes.whole(f"random.{name}", what, n)


def check_domain(name: str, most: float = inf, **given: Any) -> None:
    """Raises ArgumentError for Python numbers below 0 or above `most`; tensors are looked at by the op, if at all."""
    for parameter, value in given.items():
        if is_number(value) and (value < 0 or value > most):
            allowed = "at least 0" if most == inf else f"from 0 to {most}"
            raise ArgumentError(f"random.{name}: {parameter} must be {allowed}, got {value}")


def check_one_shape(name: str, shape: Any, *parameters: Any) -> None:
    """Raises CallError for normal(3, 4), which elsewhere is a matrix, and uniform(0, 1), where the shape comes last."""
    if type(shape) is not int:
        refuse_generator(name, shape)
        return
    sizes = list(itertools.takewhile(lambda n: type(n) is int, parameters))
    if not sizes or min(sizes) < 1:  # normal(5, 0, 1) can only be meant as it is
        return
    if any(isinstance(n, (tuple, list)) for n in parameters):
        raise CallError(f"random.{name}: the shape comes first; {call_hint(name)}")
    what = _CALLS[name].split(", ")[1]
    raise CallError(
        f"random.{name}: is {sizes[0]} a size, or a parameter? The sizes are one argument: write "
        f"random.{name}({(shape, *sizes)}); a parameter beside the size {shape} is written as a float: "
        f"random.{name}(({shape},), {what}={float(sizes[0])})"
    )


def is_number(x: Any) -> bool:
    """Whether a parameter is a Python number, which has no shape and takes on any dtype."""
    return type(x) in _EXACT


def as_parameters(name: str, dtype: DTypeLike | None, *parameters: Any) -> tuple[DType, list[Any]]:
    """The dtype to draw in (by default the parameters' own, else float32), and parameters as numbers or tensors."""
    values = [x if type(x) is Tensor or is_number(x) else _as_parameter(name, x) for x in parameters]
    for x in values:
        if not is_number(x) and not dtypes.is_floating(x.dtype):
            like_shape = dtypes.kind(x.dtype) == "integer" and x.ndim == 1
            hint = f"is that a shape? Then {call_hint(name)}" if like_shape else "write ll.astype(x, ll.float32) first"
            raise DTypeError(f"random.{name} needs floating parameters, got {x.spec}; {hint}")
    if dtype is None:
        dtype = next((x.dtype for x in values if not is_number(x) and dtypes.is_floating(x.dtype)), dtypes.float32)
    return floating(name, dtype), values


def _as_parameter(name: str, x: Any) -> Tensor:
    refuse_generator(name, x)
    return as_tensor(x)


def drawn_shape(name: str, shape: ShapeLike, parameters: Sequence[Any]) -> Any:
    """What is drawn: the shape asked for, else the parameters' common one; a vector where sizes are unknown."""
    if shape is not None:
        return _shape(name, shape)
    tensors = [x for x in parameters if not is_number(x)]
    if len(tensors) < 2:
        return tensors[0].sizes() if tensors else ()
    if all(shapes.is_static(x.shape) for x in tensors):
        return shapes.broadcast(f"random.{name}", *[x.shape for x in tensors])
    total = tensors[0]
    for x in tensors[1:]:
        total = total + x
    return total.sizes()


def _shape(name: str, shape: Any) -> Any:
    floating_one = isinstance(shape, Tensor) and dtypes.kind(shape.dtype) != "integer"
    if not floating_one:
        try:
            return as_shape(shape)
        except ShapeError as error:
            problem = error.bare
    else:
        problem = f"a shape: sizes must be integers, got {shape.spec}"
    raise ShapeError(f"random.{name}: {problem.removesuffix('; write int(n)')}; {call_hint(name)}")


def check_not_larger(name: str, drawn: Tensor, result: Tensor) -> Tensor:
    """`result`, made of what was drawn and of parameters, which must not have made it larger.

    Raises ShapeError where they have: several results would share one draw.
    """
    if result is not drawn and not shapes.compatible(result.shape, drawn.shape):
        raise ShapeError(
            f"random.{name}: the parameters broadcast to {shapes.show(result.shape)}, which is not the shape "
            f"asked for, {shapes.show(drawn.shape)}; leave the shape out to draw one number for each parameter"
        )
    return result


def broadcast_parameter(x: Any, dtype: DType, shape: Any) -> Tensor:
    """A parameter as a tensor with one element for each that is drawn."""
    if is_number(x) and type(shape) is tuple and not active:
        return wrap(np.full(shape, x, dtype))
    tensor = constant(x, dtype) if is_number(x) else x
    if type(shape) is tuple and tensor.shape == shape:
        return tensor
    spread_out: Tensor = tensor.broadcast_to(shape)
    return spread_out
