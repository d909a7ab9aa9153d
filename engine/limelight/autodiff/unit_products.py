"""Products with every unit vector: the rows of a Jacobian, pulled back, or its columns, pushed forward.

Both entry points to Jacobians use them, `GradientTape.jacobian` for rows and `ll.jacobian(mode="forward")` for columns.
Taken together they are one pass of batched ops. One after the other takes 6 times as long for 64 rows of a small
network, and up to 60 times. Unit vectors are made block by block, so that a chunk bounds the memory that they take as
well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from limelight.batching import vectorize
from limelight.core import device_scopes, shapes
from limelight.core.devices import CPU0
from limelight.core.dispatch import apply
from limelight.core.dtypes import int64
from limelight.core.op import get
from limelight.core.tensor import Tensor, as_tensor, constant

Product = Callable[[Tensor], list[Any]]
"""From a vector to its products with several maps; None in the place of a map without influence."""


def unit_products(product: Product, like: Any, size: Any, chunk: int | None, at_once: bool) -> list[Any]:
    """The products with each unit vector, stacked along a new first axis.

    Args:
        product: the map, which is linear.
        like: whose dtype and device the unit vectors have.
        size: their length: an int, or in a trace a scalar tensor; then all are taken at once.
        chunk: how many are taken at a time; None for all.
        at_once: whether those are taken together, by `vectorize`; False takes one after the other.
    """
    if isinstance(size, int) and not at_once:
        rows = [product(unit_vectors(i, i + 1, size, like)[0]) for i in range(size)]
        return [_joined("stack", column) for column in zip(*rows, strict=True)]
    together = vectorize(product, chunk_size=chunk)
    if not isinstance(size, int) or not size:
        products: list[Any] = together(unit_vectors(0, size, size, like))
        return products
    step = chunk or size
    blocks = [together(unit_vectors(start, min(start + step, size), size, like)) for start in range(0, size, step)]
    return blocks[0] if len(blocks) == 1 else [_joined("concat", column) for column in zip(*blocks, strict=True)]


def _joined(op: str, parts: Sequence[Any]) -> Any:
    return None if parts[0] is None else apply(get(op), tuple(parts), (0,))


def unit_vectors(start: int, stop: Any, size: Any, like: Any) -> Tensor:
    """Rows `start` to `stop` of the unit matrix, without static `size` all of them; dtype and device are `like`'s."""
    if like._device is not CPU0 and like._device is not device_scopes.requested_device():
        with device_scopes.device(like._device):
            return unit_vectors(start, stop, size, like)
    if isinstance(size, int):
        columns = apply(get("arange"), (), (0, 1, size, int64))
        rows = apply(get("arange"), (), (start, 1, stop - start, int64))
    else:
        rows = columns = apply(get("arange_dynamic"), (constant(0, int64), size, constant(1, int64)))
    matrix: Tensor = (rows.expand_dims(1) == columns).astype(like.dtype)
    return matrix


def size_of(sizes: Any) -> Any:
    """The number of elements of a shape as `Tensor.sizes` gives it: an int, or a scalar tensor."""
    return shapes.size(sizes) if isinstance(sizes, tuple) else sizes.prod()


def joined_sizes(left: Any, right: Any) -> Any:
    """Two shapes one after the other."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    parts = [as_tensor(part).astype(int64) for part in (left, right) if not isinstance(part, tuple) or part]
    return parts[0] if len(parts) == 1 else apply(get("concat"), tuple(parts), (0,))
