"""What stands for an array of NumPy's while a cell is traced, so that arithmetic of arrays alone gives arrays.

In a plain cell `a * 2`, `a.sum()` and `np.exp(a)` of an array are NumPy's, and give arrays of NumPy's dtypes; with a
tensor in them they are limelight's. A stand-in is a symbolic tensor that does the same: its operators and methods give
stand-ins as long as no tensor takes part, of the dtype that NumPy itself says for operands of these types and shapes.
What the cell leaves of them in the notebook is an array after each run (`recipes.ArrayResult`).
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

import limelight as ll
from limelight.autograph.python_numbers import MixedNumber, SymbolicNumber, refusal
from limelight.core.dispatch import apply
from limelight.core.eager.numpy_interop import of_numpy, of_ufunc
from limelight.core.op import get
from limelight.core.tensor import Tensor, array_stand_ins, new_uid
from limelight.errors import DTypeError
from limelight.staging.symbolic import SymbolicTensor, set_class
from limelight.user_code import operand_text, source_line
from limelight_kernel.staged import array_memory

_PLAIN: Final = (
    *(bool, int, float, complex, np.ndarray, np.generic),
    *(str, type(None), type(Ellipsis), slice, range, type, np.dtype),
)
_ARITHMETIC: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_BY_ELEMENTS: Final = frozenset([
    *[f"__{side}{name}__" for name in _ARITHMETIC for side in ("", "r")],
    *[f"__{name}__" for name in ("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge")],
])  # fmt: skip
_METHODS: Final = (
    *("__matmul__", "__rmatmul__", "__divmod__", "__rdivmod__", "all", "any", "argmax", "argmin", "argsort"),
    *("clip", "cumprod", "cumsum", "max", "mean", "min", "prod", "ravel", "round", "std", "sum", "var"),
)
_CASTS: Final = {
    **dict.fromkeys(("sum", "prod", "cumsum", "cumprod"), "always"),
    **dict.fromkeys(("mean", "std", "var"), "to floats"),
    **dict.fromkeys(_BY_ELEMENTS, "to floats"),
}
"""What computes in the dtype of its result, rather than in that of its operands."""

_LIKE_OURS: Final = {
    **{name: name for name in ("stack", "where", "expand_dims", "flip", "roll", "tile", "repeat", "broadcast_to")},
    "concatenate": "concat",
    "squeeze": "squeeze",
    "reshape": "reshape",
    "clip": "clip",
    "outer": "outer",
}
"""Functions of NumPy's that are no ufuncs, and the ops that take the same."""


_SINGLE_DISPATCH: Final = functools.singledispatch.__code__.co_filename
"""Of Python's own, and asks for the class of what the user's functions are for."""


class _OfItsKind:
    """What code of the user's gets for `x.__class__`, which `isinstance` and patterns ask as well: NumPy's class."""

    __slots__ = ()

    def _kind(self: Any) -> Any:
        asking = sys._getframe(1).f_code  # code of NumPy's, or of the library, must not take it for an array
        file = asking.co_filename
        if file == _SINGLE_DISPATCH:
            return type(self.meant)
        own = source_line.is_library_file(file) or source_line.is_installed(file) or source_line.is_numpys(asking)
        return type(self) if own else type(self.meant)

    __class__: Any = property(_kind)


