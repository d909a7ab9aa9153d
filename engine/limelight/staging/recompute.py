"""`recompute_grad`: less memory for more work (Chen et al. 2016, "Training deep nets with sublinear memory cost").

It is a custom gradient whose rule runs the function once more, under a tape, and pulls back through that. What the
function reads must be what it was: variables are read from snapshots, generators are set back for the while.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from limelight import dispatch, nest
from limelight.errors import ArgumentError, mark_user_error
from limelight.registry import Op
from limelight.staging.branches import tracing
from limelight.staging.custom import eager
from limelight.staging.custom_call import staged
from limelight.staging.custom_rules import Arguments, MakeRule, Packing, flattened
from limelight.staging.watching import Seen, Watcher
from limelight.tape import INEXACT, GradientTape, unrecorded
from limelight.tensor import as_tensor
from limelight.variables import Resource, assign_op, read


def recompute_grad(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, but a tape keeps only its arguments: the backward pass runs `fn` again for what else it needs.

    Gradients are the same, to any order, for arguments, trainable variables that `fn` reads, and tensors that it closes
    over. Random draws are replayed from the state that their generator had. Variables are read as they were,
    but for those that a staged function called by `fn` reads, and those of an `fn` in the body of a staged loop: these
    are read anew, so assign to them after the backward pass. Effects happen a second time, so a
    RuntimeWarning names the line of an assignment, a py_func or other output that `fn` makes; what plain Python does
    (printing, appending to a list) also happens twice. Raises ArgumentError when `fn` cannot be called.

    >>> import limelight as ll
    >>> block = ll.recompute_grad(lambda x: ll.tanh(ll.tanh(ll.tanh(x))))
    >>> x = ll.ones((1000,))
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = block(x)
    >>> tape.saved_bytes  # x itself; with the three results it would be 12000
    4000
    """
    if not callable(fn):
        raise ArgumentError(f"recompute_grad needs a function, got {type(fn).__name__}; write it as a decorator")
    name = str(getattr(fn, "__name__", type(fn).__name__))

    def body(arguments: Arguments) -> tuple[Any, MakeRule]:
        args, kwargs = arguments.given
        with Watcher() as watcher:
            result = fn(*args, **kwargs)
        _warn_of_effects(name, watcher.effects)
        return result, functools.partial(Recomputation, fn, watcher.generators)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = flattened(args, kwargs)
        if tracing() is not None:
            return staged(name, body, arguments, closures=True)
        if len(dispatch.stack()) == 1:
            return fn(*args, **kwargs)
        return eager(body, arguments, unrecorded(), closures=True)

    return call


class Recomputation:
    """The rule of one call."""

    def __init__(
        self,
        fn: Callable[..., Any],
        generators: Sequence[tuple[Any, Any]],
        arguments: Arguments,
        packing: Packing,
        variables: Sequence[Any],
    ) -> None:
        self.name = "recompute"
        self._fn = fn
        self._generators = tuple(generators)
        self._arguments = arguments
        self._snapshots = {v._uid: as_tensor(v) for v in variables if isinstance(v, Resource)}
        states = [state for _, state in self._generators]
        closed = [x for x in variables if not isinstance(x, Resource)]
        self.keeps = (*arguments.tensors, *closed, *self._snapshots.values(), *states)  # for counting bytes

    def __call__(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        tensors, snapshots = self._arguments.tensors, [self._snapshots.get(v._uid) for v in variables]
        everything = (*tensors, *variables, *snapshots)
        sources = [x if x is not None and x.dtype in INEXACT else None for x in everything]
        args, kwargs = self._arguments.given
        with _replayed(self._generators), GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in sources if x is not None])
            with Snapshots(self._snapshots):
                result = self._fn(*args, **kwargs)
            outputs = [as_tensor(y) for y in nest.leaves_of(result) if y is not None]
        pairs = [(y, g) for y, g in zip(outputs, gradients, strict=True) if g is not None]
        found = tape.gradient([y for y, _ in pairs], sources, output_gradients=[g for _, g in pairs])
        n, m = len(tensors), len(variables)
        return [*found[:n], *map(_sum, found[n : n + m], found[n + m :])]


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


class Snapshots(dispatch.BlockInterpreter):
    """Answers reads of some variables with what they were."""

    def __init__(self, values: dict[int, Any]) -> None:
        self._values = values

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        known = self._values.get(inputs[0]._uid) if op is read else None
        return self.below.process(op, inputs, attrs) if known is None else known


@contextmanager
def _replayed(generators: Sequence[tuple[Any, Any]]) -> Iterator[None]:
    """Runs its block with generators in the given states, and puts them back into those that they had."""
    before = []
    try:
        for generator, state in generators:
            before.append((generator, dispatch.apply(read, (generator,))))
            dispatch.apply(assign_op, (generator, state))
        yield
    finally:
        for generator, state in before:
            dispatch.apply(assign_op, (generator, state))


def _warn_of_effects(name: str, effects: Sequence[Seen]) -> None:
    """Says that what `fn` does besides computing its result happens twice."""
    for what, line in dict.fromkeys(effects):
        message = f"recompute_grad: {name} {what}, and does so again when its gradient is computed"
        try:
            if line is None:
                warnings.warn(message, RuntimeWarning, stacklevel=4)
            else:
                warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)
        except RuntimeWarning as error:  # the user has made warnings errors
            mark_user_error(error)
            raise
