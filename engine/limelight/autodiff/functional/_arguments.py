"""Arguments to differentiate by: found by position, and made anew, so that each is a tensor of its own.

A fresh identity is what makes these functions functions: the derivative is by the argument alone, not by the same
tensor where the function closes over it or gets it twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.autodiff.tape import INEXACT
from limelight.core import nest
from limelight.core.autograph_hook import maybe_converted
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, DTypeError, LostGradientWarning
from limelight.ops import identity
from limelight.user_code import source_line
from limelight.user_code.given_functions import call_user_function

_VALUES: Final = (bool, int, float, complex, np.ndarray, np.generic, Tensor)
_warned: Final[dict[Any, Any]] = {}  # which warnings were shown, for the `warnings` module


NO_KEYWORDS: Final[Mapping[str, Any]] = MappingProxyType({})


class Chosen(NamedTuple):
    """The arguments of a call, with those to differentiate by made anew."""

    args: tuple[Any, ...]
    leaves: list[Any]  # of the chosen arguments; None for one that cannot have a derivative
    structure: nest.Structure

    @property
    def sources(self) -> list[Any]:
        return [x for x in self.leaves if x is not None]

    def rebuilt(self, results: Sequence[Any]) -> Any:
        """A result for each of `sources`, in the structure of the chosen arguments, None in the other places."""
        feed = iter(results)
        return nest.unflatten(self.structure, [None if x is None else next(feed) for x in self.leaves])


def check_argnums(name: str, argnums: Any) -> None:
    """Raises ArgumentError for arguments in the place of their positions: `grad(f, x)` for `grad(f)(x)`."""
    for i in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if isinstance(i, (Tensor, Resource, np.ndarray, float, dict)):
            raise ArgumentError(
                f"{name}: argnums is the position of an argument, or a tuple of them, got {_kind(i)}; ll.{name}(f) "
                f"returns a function, which takes the arguments: write ll.{name}(f)(x)"
            )


def choose(name: str, args: tuple[Any, ...], argnums: int | Sequence[int]) -> Chosen:
    """Raises ArgumentError for a position that is not there, DTypeError for an argument without floating parts."""
    single = not isinstance(argnums, (tuple, list))
    positions = (argnums,) if single else argnums
    places = [_position(name, i, len(args)) for i in positions]  # type: ignore[union-attr]  # an int was wrapped above
    if len(set(places)) != len(places):
        raise ArgumentError(f"{name}: argnums={argnums} names an argument twice")
    new_args = list(args)
    for i in places:
        new_args[i] = nest.map_structure(_fresh, args[i])
        if not any(is_differentiable(x) for x in nest.leaves_of(new_args[i])):
            raise DTypeError(_nothing_floating(name, i, args[i]))
    chosen = new_args[places[0]] if single else tuple([new_args[i] for i in places])
    leaves, structure = nest.flatten(chosen)
    return Chosen(tuple(new_args), [x if is_differentiable(x) else None for x in leaves], structure)


def _nothing_floating(name: str, place: int, given: Any) -> str:
    if hasattr(given, "trainable_variables"):
        by_variables = "ll.grad(f, argnums=None, variables=module), or " if name == "grad" else ""
        return (
            f"{name}: argument {place} is a module, {type(given).__name__}, whose variables stay where they are: write "
            f"{by_variables}a function of their values, which calls ll.functional_call(module, values, x)"
        )
    kinds = ", ".join(_kind(x) for x in nest.leaves_of(given)) or "empty"
    number = given if type(given) is int else 3
    return (
        f"{name}: argument {place} ({kinds}) has nothing to differentiate by, which must be floating: write {number}.0 "
        f"for {number}, ll.astype(x, ll.float32) for tensors, or choose another argument with argnums"
    )


def _position(name: str, i: Any, count: int) -> int:
    if not hasattr(i, "__index__") or not -count <= i.__index__() < count:
        none = "; argnums=None is for no argument, where variables= are given" if not count else ""
        raise ArgumentError(f"{name}: argnums says {i!r}, and there are {count} positional arguments{none}")
    place: int = i.__index__()
    return place % count


def _fresh(x: Any) -> Any:
    """The same value as a tensor of its own; variables and what is no number stay."""
    return identity(as_tensor(x)) if isinstance(x, _VALUES) else x


def is_differentiable(x: Any) -> bool:
    """Whether `x` can have a derivative."""
    return isinstance(x, (Tensor, Resource)) and x.dtype in INEXACT


def _kind(x: Any) -> str:
    return str(x.spec) if hasattr(x, "spec") else type(x).__name__


def fresh_tensors(tree: Any) -> Any:
    """A nest of numbers, arrays and tensors as tensors of their own."""
    return nest.map_structure(_fresh, tree)


def called(name: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] = NO_KEYWORDS) -> Any:
    """`fn` of the arguments that its derivative was called with. Raises CallError where it does not take them."""
    return call_user_function(name, "fn", "what its derivative is called with", maybe_converted(fn), *args, **kwargs)


def split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """What to differentiate, and what goes along."""
    if not has_aux:
        return result, None
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise ArgumentError(f"{name}: with has_aux=True the function must return (value, aux), got {_kind(result)}")
    return result[0], result[1]


def as_tensors(tree: Any) -> Any:
    """A result with its numbers and arrays made tensors."""
    return nest.map_structure(
        lambda x: as_tensor(x) if isinstance(x, _VALUES) or hasattr(x, "__as_tensor__") else x, tree
    )


def warn_of_departure(name: str, line: source_line.Source | None, what: str) -> None:
    """Zeros are the right answer for a constant function; they surprise whoever computed with NumPy."""
    if line is not None:
        at = source_line.user_line() or line
        warnings.warn_explicit(
            f"{name}: the result does not depend on the arguments as far as limelight can see, since a value left for "
            f"Python or NumPy{source_line.at(line)}: the {what} is zeros. Compute with ll functions and operators "
            "instead of x.numpy(), x.item(), float(x) and NumPy's functions",
            LostGradientWarning,
            at.file,
            at.line,
            registry=_warned,
        )


def require_function(name: str, fn: Any) -> Callable[..., Any]:
    """Raises ArgumentError for what cannot be called."""
    if not callable(fn):
        raise ArgumentError(f"{name}: needs a function, got {type(fn).__name__}")
    function: Callable[..., Any] = fn
    return function
