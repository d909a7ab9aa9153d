"""`while_loop`: repetition by value (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from limelight import dispatch, dtypes, nest, shapes
from limelight.batching import Batched
from limelight.devices import CPU0, Device
from limelight.dtypes import DType
from limelight.errors import ArgumentError, ControlFlowError
from limelight.registry import Op, Taped, defop, get
from limelight.spec import ObjectSpec, Spec, TensorSpec, known
from limelight.staging.branches import Traced, close, is_condition, require_callable, trace_branch, tracing
from limelight.staging.gradient import Pair, call, pair_of, watched_mask
from limelight.tape import INEXACT, filled, unrecorded, zeros
from limelight.tensor import Tensor, as_tensor


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
    shape_invariants: Any = None,
    back_prop: bool = True,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)`; returns the last `loop_vars`.

    `loop_vars`: a tuple or list of tensors (or nests of them). While tracing, `cond` and `body` are traced once each.
    The body must keep every loop variable's dtype and shape (ControlFlowError names the variable otherwise);
    `shape_invariants`, a list of shapes for the leaves with None for sizes that change, relaxes that. Differentiable;
    the intermediates of each iteration that the backward pass needs are stacked. With `back_prop=False` none are, and
    no gradient leads through the loop. Raises ArgumentError for functions that cannot be called and for a
    `maximum_iterations` that is not a number from 0 on.

    >>> import limelight as ll
    >>> i, total = ll.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (ll.constant(0), ll.constant(0)))
    >>> total.item()
    10
    """
    require_callable("while_loop", cond=cond, body=body)
    if not isinstance(loop_vars, (tuple, list)):
        raise ControlFlowError(f"while_loop: loop_vars must be a tuple or list, got {type(loop_vars).__name__}")
    leaves, structure = nest.flatten(loop_vars)
    leaves = [as_tensor(x) for x in leaves]
    names = nest.paths(structure, "loop_vars")
    loop = Loop(cond, body, structure, _kept_specs(leaves, shape_invariants, names), names)
    limit = _limit(maximum_iterations)
    if tracing() is not None:
        return loop.stage(leaves, limit, while_op if back_prop else while_detached)
    return loop.run(leaves, limit) if back_prop else loop.run_detached(leaves, limit)


class Loop(NamedTuple):
    """A loop's functions, and what its variables keep from one iteration to the next: structure and specs."""

    condition: Callable[..., Any]
    body: Callable[..., Any]
    structure: nest.Structure
    specs: list[TensorSpec]
    names: list[str]

    def run(self, leaves: list[Tensor], limit: int | None) -> Any:
        """Runs the loop at once."""
        done = 0
        while limit is None or done < limit:
            going = self.goes_on(*leaves)
            if isinstance(going, Batched):  # each example has an answer of its own
                return self.stage(leaves, None if limit is None else limit - done)
            if not going:
                break
            leaves = self.step(*leaves)
            done += 1
        return nest.unflatten(self.structure, leaves)

    def run_detached(self, leaves: list[Tensor], limit: int | None) -> Any:
        """The same, while tapes look away."""
        with unrecorded():
            result = self.run(leaves, limit)
        return nest.map_structure(lambda x: dispatch.apply(get("stop_gradient"), (x,)), result)

    def stage(self, leaves: list[Tensor], limit: int | None, op: Op | None = None) -> Any:
        """Makes the loop one op."""
        (cond_fn, body_fn), captures = close(self.trace())
        results = dispatch.apply(op or while_op, (*leaves, *captures), (cond_fn, body_fn, len(leaves), limit))
        return nest.unflatten(self.structure, results)

    def trace(self) -> tuple[Traced, Traced]:
        """Traces both functions once."""
        condition = trace_branch("cond", self.goes_on, self.specs, self.names)
        return condition, trace_branch("body", self.step, self.specs, self.names)

    def goes_on(self, *leaves: Tensor) -> Tensor:
        """What the condition says: one boolean, as a tensor."""
        answer = as_tensor(self.condition(*nest.unflatten(self.structure, leaves)))
        if not is_condition(answer.spec):
            raise ControlFlowError(f"while_loop: cond must return one boolean, got {answer.spec}")
        return answer

    def step(self, *leaves: Tensor) -> list[Tensor]:
        """The leaves after one iteration."""
        result = self.body(*nest.unflatten(self.structure, leaves))
        return list(map(self._checked, self.names, self.specs, map(as_tensor, self._leaves(result))))

    def _leaves(self, result: Any) -> list[Any]:
        n = len(self.structure.children)
        if n == 1 and not (isinstance(result, (tuple, list)) and len(result) == 1):
            result = (result,)
        if not isinstance(result, (tuple, list)) or len(result) != n:
            got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise ControlFlowError(f"while_loop: the body must return {n} loop variables, got {got}")
        leaves, structure = nest.flatten(result)
        if structure.children != self.structure.children:
            raise ControlFlowError(
                f"while_loop: the loop variables have structure {self.structure} on entry and {structure} after one "
                "iteration; the body must keep it"
            )
        return leaves

    def _checked(self, name: str, before: TensorSpec, x: Tensor) -> Tensor:
        if x.dtype != before.dtype or not shapes.compatible(x.shape, before.shape):
            raise ControlFlowError(
                f"while_loop: `{name}` is {before} on entry and {x.spec} after one iteration; the body must keep dtype "
                "and shape. Cast in the body with ll.astype, or name the sizes that change: "
                "shape_invariants=[(None, ...), ...]"
            )
        return x


