"""Tensors of a trace whose number of axes only the run knows: results of `py_func` by `TensorSpec(None)`.

A graph has no such values: shape rules, passes, executors and gradients may count on the number of axes of each. So
such a tensor is a structure of two that have one, its elements as a vector and its sizes. Ops that go element by
element, and reductions over all elements, are done on the vector; where operands of several shapes meet, Python finds
at run time which elements do (`_meeting`). Everything else asks for the number of axes, and is told of
`ll.ensure_shape`. As a structure it goes through branches, loops, calls and results as any nest does; where its parts
have values it is a tensor again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from limelight.control_flow.python_call import LibraryCall, PythonCall, in_graph
from limelight.core import dtypes, shapes
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.eager import read_as_operand
from limelight.core.eager.entry_points import structured
from limelight.core.op import Op
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor, constant
from limelight.errors import ShapeError
from limelight.ops.index.take import take
from limelight.ops.shape.reshape import reshape
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import source_line

_SIZES = TensorSpec((None,), dtypes.int64)
_KEEP_SHAPE = frozenset(["check_numerics", "full_like"])
"""Ops whose results have the shape of their operands, and which executors do not fuse as going element by element."""


class UnrankedTensor(Tensor):
    """A tensor of a trace of which only the dtype is known. Raises ShapeError where its number of axes is asked for."""

    __slots__ = ("_flat", "_lengths")
    __limelight_leaf__ = False
    __limelight_fields__ = ("_flat", "_lengths")
    __limelight_name__ = "tensor of unknown rank"
    __limelight_advice__ = ": write ll.ensure_shape(y, (None, 3)), with a size or None an axis"
    _flat: Any
    """Its elements, a vector in row-major order."""
    _lengths: Any
    """Its sizes, a vector of int64."""

    @classmethod
    def __limelight_from_fields__(cls, _flat: Any, _lengths: Any) -> Any:
        """The tensor that the parts make up: one like any other where they have values."""
        if _flat is None:  # of gradients: not connected
            return None
        if isinstance(_flat, Tensor) and _lengths is None:
            raise ShapeError(
                "the gradient with respect to a tensor of unknown rank: take it with respect to the result of "
                "ll.ensure_shape, or of ll.reshape"
            )
        if len(getattr(_lengths, "shape", (None,))) != 1:
            return _rows(_flat, _lengths)
        if type(_flat) is Tensor and type(_lengths) is Tensor:
            return _joined(_flat, _lengths)
        if isinstance(_flat, np.ndarray) and isinstance(_lengths, np.ndarray):
            return _flat.reshape(_lengths)
        made = object.__new__(cls)
        made._flat, made._lengths = _flat, _lengths
        made._device, made._uid = CPU0, 0
        return made

    @property
    def dtype(self) -> DType:
        dtype: DType = self._flat.dtype
        return dtype

    @property
    def shape(self) -> Shape:
        refuse(self, ".shape")

    @property
    def ndim(self) -> int:
        refuse(self, ".ndim")

    @property
    def spec(self) -> TensorSpec:
        refuse(self, ".shape")

    @property
    def size(self) -> int | None:
        return None

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def _data(self) -> Any:  # as that of any symbolic tensor, it explains
        return self._flat._data

    def sizes(self) -> Any:
        return self._lengths

    def _only_element(self, what: str, cause: str = "") -> Any:
        return self._flat.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._flat.__array__(dtype, copy)

    def __index__(self) -> int:
        return int(self._flat.__index__())

    def __repr__(self) -> str:
        return f"<symbolic {TensorSpec(None, self.dtype)}: the elements of {self._flat!r}>"


def _without_value(name: str) -> Any:
    def method(self: UnrankedTensor, *options: Any) -> Any:
        return getattr(self._flat, name)(*options)

    method.__name__ = name
    return method


for _name in ("numpy", "item", "tolist", "__bool__", "__int__", "__float__", "__complex__", "__format__"):
    setattr(UnrankedTensor, _name, _without_value(_name))


def refuse(x: UnrankedTensor, asked: str) -> NoReturn:
    """Raises ShapeError: what the trace would have to know, where the tensor comes from, and what to write."""
    made = getattr(x._flat, "line", None)
    where = source_line.at(made) if made is not None else ""
    raise ShapeError(
        f"{asked}: the number of axes of {TensorSpec(None, x.dtype)}, a result of ll.py_func by ll.TensorSpec(None)"
        f"{where}, is known only when the graph runs. Write y = ll.ensure_shape(y, (None, 3)), with a size or None for "
        "each axis, or give py_func that shape; without it there are operations element by element, reductions over "
        "all elements, ll.reshape and ll.shape_of"
    )


def unranked(flat: Any, lengths: Any) -> Any:
    """The tensor with these elements and sizes."""
    return UnrankedTensor.__limelight_from_fields__(flat, lengths)


def _compute(op: Op, attrs: tuple[Any, ...], run: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """An op with tensors of unknown rank among its inputs; `run(*inputs)` is the op on others."""
    first = next(x for x in inputs if isinstance(x, UnrankedTensor))
    if op.name == "shape_of":
        return first._lengths
    if op.name == "ensure_shape":
        return run(_with_rank(first, attrs[0]))
    if op.name in ("reshape", "reshape_dynamic") and isinstance(inputs[0], UnrankedTensor):
        return run(first._flat, *inputs[1:])
    over_all = op.attrs[:2] == ("axis", "keepdims") and attrs[0] is None and attrs[1] is False
    if over_all and len(inputs) == 1:
        return run(first._flat)
    if op.elementwise or op.name in _KEEP_SHAPE:
        flats, lengths = _side_by_side(op, inputs)
        results = run(*flats)
        return tuple([unranked(x, lengths) for x in results]) if op.multiple else unranked(results, lengths)
    refuse(first, op.name)


def _with_rank(x: UnrankedTensor, shape: Shape) -> Tensor:
    """The tensor with as many axes as `shape` has, of unknown sizes; the run raises where it has others."""

    def ensure_shape(lengths: Any) -> Any:
        given = tuple(lengths.tolist())
        if len(given) != len(shape):
            raise ShapeError(
                f"ensure_shape: a tensor of shape {shapes.show(given)} where one of {shapes.show(shape)} was promised"
            )
        return lengths

    spec = TensorSpec((len(shape),), dtypes.int64)
    (lengths,) = in_graph(LibraryCall(ensure_shape, (spec,), single=True), [x._lengths])
    return reshape(x._flat, lengths)


def _side_by_side(op: Op, inputs: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The operands of an op that goes element by element, as vectors of one length or scalars; the result's sizes."""
    operands: list[Any] = [x if isinstance(x, (bool, int, float, complex)) else as_tensor(x) for x in inputs]
    wide = [i for i, x in enumerate(operands) if isinstance(x, UnrankedTensor) or (isinstance(x, Tensor) and x.ndim)]
    parts = {i: _parts(operands[i]) for i in wide}
    lengths = parts[wide[0]][1]
    if any(not _are_same(parts[i][1], lengths) for i in wide):
        places, lengths = _meeting(op, [parts[i] for i in wide])
        parts = {i: (take(parts[i][0], at), lengths) for i, at in zip(wide, places, strict=True)}
    return [parts[i][0] if i in parts else x for i, x in enumerate(operands)], lengths


