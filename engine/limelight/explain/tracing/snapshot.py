"""What became a constant of a trace: the plain values that its Python code found under names of others.

A snapshot is taken when a trace is made (0.1 to 0.2 ms) and compared when somebody asks. It holds words, numbers and
weak references, so it keeps nothing alive. The source is read at the first trace (0.1 ms a function, once for each code
object), as the names in it must be known then: their values may be others when somebody asks.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import os
import re
import reprlib
import sys
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, new_uid
from limelight.core.variable import Resource
from limelight.staging.key_parts import ObjectPart, Part
from limelight.user_code.code_uses import Chain
from limelight.user_code.names_read import MISSING, Read, defaults_of, is_users, reads
from limelight.user_code.source_line import Source

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))
_MOST: Final = 200
_LARGE: Final = 1 << 22
_ITEMS: Final = 32
_DEEPEST: Final = 3
_NOT_VALUES: Final = (
    *(ModuleType, type, BuiltinFunctionType, np.ufunc),
    *(property, functools.cached_property, staticmethod, classmethod),
)
_ENVIRONMENT: Final = type(os.environ)
_BUFFERS: Final = (bytearray, memoryview)
_MAPPINGS: Final = (dict, weakref.WeakValueDictionary, weakref.WeakKeyDictionary)
_SETS: Final = (set, frozenset, weakref.WeakSet)
_LOOKS: Final = frozenset(["get", "items", "keys", "values", "index", "count", "copy"])
"""Methods of containers that tell of all their contents."""


class Baked(NamedTuple):
    """A value at the time of the trace: `token` compares equal while nothing has changed, `text` is for readers.

    `kind`: "constant" for what is written into the graph as it is; "function" for code that was run; "tensor",
    "variable" and "object" for what the graph uses by reference, so that only another one under that name matters.
    """

    name: str
    where: str  # "global", "closure", "attribute" or "item"
    kind: str
    token: Any
    text: str
    line: Source
    root: str  # of its chain: "local" where the name has no meaning outside the code that reads it
    is_fixed: bool = False  # whether it is part of something that takes no assignments
    attribute: tuple[Any, str] | None = None  # of which object it is an attribute, and which

    @property
    def is_number(self) -> bool:
        """Whether it is a number that is written into the graph."""
        return self.kind == "constant" and self.token[0] in (int, float, complex)

    @property
    def is_name(self) -> bool:
        """Whether it is found under a name, rather than as a part of something."""
        return self.where in ("global", "closure")

    def changes(self, now: Baked) -> list[tuple[Any, str]]:
        """The attributes of an object that differ in a later snapshot of it; none of what is no object."""
        if self.kind != "object" or now.kind != "object" or self.token[0] != now.token[0]:
            return []
        before, after = ({name: token for (_, name), token in one.token[1][2]} for one in (self, now))
        names = [name for name in before | after if before.get(name, MISSING) != after.get(name, MISSING)]
        return [(self.token[0], name) for name in names]


Snapshot = dict[tuple[str, str], Baked]
"""By the code that reads it and by name."""


def take(function: Callable[..., Any], paths: Sequence[str], parts: Sequence[Part]) -> Snapshot:
    """The snapshot for a trace whose key has these parts, under these paths. Never fails: it is only for explanations.

    Objects among the arguments are looked at like globals: the trace is made for the object, whatever its attributes.
    """
    objects = _objects(paths, parts)
    try:
        written = getattr(function, "__limelight_written__", None)
        compared = getattr(function, "__limelight_compared__", ())
        inputs = None if written is None else _Inputs.of(written.names, paths, objects, compared)
        return snapshot(function, _arguments(objects), inputs)
    except Exception:  # noqa: BLE001  # a `__repr__` or `__eq__` of the user's
        return {}


def unread(function: Callable[..., Any], paths: Sequence[str], parts: Sequence[Part]) -> list[Source]:
    """The functions of such a trace whose source cannot be read, by their first lines: the snapshot lacks theirs."""
    found = reads(function, arguments_by_name(paths, parts))
    return list(dict.fromkeys([read.line for read in found if read.use.how == "unknown"]))


def _objects(paths: Sequence[str], parts: Sequence[Part]) -> dict[str, Any]:
    named = zip(paths, parts, strict=True)
    return {path: part.identity.target() for path, part in named if isinstance(part, ObjectPart)}


def arguments_by_name(paths: Sequence[str], parts: Sequence[Part]) -> dict[str, Any]:
    """The objects among the arguments of such a trace, by the names of their parameters."""
    return _arguments(_objects(paths, parts))


def _arguments(objects: Mapping[str, Any]) -> dict[str, Any]:
    return {path: x for path, x in objects.items() if path.isidentifier()}


def renamed(function: Any, entry: Any, uid: int) -> str:
    """The name under which `entry` read the variable `uid`, if that stands for another variable now; else nothing."""
    names = [(key, x) for key, x in entry.baked.items() if x.kind == "variable" and x.token[1] == uid]
    if not names or function is None:
        return ""
    now = take(function, entry.paths, entry.key.parts)
    for key, then in names:
        current = now.get(key)
        if current is not None and current.kind == "variable" and current.token != then.token:
            return str(then.name)
    return ""


class _Inputs(NamedTuple):
    """The names of a cell's inputs, which it and its helpers read as globals although they are arguments of its traces.

    `globals` has for each object the one that the trace was made for, whatever its name stands for now.
    """

    globals: dict[str, Any]
    names: frozenset[str]
    objects: tuple[str, ...]  # paths of those that are keyed by identity: their attributes are no part of the key
    compared: Collection[tuple[CodeType, Chain]]  # what is looked at on each call, by the code that reads it

    @staticmethod
    def of(
        namespace: Mapping[str, Any],
        paths: Sequence[str],
        objects: Mapping[str, Any],
        compared: Collection[tuple[CodeType, Chain]],
    ) -> _Inputs:
        meant = {k: x for k, x in objects.items() if k in namespace and not hasattr(type(x), "__limelight_leaf__")}
        names = frozenset(re.split(r"[.\[]", path, maxsplit=1)[0] for path in paths)
        return _Inputs({**namespace, **meant}, names, tuple([path.replace('"', "'") for path in objects]), compared)

    def cover(self, read: Read, chain: Chain) -> bool:
        """Whether another value makes another trace."""
        if (read.code, read.use.chain) in self.compared:
            return True
        if read.globals is not self.globals or chain.root != "global" or chain.name not in self.names:
            return False
        text = str(chain)
        return not any(text.startswith((f"{path}.", f"{path}[")) for path in self.objects)


def snapshot(function: Callable[..., Any], arguments: Mapping[str, Any], inputs: _Inputs | None = None) -> Snapshot:
    """What `function` and the user's functions that it calls read of the world, now, but for its `inputs`."""
    constants: Snapshot = {}
    found = list(reads(function, arguments, None if inputs is None else inputs.globals))
    called = {(read.code, read.use.chain) for read in found if read.use.how == "call"}
    for read in found:
        if read.use.how != "read" or len(constants) >= _MOST or _is_foreign(read):
            continue
        chain, value = _whole(read)
        if value is MISSING or (chain.root == "local" and not chain.steps):
            continue
        if inputs is not None and inputs.cover(read, chain):
            continue
        key = (f"{read.code.co_filename}:{read.code.co_firstlineno}", str(chain))
        if key not in constants:
            printed = _printed(value, (read.code, read.use.chain) not in called)
            if printed is not None:
                baked = Baked(str(chain), _where(chain), *printed, read.line, chain.root)
                constants[key] = baked._replace(is_fixed=_is_fixed(read.base), attribute=_attribute(read, chain))
    return constants


