"""Where in the user's code are we?

A position is found by walking the Python stack past every frame that belongs to limelight itself. In a notebook the
file name of a code object means nothing to a reader, so the notebook extension installs a namer that turns it into
the label of a cell ("In[3]").
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import linecache
import os
import re
import sys
import sysconfig
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight import errors
from limelight.with_blocks import block_of

CellNamer = Callable[[str], str | None]

_ENGINE_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
GENERATED_PREFIX = "<limelight "
"""Code that limelight writes (plans, wrapped cells) is compiled under file names that begin so."""

library_files: dict[str, bool] = {}
"""Whether a file is the library's, as far as asked. By name: hashing a code object costs more than the walk."""
# What `with` blocks and cached properties of ours pass through is ours, too.
_hidden_roots: list[str] = [_ENGINE_ROOT, contextlib.__file__, functools.__file__]
_floors: set[str] = set()
_cell_namer: CellNamer | None = None


class Source(NamedTuple):
    """A line of the user's code.

    `file` is the code object's file name, `line` counts from 1, `function` is the enclosing function's name.
    """

    file: str
    line: int
    function: str

    @property
    def is_outermost(self) -> bool:
        """Whether it is a line of a module or of a cell, rather than of a function."""
        return self.function.startswith(("<module>", "<cell"))

    @property
    def label(self) -> str:
        """What a reader calls the file: "In[3]" for a notebook cell, else the file's last name."""
        named = _cell_namer(self.file) if _cell_namer is not None else None
        return named if named is not None else os.path.basename(self.file)

    @property
    def text(self) -> str:
        """The line of code, stripped; empty where the source cannot be had."""
        return line_of(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.label} line {self.line}"


class GradientSource(Source):
    """The same, for what a gradient does: `of` is the op whose rule it is."""

    of: str = ""


class ScopedSource(GradientSource):
    """The same, with the name scope and the call of a module in which an op ran: its gradient belongs to them, too.

    `call` is a `core.module_calls.ModuleCall`, or None.
    """

    scope: str = ""
    call: Any = None


def set_cell_namer(namer: CellNamer | None) -> CellNamer | None:
    """Installs `namer`, which maps a code object's file name to a cell's label or None; returns the previous one."""
    global _cell_namer
    previous, _cell_namer = _cell_namer, namer
    return previous


def hide(folder: str) -> None:
    """Treats the code under `folder` as part of the library: its frames are not the user's."""
    _hidden_roots.append(os.path.join(os.path.abspath(folder), ""))
    library_files.clear()


def end_stacks_at(file: str) -> None:
    """Ends the user's stack at frames of `file`: what called them (a shell, an event loop) is not the program."""
    _floors.add(file)


def is_library(code: CodeType) -> bool:
    """Whether `code` belongs to limelight rather than to the user; what `dataclasses` wrote is no line of anybody's."""
    return is_library_file(code.co_filename) or (
        code.co_filename == "<string>" and code.co_qualname.startswith("__create_fn__")
    )


def is_numpys(code: CodeType) -> bool:
    """Whether `code` is NumPy's own, written in Python or in Cython, whose files have no folder."""
    return code.co_filename.startswith((_NUMPY, "numpy/"))


def is_library_file(name: str) -> bool:
    """The same for the name of its file."""
    known = library_files.get(name)
    if known is None:
        known = name.startswith(GENERATED_PREFIX) or name.startswith(tuple(_hidden_roots))
        if len(library_files) > 10_000:  # file names made in a loop must not be kept for ever
            library_files.clear()
        library_files[name] = known
    return known


def is_engine(code: CodeType) -> bool:
    """Whether `code` is limelight's own, rather than something else that is hidden."""
    return code.co_filename.startswith((_ENGINE_ROOT, GENERATED_PREFIX))


@functools.lru_cache(maxsize=4096)
def is_installed(file: str) -> bool:
    """Whether code in `file` belongs to Python itself or to an installed package."""
    return file.startswith((*_pythons_own(), "<frozen")) or _PACKAGES.search(file) is not None


@functools.cache
def _pythons_own() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({os.path.join(paths[name], "") for name in ("stdlib", "platstdlib", "purelib", "platlib")})


_PACKAGES: Final = re.compile(r"[\\/](site|dist)-packages[\\/]")
"""A folder of packages: this Python's, the user's own, or one that an environment takes over from another."""


class Position(NamedTuple):
    """A line of the user's code before anyone has looked it up: cheap enough to take for each recorded op."""

    code: CodeType | Source
    instruction: int

    def resolve(self) -> Source:
        if isinstance(self.code, Source):
            return self.code
        starts, lines = _line_table(self.code)
        line = lines[bisect_right(starts, self.instruction) - 1] if starts and self.instruction >= starts[0] else None
        if line is None:
            line = next((each for each in lines if each is not None), 1)
        return Source(self.code.co_filename, line, self.code.co_name)


