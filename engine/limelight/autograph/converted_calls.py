"""Calls from converted code: functions of the user's are converted as they are called, the rest runs as it is."""

from __future__ import annotations

import builtins
import copy
import functools
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, Final

from limelight.autograph import iterables, mutation_guards, number_builtins
from limelight.autograph.context import FunctionScope, here
from limelight.autograph.function_source import UnconvertibleError
from limelight.autograph.local_containers import links, made, passing
from limelight.autograph.logical_operators import all_, any_, decides
from limelight.autograph.python_numbers import (
    MixedNumber,
    SymbolicNumber,
    as_number,
    dtypes_of,
    picked,
    tells,
    without_number,
)
from limelight.autograph.transpiler import MARK, converted
from limelight.core import nest
from limelight.core.dispatch import apply
from limelight.core.eager.operands import prepare
from limelight.core.op import get
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource
from limelight.errors import ControlFlowError
from limelight.staging.function import Function
from limelight.user_code import source_line
from limelight.user_code.tracebacks import in_place_of_python

_HIGHER: Final = (builtins.map, builtins.filter, builtins.sorted, builtins.min, builtins.max, functools.reduce)
"""Builtins that call functions that they are given."""

_AS_GIVEN: Final = frozenset({"function", "py_func", "custom_gradient", "recompute_grad", "print_"})
"""Functions of ours that look at a function's identity, or run it on values."""


@in_place_of_python
def converted_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, scope: Any) -> Any:
    """`function(*args, **kwargs)`, by a converted version of `function` if it is the user's."""
    kind = type(function)
    if (here.blocks or links()) and kind is not FunctionType and kind is not type:
        mutation_guards.calls(function, args, kwargs)
    if kind is BuiltinFunctionType or kind is type:
        overload = _OVERLOADS.get(function)
        if function in _HIGHER:
            args = tuple(map(_argument, args))
            kwargs = kwargs and {name: _argument(x) for name, x in kwargs.items()}
        if overload is not None and (function in _ITERATE or any(map(_concerns, args))):
            return overload(*args, **(kwargs or {}))
        if overload is None and kind is type:
            function = as_converted(function)
    elif kind is FunctionType and is_ours(function.__code__) and function.__name__ not in _AS_GIVEN:
        refuse_open_dtype(function, args, kwargs or {})
        args = tuple([without_number(_argument(x)) for x in args])  # `ll.constant(n)` of a number is a tensor
        kwargs = kwargs and {name: without_number(x) for name, x in kwargs.items()}
    else:
        if isinstance(function, Function):
            refuse_open_dtype(function, args, kwargs or {})
        function = as_converted(function)
    if any(type(x) is list or type(x) is dict for x in args):
        with passing(args):
            result = function(*args, **(kwargs or {}))
    else:
        result = function(*args, **kwargs) if kwargs else function(*args)
    return made(result) if _makes_anew(function) else result


