"""`gradcheck`: derivatives against differences, for people who write gradient rules.

Differences are central with four points (Abramowitz and Stegun 25.3.6), in 64 bits: with steps of 1e-4 their error is
about 1e-11 of the function's own size, where it is smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from limelight.autodiff.forward_mode import ForwardAccumulator
from limelight.autodiff.gradient_cuts import departures_of
from limelight.autodiff.tape import INEXACT, GradientTape
from limelight.core import dtypes, nest, shapes
from limelight.core.tensor import Tensor, as_tensor, constant
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, GradientCheckError

Array = np.ndarray[Any, Any]
Arrays = list[Array]
_POINTS = ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0))
"""Multiples of the step and their weights; the sum is divided by 12 steps."""


class Compared(NamedTuple):
    """One number of a derivative. `place` is an index into the argument (reverse mode) or the result (forward mode)."""

    order: int
    mode: str
    what: str
    place: tuple[int, ...]
    found: complex
    expected: complex
    error: float  # in units of the tolerance: above 1 is wrong

    def __str__(self) -> str:
        at = f"[{', '.join(map(str, self.place))}]" if self.place else ""
        return (
            f"order {self.order}, {self.mode} mode, {self.what}{at}: "
            f"the rule gives {self.found:.10g}, differences give {self.expected:.10g}"
        )


@dataclass(frozen=True)
class GradCheck:
    """What `gradcheck` found: whether all is right, how many numbers were compared, and the worst of them.

    Where several orders or modes are wrong, the worst of the first: a wrong rule spoils what follows from it.
    """

    function: str
    ops: tuple[str, ...]  # those that were differentiated
    compared: int
    worst: Compared | None
    read: tuple[str, ...] = ()
    """The lines at which values that depend on the arguments left for Python or NumPy, where gradients end."""

    @property
    def ok(self) -> bool:
        return self.worst is None or self.worst.error <= 1.0

    def __str__(self) -> str:
        ops = f" (ops: {', '.join(self.ops)})" if self.ops else ""
        if self.ok:
            return f"gradients of {self.function}{ops} agree with differences in {self.compared} numbers"
        lines = f". Values were read as numbers at {', '.join(self.read)}: what comes of them has no gradient"
        return f"gradients of {self.function}{ops} are wrong; worst at {self.worst}{lines if self.read else ''}"

    __repr__ = __str__


def gradcheck(
    fn: Callable[..., Any],
    *args: Any,
    order: int = 2,
    forward: bool = True,
    step: float = 1e-4,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    limit: int = 50,
    raises: bool = True,
) -> GradCheck:
    """Compares derivatives with central differences, in reverse and forward mode.

    Points where `fn` is not smooth (within `2 * step`) give false alarms, and so do functions that read one triangle of
    a Hermitian matrix (`ll.linalg.cholesky`, `eigh`): give `lambda a: f((a + a.mT) / 2)`, or `a.mT.conj()` for a
    complex one. Layers compute in their own dtype: make them with `dtype="float64"`. To check staged code, give
    `ll.function(fn)`.

    Args:
        fn: a function of `args` that returns a tensor or a nest of tensors.
        *args: nests. Floating and complex tensors, arrays and variables among them are taken as tensors of 64 bits a
            part (float64, complex128) and differentiated; anything else is passed on as it is.
        order: up to which order, 1 or 2; 2.
        forward: whether forward mode is checked as well. True.
        step: half the distance of the two points of a difference; 1e-4.
        rtol: how far a derivative may be off, in parts of it; 1e-5.
        atol: how far it may be off besides; 1e-7.
        limit: of an argument with more elements than this so many are picked, the same ones every time; 50.
        raises: whether a derivative that is off is an error. True.

    Returns:
        A report: `ok`, and the `ops` that ran.

    Raises:
        GradientCheckError: a derivative is off (an AssertionError); it names the op, the argument, the worst element
            and both values.
        ArgumentError: there is nothing to differentiate, results differ from call to call, or `order` is not 1 or 2.

    >>> import limelight as ll
    >>> report = ll.gradcheck(lambda x, y: ll.sum(ll.tanh(x) @ y), ll.ones((2, 3)), ll.ones((3,)))
    >>> report.ok, report.ops
    (True, ('tanh', 'matmul', 'sum'))
    """
    if type(forward) is not bool:
        forward = shapes.flag("gradcheck", "forward", forward)
    if type(raises) is not bool:
        raises = shapes.flag("gradcheck", "raises", raises)
    if order not in (1, 2):
        raise ArgumentError(f"gradcheck: order must be 1 or 2, got {order!r}")
    check = _Check(fn, args, step, rtol, atol, limit)
    check.derivatives(check.function, 1, forward)
    if order == 2:
        check.derivatives(check.gradient_of(check.function), 2, forward)
    report = check.report()
    if raises and not report.ok:
        raise GradientCheckError(str(report))
    return report


Function = Callable[[Sequence[Tensor]], list[Tensor]]
"""From the differentiated arguments to the differentiable results."""


class _Check:
    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], step: float, rtol: float, atol: float, limit: int
    ) -> None:
        self.fn = fn
        self.step, self.rtol, self.atol, self.limit = step, rtol, atol, limit
        self.leaves, self.structure = nest.flatten(args)
        paths = nest.paths(self.structure, "args")
        self.places = [i for i, x in enumerate(self.leaves) if _is_inexact(x)]
        self.paths = [paths[i] for i in self.places]
        if not self.places:
            raise ArgumentError(
                "gradcheck: no argument is a floating or complex tensor or array; give ll.constant(...)"
            )
        self.arrays = [_widened(self.leaves[i]) for i in self.places]
        self.ops: dict[str, None] = {}
        self.read: dict[str, None] = {}  # lines
        self.compared = 0
        self.worst: dict[tuple[int, str], Compared] = {}  # by order and mode, in the order of checking
        if not _equal(self.values(self.function, self.arrays), self.values(self.function, self.arrays)):
            raise ArgumentError("gradcheck: two calls gave different results; a function that draws has no derivative")

    def function(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        leaves = list(self.leaves)
        for i, x in zip(self.places, tensors, strict=True):
            leaves[i] = x
        result = self.fn(*nest.unflatten(self.structure, leaves))
        tensors = [as_tensor(y) for y in nest.leaves_of(result) if y is not None]
        return [y for y in tensors if y.dtype in INEXACT]

    @staticmethod
    def values(function: Function, arrays: Arrays) -> Arrays:
        return [y.numpy() for y in function([constant(a) for a in arrays])]

    def gradient_of(self, function: Function) -> Function:
        """The gradients of a weighted sum of the results, as results; those that are not connected are left out."""
        weights = _random(self.values(function, self.arrays), 1)

        def gradient(tensors: Sequence[Tensor]) -> list[Tensor]:
            return [g for g in self.pulled(function, tensors, weights) if g is not None]

        return gradient

    def pulled(self, function: Function, tensors: Sequence[Tensor], weights: Arrays) -> list[Any]:
        with GradientTape() as tape:
            tape.watch(list(tensors))
            outputs = function(tensors)
        if function == self.function:
            self.ops |= dict.fromkeys(entry.op for entry in tape.entries)
            for x in tensors:
                self.read |= dict.fromkeys(map(str, departures_of(x._uid, tape._entries, tape._cuts)))
        gradients = tape.gradient(outputs, list(tensors), output_gradients=[constant(w) for w in weights])
        return [None if g is None else as_tensor(g) for g in gradients]

    # Comparing

    def derivatives(self, function: Function, order: int, forward: bool) -> None:
        """Compares one order of derivative, in both modes."""
        outputs = self.values(function, self.arrays)
        if not outputs:  # nothing is connected: then nothing may move, which order 1 has checked
            return
        weights = _random(outputs, 2)
        gradients = self.pulled(function, [constant(a) for a in self.arrays], weights)
        for k, g in enumerate(gradients):
            self.check_shape(order, k, g)
            slopes = np.zeros_like(self.arrays[k]) if g is None else g.numpy()
            for place, expected in self.slopes(function, k, weights):
                self.compare(order, "reverse", self.paths[k], place, slopes[place], expected)
        if forward:
            self.directional(function, order)

    def check_shape(self, order: int, k: int, g: Tensor | None) -> None:
        """A rule must give its input's own shape and dtype: that of a broadcast operand is summed."""
        x = self.arrays[k]
        if g is not None and (g.shape != x.shape or g.dtype != x.dtype):
            raise GradientCheckError(
                f"the gradient for {self.paths[k]} (order {order}; ops: {', '.join(self.ops)}) is {g.spec}, its source "
                f"is {constant(x).spec}; write g.sum_to(x_shape) in the rule for an operand that is broadcast"
            )

    def slopes(self, function: Function, k: int, weights: Arrays) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Differences of Re<weights, f> along elements of argument `k`; complex ones along both parts."""
        array = self.arrays[k]
        places = list(np.ndindex(array.shape))
        if len(places) > self.limit:
            places = [places[i] for i in np.random.default_rng(0).permutation(len(places))[: self.limit]]
        for place in places:
            total: Any = 0.0
            for unit in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
                direction = [np.zeros_like(a) for a in self.arrays]
                direction[k][place] = unit
                moved = self.moved(function, direction)
                total += unit * sum(float(np.sum(np.conj(w) * d).real) for w, d in zip(weights, moved, strict=True))
            yield place, total

    def moved(self, function: Function, direction: Arrays) -> Arrays:
        """How the results move along a direction, by differences."""
        total: Arrays | None = None
        for multiple, weight in _POINTS:
            ends = self.values(
                function, [a + multiple * self.step * d for a, d in zip(self.arrays, direction, strict=True)]
            )
            parts = [end * (weight / (12 * self.step)) for end in ends]
            total = parts if total is None else [t + p for t, p in zip(total, parts, strict=True)]
        assert total is not None
        return total

    def directional(self, function: Function, order: int) -> None:
        """The same along one direction, by tangents."""
        direction = _random(self.arrays, 3)
        tensors = [constant(a) for a in self.arrays]
        with ForwardAccumulator(tensors, [constant(d) for d in direction]) as accumulator:
            outputs = function(tensors)
        tangents = accumulator.jvp(outputs, unconnected_gradients="zero")
        for i, (tangent, expected) in enumerate(zip(tangents, self.moved(function, direction), strict=True)):
            for place in np.ndindex(expected.shape):
                self.compare(order, "forward", f"result {i}", place, tangent.numpy()[place], expected[place])

    def compare(self, order: int, mode: str, what: str, place: tuple[int, ...], found: Any, expected: Any) -> None:
        self.compared += 1
        allowed = self.atol + self.rtol * max(abs(expected), 1e-3)
        error = abs(found - expected) / allowed
        error = float("inf") if np.isnan(error) else float(error)
        before = self.worst.get((order, mode))
        if before is None or error > before.error:
            self.worst[order, mode] = Compared(order, mode, what, place, found, expected, error)

    def report(self) -> GradCheck:
        name = getattr(self.fn, "__name__", None) or getattr(self.fn, "name", type(self.fn).__name__)
        wrong = [worst for worst in self.worst.values() if worst.error > 1.0]
        worst = wrong[0] if wrong else max(self.worst.values(), key=lambda c: c.error, default=None)
        return GradCheck(str(name), tuple(self.ops), self.compared, worst, tuple(self.read))


def _is_inexact(x: Any) -> bool:
    return isinstance(x, (Tensor, Resource, np.ndarray)) and dtypes.dtype(x.dtype) in INEXACT


def _widened(x: Any) -> Array:
    array = np.asarray(x)
    return array.astype(np.complex128 if dtypes.kind(dtypes.dtype(array.dtype)) == "complex" else np.float64)


def _random(like: Arrays, seed: int) -> Arrays:
    """Arrays of random numbers of the shapes and dtypes of others."""
    rng = np.random.default_rng(seed)
    arrays = []
    for array in like:
        drawn = rng.uniform(-1.0, 1.0, array.shape)
        arrays.append(
            np.asarray(drawn + 1j * rng.uniform(-1.0, 1.0, array.shape) if array.dtype.kind == "c" else drawn)
        )
    return [f.astype(a.dtype) for f, a in zip(arrays, like, strict=True)]


def _equal(a: Arrays, b: Arrays) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))
