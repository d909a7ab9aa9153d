"""Where among the user's own names is an object? Asked by an error, so quick: nothing but those names is looked at."""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Iterator
from types import CellType, CoroutineType, FrameType, FunctionType, GeneratorType, ModuleType, SimpleNamespace
from typing import Any, Final, TypeAlias

from limelight.user_code import source_line
from limelight.user_code.holders import ATTRIBUTES, Holder, slots_of

_Root: TypeAlias = tuple[dict[str, Any], str]
"""A namespace, and what its names are called."""
_DEEPEST: Final = 7
_LOOK_AT_CLOCK: Final = 256
_OPAQUE: Final = ("_iterator", "_lru_cache_wrapper")
_INNER: Final = ("builtins", *[f"limelight.{name}" for name in ("graph", "staging", "core.tensor", "core.dispatch")])
"""Modules of classes that keep a trace's tensors by right, or have nothing to tell."""


def first_holder(x: Any, seconds: float = 0.2) -> Holder | None:
    """A way from one of the user's names to `x`, found within `seconds` of work.

    Rather from a global than from a local name. Goes through containers, attributes of the user's objects, classes,
    closures, default arguments, generators that wait, exceptions and the frames of their tracebacks, from the names of
    the user's modules, of functions that are running, and of those that a traceback keeps. What lies in objects of
    other people's classes is looked at, too, and local names last: one of them is what led here.
    """
    begin = time.thread_time()
    modules, frames = list(_modules()), list(_namespaces())
    for roots, plainly, thoroughly in ((modules, 0.5, 0.7), (frames, 0.9, 1.0)):
        ways = (_way(x, [root], begin + seconds * plainly, thorough=False) for root in roots)
        found = next(filter(None, ways), None) or _way(x, roots, begin + seconds * thoroughly, thorough=True)
        if found is not None:
            return found
    return None


def _modules() -> Iterator[_Root]:
    """The names of the user's modules, first of those whose code is running."""
    running = [str(frame.f_globals.get("__name__")) for frame in _frames(sys._getframe(1))]
    for name in dict.fromkeys([*running, *sys.modules]):
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        users = name == "__main__" or (file is not None and not _is_foreign(file))
        if users and isinstance(module, ModuleType):
            yield vars(module), "a global name" if name == "__main__" else f"a name of module {name}"


def _namespaces() -> Iterator[_Root]:
    """The names of functions that are running, or that a traceback keeps."""
    for frame in [*_frames(sys._getframe(1)), *_frames_of_traceback()]:
        if source_line.is_library(frame.f_code) or source_line.is_installed(frame.f_code.co_filename):
            continue
        if frame.f_locals is frame.f_globals:  # code that `exec` runs in a namespace of its own
            yield frame.f_globals, "a global name"
        else:
            yield source_line.locals_of(frame), f"a local name of {frame.f_code.co_name}, line {frame.f_lineno}"


def _is_foreign(file: str) -> bool:
    return source_line.is_installed(file) or source_line.is_library_file(file)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames_of_traceback() -> Iterator[FrameType]:
    tb = getattr(sys, "last_traceback", None)
    while tb is not None:
        yield tb.tb_frame
        tb = tb.tb_next


def _way(x: Any, roots: list[_Root], deadline: float, thorough: bool) -> Holder | None:
    """The shortest expression that begins with a name in one of `roots` and leads to `x`."""
    waiting = deque([(value, name, 0, where) for names, where in roots for name, value in list(names.items())])
    seen = {id(names) for names, _ in roots}
    while waiting:
        value, path, depth, where = waiting.popleft()
        if value is x:
            return Holder(path, where)
        if depth >= _DEEPEST or id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) % _LOOK_AT_CLOCK == 0 and time.thread_time() > deadline:
            return None
        waiting += [(part, path + step, depth + 1, where) for part, step in _parts(value, thorough)]
    return None


def _parts(value: Any, thorough: bool) -> Iterator[tuple[Any, str]]:
    """What can be got at from `value`, and how."""
    match value:
        case str() | bytes() | int() | float():
            return
        case dict():
            yield from [(item, f"[{_key(key)}]") for key, item in list(value.items())]
        case list() | tuple() | deque():
            yield from [(item, f"[{i}]") for i, item in enumerate(list(value))]
        case set() | frozenset():
            yield from [(item, ", an element") for item in list(value)]
        case GeneratorType() | CoroutineType():
            kind = "gi_frame" if isinstance(value, GeneratorType) else "cr_frame"
            frame = getattr(value, kind)
            names = {} if frame is None else source_line.locals_of(frame)
            yield from [(item, f".{kind}.f_locals[{name!r}]") for name, item in names.items()]
        case CellType():
            yield from _contents(value)
        case ModuleType():
            return
        case FunctionType():
            yield from [(item, f".{name}") for name, item in list(vars(value).items())]
            yield from _parts_of_object(value, thorough)
        case BaseException():
            yield from _parts_of_exception(value)
            yield from _parts_of_object(value, thorough)
        case _ if type(value).__module__ == "itertools" or type(value).__name__.endswith(_OPAQUE):
            step = ", in its cache" if hasattr(value, "cache_clear") else ", inside"
            yield from [(item, step) for item in gc.get_referents(value)]
        case _:
            yield from _parts_of_object(value, thorough)


def _key(key: Any) -> str:
    return repr(key) if type(key) in (str, int, float, bool, tuple) else f"<{type(key).__name__}>"


def _parts_of_exception(error: BaseException) -> Iterator[tuple[Any, str]]:
    """The local names of the functions that it passed through, and the exceptions behind it."""
    tb, path = error.__traceback__, ".__traceback__"
    while tb is not None:
        if not source_line.is_library(tb.tb_frame.f_code):
            names = dict(tb.tb_frame.f_locals)
            yield from [(item, f"{path}.tb_frame.f_locals[{name!r}]") for name, item in names.items()]
        tb, path = tb.tb_next, f"{path}.tb_next"
    yield from [(error.__cause__, ".__cause__"), (error.__context__, ".__context__")]


def _contents(cell: CellType) -> list[tuple[Any, str]]:
    try:
        return [(cell.cell_contents, ".cell_contents")]
    except ValueError:  # not bound yet
        return []


def _parts_of_object(value: Any, thorough: bool) -> Iterator[tuple[Any, str]]:
    for kind, attributes in ATTRIBUTES:
        if isinstance(value, kind):
            if kind is not FunctionType or not source_line.is_library(value.__code__):
                yield from [(getattr(value, name), f".{name}") for name in attributes]
            return
    own = value if isinstance(value, type) else type(value)
    if "python_function" in getattr(value, "__dict__", {}):
        yield (value.python_function, ".python_function")
        users = [(item, f".{name}") for name, item in list(vars(value).items()) if not name.startswith("_")]
        yield from [part for part in users if part[1] != ".python_function"]
    elif _is_open(own, thorough):
        namespace = dict(getattr(value, "__dict__", {}))
        yield from [(item, f".{name}") for name, item in namespace.items()]
        if not isinstance(value, type):
            found = [(getattr(value, name, None), f".{name}") for name in slots_of(own)]
            yield from [(item, step) for item, step in found if item is not None]


def _is_open(kind: type, thorough: bool) -> bool:
    """Whether attributes of objects of this class are looked at: of the user's, and if need be of others."""
    if kind is SimpleNamespace or kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is not None and not _is_foreign(file):
        return True
    return thorough and not kind.__module__.startswith(_INNER)
