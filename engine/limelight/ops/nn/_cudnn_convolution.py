"""Convolutions of float32 and float16 on NVIDIA GPUs, by cuDNN: one kernel instead of a product for each place.

NVIDIA's front end (`nvidia-cudnn-frontend`, of the extra `cuda`) makes a plan for each shape in some milliseconds, as
its heuristics advise; plans are kept, and none is taken whose sums differ from run to run. Where it is not installed,
or cuDNN has no plan, the routes of this module give None. Sums have 32 bits. float64 is left alone: with channels last
cuDNN 9.19 found wrong numbers.

cuDNN wants two spatial axes at least, filters as (filters, *window, channels), margins that are as large before as
behind, and operands that begin at multiples of 16 bytes, which slices need not.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

from limelight.core import dtypes
from limelight.ops.nn._taps import with_margins
from limelight.ops.nn._windows import Ints, Windows, inside_margins
from limelight.settings import Scoped, SettingScope

Array = Any
_TYPES: Final = {dtypes.float32: "FLOAT", dtypes.float16: "HALF"}
_rounds: Final = Scoped("tf32", True)


class tf32(SettingScope[bool]):  # noqa: N801  # used as a function
    """Whether convolutions of float32 on a GPU may round their operands to TF32, which has three decimal digits.

    By default they may, as in PyTorch: it is several times as fast. Products of matrices keep all digits; there CuPy's
    environment variable CUPY_TF32 decides, and on `XLA:0` JAX's setting `jax_default_matmul_precision` for both. As a
    `with` block it holds for what this thread does in the block.

    Args:
        on: whether they may. True.

    >>> import limelight as ll
    >>> with ll.config.tf32(False):
    ...     y = ll.nn.conv(ll.ones((1, 4, 1)), ll.ones((3, 1, 1)))
    """

    def __init__(self, on: bool = True) -> None:
        super().__init__(_rounds, bool(on), sys._getframe(1))

    def __repr__(self) -> str:
        return f"<tf32: {self._value}>"


class _Key(NamedTuple):
    """What a plan is made for: shapes with channels last, of both operands and the result."""

    device: int
    operation: str
    shapes: tuple[Ints, Ints, Ints]
    at: Windows
    dtype: Any
    rounds: bool


class _Plan(NamedTuple):
    graph: Any
    tensors: tuple[int, int, int]  # the names of both operands and the result
    workspace: int  # bytes


_ALIGNED: Final = 16
"""Bytes: what plans expect of addresses, as the front end describes tensors."""
_MOST_PLANS: Final = 4096
_idle: Final[dict[int, list[Any]]] = {}
"""Handles, cuDNN's state, that no thread uses at this moment, by device."""
_OPERANDS: Final = {
    "conv_fprop": ("image", "weight"),
    "conv_dgrad": ("loss", "filter"),
    "conv_wgrad": ("image", "loss"),
}


@functools.cache
def library() -> Any:
    """The front end, or None where it or cuDNN itself is not installed."""
    try:
        cudnn = importlib.import_module("cudnn")
        cudnn.backend_version()
    except (ImportError, OSError, RuntimeError):  # the front end itself, or what it says where it does not find cuDNN
        return None
    return cudnn


def forward(xp: Any, x: Array, w: Array, at: Windows) -> Array | None:
    """The convolution of (batch, *space, channels) with (*window, channels / groups, filters)."""
    if x.dtype not in _TYPES or library() is None:
        return None
    x, at = with_margins(xp, x, at, 0) if _is_uneven(at) else x, _even(at)
    return _run(xp, "conv_fprop", at, x, _filters_first(xp, w), (len(x), *at.out, w.shape[-1]))


def input_gradient(xp: Any, y: Array, w: Array, at: Windows, channels: int) -> Array | None:
    """Its transpose for the input, of so many channels."""
    if y.dtype not in _TYPES or library() is None:
        return None
    even = _even(at)
    x = _run(xp, "conv_dgrad", even, y, _filters_first(xp, w), (len(y), *even.space, channels))
    return xp.ascontiguousarray(x[inside_margins(at)]) if x is not None and _is_uneven(at) else x


def filter_gradient(xp: Any, x: Array, y: Array, at: Windows, channels: int) -> Array | None:
    """Its transpose for the filters, which see so many channels."""
    if x.dtype not in _TYPES or library() is None:
        return None
    x, at = with_margins(xp, x, at, 0) if _is_uneven(at) else x, _even(at)
    w = _run(xp, "conv_wgrad", at, x, y, (y.shape[-1], *at.window, channels))
    return None if w is None else xp.ascontiguousarray(xp.moveaxis(w, 0, -1))


