"""`scan` and `map_fn`: loops over the first axis of tensors (paper section 4.1), and the op behind them.

The op is closed under differentiation, forward mode and batching: each makes another scan of it. So scans are not
lowered to `while_loop`, in which the gradient of `xs[k]` would be as large as `xs` in each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, filled
from limelight.batching import Shared, Site
from limelight.batching.rule_table import front
from limelight.control_flow.loop_backward import RecordedLoop, SavedLoop, pull_loop, save_loop
from limelight.control_flow.loop_constants import read_variables_before
from limelight.control_flow.loop_residuals import loop_residuals
from limelight.control_flow.ragged_rows import ragged_results
from limelight.control_flow.stacked_rows import Column, empty_stacks, positions, rows_of, stack_of
from limelight.control_flow.user_functions import as_carried, conversion_hint, suggest_initial_dtype
from limelight.control_flow.zeros_spec import watched_in_loop
from limelight.core import dispatch, nest, shapes
from limelight.core.op import Op, TapedVariant, defop, get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ControlFlowError, DTypeError, ShapeError
from limelight.staging.body_batching import (
    Flags,
    batch_size,
    batched_function,
    note_looped_ops,
    tensors_only,
    with_shared,
)
from limelight.staging.body_tangents import jvp_function, present_tangents, split_tangents, tangent_flags
from limelight.staging.branch_state import settle_loop
from limelight.staging.call_gradient import infer_outputs
from limelight.staging.structured_outputs import Outputs, split
from limelight.staging.trace_branch import Traced, close, require_callable, trace_branch, tracing, unaliased
from limelight.user_code.given_functions import call_user_function


def scan(
    fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A scan: a loop over the first axis of `xs` with a carry, `carry, y = fn(carry, x)` (paper section 4.1).

    Staged, it is one node, whose body is traced once; run eagerly, a Python loop. Differentiable to any order: of each
    step what its gradient needs is stacked, and what does not change from step to step is kept once
    (`GradientTape.saved_bytes`); with `ll.recompute_grad` around `fn` only the carries are.

    Args:
        fn: a function of the carry and a row that returns the next carry, with the same structure, dtypes and shapes,
            and `y`: a tensor or a nest of tensors, whose parts may be None.
        init: the first carry, a tensor or a nest of tensors.
        xs: a tensor (steps, ...) or a nest of tensors whose first axes have one size, which may be unknown while
            tracing. Without it the rows `x` are None.
        length: without `xs`, the number of steps, an integer or an integer scalar.
        reverse: whether to begin with the last row; the `y`s stand where their rows do. False.

    Returns:
        `(carry, ys)`: the last carry, and the `y`s stacked, each with a first axis: (steps, ...).

    Raises:
        ControlFlowError: there is not one number of steps, or `fn` does not return a pair or does not keep the carry,
            whose part is named.
        ShapeError: `length` is negative or no integer.
        ArgumentError: `fn` cannot be called.

    >>> import limelight as ll
    >>> total, sums = ll.scan(lambda s, x: (s + x, s + x), ll.constant(0.0), ll.constant([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    if type(reverse) is not bool:
        reverse = shapes.flag("scan", "reverse", reverse)
    require_callable("scan", fn=fn)
    return Scan.of("scan", fn, init, xs, length, reverse).run()


class Scan(NamedTuple):
    """A scan about to run: its function, its operands as leaves, and their structures."""

    op: str  # what the user called
    fn: Callable[[Any, Any], Any]
    carry: list[Tensor]
    xs: list[Tensor]
    of_carry: nest.Structure
    of_xs: nest.Structure | None
    length: int | None
    reverse: bool
    names: Sequence[str] = ()  # of the carry's leaves, where they are not parts of `carry`
    carry_shapes: Sequence[shapes.Shape] = ()  # theirs, where they change from step to step

    @classmethod
    def of(cls, op: str, fn: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool) -> Scan:
        """Checks the operands. Raises ControlFlowError where there are no rows, or not one number of them.

        Args:
            op: the public function, for errors.
            fn: the user's function of carry and row.
            init: the first carry.
            xs: the tensors to scan, or None.
            length: the number of steps, or None.
            reverse: whether to begin with the last row.
        """
        carry, of_carry = nest.flatten(init)
        carried = as_carried(op, nest.paths(of_carry, "carry") if any(x is None for x in carry) else (), carry)
        leaves, of_xs = nest.flatten(xs)
        if xs is None and isinstance(length, Tensor):  # rows that `fn` ignores tell a number known only at run time
            count, length = _checked_length(op, length), None
            leaves, fn = [positions(count)], _without_rows(fn)
        rows = [as_tensor(x) for x in leaves if x is not None]
        if len(rows) not in (0, len(leaves)):
            raise ControlFlowError(f"{op}: xs must be tensors throughout, got None among them")
        steps = _known_steps(op, rows, nest.paths(of_xs, "xs") if rows else [], length)
        return cls(op, fn, carried, rows, of_carry, of_xs if rows else None, steps, bool(reverse))

    def run(self) -> tuple[Any, Any]:
        """The last carry and the stacked results."""
        return self.stage() if tracing() is not None or self.length in (0, None) else self.loop()

    def loop(self) -> tuple[Any, Any]:
        """Runs at once, step by step."""
        assert self.length is not None, "sizes are known outside of a trace"
        columns = [dispatch.apply(get("unstack"), (x,), (0, self.length)) for x in self.xs]
        carry: Sequence[Tensor] = self.carry
        rows: list[Sequence[Tensor]] = []
        outputs: Outputs | None = None
        places = range(self.length)
        for k in reversed(places) if self.reverse else places:
            carry, y = self.step(carry, [column[k] for column in columns])
            parts, this = split(y, self.op, "y")
            if outputs is not None and this != outputs:
                raise ControlFlowError(f"{self.op}: y is {outputs.structure} after one step and {this.structure} later")
            outputs = this
            rows.append(parts)
        assert outputs is not None, "there is at least one step"
        rows = rows[::-1] if self.reverse else rows
        stacked = [
            dispatch.apply(get("stack"), self._checked_column(column), (0,)) for column in zip(*rows, strict=True)
        ]
        return nest.unflatten(self.of_carry, unaliased(carry, self.carry)), outputs.rebuild(stacked)

    def stage(self) -> tuple[Any, Any]:
        """Makes the scan one op."""
        traced = self.trace()
        (body,), captures = read_variables_before(*close([traced]))
        settle_loop(traced.tracer, self._begins)
        params = (body, len(self.carry), len(self.xs), self.length if not self.xs else None, self.reverse)
        results = dispatch.apply(scan_op, (*self.carry, *self.xs, *captures), params)
        carry, y = traced.outputs.rebuild(results)
        return nest.unflatten(self.of_carry, carry), y

    def _begins(self) -> Any:
        """Whether there is a first step."""
        if self.length is not None:
            return self.length > 0
        return dispatch.apply(get("shape_of"), (self.xs[0],))[0] > 0

    def trace(self) -> Traced:
        """Traces the function once."""
        n, m = len(self.carry), len(self.xs)
        specs: list[Spec] = [*self._specs()]
        specs += [known(x.shape[1:], x.dtype) for x in self.xs]
        names = self._names() + (nest.paths(self.of_xs, "x") if self.of_xs is not None else [])
        name = getattr(self.fn, "__name__", "body")
        return trace_branch(
            name if name.isidentifier() else "body",
            lambda *leaves: self.step(leaves[:n], leaves[n : n + m]),
            specs,
            names,
            given=(*self.carry, *self.xs),
            repeated=True,
        )

    def step(self, carry: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], Any]:
        """The leaves of the carry after one step, and `y`."""
        x = None if self.of_xs is None else nest.unflatten(self.of_xs, rows)
        carried = nest.unflatten(self.of_carry, carry)
        try:
            result = call_user_function(self.op, "fn", "the carry and a row of xs", self.fn, carried, x)
        except DTypeError as error:
            suggest_initial_dtype(error, self._names(), carry)
            raise
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            got = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
            raise ControlFlowError(
                f"{self.op}: the function must return a pair (carry, y), got {got}; y may be None: return carry, None"
            )
        after, structure = nest.flatten(result[0])
        if structure != self.of_carry:
            raise ControlFlowError(
                f"{self.op}: the carry has structure {self.of_carry} on entry and {structure} after one step; the "
                f"function must keep it{nest.advice(self.of_carry)}"
            )
        names, specs = self._names(), self._specs()
        tensors = as_carried(self.op, names, after, specs)
        return [self._checked_carry(*part) for part in zip(names, specs, tensors, strict=True)], result[1]

    def _names(self) -> list[str]:
        return list(self.names) or nest.paths(self.of_carry, "carry")

    def _specs(self) -> list[TensorSpec]:
        """The specs of the carry in any step: without what a trace knows of elements, which change."""
        kept = self.carry_shapes or [x.shape for x in self.carry]
        return [known(shape, x.dtype) for shape, x in zip(kept, self.carry, strict=True)]

    def _checked_carry(self, name: str, before: TensorSpec, x: Tensor) -> Tensor:
        """A leaf of the carry after a step. Raises ControlFlowError where its dtype or shape is another than before."""
        if x.dtype != before.dtype or not shapes.compatible(x.shape, before.shape):
            advice = conversion_hint(before, x.spec, "function") or "Reshape in the function, or before the scan"
            raise ControlFlowError(
                f"{self.op}: `{name}` is {before} on entry and {x.spec} after one step; the function must keep "
                f"dtype and shape. {advice}"
            )
        return x

    def _checked_column(self, column: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """A leaf of `y` in all steps. Raises ControlFlowError where dtypes or shapes differ."""
        first = column[0]
        other = next((y for y in column if y.shape != first.shape or y.dtype != first.dtype), None)
        if other is not None:
            raise ControlFlowError(
                f"{self.op}: y is {first.spec} after one step and {other.spec} after another; they are stacked, and so "
                "must be alike"
            )
        return tuple(column)


def _known_steps(op: str, rows: Sequence[Tensor], names: Sequence[str], length: Any) -> int | None:
    """The number of steps, None where only the run tells. Raises ControlFlowError where there is not one number.

    Args:
        op: the public function, for errors.
        rows: the leaves of `xs`.
        names: their names, for errors.
        length: the number of steps, as the user gave it.
    """
    if not rows:
        if length is None:
            raise ControlFlowError(f"{op}: without xs, length must say how many steps there are")
        steps: int = _checked_length(op, length)
        return steps
    for x, name in zip(rows, names, strict=True):
        if x.ndim == 0:
            raise ControlFlowError(f"{op}: `{name}` is {x.spec}; a scan goes along the first axis, and it has none")
    sizes = [] if length is None else [(f"length={length}", _checked_length(op, length))]
    sizes += [(f"`{name}`, {x.spec}", x.shape[0]) for x, name in zip(rows, names, strict=True)]
    stated = [(name, n) for name, n in sizes if n is not None]
    for name, n in stated:
        if n != stated[0][1]:
            raise ControlFlowError(f"{op}: the number of steps must be one, got {stated[0][0]} and {name}")
    return stated[0][1] if stated else None


def _checked_length(op: str, length: Any) -> Any:
    """A number of steps: an int from 0 on, or in a trace an integer tensor."""
    if isinstance(length, Tensor):
        if length.spec.shape != () or "int" not in length.dtype.name:
            raise ControlFlowError(f"{op}: length must be one integer, got {length.spec}")
        if tracing() is not None:
            return length
        length = int(length)
    n = shapes.as_size(f"{op}: length", length)
    if n < 0:
        raise ShapeError(f"{op}: length must be from 0 on, got {n}")
    return n


def _without_rows(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with None in the place of rows that only count steps."""

    def step(carry: Any, x: Any) -> Any:
        return fn(carry, None)

    step.__wrapped__ = fn  # type: ignore[attr-defined]  # its parameters are those of the user's
    step.__name__ = getattr(fn, "__name__", "body")
    return step


