"""Windows that slide over the spatial axes of (batch, *space, channels): what convolutions and pools have in common.

Here are the arguments as users write them made canonical, the sizes that come out, and what is wrong with those that
do not fit. In a graph `stride` and `dilation` are tuples with a number for each spatial axis, and `padding` is a tuple
of (before, after) or the word "same", which stands for margins that depend on the input's size.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from limelight.core.shapes import Shape
from limelight.errors import ArgumentError, ShapeError

PaddingLike: TypeAlias = str | int | Sequence[int] | Sequence[tuple[int, int]]
Pairs: TypeAlias = tuple[tuple[int, int], ...]
Padding: TypeAlias = Pairs | Literal["same"]
Ints: TypeAlias = tuple[int, ...]
Slices: TypeAlias = tuple[slice, ...]
NAMES = ("batch, length, channels", "batch, height, width, channels", "batch, depth, height, width, channels")


# --- arguments


def spatial_rank(name: str, x: Any) -> int:
    """How many spatial axes `x` has: 1 to 3. Raises ShapeError."""
    if 3 <= x.ndim <= 5:
        return int(x.ndim) - 2
    forms = "; or ".join(f"({names})" for names in NAMES)
    raise ShapeError(f"{name}: x must be {forms}; got {x.spec} (write x.expand_dims(0) for a single example)")


def per_axis(name: str, what: str, value: int | Sequence[int], n: int, least: int = 1) -> Ints:
    """A setting as one number for each spatial axis.

    Args:
        name: the op's, for the message.
        what: the setting's name, for the message.
        value: a whole number, or one for each axis.
        n: how many spatial axes there are.
        least: the smallest number allowed.

    Returns:
        `n` ints.

    Raises:
        ArgumentError: the setting is anything else.
    """
    if type(value) is int and value >= least:
        return (value,) * n
    try:
        numbers = (value.__index__(),) * n if hasattr(value, "__index__") else tuple([v.__index__() for v in value])
    except (AttributeError, TypeError):
        numbers = ()
    if len(numbers) != n or min(numbers) < least:
        raise ArgumentError(
            f"{name}: {what} must be one whole number of at least {least}, or one for each of the {n} spatial axes; "
            f"got {value!r}"
        )
    return numbers


def as_padding(name: str, value: PaddingLike, n: int) -> Padding:
    """`value` as margins for each of `n` spatial axes, or "same"; words in any case. Raises ArgumentError."""
    if isinstance(value, str) and value.lower() == "same":
        return "same"
    try:
        if isinstance(value, str):
            margins: Any = ((0, 0),) * n if value.lower() == "valid" else ()
        elif hasattr(value, "__index__"):
            margins = ((value.__index__(), value.__index__()),) * n
        else:
            margins = tuple([(p, p) if isinstance(p, int) else (p[0].__index__(), p[1].__index__()) for p in value])
    except (AttributeError, IndexError, TypeError):
        margins = ()
    if len(margins) != n or min(map(min, margins)) < 0:
        causal = value == "causal" and n == 1
        hint = "; causal is padding=((dilation * (window - 1), 0),)" if causal else ""
        raise ArgumentError(
            f"{name}: padding must be 'same', 'valid', a whole number, or a number or (before, after) for each of the "
            f"{n} spatial axes, none negative; got {value!r}{hint}"
        )
    return margins  # type: ignore[no-any-return]


# --- sizes


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows lie: all sizes by spatial axis. `pads` are the margins, `out` the number of windows."""

    space: Ints
    window: Ints
    stride: Ints
    dilation: Ints
    pads: Pairs
    out: Ints

    @property
    def padded(self) -> Ints:
        """The sizes of the space with its margins."""
        return tuple([n + a + b for n, (a, b) in zip(self.space, self.pads, strict=True)])

    @property
    def reach(self) -> Ints:
        """How far a window stretches, gaps included."""
        return tuple([reach_of(k, d) for k, d in zip(self.window, self.dilation, strict=True)])


def reach_of(window: int, dilation: int) -> int:
    return (window - 1) * dilation + 1


