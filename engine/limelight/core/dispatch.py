"""The interpreter stack: which interpreter handles an op. Each thread has one, with eager execution at its bottom.

After Autodidax (the JAX authors' account of tracing interpreters): evaluation, differentiation, batching and tracing
are peers behind one method, `Interpreter.process`, so dispatch knows neither tapes nor traces. A tape that is opened
within a trace stands above the tracer, and so its backward pass is traced as well; a tape outside of it sees one op,
the call.

The stack is thread-local: a tape that another thread has entered does not see this thread's ops. `active` and `scopes`,
which only say whether anything may be going on, are shared by all threads: reading a module's list is much cheaper than
reading a thread's or a context's variable, and where another thread's interpreter fills them by chance, this thread's
ops merely take the longer way to the same result.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Final, Self

from limelight import events
from limelight.core.devices import Device

active: Final[list[object]] = []
"""Not empty when "just run the kernel" may be wrong on some thread: it holds each interpreter above the eager one, and
what `scopes` holds. Entry points look at it first, and at nothing else when it is empty."""

scopes: Final[list[object]] = []
"""The part of `active` that is not an interpreter: device scopes and listeners to single ops. Empty means that
ops run where their operands are, unobserved."""


class Interpreter:
    """Gives ops their meaning. `below` is the next interpreter down this thread's stack while this one is on it."""

    below: Interpreter | None = None
    scope: str | None = None
    """The name scope of the nodes that it writes ("dense/"); None where it writes none."""
    enclosing_scope: Any = None
    """The name scopes around that one (see `name_scopes`)."""
    observes = False
    """Whether it only takes note of what eager execution does. While it alone stands above the eager interpreter, entry
    points run simple kernels themselves and then tell it, by `observe` or `observe_many`: so they know observers, not
    tapes, and a recorded addition takes half the time that it would take by way of `process`."""

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Handles one op: `inputs` are tensors, variables or Python scalars, `attrs` hashable static parameters.

        Returns a tensor, or a tuple of tensors for an op with several outputs.
        """
        raise NotImplementedError

    def observe(self, recipes: Any, x: Any, y: Any, first: int, second: int, out: Any) -> None:
        """Told of an op that has just run, by the op's recipes, its inputs and their uids (0 for a Python scalar).

        The op has two inputs and no parameters, or one: then `y` are its parameters and `second` is 0.
        """
        raise NotImplementedError

    def observe_many(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Any) -> None:
        """The same for any inputs and parameters."""
        raise NotImplementedError

    def value_of(self, variable: Any) -> Any:
        """The value of a variable that an entry point has among its operands, read as this interpreter wants it."""
        raise NotImplementedError

    def value_left(self, x: Any) -> None:
        """Told that the value of a tensor goes to Python or NumPy, where nobody sees what becomes of it."""
        if self.below is not None:
            self.below.value_left(x)

    def watches(self, x: Any) -> bool:
        """Whether somebody would want to know what becomes of a tensor."""
        return self.below is not None and self.below.watches(x)

    def constant(self, array: Any, device: Device | None) -> Any:
        """A tensor with the value of a NumPy array that nobody else holds; a trace writes it into its graph."""
        assert self.below is not None
        return self.below.constant(array, device)


class BlockInterpreter(Interpreter):
    """One that stands on the stack for the length of a `with` block."""

    def __enter__(self) -> Self:
        push(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            remove(self)
        except KeyboardInterrupt:  # in the middle of it: once more
            remove(self)
            raise


_base: Final[list[Interpreter]] = []


class _Local(threading.local):
    """The interpreters of one thread."""

    def __init__(self) -> None:
        self.stack: list[Interpreter] = list(_base)
        self.stacks = [self.stack]  # those that blocks around this line have put away, and it
        self.observer: Interpreter | None = None  # whom entry points tell (see `_choose_observer`)


local: Final = _Local()


def set_base(interpreter: Interpreter) -> None:
    """Makes `interpreter` the bottom of every thread's stack; called once, by the eager interpreter."""
    _base[:] = [interpreter]
    local.stack = [interpreter]
    local.stacks = [local.stack]


def apply(op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...] = ()) -> Any:
    """Runs `op` under the innermost interpreter of this thread."""
    return local.stack[-1].process(op, inputs, attrs)


def current() -> Interpreter:
    """The innermost interpreter of this thread."""
    return local.stack[-1]


def stack() -> tuple[Interpreter, ...]:
    """This thread's interpreters, bottom first."""
    return tuple(local.stack)


def push(interpreter: Interpreter) -> None:
    """Makes `interpreter` the innermost one of this thread."""
    try:
        interpreter.below = local.stack[-1]
        local.stack.append(interpreter)
        active.append(interpreter)
        _choose_observer()
    except BaseException:
        remove(interpreter)
        raise


def remove(interpreter: Interpreter) -> None:
    """Takes `interpreter` off this thread's stack, wherever it stands: scopes may be left in any order.

    May be called again, and does nothing then. Whoever leaves a scope does so if an interrupt came in the middle.
    """
    everywhere: list[list[Any]] = [active, *local.stacks]
    for places in everywhere:
        if interpreter in places:
            places.remove(interpreter)
    for lower, upper in zip(local.stack, local.stack[1:], strict=False):
        upper.below = lower
    interpreter.below = None
    _choose_observer()


def _choose_observer() -> None:
    """Whom entry points tell: the one interpreter above the eager one, if it only observes."""
    stack = local.stack
    local.observer = stack[1] if len(stack) == 2 and stack[1].observes else None


def fresh_stack() -> AbstractContextManager[None]:
    """Runs its block eagerly, outside every tape and trace of this thread."""
    return _with_stack(list(_base))


def stack_below(interpreter: Interpreter) -> AbstractContextManager[None]:
    """Runs its block under the interpreters that stand below `interpreter` on this thread's stack."""
    return _with_stack(local.stack[: local.stack.index(interpreter)])


@contextmanager
def _with_stack(stack: list[Interpreter]) -> Iterator[None]:
    """Puts this thread's stack away for the length of its block. Such blocks may be left in any order."""
    try:
        _set_stacks([*local.stacks, stack])
        yield
    finally:
        try:
            _set_stacks([other for other in local.stacks if other is not stack])
        except KeyboardInterrupt:
            _set_stacks([other for other in local.stacks if other is not stack])
            raise


def use_stacks(stacks: list[list[Interpreter]]) -> None:
    """Returns to those of this thread's stacks that are among `stacks`; the last one of them is in use."""
    _set_stacks([stack for stack in local.stacks if any(stack is other for other in stacks)])


def _set_stacks(stacks: list[list[Interpreter]]) -> None:
    local.stacks = stacks
    local.stack = stacks[-1]
    _choose_observer()


def _on_interest(interested: bool) -> None:
    """A listener to single ops or allocations takes execution off the hot path, and back when it goes."""
    for places in (scopes, active):
        if interested:
            places.append(_on_interest)
        else:
            places.remove(_on_interest)


for _kind in (events.OpRan, events.Allocated, events.Freed, events.Recorded):
    events.on_interest(_kind, _on_interest)
