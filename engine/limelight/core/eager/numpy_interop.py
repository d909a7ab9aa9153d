"""Tensors given to other libraries.

NumPy's ufuncs are limelight's own ops; its functions take tensors as any array-like, or else raise an error; DLPack
hands out copies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import backends, dispatch
from limelight.core.eager.entry_points import structured
from limelight.core.tensor import Tensor, method
from limelight.errors import DTypeError, LimelightError, LostGradientWarning, SymbolicValueError, is_user_error
from limelight.user_code import hints
from limelight.user_code.warn_at import warn_here

KNOWS_DLPACK_1: Final = hasattr(np, "unstack")
"""From NumPy 2.1 on: versions, copies and devices in DLPack."""


_HIDE_ERRORS: Final = frozenset(["array_equal", "array_equiv"])
"""Functions that take what has no values for something unequal to all."""


@method("__array_function__")
def of_numpy(self: Tensor, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for `func(*args, **kwargs)`: `func` of the tensors' arrays, which are read-only.

    Raises DTypeError for a tensor of a trace, unless `func` asks for its shape only.

    A function that takes one whose gradient somebody will ask for cuts its path: that brings a warning.
    """
    if not is_symbolic(self, *_tensors((*args, *kwargs.values()))):
        result = func(*map(_as_arrays, args), **{name: _as_arrays(x) for name, x in kwargs.items()})
        watched = dispatch.active and any([dispatch.current().watches(x) for x in _tensors(args)])  # noqa: C419  # few
        if watched and _takes_numbers(func.__name__, result):
            warn_here(
                f"{_numpy_name(func)} takes the value of a tensor that is watched, and its gradient ends there; "
                f"{_advice(func, self, args)}",
                LostGradientWarning,
            )
        return result
    if func.__name__ in _HIDE_ERRORS:
        raise DTypeError(_refusal(func, self))
    try:
        return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]  # what would run without us
    except SymbolicValueError as error:  # NumPy's code asks for values, somewhere
        raise SymbolicValueError(_refusal(func, self, "needs the values of")) from error.__cause__
    except LimelightError:
        raise
    except Exception as error:
        if is_user_error(error) and not isinstance(error, AttributeError):  # of a tensor, which NumPy asks
            raise
        raise DTypeError(_refusal(func, self)) from error


def _takes_numbers(name: str, result: Any) -> bool:
    """Whether a result may have had a gradient: no shape, place or truth value has; None is of what fills an array."""
    if isinstance(result, (tuple, list)):
        return any(_takes_numbers(name, x) for x in result if x is not None)
    if result is None:
        return not name.startswith("save")
    return isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind not in "biuSU" and name[-5:] != "_like"


@method("__dlpack__")
def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The data for another library, whose `from_dlpack` calls this: a copy, which that library may write to.

    It stays on its device, unless `dl_device` is the host. With `copy=False` the memory is shared, on the host marked
    as read-only for libraries that understand the mark (`max_version` of 1 at least). PyTorch takes the mark without
    heeding it, so a tensor is not lent unless it is asked for.
    """
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
    to_host = dl_device is not None and tuple(map(int, dl_device)) == (_HOST, 0)
    if self._device.backend != "numpy" and not to_host:
        return _dlpack_elsewhere(self, options, copy)
    if self._device.backend != "numpy":
        if copy is False:
            raise BufferError(f"the tensor is on {self._device.short}: on the host there can only be a copy")
        data, options = np.array(self.numpy()), options | {"stream": None}
    elif copy is not False:
        data = np.array(self._data)
    elif max_version is not None and max_version[0] >= 1 and KNOWS_DLPACK_1:
        data = self.numpy()
    else:
        data = np.asarray(self._data)
    return data.__dlpack__(**options) if KNOWS_DLPACK_1 else data.__dlpack__(stream=stream)


_HOST: Final = 1
"""The host's memory, in the terms of DLPack."""


def _dlpack_elsewhere(tensor: Tensor, options: dict[str, Any], copy: bool | None) -> Any:
    """The same for a tensor on another device, where it stays; libraries differ in which options they know."""
    data = tensor._data if copy is False else backends.load(tensor._device.backend).copy(tensor._data)
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return data.__dlpack__(**given)
    except TypeError:  # CuPy before 14 knows none but the stream
        return data.__dlpack__(stream=options["stream"])


@method("__dlpack_device__")
def dlpack_device(self: Tensor) -> tuple[int, int]:
    """What kind of device the data is on, and its number, in the terms of DLPack."""
    holder = self.numpy() if self._device.backend == "numpy" else self._data
    device: tuple[int, int] = holder.__dlpack_device__()
    return device


_LIMELIGHT_NAMES: Final = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj", "fabs": "abs", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "power": "pow", "right_shift": "bitwise_right_shift", "rint": "round",
    "concatenate": "concat", "amax": "max", "amin": "min",
}  # fmt: skip
"""NumPy's names of what has another one in the Array API."""