_tables: Final[dict[int, tuple[weakref.ref[CodeType], list[int], list[int | None]]]] = {}
_MAX_TABLES: Final = 256


def _line_table(code: CodeType) -> tuple[list[int], list[int | None]]:
    """The instructions at which lines of `code` begin, and these lines.

    They are kept: looked for in `co_lines` they cost as much as the code is long, for each op of an unrolled program.
    """
    known = _tables.get(id(code))
    if known is None or known[0]() is not code:
        if len(_tables) >= _MAX_TABLES:
            _tables.clear()
        ranges = list(code.co_lines())
        known = (weakref.ref(code), [start for start, _, _ in ranges], [line for _, _, line in ranges])
        _tables[id(code)] = known
    return known[1], known[2]


def position(frame: FrameType | None, known: CodeType | None = None) -> tuple[CodeType, int] | tuple[None, int]:
    """The innermost frame of the user's at or outside `frame`, as the fields of a `Position`; (None, 0) without one.

    `known` is code that has been found to be the user's: recognising it saves looking it up.
    """
    while frame is not None:
        code = frame.f_code
        if code is known:
            return (code, frame.f_lasti)
        library = library_files.get(code.co_filename)
        if library is None:
            library = is_library(code)
        if not library:
            return (code, frame.f_lasti)
        frame = frame.f_back
    return (None, 0)


def of_gradient(line: Source, op: str) -> Source:
    """`line`, of an op, for the gradient of that op."""
    source = ScopedSource(*line) if isinstance(line, ScopedSource) else GradientSource(*line)
    if isinstance(source, ScopedSource) and isinstance(line, ScopedSource):
        source.scope, source.call = line.scope, line.call
    source.of = op
    return source


class pretend:  # noqa: N801  # used like the functions of contextlib, which cost three times as many calls
    """Within its block, `user_stack` answers `stack`: for work that is done now on behalf of an earlier line.

    The block gets the thread's pretence, whose `stack` may be set to go on with another line.
    """

    __slots__ = ("block", "outer", "outer_stack", "stack")

    def __init__(self, stack: tuple[Source, ...]) -> None:
        self.stack = stack

    def __enter__(self) -> _Pretence:
        self.block = block_of(sys._getframe(1))
        self.outer_stack = _pretended()
        self.outer = _pretence.innermost
        _pretence.innermost, _pretence.stack = self, self.stack
        return _pretence

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        _pretence.innermost, _pretence.stack = self.outer, self.outer_stack


class _Pretence(threading.local):
    """The lines that are pretended on a thread, by whom."""

    stack: tuple[Source, ...] | None = None
    innermost: pretend | None = None


_pretence = _Pretence()


def _pretended() -> tuple[Source, ...] | None:
    """The lines that are pretended here; a block may be over although an interrupt has kept it from ending that."""
    while (innermost := _pretence.innermost) is not None:
        block = innermost.block
        if (block.inside and block.inside[block.frame.f_lasti]) or not block.is_over:
            break
        innermost.end()
    return _pretence.stack


def place(frame: FrameType | None) -> tuple[CodeType | Source | None, int]:
    """`position`, or the line that is pretended: for ops that do not run on the hot path."""
    if _pretence.stack and _pretended():
        return (_pretence.stack[0], 0)
    return position(frame)


def user_stack(limit: int = 8) -> tuple[Source, ...]:
    """The user's frames, innermost first, at most `limit` of them."""
    if _pretence.stack is not None and _pretended() is not None:
        return _pretence.stack
    return _frames(sys._getframe(1), limit)


_NO_FRAME: Final = object()


class Walker:
    """`user_stack` for whoever asks at every op: what called the function at hand is looked up once.

    While a frame runs, its callers stand still, also generators and coroutines among them, so the same outer frame at
    the same instruction has the same stack; unless it is itself one that another caller may resume. `forget` lets go of
    that frame.
    """

    __slots__ = ("_at", "_callers", "_lines", "_outer", "_stacks")

    def __init__(self) -> None:
        self._lines: dict[int, tuple[CodeType, dict[int, Source]]] = {}  # by code's identity, then by instruction
        self.forget()

    def forget(self) -> None:
        """Keeps no frame alive."""
        self._outer: object = _NO_FRAME
        self._at = -1
        self._callers: tuple[Source, ...] = ()
        # By code, then by instruction and the call of a module; of these callers.
        self._stacks: dict[int, dict[Any, tuple[Source, ...]]] = {}

    def stack(self, call: Any = None) -> tuple[Source, ...]:
        """What `user_stack()` would answer here; its first line bears the `call` of a module, if there is one."""
        if _pretence.stack is not None and _pretended() is not None:
            return _pretence.stack
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            library = library_files.get(code.co_filename)
            if library is None:
                library = is_library(code)
            if not library:
                break
            frame = frame.f_back
        if frame is None or code.co_filename in _floors:
            return ()
        outer = frame.f_back
        if outer is not self._outer or (outer is not None and outer.f_lasti != self._at):
            self._find_callers(outer)
        stacks = self._stacks.get(id(code))
        at = frame.f_lasti if call is None else (frame.f_lasti, call)
        stack = None if stacks is None else stacks.get(at)
        if stack is None:
            line = self._line(frame, code)
            stack = (line if call is None else call.line(line), *self._callers)
            self._stacks.setdefault(id(code), {})[at] = stack
        return stack

    def _line(self, frame: FrameType, code: CodeType) -> Source:
        known = self._lines.get(id(code))
        if known is None:
            known = self._lines[id(code)] = (code, {})
        at = frame.f_lasti
        line = known[1].get(at)
        if line is None:
            line = known[1][at] = Source(code.co_filename, frame.f_lineno, code.co_name)
        return line

    def _find_callers(self, outer: FrameType | None) -> None:
        self._callers = _frames(outer, 7)
        self._stacks = {}
        resumable = outer is not None and outer.f_code.co_flags & _RESUMABLE
        self._outer = _NO_FRAME if resumable else outer
        self._at = outer.f_lasti if outer is not None else -1


