"""What keeps an object alive: a name, an entry of a notebook's `Out`, a frame that a traceback holds.

Two searches. `who_holds` goes backwards from the object, by the garbage collector's referrers: it finds all places, and
walks the whole heap at each step back, once for all objects that are so far away. `first_holder`, which an error asks,
must be quick: it goes forwards from the user's own names, within a time that is given, and looks at nothing else.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import (
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Final, NamedTuple, TypeAlias

from limelight.user_code import source_line

_MOST_STEPS_BACK: Final = 8
_MOST_SEEN: Final = 2000
SECONDS: Final = 0.2
"""Of the processor's time, which an error may spend on its search."""
_RUNNING: Final = "running"

_ATTRIBUTES: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (FunctionType, ("__closure__", "__defaults__", "__kwdefaults__")),
    (BaseException, ("args", "__dict__")),
    (MethodType, ("__self__",)),
    (partial, ("args", "keywords")),
    (CellType, ("cell_contents",)),
)
"""Where objects of some types keep others."""


class Holder(NamedTuple):
    """A place from which an object can be got at: `path` is the expression, `where` whose name it begins with.

    >>> import limelight as ll
    >>> import types
    >>> shelf = types.SimpleNamespace(tapes=[ll.GradientTape()])
    >>> ll.explain.who_holds(shelf.tapes[0]).places[0].path
    'shelf.tapes[0]'
    """

    path: str
    where: str

    def __str__(self) -> str:
        return f"{self.path} ({self.where})"


@dataclass(frozen=True)
class Holders:
    """All places that were found, those with the shortest way first. `str()` has a line for each.

    >>> import limelight as ll
    >>> import types
    >>> shelf = types.SimpleNamespace(tapes=[ll.GradientTape()])
    >>> ll.explain.who_holds(shelf.tapes[0]).what
    'GradientTape'
    """

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


class _Way(NamedTuple):
    """How to go on from an object to the one that is asked for; text, since an object here would be held by it.

    Two texts differ for a dictionary, of which its own referrers tell whether it is the attributes of an object.
    """

    as_item: str
    as_attribute: str


def _places(x: Any) -> Iterator[Holder]:
    namespaces = [(name, vars(module)) for name, module in list(sys.modules.items())]  # alive, or their ids are others'
    modules = {id(names): name for name, names in namespaces}
    running = [frame for frame in _running_frames() if id(frame.f_locals) not in modules]
    seen, level, ways = {id(x)}, [x], [_Way("", "")]
    for depth in range(_MOST_STEPS_BACK + 1):
        holding, further, onwards = _referrers(level), [], []
        for held, way in zip(level, ways, strict=True):
            suffix = way.as_attribute if _is_namespace(held, holding[id(held)]) else way.as_item
            for frame in running:  # the collector does not know the locals of these
                yield from _names_in(frame, held, suffix, _RUNNING)
            for referrer in holding[id(held)]:
                if isinstance(referrer, FrameType):
                    if referrer not in running:
                        yield from _names_in(referrer, held, suffix, "kept by a traceback or a generator")
                elif id(referrer) in modules:
                    where = f"a name of module {modules[id(referrer)]}"
                    yield from [Holder(f"{name}{suffix}", where) for name, v in list(referrer.items()) if v is held]
                elif depth < _MOST_STEPS_BACK and id(referrer) not in seen and len(seen) < _MOST_SEEN:
                    step = _step_to(referrer, held)
                    if step is not None:
                        seen.add(id(referrer))
                        further.append(referrer)
                        onwards.append(_joined(step, suffix))
        level, ways, holding = further, onwards, {}  # whose lists would hold what is looked for next


def _referrers(level: list[Any]) -> dict[int, list[Any]]:
    """What refers to each of some objects, by their ids: one walk over the heap for all of them."""
    holding: dict[int, list[Any]] = {id(held): [] for held in level}
    found = gc.get_referrers(*level)
    for referrer in found:
        if referrer is not level and referrer is not found:  # which comes to refer to itself during the walk
            for held in {id(part) for part in gc.get_referents(referrer)} & holding.keys():
                holding[held].append(referrer)
    found.clear()
    return holding


def _joined(step: _Way, suffix: str) -> _Way:
    rest = suffix.removeprefix(".cell_contents") if "_frame.f_locals" in step.as_item else suffix
    return _Way(step.as_item + rest, step.as_attribute + rest)


def _running_frames() -> list[FrameType]:
    """The frames of all threads."""
    frames = []
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
    return frames


def _names_in(frame: FrameType, held: Any, suffix: str, state: str) -> list[Holder]:
    """The local names for `held` in a frame, but for those of this question itself."""
    if frame.f_globals is globals() or source_line.is_library(frame.f_code):
        return []
    code = frame.f_code
    where = f"a local name of {code.co_name}, {code.co_filename} line {frame.f_lineno}, {state}"
    return [Holder(f"{name}{suffix}", where) for name, value in source_line.locals_of(frame).items() if value is held]


def _step_to(holder: Any, held: Any) -> _Way | None:
    """How one gets from `holder` to `held`, as the end of an expression; None for what is no way to go."""
    if isinstance(holder, dict):
        keys = (_Way(f"[{key!r}]", f".{key}") for key, value in list(holder.items()) if value is held)
        return next(keys, None)
    step = _step_to_part(holder, held)
    return None if step is None else _Way(step, step)


