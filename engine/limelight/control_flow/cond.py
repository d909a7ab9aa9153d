"""`cond`: one of two functions, chosen by a value (paper section 4.1), and the ops behind it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Never

from limelight.batching import Batched
from limelight.control_flow.branch_batching import batch_branches
from limelight.control_flow.branch_gradient import jvp_branches, pull_branches, save_branches, taped_branches
from limelight.core import dispatch, dtypes
from limelight.core.op import Op, defop
from limelight.core.spec import Spec, TensorSpec
from limelight.core.tensor import TensorLike, as_tensor
from limelight.errors import CallError, ControlFlowError
from limelight.ops._given_shape import hide_rest_parameter
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_branch import (
    check_branches_agree,
    close,
    is_condition,
    merged_specs,
    require_callable,
    trace_branch,
    tracing,
    variables_read,
)
from limelight.user_code.given_functions import call_user_function


@hide_rest_parameter
def cond(pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any], *operands: Never) -> Any:
    """A conditional by value: `true_fn()` if `pred` else `false_fn()` (paper section 4.1).

    Only the chosen branch runs, effects and errors included; while tracing both are traced. Differentiable, to any
    order. While tracing, what only one branch uses has a gradient of zeros where the other one is taken, since None is
    told before anybody knows which. So where something before the `cond` has an infinite slope, as `sqrt` at 0, the
    gradient is NaN (0 times infinity) although the branch taken does without it, and run eagerly it is right: keep such
    an operand away from there with `ll.where`, or compute it in the branch.

    Args:
        pred: a boolean with one element, which may be known only when a graph runs.
        true_fn: a function without arguments that returns a tensor or a nest of tensors.
        false_fn: the same; while tracing it must return the same structure, dtypes and ranks.
        *operands: none: the functions take no arguments.

    Returns:
        What the chosen branch returns, of variables the values. While tracing, sizes in which the branches differ are
        unknown.

    Raises:
        ControlFlowError: `pred` is not one boolean, or the branches' outputs differ, of which the first is named.
        ArgumentError: a branch cannot be called.
        CallError: there are operands.

    >>> import limelight as ll
    >>> @ll.function
    ... def magnitude(x):
    ...     return ll.cond(x > 0, lambda: x, lambda: -x)
    >>> magnitude(ll.constant(-2.0)).item()
    2.0
    """
    if operands:
        raise CallError("cond: the functions take no arguments: write ll.cond(pred, lambda: f(x), lambda: g(x))")
    require_callable("cond", true_fn=true_fn, false_fn=false_fn)
    pred = as_tensor(pred)
    if not is_condition(pred.spec):
        raise ControlFlowError(f"cond: pred must be a boolean with one element, got {pred.spec}; {_instead(pred.spec)}")
    if not isinstance(pred, Batched) and (tracing() is None or not isinstance(pred, SymbolicTensor)):
        name, chosen = ("true_fn", true_fn) if pred else ("false_fn", false_fn)
        return variables_read(call_user_function("cond", name, "", chosen))
    functions = {"true_fn": true_fn, "false_fn": false_fn}
    traced = [
        trace_branch(name, partial(call_user_function, "cond", name, "", fn), optional=True)
        for name, fn in functions.items()
    ]
    check_branches_agree("cond", traced)
    branches, captures = close(traced)
    results = dispatch.apply(cond_op, (pred, *captures), tuple(branches))
    return traced[0].outputs.rebuild(results)


def _instead(spec: Spec) -> str:
    if not isinstance(spec, TensorSpec) or spec.dtype != dtypes.bool_:
        return "compare it, as in `pred != 0`"
    return "for a choice of each element write ll.where(pred, x, y), for one of all ll.all(pred) or ll.any(pred)"


def _infer_cond(pred: Spec, *arguments: Any) -> tuple[Spec, ...]:
    *captures, true, false = arguments
    return merged_specs((true, false), captures)


def _run_cond(xp: Any, pred: Any, *arguments: Any) -> tuple[Any, ...]:
    *captures, true, false = arguments
    outputs: tuple[Any, ...] = (true if bool(pred) else false).run(*captures)
    return outputs


cond_op: Op = defop(
    "cond",
    inputs="*xs:any",
    attrs="true_fn false_fn",
    infer=_infer_cond,
    kernel=_run_cond,
    multiple=True,
    higher_order=True,
    taped=partial(taped_branches, "cond_forward"),
    jvp=partial(jvp_branches, "cond"),
    batching=partial(batch_branches, "cond"),
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records cond_forward
    maths={"xs": "x̄ = backward of the branch taken"},
)

cond_forward: Op = defop(
    "cond_forward",
    inputs="*xs:any",
    attrs="true_fn false_fn pairs",
    infer=lambda *arguments: _infer_cond(*arguments[:-1]),
    kernel=lambda *arguments: _run_cond(*arguments[:-1]),
    multiple=True,
    higher_order=True,
    taped=partial(taped_branches, "cond_forward"),
    jvp=partial(jvp_branches, "cond"),
    batching=partial(batch_branches, "cond"),
    save=save_branches,
    vjp={"xs": lambda g, saved, needed: pull_branches(lambda pred, both: cond(pred, *both), g, saved, needed)},
    maths={"xs": "x̄ = backward of the branch taken"},
)
