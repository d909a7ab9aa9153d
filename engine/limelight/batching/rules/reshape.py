"""Batching rules of ops that change shapes and the order of axes and elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.batching.rule_table import Shared, Site, batch_shape, kind, with_known_shape
from limelight.core import shapes


@kind("along_axis")
def along_axis(site: Site) -> Any:
    """Ops of one operand with an axis, or axes, among their parameters, which stand one place further on."""
    at = next(i for i, name in enumerate(site.op.attrs) if name in ("axis", "axes"))
    if not _has(site, site.attrs[at]):
        return NotImplemented
    return site.run(site.inputs, *site.attrs[:at], _further(site, site.attrs[at]), *site.attrs[at + 1 :])


@kind("operands_along_axis")
def operands_along_axis(site: Site) -> Any:
    """Operands with the same axes, or fewer where they broadcast."""
    axis, *rest = site.attrs
    rank = site.rank(0)
    if not _has(site, axis):
        return NotImplemented
    operands = [
        x if not m and site.rank(i) < rank else site.wider(i, rank) if m else site.lead(i)
        for i, (x, m) in enumerate(zip(site.inputs, site.mask, strict=True))
    ]
    return site.run(operands, _further(site, axis), *rest)


@kind("along_axis_to_shape")
def along_axis_to_shape(site: Site) -> Any:
    axis, *rest, shape = site.attrs
    if not isinstance(site.size, int) or not _has(site, axis):
        return NotImplemented
    operands = [site.lead(i) for i in range(len(site.inputs))]
    return site.run(operands, _further(site, axis), *rest, (site.size, *shape))


def _has(site: Site, axis: int | tuple[int, ...]) -> bool:
    """Whether one example has an axis, or several. If not, the op alone says what that means, for each example."""
    rank = site.rank(0)
    return all(-rank <= a < rank for a in (axis if isinstance(axis, tuple) else (axis,)))


def _further(site: Site, axis: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """An axis, or several, one place further on."""
    moved = tuple([a + 1 for a in _from_front(axis, site.rank(0))])
    return moved if isinstance(axis, tuple) else moved[0]


def _from_front(axis: int | tuple[int, ...], rank: int) -> list[int]:
    return [a % rank for a in (axis if isinstance(axis, tuple) else (axis,))]


@kind("expand_dims")
def expand_dims(site: Site) -> Any:
    (axis,) = site.attrs
    wanted = axis if isinstance(axis, tuple) else (axis,)
    places = shapes.axes("expand_dims", site.rank(0) + len(wanted), wanted)
    return site.run(site.inputs, tuple([a + 1 for a in places]))


@kind("transpose")
def transpose(site: Site) -> Any:
    return site.run(site.inputs, (0, *[a + 1 for a in site.attrs[0]]))


@kind("argmax")
def argmax(site: Site) -> Any:
    axis, keepdims = site.attrs
    (x,), rank = site.inputs, site.rank(0)
    if axis is not None:
        return site.run((x,), shapes.one_axis(site.op.name, rank, axis) + 1, keepdims)
    positions = site.run((x.reshape(batch_shape(site.size, (_count(site),))),), 1, False)
    return positions.expand_dims(tuple(range(1, rank + 1))) if keepdims and rank else positions


def _count(site: Site) -> int:
    """How many elements one example has, or -1 to leave that to `reshape`."""
    count = shapes.size(site.inputs[0].shape[1:])
    return -1 if count is None else count


@kind("last_axes")
def last_axes(site: Site) -> Any:
    """Ops that look at the last axes of their operands, of stacks of matrices, say: examples go before these."""
    return site.run([site.lead(i) for i in range(len(site.inputs))], *site.attrs)


# Ops that are told a shape


@kind("reshape")
def reshape(site: Site) -> Any:
    (x,), (shape,) = site.inputs, site.attrs
    if -1 in shape and isinstance(site.size, int):
        spec: Any = site.op.infer(*site.specs(), shape)
        shape = tuple([-1 if n is None else n for n in spec.shape])
    if not isinstance(site.size, int) and -1 not in shape and 0 not in shape:
        return x.reshape((-1, *shape))
    return x.reshape(batch_shape(site.size, shape))


@kind("last_axes_to_shape")
def last_axes_to_shape(site: Site) -> Any:
    *rest, shape = site.attrs
    return site.run(site.inputs, *rest, (site.size, *shape)) if isinstance(site.size, int) else NotImplemented


@kind("last_axes_to_shape_dynamic")
def last_axes_to_shape_dynamic(site: Site) -> Any:
    x, shape = site.inputs
    *rest, rank = site.attrs
    return NotImplemented if site.mask[1] else site.run((x, batch_shape(site.size, shape)), *rest, rank + 1)


@kind("along_axis_to_shape_dynamic")
def along_axis_to_shape_dynamic(site: Site) -> Any:
    *operands, shape = site.inputs
    axis, *rest, rank = site.attrs
    if site.mask[-1] or not _has(site, axis):
        return NotImplemented
    operands = [site.lead(i) for i in range(len(operands))]
    return site.run((*operands, batch_shape(site.size, shape)), _further(site, axis), *rest, rank + 1)


@kind("broadcast_to")
def broadcast_to(site: Site) -> Any:
    (shape,) = site.attrs
    result = site.wider(0, len(shape)).broadcast_to(batch_shape(site.size, shape))
    return with_known_shape(result, site.size, shape)


@kind("sum_to")
def sum_to(site: Site) -> Any:
    return _summed(site, site.attrs[0], len(site.attrs[0]))


def _summed(site: Site, shape: Any, rank: int) -> Any:
    """Leading axes are summed to size 1 and dropped, since the examples' axis stands before them."""
    (x, *_), extra = site.inputs, site.rank(0) - rank
    if extra:
        x = x.sum(tuple(range(1, 1 + extra)))
    summed = x.sum_to(batch_shape(site.size, shape))
    return with_known_shape(summed, site.size, shape) if isinstance(shape, tuple) else summed


@kind("reshape_dynamic")
def reshape_dynamic(site: Site) -> Any:
    return _to_vector_of_sizes(site, lambda rank: site.inputs[0])


@kind("broadcast_to_dynamic")
def broadcast_to_dynamic(site: Site) -> Any:
    return _to_vector_of_sizes(site, lambda rank: site.wider(0, rank))


def _to_vector_of_sizes(site: Site, operand: Callable[[int], Any]) -> Any:
    (_, shape), (rank,) = site.inputs, site.attrs
    if not site.mask[0] or site.mask[1]:
        return NotImplemented
    return site.run((operand(rank), batch_shape(site.size, shape)), rank + 1)


@kind("sum_to_dynamic")
def sum_to_dynamic(site: Site) -> Any:
    (_, shape), (rank,) = site.inputs, site.attrs
    return _summed(site, shape, rank) if site.mask == (True, False) else NotImplemented


@kind("shape_of")
def shape_of(site: Site) -> Any:
    return Shared(site.run(site.inputs)[1:])


@kind("pad")
def pad(site: Site) -> Any:
    margins, how = site.attrs
    return site.run(site.inputs, ((0, 0), *margins), how)


@kind("tile")
def tile(site: Site) -> Any:
    (reps,) = site.attrs
    return site.run((site.wider(0, len(reps)),), (1, *reps))
