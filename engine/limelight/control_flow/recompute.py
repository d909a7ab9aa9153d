"""`recompute_grad`: less memory for more work (Chen et al. 2016, "Training deep nets with sublinear memory cost").

It is a custom gradient whose rule runs the function once more, under a tape, and pulls back through that. What the
function reads must be what it was: variables are read from snapshots, wherever a staged function, a branch or a loop
reads them. Generators, and variables that the function changes, are set back for the while.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from limelight.autodiff import INEXACT, GradientTape, unrecorded
from limelight.control_flow.custom_call import staged
from limelight.control_flow.custom_gradient import eager
from limelight.control_flow.custom_gradient_rules import Arguments, MakeRule, Packing, flattened
from limelight.control_flow.effect_recorder import Watcher
from limelight.control_flow.replay import Snapshots, replayed, snapshots_of
from limelight.core import dispatch, nest
from limelight.core.autograph_hook import maybe_converted
from limelight.core.tensor import as_tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, mark_user_error
from limelight.staging.trace_body import tracing
from limelight.user_code import source_line


def recompute_grad(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient checkpointing: a tape keeps only the arguments of `fn`, and the backward pass runs `fn` again.

    Chen et al. 2016, "Training deep nets with sublinear memory cost". Gradients are the same, to any order, for
    arguments, trainable variables that `fn` reads, and tensors that it closes over. Variables are read as they were,
    whatever has been assigned to them since, and random draws are replayed. A variable to which `fn` itself assigns is
    set back to what it was while `fn` runs again, and is then what it was just before: assignments happen once. Input
    and output happen a second time, so a RuntimeWarning names the line of a py_func or other output that `fn` makes;
    what such code reads by itself in a graph is read as it is then. What plain Python does (printing, appending to a
    list) also happens twice; run eagerly it sees names that have been bound anew since, and what `ll.init_scope` blocks
    read, as they are then.

    Args:
        fn: a function of tensors or nests of them.

    Returns:
        A function with the arguments and results of `fn`.

    Raises:
        ArgumentError: `fn` cannot be called.
        GradientError: running `fn` again leads to other ops, for which a variable's old value cannot be given (when the
            gradient is computed).

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
        args, kwargs, run = *arguments.given, maybe_converted(fn)
        with Watcher(states=True) as watcher:
            result = run(*args, **kwargs)
        _warn_of_io(name, watcher.io)
        return result, functools.partial(Recomputation, run, watcher)

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
        self, fn: Callable[..., Any], seen: Watcher, arguments: Arguments, packing: Packing, variables: Sequence[Any]
    ) -> None:
        self.name = "recompute"
        self._fn = fn
        self._states = tuple(seen.states)
        self._arguments = arguments
        self._snapshots = snapshots_of(seen)
        states = [state for _, state in self._states]
        closed = [x for x in variables if not isinstance(x, Resource)]
        self.keeps = (*arguments.tensors, *closed, *self._snapshots.values(), *states)  # for counting bytes

    def __call__(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        given = (*self._arguments.tensors, *variables)
        everything = (*given, *[self._snapshots.get(x._uid) if isinstance(x, Resource) else None for x in given])
        sources = [x if x is not None and x.dtype in INEXACT else None for x in everything]
        args, kwargs = self._arguments.given
        with replayed(self._states), GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in sources if x is not None])
            with Snapshots(self._snapshots):
                result = self._fn(*args, **kwargs)
            outputs = [as_tensor(y) for y in nest.leaves_of(result) if y is not None]
        pairs = [(y, g) for y, g in zip(outputs, gradients, strict=True) if g is not None]
        found = tape.gradient([y for y, _ in pairs], sources, output_gradients=[g for _, g in pairs])
        return list(map(_sum, found[: len(given)], found[len(given) :]))


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _warn_of_io(name: str, lines: Sequence[source_line.Source | None]) -> None:
    """Says that what `fn` does besides computing its result happens twice."""
    message = (
        f"recompute_grad: {name} does input or output, and does so again when its gradient is computed; what it reads "
        "besides its inputs (a variable, say) is read as it is then: pass v.read_value()"
    )
    for line in dict.fromkeys(lines):
        try:
            if line is None:
                warnings.warn(message, RuntimeWarning, stacklevel=4)
            else:
                warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)
        except RuntimeWarning as error:  # the user has made warnings errors
            mark_user_error(error)
            raise
