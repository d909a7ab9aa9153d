"""What a Python function finds outside its arguments while it is traced: the values behind the names in its code.

Goes through the user's own helper functions, methods and callable objects. Runs none of the user's code: attributes
are looked up in dictionaries, slots and classes, and the getter of a property is read like a helper. The answer is what
the code may do: branches that were not taken count. What is handed to `py_func` or `deferred` runs at each call, and so
is left out. `explain.baked` and `explain.side_effects` rest on this one reading.
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import os
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.user_code import source_line
from limelight.user_code.code_uses import Chain, Use, Uses, uses_of

_FIELD: Final = type(vars(collections.namedtuple("_Pair", "first"))["first"])
"""What finds a field of a named tuple."""
_MUTABLE: Final = (list, dict, set, np.ndarray)
_MOST_CODES: Final = 64
_MOST_ITEMS: Final = 16
_WITH_ITEMS: Final = (list, tuple, type(os.environ))  # finding an item of which runs none of the user's code
MISSING: Final = object()
"""Stands for what a name does not lead to, or cannot be looked up without running code."""


class Read(NamedTuple):
    """One mention in one code, and what its chain leads to (MISSING where that is not known).

    `base` is what the chain without its last step leads to; `module` names the module that the chain begins with.
    """

    use: Use
    code: CodeType
    value: Any
    base: Any
    module: str
    globals: Mapping[str, Any]  # of that code
    start: Any = MISSING  # what the first name of the chain leads to: for one of a closure the cell that holds it

    @property
    def line(self) -> source_line.Source:
        """Where it is; for code that cannot be read, where that begins."""
        function = self.use.chain.name if self.use.how == "unknown" else self.code.co_name
        return source_line.Source(self.code.co_filename, self.use.line, function)


class _Frame(NamedTuple):
    """Code, and what its names stand for, as far as that is known without running it."""

    code: CodeType
    globals: Mapping[str, Any]
    names: Mapping[str, Any]  # of its closure and its parameters
    bound: Mapping[str, str] = {}  # its parameters that `functools.partial` ("bound") or a mutable "default" has given
    uses: Uses | None = None  # where the code around it has been read
    body: Sequence[ast.stmt] | None = None  # of a notebook's cell, which is no function's of a file
    cells: Mapping[str, types.CellType] = {}  # of its closure


def is_users(file: str) -> bool:
    """Whether code in `file` is not that of Python itself or of an installed package."""
    return not source_line.is_installed(file)


def reads(function: Any, arguments: Mapping[str, Any], cell_globals: Mapping[str, Any] | None = None) -> Iterator[Read]:
    """Every use in the code of `function` and of what it calls, each code once; `arguments` are those known.

    `cell_globals` are what the names of a notebook's cell stand for, where `function` is one.
    """
    for _, found in _frames_read(function, arguments, cell_globals):
        yield from found


class Scope(NamedTuple):
    """Code with its globals; `body` are the statements of a notebook's cell."""

    code: CodeType
    globals: Mapping[str, Any]
    body: Sequence[ast.stmt] | None


def scopes(function: Any) -> Iterator[Scope]:
    """The code of `function`, and of what it calls as far as that is known, each once."""
    for frame, _ in _frames_read(function, {}, None):
        yield Scope(frame.code, frame.globals, frame.body)


def _frames_read(
    function: Any, arguments: Mapping[str, Any], cell_globals: Mapping[str, Any] | None
) -> Iterator[tuple[_Frame, list[Read]]]:
    """Each code with its uses; see `reads`."""
    namespace = None if cell_globals is None else vars(function)["__limelight_written__"].names
    waiting = deque(_frames(function, arguments))
    seen: set[tuple[int, int]] = set()
    stamps: dict[str, object] = {}
    while waiting and len(seen) < _MOST_CODES:
        frame = waiting.popleft()
        if cell_globals is not None and frame.globals is namespace:
            frame = frame._replace(globals=cell_globals)
        key = (id(frame.code), id(frame.names.get(_first(frame.code), MISSING)))
        if key in seen:
            continue
        seen.add(key)
        uses = frame.uses or uses_of(frame.code, frame.body, stamps)
        found = [_resolved(use, frame) for use in uses.uses]
        yield frame, found
        for read in found:
            if read.use.how == "read" and read.value is not MISSING:
                waiting += _called(read.value, read.base)
        waiting += [
            _Frame(code, frame.globals, frame.names, uses=inner, cells=frame.cells) for code, inner in uses.inner
        ]


def _first(code: CodeType) -> str:
    return code.co_varnames[0] if code.co_argcount else ""


def _frames(value: Any, arguments: Mapping[str, Any] | None = None, owner: Any = MISSING) -> list[_Frame]:
    """The code behind something callable, if the user wrote it."""
    if isinstance(value, MethodType):
        return _frames(value.__func__, arguments, value.__self__)
    if isinstance(value, functools.partial):
        return _frames_of_partial(value, arguments)
    if isinstance(value, functools._lru_cache_wrapper):
        return _frames(value.__wrapped__, arguments, owner)
    if not isinstance(value, FunctionType):
        return _within(value, arguments)
    instance = getattr(value, "__limelight_instance__", None)
    if instance is not None:
        return _frames(vars(value)["__wrapped__"], arguments, instance())
    code = value.__code__
    if source_line.is_library(code) or not is_users(code.co_filename):
        return _frames(vars(value)["__wrapped__"], arguments) if "__wrapped__" in vars(value) else []
    names = _lasting_defaults(value) if arguments is None else dict(arguments)
    bound = dict.fromkeys(names, "default") if arguments is None else {}
    cells = dict(zip(code.co_freevars, value.__closure__ or (), strict=True))
    names |= {name: contents(cell) for name, cell in cells.items()}
    if owner is not MISSING and code.co_argcount:
        names[_first(code)] = owner
    return [_Frame(code, value.__globals__, names, bound, cells=cells)]


