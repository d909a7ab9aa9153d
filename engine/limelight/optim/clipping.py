"""Gradients kept from being too large. None (no gradient) stays None; NaN stays NaN, so that it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

from limelight.core import dtypes
from limelight.core.name_scopes import graph_writer, name_scope
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ArgumentError
from limelight.ops.elementwise.extremes import clip
from limelight.ops.elementwise.where import where
from limelight.optim.argument_checks import positive
from limelight.optim.gradient_checks import Gradient

Gradients: TypeAlias = Sequence[Gradient | None]
Limit: TypeAlias = float | Tensor


def clip_by_value(gradients: Gradients, limit: Limit) -> list[Gradient | None]:
    """Gradient clipping by value: each element cut to [-limit, limit].

    Args:
        gradients: a list of tensors or sparse gradients; None stays None, NaN stays NaN.
        limit: a number above 0, or a floating scalar tensor, whose value is not checked.

    Returns:
        The list of clipped gradients, in their shapes and dtypes.

    Raises:
        ArgumentError: `gradients` is no list, or the limit is not above 0.

    >>> import limelight as ll
    >>> [g.tolist() for g in ll.optim.clip_by_value([ll.constant([3.0, -0.5])], 1.0)]
    [[1.0, -0.5]]
    """
    _check("clip_by_value", gradients, limit)
    with _scope("clip_by_value"):
        return [None if g is None else _each(g, lambda x: clip(x, -limit, limit)) for g in gradients]


def clip_by_norm(gradients: Gradients, limit: Limit) -> list[Gradient | None]:
    """Gradient clipping by norm: each gradient scaled down, where need be, to a Euclidean norm of `limit`.

    Args:
        gradients: a list of tensors or sparse gradients; None stays None, NaN stays NaN.
        limit: a number above 0, or a floating scalar tensor, whose value is not checked.

    Returns:
        The list of clipped gradients, in their shapes and dtypes.

    Raises:
        ArgumentError: `gradients` is no list, or the limit is not above 0.

    >>> import limelight as ll
    >>> [g.tolist() for g in ll.optim.clip_by_norm([ll.constant([3.0, 4.0]), ll.constant(0.5)], 2.5)]
    [[1.5, 2.0], 0.5]
    """
    _check("clip_by_norm", gradients, limit)
    with _scope("clip_by_norm"):
        return [None if g is None else _scaled(g, _factor(global_norm([g]), limit)) for g in gradients]


def clip_by_global_norm(gradients: Gradients, limit: Limit) -> list[Gradient | None]:
    """Gradient clipping by global norm (Pascanu et al. 2013): all gradients scaled down by one factor.

    The factor is such that `global_norm` is `limit`; gradients whose norm is not larger stay as they are. Where the
    norm is infinite and the limit is not, infinite elements become NaN and others 0.

    Args:
        gradients: a list of tensors or sparse gradients; None stays None.
        limit: a number above 0, or a floating scalar tensor, whose value is not checked.

    Returns:
        The list of clipped gradients, in their shapes and dtypes.

    Raises:
        ArgumentError: `gradients` is no list, all are None, or the limit is not above 0.

    >>> import limelight as ll
    >>> clipped = ll.optim.clip_by_global_norm([ll.constant([3.0]), None, ll.constant(4.0)], 2.5)
    >>> [None if g is None else g.tolist() for g in clipped]
    [[1.5], None, 2.0]
    """
    _check("clip_by_global_norm", gradients, limit)
    with _scope("clip_by_global_norm"):
        factor = _factor(global_norm(gradients), limit)
        return [None if g is None else _scaled(g, factor) for g in gradients]


def global_norm(gradients: Gradients) -> Tensor:
    """The Euclidean norm of all elements of all gradients.

    Args:
        gradients: a list of tensors or sparse gradients; None is left out.

    Returns:
        A scalar, at least in float32.

    Raises:
        ArgumentError: `gradients` is no list, or all are None.

    >>> import limelight as ll
    >>> ll.optim.global_norm([ll.constant([3.0]), None, ll.constant(4.0)]).item()
    5.0
    """
    _check("global_norm", gradients)
    squares = [_squares(g) for g in gradients if g is not None]
    if not squares:
        raise ArgumentError("global_norm: no gradient (all are None); ll.explain.why_none says why one is None")
    total = squares[0]
    for square in squares[1:]:
        total = total + square
    none = total == 0
    return where(none, 0.0, where(none, 1.0, total).sqrt())  # whose gradient at 0 is 0, as that of every norm


def _scope(name: str) -> AbstractContextManager[object]:
    """The ops of all gradients as one group of a graph; outside of traces nobody looks at scopes."""
    return nullcontext() if graph_writer() is None else name_scope(name)


def _check(name: str, gradients: Any, limit: Any = 1.0) -> None:
    """Raises ArgumentError unless there is a list of gradients and a positive limit."""
    if not isinstance(gradients, (list, tuple)):
        flat = f"{name}(ll.tree.leaves(gradients), ...)" if isinstance(gradients, dict) else "[gradient]"
        hint = f"{flat}, and ll.tree.unflatten for the nest" if isinstance(gradients, dict) else flat
        raise ArgumentError(f"{name} needs a list of gradients, got {type(gradients).__name__}; write {hint}")
    if not hasattr(limit, "spec"):
        positive(name, "limit", limit)
    elif limit.ndim or not dtypes.is_floating(limit.dtype):
        raise ArgumentError(f"{name}: limit must be a number or a floating scalar, got {limit.spec}")


def _squares(gradient: Gradient) -> Tensor:
    x = gradient.coalesced().values if isinstance(gradient, SparseGradient) else as_tensor(gradient)
    return (x.astype(dtypes.float32) if x.dtype.itemsize == 2 else x).square().sum()


def _factor(norm: Tensor, limit: Limit) -> Tensor:
    """What makes of `norm` the limit, where it is larger: no quotient of infinities, and NaN of NaN."""
    within = norm <= limit
    return where(within, 1.0, limit) / where(within, 1.0, norm)


def _scaled(gradient: Gradient, factor: Tensor) -> Gradient:
    return _each(gradient, lambda x: x * factor.astype(x.dtype))


def _each(gradient: Gradient, fn: Callable[[Tensor], Tensor]) -> Gradient:
    """`fn` of each element; a sparse gradient stays sparse."""
    if isinstance(gradient, SparseGradient):
        return gradient.coalesced().map_values(fn)
    return fn(as_tensor(gradient))
