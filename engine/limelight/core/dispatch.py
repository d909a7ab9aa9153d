"""The interpreter stack: which interpreter handles an op. Each thread has one, with eager execution at its bottom.

After Autodidax (the JAX authors' account of tracing interpreters): evaluation, differentiation, batching and tracing
are peers behind one method, `Interpreter.process`, so dispatch knows neither tapes nor traces. A tape that is opened
within a trace stands above the tracer, and so its backward pass is traced as well; a tape outside of it sees one op,
the call.

The stack is thread-local: a tape that another thread has entered does not see this thread's ops. `active` and `scopes`,
which only say whether anything may be going on, are shared by all threads: reading a module's list is much cheaper than
reading a thread's or a context's variable, and where another thread's interpreter fills them by chance, this thread's
ops merely take the longer way to the same result.

An interrupt at the first instruction of an `__exit__` keeps it from running. So whatever stands in `active` for a block
knows which (`with_blocks`), and the longer way, on which nobody counts nanoseconds, first takes off what is over.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

from limelight import events, forking
from limelight.core.device_counts import kept as kept  # noqa: PLC0414  # handed on to who looks at `active`
from limelight.core.devices import Device
from limelight.with_blocks import Block, block_of, has_ended

active: Final[list[object]] = []
"""Not empty when "just run the kernel" may be wrong on some thread: it holds each interpreter above the eager one, each
`Guard`, and what `scopes` holds. Entry points look at it first, and at nothing else when it is empty."""

scopes: Final[list[object]] = []
"""The part of `active` that is not an interpreter: device scopes and listeners to single ops. Empty means that
ops run where their operands are, unobserved."""


class Interpreter:
    """Gives ops their meaning. `below` is the next interpreter down this thread's stack while this one is on it."""

    below: Interpreter | None = None
    block: Block | None = None
    """That at whose end it is to leave the stack."""
    scope: str | None = None
    """The name scope of the nodes that it writes ("dense/"); None where it writes none."""
    nodes: Any = ()
    """The nodes that it has written, the latest one last."""
    enclosing_scope: Any = None
    """The name scopes around that one (see `name_scopes`)."""
    calls: Any = None
    """The module calls in which it writes nodes (see `module_calls`); None where it notes none."""
    makes_handles = False
    """Whether code in its block sees tensors of its own, which stand for others: in a trace, in a batched call."""
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

    def read_operand(self, variable: Any) -> Any:
        """The value of a variable that an entry point has among its operands, read as this interpreter wants it.

        One read may serve many ops, so code of the user's must not get hold of it.
        """
        return variable.read_value()

    def observe_read(self, variable: Any) -> Any:
        """`read_operand` of an observer that stands alone above eager execution."""
        raise NotImplementedError

    def has_read(self, storage: Any, value: Any) -> bool:
        """Whether `value`, the latest that was read of a storage as an operand, was read under this interpreter too."""
        return self.below is None  # eager execution, the only one that takes no note of it

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

    def repeat(self, work: Any, how: Any, operands: tuple[Any, ...], entry: Any, stack: Any) -> Any:
        """`work(how, operands, entry)`, a tuple: what a gradient does at one entry of a tape, by tensor ops.

        It depends on `how` and `operands` only, and in a trace on their types only: then it is done once for each.
        `stack` are the lines to which it belongs.
        """
        return work(how, operands, entry)

    def abandon(self) -> None:
        """Called when its block is over although nobody has taken it off the stack."""
        remove(self)


