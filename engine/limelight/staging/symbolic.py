"""Symbolic values: what traced code holds in place of tensors, variables and opaque values.

A symbolic value knows its spec (`TensorSpec`, `VariableSpec`, `ObjectSpec`) and the value of the graph that it stands
for. It has no data: code that asks for some gets an error that names the user's line and what to write instead. Its
`_tracer` is the `Tracer` that made it, typed `Any` because that class is built upon these.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from limelight.core import dispatch, shapes
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType
from limelight.core.op import get
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.core.tensor import Tensor, new_uid
from limelight.core.variable import Resource
from limelight.errors import LeakedTensorError, LimelightError, SymbolicValueError
from limelight.graph.ir import Value
from limelight.user_code import hints, holders, source_line
from limelight.user_code.dropped_result import warn_if_dropped
from limelight.user_code.implicit_conversion import is_array_store

set_class: Final = vars(object)["__class__"].__set__
"""Has a symbolic tensor be of another class of the same layout: its `__class__` is what it means."""


class SymbolicTensor(Tensor):
    """A tensor that will have a value when the graph runs. Shape and dtype are known now, sizes perhaps not."""

    __slots__ = ("_tracer", "_value")
    __class__: Any = Tensor  # what code that asks for it gets of any tensor; `type` tells them apart
    _tracer: Any
    _value: Value

    @property
    def _data(self) -> Any:  # stands where a tensor keeps its array, and explains
        raise no_value_error(self)

    @property
    def spec(self) -> TensorSpec:
        spec = self._value.spec
        assert isinstance(spec, TensorSpec)
        return spec

    @property
    def dtype(self) -> DType:
        dtype: DType = self._value.spec.dtype  # type: ignore[union-attr]  # a TensorSpec; no assert, each operand asks
        return dtype

    @property
    def shape(self) -> shapes.Shape:
        shape: shapes.Shape = self._value.spec.shape  # type: ignore[union-attr]  # the same
        return shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes or 0

    @property
    def device(self) -> Device:
        """Where it will be: a trace is for arguments on the devices of this call, which its key has."""
        place: Device = self._tracer.device_of(self._value)
        return place

    @property
    def name(self) -> str:
        """What to call it in a message: the op that makes it, or the argument that it is."""
        node = self._value.node
        return f"the result of {node.op}" if node else f"the argument `{self._tracer.name_of(self._value)}`"

    @property
    def line(self) -> source_line.Source | None:
        """The user's line that made it; for an argument, the line at which the trace began."""
        made_by = self._value._node
        node = None if made_by is None else made_by()
        if node is None:
            began: source_line.Source | None = self._tracer.begun
            return began
        return node.stack[0] if node.stack else None

    def sizes(self) -> Any:
        shape = self._value.spec.shape  # type: ignore[union-attr]  # a TensorSpec
        return shape if None not in shape else dispatch.apply(get("shape_of"), (self,))

    def numpy(self) -> np.ndarray[Any, Any]:
        raise no_value_error(self, ".numpy()")

    def item(self) -> Any:
        raise no_value_error(self, ".item()")

    def tolist(self) -> Any:
        raise no_value_error(self, ".tolist()")

    def sort(self, **options: Any) -> Tensor:
        """As of any tensor. A traced function may have been written for an array of NumPy's, which sorts itself."""
        warn_if_dropped("sort returns a tensor, and this one stays as it is", "x = x.sort()")
        return super().sort(**options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise no_value_error(self, "conversion to a NumPy array")

    def __bool__(self) -> bool:
        raise no_value_error(self, "bool() (as in `if`, `while`, `and`, `or`, `not`)")

    def __int__(self) -> int:
        raise no_value_error(self, "int()")

    def __float__(self) -> float:
        raise no_value_error(self, "float()" if not is_array_store() else "assignment into a NumPy array")

    def __complex__(self) -> complex:
        raise no_value_error(self, "complex()")

    def __index__(self) -> int:
        raise no_value_error(self, "use as a Python index")

    def __format__(self, form: str) -> str:
        if form:
            raise no_value_error(self, f"format(..., {form!r})")
        return repr(self)

    def __repr__(self) -> str:
        lines = self._value.node.stack[:1] if self._value.node else ()
        where = f", made at {lines[0]}" if lines else ""
        return f"<symbolic {self.spec}: {self.name} in {self._tracer.name}{where}>"


VIEWS: Final = frozenset([
    *("slice", "dynamic_slice", "reshape", "matrix_transpose", "transpose", "squeeze", "expand_dims", "swapaxes"),
    *("flip", "broadcast_to", "split", "unstack", "diagonal", "real", "imag"),
])  # fmt: skip
"""Ops whose counterparts in NumPy give views of an array; the dynamic slice is `arr[i]` of a scalar tensor `i`."""


def _noting(name: str) -> Any:
    """A method for `x += y` and the like: takes note of it, and leaves it to Python to make a new tensor of `x + y`.

    An array of NumPy's, for which a symbolic tensor may stand, is changed by it.
    """

    def method(self: SymbolicTensor, other: Any) -> Any:
        node = self._value.node
        if node is None or node.op.name in VIEWS:  # what was computed is nobody else's, and has no line to be asked for
            self._tracer.changed_in_place.append((self._value, source_line.user_line()))
        return NotImplemented

    method.__name__ = name
    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(SymbolicTensor, f"__i{_name}__", _noting(f"__i{_name}__"))


def no_value_error(x: SymbolicTensor, asked: str = "the value") -> LimelightError:
    """The error for asking a symbolic tensor for data: it leaked out of its trace, or the trace is still going on.

    For a leaked one it names what of the user's holds it, as far as `holders.first_holder` finds that in 0.2 s.
    """
    here = source_line.here()
    place = source_line.at(x.line if x._value.node or x._tracer.finished else None)
    place = place if place != here or x._tracer.finished else ""
    if x._tracer.finished:
        holder = holders.first_holder(x)
        held = "" if holder is None else f" It is kept as {holder}."
        return LeakedTensorError(
            f"a symbolic tensor leaked out of the function {x._tracer.words}, whose trace has ended: "
            f"{x.name}, {x.spec}{place}. It has no value outside{here}.{held} Return it from the "
            "function instead of storing it in a global, list or attribute; to keep a value between calls use "
            "ll.Variable"
        )
    if x._tracer not in dispatch.stack():
        error = SymbolicValueError(
            f"a symbolic tensor is out of scope{here}: {x.name}, {x.spec}{place} belongs to the trace of "
            f"{x._tracer.words}, which this code has left (ll.init_scope does, and so do other threads and the "
            "function given to ll.py_func). Compute it from values that exist now, or move it into the traced code"
        )
        x._tracer.note_elsewhere(error)
        return error
    return SymbolicValueError(
        f"{asked} of a symbolic tensor{here}: {x.name}, {x.spec}{place} has a value only when the graph of "
        f"{x._tracer.words} runs, not while it is traced. {hints.without_value(asked)}"
    )


class SymbolicVariable(Resource):
    """Stands for a variable while a graph is rebuilt from another one."""

    __slots__ = ()

    def __init__(self, spec: VariableSpec) -> None:
        self.spec = spec
        self._uid = new_uid()
        self._device = CPU0
        self._data = None

    def __as_tensor__(self) -> Tensor:
        value: Tensor = dispatch.apply(get("read_variable"), (self,))
        return value


class SymbolicObject:
    """Stands for an opaque value that flows between ops of a graph."""

    __slots__ = ("_tracer", "_uid", "_value", "dtype", "shape", "spec")

    def __init__(self, value: Value, tracer: Any) -> None:
        self._value = value
        self._tracer = tracer
        self._uid = 0
        self.spec = value.spec
        self.dtype = None
        self.shape = ()

    def payload(self) -> UnknownState:
        """What a generator draws from that stands for this value."""
        return UnknownState(self._tracer, self._value)

    def stand_for(self, generator: Resource) -> None:
        """Has ops of the trace that draw from `generator` draw from this value."""
        self._tracer.stands_for(generator, self._value)


class UnknownState:
    """The payload of a generator that staged code splits off: it has a state only when the graph runs."""

    __slots__ = ("_tracer", "_value")

    def __init__(self, tracer: Any, value: Value) -> None:
        self._tracer = tracer
        self._value = value

    def __getattr__(self, name: str) -> Any:
        here, node = source_line.here(), self._value.node
        line = node.stack[0] if node is not None and node.stack else None
        what = f"a generator that the staged function {self._tracer.words} splits off{source_line.at(line)}"
        if self._tracer.finished:
            raise LeakedTensorError(
                f"{what} is used outside{here}. It lasts as long as a call: split outside, and pass the parts, since "
                "generators are arguments of staged functions as tensors are"
            )
        raise SymbolicValueError(f"the state of {what} is asked for{here}: it has one only when the graph runs")
