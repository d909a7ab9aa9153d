"""`recompute_grad`: less memory for more work (Chen et al. 2016, "Training deep nets with sublinear memory cost").

It is a custom gradient whose rule runs the function once more, under a tape, and pulls back through that. The second
run must read what the first one read (`replay`): variables come from snapshots, also in staged functions, branches and
loops; generators, variables that the function changes, and Python's names are set back for the while. So assignments
happen once, while running averages, for example, advance twice where checkpoints only run a function again.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from limelight.autodiff import INEXACT, GradientTape, once, unrecorded
from limelight.control_flow.custom_call import call_staged
from limelight.control_flow.custom_gradient import call_eagerly
from limelight.control_flow.custom_gradient_rules import Arguments, MakeRule, Packing, flattened
from limelight.control_flow.replay import FirstRunRecorder, set_back
from limelight.core import dispatch, nest
from limelight.core.autograph_hook import maybe_converted
from limelight.core.tensor import as_tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, mark_user_error
from limelight.staging.trace_branch import tracing, variables_read
from limelight.user_code import source_line


def recompute_grad(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient checkpointing: a tape keeps only the arguments of `fn`, and the backward pass runs `fn` again.

    Chen et al. 2016, "Training deep nets with sublinear memory cost". Gradients are the same, to any order, for
    arguments, trainable variables that `fn` reads, and tensors that it closes over. Variables are read as they were,
    whatever has been assigned to them since, and random draws are replayed. A variable to which `fn` itself assigns is
    set back to what it was while `fn` runs again, and is then what it was just before: assignments happen once. So are
    names, attributes, lists, dictionaries and sets that `fn` reaches in Python: a loop's variable is what it was. Input
    and output (printing, files) happen a second time, so a RuntimeWarning names the line of a py_func or other output
    that `fn` makes; what such code reads by itself in a graph is read as it is then, and what `ll.init_scope` blocks
    read, too.

    Args:
        fn: a function of tensors or nests of them.

    Returns:
        A function with the arguments and results of `fn`.

    Raises:
        ArgumentError: `fn` cannot be called.
        GradientError: `fn` computes something else when it runs again, since it depends on what cannot be set back: an
            iterator, an array that has been written to, Python's random numbers (when the gradient is computed).

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
        first = FirstRunRecorder(name, fn, arguments.tensors)
        with first.recorder as recorder:
            result = run(*args, **kwargs)
        first.finish(result)
        _warn_of_io(name, recorder.io)
        return result, functools.partial(Recomputation, run, first)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = flattened(args, kwargs)
        if tracing() is not None:
            return call_staged(name, body, arguments, closures=True)
        if len(dispatch.stack()) == 1:
            return variables_read(fn(*args, **kwargs))
        return call_eagerly(body, arguments, unrecorded(), closures=True)

    return call


class Recomputation:
    """The rule of one call: runs the function again under a tape, and pulls back through it."""

    def __init__(
        self,
        fn: Callable[..., Any],
        first: FirstRunRecorder,
        arguments: Arguments,
        packing: Packing,
        variables: Sequence[Any],
    ) -> None:
        self.name = "recompute"
        self._fn = fn
        self._first = run = first.first_run()
        self._arguments = arguments
        states = [state for _, state in run.states]
        closed = [x for x in variables if not isinstance(x, Resource)]
        self.keeps = (*arguments.tensors, *closed, *run.snapshots.values(), *states)  # for counting bytes

    def __call__(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        tensors, snapshots = self._arguments.tensors, self._first.snapshots
        inputs = (*tensors, *variables)
        everything = (*inputs, *[snapshots.get(x._uid) if isinstance(x, Resource) else None for x in inputs])
        sources = once([x if x is not None and x.dtype in INEXACT else None for x in everything])
        args, kwargs = self._arguments.given
        with set_back(self._first), GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in sources if x is not None])
            result = self._first.again(lambda: self._fn(*args, **kwargs), tensors)
            outputs = [as_tensor(y) for y in nest.leaves_of(result) if y is not None]
        pairs = [(y, g) for y, g in zip(outputs, gradients, strict=True) if g is not None]
        results = tape.gradient([y for y, _ in pairs], sources, output_gradients=[g for _, g in pairs])
        return list(map(_sum, results[: len(inputs)], results[len(inputs) :]))


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _warn_of_io(name: str, lines: Sequence[source_line.Source | None]) -> None:
    """Warns that input and output in the function happen twice."""
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
