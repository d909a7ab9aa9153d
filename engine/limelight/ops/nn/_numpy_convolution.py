"""Convolution and its two gradients on NumPy arrays: several routes to each, and the choice between them.

Every route takes float32 or float64 arrays and windows (`_windows.Windows`) of one group of channels. What they cost is
in docs/performance.md, measured by benchmarks/convolution.py. The choice is `chosen_route`, at the end, and nowhere
else: float32 goes by the tiles of limelight-native where that is installed. (JAX's kernels were measured as well, and
are left to whole compiled functions.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Final

import numpy as np

from limelight.ops.nn import _native_convolution
from limelight.ops.nn._windows import Ints, Windows, inside_margins, taps

Array = Any
Route = Callable[..., Array]
BUDGET: Final = 4 << 20
"""Bytes of patches that are laid out at a time: about what a core keeps in its second cache, so that the product
finds them there, and a bound on memory besides."""

FEW_CHANNELS: Final = 4
"""With so few, runs of neighbours in memory are short, and what copies them whole gains nothing."""


# --- what routes share


def padded(x: Array, at: Windows, value: float = 0) -> Array:
    """`x` with its margins, contiguous; `x` itself where it is that already."""
    if at.padded == at.space:
        return np.ascontiguousarray(x)
    shape = (len(x), *at.padded, x.shape[-1])
    out = np.zeros(shape, x.dtype) if value == 0 else np.full(shape, value, x.dtype)
    out[inside_margins(at)] = x
    return out


def patches(x: Array, at: Windows) -> Array:
    """A view (batch, *windows, *window, channels) of a padded, contiguous `x`: the patch under each window."""
    steps, channel = x.strides[1:-1], x.strides[-1]
    across = [s * step for s, step in zip(at.stride, steps, strict=True)]
    within = [d * step for d, step in zip(at.dilation, steps, strict=True)]
    shape = (len(x), *at.out, *at.window, x.shape[-1])
    return np.ndarray(shape, x.dtype, x, 0, (x.strides[0], *across, *within, channel))


def _images(count: int, nbytes: int) -> Iterator[slice]:
    """The images of a batch, as many at a time as fit into the budget with `nbytes` each; one at least."""
    some = max(BUDGET // max(nbytes, 1), 1)
    for i in range(0, count, some):
        yield slice(i, i + some)


def _blocks(images: int, rows: int, nbytes: int) -> Iterator[tuple[slice, slice]]:
    """Images and rows to work on at a time when a row takes `nbytes`: several images, or some rows of one."""
    if rows * nbytes <= BUDGET:
        for some in _images(images, rows * nbytes):
            yield some, slice(None)
        return
    for i in range(images):
        for part in _images(rows, nbytes):
            yield slice(i, i + 1), part


def _laid_out(x: Array, at: Windows) -> Iterator[tuple[tuple[slice, slice], Array]]:
    """The patches as matrices (windows, window * channels), some images or rows at a time, in one buffer.

    With few channels the matrices lie in memory by columns, since then the longest runs of numbers to copy are along
    the windows; products take either.
    """
    view = patches(padded(x, at), at)
    n, width = len(at.window), prod(at.window) * x.shape[-1]
    columns = x.shape[-1] <= FEW_CHANNELS
    turned = (*range(n + 1, 2 * n + 2), *range(n + 1)) if columns else tuple(range(2 * n + 2))
    buffer: Any = None
    for block in _blocks(len(x), at.out[0], prod(at.out[1:]) * width * x.itemsize):
        part = view[block].transpose(turned)
        if buffer is None:  # the first block is the largest
            buffer = np.empty(part.size, x.dtype)
        room = buffer[: part.size]
        room.reshape(part.shape)[...] = part
        yield block, room.reshape(width, -1).T if columns else room.reshape(-1, width)


# --- forward


def _by_product(x: Array, w: Array, at: Windows) -> Array:
    """Windows of one place: a product of matrices, of every so many places where there is a stride."""
    ((_, everywhere),) = taps(at)
    flat = padded(x, at)[everywhere].reshape(-1, x.shape[-1])
    return flat.dot(w.reshape(w.shape[-2:])).reshape(len(x), *at.out, w.shape[-1])


def _by_patches(x: Array, w: Array, at: Windows) -> Array:
    """Patches side by side in a matrix, times the filters."""
    matrix = w.reshape(-1, w.shape[-1])
    out = np.empty((len(x), *at.out, w.shape[-1]), x.dtype)
    for block, rows in _laid_out(x, at):
        np.matmul(rows, matrix, out=out[block].reshape(-1, w.shape[-1]))
    return out


def _by_rows(x: Array, w: Array, at: Windows) -> Array:
    """Patches along all axes but the first, so that fewer numbers are copied; one product for each place in that."""
    x = padded(x, at)
    stride, step = at.stride[0], at.dilation[0]
    flat = Windows(at.space, (1, *at.window[1:]), (1, *at.stride[1:]), at.dilation, at.pads, (x.shape[1], *at.out[1:]))
    matrices = w.reshape(at.window[0], -1, w.shape[-1])
    out = np.empty((len(x), *at.out, w.shape[-1]), x.dtype)
    windows, width = prod(at.out), matrices.shape[1]
    for images in _images(len(x), flat.out[0] * prod(at.out[1:]) * width * x.itemsize):
        laid = np.ascontiguousarray(patches(x[images], flat))
        total = out[images].reshape(len(laid), windows, -1)
        for i, matrix in enumerate(matrices):
            rows = laid[:, i * step : i * step + (at.out[0] - 1) * stride + 1 : stride].reshape(
                len(laid), windows, width
            )
            if i == 0:
                np.matmul(rows, matrix, out=total)
            else:
                total += np.matmul(rows, matrix)
    return out


# --- the gradient of the input: what the windows saw, added up where they saw it


def _input_by_product(g: Array, w: Array, at: Windows) -> Array:
    ((_, everywhere),) = taps(at)
    seen = g.reshape(-1, g.shape[-1]).dot(w.reshape(w.shape[-2:]).T).reshape(len(g), *at.out, w.shape[-2])
    if at.padded == at.out:
        return seen[inside_margins(at)]
    out = np.zeros((len(g), *at.padded, w.shape[-2]), g.dtype)
    out[everywhere] = seen
    return out[inside_margins(at)]


def flipped(at: Windows) -> Windows | None:
    """The windows over the output that make the transpose of a convolution a convolution, None if there are none."""
    reach = at.reach
    pads = tuple([(r - 1 - a, r - 1 - b) for r, (a, b) in zip(reach, at.pads, strict=True)])
    if max(at.stride) > 1 or min(map(min, pads)) < 0:
        return None
    return Windows(at.out, at.window, at.stride, at.dilation, pads, at.space)


def _input_by_flipping(g: Array, w: Array, at: Windows) -> Array:
    """For strides of 1: a convolution of `g` with the filters back to front."""
    n = len(at.window)
    back = w[(slice(None, None, -1),) * n].swapaxes(-1, -2)
    turned = flipped(at)
    assert turned is not None
    return FORWARD[_route_by_blas("forward", turned, g.shape[-1])](g, np.ascontiguousarray(back), turned)


def _input_by_scattering(g: Array, w: Array, at: Windows) -> Array:
    """A product for each place in the window, added to where the windows have that place."""
    out = np.zeros((len(g), *at.padded, w.shape[-2]), g.dtype)
    for images in _images(len(g), prod(at.out) * w.shape[-2] * g.itemsize):
        part, seen = out[images], g[images]
        flat = seen.reshape(-1, g.shape[-1])
        for place, where in taps(at):
            part[where] += flat.dot(w[place].T).reshape(*seen.shape[:-1], -1)
    return out[inside_margins(at)]


def _input_by_patches(g: Array, w: Array, at: Windows) -> Array:
    """The same with one product for all places: quicker where there are few channels."""
    channels = w.shape[-2]
    out = np.zeros((len(g), *at.padded, channels), g.dtype)
    matrix = w.reshape(-1, w.shape[-1]).T
    whole = (slice(None),) * (1 + len(at.out))
    for images in _images(len(g), prod(at.out) * matrix.shape[1] * g.itemsize):
        part, flat = out[images], g[images].reshape(-1, g.shape[-1])
        seen = flat.dot(matrix).reshape(-1, *at.out, *at.window, channels)
        for place, where in taps(at):
            part[where] += seen[(*whole, *place)]
    return out[inside_margins(at)]


# --- the gradient of the filters


def _filters_by_product(x: Array, g: Array, at: Windows) -> Array:
    ((_, everywhere),) = taps(at)
    flat = padded(x, at)[everywhere].reshape(-1, x.shape[-1])
    return flat.T.dot(g.reshape(-1, g.shape[-1])).reshape(*at.window, x.shape[-1], g.shape[-1])


def _filters_by_patches(x: Array, g: Array, at: Windows) -> Array:
    """Patches side by side, transposed, times the gradient."""
    total: Any = None
    for block, rows in _laid_out(x, at):
        part = rows.T.dot(g[block].reshape(-1, g.shape[-1]))
        if total is None:
            total = part
        else:
            total += part
    return total.reshape(*at.window, x.shape[-1], g.shape[-1])


def _filters_by_places(x: Array, g: Array, at: Windows) -> Array:
    """A product for each place in the window, of all the numbers that it sees."""
    x, g = padded(x, at), g.reshape(-1, g.shape[-1])
    out = np.empty((*at.window, x.shape[-1], g.shape[-1]), x.dtype)
    for place, where in taps(at):
        np.matmul(x[where].reshape(-1, x.shape[-1]).T, g, out=out[place])
    return out


def _by_tiles(x: Array, w: Array, at: Windows) -> Array:
    return _native_convolution.prepared_forward(x.shape, w.shape[-1], at)(x, w)


def _input_by_tiles(g: Array, w: Array, at: Windows) -> Array:
    return _native_convolution.prepared_input_gradient((len(g), *at.space, w.shape[-2]), at)(g, w)


def _filters_by_tiles(x: Array, g: Array, at: Windows) -> Array:
    """Few channels as if they were more, those under a line of the window."""
    if x.shape[-1] > FEW_CHANNELS or at.dilation[-1] > 1:
        return _native_convolution.prepared_filter_gradient(x.shape[-1], g.shape[-1], at)(x, g)
    x = padded(x, at)
    shape = (*x.shape[:-2], at.out[-1], at.window[-1] * x.shape[-1])
    *line, step, number = x.strides
    lines = np.ndarray(shape, x.dtype, x, 0, (*line, step * at.stride[-1], number))
    seen = Windows(
        shape[1:-1], (*at.window[:-1], 1), (*at.stride[:-1], 1), at.dilation, ((0, 0),) * len(at.out), at.out
    )
    gradient = _native_convolution.prepared_filter_gradient(shape[-1], g.shape[-1], seen)(lines, g)
    return gradient.reshape(*at.window, x.shape[-1], g.shape[-1])


# --- the choice

FORWARD: Final[dict[str, Route]] = {
    "product": _by_product,
    "patches": _by_patches,
    "rows": _by_rows,
    "tiles": _by_tiles,
}
INPUT: Final[dict[str, Route]] = {
    "tiles": _input_by_tiles,
    "product": _input_by_product,
    "flipping": _input_by_flipping,
    "scattering": _input_by_scattering,
    "patches": _input_by_patches,
}
FILTERS: Final[dict[str, Route]] = {
    "tiles": _filters_by_tiles,
    "product": _filters_by_product,
    "patches": _filters_by_patches,
    "places": _filters_by_places,
}
MANY_WINDOWS: Final = 256
"""In an image: with fewer, routes that go image by image, or turn the filters round, cost more than they save."""


FEWEST_COLUMNS: Final = 3
"""Of what a tile's 8 to 32 columns compute, so many at least must be wanted, or BLAS is quicker."""


