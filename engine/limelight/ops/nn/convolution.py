"""Convolution over one, two or three spatial axes: `conv`, and its transpose, `conv_transpose`.

Three ops are one trilinear form in the input, the filters and the output's gradient, each with one of these as its
result. So the gradients of each are the other two, and all orders of derivative are convolutions again. The filters of
a transposed convolution are those of the convolution that it transposes.

Channels are the last axis. "same" stays a word in the graph, since its margins depend on sizes that may be unknown, and
the shape given to a transpose leaves the batch to the operands (None): so a trace for any batch knows all other sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limelight.core.dtypes import DType, float32
from limelight.core.eager import EntryPoint, entry_point
from limelight.core.op import defop
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, TensorLike, as_tensor, constant
from limelight.errors import ArgumentError, ShapeError
from limelight.ops._given_shape import defop_with_shape
from limelight.ops._kernel_parts import wide
from limelight.ops.nn import _cudnn_convolution, _numpy_convolution, _numpy_depthwise, _taps
from limelight.ops.nn._windows import (
    Ints,
    PaddingLike,
    Windows,
    as_padding,
    out_sizes,
    per_axis,
    reach_of,
    spatial_rank,
    windows_over,
)

__all__ = ["conv", "conv_transpose", "convolve"]

Attrs = tuple[Any, ...]  # stride, padding, dilation, groups
ATTRS = "stride padding dilation groups"


# --- what fits


def _check_channels(name: str, x: TensorSpec, w: TensorSpec, groups: int) -> None:
    """Raises ShapeError unless `x` (batch, *space, channels) and `w` (*window, channels / groups, filters) fit."""
    if x.rank != w.rank or x.rank < 3:
        raise ShapeError(
            f"{name}: an input {x} of {x.rank} axes needs filters (*window, channels / groups, filters) of as many "
            f"axes, got {w}"
        )
    channels, each_group, filters = x.shape[-1], w.shape[-2], w.shape[-1]
    if channels is not None and channels % groups:
        raise ShapeError(f"{name}: the {channels} channels (last axis) of {x} do not divide into {groups} groups")
    if filters is not None and filters % groups:
        raise ShapeError(f"{name}: the {filters} filters (last axis) of {w} do not divide into {groups} groups")
    if None not in (channels, each_group) and channels != each_group * groups:  # type: ignore[operator]
        wanted = channels // groups  # type: ignore[operator]
        of = f" in {groups} groups" if groups > 1 else ""
        raise ShapeError(
            f"{name}: the last axis of {x} has {channels} channels{of}, so axis {w.rank - 2} of the filters {w} must "
            f"have size {wanted}, not {each_group}; filters are (*window, channels / groups, filters)"
        )


def _conv_infer(x: TensorSpec, w: TensorSpec, stride: Ints, padding: Any, dilation: Ints, groups: int) -> TensorSpec:
    _check_channels("conv", x, w, groups)
    out = out_sizes("conv", x, x.shape[1:-1], w.shape[:-2], stride, padding, dilation)
    return known((x.shape[0], *out, w.shape[-1]), x.dtype)


def _check_transposed(name: str, y: TensorSpec, x: TensorSpec, w: TensorSpec, attrs: Attrs) -> None:
    """Raises ShapeError unless the convolution of `x` with `w` has the shape of `y`."""
    _check_channels(name, x, w, attrs[3])
    shape = (x.shape[0], *out_sizes(name, x, x.shape[1:-1], w.shape[:-2], *attrs[:3]), w.shape[-1])
    if y.rank != len(shape) or any(None not in (m, n) and m != n for m, n in zip(y.shape, shape, strict=True)):
        raise ShapeError(f"{name}: a convolution of {x} with filters {w} has shape {shape}, not that of {y}")


def _transpose_infer(y: TensorSpec, w: TensorSpec, *parameters: Any) -> TensorSpec:
    attrs, shape = parameters[:-1], parameters[-1]
    if y.rank == w.rank and None not in (y.shape[-1], w.shape[-1]) and y.shape[-1] != w.shape[-1]:
        raise ShapeError(
            f"conv_transpose: the last axis of {y} has {y.shape[-1]} channels, so the last axis of the filters {w} "
            f"must have that size; they are those of the convolution that is transposed: (*window, channels of the "
            f"result / groups, channels of x)"
        )
    result = known(_filled_shape(shape, y.shape, w.shape, attrs[3]), y.dtype)
    _check_transposed("conv_transpose", y, result, w, attrs)
    return result


def _filled_shape(shape: Shape, y: Shape, w: Shape, groups: int) -> Shape:
    """The shape of a transposed convolution, which leaves batch and channels to its operands."""
    channels = None if len(w) < 2 or w[-2] is None else w[-2] * groups
    lead, last = (z if size is None else size for size, z in ((shape[0], y[0]), (shape[-1], channels)))
    return (lead, *shape[1:-1], last)


def _filter_gradient_infer(x: TensorSpec, y: TensorSpec, *parameters: Any) -> TensorSpec:
    attrs, shape = parameters[:-1], parameters[-1]
    _check_transposed("conv_filter_gradient", y, x, known(shape, x.dtype), attrs)
    return known(shape, x.dtype)


@functools.lru_cache(maxsize=1024)
def _windows_of(infer: Callable[..., TensorSpec], first: Shape, second: Shape, dtype: DType, *attrs: Any) -> Windows:
    """The windows of an op, once its shape rule has found that the operands fit: kernels may be the first to ask."""
    x = infer(known(first, dtype), known(second, dtype), *attrs)
    stride, padding, dilation = attrs[:3]
    space: Any = x.shape if infer is _transpose_infer else first
    filters: Any = attrs[-1] if infer is _filter_gradient_infer else second
    return windows_over("conv", x, space[1:-1], filters[:-2], stride, padding, dilation)


# --- kernels: NumPy's, and any array library's


@functools.lru_cache(maxsize=1024)
def _prepared(
    direction: str, infer: Callable[..., TensorSpec], first: Ints, second: Ints, dtype: DType, *attrs: Any
) -> Callable[[Any, Any], Any] | None:
    """What computes a direction from arrays of NumPy's of these shapes; None where it is decided at each call."""
    at = _windows_of(infer, first, second, dtype, *attrs)
    if dtype != float32 or attrs[3] != 1 or _taps.empty(first, second, at.out, at.space, at.window):
        return None
    return _numpy_convolution.prepared(direction, at, first, second)


