"""Whether a `with` block is over although its `__exit__` never ran.

CPython delivers an interrupt at the first instruction of a Python function, that of an `__exit__` too, before any
handler of its own; and a traceback that somebody keeps (a notebook does) keeps the generators of `@contextmanager`
suspended in their blocks. So each scope of the engine's notes which block it stands for, and whoever meets it later,
off the hot paths, can ask whether that block is still being executed.

The evidence is exact: the bytecode says which instructions lie in the block (the exception table names the handler that
calls `__exit__`), and a frame knows its instruction, and whether it has ended. A scope that was entered by hand
(`scope.__enter__()`, `ExitStack`) has no block, and is never over.
"""

from __future__ import annotations

import dis
import functools
import gc
import threading
from contextlib import _GeneratorContextManager
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

_CACHE: Final = 0  # the opcode of cache entries between instructions
_PUSH_EXC_INFO: Final = dis.opmap["PUSH_EXC_INFO"]
_WITH_EXCEPT_START: Final = dis.opmap["WITH_EXCEPT_START"]
_YIELD_VALUE: Final = dis.opmap["YIELD_VALUE"]
_BEFORE_WITH: Final = dis.opmap.get("BEFORE_WITH")  # up to Python 3.13
_ENTERS_GENERATOR: Final = _GeneratorContextManager.__enter__.__code__


class _Place(NamedTuple):
    """A frame and its `with` statement; `by` is the generator, or the `__enter__`, that is entered there."""

    frame: FrameType
    at: int
    by: FrameType | None


class Block:
    """The `with` block that the caller of an `__enter__` is about to begin, and those around it that it ends with.

    Where the caller is itself the generator of a `@contextmanager`, or an `__enter__`, the block of whoever enters that
    belongs to it.

    Args:
        frame: that of the caller.
    """

    __slots__ = ("_inside", "_places", "thread")

    def __init__(self, frame: FrameType | None) -> None:
        self.thread = threading.get_ident()
        self._inside: list[bytes | None] = []  # of the places that have been asked about
        self._places: list[_Place] = []
        by: FrameType | None = None
        while frame is not None:
            code = frame.f_code
            if code.co_name == "__enter__":
                if code is not _ENTERS_GENERATOR:
                    by = frame
                frame = frame.f_back
                continue
            self._places.append(_Place(frame, frame.f_lasti, by))
            outer = frame.f_back
            if not code.co_flags & CO_GENERATOR or outer is None or outer.f_code is not _ENTERS_GENERATOR:
                return
            by, frame = frame, outer

    @property
    def is_over(self) -> bool:
        """Whether the block has been left; never true of a scope that was entered by hand."""
        for i, (frame, at, by) in enumerate(self._places):
            if i == len(self._inside):
                self._inside.append(_instructions(frame.f_code, at))
            inside, now = self._inside[i], frame.f_lasti
            if inside is None:
                return False
            if inside[now]:
                if has_ended(frame):
                    return True
            elif now != at or by is None or _is_suspended(by):
                return True
        return False

    @property
    def is_over_here(self) -> bool:
        """Whether a block of this thread has been left: another one may just be leaving it."""
        return self.thread == threading.get_ident() and self.is_over


def has_ended(frame: FrameType) -> bool:
    """Whether a frame neither runs nor is suspended: until then it holds nothing itself, not even its code."""
    return frame.f_code in gc.get_referents(frame)


def _is_suspended(frame: FrameType) -> bool:
    """Whether a generator waits at a `yield`: then whoever is being entered is another one."""
    return bool(frame.f_code.co_flags & CO_GENERATOR) and frame.f_code.co_code[frame.f_lasti] == _YIELD_VALUE


@functools.lru_cache(maxsize=1024)
def _instructions(code: CodeType, at: int) -> bytes | None:
    """For each offset in `code` whether it lies in the `with` block entered at `at`; None where no block is."""
    opcodes, handlers = code.co_code, _handlers(code)
    after = at + 2
    while after < len(opcodes) and opcodes[after] == _CACHE:
        after += 2
    handler = handlers.get(after)
    if handler is None or handler == handlers.get(at) or opcodes[at] != (_BEFORE_WITH or opcodes[at]):
        return None
    if opcodes[handler] != _PUSH_EXC_INFO or opcodes[handler + 2] != _WITH_EXCEPT_START:
        return None
    return bytes([_leads_to(handler, offset & ~1, handlers) for offset in range(len(opcodes))])


def _leads_to(handler: int, offset: int, handlers: dict[int, int]) -> bool:
    """Whether what is raised at `offset`, and in the handlers that it comes to, ends in `handler`."""
    passed: set[Any] = set()
    at: int | None = handlers.get(offset)
    while at is not None and at not in passed:
        if at == handler:
            return True
        passed.add(at)
        at = handlers.get(at)
    return False


def _handlers(code: CodeType) -> dict[int, int]:
    """The handler of each instruction that has one, by offset."""
    handlers: dict[int, int] = {}
    numbers = _numbers(code.co_exceptiontable)
    for start, length, target, _ in zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=True):
        handlers.update(dict.fromkeys(range(2 * start, 2 * (start + length), 2), 2 * target))
    return handlers


def _numbers(table: bytes) -> list[int]:
    """The numbers of an exception table: six bits a byte, the highest first, and a bit that says that more follow."""
    numbers, number = [], 0
    for byte in table:
        number = (number << 6) | (byte & 63)
        if not byte & 64:
            numbers.append(number)
            number = 0
    return numbers