def _parts(x: Tensor) -> tuple[Any, Any]:
    if isinstance(x, UnrankedTensor):
        return x._flat, x._lengths
    return reshape(x, (-1,)), as_tensor(x.sizes()).astype(dtypes.int64)


def _are_same(x: Any, y: Any) -> bool:
    values = isinstance(x, SymbolicTensor) and isinstance(y, SymbolicTensor)
    return x is y or (values and x._value is y._value)


def _meeting(op: Op, parts: Sequence[tuple[Any, Any]]) -> tuple[list[Any], Any]:
    """For operands whose shapes broadcast: which element of each stands where, and the common sizes.

    Raises ShapeError, at run time, where they do not broadcast.
    """
    types = [flat.dtype for flat, _ in parts]

    def broadcast(*lengths: Any) -> list[Any]:
        given = [tuple(x.tolist()) for x in lengths]
        common: Any = shapes.broadcast(op.name, *given, of=list(map(known, given, types)))
        numbered = [np.arange(prod(shape)).reshape(shape) for shape in given]
        return [*[np.broadcast_to(x, common).ravel() for x in numbered], np.array(common, np.int64)]

    call = LibraryCall(broadcast, (_SIZES,) * (len(parts) + 1), single=False)
    *places, common = in_graph(call, [lengths for _, lengths in parts])
    return places, common


