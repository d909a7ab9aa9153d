"""The gradient and the forward mode of `cond` and `switch`.

The variant that a tape records runs the forward version of the branch taken, which also returns the residuals of its
backward pass. A graph has one list of outputs, so every branch returns places for the residuals of all branches; those
of branches that did not run are empty arrays that nobody reads ("blanks"). The backward pass is again a `cond` or
`switch`, of the backward versions, and so differentiable.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from limelight.control_flow.zeros_spec import ZerosSpec, read_sizes, zeros_spec_of
from limelight.core import dispatch
from limelight.core.op import Op, TapedVariant, defop, get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.graph.ir import Graph, Literal, Node, Value
from limelight.ops.create.literal import constant_op
from limelight.staging.body_tangents import jvp_function, present_tangents, split_tangents, tangent_flags
from limelight.staging.call_gradient import Pair, call, pair_of, watched_mask
from limelight.staging.graph_function import GraphFunction


def branches_of(attrs: tuple[Any, ...]) -> tuple[GraphFunction, ...]:
    """The branches among the parameters of a cond or a switch, which has them in one tuple."""
    branches: tuple[GraphFunction, ...] = attrs[0] if type(attrs[0]) is tuple else attrs[:2]
    return branches


def with_branches(attrs: tuple[Any, ...], branches: Sequence[Any]) -> tuple[Any, ...]:
    """Parameters of a cond or a switch, as `attrs` are, with other branches."""
    return (tuple(branches),) if type(attrs[0]) is tuple else tuple(branches)


class BranchPairs(NamedTuple):
    """The forward/backward pairs of all branches."""

    each: tuple[Pair, ...]
    blanks: tuple[frozenset[int], ...]  # of each branch, the outputs that are blank

    @property
    def n_outputs(self) -> int:
        return self.each[0].n_outputs

    @property
    def connected(self) -> list[bool]:
        return [any(flags) for flags in zip(*[pair.connected for pair in self.each], strict=True)]

    def residuals(self, captures: Sequence[Any], outputs: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The residuals of each branch's backward pass; of branches that did not run, blanks."""
        n = last = self.n_outputs
        of_each = []
        for pair in self.each:
            first, last = last, last + len(pair.forward.graph.outputs) - n
            of_each.append(tuple(pair.residuals(captures, [*outputs[:n], *outputs[first:last]])))
        return of_each

    def padded(self, branches: Sequence[GraphFunction]) -> list[GraphFunction]:
        """The forward versions, with blanks for the residuals of the other branches.

        The blanks of a branch are blanks of its forward version, too.
        """
        n = self.n_outputs
        extra = [pair.forward.graph.outputs[n:] for pair in self.each]
        return [
            _padded(pair.forward.graph, n, sum(extra[:i], ()), sum(extra[i + 1 :], ()), branch.blanks)
            for i, (pair, branch) in enumerate(zip(self.each, branches, strict=True))
        ]


def _padded(
    graph: Graph, n: int, before: Sequence[Value], after: Sequence[Value], blanks: frozenset[int]
) -> GraphFunction:
    """`graph` with blanks like `before` and `after` around its outputs from the n-th on.

    Args:
        graph: the forward version of a branch.
        n: the number of the branch's own outputs.
        before: residuals of the branches before this one.
        after: residuals of the branches after this one.
        blanks: the blanks that the branch has already.
    """
    blank_nodes = {
        value: Node(_blank(value.spec), (), (_blank_param(value.spec),), (_blank_spec(value.spec),))
        for value in (*before, *after)
    }
    outputs = [
        *graph.outputs[:n],
        *[blank_nodes[value].outputs[0] for value in before],
        *graph.outputs[n:],
        *[blank_nodes[value].outputs[0] for value in after],
    ]
    nodes = [*graph.nodes, *blank_nodes.values()]
    names, captures = graph.input_names, graph.n_captures
    padded = GraphFunction(Graph(graph.name, graph.inputs, nodes, outputs, input_names=names, n_captures=captures))
    padded.blanks = blanks | frozenset([*range(n, n + len(before)), *range(len(outputs) - len(after), len(outputs))])
    return padded


def _blank(spec: Spec) -> Op:
    return constant_op if isinstance(spec, TensorSpec) else nothing_op