class BlockInterpreter(Interpreter):
    """One that stands on the stack for the length of a `with` block."""

    def __enter__(self) -> Self:
        push(self, sys._getframe(1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            remove(self)
        except KeyboardInterrupt:  # in the middle of it: once more
            remove(self)
            raise


class Guard:
    """Takes back at the end of its block what holds for the whole process in it; after an interrupt, at the next op."""

    def __init__(self) -> None:
        self.block: Block | None = None
        self._busy: FrameType | None = (
            None  # what begins or ends it: that runs ops, which ask whether its block is over
        )

    def begin(self) -> None:
        """Called as the block begins."""

    def end(self, abandoned: bool) -> None:
        """Called at its end, again if an interrupt came in the middle; `abandoned`: the block has been over before."""

    def __enter__(self) -> None:
        self.block = block_of(sys._getframe(1))
        self._busy = sys._getframe()
        active.append(self)
        self.begin()
        self._busy = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end(abandoned=False)

    def abandon(self) -> None:
        self._end(abandoned=True)

    def _end(self, abandoned: bool) -> None:
        if self._busy is None or has_ended(self._busy):
            self._busy = sys._getframe()
            try:
                self.end(abandoned)
            except Exception:  # of what will not be taken back: it is told once, and not by each op from now on
                self._leave()
                raise
            self._leave()

    def _leave(self) -> None:
        _take_from(active, self)
        self.block = self._busy = None


class _Stack(list[Interpreter]):
    """Interpreters, bottom first, and the block for which others were put away."""

    block: Block | None = None


_base: Final[list[Interpreter]] = []


class _Local(threading.local):
    """The interpreters of one thread."""

    def __init__(self) -> None:
        self.stack = _Stack(_base)
        self.stacks = [self.stack]  # those that blocks around this line have put away, and it
        self.observer: Interpreter | None = None  # whom entry points tell (see `_choose_observer`)


local: Final = _Local()


def set_base(interpreter: Interpreter) -> None:
    """Makes `interpreter` the bottom of every thread's stack; called once, by the eager interpreter."""
    _base[:] = [interpreter]
    local.stack = _Stack(_base)
    local.stacks = [local.stack]


def apply(op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...] = ()) -> Any:
    """Runs `op` under the innermost interpreter of this thread."""
    stack = local.stack
    if len(active) > len(kept) + len(tapes_told):  # views that count, or hear of tapes, are nothing that could be over
        block = stack[-1].block or stack.block
        if block is None or not ((block.inside and block.inside[block.frame.f_lasti]) or not block.is_over):
            heal()
            stack = local.stack
    return stack[-1].process(op, inputs, attrs)


def current() -> Interpreter:
    """The innermost interpreter of this thread."""
    stack = local.stack
    if active:
        block = stack[-1].block or stack.block
        if block is None or not ((block.inside and block.inside[block.frame.f_lasti]) or not block.is_over):
            heal()
            return local.stack[-1]
    return stack[-1]


def stack() -> tuple[Interpreter, ...]:
    """This thread's interpreters, bottom first."""
    if active:
        heal()
    return tuple(local.stack)


def heal() -> None:
    """Leaves, for each block of this thread that is over, what an interrupt has kept from being left."""
    here = threading.get_ident()
    for one in active[::-1]:
        block: Block | None = getattr(one, "block", None)
        if block is not None and block.thread == here and block.is_over:
            one.abandon()  # type: ignore[attr-defined]  # whatever has a block can be
    if len(local.stacks) > 1:
        _set_stacks([stack for stack in local.stacks if stack.block is None or not stack.block.is_over])


def push(interpreter: Interpreter, frame: FrameType) -> None:
    """Makes `interpreter` the innermost one of this thread, for the block that `frame` is about to begin."""
    if active:
        heal()
    put(interpreter, frame)


def put(interpreter: Interpreter, frame: FrameType) -> None:
    """`push`, when everything is healed."""
    stack = local.stack
    try:
        interpreter.block = block_of(frame)
        interpreter.below = stack[-1]
        active.append(interpreter)  # before it is on the stack: `remove` counts on it
        stack.append(interpreter)
        local.observer = interpreter if len(stack) == 2 and interpreter.observes else None
    except BaseException:
        remove(interpreter)
        raise


def remove(interpreter: Interpreter) -> None:
    """Takes `interpreter` off this thread's stack, wherever it stands: scopes may be left in any order.

    May be called again, and does nothing then. Whoever leaves a scope does so if an interrupt came in the middle.
    """
    stacks = local.stacks
    if len(stacks) == 1 and stacks[0][-1] is interpreter:  # as nearly always
        stacks[0].pop()
        active.remove(interpreter)
    else:
        everywhere: list[list[Any]] = [active, *stacks]
        for places in everywhere:
            _take_from(places, interpreter)
        for lower, upper in zip(local.stack, local.stack[1:], strict=False):
            upper.below = lower
    interpreter.below = interpreter.block = None
    _choose_observer()


def is_put_away(interpreter: Interpreter) -> bool:
    """Whether it stands on a stack of this thread that is not in use, or was not when an interrupt came."""
    return any(interpreter in stack for stack in local.stacks)


def _take_from(places: list[Any], one: object) -> None:
    if one in places:
        places.remove(one)


def _choose_observer() -> None:
    """Whom entry points tell: the one interpreter above the eager one, if it only observes."""
    stack = local.stack
    local.observer = stack[1] if len(stack) == 2 and stack[1].observes else None


def fresh_stack() -> OtherStack:
    """Runs its block eagerly, outside every tape and trace of this thread."""
    return OtherStack(_base)


def stack_below(interpreter: Interpreter) -> OtherStack:
    """Runs its block under the interpreters that stand below `interpreter` on this thread's stack."""
    return OtherStack(local.stack[: local.stack.index(interpreter)])


class OtherStack:
    """Puts this thread's stack away for the length of its block. Such blocks may be left in any order."""

    def __init__(self, stack: list[Interpreter]) -> None:
        self._stack = _Stack(stack)

    def __enter__(self) -> None:
        self._stack.block = block_of(sys._getframe(1))
        try:
            _set_stacks([*local.stacks, self._stack])
        except BaseException:
            self._leave()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self._leave()
        except KeyboardInterrupt:
            self._leave()
            raise

    def _leave(self) -> None:
        _set_stacks([other for other in local.stacks if other is not self._stack])
        self._stack.block = None


def use_stacks(stacks: list[_Stack]) -> None:
    """Returns to those of this thread's stacks that are among `stacks`; the last one of them is in use."""
    _set_stacks([stack for stack in local.stacks if any(stack is other for other in stacks)])


def _set_stacks(stacks: list[_Stack]) -> None:
    local.stacks = stacks
    local.stack = stacks[-1]
    _choose_observer()


class _Listened:
    """In `active` and `scopes` while somebody listens: takes execution off the hot path, and back when it goes."""

    def __init__(self, places: tuple[list[object], ...]) -> None:
        self._places = places

    def note(self, interested: bool) -> None:
        for places in self._places if interested else self._places[::-1]:  # in `active` first, and out of it last
            known = self in places  # not so where an interrupt came between the listener and this
            if interested and not known:
                places.append(self)
            elif known and not interested:
                places.remove(self)


tapes_told: Final[list[object]] = []
"""The part of `scopes` that only tapes need to know of: somebody listens to what they record."""

for _kind in (events.OpRan, events.Placed, events.Allocated, events.Freed):
    events.on_interest(_kind, _Listened((active, scopes)).note)  # for each its own: one may go while another stays
events.on_interest(events.Recorded, _Listened((active, scopes, tapes_told)).note)


def _forget_other_threads() -> None:
    """In a process that has just been forked, where this thread is the only one."""
    for one in active[:]:
        block: Block | None = getattr(one, "block", None)
        if isinstance(one, Guard):
            if block is not None and block.thread != threading.get_ident():
                one.abandon()
        elif block is not None and block.thread != threading.get_ident():
            for places in (active, scopes):
                _take_from(places, one)


forking.in_child(_forget_other_threads)
