"""The gradient of a loop that is recorded: a scan over what it has kept, in the other direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, filled
from limelight.control_flow.loop_constants import Place
from limelight.control_flow.loop_dependence import influences, reached
from limelight.control_flow.loop_residuals import Record
from limelight.control_flow.ragged_rows import cropped, either, kept_if
from limelight.control_flow.stacked_rows import positions
from limelight.control_flow.zeros_spec import alike, kind_of, look_up, zeros_on
from limelight.core import device_scopes, dispatch, dtypes, shapes
from limelight.core.op import get
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.errors import GradientError
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay


class RecordedLoop(NamedTuple):
    """What a loop was: a body that hands on `n` values and gets `m` rows besides, in this direction."""

    body: GraphFunction
    n: int
    m: int
    reverse: bool
    record: Record


class Saved(NamedTuple):
    """What the backward pass starts from."""

    loop: RecordedLoop
    operands: dict[int, Any]  # rows and captures that it reads, by the number of the input
    stacks: dict[Place, Any]
    ends: dict[Place, Any]  # the row that a derived stack has and the other one lacks
    kinds: tuple[Any, ...]  # sizes, dtype and device of rows and captured inputs
    carries: tuple[Any, ...]  # the same of the carry
    steps: Any  # of a scan without anything else to tell
    live: Any  # of a `while_loop`: a true row for each step
    known_steps: int | None  # how many steps there are, where their number is known


def saved_of(loop: RecordedLoop, inputs: Sequence[Any], out: Sequence[Any], steps: Any, live: Any = None) -> Saved:
    """What is kept of a loop that has just run; `out` are the last carry, then stacks. `steps`: how many, if asked."""
    _, n, m, _, record = loop
    pair = record.pair
    needed = {i for where, i in pair.sources if where == "input" and i >= n}
    if record.unchanging is not None:
        needed.update(record.unchanging.reads)
    read = [*pair.sources, *[place for place, _ in record.derived.values()], *record.sizes.values()]
    stacks = {("output", i): out[i] for where, i in read if where == "output" and n <= i < pair.n_outputs}
    stacks.update(zip(record.kept, out[pair.n_outputs :], strict=True))
    known_to = zip(inputs, pair.connected, strict=True)
    kinds = tuple([kind_of(x) if i >= n and c else None for i, (x, c) in enumerate(known_to)])
    ends = {place: (inputs if step < 0 else out)[place[1]] for place, (_, step) in record.derived.items() if step}
    operands = {i: inputs[i] for i in needed}
    count = None if live is not None or record.rows(n + m) else steps()
    known_steps = next((y.shape[0] for y in (*out[n:], *([] if live is None else [live])) if hasattr(y, "ndim")), count)
    return Saved(loop, operands, stacks, ends, kinds, tuple(map(kind_of, out[:n])), count, live, known_steps)


def pull(g: Sequence[Any], saved: Saved, needed: Sequence[bool]) -> tuple[Any, ...]:
    """Gradients of the loop's inputs from those of the last carry and the stacks."""
    loop = saved.loop
    _, n, _, reverse, record = loop
    pair = record.pair
    if any(x is not None for x in g[pair.n_outputs :]):
        raise GradientError("a gradient of what a loop has kept for its own gradient; use a tape inside another")
    wanted = tuple([i < n or (w and c) for i, (w, c) in enumerate(zip(needed, pair.connected, strict=True))])
    shown = tuple([i for i in range(n, pair.n_outputs) if g[i] is not None])
    back = _backward(loop, wanted, shown, saved.live is not None)
    fixed = {} if record.unchanging is None else record.unchanging.values(saved.operands)
    look_up([*saved.carries, *saved.kinds])
    start = [zeros_on(*saved.carries[i]) if g[i] is None else g[i] for i in back.carried]
    start += [zeros_on(*saved.kinds[i]) for i in back.captured]
    rows = [g[i] for i in shown] + [_found(saved, fixed, place) for place in back.rows]
    if saved.live is not None:
        rows = [saved.live, *rows]
    rows = rows or [positions(saved.steps)]
    captures = [_found(saved, fixed, place) for place in back.captures]
    params = (back.body, len(start), len(rows), None, not reverse)
    found = dispatch.apply(get("scan"), (*start, *rows, *captures), params)
    places = [*back.carried, *back.captured, *back.scanned]
    gradients = dict(zip(places, found, strict=True))
    for i in back.scanned:
        if None in gradients[i].shape[1:]:  # then a stack of no rows may not know their sizes
            gradients[i] = cropped(gradients[i], saved.kinds[i][0])
    last = [i for i in range(n) if g[i] is not None]
    hit = reached(_influences(loop.body), n, last, shown, saved.known_steps)
    return tuple([gradients.get(i) if w and i in hit else None for i, w in enumerate(needed)])


def _influences(body: GraphFunction) -> tuple[frozenset[int], ...]:
    if "influences" not in body.pairs:
        body.pairs["influences"] = influences(body.graph)
    found: tuple[frozenset[int], ...] = body.pairs["influences"]
    return found


def _found(saved: Saved, fixed: dict[Place, Any], place: Place) -> Any:
    if place in fixed:
        return fixed[place]
    if place in saved.stacks:
        return saved.stacks[place]
    record, reverse = saved.loop.record, saved.loop.reverse
    if place not in record.derived:
        return saved.operands[place[1]]
    other, step = record.derived[place]
    stack = saved.stacks[other]
    if step == 0:
        return stack
    end = saved.ends[place].expand_dims(0)
    if place in record.sizes:
        stack, end = _filled_up(stack, end)
    later = (step > 0) != reverse
    return _joined(stack, end)[1:] if later else _joined(end, stack)[:-1]


