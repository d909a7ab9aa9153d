"""Tracebacks without the library's own frames, and the one switch that shows them.

They are cut where an exception leaves a staged function, before a bare `raise`, which adds no frame. A fault of the
library itself is shown whole. What ends a script or a thread is cut when it is printed, by `sys.excepthook` and
`threading.excepthook`, which hand on to whoever was there before. That is an intrusion, by an import; the alternative,
a wrapper around each public function, is 60 to 100 ns of some 400: eager ops have no place where an exception leaves
the library. Whoever formats a traceback himself (logging, pytest) gets the eager engine's frames. A notebook hides
frames when it prints, so nothing is cut there.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from types import CodeType, TracebackType
from typing import Any, Final, TypeVar

from limelight.errors import LimelightError, is_user_error
from limelight.settings import Scoped
from limelight.user_code import call_notes, source_line

_shown: Final[Scoped[bool]] = Scoped("show_library_frames", False)
_displays: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Who hides frames when it prints a traceback, so that nothing need be cut off here: a notebook."""
_MOST_CAUSES: Final = 20
_Fn = TypeVar("_Fn", bound=Callable[..., Any])
_acting: Final[set[CodeType]] = set()


def shown() -> bool:
    """Whether tracebacks have the frames of limelight."""
    return _shown.get()


def left_to(display: Any, on: bool = True) -> None:
    """Says that `display` hides frames by itself (or no longer): then tracebacks are left whole for it."""
    (_displays.add if on else _displays.discard)(display)


class show_library_frames:  # noqa: N801  # used as a function
    """Makes tracebacks show the frames of limelight as well, in the whole process, or hides them again.

    They are hidden by default in what staged functions raise, and in what a script ends with: between the call and the
    user's line that it is about there is nothing to see, unless limelight itself is at fault, which is shown whole in
    any case. As a `with` block it ends with the block. In a notebook it does what `%xmode --show` does, for limelight
    alone.

    >>> import limelight as ll
    >>> import traceback
    >>> @ll.function
    ... def f(x):
    ...     return x @ x
    >>> def depth():
    ...     try:
    ...         f(ll.ones((2, 3)))
    ...     except ll.errors.ShapeError as error:
    ...         return len(traceback.extract_tb(error.__traceback__))
    >>> hidden = depth()
    >>> with ll.config.show_library_frames():
    ...     depth() >= hidden
    True
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = bool(enabled)
        self._mine = _shown.set_globally_or_later(self._enabled, sys._getframe(1))

    def __repr__(self) -> str:
        return f"<tracebacks {'show' if shown() else 'hide'} the frames of limelight>"

    def __enter__(self) -> show_library_frames:
        self._mine = _shown.set_for_block(self._enabled, self._mine, sys._getframe(1))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._mine is not None:
            _shown.withdraw(self._mine)


def trim(error: BaseException) -> None:
    """Cuts the library's frames out of the traceback of `error` and of what caused it, unless they are wanted.

    A cause that was raised in the library alone, or by NumPy for it, is not shown then; it stays `__context__`.

    To be called where an exception leaves the library, before a bare `raise`, which adds no frame.
    """
    if shown() or _displays or is_at_fault(error):
        return
    current: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if current is None:
            return
        cause = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        current.__traceback__ = without(current.__traceback__, _is_library)
        if cause is not None and without(cause.__traceback__, _is_beneath) is None:  # its words are in the message
            current.__context__, current.__cause__, current.__suppress_context__ = cause, None, True
            return
        current = cause


def in_place_of_python(function: _Fn) -> _Fn:
    """Marks a function of ours that does what a line of the user's says: what Python raises in it is his mistake."""
    _acting.add(function.__code__)
    return function


def is_at_fault(error: BaseException) -> bool:
    """Whether limelight failed by accident: its innermost frame raised something else than a LimelightError.

    What limelight raises for the user's mistake as Python would, an AttributeError or a TypeError, is marked as his.
    """
    tb = error.__traceback__
    if tb is None or isinstance(error, (LimelightError, KeyboardInterrupt)) or is_user_error(error):
        return False
    while tb.tb_next is not None:
        tb = tb.tb_next
    return _is_library(tb) and tb.tb_frame.f_code not in _acting


def hide_at_exit() -> None:
    """Trims what ends a script or a thread before it is printed, by `sys.excepthook` and `threading.excepthook`.

    Whoever printed it before does so still. Other errors are none of our business.
    """
    report, report_thread = sys.excepthook, threading.excepthook

    def at_exit(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
        call_notes.note_call(error)
        if _passed_through(tb):
            trim(error)
            sys.last_traceback = tb = error.__traceback__  # where pdb.pm() begins
        report(kind, error, tb)

    def at_end_of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and _passed_through(args.exc_traceback):
            trim(args.exc_value)
            parts = (args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread)
            args = threading.ExceptHookArgs(parts)
        report_thread(args)

    sys.excepthook, threading.excepthook = at_exit, at_end_of_thread


def _passed_through(tb: TracebackType | None) -> bool:
    while tb is not None:
        if source_line.is_engine(tb.tb_frame.f_code):
            return True
        tb = tb.tb_next
    return False


def without(tb: TracebackType | None, hidden: Callable[[TracebackType], bool]) -> TracebackType | None:
    """`tb` without the frames that are `hidden`; None when none is left."""
    kept = []
    while tb is not None:
        if not hidden(tb):
            kept.append(tb)
        tb = tb.tb_next
    return chained(kept)


def chained(kept: Iterable[TracebackType]) -> TracebackType | None:
    """One traceback of several frames, outermost first."""
    chain: TracebackType | None = None
    for link in reversed(list(kept)):
        line = link.tb_lineno or link.tb_frame.f_code.co_firstlineno  # an interrupt may come at code of no line
        chain = TracebackType(chain, link.tb_frame, link.tb_lasti, line)
    return chain


def _is_library(tb: TracebackType) -> bool:
    return source_line.is_library(tb.tb_frame.f_code)


def _is_beneath(tb: TracebackType) -> bool:
    return _is_library(tb) or source_line.is_numpys(tb.tb_frame.f_code)