def _printed(value: Any, inside: bool) -> tuple[str, Any, str] | None:
    """`fingerprint`, and None for a value whose `__repr__` or `__eq__` fails: the others are told all the same."""
    try:
        return fingerprint(value, inside)
    except Exception:  # noqa: BLE001  # the user's code
        return None


def _is_foreign(read: Read) -> bool:
    """Whether it is a name of somebody else's module: `np.pi` is as constant as 3.14; `os.environ` is not."""
    if not read.module:
        return False
    if isinstance(read.value, _ENVIRONMENT) or isinstance(read.base, _ENVIRONMENT) or read.value is os.getenv:
        return False
    base = read.module.partition(".")[0]
    module = sys.modules.get(read.module)
    file = getattr(module, "__file__", None)
    return base == "limelight" or file is None or not is_users(file)


def _whole(read: Read) -> tuple[Chain, Any]:
    """The chain and its value; for a method of a container, or of an object of the library's, that object."""
    chain = read.use.chain
    if read.value is os.getenv:
        return chain, os.environ
    if read.value is MISSING or not callable(read.value) or not chain.steps:
        return chain, read.value
    container = isinstance(read.base, (*_MAPPINGS, list, tuple, _ENVIRONMENT)) and chain.steps[-1][1] in _LOOKS
    if container or (type(read.base).__module__.startswith("limelight.") and isinstance(read.value, FunctionType)):
        return chain._replace(steps=chain.steps[:-1]), read.base
    return chain, read.value


