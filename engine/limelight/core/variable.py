"""Variables: mutable state that owns its storage (paper section 4.3).

A variable is a handle as a tensor is; its `_data` is a `Storage`. The kernel of an op sees what a handle's `_data` is,
so reading a variable is an ordinary op, whose kernel returns `storage.array`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from limelight.core import (
    attachments,
    device_copies,
    device_scopes,
    devices,
    dispatch,
    dtypes,
    name_scopes,
    shapes,
)
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import account, move, numpy_interop, prepare, read_as_operand, read_operand
from limelight.core.op import Op, defop
from limelight.core.shapes import Shape
from limelight.core.spec import Constraint, TensorSpec, VariableSpec
from limelight.core.storage import Storage, UnsettledStorage
from limelight.core.tensor import Tensor, TensorLike, TensorRef, as_tensor, beside, constant, new_uid, wrap
from limelight.core.variable_updates import (
    CUT,
    assign_scatter,
    assign_scatter_add,
    assign_scatter_max,
    assign_scatter_min,
    assign_scatter_mul,
    assign_scatter_sub,
    assign_slice,
    static_key,
)
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.settings import Scoped
from limelight.user_code import equivalents, hints, source_line
from limelight.user_code.tracebacks import in_place_of_python

R = TypeVar("R", bound="Resource")


class Resource:
    """A handle to a variable: a `Variable`, or its stand-in while a graph is rebuilt."""

    __slots__ = ("__dict__", "__weakref__", "_data", "_device", "_uid", "spec")
    __limelight_leaf__ = True
    _data: Any
    _device: Device
    _uid: int
    spec: VariableSpec
    _stands_for: Any = None

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def shape(self) -> Shape:
        return self.spec.shape

    @property
    def trainable(self) -> bool:
        return self.spec.trainable

    @trainable.setter
    @in_place_of_python
    def trainable(self, value: bool) -> None:
        raise AttributeError(f"whether a variable is trainable is said when it is made: {_STAYS}", name="trainable")

    def sizes(self) -> Any:
        """The shape as something to compute with (see `Tensor.sizes`)."""
        return self.spec.shape if shapes.is_static(self.spec.shape) else dispatch.apply(read, (self,)).sizes()


# The ops that touch storage


def _assigned(variable: VariableSpec, value: TensorSpec) -> TensorSpec:
    if value.dtype != variable.dtype:
        raise DTypeError(
            f"assign: a value of {value.dtype.name} does not fit a variable of {variable.dtype.name}; "
            f"write ll.astype(value, ll.{variable.dtype.name})"
        )
    if not shapes.compatible(value.shape, variable.shape) and None not in value.shape:
        raise ShapeError(
            f"assign: a value of shape {shapes.show(value.shape)} does not fit a variable of shape "
            f"{shapes.show(variable.shape)}; a variable keeps its shape "
            "(create it with shape=(None, ...) for sizes that change)"
        )
    return value


def _updated(variable: VariableSpec, value: TensorSpec) -> TensorSpec:
    _assigned(VariableSpec(value.shape, variable.dtype), value)
    if variable.dtype == dtypes.bool_:
        raise DTypeError("assign_add/assign_sub: a bool variable is no number; write v.assign(ll.logical_or(v, value))")
    if shapes.broadcast("assign", variable.shape, value.shape) != variable.shape:
        given, wanted = shapes.show(value.shape), shapes.show(variable.shape)
        raise ShapeError(f"assign_add/assign_sub: {given} does not broadcast to the variable's {wanted}")
    return variable.value


def _add(xp: Any, storage: Storage, value: Any) -> Any:
    while not storage.exchange(old := storage.array, new := old + value):
        pass
    return new


def _subtract(xp: Any, storage: Storage, value: Any) -> Any:
    while not storage.exchange(old := storage.array, new := old - value):
        pass
    return new


read: Final[Op] = defop(
    "read_variable",
    inputs="variable:var",
    infer=lambda variable: variable.value,
    kernel=lambda xp, storage: storage.array,
    effect="read",
    vjp={"variable": lambda g: g},
    maths={"variable": "v̄ = ȳ"},
)

assign_op: Final[Op] = defop(
    "assign",
    inputs="variable:var value:any",
    infer=_assigned,
    kernel=lambda xp, storage, value: storage.set(value),
    effect="write",
    why_no_gradient=CUT,
)
assign_add_op: Final[Op] = defop(
    "assign_add",
    inputs="variable:var value:any",
    infer=_updated,
    kernel=_add,
    effect="write",
    why_no_gradient=CUT,
)
assign_sub_op: Final[Op] = defop(
    "assign_sub",
    inputs="variable:var value:any",
    infer=_updated,
    kernel=_subtract,
    effect="write",
    why_no_gradient=CUT,
)

on_create: Final[Scoped[Callable[[Resource], None] | None]] = Scoped("on_create", None)
"""Told of every new variable or generator; a staged function refuses it or takes note (the state-creation contract)."""
created_by: Final[Scoped[str]] = Scoped("created_by", "")
"""What makes variables for itself now: a "layer" at its first call, an "optimiser"; empty for code of the user's."""
found_again: Final[Scoped[bool]] = Scoped("found_again", False)
"""Whether who creates a variable now keeps it and would find it in a second trace, which then need not be made."""
lift: Final[Scoped[Callable[[Any], Any] | None]] = Scoped("lift", None)
"""Computes the value of a symbolic tensor, or what a function returns, outside the trace: for initial values."""