def _kept_specs(leaves: Sequence[Tensor], invariants: Any, names: Sequence[str]) -> list[TensorSpec]:
    specs = [x.spec for x in leaves]
    if invariants is None:
        return specs
    if len(invariants) != len(specs):
        raise ControlFlowError(f"while_loop: {len(invariants)} shape_invariants for {len(specs)} loop variables")
    for shape, spec, name in zip(invariants, specs, names, strict=True):
        if not shapes.compatible(spec.shape, shapes.as_shape(shape)):
            raise ControlFlowError(f"while_loop: `{name}` is {spec}, its shape invariant is {shapes.show(shape)}")
    return [known(shapes.as_shape(shape), spec.dtype) for shape, spec in zip(invariants, specs, strict=True)]


def _limit(given: Any) -> int | None:
    """`maximum_iterations` as a number; raises ArgumentError for anything else, and for a negative one."""
    if given is None:
        return None
    if isinstance(given, bool) or not hasattr(given, "__index__") or given.__index__() < 0:
        raise ArgumentError(f"while_loop: maximum_iterations must be a number from 0 on, or None, got {given!r}")
    limit: int = given.__index__()
    return limit


def _infer(*given: Any) -> tuple[Spec, ...]:
    _, body_fn, n, _ = given[-4:]
    return tuple(value.spec for value in body_fn.graph.inputs[:n])


def _run(xp: Any, *given: Any) -> tuple[Any, ...]:
    *data, cond_fn, body_fn, n, limit = given
    values, captures = tuple(data[:n]), tuple(data[n:])
    done = 0
    while (limit is None or done < limit) and bool(cond_fn.run(*values, *captures)[0]):
        values = body_fn.run(*values, *captures)
        done += 1
    return values


# Its gradient: forward stacks what each iteration's backward needs, backward is a while_loop that walks the stacks

Place = tuple[str, int]
"""("input", i) or ("output", i) of the body: something that is stacked, one row for each iteration."""


