"""Tracebacks that show the user's frames only.

Frames of limelight and of IPython's own machinery are left out, so that an error in a staged cell points at the cell's
line as an error in an ordinary cell does. `%xmode --show` brings them back, as it does for everything IPython hides,
and so does `ll.config.show_library_frames()`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import IPython
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from limelight.errors import LimelightError
from limelight.executors import base as executors
from limelight.user_code import call_notes, source_line
from limelight.user_code import tracebacks as frames
from limelight_kernel.cell.compiled_cell import CellSyntaxError

_IPYTHON = os.path.join(os.path.dirname(os.path.abspath(IPython.__file__)), "")
_RUNNERS: set[str] = set()  # files under whose frames the bodies of cell magics run
MOST_CAUSES = 20
HANDLED: tuple[type[BaseException], ...] = (Exception, KeyboardInterrupt)
"""Anything may be raised in a staged function; what limelight took no part in is shown as IPython would."""


def runs_cells(file: str) -> None:
    """Says that the code of `file` runs cells: of an error in one, the frames above are no part of the traceback."""
    _RUNNERS.add(file)


def user_frames(tb: TracebackType | None, staged: bool = False) -> TracebackType | None:
    """`tb` without the frames of limelight, of what it calls, and of IPython.

    Those above a staged cell's magic go as well.
    """
    kept: list[TracebackType] = []
    inside = False
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        ours = source_line.is_library(tb.tb_frame.f_code)
        inside = ours or (inside and source_line.is_installed(file))
        if staged and file in _RUNNERS:
            kept.clear()
        elif not inside and not file.startswith(_IPYTHON):
            kept.append(_at_its_line(tb))
        tb = tb.tb_next
    return frames.chained(kept)


def _at_its_line(tb: TracebackType) -> TracebackType:
    """`tb`, or a stand-in for one whose frame has gone on, to a `finally` or to raise another error.

    Of code that is in no file, as in a notebook, IPython shows the line that the frame is at, not that of the error.
    """
    code = tb.tb_frame.f_code
    if tb.tb_frame.f_lineno == tb.tb_lineno or os.path.exists(code.co_filename):
        return tb
    return _standing_at(tb.tb_lineno, code.co_filename, code.co_name) or tb


def _standing_at(line: int, filename: str, name: str = "<module>") -> TracebackType | None:
    """A traceback of one frame, at a line of a file."""
    code = compile("\n" * (line - 1) + "raise LookupError", filename, "exec")
    try:
        exec(code.replace(co_name=name, co_qualname=name), {})
    except LookupError as placed:
        ours = placed.__traceback__
        return None if ours is None else ours.tb_next
    return None


def trim(shell: InteractiveShell, error: BaseException, cell: str | None = None) -> None:
    """Makes IPython show `error` with the user's frames alone; a failure of limelight itself is shown whole.

    `cell` is the file name of the staged cell that was running, if one was.
    """
    if isinstance(error, UsageError | SyntaxError) or frames.is_at_fault(error) or "_render_traceback_" in vars(error):
        return
    if cell is None and user_frames(error.__traceback__) is None:
        return

    def render() -> list[str]:
        formatter = shell.InteractiveTB
        short = getattr(formatter, "skip_hidden", True) and not frames.shown()
        shown = _as_the_user_sees(error, cell) if short else contextlib.nullcontext()
        with shown:
            if cell is not None and short and error.__traceback__ is None and error.__cause__ is None:
                said = str(error) or ("while limelight prepared the graph" * isinstance(error, KeyboardInterrupt))
                return [f"{type(error).__name__}: {said}"]  # nothing of the user's was running
            return list(formatter.structured_traceback(type(error), error, error.__traceback__, tb_offset=0))

    error._render_traceback_ = render  # type: ignore[attr-defined]  # IPython's hook


@contextlib.contextmanager
def _as_the_user_sees(error: BaseException, cell: str | None) -> Iterator[None]:
    """Within its block, `error` and what caused it have only the user's frames; causes without any are left out."""
    running = _was_running(error.__traceback__)
    at = executors.running(error.__traceback__) if isinstance(error, KeyboardInterrupt) else None
    saved: list[tuple[BaseException, TracebackType | None, BaseException | None, bool]] = []
    current: BaseException | None = error
    while current is not None and len(saved) < MOST_CAUSES:
        cause = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        saved.append((current, current.__traceback__, current.__cause__, current.__suppress_context__))
        current.__traceback__ = user_frames(current.__traceback__, staged=cell is not None)
        if cause is not None and not _is_from_users(cause.__traceback__):
            current.__cause__, current.__suppress_context__, cause = None, True, None
        current = cause
    if cell is not None:
        error.__traceback__ = _below_its_line(error, cell, running, at)
    try:
        yield
    finally:
        for changed, tb, cause, suppressed in saved:
            changed.__traceback__, changed.__cause__, changed.__suppress_context__ = tb, cause, suppressed


