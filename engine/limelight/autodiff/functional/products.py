"""`jvp` and `vjp`: products with the Jacobian, which cost a few times the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.autodiff import INEXACT, ForwardAccumulator, GradientTape
from limelight.autodiff.functional._arguments import (
    choose,
    fresh,
    moves,
    parted,
    require_function,
    tensors_in,
    warn_of_departure,
)
from limelight.core import nest
from limelight.core.autograph_hook import handed
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError


def jvp(fn: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """`(fn(*primals), its tangent)`: how the result moves when `primals` move by `tangents`, in forward mode.

    `primals`: a tuple or list of arguments, each a nest of tensors, arrays, numbers or variables; `tangents`: the same
    structure, shapes and dtypes, None for what does not move (integers must not). The tangent has the structure of the
    result, zeros where nothing moves it, None for integers. With `has_aux`, `fn` returns `(value, aux)`, and the result
    is `(value, tangent, aux)`.

    Raises ArgumentError for structures that differ, DTypeError or ShapeError for a tangent that does not fit.

    >>> import limelight as ll
    >>> y, t = ll.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> y.item(), t.item()
    (9.0, 6.0)
    """
    require_function("jvp", fn)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError(
            "jvp: primals and tangents must be tuples or lists, one entry for each argument; write (x,)"
        )
    args = fresh(tuple(primals))
    leaves, structure = nest.flatten(args)
    given = nest.flatten_like(structure, tuple(tangents), "tangents")
    pairs = [(x, t) for x, t in zip(leaves, given, strict=True) if t is not None]
    with ForwardAccumulator([x for x, _ in pairs], [t for _, t in pairs]) as forward:
        result = handed(fn)(*args)
        value, aux = parted("jvp", result, has_aux)
        value = tensors_in(value)
    tangent = nest.map_structure(lambda y: forward.jvp(y, "zero") if moves(y) else None, value)
    if forward.departure is not None and None in [forward.jvp(y) for y in nest.leaves_of(value) if moves(y)]:
        warn_of_departure("jvp", forward.departure, "tangent")
    return (value, tangent, aux) if has_aux else (value, tangent)


def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(fn(*primals), pull)`: `pull(g)` gives the gradients of all arguments for the gradient `g` of the result.

    `g` has the structure, shapes and dtypes of the result (None for no gradient); `pull` returns a tuple with the
    structure of `primals`, zeros for what has no influence, None for what cannot have a gradient. It may be called
    again, and keeps what it needs until it goes. With `has_aux`, `fn` returns `(value, aux)`, and the result is
    `(value, pull, aux)`. The gradient with respect to `g` is a Jacobian-vector product.

    Raises DTypeError for an argument without floating parts, and what `tape.gradient` raises.

    >>> import limelight as ll
    >>> y, pull = ll.vjp(lambda x: ll.stack([x, x * x]), 3.0)
    >>> pull(ll.constant([1.0, 10.0]))[0].item()
    61.0
    """
    require_function("vjp", fn)
    chosen = choose("vjp", primals, tuple(range(len(primals))))
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(chosen.sources)
        result = handed(fn)(*chosen.args)
        value, aux = parted("vjp", result, has_aux)
        value = tensors_in(value)
    leaves, structure = nest.flatten(value)
    places = [i for i, y in enumerate(leaves) if isinstance(y, Tensor) and y.dtype in INEXACT]

    def pull(g: Any) -> Any:
        weights = nest.flatten_like(structure, g, "g")
        pairs = [(leaves[i], weights[i]) for i in places if weights[i] is not None]
        found = tape.gradient([y for y, _ in pairs], chosen.sources, [w for _, w in pairs], "zero")
        return chosen.rebuilt(found)

    return (value, pull, aux) if has_aux else (value, pull)
