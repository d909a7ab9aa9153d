"""Batching rules of staged functions, branches and loops: their graphs for many examples at once.

The graph is traced once more under a batcher, for a pattern of inputs that differ between examples, and kept with the
function. Where a batch decides, both branches run and each example takes its own; a loop goes on while one example
does, and the others keep what they have. So branches and bodies with effects are run example by example instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from limelight.batching import Batcher, Shared, Site, rule
from limelight.batching.batched_tensor import batched
from limelight.batching.rule_table import front, repeated
from limelight.control_flow.branch_gradient import branches_of, with_branches
from limelight.control_flow.cond import cond_op
from limelight.control_flow.masked_loops import guarded, has_loops, replay_while
from limelight.control_flow.switch import checked_index, switch_op
from limelight.control_flow.while_loop_gradient import while_forward
from limelight.core import device_scopes, dispatch
from limelight.core.dtypes import bool_
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.graph.ir import Graph
from limelight.staging.call_gradient import call
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

Flags = tuple[bool, ...]
MOST: Final = 32
"""Versions of a graph for many examples that are kept: each number of examples has one, or more."""


class Many(NamedTuple):
    """A graph function for many examples, which of its outputs differ between them, and which ops it has in loops.

    One that is `guarded` has another input: which examples want its results.
    """

    function: GraphFunction
    mask: Flags
    looped: dict[str, int]
    guarded: bool = False


def many(count: int | None, function: Any, mask: Flags, forced: Flags = ()) -> Many | None:
    """`function` for inputs of which those in `mask` have the examples first, built once; None if it cannot be had.

    `count`: how many there are, None where only the run tells. Outputs that are `forced` have them in any case.
    """
    if not any(mask) and not any(forced):
        return Many(function, (False,) * len(function.graph.outputs), {})

    def make() -> Many | None:
        made = _trace(function.graph, mask, count, forced, lambda inputs: replay(function.graph, inputs))
        if made is not None:
            made.function.blanks = function.blanks
        return made

    found: Many | None = _kept(function.pairs, ("many", mask, count, forced), make)
    return found


def _kept(pairs: dict[Any, Any], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make` makes, kept under `key`; of the kind that `key` begins with only the last few are."""
    if key in pairs:
        with suppress(KeyError):  # another thread may just have let it go
            return pairs[key]
    made = pairs[key] = make()
    alike = [other for other in tuple(pairs) if type(other) is tuple and other[:1] == key[:1]]
    for other in alike[:-MOST]:
        pairs.pop(other, None)
    return made


def count_of(site: Site) -> int | None:
    return site.size if isinstance(site.size, int) else None


def note(site: Site, *functions: Many) -> None:
    """Tells of the ops that these functions run example by example."""
    for function in functions:
        for name, times in function.looped.items():
            site.batcher.looped[name] = site.batcher.looped.get(name, 0) + times


def _trace(
    like: Graph,
    mask: Flags,
    count: int | None,
    forced: Flags,
    body: Callable[[list[Any]], list[Any]],
) -> Many | None:
    """`body` for many examples, with inputs as `like` has them."""
    name, specs = like.name, [value.spec for value in like.inputs]
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"many_{name}") as tracer:
        inputs = [tracer.add_input(_wider(s, count) if m else s) for s, m in zip(specs, mask, strict=True)]
        if count is not None:
            size: Any = count
        else:
            size = next(x for x, m in zip(inputs, mask, strict=True) if m).sizes()[0]
        with Batcher(size, f"vectorize({name})") as batcher:
            outputs = body([batched(x, batcher) if m else x for x, m in zip(inputs, mask, strict=True)])
        if any(batcher.owns(y) and not isinstance(y, Tensor) for y in outputs):
            return None  # opaque values for each example are no value of a graph
        differing = tuple([batcher.owns(y) or (i < len(forced) and forced[i]) for i, y in enumerate(outputs)])
        values = [_value(y, d, batcher, size) for y, d in zip(outputs, differing, strict=True)]
        return Many(GraphFunction(tracer.finish(values)), differing, batcher.looped)


def _value(y: Any, differs: bool, batcher: Batcher, size: Any) -> Any:
    return batcher.inside(y) if batcher.owns(y) else repeated(y, size) if differs else y


def _wider(spec: Spec, count: int | None) -> Spec:
    assert isinstance(spec, TensorSpec)
    return known((count, *spec.shape), spec.dtype)


def shown(results: Sequence[Any], mask: Flags) -> tuple[Any, ...]:
    return tuple([y if m else Shared(y) for y, m in zip(results, mask, strict=True)])


