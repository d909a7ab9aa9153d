"""The gradient of a scan: a scan in the other direction.

The variant that a tape records is a scan, too, whose body has more results: what each step's gradient needs. So every
order of derivative comes from one rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from limelight import dispatch, dtypes
from limelight.errors import GradientError
from limelight.graph.ir import Graph
from limelight.registry import Op, Taped, defop, get
from limelight.spec import Spec, known
from limelight.staging.concrete import GraphFunction
from limelight.staging.gradient import Pair, pair_of
from limelight.staging.invariants import Place, Unchanging, unchanging_of
from limelight.staging.scan_op import infer_scan, passes, positions, run_scan, scan_op
from limelight.staging.stacks import alike, kind_of, watched_in_loop, zeros_on
from limelight.tape import INEXACT, filled
from limelight.trace import Tracer, replay


class Record(NamedTuple):
    """What a scan that is recorded returns besides its results: stacks of `kept`.

    `derived`: what can be had from another stack, since what a step hands on is what the next one begins with: that
    stack, and whether a row of it is of the same step (0), of the one before (-1) or of the next one (1).
    """

    pair: Pair
    kept: tuple[Place, ...]
    derived: dict[Place, tuple[Place, int]]
    unchanging: Unchanging | None


def _recorded(body: GraphFunction, n: int, m: int, watched: tuple[bool, ...]) -> tuple[Record, GraphFunction]:
    """The record for a pattern of watched inputs and the body that goes with it, built once."""
    key = ("scan", n, m, watched)
    found: tuple[Record, GraphFunction] | None = body.pairs.get(key)
    if found is None:
        pair = pair_of(body, watched)
        graph = pair.forward.graph
        values = {"input": graph.inputs, "output": graph.outputs}
        sources = [(where, i) for where, i in pair.sources if where == "output" or i < n]
        still = unchanging_of(graph, n + m, sources)
        elsewhere = {("output", i) for i in range(n, pair.n_outputs)} | set(still.places if still else ())
        derived = _derived([place for place in sources if place not in elsewhere], graph, n, pair.n_outputs)
        kept = tuple([place for place in sources if place not in elsewhere and place not in derived])
        outputs = [*graph.outputs[: pair.n_outputs], *[values[where][i] for where, i in kept]]
        wider = Graph(graph.name, graph.inputs, graph.nodes, outputs, input_names=graph.input_names)
        found = body.pairs[key] = (Record(pair, kept, derived, still), GraphFunction(wider))
    return found


def _derived(sources: Sequence[Place], graph: Graph, n: int, n_outputs: int) -> dict[Place, tuple[Place, int]]:
    """Which values of carries are in a result of the scan already, or in a stack of what steps begin with."""
    twins = {i: j for i in range(n) for j in range(n, n_outputs) if graph.outputs[j] is graph.outputs[i]}
    found: dict[Place, tuple[Place, int]] = {}
    for where, i in sources:
        if i < n and i in twins:
            found[where, i] = ("output", twins[i]), 0 if where == "output" else -1
        elif i < n and where == "output" and ("input", i) in sources:
            found[where, i] = ("input", i), 1
    return found


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> Taped | None:
    body, n, m, length, reverse = attrs[:5]
    record, wider = _recorded(body, n, m, watched_in_loop(inputs, n, mask))
    if not any(record.pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # a carry that the body overwrites goes through untouched when there are no steps
    shown = record.pair.n_outputs
    return Taped(scan_forward, (wider, n, m, length, reverse, record), lambda outputs: outputs[:shown])


class Saved(NamedTuple):
    """What the backward pass starts from."""

    params: tuple[Any, ...]
    operands: dict[int, Any]  # rows and captures that it reads, by the number of the input
    stacks: dict[Place, Any]
    ends: dict[Place, Any]  # the row that a derived stack has and the other one lacks
    kinds: tuple[Any, ...]  # sizes, dtype and device of captured inputs
    carries: tuple[Any, ...]  # the same of the carry
    steps: Any  # of a scan without anything else to tell


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> Saved:
    n, m, length = attrs[1:4]
    record: Record = attrs[5]
    pair = record.pair
    needed = {i for where, i in pair.sources if where == "input" and i >= n}
    if record.unchanging is not None:
        needed.update(record.unchanging.reads)
    read = [*pair.sources, *[place for place, _ in record.derived.values()]]
    stacks = {("output", i): out[i] for where, i in read if where == "output" and n <= i < pair.n_outputs}
    stacks.update(zip(record.kept, out[pair.n_outputs :], strict=True))
    known_to = zip(inputs, pair.connected, strict=True)
    kinds = tuple([kind_of(x) if i >= n + m and c else None for i, (x, c) in enumerate(known_to)])
    ends = {place: (inputs if step < 0 else out)[place[1]] for place, (_, step) in record.derived.items() if step}
    operands = {i: inputs[i] for i in needed}
    steps = None if _read_by(record, n + m)[0] else length if length is not None else inputs[n].sizes()[0]
    return Saved(attrs, operands, stacks, ends, kinds, tuple(map(kind_of, out[:n])), steps)


def _pull(g: tuple[Any, ...], saved: Saved, needed: tuple[bool, ...]) -> tuple[Any, ...]:
    _, n, _, _, reverse, record = saved.params
    pair: Pair = record.pair
    if any(x is not None for x in g[pair.n_outputs :]):
        raise GradientError("scan: a gradient of what a scan has kept for its own gradient; use a tape inside another")
    wanted = tuple([i < n or (w and c) for i, (w, c) in enumerate(zip(needed, pair.connected, strict=True))])
    shown = tuple([i for i in range(n, pair.n_outputs) if g[i] is not None])
    back = _backward(saved.params, wanted, shown)
    fixed = {} if record.unchanging is None else record.unchanging.values(saved.operands)
    start = [zeros_on(*saved.carries[i]) if g[i] is None else g[i] for i in back.carried]
    start += [zeros_on(*saved.kinds[i]) for i in back.captured]
    rows = [g[i] for i in shown] + [_found(saved, fixed, place) for place in back.rows]
    rows = rows or [positions(saved.steps)]
    captures = [_found(saved, fixed, place) for place in back.captures]
    params = (back.body, len(start), len(rows), None, not reverse)
    found = dispatch.apply(scan_op, (*start, *rows, *captures), params)
    places = [*back.carried, *back.captured, *back.scanned]
    gradients = dict(zip(places, found, strict=True))
    return tuple([gradients.get(i) if w else None for i, w in enumerate(needed)])


def _found(saved: Saved, fixed: dict[Place, Any], place: Place) -> Any:
    if place in fixed:
        return fixed[place]
    if place in saved.stacks:
        return saved.stacks[place]
    record, reverse = saved.params[5], saved.params[4]
    if place not in record.derived:
        return saved.operands[place[1]]
    other, step = record.derived[place]
    stack = saved.stacks[other]
    if step == 0:
        return stack
    end = saved.ends[place].expand_dims(0)
    later = (step > 0) != reverse
    return _joined(stack, end)[1:] if later else _joined(end, stack)[:-1]


def _joined(a: Any, b: Any) -> Any:
    return dispatch.apply(get("concat"), (a, b), (0,))


class Backward(NamedTuple):
    """The body of the backward scan, and what its operands and results belong to."""

    body: GraphFunction
    carried: tuple[int, ...]
    captured: tuple[int, ...]
    scanned: tuple[int, ...]
    rows: tuple[Place, ...]
    captures: tuple[Place, ...]


def _backward(params: tuple[Any, ...], wanted: tuple[bool, ...], shown: tuple[int, ...]) -> Backward:
    body, n, m = params[:3]
    key = ("scan back", n, m, wanted, shown)
    found: Backward | None = body.pairs.get(key)
    if found is None:
        found = body.pairs[key] = _trace_backward(params, wanted, shown)
    return found


def _trace_backward(params: tuple[Any, ...], wanted: tuple[bool, ...], shown: tuple[int, ...]) -> Backward:
    body, n, m = params[:3]
    record: Record = params[5]
    pair, graph = record.pair, body.graph
    carried = tuple([i for i in range(n) if graph.outputs[i].spec.dtype in INEXACT])
    given = tuple([j in carried or j in shown for j in range(pair.n_outputs)])
    needed = tuple([w and c for w, c in zip(wanted, pair.connected, strict=True)])
    function, targets = pair.backward(needed, given)
    captured = tuple([i for i in targets if i >= n + m])
    scanned = tuple([i for i in targets if n <= i < n + m])
    rows, captures = _read_by(record, n + m)
    with dispatch.fresh_stack(), dispatch.device(None), Tracer(f"backward_{graph.name}") as tracer:
        tracer.scope = "gradient/"
        after = [tracer.add_input(alike(graph.outputs[i].spec), f"gradient{i}") for i in carried]
        totals = [tracer.add_input(alike(graph.inputs[i].spec), f"total{i}") for i in captured]
        of_rows = [tracer.add_input(graph.outputs[j].spec, f"gradient{j}") for j in shown]
        values = {place: tracer.add_input(_spec_at(pair, place), f"saved{k}") for k, place in enumerate(rows)}
        if not shown and not rows:
            tracer.add_input(known((), dtypes.int32), "position")
        values |= {place: tracer.add_input(_spec_at(pair, place), f"kept{k}") for k, place in enumerate(captures)}
        seeds = dict(zip((*carried, *shown), (*after, *of_rows), strict=True))
        residuals = [values[place] for place in pair.sources]
        gradients = replay(function.graph, [*residuals, *[seeds[j] for j in sorted(seeds)]])
        found = dict(zip(targets, gradients, strict=True))
        before = [found[i] if i in found else filled(0, x) for i, x in zip(carried, after, strict=True)]
        sums = [total + found[i] for i, total in zip(captured, totals, strict=True)]
        result = GraphFunction(tracer.finish([*before, *sums, *[found[i] for i in scanned]]))
    return Backward(result, carried, captured, scanned, rows, captures)


def _read_by(record: Record, first: int) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """What the backward body reads: row by row, and at every step the same."""
    rows: dict[Place, None] = {}
    captures: dict[Place, None] = {}
    fixed = record.unchanging.places if record.unchanging else ()
    for place in record.pair.sources:
        still = place in fixed or (place[0] == "input" and place[1] >= first)
        (captures if still else rows)[place] = None
    return tuple(rows), tuple(captures)


def _spec_at(pair: Pair, place: Place) -> Spec:
    graph = pair.forward.graph
    where, i = place
    return (graph.inputs if where == "input" else graph.outputs)[i].spec


scan_forward: Op = defop(
    "scan_forward",
    inputs="*xs:any",
    attrs="body n_carry n_xs length reverse record",
    infer=lambda *given: infer_scan(*given[:-1]),
    kernel=lambda *given: run_scan(*given[:-1]),
    multiple=True,
    higher_order=True,
    passes=passes,
    taped=_taped,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ₖ = backward of the body at step k, from the last"},
)

scan_op.taped = _taped
