"""`scan`: a loop over the first axis of tensors that hands something on (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from limelight.control_flow.loop_constants import read_outside
from limelight.control_flow.scan_op import positions, scan_op
from limelight.control_flow.user_functions import blame_beginning, called, repaired
from limelight.core import dispatch, nest, shapes
from limelight.core.op import get
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ControlFlowError, DTypeError, ShapeError
from limelight.staging.structured_outputs import Outputs, split
from limelight.staging.trace_body import Traced, apart, close, require_callable, trace_branch, tracing


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
    require_callable("scan", fn=fn)
    return Scan.of("scan", fn, init, xs, length, reverse).run()


class Scan(NamedTuple):
    """A scan about to run: its function, its operands as leaves, and how to put them back together."""

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
        """Checks the operands. Raises ControlFlowError where there are no rows, or not one number of them."""
        carry, of_carry = nest.flatten(init)
        leaves, of_xs = nest.flatten(xs)
        if xs is None and isinstance(length, Tensor):  # positions nobody looks at carry a number known only at run time
            count, length = _checked_length(op, length), None
            leaves, fn = [positions(count)], _without_rows(fn)
        rows = [as_tensor(x) for x in leaves if x is not None]
        if len(rows) not in (0, len(leaves)):
            raise ControlFlowError(f"{op}: xs must be tensors throughout, got None among them")
        steps = _steps(op, rows, nest.paths(of_xs, "xs") if rows else [], length)
        return cls(op, fn, [as_tensor(x) for x in carry], rows, of_carry, of_xs if rows else None, steps, bool(reverse))

    def run(self) -> tuple[Any, Any]:
        """The last carry and the stacked results."""
        return self.stage() if tracing() is not None or self.length in (0, None) else self.loop()

    def loop(self) -> tuple[Any, Any]:
        """Runs at once, step by step."""
        assert self.length is not None, "sizes are known outside of a trace"
        columns = [dispatch.apply(get("unstack"), (x,), (0, self.length)) for x in self.xs]
        carry: Sequence[Tensor] = self.carry
        found: list[Sequence[Tensor]] = []
        shape: Outputs | None = None
        places = range(self.length)
        for k in reversed(places) if self.reverse else places:
            carry, y = self.step(carry, [column[k] for column in columns])
            parts, this = split(y, self.op, "y")
            if shape is not None and this != shape:
                raise ControlFlowError(f"{self.op}: y is {shape.structure} after one step and {this.structure} later")
            shape = this
            found.append(parts)
        assert shape is not None, "there is at least one step"
        rows = found[::-1] if self.reverse else found
        stacked = [dispatch.apply(get("stack"), self._alike(column), (0,)) for column in zip(*rows, strict=True)]
        return nest.unflatten(self.of_carry, apart(carry, self.carry)), shape.rebuild(stacked)

    def stage(self) -> tuple[Any, Any]:
        """Makes the scan one op."""
        traced = self.trace()
        (body,), captures = read_outside(*close([traced]))
        params = (body, len(self.carry), len(self.xs), self.length if not self.xs else None, self.reverse)
        results = dispatch.apply(scan_op, (*self.carry, *self.xs, *captures), params)
        carry, y = traced.outputs.rebuild(results)
        return nest.unflatten(self.of_carry, carry), y

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
        )

    def step(self, carry: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], Any]:
        """The leaves of the carry after one step, and what the step shows."""
        x = None if self.of_xs is None else nest.unflatten(self.of_xs, rows)
        given = nest.unflatten(self.of_carry, carry)
        try:
            result = called(self.op, "fn", "the carry and a row of xs", self.fn, given, x)
        except DTypeError as error:
            blame_beginning(error, self._names(), carry)
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
                "function must keep it"
            )
        return [self._kept(*part) for part in zip(self._names(), self._specs(), after, strict=True)], result[1]

    def _names(self) -> list[str]:
        return list(self.names) or nest.paths(self.of_carry, "carry")

    def _specs(self) -> list[TensorSpec]:
        """Those of the carry in any step: not what is known of the elements, which change."""
        kept = self.carry_shapes or [x.shape for x in self.carry]
        return [known(shape, x.dtype) for shape, x in zip(kept, self.carry, strict=True)]

    def _kept(self, name: str, before: TensorSpec, after: Any) -> Tensor:
        x = as_tensor(after)
        if x.dtype != before.dtype or not shapes.compatible(x.shape, before.shape):
            advice = repaired(before, x.spec, "function") or "Reshape in the function, or before the scan"
            raise ControlFlowError(
                f"{self.op}: `{name}` is {before} on entry and {x.spec} after one step; the function must keep "
                f"dtype and shape. {advice}"
            )
        return x

    def _alike(self, column: Sequence[Tensor]) -> tuple[Tensor, ...]:
        first = column[0]
        other = next((y for y in column if y.shape != first.shape or y.dtype != first.dtype), None)
        if other is not None:
            raise ControlFlowError(
                f"{self.op}: y is {first.spec} after one step and {other.spec} after another; they are stacked, and so "
                "must be alike"
            )
        return tuple(column)


def _steps(op: str, rows: Sequence[Tensor], names: Sequence[str], length: Any) -> int | None:
    """The number of steps, None where only the run tells."""
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
    found = [(name, n) for name, n in sizes if n is not None]
    for name, n in found:
        if n != found[0][1]:
            raise ControlFlowError(f"{op}: the number of steps must be one, got {found[0][0]} and {name}")
    return found[0][1] if found else None


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
    def step(carry: Any, x: Any) -> Any:
        return fn(carry, None)

    step.__wrapped__ = fn  # type: ignore[attr-defined]  # its parameters are those of the user's
    step.__name__ = getattr(fn, "__name__", "body")
    return step