class SymbolicArray(_OfItsKind, SymbolicTensor):
    """Stands for an array of NumPy's, or for what is computed of such alone."""

    __slots__ = ()

    @property
    def number_type(self) -> Any:
        """The type of NumPy's numbers that this stands for; None for an array with axes."""
        return self.dtype.type if self.shape == () else None

    @property
    def meant(self) -> Any:
        """What NumPy has where this stands: a number of its type, or an array, here without elements."""
        is_number = self.shape == () and self._value.node is not None
        return self.dtype.type() if is_number else np.empty((0,) * max(1, self.ndim), self.dtype)

    def _as_own(self) -> Tensor:
        """This as a tensor, as `ll.constant` makes one of an array."""
        self._uid = self._uid or new_uid()
        tensor = object.__new__(SymbolicTensor)
        for name in ("_tracer", "_value", "_uid", "_device"):
            setattr(tensor, name, getattr(self, name))
        return tensor

    @property
    def T(self) -> Any:
        """Transposed, as NumPy does with any number of axes."""
        return self.transpose()

    def copy(self, order: str = "C") -> Any:
        """Another array of the same numbers."""
        return _as_array(apply(get("identity"), (self._as_own(),)))

    def astype(self, *types: Any, copy: bool = True, **options: Any) -> Any:
        """As NumPy's: another array, or with `copy=False` the array itself where it is of that dtype."""
        dtype = types[0] if types else options.pop("dtype")
        return self if not copy and np.dtype(dtype) == self.dtype else _converted(self, dtype)

    def conj(self) -> Any:
        """As NumPy's: the array itself, where it is real."""
        return self if self.dtype.kind != "c" else _conjugate(self)

    def flatten(self, order: str = "C") -> Any:
        """A copy of one axis."""
        return self.copy().reshape(-1)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """As NumPy's, which takes sizes one by one as well; `order` may be "C"."""
        if options.get("order") == "C":
            del options["order"]
        return _reshaped(self, *_as_one(shape), **options)

    def transpose(self, *axes: Any) -> Any:
        """As NumPy's, which takes axes one by one as well."""
        return _transposed(self, *_as_one(axes))

    def squeeze(self, axis: Any = None) -> Any:
        """Without axes of size 1; the array itself where there are none."""
        return self if axis is None and 1 not in self.shape else _squeezed(self, axis)

    def dot(self, other: Any) -> Any:
        """What `np.dot` does, of arrays with at most two axes."""
        return self @ other if self.ndim and np.ndim(other) else self * other

    def __getitem__(self, key: Any) -> Any:
        return _as_array(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Changes the array, which takes the value in its own dtype, as NumPy does."""
        array_memory.check_assignment(self)
        new: Any = ll.index_update(self._as_own(), key, _in_dtype(value, self.dtype))
        array_memory.change(self, new)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __array_ufunc__(self, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options and how == "__call__" and _of_arrays_alone(inputs):
            raise _refusal_of_out(ufunc)
        ours = functools.partial(of_ufunc, self, ufunc, how)
        if how != "__call__" or options:
            return ours(*inputs, **options)
        return _as_numpy_says(ufunc, ours, inputs, {}, "to floats", by_elements=ufunc.signature is None)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = _LIKE_OURS.get(func.__name__)
        made = _MADE_OF_OTHERS.get(func.__name__)
        if made is not None and _of_arrays_alone((*args, *kwargs.values())):
            return made(*args, **kwargs)
        if name is not None and _of_arrays_alone((*args, *kwargs.values())):
            return _as_numpy_says(func, getattr(ll, name), args, kwargs)

        def ours(*args: Any, **kwargs: Any) -> Any:
            return of_numpy(self, func, types, args, kwargs)

        return _as_numpy_says(func, ours, args, kwargs, _CASTS.get(func.__name__, ""))


array_stand_ins.append(SymbolicArray)


def _in_dtype(value: Any, dtype: Any) -> Any:
    """What an array of this dtype takes, in lists, too; of a tensor the number, which has no gradient."""
    if isinstance(value, list | tuple) and not _of_numbers_alone(value):
        return ll.stack([_in_dtype(x, dtype) for x in value])
    if isinstance(value, Tensor):
        return SymbolicTensor.astype(ll.stop_gradient(value), dtype)
    return np.asarray(value).astype(dtype)


def _of_numbers_alone(value: Any) -> bool:
    return not any(isinstance(x, Tensor) or (isinstance(x, list | tuple) and not _of_numbers_alone(x)) for x in value)


_refused_out: Final[weakref.WeakSet[DTypeError]] = weakref.WeakSet()


def is_refusal_of_out(error: Exception) -> bool:
    """Whether code was to change an array of NumPy's by numbers that a tensor stands for."""
    return isinstance(error, DTypeError) and error in _refused_out


def _refusal_of_out(ufunc: Any) -> DTypeError:
    """The error for `np.add(a, b, out=c)`, and for `c += b` of another array, where tensors stand for some."""
    anew = operand_text.without_augmentation()
    what = "an operator that changes an array" if anew else f"np.{ufunc.__name__} with out="
    instead = anew or operand_text.without_out() or f"c = np.{ufunc.__name__}(a, b)"
    error = DTypeError(
        f"{what} needs numbers, which this one gets of a tensor that a staged cell has in an array's place, and these "
        f"are there only when the graph runs; write `{instead}` for a new array, or put the line into a cell above"
    )
    _refused_out.add(error)
    return error


def stand_for_array(traced: Any) -> None:
    """Has a symbolic tensor be one that stands for an array."""
    if type(traced) is SymbolicTensor:
        set_class(traced, SymbolicArray)
    if isinstance(traced, SymbolicArray):
        array_memory.remember(traced)


def _as_array(x: Any) -> Any:
    stand_for_array(x)
    return x


def _of(name: str) -> Callable[..., Any]:
    """A method that does what NumPy's does."""
    tensors, arrays = getattr(SymbolicTensor, name), getattr(np.ndarray, name)

    @functools.wraps(tensors)
    def method(self: SymbolicArray, *args: Any, **kwargs: Any) -> Any:
        return _as_numpy_says(arrays, tensors, (self, *args), kwargs, _CASTS.get(name, ""), name in _BY_ELEMENTS)

    return method


def _as_numpy_says(
    numpy: Callable[..., Any],
    ours: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any],
    casts: str = "",
    by_elements: bool = False,
) -> Any:
    """What `ours` computes: as arrays of NumPy's dtypes where no tensor takes part, else as it is.

    Args:
        numpy: the function of NumPy's, which is asked for the dtype.
        ours: computes it for tensors.
        args: what it is given.
        kwargs: by name.
        casts: when it computes in the dtype of its result: "always", "to floats", or never.
        by_elements: whether sizes make no difference to the dtype.
    """
    if any(type(x) is MixedNumber for x in args):
        raise refusal("is a tensor in other runs, and meets an array of NumPy's", "ll.constant(array)")
    if not _of_arrays_alone((*args, *kwargs.values())):
        return ours(*args, **kwargs)
    try:
        said = numpy(*_samples(args, by_elements), **_samples(kwargs, by_elements))
    except Exception:  # noqa: BLE001  # ours raises its own, or can do what NumPy cannot
        return ours(*args, **kwargs)
    kind = said.dtype if isinstance(said, np.ndarray | np.generic) else None
    if kind is not None and (casts == "always" or (casts and kind.kind in "fc")):
        args = [_cast(x, kind, casts) for x in args]
    made = ours(*args, **kwargs)
    if isinstance(made, tuple | list) and isinstance(said, tuple | list) and len(made) == len(said):
        return type(said)([_like(x, one, args) for x, one in zip(made, said, strict=True)])
    return _like(made, said, args)