def _blank_spec(spec: Spec) -> Spec:
    return known((0,) * spec.rank, spec.dtype) if isinstance(spec, TensorSpec) else spec


def _blank_param(spec: Spec) -> Any:
    return Literal(np.zeros((0,) * spec.rank, spec.dtype)) if isinstance(spec, TensorSpec) else spec


def taped_branches(
    forward: str, inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1
) -> TapedVariant | None:
    watched = watched_mask(inputs[1:])
    branches = branches_of(attrs)
    pairs = BranchPairs(tuple([pair_of(f, watched) for f in branches]), tuple([f.blanks for f in branches]))
    if not any(pairs.connected):
        return None
    n = pairs.n_outputs
    return TapedVariant(
        get(forward), (*with_branches(attrs, pairs.padded(branches)), pairs), lambda outputs: outputs[:n]
    )


def save_branches(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    pairs: BranchPairs = attrs[-1]
    connected = zip(inputs[1:], pairs.connected, strict=True)
    zeros = tuple([zeros_spec_of(x) if c else None for x, c in connected])
    return (pairs, inputs[0], *pairs.residuals(inputs[1:], out), zeros)


def pull_branches(choose: Any, g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    pairs, decides, *residuals, zeros = saved
    halves: list[tuple[GraphFunction, tuple[int, ...], tuple[Any, ...]]] = []
    for pair, kept, blanks in zip(pairs.each, residuals, pairs.blanks, strict=True):
        wanted = tuple(n and c for n, c in zip(needed[1:], pair.connected, strict=True))
        seeds = [None if j in blanks else seed for j, seed in enumerate(g[: pairs.n_outputs])]
        backward = pair.backward(wanted, tuple(seed is not None for seed in seeds))
        halves.append((*backward, (*kept, *[seed for seed in seeds if seed is not None])))
    read_sizes(zeros)
    targets = sorted({i for _, inputs, _ in halves for i in inputs})
    results: list[Any] = [None] * len(needed)
    if targets:
        branches = [
            functools.partial(_pull_branch, backward, inputs, operands, targets, zeros)
            for backward, inputs, operands in halves
        ]
        for i, value in zip(targets, choose(decides, branches), strict=True):
            results[1 + i] = value
    return tuple(results)


def _pull_branch(
    backward: GraphFunction,
    inputs: Sequence[int],
    operands: tuple[Any, ...],
    targets: Sequence[int],
    zeros: Sequence[ZerosSpec],
) -> tuple[Any, ...]:
    """The backward pass of one branch: a gradient for each of `targets`, zeros where this branch does not use it.

    Args:
        backward: the backward function of the branch.
        inputs: the captures that its results are the gradients of.
        operands: its residuals and the gradients of its outputs.
        targets: the captures that any branch has gradients of.
        zeros: specs of zeros for all captures.
    """
    values = dispatch.apply(call, operands, (backward,)) if inputs else ()
    gradients = dict(zip(inputs, values, strict=True))
    return tuple([gradients[i] if i in gradients else zeros[i].zeros() for i in targets])


def jvp_branches(op: str, inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> Any:
    """Forward mode: all branches return tangents of whatever moves in one of them, zeros where nothing does.

    Args:
        op: "cond" or "switch".
        inputs: the choice, then captures.
        tangents: their tangents.
        attrs: the parameters of the op, or of the variant that a tape records.
    """
    branches = branches_of(attrs)
    n = len(branches[0].graph.outputs)
    moving = tangent_flags(tangents[1:])
    reached = {i for branch in branches for i in jvp_function(branch, moving).moving}
    forced = tuple([i in reached for i in range(n)])
    functions = tuple([jvp_function(branch, moving, forced).function for branch in branches])
    places = [i for i in range(n) if forced[i]]
    for branch, wider in zip(branches, functions, strict=True):
        wider.blanks = branch.blanks | {n + k for k, i in enumerate(places) if i in branch.blanks}
    results = dispatch.apply(get(op), (*inputs, *present_tangents(tangents)), with_branches(attrs, functions))
    return split_tangents(results, n, places)


nothing_op: Op = defop(
    "nothing",
    inputs="",
    attrs="spec",
    infer=lambda spec: spec,
    kernel=lambda xp, spec: None,
    why_no_gradient="it stands where a branch that did not run would have left an opaque value",
)
