"""`jvp` and `vjp`: products with the Jacobian, which cost a few times the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.autodiff.forward_mode import ForwardAccumulator
from limelight.autodiff.functional._arguments import (
    as_tensors,
    called,
    choose,
    fresh_tensors,
    is_differentiable,
    require_function,
    split_aux,
    warn_of_departure,
)
from limelight.autodiff.tape import INEXACT, GradientTape
from limelight.core import nest, shapes
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError
from limelight.user_code import source_line


def jvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """The value of a function and a Jacobian-vector product, in forward mode.

    Args:
        fn: a function of `primals` whose result is a tensor or a nest of tensors; with `has_aux`, `(value, aux)`.
        primals: a tuple or list of arguments, each a nest of tensors, arrays, numbers or variables.
            A list of numbers is a nest of scalars: a vector is `ll.constant([1.0, 2.0])`.
        tangents: the direction, in the same structure, shapes and dtypes; None for a part of zeros. Integers must have
            None.
        has_aux: whether `fn` returns something besides its value. False.

    Returns:
        `(value, tangent)`: the tangent has the structure, shapes and dtypes of the value; zeros where it does not
        depend on the primals, None for integers. With `has_aux`, `(value, tangent, aux)`.

    Raises:
        ArgumentError: `fn` cannot be called, `primals` or `tangents` are no tuple or list, or their structures differ.
        DTypeError: a tangent has another dtype than its primal, or belongs to an integer.
        ShapeError: a tangent has another shape than its primal.

    >>> import limelight as ll
    >>> y, t = ll.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> y.item(), t.item()
    (9.0, 6.0)
    """
    if type(has_aux) is not bool:
        has_aux = shapes.flag("jvp", "has_aux", has_aux)
    require_function("jvp", fn)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError(
            "jvp: primals and tangents must be tuples or lists, one entry for each argument; write (x,)"
        )
    args = fresh_tensors(tuple(primals))
    leaves, structure = nest.flatten(args)
    tangent_leaves = nest.flatten_like(structure, tuple(tangents), "tangents")
    pairs = [(x, t) for x, t in zip(leaves, tangent_leaves, strict=True) if t is not None]
    with ForwardAccumulator([x for x, _ in pairs], [t for _, t in pairs]) as forward:
        result = called("jvp", fn, args)
        value, aux = split_aux("jvp", result, has_aux)
        value = as_tensors(value)
    tangent = nest.map_structure(lambda y: forward.jvp(y, "zero") if is_differentiable(y) else None, value)
    if forward.departure is not None and None in [
        forward.jvp(y) for y in nest.leaves_of(value) if is_differentiable(y)
    ]:
        warn_of_departure("jvp", forward.departure, "tangent")
    return (value, tangent, aux) if has_aux else (value, tangent)


def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and a function that computes vector-Jacobian products, in reverse mode.

    Args:
        fn: a function of `primals` whose result is a tensor or a nest of tensors; with `has_aux`, `(value, aux)`.
        *primals: arguments, each a nest of tensors, arrays, numbers or variables.
            A list of numbers is a nest of scalars: a vector is `ll.constant([1.0, 2.0])`.
        has_aux: whether `fn` returns something besides its value. False.

    Returns:
        `(value, pull)`. `pull(g)`, where `g` has the structure, shapes and dtypes of the value (None for no gradient),
        returns the gradients of all arguments, a tuple in the structure of `primals`: zeros for what has no influence,
        None for what cannot have a gradient. It may be called again, and keeps what it needs until it goes; its
        gradient with respect to `g` is a Jacobian-vector product. With `has_aux`, `(value, pull, aux)`.

    Raises:
        ArgumentError: `fn` cannot be called.
        DTypeError: an argument has no floating part; from `pull`, a dtype of `g` does not fit.
        ShapeError: from `pull`, a shape of `g` does not fit.

    >>> import limelight as ll
    >>> y, pull = ll.vjp(lambda x: ll.stack([x, x * x]), 3.0)
    >>> pull(ll.constant([1.0, 10.0]))[0].item()
    61.0
    """
    if type(has_aux) is not bool:
        has_aux = shapes.flag("vjp", "has_aux", has_aux)
    require_function("vjp", fn)
    chosen = choose("vjp", primals, tuple(range(len(primals))))
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(chosen.sources)
        result = called("vjp", fn, chosen.args)
        value, aux = split_aux("vjp", result, has_aux)
        value = as_tensors(value)
    leaves, structure = nest.flatten(value)
    places = [i for i, y in enumerate(leaves) if isinstance(y, Tensor) and y.dtype in INEXACT]

    def pull(g: Any) -> Any:
        weights = nest.flatten_like(structure, g, "g")
        pairs = [(leaves[i], weights[i]) for i in places if weights[i] is not None]
        gradients = tape.gradient([y for y, _ in pairs], chosen.sources, [w for _, w in pairs], "zero")
        return chosen.rebuilt(gradients)

    return (value, pull, aux) if has_aux else (value, pull)


source_line.speak_of(jvp, "jvp")  # and not of the accumulator that it is made of