class OpenRankCall(PythonCall):
    """A call of Python of which some inputs or results have no known number of axes: each is two, elements and sizes.

    Args:
        call: the same, with inputs and results as the user's function has them.
        open_inputs: which of its inputs are.
    """

    def __init__(self, call: PythonCall, open_inputs: tuple[bool, ...]) -> None:
        specs: list[TensorSpec] = []
        for spec in call.specs:
            specs += [spec] if spec.has_rank else [TensorSpec((None,), spec.dtype), _SIZES]
        super().__init__(call.function, tuple(specs), False, call.device)
        self._call, self._open_inputs = call, open_inputs

    def __call__(self, *tensors: Any) -> tuple[Tensor, ...]:
        given = iter(tensors)
        inputs = [_joined(next(given), next(given)) if is_open else next(given) for is_open in self._open_inputs]
        results: list[Tensor] = []
        for spec, result in zip(self._call.specs, self._call(*inputs), strict=True):
            parts = [reshape(result, (-1,)), constant(np.array(result.shape, np.int64))]
            results += [result] if spec.has_rank else parts
        return tuple(results)

    def placed_on(self, device: Device) -> PythonCall:
        return OpenRankCall(self._call.placed_on(device), self._open_inputs)


def _rows(flat: Any, lengths: Any) -> Tensor:
    """Such tensors of several steps or examples, stacked. Raises ShapeError in a trace, and where shapes differ."""
    if type(flat) is Tensor and type(lengths) is Tensor:
        sizes = lengths.numpy()
        leading = sizes.shape[:-1]
        shapes_of_rows = {tuple(row) for row in sizes.reshape((-1, sizes.shape[-1])).tolist()}
        if len(shapes_of_rows) == 1:
            return reshape(flat, (*leading, *shapes_of_rows.pop()))
    raise ShapeError(
        "tensors of unknown rank cannot be stacked, as the steps of a scan or the examples of a batch are: return "
        "ll.ensure_shape(y, (None, 3)) of each, with a size or None for each axis"
    )


def _joined(flat: Tensor, lengths: Any) -> Tensor:
    return reshape(flat, tuple(lengths.tolist()))


def call_with_open_ranks(
    function: Callable[..., Any], specs: tuple[TensorSpec, ...], single: bool, inputs: Sequence[Tensor]
) -> Sequence[Any]:
    """The results of a Python function that a graph calls, where specs and inputs may have no known number of axes."""
    call = PythonCall(function, specs, single)
    open_inputs = tuple([isinstance(x, UnrankedTensor) for x in inputs])
    if not any(open_inputs) and all(spec.has_rank for spec in specs):
        return in_graph(call, inputs)
    parts: list[Any] = []
    for x in inputs:
        parts += [x._flat, x._lengths] if isinstance(x, UnrankedTensor) else [x]
    outputs = iter(in_graph(OpenRankCall(call, open_inputs), parts))
    return [next(outputs) if spec.has_rank else unranked(next(outputs), next(outputs)) for spec in specs]


structured[UnrankedTensor] = _compute
read_as_operand(UnrankedTensor)
