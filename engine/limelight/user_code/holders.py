"""What keeps an object alive: a name, an entry of a notebook's `Out`, a frame that a traceback holds."""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, CoroutineType, FrameType, FunctionType, GeneratorType, MethodType
from typing import Any, Final, NamedTuple

from limelight.user_code import source_line

_DEEPEST: Final = 8
_MOST: Final = 2000
_RUNNING: Final = "running"

ATTRIBUTES: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (FunctionType, ("__closure__", "__defaults__", "__kwdefaults__")),
    (BaseException, ("args", "__dict__")),
    (MethodType, ("__self__",)),
    (partial, ("args", "keywords")),
    (CellType, ("cell_contents",)),
)
"""Where objects of some types keep others."""


class Holder(NamedTuple):
    """A place from which an object can be got at: `path` is the expression, `where` whose name it begins with."""

    path: str
    where: str

    def __str__(self) -> str:
        return f"{self.path} ({self.where})"


@dataclass(frozen=True)
class Holders:
    """All places that were found, those with the shortest way first. `str()` has a line for each."""

    what: str
    places: tuple[Holder, ...]

    def __str__(self) -> str:
        if not self.places:
            return f"nothing with a name holds this {self.what}"
        return "\n".join([f"this {self.what} is held by", *[f"  {place}" for place in self.places]])

    __repr__ = __str__


def who_holds(x: Any) -> Holders:
    """Where the references are that keep `x` alive: a tape, say, with all that it has saved.

    Looks for names of modules (so for a notebook's variables, `Out[3]` and `_`), and for local names of functions that
    are running, waiting, or kept by a traceback such as `sys.last_traceback`. Takes a while: it asks the garbage
    collector. Interned and shared objects (small numbers, types) are held by too much to tell.

    >>> import limelight as ll
    >>> import types
    >>> shelf = types.SimpleNamespace(tapes=[ll.GradientTape()])
    >>> ll.explain.who_holds(shelf.tapes[0]).places[0].path
    'shelf.tapes[0]'
    """
    gc.collect()
    return Holders(type(x).__name__, tuple(sorted(set(_places(x)), key=lambda h: (len(h.path), h))))


def _places(x: Any, deadline: float = float("inf")) -> Iterator[Holder]:
    modules = {id(vars(module)): name for name, module in list(sys.modules.items())}
    running = [frame for frame in _running() if id(frame.f_locals) not in modules]
    seen, waiting = {id(x)}, deque([(x, "", 0)])
    while waiting and len(seen) < _MOST and time.perf_counter() < deadline:
        held, suffix, depth = waiting.popleft()
        for frame in running:  # the collector does not know the locals of these
            yield from _names_in(frame, held, suffix, _RUNNING)
        for referrer in gc.get_referrers(held):
            if isinstance(referrer, FrameType):
                if referrer not in running:
                    yield from _names_in(referrer, held, suffix, "kept by a traceback or a generator")
            elif id(referrer) in modules:
                where = f"a name of module {modules[id(referrer)]}"
                yield from [Holder(f"{name}{suffix}", where) for name, v in list(referrer.items()) if v is held]
            elif depth < _DEEPEST and id(referrer) not in seen:
                step = _step(referrer, held)
                if step is not None:
                    seen.add(id(referrer))
                    rest = suffix.removeprefix(".cell_contents") if "_frame.f_locals" in step else suffix
                    waiting.append((referrer, step + rest, depth + 1))


def _running() -> list[FrameType]:
    """The frames of all threads."""
    found = []
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            found.append(frame)
            frame = frame.f_back
    return found


def _names_in(frame: FrameType, held: Any, suffix: str, state: str) -> list[Holder]:
    """The local names for `held` in a frame, but for those of this question itself."""
    if frame.f_globals is globals() or source_line.is_library(frame.f_code):
        return []
    code = frame.f_code
    where = f"a local name of {code.co_name}, {code.co_filename} line {frame.f_lineno}, {state}"
    return [Holder(f"{name}{suffix}", where) for name, value in source_line.locals_of(frame).items() if value is held]


def _step(holder: Any, held: Any) -> str | None:
    """How one gets from `holder` to `held`, as the end of an expression; None for what is no way to go."""
    match holder:
        case dict():
            for key, value in list(holder.items()):
                if value is held:
                    return f"[{key!r}]" if not _is_namespace(holder) else f".{key}"
            return None
        case list() | tuple() | deque():
            return next((f"[{i}]" for i, value in enumerate(holder) if value is held), None)
        case set() | frozenset():
            return ", an element"
        case GeneratorType() | CoroutineType():
            return _step_of_generator(holder, held)
    for kind, attributes in ATTRIBUTES:
        if isinstance(holder, kind):
            return next((f".{name}" for name in attributes if getattr(holder, name) is held), None)
    if getattr(holder, "__dict__", None) is held:
        return ""
    for name in slots_of(type(holder)):
        if getattr(holder, name, None) is held:
            return f".{name}"
    return None


def _step_of_generator(holder: Any, held: Any) -> str | None:
    """To a local name of a function that waits to go on."""
    kind = "gi_frame" if isinstance(holder, GeneratorType) else "cr_frame"
    frame = getattr(holder, kind)
    inside = held.cell_contents if isinstance(held, CellType) else held
    names = [] if frame is None else [name for name, value in source_line.locals_of(frame).items() if value is inside]
    return f".{kind}.f_locals[{names[0]!r}]" if names else None


def _is_namespace(found: dict[Any, Any]) -> bool:
    """Whether a dictionary is the attributes of an object."""
    owners = [owner for owner in gc.get_referrers(found) if not isinstance(owner, dict)]
    return any(getattr(owner, "__dict__", None) is found for owner in owners)


def slots_of(kind: type) -> list[str]:
    found = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if name not in ("__dict__", "__weakref__")]