def map_fn(fn: Callable[[Any], Any], xs: Any) -> Any:
    """A sequential map: `fn` of each row of `xs`, one after another, and the results stacked (paper section 4.1).

    Staged, it is one `scan` node; run eagerly, a Python loop. Differentiable to any order. `ll.vectorize(fn)(xs)`
    computes the same in wide ops: faster, but in more memory, and both branches of a `cond` are run.

    Args:
        fn: a function of a row, or a nest of rows, that returns a tensor or a nest of tensors, whose structure, dtypes
            and shapes are the same for each row.
        xs: a tensor (steps, ...) or a nest of tensors with the same first axis, whose size may be unknown while
            tracing.

    Returns:
        The results, each with a first axis: (steps, ...).

    Raises:
        ControlFlowError: `xs` has no first axis.
        ArgumentError: `fn` cannot be called.

    >>> import limelight as ll
    >>> ll.map_fn(lambda x: ll.cond(x > 0, lambda: x, lambda: -2 * x), ll.constant([1, -1, 3])).tolist()
    [1, 2, 3]
    """
    require_callable("map_fn", fn=fn)

    def step(nothing: Any, x: Any) -> tuple[Any, Any]:
        return nothing, call_user_function("map_fn", "fn", "a row of xs", fn, x)

    step.__name__ = getattr(fn, "__name__", "body")
    return Scan.of("map_fn", step, (), xs, None, False).run()[1]