def _like(made: Any, said: Any, given: Any) -> Any:
    if not isinstance(made, SymbolicTensor) or not isinstance(said, np.ndarray | np.generic):
        return made
    right = made if made.dtype == said.dtype else SymbolicTensor.astype(made, said.dtype)
    if any(isinstance(x, SymbolicArray) and x._value is right._value for x in given):
        right = apply(get("identity"), (right._as_own(),))  # NumPy makes another array, as of `array.astype(...)`
    return _as_array(right)


def _cast(x: Any, kind: np.dtype[Any], casts: str) -> Any:
    """An operand of integers in the dtype of a result that has another kind, as NumPy casts it before it computes."""
    if not isinstance(x, SymbolicArray | SymbolicNumber | np.ndarray) or x.dtype == kind:
        return x
    if isinstance(x, SymbolicNumber):
        return x.astype(kind)
    if x.dtype.kind == kind.kind and casts != "always":
        return x
    return x.astype(kind) if isinstance(x, np.ndarray) else _as_array(SymbolicTensor.astype(x, kind))


def _of_arrays_alone(given: Any) -> bool:
    if isinstance(given, tuple | list):
        return all(map(_of_arrays_alone, given))
    return isinstance(given, (SymbolicArray, SymbolicNumber, *_PLAIN))


