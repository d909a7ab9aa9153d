"""`switch`: one of several functions, chosen by a number (paper section 4.1), and the ops behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from limelight.batching import Batched
from limelight.control_flow.branch_batching import batch_branches
from limelight.control_flow.branch_gradient import jvp_branches, pull_branches, save_branches, taped_branches
from limelight.core import dispatch, dtypes
from limelight.core.op import Op, defop
from limelight.core.spec import Spec
from limelight.core.tensor import TensorLike, as_tensor
from limelight.errors import ArgumentError, ControlFlowError
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_branch import (
    check_branches_agree,
    close,
    merged_specs,
    require_callable,
    trace_branch,
    tracing,
    variables_read,
)
from limelight.user_code.given_functions import call_user_function


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
        What the chosen branch returns, of variables the values.

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
        given = "none" if isinstance(branches, (list, tuple)) else type(branches).__name__
        raise ArgumentError(f"switch: branches must be a list of functions, at least one, got {given}")
    require_callable("switch", **{f"branches[{i}]": branch for i, branch in enumerate(branches)})
    index = as_tensor(index)
    if dtypes.kind(index.dtype) != "integer" or index.spec.size not in (1, None):
        hint = "; write ll.cond for a boolean" if index.dtype == dtypes.bool_ else ""
        raise ControlFlowError(f"switch: index must be one integer, got {index.spec}{hint}")
    if not isinstance(index, Batched) and (tracing() is None or not isinstance(index, SymbolicTensor)):
        chosen = _checked(index, len(branches))
        return variables_read(call_user_function("switch", f"branches[{chosen}]", "", branches[chosen]))
    named = [
        (i, partial(call_user_function, "switch", f"branches[{i}]", "", branch)) for i, branch in enumerate(branches)
    ]
    traced = [trace_branch(f"branch{i}", branch, optional=True) for i, branch in named]
    check_branches_agree("switch", traced)
    functions, captures = close(traced)
    results = dispatch.apply(switch_op, (index, *captures), (tuple(functions),))
    return traced[0].outputs.rebuild(results)


def _checked(index: Any, n: int) -> int:
    """`index` as a number. Raises ControlFlowError where it is not that of one of `n` branches."""
    number = int(index.item())
    if not 0 <= number < n:
        raise ControlFlowError(
            f"switch: index {number} for {n} branches, which are numbered from 0; for a default write "
            f"ll.clip(index, 0, {n - 1})"
        )
    return number


def _infer_switch(index: Spec, *arguments: Any) -> tuple[Spec, ...]:
    *captures, branches = arguments
    return merged_specs(branches, captures)


def _run_switch(xp: Any, index: Any, *arguments: Any) -> tuple[Any, ...]:
    *captures, branches = arguments
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
    infer=_infer_switch,
    kernel=_run_switch,
    multiple=True,
    higher_order=True,
    taped=partial(taped_branches, "switch_forward"),
    jvp=partial(jvp_branches, "switch"),
    batching=partial(batch_branches, "switch"),
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records switch_forward
    maths={"xs": "x̄ = backward of the branch taken"},
)

switch_forward: Op = defop(
    "switch_forward",
    inputs="*xs:any",
    attrs="branches pairs",
    infer=lambda *arguments: _infer_switch(*arguments[:-1]),
    kernel=lambda *arguments: _run_switch(*arguments[:-1]),
    multiple=True,
    higher_order=True,
    taped=partial(taped_branches, "switch_forward"),
    jvp=partial(jvp_branches, "switch"),
    batching=partial(batch_branches, "switch"),
    save=save_branches,
    vjp={"xs": lambda g, saved, needed: pull_branches(switch, g, saved, needed)},
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