def _conv_kernel(xp: Any, x: Any, w: Any, *attrs: Any) -> Any:
    ready = _prepared("forward", _conv_infer, x.shape, w.shape, x.dtype, *attrs) if xp is np else None
    if ready is not None:
        return ready(x, w)
    at, groups, dtype = _windows_of(_conv_infer, x.shape, w.shape, x.dtype, *attrs), attrs[3], x.dtype
    x, w = wide(x), wide(w)
    if _taps.empty(x.shape, w.shape, at.out):
        out = xp.zeros((x.shape[0], *at.out, w.shape[-1]), dtype=dtype)
    elif xp is np and 1 < groups == x.shape[-1]:
        out = _numpy_depthwise.forward(x, w, at)
    else:
        run = _on_numpy(_numpy_convolution.forward) if xp is np else _taps.convolution
        out = _taps.by_group(xp, run, ((x, -1), (w, -1)), groups, at)
    return out.astype(dtype, copy=False)


def _transpose_kernel(xp: Any, y: Any, w: Any, *attrs: Any) -> Any:
    ready = _prepared("input", _transpose_infer, y.shape, w.shape, y.dtype, *attrs) if xp is np else None
    if ready is not None:
        return ready(y, w)
    shape = _filled_shape(attrs[-1], y.shape, w.shape, attrs[3])
    at, groups, dtype = _windows_of(_transpose_infer, y.shape, w.shape, y.dtype, *attrs), attrs[3], y.dtype
    y, w = wide(y), wide(w)
    if _taps.empty(y.shape, w.shape, at.space):
        out = xp.zeros(shape, dtype=dtype)
    elif xp is np and 1 < groups == shape[-1]:
        out = _numpy_depthwise.input_gradient(y, w, at, groups)
    else:
        run = _on_numpy(_numpy_convolution.input_gradient) if xp is np else _taps.input_gradient
        out = _taps.by_group(xp, run, ((y, -1), (w, -1)), groups, at)
    return out.astype(dtype, copy=False)


def _filter_gradient_kernel(xp: Any, x: Any, y: Any, *attrs: Any) -> Any:
    ready = _prepared("filters", _filter_gradient_infer, x.shape, y.shape, x.dtype, *attrs) if xp is np else None
    if ready is not None:
        return ready(x, y)
    shape = attrs[-1]
    at, groups, dtype = _windows_of(_filter_gradient_infer, x.shape, y.shape, x.dtype, *attrs), attrs[3], x.dtype
    x, y = wide(x), wide(y)
    if _taps.empty(x.shape, y.shape, shape):
        out = xp.zeros(shape, dtype=dtype)
    elif xp is np and 1 < groups == x.shape[-1]:
        out = _numpy_depthwise.filter_gradient(x, y, at)
    else:
        run = _on_numpy(_numpy_convolution.filter_gradient) if xp is np else _taps.filter_gradient
        out = _taps.by_group(xp, run, ((x, -1), (y, -1)), groups, at)
    return out.astype(dtype, copy=False)