def refuse_open_dtype(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises ControlFlowError where the dtype of a result would hang on what kind of number an argument is in a run."""
    if not tells.codes or "dtype" in kwargs:
        return
    given = nest.leaves_of((args, kwargs))
    mixed = [x for x in given if type(x) is MixedNumber and len(dtypes_of(x)) > 1]
    if mixed and not any(isinstance(x, Tensor | Resource) and type(x) not in _NUMBERS for x in given):
        found = " or ".join(sorted(dtype.name for dtype in dtypes_of(mixed[0])))
        raise ControlFlowError(
            f"{function.__name__} is given a Python number that a tensor decides, of another type in some runs than in "
            f"others: its result would be of {found}, and what a graph returns has one dtype. Write float(x), or "
            f"ll.constant(x, dtype=...), in its place{source_line.here()}"
        )


_NUMBERS: Final = (MixedNumber, SymbolicNumber)
_MAKE: Final = (builtins.list, builtins.dict, builtins.sorted, copy.copy)


def _makes_anew(function: Any) -> bool:
    """Whether a list or dictionary that `function` returns has just been made."""
    if any(function is x for x in _MAKE):
        return True
    if type(function) is not BuiltinFunctionType or function.__name__ != "copy":
        return False
    return type(function.__self__) is list or type(function.__self__) is dict


def _argument(x: Any) -> Any:
    """What a function gets that will call its argument."""
    return as_converted(x) if type(x) is FunctionType else x


def as_converted(function: Any) -> Any:
    """`function`, or its converted version where it is code of the user's that can be converted."""
    kind = type(function)
    if kind is FunctionType:
        return _of_user(function)
    if kind is MethodType and type(function.__func__) is FunctionType:
        return MethodType(_of_user(function.__func__), function.__self__)
    if kind is functools.partial:
        return functools.partial(as_converted(function.func), *function.args, **function.keywords)
    if isinstance(function, type):
        return functools.partial(_construct, function) if _is_plain(function) else function
    called = _call_of(kind)
    return function if called is None else MethodType(_of_user(called), function)


FunctionScope.convert = as_converted


def _is_plain(kind: Any) -> bool:
    """Whether making an object of the class `kind` is no more than running an `__init__` of the user's."""
    initialise = kind.__init__
    ours = isinstance(initialise, FunctionType) and not is_library(initialise.__code__)
    return ours and type(kind).__call__ is type.__call__ and kind.__new__ is object.__new__


@in_place_of_python
def _construct(kind: Any, *args: Any, **kwargs: Any) -> Any:
    instance = kind.__new__(kind)
    if _of_user(kind.__init__)(instance, *args, **kwargs) is not None:
        raise TypeError("__init__() should return None")
    return instance


def _call_of(kind: type) -> FunctionType | None:
    """The Python function that makes instances of `kind` callable, if there is one."""
    method = next((vars(x)["__call__"] for x in kind.__mro__ if "__call__" in vars(x)), None)
    return method if type(method) is FunctionType else None


def _of_user(function: FunctionType) -> Callable[..., Any]:
    if hasattr(function, MARK) or is_library(function.__code__):
        return function
    try:
        return converted(function)
    except UnconvertibleError:  # it may do without: the reason is told if a tensor decides something in it
        return function


def is_library(code: CodeType) -> bool:
    """Whether `code` belongs to limelight, to Python or to an installed package."""
    return source_line.is_library(code) or source_line.is_installed(code.co_filename)


def is_ours(code: CodeType) -> bool:
    return source_line.is_library(code)


def _concerns(x: Any) -> bool:
    return isinstance(x, iterables.Steps) or decides(x) or _has_deciding(x)


def _has_deciding(x: Any) -> bool:
    return isinstance(x, list | tuple) and any(map(decides, x))


@in_place_of_python
def _len(x: Any) -> Any:
    return len(x) if not isinstance(x, Tensor) or x.ndim == 0 else as_number(iterables.count_of(x), int)


def _better(sign: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """As Python has it: of equal ones the first, which then has the gradient."""
    if not decides(a) and not decides(b):
        return b if sign(b, a) else a
    where, better = get("where"), sign(b, a)
    return picked(apply(where, prepare(where, (better, b, a))), better, b, a)


def _extreme(sign: Callable[[Any, Any], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max` of several scalars, some of them tensors."""

    @in_place_of_python
    def extreme(*args: Any, **kwargs: Any) -> Any:
        items = args if len(args) > 1 else tuple(args[0])
        if kwargs or not any(map(decides, items)) or any(as_tensor(x).ndim for x in items):
            return original(*args, **kwargs)
        return functools.reduce(functools.partial(_better, sign), items)

    return extreme


_ITERATE: Final = (builtins.all, builtins.any)
"""What they go over may be a generator: only going over it shows whether tensors are in it."""

_OVERLOADS: Final[dict[Any, Callable[..., Any]]] = {
    builtins.range: iterables.range_,
    builtins.enumerate: iterables.enumerate_,
    builtins.zip: iterables.zip_,
    builtins.reversed: iterables.reversed_,
    builtins.len: _len,
    builtins.min: _extreme(operator.lt, builtins.min),
    builtins.max: _extreme(operator.gt, builtins.max),
    builtins.all: all_,
    builtins.any: any_,
    **number_builtins.OVERLOADS,
}
