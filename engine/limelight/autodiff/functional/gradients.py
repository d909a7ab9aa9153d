"""`grad` and `value_and_grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from limelight.autodiff.functional._arguments import (
    Chosen,
    called,
    check_argnums,
    choose,
    require_function,
    split_aux,
    warn_of_departure,
)
from limelight.autodiff.gradient_cuts import departure
from limelight.autodiff.tape import INEXACT, GradientTape
from limelight.core import shapes
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, DTypeError, ShapeError

P = ParamSpec("P")
A = TypeVar("A")
V = TypeVar("V")


@overload
def grad(
    fn: Callable[Concatenate[Tensor, P], Any],
    argnums: int = 0,
    *,
    has_aux: Literal[False] = False,
    variables: None = None,
    unconnected_gradients: str = "zero",
) -> Callable[Concatenate[TensorLike, P], Tensor]: ...
@overload
def grad(
    fn: Callable[Concatenate[A, P], Any],
    argnums: int = 0,
    *,
    has_aux: Literal[False] = False,
    variables: None = None,
    unconnected_gradients: str = "zero",
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(
    fn: Callable[P, Any],
    argnums: int | Sequence[int] | None = 0,
    *,
    has_aux: bool = False,
    variables: Any = None,
    unconnected_gradients: str = "zero",
) -> Callable[P, Any]: ...
def grad(
    fn: Callable[..., Any],
    argnums: int | Sequence[int] | None = 0,
    *,
    has_aux: bool = False,
    variables: Any = None,
    unconnected_gradients: str = "zero",
) -> Callable[..., Any]:
    """The gradient of a scalar function, as a function of the same arguments (reverse mode).

    A derivative by an argument is by that argument alone, also where the function closes over the same tensor. Composes
    with itself, `vectorize`, `function`, tapes and accumulators. The gradient by a complex number is the direction of
    steepest ascent, as in PyTorch and TensorFlow: the conjugate of JAX's.

    Args:
        fn: a function whose result is one real floating number; with `has_aux`, `(value, aux)`.
        argnums: the position of the argument to differentiate by, or a tuple of several; 0 by default, None for none.
            An argument may be a nest of tensors, arrays, numbers and variables. So a list of numbers is no vector: `fn`
            gets that list, of scalars, and `x * 2` repeats it. A vector is `ll.constant([1.0, 2.0])`.
        has_aux: whether `fn` returns something besides its value. False.
        variables: variables to differentiate by as well, in a list, or a module for those that it trains. None.
        unconnected_gradients: what an argument without influence gets: "zero" (the default, since that is the
            derivative) or "none" (None, the default of a tape).

    Returns:
        A function that returns the gradient, in the structure of the argument (a tuple for several `argnums`), None for
        what cannot have one: integers, strings. With `variables`, `(by arguments, by variables)`, or with
        `argnums=None` by variables alone. With `has_aux`, `(gradients, aux)`.

    Raises:
        ShapeError: the value is not one number (at the call, as the next).
        DTypeError: the value is not real and floating, or an argument has no floating part.
        ArgumentError: `fn` cannot be called, an argument is not there or named twice, or an option is not as above.

    >>> import limelight as ll
    >>> cube = lambda x: x * x * x
    >>> ll.grad(cube)(2.0).item(), ll.grad(ll.grad(cube))(2.0).item()
    (12.0, 12.0)
    """
    if type(has_aux) is not bool:
        has_aux = shapes.flag("grad", "has_aux", has_aux)
    both = value_and_grad(
        fn, argnums, has_aux=has_aux, variables=variables, unconnected_gradients=unconnected_gradients
    )

    @functools.wraps(fn, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


@overload
def value_and_grad(
    fn: Callable[Concatenate[Tensor, P], V],
    argnums: int = 0,
    *,
    has_aux: Literal[False] = False,
    variables: None = None,
    unconnected_gradients: str = "zero",
) -> Callable[Concatenate[TensorLike, P], tuple[V, Tensor]]: ...
@overload
def value_and_grad(
    fn: Callable[Concatenate[A, P], V],
    argnums: int = 0,
    *,
    has_aux: Literal[False] = False,
    variables: None = None,
    unconnected_gradients: str = "zero",
) -> Callable[Concatenate[A, P], tuple[V, A]]: ...
@overload
def value_and_grad(
    fn: Callable[P, Any],
    argnums: int | Sequence[int] | None = 0,
    *,
    has_aux: bool = False,
    variables: Any = None,
    unconnected_gradients: str = "zero",
) -> Callable[P, tuple[Any, Any]]: ...
def value_and_grad(
    fn: Callable[..., Any],
    argnums: int | Sequence[int] | None = 0,
    *,
    has_aux: bool = False,
    variables: Any = None,
    unconnected_gradients: str = "zero",
) -> Callable[..., Any]:
    """The value and the gradient of a scalar function, as a function of the same arguments (reverse mode).

    Args:
        fn: a function whose result is one real floating number; with `has_aux`, `(value, aux)`.
        argnums: the position of the argument to differentiate by, or a tuple of several; None for none. As for `grad`.
        has_aux: whether `fn` returns something besides its value. False.
        variables: variables to differentiate by as well, in a list, or a module for those that it trains. None.
        unconnected_gradients: what an argument without influence gets: "zero" (the default) or "none" (None).

    Returns:
        A function that returns `(value, gradient)`, the gradient as `grad` gives it; with `has_aux`, `((value, aux),
        gradient)`.

    Raises:
        ShapeError: the value is not one number (at the call, as the next).
        DTypeError: the value is not real and floating, or an argument has no floating part.
        ArgumentError: `fn` cannot be called, an argument is not there or named twice, or an option is not as above.

    >>> import limelight as ll
    >>> value, g = ll.value_and_grad(lambda x: ll.sum(x * x))(ll.constant([1.0, 2.0]))
    >>> value.item(), g.tolist()
    (5.0, [2.0, 4.0])
    """
    if type(has_aux) is not bool:
        has_aux = shapes.flag("value_and_grad", "has_aux", has_aux)
    require_function("grad", fn)
    if argnums is not None:
        check_argnums("grad", argnums)
    variable_list = _checked_variables(variables)
    if argnums is None and variable_list is None:
        raise ArgumentError("grad: argnums=None needs variables=[...]; there is nothing else to differentiate by")

    @functools.wraps(fn, updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        chosen = choose("grad", args, () if argnums is None else argnums)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([*chosen.sources, *(variable_list or ())])
            value, aux = split_aux("grad", called("grad", fn, chosen.args, kwargs), has_aux)
            value = _one_real_number(value)  # recorded: it may be one of the variables, which is read here
        if not tape.watches(value):
            warn_of_departure("grad", departure(tape._cuts), "gradient")
        gradients = tape.gradient(value, [*chosen.sources, *(variable_list or ())], None, unconnected_gradients)
        return (value, aux) if has_aux else value, _arranged(chosen, gradients, argnums, variable_list)

    return both


def _arranged(chosen: Chosen, gradients: list[Any], argnums: Any, variables: list[Any] | None) -> Any:
    n = len(chosen.sources)
    if argnums is None:
        return gradients[n:]
    by_arguments = chosen.rebuilt(gradients[:n])
    return by_arguments if variables is None else (by_arguments, gradients[n:])


def _checked_variables(variables: Any) -> list[Any] | None:
    """The variables of a list, or of a module those that it trains."""
    if variables is None:
        return None
    if isinstance(variables, Resource):
        raise ArgumentError("grad: variables must be a list of variables, got a variable: write variables=[v]")
    resources = list(getattr(variables, "trainable_variables", variables))
    for v in resources:
        if not isinstance(v, Resource):
            raise ArgumentError(f"grad: variables must be a list of variables, got {type(v).__name__} in it")
    return resources


def _one_real_number(value: Any) -> Tensor:
    if isinstance(value, (tuple, list, dict)) or value is None:
        raise ShapeError(
            f"grad: the function must return one number, got {type(value).__name__}; for further results return "
            "(value, aux) and say has_aux=True"
        )
    t = as_tensor(value)
    if t.shape:
        raise ShapeError(
            f"grad: the function must return one number, got {t.spec}; reduce it (ll.sum, ll.mean), or use ll.jacobian "
            "or ll.vjp"
        )
    if t.dtype not in INEXACT or t.dtype.kind == "c":
        raise DTypeError(
            f"grad: the function must return one real floating number, got {t.spec}; of a complex result take ll.real, "
            "ll.imag or ll.abs, and cast integers with ll.astype before they are summed"
        )
    return t