def _on_numpy(route: Callable[..., Any]) -> Callable[..., Any]:
    return lambda xp, *given: route(*given)


def _on_jax(kernel: Callable[..., Any], route: str, infer: Callable[..., TensorSpec]) -> Callable[..., Any]:
    """A kernel for JAX: `kernel` on the CPU and where nothing is to be computed, else a route of `_jax_convolution`."""

    def run(xp: Any, first: Any, second: Any, *attrs: Any) -> Any:
        at = _windows_of(infer, first.shape, second.shape, first.dtype, *attrs)
        on_cpu = functools.partial(_with_attrs, kernel, xp, attrs)
        if _taps.empty(first.shape, second.shape, at.out, at.space, at.window):
            return on_cpu(first, second)
        from limelight.ops.nn import _jax_convolution as routes  # noqa: PLC0415  # JAX is loaded when a device asks for it

        return routes.run(getattr(routes, route), on_cpu, at, attrs[3], first, second)

    return run


def _conv_cupy(xp: Any, x: Any, w: Any, *attrs: Any) -> Any:
    at = _windows_of(_conv_infer, x.shape, w.shape, x.dtype, *attrs)
    empty = _taps.empty(x.shape, w.shape, at.out)
    out = None if empty else _cudnn_convolution.forward(xp, x, w, at)
    return _conv_kernel(xp, x, w, *attrs) if out is None else out


def _transpose_cupy(xp: Any, y: Any, w: Any, *attrs: Any) -> Any:
    at = _windows_of(_transpose_infer, y.shape, w.shape, y.dtype, *attrs)
    empty = _taps.empty(y.shape, w.shape, at.space)
    out = None if empty else _cudnn_convolution.input_gradient(xp, y, w, at, w.shape[-2] * attrs[3])
    return _transpose_kernel(xp, y, w, *attrs) if out is None else out