def _frames(frame: FrameType | None, limit: int) -> tuple[Source, ...]:
    """The user's frames from `frame` on, at most `limit`."""
    sources: list[Source] = []
    while frame is not None and len(sources) < limit:
        code = frame.f_code
        if code.co_filename in _floors:
            break
        if not is_library(code):
            sources.append(Source(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(sources)


_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


_UNASKED: Final = 3
"""References to the dictionary of a frame's local names that nobody else holds: ours, the frame's, and the count's."""


def locals_of(frame: FrameType) -> dict[str, Any]:
    """The local names of `frame`, in a dictionary of its own.

    Before Python 3.13 a function's frame keeps the dictionary that it makes of them, and so what is in it, until the
    function ends; or for ever, where that holds an error whose traceback holds the frame. So it is emptied.
    """
    names = frame.f_locals
    copy = dict(names)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(names) is dict and sys.getrefcount(names) <= _UNASKED:
        names.clear()
    return copy


def user_line() -> Source | None:
    """The innermost frame of the user's, or None when there is none (a library thread).

    Where NumPy asks behind the user's line, as for `np.sum([x, y])`, it is that line.
    """
    stack = user_stack(limit=1)
    if stack and stack[0].file.startswith(_NUMPY):
        stack = tuple([line for line in user_stack() if not line.file.startswith(_NUMPY)]) or stack
    return stack[0] if stack else None


_without_lines: Final[set[str]] = set()
"""Names of code that have no file."""


def line_of(file: str, line: int) -> str:
    """A line of a file, with its end; empty where it cannot be had.

    For a name without a file, as code has that was compiled from a string, `linecache` searches all of `sys.path` each
    time (0.1 ms): that is done once. Whoever gives such code its lines puts them into the cache of that module.
    """
    if file in _without_lines and file not in linecache.cache:
        return ""
    text = linecache.getline(file, line)
    if not text and file not in linecache.cache:
        _without_lines.add(file)
    return text


def segment(code: CodeType, instruction: int) -> str | None:
    """The source of the expression or statement that an instruction of `code` belongs to.

    Told by Python's own table of positions. The `executing` library would parse the whole file first: 27 ms for one of
    370 lines, where this takes 0.2 ms, and every trace asks for the call that made it.
    """
    position = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if position is None or None in position:
        return None
    first, last, begin, end = position
    assert first is not None
    assert last is not None
    lines = [line_of(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not all(lines):
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return b"".join(lines).decode(errors="replace")


def user_segment() -> str | None:
    """What the innermost frame of the user's evaluates; None where it is not that which brought us here."""
    code, instruction = position(sys._getframe(1))
    return None if code is None or _pretended() is not None else segment(code, instruction)


def at(source: Source | None) -> str:
    """`source` as a suffix for a message: " (In[3] line 4: y = x @ w)", or nothing."""
    if source is None:
        return ""
    text = source.text
    if len(text) > 80:
        text = text[:77] + "..."
    return f" ({source}: {text})" if text else f" ({source})"


def here() -> str:
    """The user's line that is being executed, as a suffix for a message."""
    return at(user_line())


_spoken: Final[dict[CodeType, str]] = {}


def speak_of(function: Any, name: str) -> None:
    """Has messages call `function` by `name`, as users write it: a method of a class that nobody names."""
    _spoken[function.__code__] = name


def called_function() -> str:
    """The outermost public function of the library below the user's innermost frame; "" where there is none."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and is_library(frame.f_code):
        if frame.f_code.co_name in frame.f_globals.get("__all__", ()):
            name = frame.f_code.co_name
        name = _spoken.get(frame.f_code, name)
        frame = frame.f_back
    return name


errors.locate_by(here, called_function)
