"""What the operators of one thread know of each other: the blocks being staged, and the scopes of functions."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, TracebackType
from typing import Any, ClassVar, NamedTuple

from limelight import with_blocks
from limelight.autograph.local_containers import Changes, age
from limelight.autograph.reachable_state import Outer
from limelight.autograph.undefined_variables import Doubtful, Undefined
from limelight.core.autograph_hook import conversion_scope
from limelight.core.tensor import Tensor
from limelight.errors import ControlFlowError, LimelightError
from limelight.user_code import source_line
from limelight.user_code.code_uses import reads_sizes


class Block(NamedTuple):
    """A block that is being staged: what it is called, and what was there before it."""

    what: str
    outer: Outer
    changes: Changes
    is_condition: bool


class _Context(threading.local):
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.trying = 0
        self.swallowed: ControlFlowError | None = None
        self.depth = 0  # of converted functions
        self.cell: tuple[Any, frozenset[str]] | None = None  # the namespace of a converted cell, and its names
        self.outermost: with_blocks.Block | None = None  # that of the first of them
        self.sized = ""  # one of them that reads sizes while tracing
        self.widened = ""  # what is said of a loop variable whose sizes are unknown


here = _Context()


@contextmanager
def staged_block(what: str, outer: Outer, is_condition: bool = False) -> Iterator[Changes]:
    """Within its block, Python code runs once for a block that a graph may run at any time, or never.

    It gives the changes of containers of older blocks, which are undone at the end; a condition may have none.
    """
    changes = Changes(outer.contained)
    here.blocks.append(Block(what, outer, changes, is_condition))
    before = outer.contents()
    try:
        yield changes
        changes.look()
    except Exception as error:
        if not isinstance(error, LimelightError) and not getattr(error, "__notes__", ()):
            error.add_note(f"while {what} was traced: a tensor decides it, so its code runs then, whatever it says")
        raise
    finally:
        here.blocks.pop()
        changes.look()
        changes.undo()
    outer.refuse_changes(before, what)
    for container in changes.untold:
        if is_condition or age(container) is None:
            name = outer.names.get(id(container))
            said = f"`{name}`, a {type(container).__name__}," if name else f"a {type(container).__name__}"
            raise refusal(container, f"{said} is changed", what)


def refusal(target: Any, what: str, block: str) -> ControlFlowError:
    """The error for a change of something that outlives a block: `what` is done to `target` in it."""
    return ControlFlowError(
        f"{what} in {block}{source_line.here()}. That would happen once, while tracing, whatever "
        f"the tensor says{_outside(target)}. Assign a local variable there and use it afterwards; keep state in a "
        "ll.Variable (.assign); collect the results of a loop with ll.scan or ll.map_fn"
    )


def _outside(target: Any) -> str:
    """Why a list or dictionary is refused that might have been state, had the converted code made it."""
    kind = type(target)
    if kind not in (list, dict) or age(target) is not None:
        return ""
    return (
        f", and who else knows this {kind.__name__}, which the function has not made itself, would see it. Change a "
        f"copy of it, as by {kind.__name__}(...), made before"
    )


def changes_next(container: Any, name: str, where: str) -> None:
    """Notes in the blocks that are older than it that `container`, made by converted code, is changed next."""
    made = age(container)
    for block in here.blocks:
        if made is not None and made < block.changes.since:
            block.changes.note(container, name, where)


@contextmanager
def restore_on_error(set_state: Callable[[Any], None], before: tuple[Any, ...]) -> Iterator[None]:
    """Gives variables back what they were `before` if its block fails: a `finally` of the user's may read them."""
    try:
        yield
    except BaseException:
        set_state(before)
        raise


class trying:  # noqa: N801  # it stands in converted code like an operator
    """Around the body of a `try` that has handlers."""

    def __enter__(self) -> None:
        here.trying += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        here.trying -= 1


def widen(what: str) -> None:
    """Notes that a loop variable's sizes are unknown from now on; `what` says which, and why.

    Raises ControlFlowError if code around reads sizes: it would be decided while tracing, otherwise than eagerly.
    """
    here.widened = what
    _refuse_sizes()


def _enter(code: CodeType) -> None:
    if here.depth == 0:
        here.sized = here.widened = ""
    if not here.sized and reads_sizes(code):
        here.sized = {"<module>": "the cell", "<lambda>": "a lambda"}.get(code.co_name, f"`{code.co_name}`")
        _refuse_sizes()


def _refuse_sizes() -> None:
    if here.sized and here.widened:
        raise ControlFlowError(
            f"{here.widened}. Its sizes are unknown while tracing, and {here.sized} reads `.shape` or `.size`, which "
            "would be decided then: write len(x) or ll.shape_of(x), which the graph computes, or keep the shape"
        )


def refuse_in_try(what: str) -> None:
    """Raises ControlFlowError where handlers would never see what the graph raises.

    The handlers may well catch that error too, so it is raised again when the function ends.
    """
    if here.trying:
        here.swallowed = ControlFlowError(
            f"{what} that a tensor decides stands inside `try ... except`{source_line.here()}: the handlers "
            "would run while tracing only, never for what the graph raises. Move the `try` around the call of the "
            "staged function, or the code into ll.py_func(fn, inputs, output_specs)"
        )
        raise here.swallowed


class FunctionScope:
    """Around the body of each converted function."""

    __slots__ = ("_always_returns", "_code", "_depth", "_conversion_scope", "_name", "_outside")
    convert: ClassVar[Callable[[Any], Any] | None] = None
    """What becomes of functions that the library calls for converted code; `converted_calls` says."""

    def __init__(self, name: str, context_name: str, always_returns: Any, code: CodeType | None = None) -> None:
        self._name = name
        self._code = code
        self._always_returns = always_returns is True

    def __enter__(self) -> FunctionScope:
        frame = sys._getframe(1)
        if here.depth and here.outermost is not None and here.outermost.is_over:
            here.__init__()  # type: ignore[misc]
        if not here.depth:
            here.outermost = with_blocks.block_of(frame)
        _enter(self._code or frame.f_code)
        self._outside, here.trying = here.trying, 0
        self._conversion_scope = conversion_scope(FunctionScope.convert)
        self._conversion_scope.__enter__()
        self._depth, here.depth = here.depth, here.depth + 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        here.depth = self._depth  # also where an interrupt has kept an inner function from leaving
        if not self._depth:
            here.outermost = None  # it keeps the function's frame
        self._conversion_scope.__exit__(None, None, None)
        here.trying = self._outside
        swallowed, here.swallowed = here.swallowed, None
        if swallowed is not None and error is None:
            raise swallowed

    def ret(self, value: Any, returned: Any) -> Any:
        """The result of the function: None if it never came to a `return`."""
        if isinstance(returned, Tensor) and not self._always_returns:
            raise ControlFlowError(
                f"{self._name} returns a value only where a tensor says so{source_line.here()}, and else "
                "comes to its end without one. Write a `return` of the same structure at the end"
            )
        if isinstance(value, Doubtful):
            value = value.read()
        return None if isinstance(value, Undefined) else value


def with_function_scope(body: Any, name: str, options: Any) -> Any:
    """The body of a lambda."""
    with FunctionScope("this lambda", name, options, body.__code__) as scope:
        return body(scope)