def _joined(a: Any, b: Any) -> Any:
    return dispatch.apply(get("concat"), (a, b), (0,))


def _filled_up(*stacks: Tensor) -> list[Tensor]:
    """Stacks of rows of different sizes, filled up to the larger ones."""
    vectors = [dispatch.apply(get("shape_of"), (x,)) for x in stacks]
    rows = dispatch.apply(get("maximum"), (vectors[0][1:], vectors[1][1:]))
    return [cropped(x, _joined(vector[:1], rows)) for x, vector in zip(stacks, vectors, strict=True)]


class Backward(NamedTuple):
    """The body of the backward scan, and what its operands and results belong to."""

    body: GraphFunction
    carried: tuple[int, ...]
    captured: tuple[int, ...]
    scanned: tuple[int, ...]
    rows: tuple[Place, ...]
    captures: tuple[Place, ...]


def _backward(loop: RecordedLoop, wanted: tuple[bool, ...], shown: tuple[int, ...], may_rest: bool) -> Backward:
    key = ("unwinding", loop.n, loop.m, wanted, shown, may_rest)
    found: Backward | None = loop.body.pairs.get(key)
    if found is None:
        found = loop.body.pairs[key] = _Step(loop, wanted, shown).trace(may_rest)
    return found


class _Step:
    """One step back: gradients after a step to gradients before it; those of captured inputs are added up."""

    def __init__(self, loop: RecordedLoop, wanted: tuple[bool, ...], shown: tuple[int, ...]) -> None:
        n, m, pair, graph = loop.n, loop.m, loop.record.pair, loop.body.graph
        self._graph, self._record, self._shown = graph, loop.record, shown
        self._carried = tuple([i for i in range(n) if graph.outputs[i].spec.dtype in INEXACT])  # type: ignore[union-attr]
        given = tuple([j in self._carried or j in shown for j in range(pair.n_outputs)])
        needed = tuple([w and c for w, c in zip(wanted, pair.connected, strict=True)])
        self._function, self._targets = pair.backward(needed, given)
        self._captured = tuple([i for i in self._targets if i >= n + m])
        self._scanned = tuple([i for i in self._targets if n <= i < n + m])
        self._rows = tuple(loop.record.rows(n + m))
        self._captures = tuple(loop.record.captures(n + m))

    def trace(self, may_rest: bool) -> Backward:
        """The body; where steps may rest, since another example goes on, its first row says which do not."""
        graph = self._graph
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"backward_{graph.name}") as tracer:
            tracer.scope = "gradient/"
            after = [tracer.add_input(self._spec_of_carry(i), f"gradient{i}") for i in self._carried]
            totals = [tracer.add_input(alike(graph.inputs[i].spec), f"total{i}") for i in self._captured]
            live = tracer.add_input(known((), dtypes.bool_), "live") if may_rest else None
            of_rows = [tracer.add_input(graph.outputs[j].spec, f"gradient{j}") for j in self._shown]
            values = self._values(tracer, live)
            before, found = self._gradients(values, after, of_rows)
            sums, rows = [found[i] for i in self._captured], [found[i] for i in self._scanned]
            if live is not None:
                before = [dispatch.apply(either, (live, x, y)) for x, y in zip(before, after, strict=True)]
                sums, rows = [[dispatch.apply(kept_if, (live, x)) for x in part] for part in (sums, rows)]
            sums = [total + x for total, x in zip(totals, sums, strict=True)]
            result = GraphFunction(tracer.finish([*before, *sums, *rows]))
        return Backward(result, self._carried, self._captured, self._scanned, self._rows, self._captures)

    def _spec_of_carry(self, i: int) -> TensorSpec:
        """Of gradients before and after a step: a step may know more of what it returns than of what it is given."""
        before, after = alike(self._graph.inputs[i].spec), alike(self._graph.outputs[i].spec)
        return known(shapes.generalise(before.shape, after.shape) or after.shape, after.dtype)

    def _values(self, tracer: Tracer, live: Any) -> dict[Place, Any]:
        """What the step reads, as it was: rows that were filled up are cropped."""
        record = self._record
        values = {place: tracer.add_input(record.spec_at(place), f"saved{k}") for k, place in enumerate(self._rows)}
        if not self._shown and not self._rows and live is None:
            tracer.add_input(known((), dtypes.int32), "position")
        values |= {place: tracer.add_input(record.spec_at(place), f"kept{k}") for k, place in enumerate(self._captures)}
        for place, sizes in record.sizes.items():
            if place in values:
                values[place] = cropped(values[place], values[sizes])
        return values

    def _gradients(
        self, values: dict[Place, Any], after: Sequence[Any], of_rows: Sequence[Any]
    ) -> tuple[list[Any], dict[int, Any]]:
        """The gradients of the carry before the step, and those of all inputs that have one."""
        seeds = dict(zip((*self._carried, *self._shown), (*after, *of_rows), strict=True))
        residuals = [values[place] for place in self._record.pair.sources]
        gradients = replay(self._function.graph, [*residuals, *[seeds[j] for j in sorted(seeds)]])
        found = dict(zip(self._targets, gradients, strict=True))
        before = zip(self._carried, after, strict=True)
        return [found[i] if i in found else self._zeros(values, i, x) for i, x in before], found

    def _zeros(self, values: dict[Place, Any], i: int, after: Any) -> Any:
        """The gradient of a carry that the step does not read."""
        sizes = self._record.sizes.get(("input", i))
        return filled(0, after) if sizes is None else zeros_on(values[sizes], after.dtype, after._device)