class Record(NamedTuple):
    """What a forward loop leaves behind: the stacks that its own outputs show, and those that its backward needs."""

    pair: Pair
    observed: tuple[Place, ...]
    needed: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        return self.observed + self.needed


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Taped | None:
    cond_fn, body_fn, n, limit = attrs[:4]
    pair = pair_of(body_fn, watched_mask(inputs))
    if not any(pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # a loop variable that the body overwrites goes through untouched when there are no iterations
    changing = tuple((where, i) for where, i in pair.sources if where == "output" or i < n)
    observed = attrs[4].places if len(attrs) > 4 else ()
    shown = n + 1 + len(observed) if len(attrs) > 4 else n
    record = Record(pair, observed, changing)
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
    return (*values, np.int32(done), *[_stack(xp, column, spec) for column, spec in zip(history, specs, strict=True)])


def _stack(xp: Any, rows: list[Any], spec: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        return rows
    if not rows:
        return xp.empty(tuple(m or 0 for m in spec.shape), dtype=spec.dtype)
    try:
        return xp.stack(rows)
    except ValueError:
        raise ControlFlowError(
            f"while_loop: an intermediate of shape {rows[0].shape} changes shape between iterations, which its "
            "gradient does not support; keep shapes fixed in the body (pad), or take the gradient of an eager loop"
        ) from None


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    n, record = attrs[2], attrs[4]
    invariant = tuple((i, inputs[i]) for where, i in record.pair.sources if where == "input" and i >= n)
    sizes = tuple([_kind(x) if c else None for x, c in zip(inputs, record.pair.connected, strict=True)])
    stacks = out[n + 1 + len(record.observed) :]
    return (record, n, out[n], tuple(stacks), invariant, sizes, tuple(out[:n]))


def _kind(x: Any) -> tuple[Any, DType, Device]:
    """What zeros in the place of `x` need. Asked at once: a variable may have another size later."""
    return x.sizes(), x.dtype, x._device


def _loose(shape: shapes.Shape) -> shapes.Shape:
    """`shape`, of which nothing is known where some size is not: gradients get theirs from vectors of sizes then."""
    return shape if shapes.is_static(shape) else (None,) * len(shape)


def _zeros(sizes: Any, dtype: DType, device: Device) -> Tensor:
    if device is CPU0:
        return zeros(sizes, dtype)
    with dispatch.device(device):
        return zeros(sizes, dtype)


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    record, n, count, stacks, invariant, sizes, finals = saved
    pair: Pair = record.pair
    carried = [i for i in range(n) if finals[i].dtype in INEXACT]
    captured = [i for i in range(n, len(needed)) if needed[i] and pair.connected[i]]
    seeds = [g[i] if g[i] is not None else filled(0, finals[i]) for i in carried]
    rows = [(place, grad) for place, grad in zip(record.observed, g[n + 1 :], strict=False) if grad is not None]
    step = Step(pair, n, stacks, dict(invariant), carried, captured, rows)
    start = (count - 1, *seeds, *[_zeros(*sizes[i]) for i in captured])
    end = while_loop(lambda k, *rest: k >= 0, step, start, shape_invariants=[_loose(x.shape) for x in start])
    results: list[Any] = [None] * len(needed)
    for i, value in zip([*carried, *captured], end[1:], strict=True):
        results[i] = value if needed[i] else None
    return tuple(results)


@dataclass(frozen=True, slots=True)
class Step:
    """One step back: gradients after an iteration to gradients before it; captured inputs' gradients are added up."""

    pair: Pair
    n: int
    stacks: tuple[Any, ...]
    invariant: dict[int, Any]
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
        stacked = iter([_row(stack, k) for stack in self.stacks])
        residuals = [
            self.invariant[i] if where == "input" and i >= self.n else next(stacked) for where, i in pair.sources
        ]
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

while_op: Op = defop(
    "while_loop",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records while_forward
    maths={"xs": "x̄ = backward of the body, iteration by iteration from the last"},
)

while_detached: Op = defop(
    "while_detached",
    inputs="*xs:any",
    attrs="cond body n_vars maximum_iterations",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    why_no_gradient="the loop was asked for no gradient (back_prop=False)",
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