def chosen_route(direction: str, at: Windows, channels: int, filters: int, dtype: Any) -> str:
    """The name of the route to take: `direction` is "forward", "input" or "filters"."""
    if dtype == np.float32 and _fill_tiles(direction, at, channels, filters) and _native_convolution.is_usable():
        return "tiles"
    return _route_by_blas(direction, at, channels)


def _route_by_blas(direction: str, at: Windows, channels: int) -> str:
    if prod(at.window) == 1:
        return "product"
    many, few = prod(at.out) >= MANY_WINDOWS, channels <= FEW_CHANNELS
    if direction == "forward":
        return "rows" if many and not few and at.window[0] > 1 and at.stride[0] == 1 else "patches"
    if direction == "filters" or few:
        return "patches"
    return "flipping" if many and flipped(at) is not None else "scattering"


def _fill_tiles(direction: str, at: Windows, channels: int, filters: int) -> bool:
    if prod(at.window) == 1:
        return min(channels, filters) > FEW_CHANNELS
    return (channels if direction == "input" else filters) >= FEWEST_COLUMNS


_WITH_MARGINS: Final = ("tiles", "flipping")
"""Routes to the input's gradient that multiply margins of the output's, too: a zero times infinity is NaN, which the
gradient has nothing of."""


def _all_finite(w: Array, out: Array, at: Windows) -> bool:
    """Whether all filters are finite, where `out` is the input's gradient: all of them meet in what one window sees.

    Such a look takes 3 us, one at all the filters of a large layer a millisecond.
    """
    seen = _inner_window(at)
    return (seen is not None and bool(np.isfinite(out[seen]).all())) or bool(np.isfinite(w).all())


