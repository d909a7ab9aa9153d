"""`cond`: one of two functions, chosen by a value (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from limelight import dispatch, dtypes, shapes, source
from limelight.errors import ControlFlowError
from limelight.registry import Op, Taped, defop
from limelight.spec import Spec, TensorSpec, known
from limelight.staging.branches import Traced, close, trace_branch, tracing
from limelight.staging.gradient import Pair, call, infer_outputs, pair_of, watched_mask
from limelight.tape import filled
from limelight.tensor import TensorLike, as_tensor
from limelight.trace import SymbolicTensor


def cond(pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """`true_fn()` if `pred` else `false_fn()`, also where `pred` is known only when a graph runs.

    `pred`: a boolean with one element. Only the chosen branch runs, effects and errors included; while tracing both
    are traced, and must return the same structure with the same dtypes (ControlFlowError names the output that
    differs). Differentiable, to any order.

    >>> import limelight as ll
    >>> @ll.function
    ... def magnitude(x):
    ...     return ll.cond(x > 0, lambda: x, lambda: -x)
    >>> magnitude(ll.constant(-2.0)).item()
    2.0
    """
    pred = pred if isinstance(pred, bool) else as_tensor(pred)
    if tracing() is None or not isinstance(pred, SymbolicTensor):
        return true_fn() if pred else false_fn()
    if dtypes.kind(pred.dtype) != "bool" or shapes.size(pred.shape) not in (1, None):
        raise ControlFlowError(f"cond: pred must be a boolean with one element, got {pred.spec}{source.at(source.user_line())}")
    traced = [trace_branch("true_fn", true_fn), trace_branch("false_fn", false_fn)]
    _check(*traced)
    branches, captures = close(traced)
    results = dispatch.apply(cond_op, (pred, *captures), tuple(branches))
    return traced[0].outputs.rebuild(results)


def _check(true: Traced, false: Traced) -> None:
    if true.outputs != false.outputs:
        raise ControlFlowError(
            f"cond: the branches return different structures: true_fn {true.outputs.structure} with "
            f"{list(true.outputs.static)}, false_fn {false.outputs.structure} with {list(false.outputs.static)}"
            f"{source.at(source.user_line())}"
        )
    for i, (a, b) in enumerate(zip(true.specs, false.specs, strict=True)):
        if isinstance(a, TensorSpec) and isinstance(b, TensorSpec) and (a.dtype != b.dtype or a.rank != b.rank):
            raise ControlFlowError(
                f"cond: output {i} is {a} from true_fn and {b} from false_fn; dtypes and ranks must agree, "
                f"write ll.astype or ll.reshape in one branch{source.at(source.user_line())}"
            )


def merge(a: Spec, b: Spec) -> Spec:
    """The spec of a value that comes from either of two branches."""
    if isinstance(a, TensorSpec) and isinstance(b, TensorSpec) and a.shape != b.shape:
        return known(shapes.generalise(a.shape, b.shape) or a.shape, a.dtype)
    return a


def _infer(pred: Spec, *given: Any) -> tuple[Spec, ...]:
    *captures, true, false = given
    return tuple(map(merge, infer_outputs(true.graph, captures), infer_outputs(false.graph, captures)))


def _run(xp: Any, pred: Any, *given: Any) -> tuple[Any, ...]:
    *captures, true, false = given
    outputs: tuple[Any, ...] = (true if bool(pred) else false).run(*captures)
    return outputs


# Its gradient: the taken branch runs forward and hands on what its backward needs, the other one's places stay empty


class Pairs(NamedTuple):
    """The forward/backward pairs of both branches."""

    true: Pair
    false: Pair

    @property
    def n_extra(self) -> tuple[int, int]:
        return tuple(len(p.forward.graph.outputs) - p.n_outputs for p in self)  # type: ignore[return-value]  # it is two

    def residuals(self, captures: Sequence[Any], outputs: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        n, first = self.true.n_outputs, self.n_extra[0]
        own = list(outputs[:n])
        return (
            tuple(self.true.residuals(captures, own + list(outputs[n : n + first]))),
            tuple(self.false.residuals(captures, own + list(outputs[n + first :]))),
        )


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Taped | None:
    watched = watched_mask(inputs[1:])
    pairs = Pairs(pair_of(attrs[0], watched), pair_of(attrs[1], watched))
    if not any(pairs.true.connected + pairs.false.connected):
        return None
    n = pairs.true.n_outputs
    return Taped(cond_forward, (pairs.true.forward, pairs.false.forward, pairs), lambda outputs: outputs[:n])


def _infer_forward(pred: Spec, *given: Any) -> tuple[Spec, ...]:
    *captures, true, false, pairs = given
    first, second = infer_outputs(true.graph, captures), infer_outputs(false.graph, captures)
    n = pairs.true.n_outputs
    extra = [known((None,) * s.rank, s.dtype) if isinstance(s, TensorSpec) else s for s in (*first[n:], *second[n:])]
    return (*map(merge, first[:n], second[:n]), *extra)


def _run_forward(xp: Any, pred: Any, *given: Any) -> tuple[Any, ...]:
    *captures, true, false, pairs = given
    n = pairs.true.n_outputs
    if bool(pred):
        outputs = true.run(*captures)
        return (*outputs, *_empty(false.graph.outputs[n:]))
    outputs = false.run(*captures)
    return (*outputs[:n], *_empty(true.graph.outputs[n:]), *outputs[n:])


def _empty(values: Sequence[Any]) -> list[Any]:
    return [np.empty((0,) * v.spec.rank, v.spec.dtype) if isinstance(v.spec, TensorSpec) else None for v in values]


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    pairs: Pairs = attrs[2]
    lopsided = [i for i, (a, b) in enumerate(zip(pairs.true.connected, pairs.false.connected, strict=True)) if a != b]
    zeros_like = tuple([inputs[1 + i] if i in lopsided else None for i in range(len(inputs) - 1)])
    return (pairs, inputs[0], *pairs.residuals(inputs[1:], out), zeros_like)


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    pairs, pred, true_residuals, false_residuals, zeros_like = saved
    seeds = g[: pairs.true.n_outputs]
    wanted = [i for i, (a, b) in enumerate(zip(pairs.true.connected, pairs.false.connected, strict=True)) if needed[1 + i] and (a or b)]
    results: list[Any] = [None] * len(needed)
    if wanted and any(s is not None for s in seeds):
        true = _branch_pull(pairs.true, true_residuals, seeds, wanted, zeros_like)
        false = _branch_pull(pairs.false, false_residuals, seeds, wanted, zeros_like)
        for i, value in zip(wanted, cond(pred, true, false), strict=True):
            results[1 + i] = value
    return tuple(results)


def _branch_pull(
    pair: Pair, residuals: tuple[Any, ...], seeds: tuple[Any, ...], wanted: list[int], zeros_like: tuple[Any, ...]
) -> Callable[[], tuple[Any, ...]]:
    """The backward pass of one branch: a gradient for each wanted capture, zeros where this branch does not use it."""

    def pull() -> tuple[Any, ...]:
        needed = tuple(i in wanted and c for i, c in enumerate(pair.connected))
        given = tuple(s is not None for s in seeds)
        function, targets = pair.backward(needed, given)
        found: dict[int, Any] = {}
        if targets:
            inputs = (*residuals, *[s for s in seeds if s is not None])
            found = dict(zip(targets, dispatch.apply(call, inputs, (function,)), strict=True))
        return tuple([found[i] if i in found else filled(0, zeros_like[i]) for i in wanted])

    return pull


cond_op: Op = defop(
    "cond",
    inputs="*xs:any",
    attrs="true_fn false_fn",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records cond_forward
    maths={"xs": "x̄ = backward of the branch taken"},
)

cond_forward: Op = defop(
    "cond_forward",
    inputs="*xs:any",
    attrs="true_fn false_fn pairs",
    infer=_infer_forward,
    kernel=_run_forward,
    multiple=True,
    higher_order=True,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = backward of the branch taken"},
)