def _is_uneven(at: Windows) -> bool:
    return any(before != behind for before, behind in at.pads)


def _even(at: Windows) -> Windows:
    """The same windows over a space that has its margins in it, where those are uneven."""
    return replace(at, space=at.padded, pads=((0, 0),) * len(at.pads)) if _is_uneven(at) else at


def _filters_first(xp: Any, w: Array) -> Array:
    return xp.ascontiguousarray(xp.moveaxis(w, -1, 0))


def _run(xp: Any, operation: str, at: Windows, first: Array, second: Array, shape: Ints) -> Array | None:
    device = first.device.id
    plan = _plan(_Key(device, operation, (first.shape, second.shape, shape), at, first.dtype, _rounds.get()))
    if plan is None:
        return None
    first, second, result = _laid_out(xp, first), _laid_out(xp, second), xp.empty(shape, first.dtype)
    workspace = xp.empty(plan.workspace, xp.uint8)
    places = {name: x.data.ptr for name, x in zip(plan.tensors, (first, second, result), strict=True)}
    with _handle(device) as handle:
        library().set_stream(handle=handle, stream=xp.cuda.get_current_stream().ptr)
        plan.graph.execute(places, workspace.data.ptr, handle)
    return result


def _laid_out(xp: Any, x: Array) -> Array:
    """`x` in one piece, at an address that plans take."""
    x = xp.ascontiguousarray(x)
    return x.copy() if x.data.ptr % _ALIGNED else x


@contextmanager
def _handle(device: int) -> Iterator[Any]:
    """A handle for one thread at a time: there are as many as threads were ever at it at once."""
    idle = _idle.setdefault(device, [])
    try:
        handle = idle.pop()
    except IndexError:
        handle = library().create_handle()
    try:
        yield handle
    finally:
        idle.append(handle)


@functools.lru_cache(maxsize=_MOST_PLANS)
def _plan(key: _Key) -> _Plan | None:
    """The plan for a key; None where cuDNN has none."""
    cudnn = library()
    try:
        with _handle(key.device) as handle:
            return _planned(cudnn, key, handle)
    except (cudnn.cudnnGraphNotSupportedError, RuntimeError):
        return None


def _planned(cudnn: Any, key: _Key, handle: Any) -> _Plan:
    numbers = cudnn.data_type
    dtype = getattr(numbers, _TYPES[key.dtype])
    graph = cudnn.pygraph(
        io_data_type=dtype, intermediate_data_type=numbers.FLOAT, compute_data_type=numbers.FLOAT, handle=handle
    )
    more = max(2 - len(key.at.space), 0)
    operands = {
        name: graph.tensor(name=name, dim=dim, stride=stride, data_type=dtype)
        for name, (dim, stride) in zip(
            _OPERANDS[key.operation], [_layout(shape, more) for shape in key.shapes[:2]], strict=True
        )
    }
    margins = [0] * more + [before for before, _ in key.at.pads]
    result = getattr(graph, key.operation)(
        **operands,
        pre_padding=margins,
        post_padding=margins,
        stride=[1] * more + [*key.at.stride],
        dilation=[1] * more + [*key.at.dilation],
    )
    dim, stride = _layout(key.shapes[2], more)
    result.set_output(True).set_dim(dim).set_stride(stride).set_data_type(dtype)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.deselect_numeric_notes(_avoided(cudnn.numerical_note, key))
    graph.check_support()
    graph.build_plans()
    first, second = operands.values()
    return _Plan(graph, (first.get_uid(), second.get_uid(), result.get_uid()), graph.get_workspace_size())


def _avoided(notes: Any, key: _Key) -> list[Any]:
    """What no kernel of a plan may do."""
    avoided = [notes.NONDETERMINISTIC]
    if key.dtype == dtypes.float32:
        avoided.append(notes.DOWN_CONVERT_INPUTS)  # to float16, whose range is smaller; TF32 has that of float32
        avoided += [] if key.rounds else [notes.TENSOR_CORE]
    return avoided


def _layout(shape: Ints, more: int) -> tuple[list[int], list[int]]:
    """Sizes and strides as cuDNN orders axes, channels before space, of an array with channels last.

    Args:
        shape: (batch, *space, channels) of the array, in one piece.
        more: how many spatial axes of size 1 are put in front.
    """
    batch, *space, channels = shape
    space = [1] * more + space
    strides = [channels * math.prod(space[i + 1 :]) for i in range(len(space))]
    return [batch, channels, *space], [channels * math.prod(space), 1, *strides]