def _pure(*functions: Any) -> bool:
    """Whether they may run where only some examples ask for it."""
    return not any(f.effects.writes or f.effects.chains for f in functions)


def tensors_only(site: Site) -> bool:
    return all(isinstance(x, Tensor) for x, m in zip(site.inputs, site.mask, strict=True) if m)


@rule("call", "call_forward")
def _call(site: Site) -> Any:
    found = many(count_of(site), site.attrs[0], site.mask) if tensors_only(site) else None
    if found is None:
        return NotImplemented
    note(site, found)
    return shown(dispatch.apply(call, site.inputs, (found.function,)), found.mask)


@rule("cond", "cond_forward", "switch", "switch_forward")
def _branches(site: Site) -> Any:
    if not tensors_only(site):
        return NotImplemented
    branches, mask, count = branches_of(site.attrs), site.mask[1:], count_of(site)
    sides = [many(count, branch, mask) for branch in branches]
    found = [side for side in sides if side is not None]
    if len(found) < len(sides):
        return NotImplemented
    if site.mask[0]:
        return _select(site, branches)
    forced = tuple([any(flags) for flags in zip(*[side.mask for side in found], strict=True)])
    sides = [many(count, branch, mask, forced) for branch in branches]
    found = [side for side in sides if side is not None]
    assert len(found) == len(sides), "they could be had without forcing"
    note(site, *found)
    params = with_branches(site.attrs, [side.function for side in found])
    op = cond_op if len(params) == 2 else switch_op
    return shown(dispatch.apply(op, site.inputs, params), forced)


def _select(site: Site, branches: Sequence[Any]) -> Any:
    """All branches, and from each the examples that chose it. What only one of them has is taken as it is."""
    if not _pure(*branches) or any(not isinstance(v.spec, TensorSpec) for b in branches for v in b.graph.outputs):
        return NotImplemented
    sides = _sides(site, branches)
    note(site, *sides)
    decides, *captures = site.inputs
    decides = decides.reshape((-1,))
    if decides.dtype == bool_:
        chosen = [decides, ~decides]
    else:
        decides = dispatch.apply(checked_index, (decides,), (len(branches),))
        chosen = [decides == b for b in range(len(branches))]
    found = []
    results = [_for_all(site, s, [*captures, c] if s.guarded else captures) for s, c in zip(sides, chosen, strict=True)]
    for i, column in enumerate(zip(*results, strict=True)):
        *others, last = [b for b in range(len(branches)) if i not in branches[b].blanks] or [0]
        y = column[last]
        for b in reversed(others):
            y = chosen[b].reshape((-1,) + (1,) * (y.ndim - 1)).where(column[b], y)
        found.append(y)
    return tuple(found)


def _sides(site: Site, branches: Sequence[Any]) -> list[Many]:
    """Branches for many examples. One with a loop, which may not end for examples of another branch, is guarded."""
    mask, count, sides = site.mask[1:], count_of(site), []
    for branch in branches:
        loops = has_loops(branch)
        side = many(count, guarded(branch), (*mask, True)) if loops else many(count, branch, mask)
        assert side is not None, "it could be had without a guard"
        sides.append(side._replace(guarded=loops))
    return sides


def _for_all(site: Site, side: Many, captures: Sequence[Any]) -> list[Any]:
    n = len(side.function.graph.inputs)
    results = dispatch.apply(call, tuple(captures[len(captures) - n :]), (side.function,))
    return [y if m else repeated(y, site.size) for y, m in zip(results, side.mask, strict=True)]


# Loops


@rule("while_loop", "while_detached", "while_forward")
def _while(site: Site) -> Any:
    condition, body, n, limit = site.attrs[:4]
    if not tensors_only(site):
        return NotImplemented
    mask: Flags | None = site.mask
    before: Flags | None = None
    while mask != before and mask is not None:  # what differs after an iteration differs before the next one
        before, mask = mask, _after(site, body, mask, n)
    asked = None if mask is None else many(count_of(site), condition, mask)
    if mask is None or asked is None:
        return NotImplemented
    if asked.mask[0]:
        return _masked(site, tuple([m or i < n for i, m in enumerate(mask)]))
    forced = tuple([i < n and mask[i] for i in range(len(body.graph.outputs))])
    step = many(count_of(site), body, mask, forced)
    assert step is not None, "it could be had without forcing"
    note(site, asked, step)
    inputs = tuple([site.lead(i) if m else x for i, (x, m) in enumerate(zip(site.inputs, mask, strict=True))])
    if site.op != "while_forward":
        return shown(dispatch.apply(site.op, inputs, (asked.function, step.function, n, limit)), mask[:n])
    results = dispatch.apply(while_forward, inputs, (asked.function, step.function, n, limit, None))
    return (*shown(results[:n], mask[:n]), Shared(results[n]), *_stacks(results[n + 1 :], step.mask[n:]))


