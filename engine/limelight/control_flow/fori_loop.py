"""`fori_loop`: a loop over a range of numbers, made of `scan` or `while_loop`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from limelight.control_flow.scan import Scan
from limelight.control_flow.while_loop import counted_loop
from limelight.core import dtypes
from limelight.core.tensor import TensorLike, as_tensor
from limelight.errors import ArgumentError, LimelightError
from limelight.ops.create.creation import arange
from limelight.staging.trace_branch import require_callable
from limelight.user_code.given_functions import call_user_function


def fori_loop(lower: TensorLike, upper: TensorLike, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """The last carry of `for i in range(lower, upper): carry = body(i, carry)`.

    Where both bounds are Python ints it is a `scan`, else a `while_loop`; differentiable either way.

    Args:
        lower: the first number, an int or an integer scalar.
        upper: the end, which is not reached.
        body: a function of the number, a scalar tensor, and the carry that returns the next carry, with the same
            structure, dtypes and shapes.
        init: the first carry, a tensor or a nest of tensors.

    Returns:
        The last carry; `init` where `upper` is not above `lower`.

    Raises:
        ArgumentError: a bound is no integer scalar, or `body` cannot be called.
        ControlFlowError: `body` does not keep the carry.

    >>> import limelight as ll
    >>> ll.fori_loop(0, 4, lambda i, s: s + i, ll.constant(0)).item()
    6
    """
    require_callable("fori_loop", body=body)
    step = functools.partial(call_user_function, "fori_loop", "body", "the number and the carry", body)
    try:
        return _run(lower, upper, step, init)
    except LimelightError as error:  # of the carry that a step returns, or of ops that take the number for it
        if _is_swapped(body) and "body(i, carry)" not in error.bare:
            where = str(error)[len(error.bare) :]
            error.bare += "; the body gets the number first, then the carry: body(i, carry)"
            error.args = (error.bare + where,)
        raise


def _run(lower: Any, upper: Any, step: Callable[..., Any], init: Any) -> Any:
    if type(lower) is int and type(upper) is int:
        numbers = arange(lower, max(lower, upper))
        return Scan.of("fori_loop", lambda carry, i: (step(i, carry), None), init, numbers, None, False).run()[0]
    first, last = as_tensor(lower), as_tensor(upper)
    for name, bound in (("lower", first), ("upper", last)):
        if bound.ndim or dtypes.kind(bound.dtype) != "integer":
            raise ArgumentError(f"fori_loop: {name} must be an int or an integer scalar, got {bound.spec}")
    dtype = dtypes.promote(first.dtype, last.dtype) or dtypes.int64
    return counted_loop("fori_loop", first.astype(dtype), last.astype(dtype), step, init)


_NUMBERS: Final = ("i", "j", "k", "n", "t", "step", "index", "idx")
"""What a loop's number is called, mostly."""


def _is_swapped(body: Callable[..., Any]) -> bool:
    """Whether the body seems to take the carry first, as the function of a `scan` does."""
    try:
        names = list(inspect.signature(body).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) == len(("carry", "i")) and names[1] in _NUMBERS and names[0] not in _NUMBERS
