"""The gradient of a loop: forward stacks what each iteration's backward needs, backward is a loop over the stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from limelight import dispatch, dtypes, nest
from limelight.errors import ControlFlowError
from limelight.registry import Op, Taped, defop
from limelight.spec import ObjectSpec, Spec, TensorSpec, known
from limelight.staging.gradient import Pair, call, pair_of
from limelight.staging.invariants import Place, Unchanging, unchanging_of
from limelight.staging.loop import Loop
from limelight.staging.loop_op import while_op
from limelight.staging.scan_op import filled_up
from limelight.staging.stacks import kind_of, watched_in_loop, zeros_on
from limelight.tape import INEXACT, filled
from limelight.tensor import Tensor

_NONE: Final[frozenset[int]] = frozenset()


class Record(NamedTuple):
    """What a forward loop leaves behind: the stacks that its own outputs show, and those that its backward needs."""

    pair: Pair
    observed: tuple[Place, ...]
    needed: tuple[Place, ...]
    unchanging: Unchanging | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        return self.observed + self.needed


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> Taped | None:
    cond_fn, body_fn, n, limit = attrs[:4]
    pair = pair_of(body_fn, watched_in_loop(inputs, n, mask))
    if not any(pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # a loop variable that the body overwrites goes through untouched when there are no iterations
    sources = [place for place in pair.sources if place[0] == "output" or place[1] < n]
    still = unchanging_of(pair.forward.graph, n, sources)
    changing = tuple([place for place in sources if still is None or place not in still.places])
    observed = attrs[4].places if len(attrs) > 4 else ()
    shown = n + 1 + len(observed) if len(attrs) > 4 else n
    record = Record(pair, observed, changing, still)
    return Taped(while_forward, (cond_fn, pair.forward, n, limit, record), lambda outputs: outputs[:shown])


def _infer_forward(*given: Any) -> tuple[Spec, ...]:
    _, body_fn, n, _, record = given[-5:]
    values = {"input": body_fn.graph.inputs, "output": body_fn.graph.outputs}
    stacks = [_stacked(values[where][i].spec) for where, i in record.places]
    return (*[value.spec for value in body_fn.graph.inputs[:n]], known((), dtypes.int32), *stacks)


def _stacked(row: Spec) -> Spec:
    """The spec of a stack of rows, one for each iteration: a tensor, or a list where the rows are opaque."""
    if isinstance(row, TensorSpec):
        return known((None, *row.shape), row.dtype)
    assert isinstance(row, ObjectSpec)
    return ObjectSpec(f"list of {row.kind}")


def _run_forward(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit, record = given
    values, captures = tuple(data[:n]), tuple(data[n:])
    history: list[list[Any]] = [[] for _ in record.places]
    done = 0
    while (limit is None or done < limit) and bool(cond_fn.run(*values, *captures)[0]):
        outputs = body_fn.run(*values, *captures)
        for column, (where, i) in zip(history, record.places, strict=True):
            column.append(values[i] if where == "input" else outputs[i])
        values = outputs[:n]
        done += 1
    specs = _infer_forward(cond_fn, body_fn, n, limit, record)[n + 1 :]
    stacks = [
        _stack(xp, rows, spec, body_fn, place) for rows, spec, place in zip(history, specs, record.places, strict=True)
    ]
    return (*values, np.int32(done), *stacks)


def _stack(xp: Any, rows: list[Any], spec: Any, body_fn: Any, place: Place) -> Any:
    if not isinstance(spec, TensorSpec):
        return rows
    if not rows:
        return xp.empty(tuple(m or 0 for m in spec.shape), dtype=spec.dtype)
    where, i = place
    if where == "output":
        rows = filled_up(xp, rows, i in getattr(body_fn, "hollow", ()), getattr(body_fn, "ragged", {}).get(i, _NONE))
    try:
        return xp.stack(rows)
    except ValueError:
        raise ControlFlowError(
            f"while_loop: an intermediate of shape {rows[0].shape} changes shape between iterations, which its "
            "gradient does not support; keep shapes fixed in the body (pad), or take the gradient of an eager loop"
        ) from None


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    n, record = attrs[2], attrs[4]
    read = {i for where, i in record.pair.sources if where == "input" and i >= n}
    if record.unchanging is not None:
        read.update(record.unchanging.reads)
    invariant = {i: inputs[i] for i in sorted(read)}
    sizes = tuple([kind_of(x) if c else None for x, c in zip(inputs, record.pair.connected, strict=True)])
    stacks = out[n + 1 + len(record.observed) :]
    return (record, n, out[n], tuple(stacks), invariant, sizes, tuple(out[:n]))


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    record, n, count, stacks, invariant, sizes, finals = saved
    pair: Pair = record.pair
    carried = [i for i in range(n) if finals[i].dtype in INEXACT]
    captured = [i for i in range(n, len(needed)) if needed[i] and pair.connected[i]]
    seeds = [g[i] if g[i] is not None else filled(0, finals[i]) for i in carried]
    rows = [(place, grad) for place, grad in zip(record.observed, g[n + 1 :], strict=False) if grad is not None]
    same = {("input", i): x for i, x in invariant.items()}
    if record.unchanging is not None:
        same |= record.unchanging.values(invariant)
    step = Step(pair, n, dict(zip(record.needed, stacks, strict=True)), same, carried, captured, rows)
    start = (count - 1, *seeds, *[zeros_on(*sizes[i]) for i in captured])
    end = Backward.of(step, start).repeat(start)
    results: list[Any] = [None] * len(needed)
    for i, value in zip([*carried, *captured], end[1:], strict=True):
        results[i] = value if needed[i] else None
    return tuple(results)


class Backward(Loop):
    """The loop back. A trace may know less of the size of a gradient than of what it is a gradient of."""

    @classmethod
    def of(cls, step: Step, start: Sequence[Tensor]) -> Backward:
        structure = nest.flatten(start)[1]
        names = nest.paths(structure, "gradients")
        return cls(lambda k, *_: k >= 0, step, structure, [x.spec for x in start], names)

    def checked(self, name: str, before: TensorSpec, x: Tensor) -> Tensor:
        return x


@dataclass(frozen=True, slots=True)
class Step:
    """One step back: gradients after an iteration to gradients before it; captured inputs' gradients are added up."""

    pair: Pair
    n: int
    stacks: dict[Place, Any]
    same: dict[Place, Any]
    carried: list[int]
    captured: list[int]
    rows: list[tuple[Place, Any]]  # gradients of stacks that the loop itself returned

    def __call__(self, k: Any, *gradients: Any) -> tuple[Any, ...]:
        after, totals = gradients[: len(self.carried)], gradients[len(self.carried) :]
        seeds: dict[int, Any] = dict(zip(self.carried, after, strict=True))
        extra: dict[int, Any] = {}
        for (where, i), grad in self.rows:
            target = seeds if where == "output" else extra
            target[i] = target[i] + grad[k] if i in target else grad[k]
        found = self._pull(k, seeds)
        for i, grad in extra.items():
            found[i] = found[i] + grad if i in found else grad
        before = [found[i] if i in found else x * 0 for i, x in zip(self.carried, after, strict=True)]
        sums = [t + found[i] if i in found else t for i, t in zip(self.captured, totals, strict=True)]
        return (k - 1, *before, *sums)

    def _pull(self, k: Any, seeds: dict[int, Any]) -> dict[int, Any]:
        pair = self.pair
        needed = tuple((i in self.carried or i in self.captured) and c for i, c in enumerate(pair.connected))
        function, targets = pair.backward(needed, tuple(i in seeds for i in range(pair.n_outputs)))
        if not targets:
            return {}
        residuals = [self.same[place] if place in self.same else _row(self.stacks[place], k) for place in pair.sources]
        values = dispatch.apply(call, (*residuals, *[seeds[i] for i in sorted(seeds)]), (function,))
        return dict(zip(targets, values, strict=True))


def _row(stack: Any, k: Any) -> Any:
    """The k-th row of a stack, which may be a list of opaque values."""
    return stack[k] if isinstance(stack, Tensor) else dispatch.apply(row_op, (stack, k))


row_op: Op = defop(
    "row_of_list",
    inputs="rows:any k:any",
    infer=lambda rows, k: ObjectSpec(rows.kind.removeprefix("list of ")),
    kernel=lambda xp, rows, k: rows[int(k)],
    why_no_gradient="its operand is an opaque value",
)


while_forward: Op = defop(
    "while_forward",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations record",
    infer=_infer_forward,
    kernel=_run_forward,
    multiple=True,
    higher_order=True,
    taped=_taped,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)

while_op.taped = _taped
