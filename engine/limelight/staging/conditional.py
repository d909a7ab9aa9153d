"""`cond`: one of two functions, chosen by a value (paper section 4.1)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from limelight import dispatch, shapes
from limelight.batching import Batched
from limelight.errors import ControlFlowError
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.ops.literal import constant_op
from limelight.registry import Op, Taped, defop
from limelight.spec import Spec, TensorSpec, known
from limelight.staging.branches import Traced, close, is_condition, require_callable, trace_branch, tracing
from limelight.staging.concrete import GraphFunction
from limelight.staging.gradient import Pair, call, infer_outputs, pair_of, watched_mask
from limelight.tape import zeros
from limelight.tensor import TensorLike, as_tensor
from limelight.trace import SymbolicTensor


def cond(pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """`true_fn()` if `pred` else `false_fn()`, also where `pred` is known only when a graph runs.

    `pred`: a boolean with one element. Only the chosen branch runs, effects and errors included; while tracing both
    are traced, and must return the same structure with the same dtypes (ControlFlowError names the output that
    differs). Differentiable, to any order. Raises ArgumentError for a branch that cannot be called.

    >>> import limelight as ll
    >>> @ll.function
    ... def magnitude(x):
    ...     return ll.cond(x > 0, lambda: x, lambda: -x)
    >>> magnitude(ll.constant(-2.0)).item()
    2.0
    """
    require_callable("cond", true_fn=true_fn, false_fn=false_fn)
    pred = as_tensor(pred)
    if not is_condition(pred.spec):
        raise ControlFlowError(f"cond: pred must be a boolean with one element, got {pred.spec}")
    if not isinstance(pred, Batched) and (tracing() is None or not isinstance(pred, SymbolicTensor)):
        return true_fn() if pred else false_fn()
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
        )
    for i, (a, b) in enumerate(zip(true.specs, false.specs, strict=True)):
        if isinstance(a, TensorSpec) and isinstance(b, TensorSpec) and (a.dtype != b.dtype or a.rank != b.rank):
            raise ControlFlowError(
                f"cond: output {i} is {a} from true_fn and {b} from false_fn; dtypes and ranks must agree, "
                "write ll.astype or ll.reshape in one branch"
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

    def residuals(self, captures: Sequence[Any], outputs: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What each branch's backward starts from; of the branch that did not run, empty places."""
        n = self.true.n_outputs
        first = len(self.true.forward.graph.outputs)
        return (
            tuple(self.true.residuals(captures, outputs[:first])),
            tuple(self.false.residuals(captures, [*outputs[:n], *outputs[first:]])),
        )

    def padded(self) -> tuple[GraphFunction, GraphFunction]:
        """The forward versions with the same outputs: their own residuals, and empty places for the other's."""
        n = self.true.n_outputs
        extra = [pair.forward.graph.outputs[n:] for pair in self]
        return _padded(self.true.forward.graph, n, (), extra[1]), _padded(self.false.forward.graph, n, extra[0], ())


def _padded(graph: Graph, n: int, before: Sequence[Value], after: Sequence[Value]) -> GraphFunction:
    """`graph` with empty places before and after its outputs from the n-th on."""
    blanks = {
        value: Node(_blank(value.spec), (), (_blank_param(value.spec),), (_blank_spec(value.spec),))
        for value in (*before, *after)
    }
    outputs = [
        *graph.outputs[:n],
        *[blanks[value].outputs[0] for value in before],
        *graph.outputs[n:],
        *[blanks[value].outputs[0] for value in after],
    ]
    nodes = [*graph.nodes, *blanks.values()]
    names, captures = graph.input_names, graph.n_captures
    padded = GraphFunction(Graph(graph.name, graph.inputs, nodes, outputs, input_names=names, n_captures=captures))
    padded.blanks = frozenset([*range(n, n + len(before)), *range(len(outputs) - len(after), len(outputs))])
    return padded


def _blank(spec: Spec) -> Op:
    return constant_op if isinstance(spec, TensorSpec) else nothing_op


def _blank_spec(spec: Spec) -> Spec:
    return known((0,) * spec.rank, spec.dtype) if isinstance(spec, TensorSpec) else spec


def _blank_param(spec: Spec) -> Any:
    return Literal(np.empty((0,) * spec.rank, spec.dtype)) if isinstance(spec, TensorSpec) else spec


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Taped | None:
    watched = watched_mask(inputs[1:])
    pairs = Pairs(pair_of(attrs[0], watched), pair_of(attrs[1], watched))
    if not any(pairs.true.connected + pairs.false.connected):
        return None
    n = pairs.true.n_outputs
    return Taped(cond_forward, (*pairs.padded(), pairs), lambda outputs: outputs[:n])


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    pairs: Pairs = attrs[2]
    connected = map(any, zip(pairs.true.connected, pairs.false.connected, strict=True))
    sizes = tuple([(x.sizes(), x.dtype) if c else None for x, c in zip(inputs[1:], connected, strict=True)])
    return (pairs, inputs[0], *pairs.residuals(inputs[1:], out), sizes)


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    pairs, pred, *residuals, sizes = saved
    seeds = g[: pairs.true.n_outputs]
    given = tuple(s is not None for s in seeds)
    halves: list[tuple[GraphFunction, tuple[int, ...], tuple[Any, ...]]] = []
    for pair, kept in zip(pairs, residuals, strict=True):
        wanted = tuple(n and c for n, c in zip(needed[1:], pair.connected, strict=True))
        halves.append((*pair.backward(wanted, given), (*kept, *[s for s in seeds if s is not None])))
    targets = sorted({i for _, found, _ in halves for i in found})
    results: list[Any] = [None] * len(needed)
    if targets:
        true, false = [
            functools.partial(_branch_pull, backward, found, operands, targets, sizes)
            for backward, found, operands in halves
        ]
        for i, value in zip(targets, cond(pred, true, false), strict=True):
            results[1 + i] = value
    return tuple(results)


def _branch_pull(
    backward: GraphFunction,
    found: Sequence[int],
    operands: tuple[Any, ...],
    targets: Sequence[int],
    sizes: Sequence[Any],
) -> tuple[Any, ...]:
    """The backward pass of one branch: a gradient for each target, zeros where this branch does not use it."""
    values = dispatch.apply(call, operands, (backward,)) if found else ()
    gradients = dict(zip(found, values, strict=True))
    return tuple([gradients[i] if i in gradients else zeros(*sizes[i]) for i in targets])


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
    infer=lambda *given: _infer(*given[:-1]),
    kernel=lambda *given: _run(*given[:-1]),
    multiple=True,
    higher_order=True,
    taped=_taped,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = backward of the branch taken"},
)

nothing_op: Op = defop(
    "nothing",
    inputs="",
    attrs="spec",
    infer=lambda spec: spec,
    kernel=lambda xp, spec: None,
    why_no_gradient="it stands where a branch that did not run would have left an opaque value",
)
