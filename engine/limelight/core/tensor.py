"""Tensors: immutable handles to an array on a device.

A handle has three slots: `_data`, the array of its device's library; `_device`; and `_uid`, 0 until a tape looks at the
tensor, then a number that is never used again. Tapes and traces know tensors by it, never by `id()`, which Python hands
out again, and so they hold no tensor that no rule needs.

`_data` of a tensor without axes may be a NumPy scalar: NumPy's ufuncs return scalars, they are immutable, and wrapping
them in arrays again would cost as much as the op.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from limelight.core import backends, device_copies, device_scopes, dispatch, dtypes, op, shapes
from limelight.core.array_conversion import as_array, elements, has_own_dtype
from limelight.core.devices import CPU0, Device
from limelight.core.dispatch import active, local, scopes
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.shapes import Shape
from limelight.core.spec import ObjectSpec, TensorSpec, known
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.user_code import equivalents, hints
from limelight.user_code.implicit_conversion import warn_if_number_taken, warn_of_array_taken

TensorLike: TypeAlias = "Tensor | complex | bool | Sequence[Any] | np.ndarray[Any, Any] | np.generic | Any"
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the Python Array API that the namespace follows; each one contains those before it."""
F = TypeVar("F", bound=Callable[..., Any])


class _TensorType(type):
    """The type of tensors' classes: it lists what they have, without hints and without methods of gradient rules."""

    def __dir__(cls) -> list[str]:
        return _listed(type.__dir__(cls))


def _listed(names: Iterable[str]) -> list[str]:
    hidden = {name for name, value in vars(Tensor).items() if isinstance(value, hints.Elsewhere)}
    return [name for name in names if name not in hidden and (name[0] != "_" or name[:2] == "__")]


_ONE_TRUTH: Final = (
    "`if`, `and`, `or`, `not` and `in` ask for it: write ll.all(x) or ll.any(x), and element by element a & b, a | b, "
    "~a, ll.where(a, x, y); for Python's max, min and sorted ll.max(x), ll.min(x) and ll.sort(x)"
)
"""Few write `bool(x)`: it is `if x > 0:`, or `a > 0 and b > 0`."""