@functools.lru_cache(maxsize=1024)
def _inner_window(at: Windows) -> tuple[Any, ...] | None:
    """What the first window sees that no margin is under, if there is one; of the first image."""
    first = [-(-before // s) for s, (before, _) in zip(at.stride, at.pads, strict=True)]
    begin = [o * s - before for o, s, (before, _) in zip(first, at.stride, at.pads, strict=True)]
    end = [b + reach for b, reach in zip(begin, at.reach, strict=True)]
    inside = zip(first, at.out, end, at.space, strict=True)
    if any(o >= windows or last > n for o, windows, last, n in inside):
        return None
    return (0, *[slice(*places) for places in zip(begin, end, at.dilation, strict=True)])


def prepared(direction: str, at: Windows, first: Ints, second: Ints) -> Callable[[Array, Array], Array] | None:
    """What computes a direction from float32 operands of these shapes, where tiles do: all the rest is found once."""
    channels, filters = (first[-1], second[-1]) if direction == "filters" else second[-2:]
    if chosen_route(direction, at, channels, filters, np.float32) != "tiles":
        return None
    if direction == "forward":
        return _native_convolution.prepared_forward(first, filters, at)
    if direction == "filters":
        return lambda x, g: _filters_by_tiles(x, g, at)
    run = _native_convolution.prepared_input_gradient((first[0], *at.space, channels), at)

    def checked(g: Array, w: Array) -> Array:
        out = run(g, w)
        return out if _all_finite(w, out, at) else _input_by_scattering(g, w, at)

    return run if prod(at.window) == 1 else checked


def forward(x: Array, w: Array, at: Windows) -> Array:
    """The convolution of `x` (batch, *space, channels) with `w` (*window, channels, filters)."""
    shape = (len(x), *at.out, w.shape[-1])
    if not (prod(shape) and w.size):
        return np.zeros(shape, x.dtype)
    return FORWARD[chosen_route("forward", at, w.shape[-2], w.shape[-1], x.dtype)](x, w, at)


def input_gradient(g: Array, w: Array, at: Windows) -> Array:
    """Its transpose with respect to `x`: from (batch, *windows, filters) to (batch, *space, channels)."""
    shape = (len(g), *at.space, w.shape[-2])
    if not (prod(shape) and g.size and w.size):
        return np.zeros(shape, g.dtype)
    route = chosen_route("input", at, w.shape[-2], w.shape[-1], g.dtype)
    out = INPUT[route](g, w, at)
    if route in _WITH_MARGINS and prod(at.window) > 1 and not _all_finite(w, out, at):
        return _input_by_scattering(g, w, at)
    return out


def filter_gradient(x: Array, g: Array, at: Windows) -> Array:
    """Its transpose with respect to `w`: from `x` and (batch, *windows, filters) to (*window, channels, filters)."""
    shape: Ints = (*at.window, x.shape[-1], g.shape[-1])
    if not (prod(shape) and x.size and g.size):
        return np.zeros(shape, x.dtype)
    return FILTERS[chosen_route("filters", at, shape[-2], shape[-1], x.dtype)](x, g, at)