def _step_to_part(holder: Any, held: Any) -> str | None:
    """The same for what is no dictionary."""
    match holder:
        case list() | tuple() | deque():
            return next((f"[{i}]" for i, value in enumerate(holder) if value is held), None)
        case set() | frozenset():
            return ", an element"
        case GeneratorType() | CoroutineType():
            return _step_into_generator(holder, held)
    for kind, attributes in _ATTRIBUTES:
        if isinstance(holder, kind):
            return next((f".{name}" for name in attributes if getattr(holder, name) is held), None)
    if getattr(holder, "__dict__", None) is held:
        return ""
    return next((step for item, step in _slots(holder) if item is held), None)


def _step_into_generator(holder: Any, held: Any) -> str | None:
    """To a local name of a function that waits to go on."""
    kind = "gi_frame" if isinstance(holder, GeneratorType) else "cr_frame"
    frame = getattr(holder, kind)
    inside = held.cell_contents if isinstance(held, CellType) else held
    names = [] if frame is None else [name for name, value in source_line.locals_of(frame).items() if value is inside]
    return f".{kind}.f_locals[{names[0]!r}]" if names else None


def _is_namespace(held: Any, referrers: list[Any]) -> bool:
    """Whether it is a dictionary, the attributes of one of the objects that refer to it."""
    owners = (owner for owner in referrers if not isinstance(owner, dict))
    return isinstance(held, dict) and any(getattr(owner, "__dict__", None) is held for owner in owners)


# From the user's own names on

_Root: TypeAlias = tuple[dict[str, Any], str]
"""A namespace, and what its names are called."""
_MOST_STEPS: Final = 7
_LOOK_AT_CLOCK: Final = 256
_LEAVES: Final = frozenset([str, bytes, int, float, bool, complex, type(None)])
_OPAQUE: Final = ("_iterator", "_lru_cache_wrapper")
_INNER: Final = ("builtins", *[f"limelight.{name}" for name in ("graph", "staging", "core.tensor", "core.dispatch")])
"""Modules of classes that keep a trace's tensors by right, or have nothing to tell."""


def first_holder(x: Any, seconds: float | None = None) -> Holder | None:
    """A way from one of the user's names to `x`, found within `seconds` of work (0.2).

    Rather from a global than from a local name. Goes through containers, attributes of the user's objects, classes,
    closures, default arguments, generators that wait, exceptions and the frames of their tracebacks, from the names of
    the user's modules, of functions that are running, and of those that a traceback keeps. What lies in objects of
    other people's classes is looked at, too, and local names last: one of them is what led here.
    """
    begin, seconds = time.thread_time(), SECONDS if seconds is None else seconds
    modules, frames = list(_modules()), list(_namespaces())
    for roots, share in ((modules, 0.4), (frames, 0.6)):
        ways = (_way(x, [root], begin + seconds * share, thorough=False) for root in roots)
        holder = next(filter(None, ways), None)
        if holder is not None:
            return holder
    for roots, share in ((modules, 0.8), (frames, 1.0)):
        holder = _way(x, roots, begin + seconds * share, thorough=True)
        if holder is not None:
            return holder
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
    if time.thread_time() > deadline:  # there may be hundreds of roots, each of them small
        return None
    waiting = deque([(value, name, 0, where) for names, where in roots for name, value in list(names.items())])
    seen = {id(names) for names, _ in roots}
    looked_at = 0
    while waiting:
        value, path, depth, where = waiting.popleft()
        if value is x:
            return Holder(path, where)
        if depth >= _MOST_STEPS or id(value) in seen:
            continue
        seen.add(id(value))
        for part, step in _parts(value, thorough):
            looked_at += 1  # parts, not objects: one list may have a million
            if looked_at % _LOOK_AT_CLOCK == 0 and time.thread_time() > deadline:
                return None
            if type(part) not in _LEAVES:
                waiting.append((part, path + step, depth + 1, where))
    return None


def _parts(value: Any, thorough: bool) -> Iterator[tuple[Any, str]]:
    """What can be got at from `value`, and how."""
    match value:
        case _ if type(value) in weakref.ProxyTypes:
            return  # it holds nothing, and if what it stood for is gone, each question to it is a ReferenceError
        case str() | bytes() | int() | float():
            return
        case dict():
            yield from ((item, f"[{_key(key)}]") for key, item in list(value.items()))
        case list() | tuple() | deque():
            yield from ((item, f"[{i}]") for i, item in enumerate(list(value)))
        case set() | frozenset():
            yield from ((item, ", an element") for item in list(value))
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
    for kind, attributes in _ATTRIBUTES:
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
            yield from _slots(value)


def _slots(value: Any) -> Iterator[tuple[Any, str]]:
    """What stands in the slots of an object, past properties of the same names in its class, which might do anything.

    (A tensor of a trace explains itself instead of giving its data, and asks here who holds it.)
    """
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if type(slot) is MemberDescriptorType:
                with contextlib.suppress(AttributeError):  # nothing stands there
                    yield slot.__get__(value), f".{name}"


def _is_open(kind: type, thorough: bool) -> bool:
    """Whether attributes of objects of this class are looked at: of the user's, and if need be of others."""
    if kind is SimpleNamespace or kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is not None and not _is_foreign(file):
        return True
    return thorough and not kind.__module__.startswith(_INNER)