def _samples(given: Any, by_elements: bool) -> Any:
    """Arrays of ones of the dtypes, and where that matters of the shapes, of the stand-ins; they take no memory."""
    if isinstance(given, dict):
        return {name: _samples(x, by_elements) for name, x in given.items()}
    if isinstance(given, tuple | list):
        return type(given)([_samples(x, by_elements) for x in given])
    if by_elements and isinstance(given, np.ndarray):
        return np.ones((1,) * given.ndim, given.dtype)
    if isinstance(given, SymbolicNumber):
        return given.kind(1)
    if not isinstance(given, SymbolicArray):
        return given
    sizes = [1 if by_elements or size is None else size for size in given.shape]
    return np.broadcast_to(np.ones((), given.dtype), sizes)


def _view(name: str) -> Callable[..., Any]:
    """A method whose result shows the same memory, in NumPy."""
    tensors = getattr(SymbolicTensor, name)

    @functools.wraps(tensors)
    def method(self: SymbolicArray, *args: Any, **kwargs: Any) -> Any:
        made = tensors(self, *args, **kwargs)
        return _as_array(made._as_own() if made is self else made)

    return method


_converted, _conjugate = _of("astype"), _of("conj")
_squeezed, _reshaped, _transposed = _view("squeeze"), _view("reshape"), _view("transpose")


def _as_one(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several numbers as one argument, a tuple."""
    return (numbers,) if len(numbers) > 1 else numbers


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    if axis is not None:
        return np.concatenate((arr, values), axis=axis)
    return np.concatenate((_raveled(arr), _raveled(values)))


def _raveled(x: Any) -> Any:
    return x.reshape(-1) if isinstance(x, SymbolicArray) else np.ravel(x)


def _copied(a: Any, order: str = "K", subok: bool = False) -> Any:
    return a.copy()


def _filled(value: float) -> Callable[..., Any]:
    def like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
        sizes = a.shape if shape is None else shape
        return np.full(sizes, value, a.dtype if dtype is None else dtype)

    return like


_MADE_OF_OTHERS: Final[dict[str, Callable[..., Any]]] = {
    "append": _append,
    "copy": _copied,
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "empty_like": _filled(0),
}
"""Functions of NumPy's of which others are made, as NumPy makes them."""


def _in_place(name: str) -> Callable[..., Any]:
    """A method for `x += y` and the like, which NumPy does in the memory of `x`."""
    ufunc = getattr(np, _UFUNCS.get(name, name))

    def method(self: SymbolicArray, other: Any) -> Any:
        if not array_memory.may_change(self):
            return NotImplemented  # then `x + y` is bound to the name
        if isinstance(other, Tensor) and not isinstance(other, SymbolicArray | SymbolicNumber | MixedNumber):
            return of_ufunc(other, ufunc, "__call__", self, other, out=(self,))  # which refuses, as in a plain cell
        new = getattr(self, f"__{name}__")(other)
        if new is NotImplemented:
            return new
        fits = None in new.shape or None in self.shape or new.shape == self.shape
        array_memory.refuse_cast(self, new, fits and np.can_cast(new.dtype, self.dtype, "same_kind"))
        cast: Any = new if new.dtype == self.dtype else SymbolicTensor.astype(new, self.dtype)
        array_memory.change(self, cast)
        return self

    method.__name__ = f"__i{name}__"
    return method


_UFUNCS: Final = {
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}

for _name in (*_BY_ELEMENTS, *[name for name in _METHODS if name != "ravel"]):
    setattr(SymbolicArray, _name, _of(_name))
SymbolicArray.ravel = _view("ravel")  # type: ignore[method-assign]
for _name in _ARITHMETIC:
    setattr(SymbolicArray, f"__i{_name}__", _in_place(_name))