def _is_fixed(base: Any) -> bool:
    """Whether `base` is a tuple or a frozen dataclass."""
    frozen = getattr(vars(type(base)).get("__dataclass_params__"), "frozen", False)
    return isinstance(base, tuple) or bool(frozen)


def _attribute(read: Read, chain: Chain) -> tuple[Any, str] | None:
    """The object that an attribute belongs to, and its name."""
    if chain != read.use.chain or not chain.steps or chain.steps[-1][0] != ".":
        return None
    try:
        return _which(read.base), chain.steps[-1][1]
    except TypeError:
        return None


def _where(chain: Chain) -> str:
    if chain.steps:
        return "attribute" if chain.steps[-1][0] == "." else "item"
    return {"global": "global", "bound": "given by partial", "default": "default"}.get(chain.root, "closure")


# Values


def fingerprint(value: Any, inside: bool = False) -> tuple[str, Any, str] | None:
    """Kind, token and text of a value; None for what is not worth telling, such as modules and classes.

    `inside`: with the plain attributes of an object of the user's, since the code does not tell which it reads.
    """
    if isinstance(value, _NOT_VALUES):
        return None
    if isinstance(value, Tensor):
        return _of_tensor(value)
    if isinstance(value, Resource):
        return ("variable", ("variable", value._uid), f"variable {getattr(value, 'name', '')!r} {value.spec}")
    if isinstance(value, FunctionType):
        if not is_users(value.__code__.co_filename) or str(value.__module__).partition(".")[0] == "limelight":
            return None
        defaults = f" {_text(defaults_of(value))}" if defaults_of(value) else ""
        code = value.__code__
        where = Source(code.co_filename, code.co_firstlineno, code.co_name)
        return ("function", _token_of_function(value), f"function {value.__name__}{defaults} ({where})")
    token = token_of(value)
    if token is not None:
        return ("constant", token, _text(value))
    try:
        plain = _plain_attributes(value) if inside else {}
        said = f" ({', '.join([f'{name}={_text(x)}' for name, x in plain.items()])})" if plain else ""
        return ("object", (_which(value), _of_container(plain, 0)), f"a {type(value).__name__}{said}")
    except TypeError:
        return None


def _which(value: Any) -> Any:
    """What stands for an object; TypeError where it takes no weak references."""
    return id(value) if type(value) is SimpleNamespace else _Weak(value)  # of the former there are none


def _plain_attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object of the user's that are written into a graph as they are, and arrays and tensors."""
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None)
    if type(value).__module__ != "__main__" and type(value) is not SimpleNamespace and not (file and is_users(file)):
        return {}
    kinds = (*_PLAIN, np.ndarray, Tensor, list, dict, tuple, set)
    own = getattr(value, "__dict__", {})
    return {
        name: x
        for name, x in own.items()
        if type(x) in kinds and not _is_bookkeeping(name, type(value)) and token_of(x, 1) is not None
    }


def _is_bookkeeping(name: str, kind: type) -> bool:
    """Whether an attribute is what a class of the library's notes for itself: private, and declared by it."""
    if not name.startswith("_"):
        return False
    of_library = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "limelight"]
    declared = [vars(base).keys() | inspect.get_annotations(base) for base in of_library]
    return kind in of_library or any(name in names for names in declared)


def _of_tensor(value: Tensor) -> tuple[str, Any, str] | None:
    if type(value) is not Tensor:
        return None  # it belongs to a trace, or to a vectorised call
    if not value._uid:
        value._uid = new_uid()
    return ("tensor", ("tensor", value._uid), f"tensor {value.spec}")


