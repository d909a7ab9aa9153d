"""A graph of ONNX that is being written: nodes, initialisers, and the graphs inside of loops and branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.export.to_onnx.kernel_dtypes import KERNEL_DTYPES

Size = "int | Var | None"
_ONNX_TYPES: Final[dict[DType, int]] = {
    d: onnx.TensorProto.BFLOAT16 if d == dtypes.bfloat16 else helper.np_dtype_to_tensor_dtype(d) for d in dtypes.ALL
}
_WIDER: Final[dict[str, tuple[str, ...]]] = {
    "b": ("bool", "uint8", "int32", "int64", "float32"),
    "i": ("int32", "int64", "float32", "float64"),
    "u": ("uint32", "int32", "int64", "float32", "float64"),
    "f": ("float32", "float64"),
    "V": ("float32",),
}
"""In which dtypes an op is computed for which onnxruntime has no kernel, by kind; the first that holds all values.

None of whole numbers holds uint64: it goes by its bits into int64, which is right for sums and products. What asks for
the larger one takes `arrays.signed_in_order` first.
"""


def onnx_type(dtype: DType) -> int:
    return _ONNX_TYPES[dtype]


class Var:
    """A value of the graph: a name, its dtype, and its shape with None for sizes that are unknown.

    `value` is its content where that is known while the graph is written: sizes and other constants.
    """

    __slots__ = ("builder", "dtype", "name", "shape", "value")

    def __init__(
        self, builder: Builder, name: str, dtype: DType, shape: Sequence[int | None], value: Any = None
    ) -> None:
        self.builder, self.name, self.dtype = builder, name, dtype
        self.shape: tuple[int | None, ...] = tuple(shape)
        self.value = value

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def floating(self) -> bool:
        return dtypes.kind(self.dtype) == "floating"

    def __add__(self, other: Any) -> Var:
        return self.builder.binary("Add", self, other)

    def __radd__(self, other: Any) -> Var:
        return self.builder.binary("Add", other, self)

    def __sub__(self, other: Any) -> Var:
        return self.builder.binary("Sub", self, other)

    def __rsub__(self, other: Any) -> Var:
        return self.builder.binary("Sub", other, self)

    def __mul__(self, other: Any) -> Var:
        return self.builder.binary("Mul", self, other)

    def __rmul__(self, other: Any) -> Var:
        return self.builder.binary("Mul", other, self)

    def __truediv__(self, other: Any) -> Var:
        return self.builder.binary("Div", self, other)

    def __rtruediv__(self, other: Any) -> Var:
        return self.builder.binary("Div", other, self)

    def __pow__(self, n: Any) -> Var:
        if type(n) is int and 0 < n < 5:  # exact, as a product
            result = self
            for _ in range(n - 1):
                result = result * self
            return result
        return self.builder.binary("Pow", self, n)

    def __neg__(self) -> Var:
        return self.builder.unary("Neg", self)

    def __lt__(self, other: Any) -> Var:
        return self.builder.compare("Less", self, other)

    def __le__(self, other: Any) -> Var:
        return self.builder.compare("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> Var:
        return self.builder.compare("Greater", self, other)

    def __ge__(self, other: Any) -> Var:
        return self.builder.compare("GreaterOrEqual", self, other)

    def __and__(self, other: Any) -> Var:
        return self.builder.binary("And", self, other)

    def __or__(self, other: Any) -> Var:
        return self.builder.binary("Or", self, other)

    def __invert__(self) -> Var:
        return self.builder.unary("Not", self)

    def __getitem__(self, key: Any) -> Var:
        """`x[..., 0]`, which the kernels of integrals end with."""
        if key != (..., 0):
            raise NotImplementedError(key)
        zero = self.builder.constant(0, np.int64)
        return self.builder.make("Gather", self, zero, shape=self.shape[:-1], axis=self.ndim - 1)

    def astype(self, dtype: Any, copy: bool = True) -> Var:
        return self.builder.cast(self, np.dtype(dtype))


class Complex:
    """A complex value inside of a graph: ONNX has its parts only."""

    __slots__ = ("im", "re")

    def __init__(self, re: Var, im: Var) -> None:
        self.re, self.im = re, im


class Builder:
    """Takes nodes in order. Values of outer graphs can be used in inner ones, as ONNX has it."""

    def __init__(self) -> None:
        self.initialisers: list[Any] = []
        self.ops: set[str] = set()
        self._scopes: list[list[Any]] = [[]]
        self._constants: dict[Any, Var] = {}
        self._names: set[str] = set()

    @property
    def nodes(self) -> list[Any]:
        return self._scopes[0]

    def fresh(self, hint: str = "") -> str:
        """A name that no other value has: the hint itself where it is free."""
        name, n = hint, len(self._names)
        while not name or name in self._names:
            name, n = f"{hint or 'v'}_{n}", n + 1
        self._names.add(name)
        return name

    def constant(self, value: Any, dtype: Any = None, name: str = "") -> Var:
        """An initialiser. Small equal ones are shared."""
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= 64 and not name else None
        if key in self._constants:
            return self._constants[key]
        made = Var(self, self.fresh(name or "c"), array.dtype, array.shape, array if array.size <= 64 else None)
        kind = onnx_type(array.dtype)
        self.initialisers.append(helper.make_tensor(made.name, kind, array.shape, array.tobytes(), raw=True))
        if key is not None:
            self._constants[key] = made
        return made

    def emit(self, op: str, inputs: Sequence[Var | None], n_outputs: int = 1, **attrs: Any) -> list[str]:
        """Adds a node as it is, and returns the names of its outputs."""
        names = [self.fresh() for _ in range(n_outputs)]
        self.ops.add(op)
        self._scopes[-1].append(helper.make_node(op, ["" if x is None else x.name for x in inputs], names, **attrs))
        return names

    def make(
        self, op: str, x: Any, *rest: Any, uniform: int = 1, dtype: Any = None, shape: Any = None, **attrs: Any
    ) -> Var:
        """A node with one output.

        Args:
            op: the op of ONNX.
            x: the first input.
            *rest: the others.
            uniform: how many inputs, from the first on, share a dtype; they are cast where there is no kernel for it.
            dtype: that of the result; None for that of `x`.
            shape: that of the result; None for that of `x`.
            **attrs: the attributes of the node.
        """
        inputs = [x, *rest]
        through = computed_in(op, x.dtype)
        inputs[:uniform] = [y if y is None else self.cast(y, through) for y in inputs[:uniform]]
        result = through if dtype is None else dtype
        (name,) = self.emit(op, inputs, **attrs)
        made = Var(self, name, result, x.shape if shape is None else shape)
        return self.cast(made, x.dtype) if dtype is None else made

    def cast(self, x: Var, dtype: DType) -> Var:
        if x.dtype == dtype:
            return x
        if x.value is not None:
            return self.constant(x.value.astype(dtype))
        (name,) = self.emit("Cast", [x], to=onnx_type(dtype))
        return Var(self, name, dtype, x.shape)

    def unary(self, op: str, x: Var, **attrs: Any) -> Var:
        return self.make(op, x, **attrs)

    def pair(self, x: Any, y: Any) -> tuple[Var, Var]:
        """Both as values, Python's numbers in the dtype of the other one."""
        like = x if isinstance(x, Var) else y
        return tuple([z if isinstance(z, Var) else self.constant(np.asarray(z, like.dtype)) for z in (x, y)])  # type: ignore[return-value]

    def binary(self, op: str, x: Any, y: Any, **attrs: Any) -> Var:
        x, y = self.pair(x, y)
        return self.make(op, x, y, uniform=2, shape=broadcast(x.shape, y.shape), **attrs)

    def compare(self, op: str, x: Any, y: Any) -> Var:
        x, y = self.pair(x, y)
        return self.make(op, x, y, uniform=2, dtype=dtypes.bool_, shape=broadcast(x.shape, y.shape))

    @contextmanager
    def inner(self) -> Iterator[list[Any]]:
        """Nodes go into a graph inside this one."""
        nodes: list[Any] = []
        self._scopes.append(nodes)
        try:
            yield nodes
        finally:
            self._scopes.pop()

    def graph(self, nodes: list[Any], inputs: Sequence[Var], outputs: Sequence[Var], rows: Sequence[Var] = ()) -> Any:
        """The graph of a branch or of a body.

        Args:
            nodes: those between inputs and outputs.
            inputs: what it is given.
            outputs: what it returns: in a body the flag and what is carried, whose shapes may change.
            rows: what a loop stacks besides. Their shapes are written down: a loop of no steps has nothing else.
        """
        return helper.make_graph(
            nodes, self.fresh("inner"), [self.info(x, sizes=not x.ndim) for x in inputs],
            [*[self.info(y, sizes=not y.ndim) for y in outputs], *[self.info(y) for y in rows]],
        )  # fmt: skip

    def info(self, x: Var, *, sizes: bool = True, symbols: Sequence[str | None] = ()) -> Any:
        shape: list[Any] | None = None
        if sizes:
            words = symbols or [None] * x.ndim
            shape = [word if size is None else size for size, word in zip(x.shape, words, strict=True)]
        return helper.make_tensor_value_info(x.name, onnx_type(x.dtype), shape)