def same_pads(n: int, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """The margins with which ceil(n / stride) windows fit; an odd one goes behind, as in TensorFlow.

    Args:
        n: the size of the axis.
        window: the size of the window.
        stride: from one window to the next.
        dilation: from one place of the window to the next.

    Returns:
        How many elements go before and behind.
    """
    total = max((-(-n // stride) - 1) * stride + reach_of(window, dilation) - n, 0)
    return total // 2, total - total // 2


def out_sizes(name: str, x: Any, space: Shape, window: Shape, stride: Ints, padding: Padding, dilation: Ints) -> Shape:
    """How many windows fit along each spatial axis.

    Args:
        name: the op's, for messages.
        x: the input's spec, for messages.
        space: the sizes of the spatial axes.
        window: the sizes of the window.
        stride: from one window to the next, for each axis.
        padding: margins for each axis, or "same".
        dilation: from one place of the window to the next, for each axis.

    Returns:
        A number for each axis, None where it is not known.

    Raises:
        ShapeError: a window does not fit into the space.
    """
    counts: list[int | None] = []
    for i, (n, k, s, d) in enumerate(zip(space, window, stride, dilation, strict=True)):
        if n is None or (k is None and padding != "same"):
            counts.append(None)
        elif padding == "same":
            counts.append(-(-n // s))
        else:
            assert k is not None
            room, reach = n + sum(padding[i]), reach_of(k, d)
            if room < reach:
                raise ShapeError(_too_large(name, x, i + 1, n, k, d, padding[i]))
            counts.append((room - reach) // s + 1)
    return tuple(counts)


def _too_large(name: str, x: Any, axis: int, n: int, k: int, dilation: int, pads: tuple[int, int]) -> str:
    wide = f" (which reaches over {reach_of(k, dilation)} with dilation {dilation})" if dilation > 1 else ""
    margin = f" and {sum(pads)} of padding" if sum(pads) else ""
    return (
        f"{name}: a window of {k}{wide} does not fit into axis {axis} of {x}, which has size {n}{margin}; "
        "use a smaller window, or padding='same'"
    )


def windows_over(
    name: str, x: Any, space: Ints, window: Ints, stride: Ints, padding: Padding, dilation: Ints
) -> Windows:
    """The windows over a space of known sizes.

    Args:
        name: the op's, for messages.
        x: the input's spec, for messages.
        space: the sizes of the spatial axes.
        window: the sizes of the window.
        stride: from one window to the next, for each axis.
        padding: margins for each axis, or "same".
        dilation: from one place of the window to the next, for each axis.

    Returns:
        Where the windows lie.

    Raises:
        ShapeError: a window does not fit into the space.
    """
    out: Any = out_sizes(name, x, space, window, stride, padding, dilation)
    if padding == "same":
        padding = tuple([same_pads(*sizes) for sizes in zip(space, window, stride, dilation, strict=True)])
    return Windows(space, window, stride, dilation, padding, out)


# --- taps: the places in a window


@functools.lru_cache(maxsize=1024)
def taps(at: Windows) -> tuple[tuple[Ints, Slices], ...]:
    """For each place in the window, its index and where the windows have it in the padded (batch, *space, channels)."""
    return tuple(
        [
            (
                place,
                (
                    slice(None),
                    *[_every(i * d, s, m) for i, d, s, m in zip(place, at.dilation, at.stride, at.out, strict=True)],
                ),
            )
            for place in itertools.product(*map(range, at.window))
        ]
    )


def _every(start: int, step: int, count: int) -> slice:
    return slice(start, start + (count - 1) * step + 1, step) if count else slice(0, 0)


def inside_margins(at: Windows) -> Slices:
    """Where in the padded array the space itself is."""
    return (slice(None), *[slice(a, a + n) for n, (a, _) in zip(at.space, at.pads, strict=True)])


@functools.lru_cache(maxsize=1024)
def real_taps(at: Windows) -> tuple[tuple[Slices, Slices], ...]:
    """For each place in the window: the windows in which it is no margin, and where these have it in the input."""
    axes = [
        [_real(i * at.dilation[a] - at.pads[a][0], at.stride[a], at.out[a], n) for i in range(at.window[a])]
        for a, n in enumerate(at.space)
    ]
    return tuple(
        [
            ((slice(None), *[p[0] for p in parts]), (slice(None), *[p[1] for p in parts]))
            for parts in itertools.product(*axes)
        ]
    )


def _real(offset: int, stride: int, count: int, n: int) -> tuple[slice, slice]:
    """The windows i with 0 <= offset + i * stride < n, and those places."""
    first = max(0, -(offset // stride))
    last = min(count, -(-(n - offset) // stride))
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), _every(offset + first * stride, stride, last - first)


def along_one_axis(at: Windows, axis: int) -> Windows:
    """The same windows over one spatial axis, of size 1 over the others: `at` axis by axis, first to last."""
    done = range(axis)
    n = len(at.space)
    pick = [i == axis for i in range(n)]
    space = tuple([at.out[i] if i in done else at.space[i] for i in range(n)])
    return Windows(
        space,
        tuple([k if p else 1 for k, p in zip(at.window, pick, strict=True)]),
        tuple([s if p else 1 for s, p in zip(at.stride, pick, strict=True)]),
        tuple([d if p else 1 for d, p in zip(at.dilation, pick, strict=True)]),
        tuple([m if p else (0, 0) for m, p in zip(at.pads, pick, strict=True)]),
        tuple([at.out[i] if i <= axis else at.space[i] for i in range(n)]),
    )


@functools.lru_cache(maxsize=1024)
def one_axis_at_a_time(at: Windows) -> tuple[Windows, ...]:
    """`at` as windows along one axis after the other, without the axes where there is nothing to do."""
    one_by_one = [(axis, along_one_axis(at, axis)) for axis in range(len(at.space))]
    return tuple(
        [one for axis, one in one_by_one if one.window[axis] > 1 or one.stride[axis] > 1 or one.pads[axis] != (0, 0)]
    )
