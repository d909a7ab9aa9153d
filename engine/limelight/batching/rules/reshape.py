"""Batching rules of ops that change shapes and the order of axes and elements."""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Shared, Site, rule, settled, shape_with
from limelight.core import shapes

# Ops with an axis, or axes, among their parameters, which stand one place further on

_AXIS = {
    "argsort": 0,
    "crop_or_fill": 0,
    "cumextreme": 0,
    "cumextreme_places": 0,
    "cumprod": 0,
    "cumsum": 0,
    "delay": 0,
    "fft": 0,
    "fftshift": 0,
    "flip": 0,
    "irfft": 0,
    "irfft_transpose": 0,
    "lead": 0,
    "log_softmax": 0,
    "repeat": 1,
    "rfft": 0,
    "roll": 1,
    "softmax": 0,
    "sort": 0,
    "split": 1,
    "squeeze": 0,
    "standardise": 0,
    "top_k_places": 1,
    "unstack": 0,
}
"""Where the parameter is."""


_SEVERAL = ("put_along_axis", "put_wins", "recurrence", "reorder", "standardise_gradient", "take_along_axis")
_TO_SHAPE = ("irfft_to", "rfft_transpose", "scatter_along_axis")


@rule(*_AXIS)
def along(site: Site) -> Any:
    at = _AXIS[site.op.name]
    return site.run(site.inputs, *site.attrs[:at], _further(site, site.attrs[at]), *site.attrs[at + 1 :])


@rule(*_SEVERAL)
def of_several_along(site: Site) -> Any:
    """Operands with the same axes, or fewer where they broadcast."""
    axis, *rest = site.attrs
    rank = site.rank(0)
    given = [
        x if not m and site.rank(i) < rank else site.wider(i, rank) if m else site.lead(i)
        for i, (x, m) in enumerate(zip(site.inputs, site.mask, strict=True))
    ]
    return site.run(given, _further(site, axis), *rest)


@rule(*_TO_SHAPE)
def along_to_a_shape(site: Site) -> Any:
    axis, *rest, shape = site.attrs
    if not isinstance(site.size, int):
        return NotImplemented
    given = [site.lead(i) for i in range(len(site.inputs))]
    return site.run(given, _further(site, axis), *rest, (site.size, *shape))


def _further(site: Site, axis: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """An axis, or several, one place further on."""
    moved = tuple([a + 1 for a in _from_front(axis, site.rank(0))])
    return moved if isinstance(axis, tuple) else moved[0]


def _from_front(axis: int | tuple[int, ...], rank: int) -> list[int]:
    return [a % rank if rank else a for a in (axis if isinstance(axis, tuple) else (axis,))]


@rule("expand_dims")
def expand_dims(site: Site) -> Any:
    (axis,) = site.attrs
    wanted = axis if isinstance(axis, tuple) else (axis,)
    places = shapes.axes("expand_dims", site.rank(0) + len(wanted), wanted)
    return site.run(site.inputs, tuple([a + 1 for a in places]))


@rule("transpose")
def transpose(site: Site) -> Any:
    return site.run(site.inputs, (0, *[a + 1 for a in site.attrs[0]]))


@rule("argmax", "argmin")
def place_of_extreme(site: Site) -> Any:
    axis, keepdims = site.attrs
    (x,), rank = site.inputs, site.rank(0)
    if axis is not None:
        return site.run((x,), shapes.one_axis(site.op.name, rank, axis) + 1, keepdims)
    found = site.run((x.reshape(shape_with(site.size, (_count(site),))),), 1, False)
    return found.expand_dims(tuple(range(1, rank + 1))) if keepdims and rank else found


def _count(site: Site) -> int:
    """How many elements one example has, or -1 to leave that to `reshape`."""
    found = shapes.size(site.inputs[0].shape[1:])
    return -1 if found is None else found


@rule("diagonal", "matrix_transpose", "full_like", "one_hot")
def of_the_last_axes(site: Site) -> Any:
    """What goes before the last axes does not matter to them."""
    return site.run(site.inputs, *site.attrs)


# Ops that are told a shape


@rule("reshape")
def reshape(site: Site) -> Any:
    (x,), (shape,) = site.inputs, site.attrs
    if -1 in shape and isinstance(site.size, int):
        spec: Any = site.op.infer(*site.specs(), shape)
        shape = tuple([-1 if n is None else n for n in spec.shape])
    if not isinstance(site.size, int) and -1 not in shape and 0 not in shape:
        return x.reshape((-1, *shape))
    return x.reshape(shape_with(site.size, shape))


@rule("crop_or_fill_to", "from_diagonal")
def to_a_shape(site: Site) -> Any:
    *rest, shape = site.attrs
    return site.run(site.inputs, *rest, (site.size, *shape)) if isinstance(site.size, int) else NotImplemented


@rule("crop_or_fill_to_dynamic", "from_diagonal_dynamic")
def to_a_shape_as_a_vector(site: Site) -> Any:
    x, shape = site.inputs
    *rest, rank = site.attrs
    return NotImplemented if site.mask[1] else site.run((x, shape_with(site.size, shape)), *rest, rank + 1)


@rule(*[f"{name}_dynamic" for name in _TO_SHAPE])
def along_to_a_shape_as_a_vector(site: Site) -> Any:
    *given, shape = site.inputs
    axis, *rest, rank = site.attrs
    if site.mask[-1]:
        return NotImplemented
    given = [site.lead(i) for i in range(len(given))]
    return site.run((*given, shape_with(site.size, shape)), _further(site, axis), *rest, rank + 1)


@rule("broadcast_to")
def broadcast_to(site: Site) -> Any:
    (shape,) = site.attrs
    found = site.wider(0, len(shape)).broadcast_to(shape_with(site.size, shape))
    return settled(found, site.size, shape)


@rule("sum_to")
def sum_to(site: Site) -> Any:
    return _summed(site, site.attrs[0], len(site.attrs[0]))


def _summed(site: Site, shape: Any, rank: int) -> Any:
    """Leading axes are summed to size 1 and dropped, since the examples' axis stands before them."""
    (x, *_), extra = site.inputs, site.rank(0) - rank
    if extra:
        x = x.sum(tuple(range(1, 1 + extra)))
    found = x.sum_to(shape_with(site.size, shape))
    return settled(found, site.size, shape) if isinstance(shape, tuple) else found


@rule("reshape_dynamic", "broadcast_to_dynamic", "sum_to_dynamic")
def to_a_shape_found_at_run_time(site: Site) -> Any:
    _, shape = site.inputs
    (rank,) = site.attrs
    if not site.mask[0] or site.mask[1]:
        return NotImplemented
    if site.op == "sum_to_dynamic":
        return _summed(site, shape, rank)
    x = site.wider(0, rank) if site.op == "broadcast_to_dynamic" else site.inputs[0]
    return site.run((x, shape_with(site.size, shape)), rank + 1)


@rule("shape_of")
def shape_of(site: Site) -> Any:
    return Shared(site.run(site.inputs)[1:])


@rule("pad", "pad_continued", "pad_folded")
def pad(site: Site) -> Any:
    margins, how = site.attrs
    return site.run(site.inputs, ((0, 0), *margins), how)


@rule("tile")
def tile(site: Site) -> Any:
    (reps,) = site.attrs
    return site.run((site.wider(0, len(reps)),), (1, *reps))