class Variable(Resource):
    """A mutable tensor that gradient tapes watch automatically when it is read (paper section 4.3).

    Reads are snapshots: later assignments do not change them. The storage belongs to this object and is freed with it,
    even if a graph mentions the variable. A variable is used in ops as its value is.

    Args:
        initial_value: a number, array or tensor, or a function without arguments that returns one.
        dtype: its dtype; by default that of the initial value.
        name: its name in messages, views and graphs, to which the scopes of `ll.name_scope` are prefixed; "variable" by
            default, and then that of the attribute of the module which it becomes.
        trainable: whether tapes watch it when it is read, and modules list it in `trainable_variables`. True.
        shape: its shape, with None for sizes that may change; by default that of the initial value, which must fit it.
        constraint: a function from the value to one of the same shape and dtype that is allowed, such as `ll.nn.relu`;
            optimisers apply it after each update, to the whole value (`assign` does not). None, nothing, by default.

    Raises:
        ArgumentError: the constraint is no function.
        ShapeError: the initial value, or an assigned one, does not fit the shape.
        DTypeError: there is no such dtype, or the initial value, or an assigned one, does not fit it.

    >>> import limelight as ll
    >>> v = ll.Variable(3.0, name="v")
    >>> v.assign_add(1.0).item(), (v * 2).item()
    (4.0, 8.0)
    """

    __slots__ = ("_name", "_stands_for")
    _stands_for: tuple[Variable, set[int]] | None

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike],
        dtype: DTypeLike | None = None,
        name: str | None = None,
        trainable: bool = True,
        shape: Any = None,
        constraint: Constraint | None = None,
    ) -> None:
        if constraint is not None and not callable(constraint):
            raise ArgumentError(
                f"a constraint is a function from the value to one that is allowed, got {constraint!r}; "
                "write constraint=lambda value: ll.clip(value, -1.0, 1.0), for example"
            )
        hook = on_create.get()
        if hook is not None:
            hook(self)
        made = attachments.initial_value_begins() if attachments.waiting else None
        value = _initial(initial_value, dtype)
        sizes = value.shape if shape is None else shapes.as_shape(shape)
        if not shapes.compatible(value.shape, sizes):
            raise ShapeError(
                f"an initial value of shape {shapes.show(value.shape)} for a variable of shape {shapes.show(sizes)}"
            )
        spec = VariableSpec(sizes, value.dtype, shapes.flag("Variable", "trainable", trainable), constraint)
        self._name = name_scopes.in_current_scope(name, "variable")
        self.spec = spec
        self._uid = new_uid()
        self._stands_for = None
        self._device = value._device
        self._data = (UnsettledStorage if attachments.growing else Storage)(
            np.array(value._data) if value._device is CPU0 else value._data, value._device, spec, self.name, self._uid
        )
        if made is not None:
            made(self)

    @property
    def name(self) -> str:
        """Its name; a trace in which the user's code asks for it is for this very variable."""
        if self._stands_for is not None and not source_line.is_library_file(sys._getframe(1).f_code.co_filename):
            itself(self)
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def device(self) -> Device:
        return self._device

    @property
    def constraint(self) -> Constraint | None:
        """What optimisers apply to the value after each update."""
        return self.spec.constraint

    def read_value(self) -> Tensor:
        """The value now, as a tensor that later assignments do not change."""
        value: Tensor = dispatch.apply(read, (self,))
        return value

    def numpy(self) -> np.ndarray[Any, Any]:
        """The value now, as a read-only NumPy array."""
        return self.read_value().numpy()

    def assign(self, value: TensorLike) -> Tensor:
        """Replaces the value.

        Args:
            value: a tensor, array or number of the variable's dtype and shape.

        Returns:
            The new value, a tensor.

        Raises:
            ShapeError: the value has another shape.
            DTypeError: the value has another dtype.

        >>> import limelight as ll
        >>> v = ll.Variable([1.0, 2.0])
        >>> v.assign([3.0, 4.0]).tolist()
        [3.0, 4.0]
        """
        return self._write(assign_op, value)

    def assign_add(self, delta: TensorLike) -> Tensor:
        """Adds `delta`, which broadcasts to the shape; returns the new value. Errors are those of `assign`.

        No update of several threads is lost; the same holds for the other methods that change a value.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).assign_add(1.0).tolist()
        [2.0, 3.0]
        """
        return self._write(assign_add_op, delta)

    def assign_sub(self, delta: TensorLike) -> Tensor:
        """Subtracts `delta`, which broadcasts to the shape; returns the new value. Errors are those of `assign`.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).assign_sub(1.0).tolist()
        [0.0, 1.0]
        """
        return self._write(assign_sub_op, delta)

    def scatter_update(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """Sets the rows at `indices` to `values`. Which one of several values for a row wins is not said.

        Args:
            indices: integers of any shape; negative ones count from the end.
            values: of the variable's dtype; they broadcast to (*indices.shape, *v.shape[1:]).

        Returns:
            The new value of the whole variable, a tensor.

        Raises:
            ShapeError: `values` do not broadcast to that shape.
            DTypeError: `values` have another dtype, or `indices` are no integers.
            OutOfBoundsError: there is no such row.

        >>> import limelight as ll
        >>> v = ll.Variable([1.0, 2.0, 3.0])
        >>> v.scatter_update([2, 0], [30.0, 10.0]).tolist()
        [10.0, 2.0, 30.0]
        """
        return self._write(assign_scatter, values, indices)

    def scatter_add(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """Adds `values` to the rows at `indices`, repeatedly for an index that repeats; otherwise as `scatter_update`.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).scatter_add([0, 0], [10.0, 100.0]).tolist()
        [111.0, 2.0]
        """
        return self._write(assign_scatter_add, values, indices)

    def scatter_sub(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """Subtracts `values` from the rows at `indices`; otherwise as `scatter_add`.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).scatter_sub([1], [10.0]).tolist()
        [1.0, -8.0]
        """
        return self._write(assign_scatter_sub, values, indices)

    def scatter_mul(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """Multiplies the rows at `indices` by `values`; otherwise as `scatter_add`.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).scatter_mul([1, 1], [10.0, 5.0]).tolist()
        [1.0, 100.0]
        """
        return self._write(assign_scatter_mul, values, indices)

    def scatter_max(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """Keeps the greater of the rows at `indices` and `values`; otherwise as `scatter_add`. NaN stays.

        Complex variables raise DTypeError.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).scatter_max([0, 1, 1], [5.0, 1.0, 3.0]).tolist()
        [5.0, 3.0]
        """
        return self._write(assign_scatter_max, values, indices)

    def scatter_min(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """Keeps the smaller of the rows at `indices` and `values`; otherwise as `scatter_max`.

        >>> import limelight as ll
        >>> ll.Variable([1.0, 2.0]).scatter_min([0, 1, 1], [5.0, 1.0, 3.0]).tolist()
        [1.0, 1.0]
        """
        return self._write(assign_scatter_min, values, indices)

    def __setitem__(self, key: Any, value: TensorLike) -> None:
        """`v[key] = value` for ints, slices and `...`: assigns a part, to which `value` must broadcast.

        Raises ArgumentError for other keys and for what is out of bounds, ShapeError or DTypeError for the value.
        """
        self._write(assign_slice, value, attrs=(static_key(key, len(self.shape)),))

    def _write(self, op: Op, value: TensorLike, *rows: TensorLike, attrs: tuple[Any, ...] = ()) -> Tensor:
        try:
            value = beside(value, self.dtype)
        except DTypeError as error:
            raise DTypeError(f"variable {self.name!r}, {self.spec}: {error.bare}") from None
        operands = prepare(op, (self, *map(as_tensor, rows), value))
        op.infer(self.spec, *[x.spec for x in operands[1:]], *attrs)
        result: Tensor = dispatch.apply(op, operands, attrs)
        return result

    def ref(self) -> TensorRef:
        """A hashable key that stands for this very variable."""
        return TensorRef(self if self._stands_for is None else itself(self))

    def __as_tensor__(self) -> Tensor:
        return self.read_value()

    __array_ufunc__ = numpy_interop.of_ufunc  # ndarray + variable is an op, and not lost to gradients
    __array_function__ = numpy_interop.of_numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.read_value().__array__(dtype, copy)

    def _value_now(self) -> np.ndarray[Any, Any]:
        """The stored value, whatever is being traced or recorded."""
        return np.array(device_copies.on_host(self._data.array, self._device, device_copies.PRINTED, self.name))

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        make, arguments = self.__reduce__()
        memo[id(self)] = clone = make(*arguments)
        return clone

    def __copy__(self) -> Variable:
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple[Callable[..., Variable], tuple[Any, ...]]:
        return (_restored, (self._value_now(), self.name, self.trainable, self.shape, self._device, self.constraint))

    def __repr__(self) -> str:
        value = np.array2string(self._value_now(), separator=", ")
        head = "ll.Variable(\n" if len(self.shape) > 1 else "ll.Variable("
        constraint = "" if self.constraint is None else f", constraint={_name_of(self.constraint)}"
        shape = shapes.show(self.shape)
        return f"{head}{value}, name={self.name!r}, shape={shape}, dtype={self.dtype.name}{constraint})"

    def __hash__(self) -> int:
        raise DTypeError("variables compare by value and so are not hashable; use v.ref() as a key")

    if TYPE_CHECKING:  # a variable reads as its value: see _forward below

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any, /) -> Tensor: ...
        def __add__(self, other: TensorLike, /) -> Tensor: ...
        def __radd__(self, other: TensorLike, /) -> Tensor: ...
        def __sub__(self, other: TensorLike, /) -> Tensor: ...
        def __rsub__(self, other: TensorLike, /) -> Tensor: ...
        def __mul__(self, other: TensorLike, /) -> Tensor: ...
        def __rmul__(self, other: TensorLike, /) -> Tensor: ...
        def __truediv__(self, other: TensorLike, /) -> Tensor: ...
        def __matmul__(self, other: TensorLike, /) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike, /) -> Tensor: ...
        def __pow__(self, other: TensorLike, /) -> Tensor: ...
        def __neg__(self) -> Tensor: ...


def stand_in(variable: Resource, meant: set[int]) -> Resource:
    """Another object for the same variable, or generator: what a trace sees of one that is an argument.

    It has the variable's uid, storage and attributes, so that tapes and graphs take both for one. By the object the
    trace can tell the argument, which may be another variable on the next call, from the same variable closed over,
    which is always that one.

    Args:
        variable: what it stands for.
        meant: takes the uid where code asks which very variable it is, see `itself`.
    """
    other: Any = object.__new__(type(variable))
    other.__dict__ = variable.__dict__
    for name in ("_name",) if isinstance(variable, Variable) else ("name",):
        setattr(other, name, getattr(variable, name))
    other.spec = variable.spec
    other._device = variable._device
    other._data = variable._data
    other._uid = variable._uid
    other._stands_for = variable, meant
    if variable.__dict__:  # what users have attached, the code may read, and it would be this one's
        meant.add(variable._uid)
    return other  # type: ignore[no-any-return]  # of the same type


def itself(variable: R) -> R:
    """The very variable that a stand-in stands for, through all traces around; their traces then are for it alone.

    Anything but a stand-in is returned as it is.
    """
    while variable._stands_for is not None:
        original, meant = variable._stands_for
        meant.add(variable._uid)
        variable = original
    return variable


def _restored(
    value: np.ndarray[Any, Any],
    name: str,
    trainable: bool,
    shape: Shape,
    device: Device,
    constraint: Constraint | None = None,
) -> Variable:
    with device_scopes.device(device):
        return Variable(value, name=name, trainable=trainable, shape=shape, constraint=constraint)


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _initial(given: Any, dtype: DTypeLike | None) -> Tensor:
    """The initial value as a tensor with data, computed outside any trace and tape."""
    lifter = lift.get()
    if lifter is not None and (callable(given) or (isinstance(given, Tensor) and type(given) is not Tensor)):
        given = lifter(given)
    with dispatch.fresh_stack():
        value = _converted(given() if callable(given) else given, dtype)
        requested = device_scopes.requested_device()
        if requested is None or requested is value._device:
            return value
        devices.mark_in_use()
        return _on(value, requested)


def _converted(given: Any, dtype: DTypeLike | None) -> Tensor:
    """`given` as a tensor of `dtype`, which must be able to hold its kind; its own dtype for None."""
    if dtype is None or not isinstance(given, Tensor):
        return constant(given, dtype)
    wanted = dtypes.dtype(dtype)
    if not dtypes.holds(wanted, given.dtype):
        raise DTypeError(
            f"an initial value of {given.dtype.name} does not fit a variable of {wanted.name}; convert it explicitly"
        )
    return given.astype(wanted)


def _on(value: Tensor, device: Device) -> Tensor:
    there = wrap(move(value, device, device_copies.INITIAL), device)
    account(there)
    return there


_READS_AS_VALUE: Final = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod",
    "pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor", "neg", "pos", "abs", "invert",
    "lt", "le", "gt", "ge", "eq", "ne", "getitem", "bool", "int", "float", "complex", "index", "len", "iter",
    "format", "round", "divmod", "rdivmod",
)  # fmt: skip


def _forward(name: str) -> Callable[..., Any]:
    """A method that reads the variable and asks its value: operators must sit on the class, so they are made here."""

    def forwarded(self: Variable, *args: Any) -> Any:
        return getattr(read_operand(self), name)(*args)

    return forwarded


for _name in _READS_AS_VALUE:
    setattr(Variable, f"__{_name}__", _forward(f"__{_name}__"))


_IN_PLACE: Final = {
    "add": "assign_add(value)", "sub": "assign_sub(value)", "mul": "assign(v * value)", "truediv": "assign(v / value)",
    "floordiv": "assign(v // value)", "mod": "assign(v % value)", "pow": "assign(v ** value)",
    "matmul": "assign(v @ value)", "and": "assign(v & value)", "or": "assign(v | value)", "xor": "assign(v ^ value)",
}  # fmt: skip


def _refuse_in_place(name: str, instead: str) -> Callable[..., Any]:
    """Python would bind the name to a tensor, and the variable would keep its value: nobody means that."""
    symbol = {"add": "+", "sub": "-"}.get(name) or instead.partition(" ")[2].partition(" ")[0]

    def refused(self: Variable, other: Any) -> Any:
        raise ArgumentError(
            f"v {symbol}= value would not change the variable {self.name!r}, but make the name stand for a tensor: "
            f"write v.{instead} to change the variable, v = v {symbol} value for a tensor"
        )

    return refused


for _name, _instead in _IN_PLACE.items():
    setattr(Variable, f"__i{_name}__", _refuse_in_place(_name, _instead))


_STAYS: Final = "what no optimiser is handed stays as it is; tapes do not watch ll.Variable(x, trainable=False)"
for _name, _hint in {"value": "write v.assign(x)", "data": "write v.assign(x)", "requires_grad": _STAYS}.items():
    setattr(Variable, _name, hints.NotToSet(_name, _hint))


_MAY_BE_ITSELF: Final = frozenset(["astype", "broadcast_to", "clip", "conj", "sum_to", "to"])
"""Methods that may return the tensor whose they are: that must be a read of its own, as a tape can be asked for it."""


@in_place_of_python
def _read_attribute(self: Variable, name: str) -> Any:
    """Tensor methods (`v.sum()`, `v.T`) apply to the value."""
    if name in equivalents.of_variables():
        words = f"a variable has no attribute {name!r}: {equivalents.of_variables()[name]}"
        raise AttributeError(words, name=name, obj=self)
    if name.startswith("_") or not hasattr(Tensor, name):
        hint = f": {hints.with_form(equivalents.of_tensors()[name])}" if name in equivalents.of_tensors() else ""
        raise AttributeError(f"a variable has no attribute {name!r}{hint}", name=name, obj=self)
    return getattr(self.read_value() if name in _MAY_BE_ITSELF else read_operand(self), name)


Variable.__getattr__ = _read_attribute  # type: ignore[method-assign]
read_as_operand(Variable)