# The op. Operands: n carried values, m tensors to scan, then what the body captures. The body gets the carried values,
# a row of each scanned tensor, and the captures; it returns the next carried values and rows, which the op stacks.


def _passes(specs: Sequence[Any], attrs: tuple[Any, ...]) -> list[Any]:
    """The specs of what the body gets, from those of the operands."""
    n, m = attrs[1:3]
    return [rows_of(s) if n <= i < n + m else s for i, s in enumerate(specs)]


def _infer(*arguments: Any) -> tuple[Spec, ...]:
    *specs, body, n, m, length, _ = arguments
    sizes = [length] if length is not None else [s.shape[0] for s in specs[n : n + m] if isinstance(s, TensorSpec)]
    stated = {size for size in sizes if size is not None}
    if len(stated) > 1:
        raise ControlFlowError(f"scan: the first axes of xs must have one size, got {sorted(stated)}")
    steps = stated.pop() if stated else None
    rows = infer_outputs(body.graph, [*[v.spec for v in body.graph.inputs[:n]], *_passes(specs, arguments[-5:])[n:]])
    return (*[value.spec for value in body.graph.inputs[:n]], *[stack_of(row, steps) for row in rows[n:]])


def _run(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *data, body, n, m, length, reverse = arguments
    carry, xs, captures = data[:n], data[n : n + m], data[n + m :]
    steps = _step_count(xs, length)
    if steps == 0:
        sizes = [getattr(x, "shape", ()) for x in data]
        sizes[n : n + m] = [shape[1:] for shape in sizes[n : n + m]]
        return (*carry, *empty_stacks(xp, body.graph, n, sizes))
    uneven = ragged_results(body.graph)
    columns = [Column(xp, v.spec, steps, i in uneven) for i, v in enumerate(body.graph.outputs[n:], n)]
    run = body.run
    for k in range(steps - 1, -1, -1) if reverse else range(steps):
        outputs = run(*carry, *[x[k] for x in xs], *captures)
        carry = outputs[:n]
        for column, row in zip(columns, outputs[n:], strict=True):
            column.put(k, row)
    return (*carry, *[column.result() for column in columns])


def _step_count(xs: Sequence[Any], length: int | None) -> int:
    sizes = [len(x) for x in xs] + ([] if length is None else [length])
    for n in sizes:
        if n != sizes[0]:
            raise ControlFlowError(f"scan: the first axes of xs must have one size, got {sizes}")
    return sizes[0]


# The gradient: a scan in the other direction (`loop_backward`). The variant that a tape records is a scan, too, whose
# body also returns the residuals of each step as rows (`loop_residuals`), so every order of derivative comes from one
# rule.


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant | None:
    body, n, m, length, reverse = attrs[:5]
    residuals, wider = loop_residuals(body, n, m, watched_in_loop(inputs, n, mask))
    if not any(residuals.pair.connected) and not any(x.dtype in INEXACT for x in inputs[:n]):
        return None  # without steps a carried value that the body overwrites is the result, and has a gradient
    n_outputs = residuals.pair.n_outputs
    return TapedVariant(scan_forward, (wider, n, m, length, reverse, residuals), lambda outputs: outputs[:n_outputs])


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> SavedLoop:
    body, n, m, length, reverse, residuals = attrs
    loop = RecordedLoop(body, n, m, reverse, residuals)
    return save_loop(loop, inputs, out, lambda: length if length is not None else inputs[n].sizes()[0])


# Forward mode and batching: scans of the body with tangents, and of the body for all examples


def _jvp(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """Tangents of carried values are carried, those of scanned tensors are scanned, those of rows are stacked."""
    body, n, m, length, reverse = attrs[:5]
    flags, before = tangent_flags(tangents), None
    while flags != before:  # what moves after a step moves before the next one
        before = flags
        reached = jvp_function(body, flags, (), n, n + m).moving
        flags = tuple([f or (i < n and i in reached) for i, f in enumerate(flags)])
    n_outputs = len(body.graph.outputs)
    forced = tuple([i < n and flags[i] for i in range(n_outputs)])
    step = jvp_function(body, flags, forced, n, n + m)
    full_tangents = [filled(0, x) if f and t is None else t for x, t, f in zip(inputs, tangents, flags, strict=True)]
    operands = [
        x
        for part in (slice(0, n), slice(n, n + m), slice(n + m, None))
        for x in _with_tangents(inputs, full_tangents, part)
    ]
    wider = n + sum(flags[:n]), m + sum(flags[n : n + m])
    results = dispatch.apply(scan_op, tuple(operands), (step.function, *wider, length, reverse))
    carries, stacks = results[: wider[0]], results[wider[0] :]
    last, moved = split_tangents(carries, n, [i for i in range(n) if flags[i]])
    ys, moved_ys = split_tangents(stacks, n_outputs - n, [i - n for i in step.moving if i >= n])
    return (*last, *ys), [*moved, *moved_ys]


def _with_tangents(inputs: Sequence[Any], tangents: Sequence[Any], part: slice) -> list[Any]:
    """A group of the inputs, and behind it the tangents that it has."""
    return [*inputs[part], *present_tangents(tangents[part])]


def _batch(site: Site) -> Any:
    """In scanned tensors and stacks the axis of steps comes first, then that of examples, so a row has all examples."""
    body, n, m, length, reverse = site.attrs[:5]
    if not tensors_only(site):
        return NotImplemented
    mask: Flags = site.mask
    before: Flags | None = None
    while mask != before:  # what differs after a step differs before the next one
        version = batched_function(batch_size(site), body, mask)
        if version is None:
            return NotImplemented
        before, mask = mask, tuple([d or (i < n and version.mask[i]) for i, d in enumerate(mask)])
    forced = tuple([i < n and mask[i] for i in range(len(body.graph.outputs))])
    step = batched_function(batch_size(site), body, mask, forced)
    assert step is not None, "it could be batched without forcing"
    note_looped_ops(site, step)
    inputs = [site.lead(i) if d else x for i, (x, d) in enumerate(zip(site.inputs, mask, strict=True))]
    inputs[n : n + m] = [front(x, 1) if d else x for x, d in zip(inputs[n : n + m], mask[n : n + m], strict=True)]
    results = dispatch.apply(scan_op, tuple(inputs), (step.function, n, m, length, reverse))
    stacks = [front(y, 1) if d else Shared(y) for y, d in zip(results[n:], step.mask[n:], strict=True)]
    return (*with_shared(results[:n], mask[:n]), *stacks)


scan_op: Op = defop(
    "scan",
    inputs="*xs:any",
    attrs="body n_carry n_xs length reverse",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    passes=_passes,
    taped=_taped,
    jvp=_jvp,
    batching=_batch,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records scan_forward
    maths={"xs": "x̄ₖ = backward of the body at step k, from the last"},
)

scan_forward: Op = defop(
    "scan_forward",
    inputs="*xs:any",
    attrs="body n_carry n_xs length reverse record",
    infer=lambda *arguments: _infer(*arguments[:-1]),
    kernel=lambda *arguments: _run(*arguments[:-1]),
    multiple=True,
    higher_order=True,
    passes=_passes,
    taped=_taped,
    jvp=_jvp,
    batching=_batch,
    save=_save,
    vjp={"xs": pull_loop},
    maths={"xs": "x̄ₖ = backward of the body at step k, from the last"},
)