def _lasting_defaults(function: FunctionType) -> dict[str, Any]:
    """The defaults of a helper that may change from call to call, as no number can."""
    return {name: value for name, value in defaults_of(function).items() if isinstance(value, _MUTABLE)}


def defaults_of(function: FunctionType) -> dict[str, Any]:
    """The parameters of a function that have defaults, with these."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][-len(defaults) :] if defaults else ()
    return dict(zip(names, defaults, strict=False)) | (function.__kwdefaults__ or {})


def _frames_of_partial(value: functools.partial[Any], arguments: Mapping[str, Any] | None) -> list[_Frame]:
    """With the arguments that it gives. The keywords of a staged one are defaults, which are part of its key."""
    supplied = dict(value.keywords) if arguments is None else {}
    frames = _frames(value.func, arguments)
    if not frames:
        return []
    first = frames[0]
    owned = isinstance(value.func, MethodType) or not isinstance(value.func, (FunctionType, functools.partial))
    names = first.code.co_varnames[owned : first.code.co_argcount]
    free = [name for name in names if first.bound.get(name) != "bound"]
    supplied |= dict(zip(free, value.args, strict=False))
    bound = {**first.bound, **dict.fromkeys(supplied, "bound")}
    return [first._replace(names={**first.names, **supplied}, bound=bound), *frames[1:]]


def _within(value: Any, arguments: Mapping[str, Any] | None) -> list[_Frame]:
    """The code of a staged function, or of an object that can be called."""
    kind = type(value)
    if "python_function" in getattr(value, "__dict__", {}):
        frames = _frames(vars(value)["python_function"], arguments)
        cell = vars(value).get("__limelight_written__")
        return frames if cell is None else [frame._replace(body=cell.body) for frame in frames]
    method = MISSING if isinstance(value, type) else lookup(kind, "__call__")
    method = getattr(method, "__wrapped__", method)  # of a module's own `__call__`, which traces note
    if isinstance(method, FunctionType) and source_line.is_library(method.__code__):  # a module's, which calls `call`
        method = lookup(kind, "call")
    return _frames(method, arguments, value) if isinstance(method, FunctionType) else []


def _called(value: Any, base: Any) -> list[_Frame]:
    """The code that may run because `value` was looked up on `base`, or is called or gone through."""
    if isinstance(value, (property, functools.cached_property)):
        return _frames(value.fget if isinstance(value, property) else value.func, None, base)
    if isinstance(value, (staticmethod, classmethod)):
        owner = base if isinstance(base, type) else type(base)
        return _frames(value.__func__, None, MISSING if isinstance(value, staticmethod) else owner)
    if isinstance(value, FunctionType) and not isinstance(base, (ModuleType, type)) and base is not MISSING:
        return _frames(value, None, base)
    if isinstance(value, (list, tuple)):
        return [frame for item in value[:_MOST_ITEMS] for frame in _frames(item)]
    return _frames(value)


def contents(cell: types.CellType) -> Any:
    """What a name of a closure stands for now."""
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


# Looking up


def _resolved(use: Use, frame: _Frame) -> Read:
    chain = use.chain
    if chain.root == "local" and chain.name in frame.bound:
        chain = chain._replace(root=frame.bound[chain.name])
        use = use._replace(chain=chain)
    base, value = MISSING, _root(chain, frame)
    start = frame.cells.get(chain.name, value) if chain.root == "free" else value
    module = value.__name__ if isinstance(value, ModuleType) else ""
    for i, one in enumerate(chain.steps):
        further = step(value, *one)
        if further is MISSING and use.how == "read":  # an item of an array, say: what it is taken from was read
            shorter = use._replace(chain=chain._replace(steps=chain.steps[:i]))
            return Read(shorter, frame.code, value, base, module, frame.globals, start)
        base, value = value, further
    return Read(use, frame.code, value, base, module, frame.globals, start)


def _root(chain: Chain, frame: _Frame) -> Any:
    if chain.root == "import":
        return sys.modules.get(chain.name, MISSING)
    if chain.root != "global":
        return frame.names.get(chain.name, MISSING)
    value = frame.globals.get(chain.name, MISSING)
    return getattr(builtins, chain.name, MISSING) if value is MISSING else value


def step(value: Any, kind: str, key: Any) -> Any:
    """An attribute (".") or an item of `value`, MISSING where finding it would run code."""
    if value is MISSING:
        return MISSING
    if kind == ".":
        return lookup(value, key)
    try:
        if isinstance(value, dict):
            return dict.get(value, key, MISSING)  # no default is made by looking
        return value[key] if type(value) in _WITH_ITEMS else MISSING
    except (LookupError, TypeError):
        return MISSING


def lookup(value: Any, name: str) -> Any:
    """`value.name` where finding it runs no code; a property or function of the class is returned as it is."""
    own = _namespace(value)
    if own is not None and name in own:
        return own[name]
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    for kind in kinds:
        if name in kind.__dict__:
            member = kind.__dict__[name]
            if isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType, _FIELD)):
                return _slot(member, value)
            return member
    return MISSING


def _namespace(value: Any) -> Mapping[str, Any] | None:
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if isinstance(attributes, (dict, types.MappingProxyType)) else None


def _slot(descriptor: Any, value: Any) -> Any:
    try:
        return descriptor.__get__(value, type(value))
    except Exception:  # noqa: BLE001  # an empty slot
        return MISSING