def _after(site: Site, body: Any, mask: Flags, n: int) -> Flags | None:
    found = many(count_of(site), body, mask)
    return None if found is None else tuple([m or (i < n and found.mask[i]) for i, m in enumerate(mask)])


def _stacks(stacks: Sequence[Any], mask: Flags) -> list[Any]:
    """The stacks have iterations first, then examples; examples shall come first."""
    return [front(stack, 1) if m else Shared(stack) for stack, m in zip(stacks, mask, strict=True)]


def _masked(site: Site, mask: Flags) -> Any:
    """A loop that goes on while any example does; those that are done keep their values, and rest."""
    condition, body, n, limit = site.attrs[:4]
    if not _pure(condition, body):
        return NotImplemented
    recorded = site.op == "while_forward"
    key = ("masked", body, mask, count_of(site), recorded)
    going, step = _kept(condition.pairs, key, lambda: _masked_functions(site, mask, recorded))
    note(site, going, step)
    inputs = tuple([site.lead(i) if m else x for i, (x, m) in enumerate(zip(site.inputs, mask, strict=True))])
    if not recorded:
        return dispatch.apply(site.op, inputs, (going.function, step.function, n, limit))
    results = dispatch.apply(while_forward, inputs, (going.function, step.function, n, limit, None))
    return (*results[:n], *_stacks(results[n + 1 :], step.mask[n:]))


def _masked_functions(site: Site, mask: Flags, recorded: bool) -> tuple[Many, Many]:
    """Whether any example goes on, and one step for those that do, which of a recorded loop says which these are."""
    condition, body, n = site.attrs[:3]

    def goes_on(given: list[Any]) -> Any:
        return replay(condition.graph, given)[0].reshape(())

    def step(given: list[Any]) -> list[Any]:
        going = goes_on(given)
        results = replay_while(going, body, given) if has_loops(body) else replay(body.graph, given)
        variables = [going.where(new, old) for new, old in zip(results[:n], given[:n], strict=True)]
        return [*variables, going, *results[n:]] if recorded else variables

    count = count_of(site)
    asked = _trace(condition.graph, mask, count, (), lambda given: [goes_on(given)])
    stepping = _trace(body.graph, mask, count, (True,) * (n + recorded), step)
    assert asked is not None, "a condition is a tensor"
    assert stepping is not None, "it could be had without a mask"
    graph = asked.function.graph
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(graph.name) as tracer:
        inputs = [tracer.add_input(value.spec) for value in graph.inputs]
        any_goes_on = GraphFunction(tracer.finish([replay(graph, inputs)[0].any()]))
    return asked._replace(function=any_goes_on), stepping


# Gradients of the user's own


class _ManyRule(NamedTuple):
    """A gradient function that was written for one example, for all: it goes on where the vectorised call was."""

    one: Any
    sizes: tuple[Any, ...]
    mask: Flags
    batcher: Batcher

    def __call__(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        batcher = self.batcher
        with batcher.again():
            given = [None if g is None else batched(g, batcher) for g in gradients]
            found = [None if g is None else as_tensor(g) for g in self.one(given, self.sizes, variables)]
        return [
            None if g is None else self._of_all(g, batcher.value_of(g), m)
            for g, m in zip(found, self.mask, strict=True)
        ]

    @property
    def keeps(self) -> tuple[Any, ...]:
        """What it keeps alive, for counting bytes."""
        kept = getattr(self.one, "keeps", ())
        return tuple([self.batcher.inside(x) if self.batcher.owns(x) else x for x in kept])

    def _of_all(self, g: Tensor, value: Tensor | None, differs: bool) -> Tensor:
        """What all examples share gets the sum of their gradients."""
        if differs:
            return repeated(g, self.batcher.size) if value is None else value
        if value is None:
            value = repeated(g, self.batcher.size)
        return value.sum(0)


@rule("custom_gradient")
def _custom(site: Site) -> Any:
    (step,) = site.attrs
    first = len(site.inputs) - step.n_outputs
    inputs = [site.lead(i) if i >= first else x for i, x in enumerate(site.inputs)]
    wider = step._replace(
        rule=_ManyRule(step.rule, step.sizes, site.mask[:first], site.batcher.origin),
        sizes=tuple([y.sizes() for y in inputs[first:]]),
    )
    return dispatch.apply(site.op, tuple(inputs), (wider,))