@method("__array_ufunc__")
def of_ufunc(self: Tensor, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
    """A ufunc of NumPy on tensors: limelight's op of that name, with a gradient, staged while tracing.

    So is `ndarray + tensor`. Raises DTypeError for a ufunc without such an op, for its methods, and with `out=`.
    """
    ours = getattr(sys.modules["limelight"], _limelight_name(ufunc), None)
    if how != "__call__" or ours is None:
        name = f"np.{ufunc.__name__}" + ("" if how == "__call__" else f".{how}")
        if is_symbolic(self, *inputs):
            raise DTypeError(f"{name} does not take tensors: write {_py_func_advice(name)}")
        raise DTypeError(f"{name} does not take tensors: write {name}(x.numpy()), which has no gradient")
    if options and is_symbolic(self, *inputs):
        raise DTypeError(
            f"np.{ufunc.__name__} of tensors does not take {', '.join(options)}=: write ll.{ours.__name__} without it"
        )
    if options:
        raise DTypeError(
            f"np.{ufunc.__name__} of tensors does not take {', '.join(options)}=: write the op without it, or give "
            "NumPy x.numpy() (as in `array += x.numpy()`), which has no gradient"
        )
    return ours(*inputs)


def _limelight_name(func: Any) -> str:
    name: str = func.__name__
    return _LIMELIGHT_NAMES.get(name, name)


def _numpy_name(func: Any) -> str:
    home = getattr(func, "__module__", None) or "np"
    return f"{home.replace('numpy', 'np', 1)}.{func.__name__}"


def is_symbolic(*xs: Any) -> bool:
    """Whether one of them is a tensor of a trace, or one example's of a batch, which have no value."""
    symbolic = sys.modules["limelight.staging.symbolic"].SymbolicTensor  # which is built upon this
    return any(isinstance(x, (symbolic, _one_examples())) or type(x) in structured for x in xs)


def _one_examples() -> type[Tensor]:
    handle: type[Tensor] = sys.modules["limelight.batching.batched_tensor"].Batched
    return handle


def _py_func_advice(name: str) -> str:
    return f"ll.py_func({name}, [x], output_specs), which runs it at each call and has no gradient"


def _advice(func: Any, x: Any, args: Sequence[Any] = ()) -> str:
    """What to write instead of a function of NumPy on `x`, or on these arguments."""
    name, ours = _numpy_name(func), _ours(func)
    if is_symbolic(x):
        return ours or f"write {_py_func_advice(name)}"
    form = ours.partition(" (")[0]
    either = f"{form}, or" if form.startswith("write ") else "write"
    return f"{either} {name}({_as_numbers(args)}), which has no gradient"


def _as_numbers(args: Sequence[Any]) -> str:
    """Arguments of NumPy's as they are written where numbers are meant: "x.numpy(), y.numpy()"."""
    names = iter("xyzuvwab")  # four arguments, of lists two items

    def written(given: Any) -> str:
        if isinstance(given, (list, tuple)) and given:
            return f"[{', '.join(map(written, given[:2]))}{', ...' if len(given) > 2 else ''}]"
        if isinstance(given, Tensor) or hasattr(given, "__as_tensor__"):
            return f"{next(names)}.numpy()"
        return repr(given) if isinstance(given, (int, float, str)) else "..."

    return ", ".join(map(written, args[:4])) or "x.numpy()"


def _ours(func: Any) -> str:
    """What does the work of a function of NumPy's, as "write ll.max(x)"; "" where nothing does."""
    part, _, name = _numpy_name(func).removeprefix("np.").rpartition(".")
    namespace: Any = vars(sys.modules["limelight"]).get(part) if part else sys.modules["limelight"]
    ours = _LIMELIGHT_NAMES.get(name, name)
    if namespace is not None and ours in dir(namespace):
        return f"write {hints.form_of(f'{part}.{ours}' if part else ours)}"
    hint = "" if part else hints.suggested(name, part).lstrip(";: ")
    return "" if hint.startswith("there is none") else hint


def _refusal(func: Callable[..., Any], x: Any, what: str = "does not take tensors") -> str:
    if what.startswith("needs"):
        batched = isinstance(x, _one_examples())
        what += " one example's tensor" if batched else " a symbolic tensor, which has none while it is traced"
        what += ", which are different for each" if batched else ""
    return f"{_numpy_name(func)} {what}: {_advice(func, x)}"


def _as_arrays(given: Any) -> Any:
    """Tensors and variables as arrays, in lists too: NumPy's functions call methods, whose arguments differ in ours."""
    if isinstance(given, Tensor) or hasattr(given, "__as_tensor__"):
        return np.asarray(given)
    if type(given) in (list, tuple):
        return type(given)([_as_arrays(x) for x in given])
    return given


def _tensors(args: Any) -> list[Tensor]:
    """The tensors among arguments, and in lists among them."""
    inside = [x for arg in args if isinstance(arg, (list, tuple)) for x in arg]
    return [x for x in (*args, *inside) if isinstance(x, Tensor)]