def _is_from_users(tb: TracebackType | None) -> bool:
    """Whether any frame is of code that is not installed: what NumPy raised within an op is in the op's message."""
    kept = user_frames(tb)
    while kept is not None:
        if not source_line.is_installed(kept.tb_frame.f_code.co_filename):
            return True
        kept = kept.tb_next
    return False


def _was_running(tb: TracebackType | None) -> bool:
    """Whether a graph was running: code that the executors write has file names of its own."""
    while tb is not None:
        if tb.tb_frame.f_code.co_filename.startswith(source_line.GENERATED_PREFIX):
            return True
        tb = tb.tb_next
    return False


def _below_its_line(
    error: BaseException, cell: str, running: bool, at: source_line.Source | None
) -> TracebackType | None:
    """The traceback of an error that the graph raised while running, under the line of `cell` that made the op.

    The code of the cell is not on the stack then, but the engine names its line in the message, or knows it (`at`).
    """
    frames = error.__traceback__
    if not running or (frames is not None and frames.tb_frame.f_code.co_filename == cell):
        return frames
    said = " ".join([str(error), *getattr(error, "__notes__", ())])
    lines = re.findall(re.escape(source_line.Source(cell, 0, "").label) + r" line (\d+)", said)
    number = at.line if at is not None and at.file == cell else int(lines[-1]) if lines else 0
    if not number:
        return frames
    line = _standing_at(number, cell)
    return frames if line is None else TracebackType(frames, line.tb_frame, line.tb_lasti, line.tb_lineno)


def handler(shell: InteractiveShell, kind: type[BaseException], error: BaseException, tb: Any, tb_offset: Any) -> Any:
    """IPython's custom handler for the errors in `HANDLED`, wherever a cell raises them."""
    running = user_frames(tb) is not None and not isinstance(error, CellSyntaxError)
    if isinstance(error, SyntaxError) and not running:  # the cell itself does not compile
        (shell.showindentationerror if isinstance(error, IndentationError) else shell.showsyntaxerror)()
        return None
    call_notes.note_call(error)
    if isinstance(error, LimelightError) or any(_passed_through_limelight(one) for one in (tb, *_behind(error))):
        trim(shell, error)
    shell.showtraceback((kind, error, tb), tb_offset=tb_offset, running_compiled_code=running)
    return None


def _behind(error: BaseException) -> Iterator[TracebackType | None]:
    """The tracebacks of what led to `error`."""
    current = error.__cause__ or error.__context__
    for _ in range(MOST_CAUSES):
        if current is None:
            return
        yield current.__traceback__
        current = current.__cause__ or current.__context__


def _passed_through_limelight(tb: TracebackType | None) -> bool:
    while tb is not None:
        code = tb.tb_frame.f_code
        if source_line.is_library(code) and not code.co_filename.startswith(_IPYTHON):
            return True
        tb = tb.tb_next
    return False
