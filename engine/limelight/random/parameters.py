"""Parameters of distributions: numbers or tensors, which broadcast; the shape and dtype of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from limelight import dtypes, shapes
from limelight.dispatch import active
from limelight.dtypes import DType, DTypeLike
from limelight.errors import ShapeError
from limelight.ops._draws import floating
from limelight.tensor import Tensor, as_tensor, constant, wrap

ShapeLike: TypeAlias = int | Sequence[int] | Tensor | None
_EXACT: Final = {int: True, float: True}


def plain(x: Any) -> bool:
    """Whether a parameter is a Python number, which has no shape and takes on any dtype."""
    return type(x) in _EXACT


def prepared(name: str, dtype: DTypeLike | None, *parameters: Any) -> tuple[DType, list[Any]]:
    """The dtype to draw in (by default the parameters' own, else float32), and parameters as numbers or tensors."""
    found = [x if type(x) is Tensor or plain(x) else as_tensor(x) for x in parameters]
    if dtype is None:
        dtype = next((x.dtype for x in found if not plain(x) and dtypes.is_floating(x.dtype)), dtypes.float32)
    return floating(name, dtype), found


def sizes(name: str, shape: ShapeLike, parameters: Sequence[Any]) -> Any:
    """What is drawn: the shape asked for, else the parameters' common one; a vector where sizes are unknown."""
    if shape is not None:
        return shape if isinstance(shape, Tensor) else shapes.as_shape(shape)
    tensors = [x for x in parameters if not plain(x)]
    if len(tensors) < 2:
        return tensors[0].sizes() if tensors else ()
    if all(shapes.is_static(x.shape) for x in tensors):
        return shapes.broadcast(f"random.{name}", *[x.shape for x in tensors])
    total = tensors[0]
    for x in tensors[1:]:
        total = total + x
    return total.sizes()


def fitted(name: str, drawn: Tensor, result: Tensor) -> Tensor:
    """`result`, made of what was drawn and of parameters, which must not have made it larger.

    Raises ShapeError where they have: several results would share one draw.
    """
    if result is not drawn and not shapes.compatible(result.shape, drawn.shape):
        raise ShapeError(
            f"random.{name}: the parameters broadcast to {shapes.show(result.shape)}, which is not the shape "
            f"asked for, {shapes.show(drawn.shape)}; leave the shape out to draw one number for each parameter"
        )
    return result


def spread(x: Any, dtype: DType, shape: Any) -> Tensor:
    """A parameter as a tensor with one element for each that is drawn."""
    if plain(x) and type(shape) is tuple and not active:
        return wrap(np.full(shape, x, dtype))
    tensor = constant(x, dtype) if plain(x) else x
    if type(shape) is tuple and tensor.shape == shape:
        return tensor
    spread_out: Tensor = tensor.broadcast_to(shape)
    return spread_out