def token_of(value: Any, depth: int = 0) -> Any:
    """Something that compares equal for equal plain values, arrays and small containers of them; else None."""
    kind = type(value)
    if kind in _PLAIN:
        return (kind, repr(value) if kind in (float, complex) else value)
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, _digest(value)) if value.dtype != object else None
    if isinstance(value, (np.generic, np.dtype, enum.Enum, range, slice)):
        return (kind, repr(value))
    if isinstance(value, TensorSpec):
        return ("spec", str(value))
    if isinstance(value, _ENVIRONMENT):
        return ("environment", tuple(value.items()))
    if isinstance(value, _BUFFERS) or _is_array(value, "array", "array") or _is_array(value, "ctypes", "Array"):
        return ("buffer", *_of_buffer(memoryview(value)))
    if depth < _DEEPEST and isinstance(value, (tuple, list, *_SETS, *_MAPPINGS)):
        return _of_container(value, depth)
    return _of_part(value, depth) if depth else None


def _is_array(value: Any, module: str, kind: str) -> bool:
    """Whether it is one of the class `kind` of a module that, if it was never imported, has made none."""
    made_by = sys.modules.get(module)
    return made_by is not None and isinstance(value, getattr(made_by, kind))


def _of_buffer(view: memoryview) -> tuple[Any, ...]:
    return view.format, view.shape, _digest(np.frombuffer(view.tobytes(), np.uint8))


def _of_part(value: Any, depth: int) -> Any:
    """What stands for something in a container that is no plain value: code, or which object it is."""
    if isinstance(value, FunctionType):
        return _token_of_function(value, depth)
    if isinstance(value, MethodType):
        return (_token_of_function(value.__func__, depth), _of_part(value.__self__, depth))
    if isinstance(value, (Tensor, Resource)):
        value._uid = value._uid or new_uid()
        return (type(value).__name__, value._uid)
    try:
        return _Weak(value)
    except TypeError:
        return None


def _token_of_function(value: Any, depth: int = 0) -> Any:
    """Code, and the values of its defaults, with which the same code does something else.

    At a depth where containers are not looked into any more, code alone: a default may hold the very function.
    """
    code = getattr(value, "__code__", None)
    if code is None:
        return id(value)
    return (code, _of_container(defaults_of(value), depth)) if depth < _DEEPEST else code


def _of_container(value: Any, depth: int) -> Any:
    items: list[Any]
    if isinstance(value, _MAPPINGS):
        items = [(token_of(k, depth + 1), token_of(v, depth + 1)) for k, v in list(value.items())[:_ITEMS]]
    elif isinstance(value, _SETS):
        items = sorted(map(repr, list(value)[:_ITEMS])) if len(value) <= _ITEMS else []
    else:
        items = [token_of(item, depth + 1) for item in value[:_ITEMS]]
    return (type(value).__name__, len(value), tuple(items))


def _digest(array: np.ndarray[Any, Any]) -> bytes:
    """A hash of an array: of all of a small one, of even samples of a large one."""
    if array.nbytes > _LARGE:
        flat = array.reshape(-1) if array.flags.c_contiguous else array.flat[:: max(1, array.size // 1024)]
        array = np.ascontiguousarray(flat[:: max(1, flat.size // 1024)])
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()


class _Weak:
    """Equal to another one for the same living object."""

    __slots__ = ("_ref",)

    def __init__(self, target: Any) -> None:
        self._ref = weakref.ref(target)

    def __eq__(self, other: object) -> bool:
        target = self._ref()
        return isinstance(other, _Weak) and target is not None and other._ref() is target

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        small = f" {np.array2string(value, threshold=8, edgeitems=2)}" if value.size <= 8 else ""
        return " ".join(f"array {value.dtype}{list(value.shape)}{small}".split())
    if isinstance(value, _ENVIRONMENT):  # whose values are not told: there may be secrets among them
        return f"a set of {len(value)} environment variables"
    if _is_array(value, "ctypes", "Array"):  # whose `repr` is an address
        return f"{type(value).__name__} {_short.repr(list(value))}"
    return _short.repr(value)


class _Short(reprlib.Repr):
    """Functions are shown by their names, other objects by their types: addresses tell nobody anything."""

    def repr_function(self, value: Any, level: int) -> str:
        return f"function {value.__name__}"

    def repr_instance(self, value: Any, level: int) -> str:
        return super().repr_instance(value, level) if token_of(value) is not None else f"a {type(value).__name__}"


_short: Final = _Short()