class Tensor(metaclass=_TensorType):
    """An immutable, multi-dimensional, typed array that lives on a device.

    Made by `ll.constant`, by ops, and by reading variables; calling the class raises ArgumentError. Operators, indexing
    and the methods of the Python Array API work as on NumPy arrays; `==` compares element by element, so tensors are
    not hashable: use `t.ref()` as a key.

    >>> import limelight as ll
    >>> x = ll.constant([[1.0, 2.0]])
    >>> (x * 3).shape, x.dtype.name, x.device.short
    ((1, 2), 'float32', 'CPU:0')
    """

    __slots__ = ("__dict__", "__weakref__", "_data", "_device", "_uid")  # users may attach what they like
    __limelight_leaf__ = True
    _data: Any
    _device: Device
    _uid: int

    def __init__(self, *args: object) -> None:
        raise ArgumentError("tensors are made by ll.constant(value, dtype=None), not by calling ll.Tensor")

    # What a tensor is

    @property
    def dtype(self) -> DType:
        dtype: DType = self._data.dtype
        return dtype

    @property
    def shape(self) -> Shape:
        """The sizes; a size that is unknown while tracing is None."""
        shape: Shape = self._data.shape
        return shape

    @property
    def ndim(self) -> int:
        ndim: int = self._data.ndim
        return ndim

    @property
    def size(self) -> int | None:
        """The number of elements; None while a size is unknown."""
        return shapes.size(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return int(self._data.nbytes)

    @property
    def device(self) -> Device:
        """Where the data is; prints as "/job:localhost/task:0/device:CPU:0"."""
        return self._device

    @property
    def spec(self) -> TensorSpec:
        return known(self.shape, self.dtype)

    def _as_own(self) -> Tensor:
        """Itself; what stands for another library's array is a tensor of its own once it is made into one."""
        return self

    def sizes(self) -> Any:
        """The shape as something to compute with: a tuple of ints, or while tracing unknown sizes a symbolic vector."""
        return self._data.shape

    def ref(self) -> TensorRef:
        """A hashable key that stands for this very tensor."""
        return TensorRef(self)

    # Its value, for Python

    def numpy(self) -> np.ndarray[Any, Any]:
        """The data as a read-only NumPy array (a view on a CPU device, a copy from any other)."""
        if self._device is CPU0 and not dispatch.active:  # as `_read`, in two thirds of the time
            return backends.read_only(np.asarray(self._data))
        return self._read(device_copies.READ)

    def _read(self, cause: str) -> np.ndarray[Any, Any]:
        """`numpy()`, for a cause by which the copy from another device is known."""
        if dispatch.active:
            dispatch.current().value_left(self)
        if self._device is CPU0:
            return backends.read_only(np.asarray(self._data))
        return backends.read_only(device_copies.on_host(self._data, self._device, cause))

    def _shown(self) -> np.ndarray[Any, Any]:
        """`numpy()` for a text: nothing is computed from that, so nobody is told that a value has left."""
        return device_copies.on_host(self._data, self._device, device_copies.PRINTED)

    def item(self) -> Any:
        """The only element, as a Python scalar."""
        return self._only_element("item()", device_copies.READ).item()

    def tolist(self) -> Any:
        """The data as nested Python lists."""
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False and dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(f"a {self.dtype} tensor cannot be seen as {np.dtype(dtype)} without a copy")
        if dispatch.active and dispatch.current().watches(self):
            warn_of_array_taken(self.spec)
        array = self._read("conversion to a NumPy array")
        return np.array(array, dtype=dtype) if copy or (dtype is not None and np.dtype(dtype) != array.dtype) else array

    def __dir__(self) -> list[str]:
        return _listed(object.__dir__(self))

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __reduce__(self) -> Any:
        return (_restored, (self.numpy(), self._device))

    def __bool__(self) -> bool:
        return bool(self._only_element("bool()"))

    def __int__(self) -> int:
        return int(self._only_element("int()"))

    def __float__(self) -> float:
        if dispatch.active and dispatch.current().watches(self):
            warn_if_number_taken(self.spec)
        return float(self._only_element("float()"))

    def __complex__(self) -> complex:
        return complex(self._only_element("complex()"))

    def __index__(self) -> int:
        if self.ndim or dtypes.kind(self.dtype) != "integer":
            raise DTypeError(f"only a scalar integer tensor can be an index, this one is {self.spec}")
        return int(self._read("use as a Python index"))

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeError("len() of a scalar tensor: it has no axes")
        if self.shape[0] is None:
            raise ShapeError("len() of a tensor whose first size is unknown while tracing; use ll.shape_of(x)[0]")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise DTypeError("iteration over a scalar tensor: it has no axes")
        if self.shape[0] is None:
            raise ShapeError(
                f"iteration over {self.spec}, whose first size is unknown while tracing: Python's `for` would have to "
                "know it; write ll.map_fn or ll.scan, or stage with autograph=True, which makes the loop a part of the "
                "graph"
            )
        return (self[i] for i in range(len(self)))

    def __format__(self, form: str) -> str:
        if self.size != 1 and form:
            self._only_element("format()")
        return format(self._shown().item(), form) if form else str(self)

    def __repr__(self) -> str:
        value = np.array2string(self._shown(), separator=", ")
        where = "" if self._device is CPU0 else f", device={self._device.short}"
        head = "ll.Tensor(\n" if self.ndim > 1 else "ll.Tensor("
        return f"{head}{value}, shape={shapes.show(self.shape)}, dtype={self.dtype.name}{where})"

    def __hash__(self) -> int:
        raise DTypeError("tensors compare element by element and so are not hashable; use t.ref() as a key")

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace of the functions for tensors, `limelight` itself, in the Array API's version asked for.

        Raises ArgumentError for a version that it does not implement.
        """
        if api_version not in (None, *API_VERSIONS):
            known_ones = ", ".join(API_VERSIONS)
            raise ArgumentError(f"version {api_version!r} of the Array API is not implemented, but {known_ones} are")
        return sys.modules[
            "limelight"
        ]  # the facade, which nothing here may import; it exists by the time a tensor does

    def _only_element(self, what: str, cause: str = "") -> np.ndarray[Any, Any]:
        if self.size != 1:
            hint = _ONE_TRUTH if what == "bool()" else "reduce or index it first"
            raise ShapeError(f"{what} needs one element, this one is {self.spec}; {hint}")
        return self._read(cause or what).reshape(())

    # Operators and methods: each op family attaches its own (see `method`); these are their types.

    if TYPE_CHECKING:

        def __add__(self, other: TensorLike, /) -> Tensor: ...
        def __radd__(self, other: TensorLike, /) -> Tensor: ...
        def __sub__(self, other: TensorLike, /) -> Tensor: ...
        def __rsub__(self, other: TensorLike, /) -> Tensor: ...
        def __mul__(self, other: TensorLike, /) -> Tensor: ...
        def __rmul__(self, other: TensorLike, /) -> Tensor: ...
        def __truediv__(self, other: TensorLike, /) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike, /) -> Tensor: ...
        def __floordiv__(self, other: TensorLike, /) -> Tensor: ...
        def __rfloordiv__(self, other: TensorLike, /) -> Tensor: ...
        def __mod__(self, other: TensorLike, /) -> Tensor: ...
        def __rmod__(self, other: TensorLike, /) -> Tensor: ...
        def __divmod__(self, other: TensorLike, /) -> tuple[Tensor, Tensor]: ...
        def __rdivmod__(self, other: TensorLike, /) -> tuple[Tensor, Tensor]: ...
        def __round__(self, ndigits: int | None = None) -> Tensor: ...
        def __pow__(self, other: TensorLike, /) -> Tensor: ...
        def __rpow__(self, other: TensorLike, /) -> Tensor: ...
        def __matmul__(self, other: TensorLike, /) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike, /) -> Tensor: ...
        def __and__(self, other: TensorLike, /) -> Tensor: ...
        def __rand__(self, other: TensorLike, /) -> Tensor: ...
        def __or__(self, other: TensorLike, /) -> Tensor: ...
        def __ror__(self, other: TensorLike, /) -> Tensor: ...
        def __xor__(self, other: TensorLike, /) -> Tensor: ...
        def __rxor__(self, other: TensorLike, /) -> Tensor: ...
        def __lshift__(self, other: TensorLike, /) -> Tensor: ...
        def __rlshift__(self, other: TensorLike, /) -> Tensor: ...
        def __rshift__(self, other: TensorLike, /) -> Tensor: ...
        def __rrshift__(self, other: TensorLike, /) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __lt__(self, other: TensorLike, /) -> Tensor: ...
        def __le__(self, other: TensorLike, /) -> Tensor: ...
        def __gt__(self, other: TensorLike, /) -> Tensor: ...
        def __ge__(self, other: TensorLike, /) -> Tensor: ...
        def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]  # elementwise, as in NumPy
        def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]  # elementwise, as in NumPy
        def __getitem__(self, key: Any, /) -> Tensor: ...
        def __setitem__(self, key: Any, value: Any, /) -> None: ...
        def __delitem__(self, key: Any, /) -> None: ...
        @property
        def T(self) -> Tensor: ...
        @property
        def mT(self) -> Tensor: ...
        @property
        def at(self) -> Any: ...
        def astype(self, dtype: DTypeLike, /, *, copy: bool = True, device: str | Device | None = None) -> Tensor: ...
        def to_device(self, device: str | Device, /, *, stream: Any = None) -> Tensor: ...
        def to(self, device: str | Device, /) -> Tensor: ...
        def cpu(self) -> Tensor: ...
        def gpu(self, index: int = 0) -> Tensor: ...
        def sum(self, axis: Any = None, keepdims: bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def max(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def min(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def prod(self, axis: Any = None, keepdims: bool = False, *, dtype: DTypeLike | None = None) -> Tensor: ...
        def cumsum(self, axis: int | None = None, *, reverse: bool = False, exclusive: bool = False) -> Tensor: ...
        def cumprod(self, axis: int | None = None, *, reverse: bool = False, exclusive: bool = False) -> Tensor: ...
        def var(self, axis: Any = None, keepdims: bool = False, *, correction: float = 0.0) -> Tensor: ...
        def std(self, axis: Any = None, keepdims: bool = False, *, correction: float = 0.0) -> Tensor: ...
        def any(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def all(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
        def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
        def sort(self, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor: ...
        def argsort(self, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor: ...
        def abs(self) -> Tensor: ...
        def round(self) -> Tensor: ...
        def clip(self, min: Any = None, max: Any = None) -> Tensor: ...
        def ravel(self) -> Tensor: ...
        def reshape(self, shape: Any, /, *more: Any) -> Tensor: ...
        def transpose(self, axes: Sequence[int] | int | None = None, *more: int) -> Tensor: ...
        def take_along_axis(self, indices: Tensor, /, *, axis: int = -1) -> Tensor: ...
        def broadcast_to(self, shape: Any, /) -> Tensor: ...
        def sum_to(self, shape: Any, /) -> Tensor: ...
        def expand_dims(self, axis: int | Sequence[int]) -> Tensor: ...
        def squeeze(self, axis: int | Sequence[int] | None = None) -> Tensor: ...
        def exp(self) -> Tensor: ...
        def log(self) -> Tensor: ...
        def sqrt(self) -> Tensor: ...
        def square(self) -> Tensor: ...
        def tanh(self) -> Tensor: ...
        def sin(self) -> Tensor: ...
        def cos(self) -> Tensor: ...
        def sigmoid(self) -> Tensor: ...
        def lgamma(self) -> Tensor: ...
        def digamma(self) -> Tensor: ...
        def polygamma(self, n: int) -> Tensor: ...
        def _gamma_tail(self, t: TensorLike, /) -> Tensor: ...
        def sign(self) -> Tensor: ...
        def conj(self) -> Tensor: ...
        def where(self, x: TensorLike, y: TensorLike) -> Tensor: ...
        def __getattr__(self, name: str) -> Any: ...


for _name, _hint in equivalents.of_tensors().items():
    _kind = hints.NotToSet if _name in ("data", "requires_grad", "value") else hints.Elsewhere
    setattr(Tensor, _name, _kind(_name, _hint))


class Opaque:
    """A handle to a Python value that ops of a graph pass to each other; it has no dtype and never a gradient."""

    __slots__ = ("_data", "_device", "_uid", "dtype", "shape", "spec")

    def __init__(self, data: Any, device: Device) -> None:
        self._data = data
        self._device = device
        self._uid = 0
        self.dtype = None
        self.shape = ()
        self.spec = ObjectSpec(type(data).__name__)


class TensorRef:
    """A hashable stand-in for one tensor; equal to another one only when both stand for the same tensor."""

    __slots__ = ("__weakref__", "_tensor")

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def deref(self) -> Any:
        """The tensor (or variable) itself."""
        return self._tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorRef) and other._tensor is self._tensor

    def __hash__(self) -> int:
        return id(self._tensor)


_new = object.__new__
array_stand_ins: Final[list[Any]] = []
"""The class whose instances stand for NumPy's arrays in cells, once a package above has registered it.

They may change in place: who keeps any keeps `own` of them.
"""
new_uid = itertools.count(1).__next__
"""A number for a tensor or variable that a tape or a trace looks at; never used twice."""


def own(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands as they are now, whatever is changed in place later."""
    return tuple([x._as_own() if isinstance(x, Tensor) else x for x in inputs])


def wrap(data: Any, device: Device = CPU0) -> Tensor:
    """A tensor around `data`, which must be an array of the device's backend that nobody else will write to."""
    tensor = _new(Tensor)
    tensor._data = data
    tensor._device = device
    tensor._uid = 0
    return tensor


def method(*names: str) -> Callable[[F], F]:
    """Attaches a public function to Tensor under `names`; its first argument is the tensor."""

    def attach(function: F) -> F:
        for name in names:
            setattr(Tensor, name, function)
        return function

    return attach


_QUICK: Final[dict[type, DType]] = {float: dtypes.float32, bool: dtypes.bool_}


def constant(value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor with `value`, copied, on the device asked for by the scope around this line, else CPU:0.

    `value`: a Python number, a NumPy array or number, a tensor, or nested lists of these. Python floats become float32
    and ints int32 (int64 beyond 32 bits), unless something of a dtype is in the list with them; all else keeps its
    dtype. Raises DTypeError when `dtype` cannot hold the values without loss of kind or range, or values of different
    kinds meet in a list; ShapeError for ragged lists.

    >>> import limelight as ll
    >>> ll.constant([[1, 2], [3, 4]], dtype="float32")
    ll.Tensor(
    [[1., 2.],
     [3., 4.]], shape=(2, 2), dtype=float32)
    """
    if dtype is None and (not active or (not scopes and local.observer is not None)):
        quick = _QUICK.get(type(value))
        if quick is not None:
            return wrap(np.array(value, quick))
        if type(value) is np.ndarray and id(value.dtype) in dtypes.BY_ID:
            return wrap(np.array(value))
    if isinstance(value, Tensor):
        return value._as_own() if dtype is None or dtypes.dtype(dtype) == value.dtype else value.astype(dtype)
    if hasattr(value, "__as_tensor__"):
        return constant(value.__as_tensor__(), dtype)
    if isinstance(value, (list, tuple)) and (inside := elements(value)).has_tensors:
        return _stacked(value, inside.dtype if dtype is None else dtypes.dtype(dtype))
    array = as_array(value, dtype)
    if not active:
        return wrap(array)
    tensor: Tensor = dispatch.current().constant(array, device_scopes.requested_device())
    return tensor


def _stacked(parts: Sequence[Any], dtype: DType | None) -> Tensor:
    """A list that holds tensors, as the op that joins them, through which gradients flow."""
    tensor: Tensor = dispatch.apply(op.get("stack"), tuple([constant(x, dtype) for x in parts]), (0,))
    return tensor


def beside(value: TensorLike, dtype: DType) -> Tensor:
    """`value` as a tensor: of its own dtype where it has one, of `dtype` where it is made of Python's numbers."""
    return as_tensor(value) if has_own_dtype(value) else constant(value, dtype)


def put(array: np.ndarray[Any, Any], device: Device) -> Tensor:
    """A tensor on `device` from a NumPy array that nobody else holds."""
    if device is CPU0:
        return wrap(array)
    return wrap(device_copies.from_host(array, device), device)


def _restored(array: np.ndarray[Any, Any], device: Device) -> Tensor:
    return put(np.array(array), device)  # a copy: the array may lie in a buffer of whoever unpickles


def as_tensor(value: TensorLike) -> Tensor:
    """`value` as a tensor: itself, a variable's value now, or a constant."""
    if type(value) is Tensor:
        return value
    return value._as_own() if isinstance(value, Tensor) else constant(value)


def as_tensors(values: Sequence[TensorLike]) -> list[Tensor]:
    """Tensors that are to meet: Python's numbers, and lists of them, take on the others' dtype, if they fit it."""
    tensors = [x for x in values if type(x) is Tensor]
    if len(tensors) == len(values):
        return tensors
    try:
        dtype = elements(tuple(values)).dtype
    except DTypeError:  # whoever brings them together says so in words of its own
        dtype = None
    return [x if isinstance(x, Tensor) else as_tensor(x) if dtype is None else beside(x, dtype) for x in values]
