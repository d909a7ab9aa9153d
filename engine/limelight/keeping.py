"""Where among the user's own names is an object? Asked by an error, so quick: nothing but those names is looked at."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from types import CellType, CoroutineType, FrameType, FunctionType, GeneratorType, ModuleType, SimpleNamespace
from typing import Any, Final

from limelight import source
from limelight.holding import ATTRIBUTES, Holder, slots_of

_DEEPEST: Final = 7
_LOOK_AT_CLOCK: Final = 256


def first_holder(x: Any, seconds: float = 0.1) -> Holder | None:
    """A way from one of the user's names to `x`, found within `seconds`: rather from a global than from a local name.

    Goes through containers, attributes of the user's objects, classes, closures, default arguments, generators that
    wait and exceptions, from the names of the user's modules, of functions that are running, and of those that a
    traceback keeps.
    """
    deadline = time.perf_counter() + seconds
    for names, where in _roots():
        path = _path(x, names, deadline)
        if path is not None:
            return Holder(path, where)
    return None


def _roots() -> Iterator[tuple[dict[str, Any], str]]:
    """Namespaces, and what their names are called."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        users = name == "__main__" or (file is not None and not _is_foreign(file))
        if users and isinstance(module, ModuleType):
            yield vars(module), "a global name" if name == "__main__" else f"a name of module {name}"
    for frame in [*_frames(sys._getframe(1)), *_frames_of_traceback()]:
        if source.is_library(frame.f_code) or source.is_installed(frame.f_code.co_filename):
            continue
        if frame.f_locals is frame.f_globals:  # code that `exec` runs in a namespace of its own
            yield frame.f_globals, "a global name"
        else:
            yield source.locals_of(frame), f"a local name of {frame.f_code.co_name}, line {frame.f_lineno}"


def _is_foreign(file: str) -> bool:
    return source.is_installed(file) or source.is_library_file(file)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames_of_traceback() -> Iterator[FrameType]:
    tb = getattr(sys, "last_traceback", None)
    while tb is not None:
        yield tb.tb_frame
        tb = tb.tb_next


def _path(x: Any, names: dict[str, Any], deadline: float) -> str | None:
    """The shortest expression that begins with one of `names` and leads to `x`."""
    waiting = deque([(value, name, 0) for name, value in list(names.items())])
    seen = {id(names)}
    while waiting:
        value, path, depth = waiting.popleft()
        if value is x:
            return path
        if depth >= _DEEPEST or id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) % _LOOK_AT_CLOCK == 0 and time.perf_counter() > deadline:
            return None
        waiting += [(part, path + step, depth + 1) for part, step in _parts(value)]
    return None


def _parts(value: Any) -> Iterator[tuple[Any, str]]:
    """What can be got at from `value`, and how."""
    match value:
        case str() | bytes() | int() | float():
            return
        case dict():
            yield from [(item, f"[{key!r}]") for key, item in list(value.items()) if type(key) in (str, int, tuple)]
        case list() | tuple() | deque():
            yield from [(item, f"[{i}]") for i, item in enumerate(list(value))]
        case set() | frozenset():
            yield from [(item, ", an element") for item in list(value)]
        case GeneratorType() | CoroutineType():
            kind = "gi_frame" if isinstance(value, GeneratorType) else "cr_frame"
            frame = getattr(value, kind)
            names = {} if frame is None else source.locals_of(frame)
            yield from [(item, f".{kind}.f_locals[{name!r}]") for name, item in names.items()]
        case CellType():
            yield from _contents(value)
        case ModuleType():
            return
        case _:
            yield from _parts_of_object(value)


def _contents(cell: CellType) -> list[tuple[Any, str]]:
    try:
        return [(cell.cell_contents, ".cell_contents")]
    except ValueError:  # not bound yet
        return []


def _parts_of_object(value: Any) -> Iterator[tuple[Any, str]]:
    for kind, attributes in ATTRIBUTES:
        if isinstance(value, kind):
            if kind is not FunctionType or not source.is_library(value.__code__):
                yield from [(getattr(value, name), f".{name}") for name in attributes]
            return
    own = value if isinstance(value, type) else type(value)
    home = sys.modules.get(own.__module__)
    file = getattr(home, "__file__", None)
    if own is SimpleNamespace or own.__module__ == "__main__" or (file is not None and not _is_foreign(file)):
        namespace = dict(getattr(value, "__dict__", {}))
        yield from [(item, f".{name}") for name, item in namespace.items()]
        if not isinstance(value, type):
            found = [(getattr(value, name, None), f".{name}") for name in slots_of(own)]
            yield from [(item, step) for item, step in found if item is not None]