def _filter_gradient_cupy(xp: Any, x: Any, y: Any, *attrs: Any) -> Any:
    at = _windows_of(_filter_gradient_infer, x.shape, y.shape, x.dtype, *attrs)
    empty = _taps.empty(x.shape, y.shape, at.window)
    out = None if empty else _cudnn_convolution.filter_gradient(xp, x, y, at, x.shape[-1] // attrs[3])
    return _filter_gradient_kernel(xp, x, y, *attrs) if out is None else out


def _with_attrs(kernel: Callable[..., Any], xp: Any, attrs: tuple[Any, ...], *operands: Any) -> Any:
    return kernel(xp, *operands, *attrs)


# --- the ops

_conv: EntryPoint = entry_point(defop(
    "conv",
    fresh=True,
    inputs="x w",
    attrs=ATTRS,
    infer=_conv_infer,
    kernel=_conv_kernel,
    special={"cupy": _conv_cupy, "jax": _on_jax(_conv_kernel, "forward", _conv_infer)},
    accepts="floating",
    vjp={
        "x": lambda g, w, x_shape, stride, padding, dilation, groups: _transpose(
            (g, w), x_shape, stride, padding, dilation, groups
        ),
        "w": lambda g, x, w_shape, stride, padding, dilation, groups: _filter_gradient(
            (x, g), w_shape, stride, padding, dilation, groups
        ),
    },
    linear="x w",
    maths={"x": "x̄ = conv_transpose(ȳ, w)", "w": "w̄ = Σ x under each window ⊗ ȳ"},
    batching="convolution",
))  # fmt: skip

_transpose: EntryPoint = defop_with_shape(
    "conv_transpose",
    fresh=True,
    inputs="y w",
    attrs=ATTRS,
    infer=_transpose_infer,
    kernel=_transpose_kernel,
    special={"cupy": _transpose_cupy, "jax": _on_jax(_transpose_kernel, "input_gradient", _transpose_infer)},
    accepts="floating",
    vjp={
        "y": lambda g, w, stride, padding, dilation, groups: _conv((g, w), stride, padding, dilation, groups),
        "w": lambda g, y, w_shape, stride, padding, dilation, groups: _filter_gradient(
            (g, y), w_shape, stride, padding, dilation, groups
        ),
    },
    linear="y w",
    maths={"y": "ȳ = conv(x̄, w)", "w": "w̄ = Σ x̄ under each window ⊗ y"},
    batching="convolution",
)

_filter_gradient: EntryPoint = defop_with_shape(
    "conv_filter_gradient",
    fresh=True,
    inputs="x y",
    attrs=ATTRS,
    infer=_filter_gradient_infer,
    kernel=_filter_gradient_kernel,
    special={
        "cupy": _filter_gradient_cupy,
        "jax": _on_jax(_filter_gradient_kernel, "filter_gradient", _filter_gradient_infer),
    },
    accepts="floating",
    vjp={
        "x": lambda g, y, x_shape, stride, padding, dilation, groups: _transpose(
            (y, g), x_shape, stride, padding, dilation, groups
        ),
        "y": lambda g, x, stride, padding, dilation, groups: _conv((x, g), stride, padding, dilation, groups),
    },
    linear="x y",
    maths={"x": "x̄ = conv_transpose(y, w̄)", "y": "ȳ = conv(x, w̄)"},
    batching="filter_gradient",
)


def _settings(name: str, x: Tensor, stride: Any, padding: Any, dilation: Any, groups: Any) -> Attrs:
    """The parameters as they stand in a graph. Raises ArgumentError, and ShapeError for an `x` of another form."""
    n = spatial_rank(name, x)
    if not hasattr(groups, "__index__") or groups < 1:
        raise ArgumentError(f"{name}: groups must be a whole number of at least 1, got {groups!r}")
    return (
        per_axis(name, "stride", stride, n),
        as_padding(name, padding, n),
        per_axis(name, "dilation", dilation, n),
        groups.__index__(),
    )


def conv(
    x: TensorLike,
    w: TensorLike,
    /,
    stride: int | Sequence[int] = 1,
    padding: PaddingLike = "same",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of `x` with the filters `w` (without turning them round, as is usual in networks); floating.

    Args:
        x: (batch, *space, channels), with one, two or three spatial axes.
        w: (*window, channels / groups, filters): the weights of each filter for each place in the window.
        stride: from one window to the next; one number, or one for each spatial axis, as also for `dilation`.
        padding: "same" (margins of zeros with which ceil(size / stride) windows fit, an odd one behind), "valid" (no
            margins), a number, or a number or (before, after) for each spatial axis.
        dilation: from one place of the window to the next.
        groups: into how many parts channels and filters are cut, each part of the filters seeing only its own part
            of the channels. With as many groups as channels this is a depthwise convolution.

    Returns:
        (batch, *windows, filters). Along an axis of `size` with margins, there are (size - reach) // stride + 1
        windows, reach = (window - 1) * dilation + 1. float16 and bfloat16 are computed in float32 and rounded once.

    Raises ShapeError when channels, filters, groups or windows do not fit, ArgumentError for other settings.

    >>> import limelight as ll
    >>> ll.nn.conv(ll.ones((1, 4, 1)), ll.ones((3, 1, 1)), padding="valid")[0, :, 0].tolist()
    [3.0, 3.0]
    >>> ll.nn.conv(ll.ones((2, 28, 28, 3)), ll.ones((3, 3, 3, 8)), stride=2).shape
    (2, 14, 14, 8)
    """
    x = as_tensor(x)
    return _conv((x, w), *_settings("conv", x, stride, padding, dilation, groups))


def convolve(x: TensorLike, y: TensorLike, /, mode: str = "full") -> Tensor:
    """The convolution of two vectors, Σ x[k - i] y[i]; floating. See `ll.nn.conv` for networks.

    The longer vector is filled up with zeros. So a NaN or an infinity in the shorter one reaches all results, as in
    JAX, those among them whose terms it is not one of; `numpy.convolve` leaves these alone.

    Args:
        x: a vector of n elements.
        y: a vector of m elements, m known while tracing.
        mode: "full" (the default): all n + m - 1 places at which they overlap; "same": the middle max(n, m) of these;
            "valid": those at which they overlap entirely, max(n, m) - min(n, m) + 1.

    Returns:
        A vector.

    Raises:
        ShapeError: they are no vectors, or one is empty or of unknown size.
        ArgumentError: there is no such mode.

    >>> import limelight as ll
    >>> ll.convolve(ll.constant([1.0, 2.0, 3.0]), ll.constant([1.0, 1.0])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    """
    x, y = as_tensor(x), as_tensor(y)
    if (x.ndim, y.ndim) != (1, 1) or 0 in (*x.shape, *y.shape) or None in (*x.shape, *y.shape):
        raise ShapeError(f"convolve: needs two vectors of known sizes, 1 at least, got {x.spec} and {y.spec}")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f'convolve: mode must be "full", "same" or "valid", got {mode!r}')
    x, y = (x, y) if (x.shape[0] or 0) >= (y.shape[0] or 0) else (y, x)
    m = y.shape[0] or 0
    margins: tuple[int, int] = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    result: Tensor = conv(x.reshape((1, -1, 1)), y[::-1].reshape((-1, 1, 1)), padding=[margins])
    return result.reshape((-1,))


def conv_transpose(
    x: TensorLike,
    w: TensorLike,
    /,
    stride: int | Sequence[int] = 1,
    padding: PaddingLike = "same",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
) -> Tensor:
    """The transpose of `conv`: every element of `x` adds its multiple of a filter to where that window lies; floating.

    Args:
        x: (batch, *windows, filters), what the convolution would have returned.
        w: (*window, channels / groups, filters), the filters of that convolution.
        stride: as in `conv`, as are `padding`, `dilation` and `groups`.
        padding: as in `conv`: the margins, which are cut off here.
        dilation: as in `conv`.
        groups: as in `conv`.
        output_padding: how much larger than the smallest possible the result is to be, behind, along each spatial
            axis: less than the stride, since up to that the convolution has as many windows.

    Returns:
        (batch, *space, channels). Along an axis with `n` elements in `x`, the space has
        (n - 1) * stride + reach - margins + output_padding elements, reach = (window - 1) * dilation + 1; with "same"
        it has n * stride, and output_padding must be 0.

    Raises ShapeError when channels, filters or groups do not fit, or a result would have a negative size, and
    ArgumentError for other settings.

    >>> import limelight as ll
    >>> ll.nn.conv_transpose(ll.ones((1, 2, 1)), ll.ones((3, 1, 1)), padding="valid")[0, :, 0].tolist()
    [1.0, 2.0, 2.0, 1.0]
    >>> ll.nn.conv_transpose(ll.ones((2, 7, 7, 8)), ll.ones((3, 3, 3, 8)), stride=2).shape
    (2, 14, 14, 3)
    """
    x, w = as_tensor(x), as_tensor(w)
    attrs = _settings("conv_transpose", x, stride, padding, dilation, groups)
    more = per_axis("conv_transpose", "output_padding", output_padding, len(attrs[0]), 0)
    if any(m >= s for m, s in zip(more, attrs[0], strict=True)) and any(more):
        raise ArgumentError(f"conv_transpose: output_padding {more} must be less than the stride {attrs[0]}")
    if attrs[1] == "same" and any(more):
        raise ArgumentError("conv_transpose: with padding='same' the size is n * stride; give margins as numbers")
    if x.ndim != w.ndim:
        raise ShapeError(
            f"conv_transpose: an input {x.spec} needs filters (*window, channels / groups, filters) of as many axes, "
            f"got {w.spec}"
        )
    return _transpose((x, w), _transposed_shape(x, w, more, *attrs), *attrs)


def _transposed_shape(x: Tensor, w: Tensor, more: Ints, stride: Ints, padding: Any, dilation: Ints, groups: int) -> Any:
    """The shape of the result, None for what its operands will say; a vector where the space is unknown in a trace."""
    n = len(stride)
    margins = [0 if padding == "same" else sum(padding[i]) for i in range(n)]
    if None not in x.shape[1:-1] and None not in w.shape[:-2]:
        space = [
            n * s if padding == "same" else (n - 1) * s + reach_of(k, d) - m + extra
            for n, k, s, d, m, extra in zip(x.shape[1:-1], w.shape, stride, dilation, margins, more, strict=False)
        ]
        if min(space) < 0:
            raise ShapeError(f"conv_transpose: padding {padding} cuts off more than there is of {x.spec}")
        return (None, *space, None)
    given, filters = (_shape_vector(z) for z in (x, w))
    picked = filters[[0, *range(n), n]]  # the window stands beside the space, the channels at the end
    if padding == "same":
        return given * np.array((1, *stride, 0)) + picked * np.array((0,) * (n + 1) + (groups,))
    constants = [extra - m - s - d + 1 for s, d, m, extra in zip(stride, dilation, margins, more, strict=True)]
    return given * np.array((1, *stride, 0)) + picked * np.array((0, *dilation, groups)) + np.array((0, *constants, 0))


def _shape_vector(x: Tensor) -> Tensor:
    """The shape of `x` as a vector, symbolic where a size is unknown."""
    sizes = x.sizes()
    return constant(np.array(sizes, np.int64)) if isinstance(sizes, tuple) else sizes