def computed_in(op: str, dtype: DType) -> DType:
    """The dtype in which onnxruntime computes an op for `dtype`: that itself if there is a kernel."""
    known = KERNEL_DTYPES.get(op)
    if known is None or dtype.name in known:
        return dtype
    for name in _WIDER["f" if dtype == dtypes.bfloat16 else dtype.kind]:
        wider = np.dtype(name)
        if name in known and _holds(wider, dtype):
            return wider
    for name in _WIDER["f" if dtype == dtypes.bfloat16 else dtype.kind]:
        if name in known:
            return np.dtype(name)
    raise KeyError(f"onnxruntime computes {op} in none of the dtypes that hold {dtype}")


def _holds(wider: DType, dtype: DType) -> bool:
    """Whether every value of `dtype` is one of `wider`; of uint64 every bit."""
    if dtype.kind == "u" and wider.kind == "i" and dtype.itemsize < 8:
        return wider.itemsize > dtype.itemsize
    return wider.itemsize >= min(dtype.itemsize, 8)


def broadcast(*shapes: Sequence[int | None]) -> tuple[int | None, ...]:
    """The common shape of operands, as far as it is known."""
    rank = max(map(len, shapes))
    result: list[int | None] = []
    for i in range(-rank, 0):
        sizes = {shape[i] for shape in shapes if len(shape) >= -i}
        larger = sizes - {1, None}
        result.append(larger.pop() if larger else None if None in sizes else 1)
    return tuple(result)
