"""`switch`: one of several functions, chosen by a number (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from limelight.batching import Batched
from limelight.control_flow.user_functions import called
from limelight.core import dispatch, dtypes
from limelight.core.op import Op, defop
from limelight.core.spec import Spec
from limelight.core.tensor import TensorLike, as_tensor
from limelight.errors import ArgumentError, ControlFlowError
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_body import agreeing, close, merged, require_callable, trace_branch, tracing


def switch(index: TensorLike, branches: Sequence[Callable[[], Any]]) -> Any:
    """A choice by value among several functions: `branches[index]()` (paper section 4.1).

    Only the chosen branch runs, effects and errors included; while tracing all are traced. Differentiable, to any
    order.

    Args:
        index: one integer from 0 to the number of branches - 1, which may be known only when a graph runs. For a
            default branch clip it first, with `ll.clip`.
        branches: a list of functions without arguments that return tensors or nests of tensors; while tracing all must
            return the same structure, dtypes and ranks.

    Returns:
        What the chosen branch returns.

    Raises:
        ControlFlowError: `index` is not one integer or is out of range (told once it is known), or the branches'
            outputs differ, of which the first is named.
        ArgumentError: there is no branch, or one cannot be called.

    >>> import limelight as ll
    >>> @ll.function
    ... def activate(x, kind):
    ...     return ll.switch(kind, [lambda: x, lambda: ll.nn.relu(x), lambda: ll.tanh(x)])
    >>> activate(ll.constant(-2.0), ll.constant(1)).item()
    0.0
    """
    if not isinstance(branches, (list, tuple)) or not branches:
        raise ArgumentError(f"switch: branches must be a list of functions, at least one, got {branches!r}")
    require_callable("switch", **{f"branches[{i}]": branch for i, branch in enumerate(branches)})
    index = as_tensor(index)
    if dtypes.kind(index.dtype) != "integer" or index.spec.size not in (1, None):
        hint = "; write ll.cond for a boolean" if index.dtype == dtypes.bool_ else ""
        raise ControlFlowError(f"switch: index must be one integer, got {index.spec}{hint}")
    if not isinstance(index, Batched) and (tracing() is None or not isinstance(index, SymbolicTensor)):
        chosen = _checked(index, len(branches))
        return called("switch", f"branches[{chosen}]", "", branches[chosen])
    named = [(i, partial(called, "switch", f"branches[{i}]", "", branch)) for i, branch in enumerate(branches)]
    traced = [trace_branch(f"branch{i}", branch) for i, branch in named]
    agreeing("switch", traced)
    functions, captures = close(traced)
    results = dispatch.apply(switch_op, (index, *captures), (tuple(functions),))
    return traced[0].outputs.rebuild(results)


def _checked(index: Any, n: int) -> int:
    found = int(index.item())
    if not 0 <= found < n:
        raise ControlFlowError(
            f"switch: index {found} for {n} branches, which are numbered from 0; for a default write "
            f"ll.clip(index, 0, {n - 1})"
        )
    return found


def infer_switch(index: Spec, *given: Any) -> tuple[Spec, ...]:
    *captures, branches = given
    return merged(branches, captures)


def run_switch(xp: Any, index: Any, *given: Any) -> tuple[Any, ...]:
    *captures, branches = given
    outputs: tuple[Any, ...] = branches[_checked(index, len(branches))].run(*captures)
    return outputs


def _check_all(xp: Any, index: Any, n: int) -> Any:
    if index.size:
        for extreme in (index.min(), index.max()):
            _checked(extreme, n)
    return index


switch_op: Op = defop(
    "switch",
    inputs="*xs:any",
    attrs="branches",
    infer=infer_switch,
    kernel=run_switch,
    multiple=True,
    higher_order=True,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records switch_forward
    maths={"xs": "x̄ = backward of the branch taken"},
)

checked_index: Op = defop(
    "checked_index",
    inputs="index:integer",
    attrs="n",
    infer=lambda index, n: index,
    kernel=_check_all,
    elementwise=True,
    why_no_gradient="its result is an integer",
)
"""The numbers of branches, one for each example, if all are from 0 to n - 1."""
