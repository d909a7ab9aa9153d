"""What an object holds, to be compared later: whether it is still what it was when a trace was made.

An object is taken apart into items; a portrait keeps these, and portraits of those that can change. Comparing asks
whether the items are the very same, at the speed of C; where they are not, plain ones count by type and value. A
portrait that `lends` leaves out the tensors that another can stand for while a trace is made: these are inputs. Where
code changes arrays of NumPy's by what it computes, it lends these, too.
"""

from __future__ import annotations

import argparse
import collections
import contextvars
import functools
import hashlib
import io
import itertools
import operator
import os
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight.core import dtypes
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.errors import LimelightError
from limelight.user_code.names_read import defaults_of
from limelight_kernel.inputs.class_code import is_users_class
from limelight_kernel.inputs.contents import WEAK, is_opened

PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))
Tells: TypeAlias = "Callable[[Any], tuple[Any, ...] | None]"
"""What an object holds, by the object."""
Lends: TypeAlias = "tuple[type, ...]"
_SEQUENCES: Final = (list, tuple, deque, set, frozenset)
_NAMESPACES: Final = (types.SimpleNamespace, argparse.Namespace, threading.local)
_CODE: Final = (type, types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType)
_MOST_BYTES: Final = 1 << 22
_DEEPEST: Final = 6
_SAMPLES: Final = 1 << 16
_MOST_FOREIGN: Final = 2000  # objects of other libraries that one leads to: what has more is a world of its own
_WRAPPERS: Final = (collections.UserList, collections.UserString)
_ENVIRONMENT: Final = type(os.environ)
_ARRAYS: Final = (np.ndarray, np.memmap)
_LEAVES: Final = frozenset([*PLAIN, Tensor, types.FunctionType])


class Lent(NamedTuple):
    """A tensor that an object leads to: what holds it, at an attribute "." or an item "[]", and its path as code."""

    path: str
    owner: Any
    step: tuple[str, Any]
    tensor: Any  # or the array


class Portrait:
    """What one object held. It keeps the items alive, and so does not mistake new ones for them.

    Args:
        kind: its class.
        tells: what an object of this class holds; to find that out anew would take longer than to compare.
        items: what it holds.
        inner: portraits of those that can change, by their index.
        lends: the types of what another may stand for.
        lent: the indices of such.
    """

    __slots__ = ("_inner", "_items", "_kind", "_lends", "_lent", "_tells", "leads_to_lent")

    def __init__(
        self,
        kind: type,
        tells: Tells,
        items: tuple[Any, ...],
        inner: tuple[tuple[int, Portrait], ...],
        lends: Lends = (),
        lent: tuple[int, ...] = (),
    ) -> None:
        self._kind = kind
        self._tells = tells
        self._items = items
        self._inner = inner
        self._lends = lends
        self._lent = lent
        self.leads_to_lent: bool = bool(lent) or any(one.leads_to_lent for _, one in inner)

    def tensors(self, value: object, path: str) -> Iterator[Lent]:
        """The tensors that `value`, which still is what it was, leads to, of those that the portrait leaves out."""
        if not self.leads_to_lent:  # most objects: a forest has hundreds
            return
        items = self._tells(value) or ()
        for index in self._lent:
            step = _step_to(value, index)
            yield Lent(_after(path, step), value, step, items[index])
        for index, inner in self._inner:
            if inner.leads_to_lent:
                yield from inner.tensors(items[index], _after(path, _step_to(value, index)))

    def still(self, value: object) -> bool:
        """Whether `value` holds the same now."""
        if type(value) is not self._kind:
            return False
        items = self._tells(value)
        if items is None or len(items) != len(self._items):
            return False
        alike = functools.partial(_alike_or_lent, self._lends) if self._lent else _alike
        if not all(map(operator.is_, items, self._items)) and not all(map(alike, items, self._items)):
            return False
        for index, inner in self._inner:  # noqa: SIM110  # a generator expression would take a quarter longer
            if not inner.still(items[index]):
                return False
        return True


def _alike(one: object, other: object) -> bool:
    kind = type(one)
    if one is other or kind is not type(other):
        return one is other
    if kind in (float, complex) or isinstance(one, np.generic):
        return repr(one) == repr(other)  # which tells 0.0 from -0.0, and finds NaN
    return kind in PLAIN and one == other


def _alike_or_lent(lends: Lends, one: object, other: object) -> bool:
    return (is_lent(one, lends) and is_lent(other, lends) and type(one) is type(other)) or _alike(one, other)


def is_lent(x: Any, lends: Lends) -> bool:
    """Whether `x` is of one of the types, and a tensor can stand for it."""
    return isinstance(x, lends) and (not isinstance(x, np.ndarray) or becomes_tensor(x))


def _step_to(value: Any, index: int) -> tuple[str, Any]:
    """How to get from `value` to one of its items."""
    if isinstance(value, _SEQUENCES):
        if index < len(value):
            return "[]", index
        index -= len(value)
    elif isinstance(value, dict):
        if index < 2 * len(value):
            return "[]", list(dict.keys(value))[index % len(value)]
        index -= 2 * len(value)
    own = getattr(value, "__dict__", {})
    if index < 2 * len(own):
        return ".", list(own)[index % len(own)]
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    return ".", slots[index - 2 * len(own)]


def _after(path: str, step: tuple[str, Any]) -> str:
    return f"{path}.{step[1]}" if step[0] == "." else f"{path}[{step[1]!r}]"


def portrait(value: object, lends: Lends = ()) -> Portrait | None:
    """The portrait of `value`; None for what is itself, such as a number, a tensor, a module.

    Args:
        value: the object.
        lends: the types of what is left out in lists, dictionaries and attributes.
    """
    return _portrait(value, (), lends, itertools.count())


def _portrait(value: object, around: tuple[object, ...], lends: Lends, foreign: Iterator[int]) -> Portrait | None:
    """The same; `around` are the objects that have led to it, and `foreign` counts those of other libraries."""
    if type(value) in _LEAVES and type(value) is not types.FunctionType:
        return None
    if len(around) > _DEEPEST or any(value is outer for outer in around):
        return None
    tells: Tells | None = _known_reader(value)
    items = None if tells is None else tells(value)
    if tells is None or items is None:
        tells, items = _own, _attributes_of_foreign(value)
        if items is None or next(foreign) >= _MOST_FOREIGN:
            return None
    inside, own = (*around, value), lends if _can_lend(value) else ()
    inner = [
        (i, one)
        for i, x in enumerate(items)
        if type(x) not in _LEAVES and not is_lent(x, own) and (one := _portrait(x, inside, lends, foreign))
    ]
    lent = tuple([i for i, x in enumerate(items) if is_lent(x, own)]) if own else ()
    return Portrait(type(value), tells, items, tuple(inner), own, lent)


def becomes_tensor(array: np.ndarray[Any, Any]) -> bool:
    """Whether a tensor can stand for an array; not for one of strings, or of a class that computes its own way."""
    return type(array) in _ARRAYS and _is_tensor_dtype(array.dtype)


@functools.lru_cache(maxsize=256)
def _is_tensor_dtype(dtype: Any) -> bool:
    try:
        dtypes.dtype(dtype)
    except (LimelightError, TypeError):
        return False
    return True


def _can_lend(value: object) -> bool:
    return isinstance(value, list | dict) or (is_opened(value) and not isinstance(value, type))


def items_of(value: Any) -> tuple[Any, ...] | None:
    """What `value` holds; None for what holds nothing that is looked at."""
    known = _known_items_of(value)
    return _attributes_of_foreign(value) if known is None else known


def _known_items_of(value: Any) -> tuple[Any, ...] | None:
    """What `value` holds, for classes of which is known that this is all that their methods change."""
    tells = _known_reader(value)
    return None if tells is None else tells(value)


def _known_reader(value: Any) -> Tells | None:
    """What tells it for `value`, and any other object of its class."""
    if isinstance(value, _SEQUENCES):
        return _of_sequence
    if isinstance(value, dict):
        return _of_dictionary
    if (holds := next((tells for kind, tells in _HOLDERS if isinstance(value, kind)), None)) is not None:
        return holds
    if (known := _STATE.get(_name_of(type(value)))) is not None:
        return known
    if isinstance(value, io.IOBase):
        return _of_file
    if isinstance(value, (Tensor, Resource, *_CODE)):
        return None
    if hasattr(type(value), "__array__"):
        return _of_table
    if is_users_object(value) or isinstance(value, _WRAPPERS):
        return _attributes if _of_buffer(value) is None else _attributes_and_buffer
    return None if type(value) is bytes else _of_buffer


def _of_sequence(value: Any) -> tuple[Any, ...]:
    return (*value, *_attributes(value))


def _of_dictionary(value: Any) -> tuple[Any, ...]:
    return (*value, *dict.values(value), *_attributes(value))


def _attributes_and_buffer(value: Any) -> tuple[Any, ...]:
    return (*_attributes(value), *(_of_buffer(value) or ()))


def _attributes_of_foreign(value: Any) -> tuple[Any, ...] | None:
    """The attributes of an object of another library's class: a model, a scaler, an environment."""
    own = getattr(value, "__dict__", None)
    if type(own) is not dict or isinstance(value, (Tensor, Resource, types.MethodType, *_CODE)):
        return None
    return None if _library(value) in _COMPARED else _own(value)


def _own(value: Any) -> tuple[Any, ...]:
    own = value.__dict__
    return (*own, *own.values())


def _library(x: object) -> str:
    return type(x).__module__.partition(".")[0]


def _name_of(kind: type) -> str:
    return "hashlib" if kind.__module__ in _HASHES else f"{kind.__module__}.{kind.__name__}"


def _of_file(file: Any) -> tuple[Any, ...]:
    """Of a file in memory what it holds; of others whether it is open, as asking where it is may fail or flush it."""
    if file.closed or not isinstance(file, (io.StringIO, io.BytesIO)):
        return (file.closed, *_attributes(file))
    return (file.getvalue(), file.tell(), *_attributes(file))


def _of_buffer(value: Any) -> tuple[Any, ...] | None:
    """What `array.array`, a memory view or an array of ctypes holds; None for what is no buffer."""
    try:
        with memoryview(value) as view:
            shape: tuple[int, ...] = tuple(view.shape or ())
            return view.format, *shape, view.tobytes()
    except (TypeError, ValueError, BufferError):
        return None


def _of_array(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    head = (array.dtype.str, *array.shape, *(() if type(array) in _ARRAYS else _attributes(array)))
    if array.dtype.hasobject:
        return (*head, *array.ravel().tolist())
    return (*head, contents(array))


def contents(array: np.ndarray[Any, Any]) -> bytes:
    """A hash of all numbers of an array, or, beyond 4 MB, of every so many."""
    if array.nbytes > _MOST_BYTES:
        flat = array.reshape(-1)
        array = flat[:: max(1, flat.size // _SAMPLES)]
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()


def _of_table(value: Any) -> tuple[Any, ...] | None:
    """A table or a column of another library, by its numbers and its names."""
    try:
        names = tuple(value.keys()) if hasattr(type(value), "keys") and hasattr(type(value), "columns") else ()
        return (*names, *_of_array(np.asarray(value)))
    except Exception:  # noqa: BLE001  # the library's, or the user's
        return None


def is_users_object(value: object) -> bool:
    """Whether `value` is of a class that the user has written, or a mere namespace."""
    return isinstance(value, _NAMESPACES) or is_users_class(type(value))


def _attributes(value: object) -> tuple[Any, ...]:
    """Names and values of the attributes of one object, slots included."""
    own = getattr(value, "__dict__", None)
    found = (*own, *own.values()) if type(own) is dict else ()
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    return (*found, *[getattr(value, name, None) for name in slots]) if slots else found


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple([name for name in names if name not in ("__dict__", "__weakref__") and not name.startswith("__")])


_HOLDERS: Final[tuple[tuple[Any, Callable[[Any], tuple[Any, ...]]], ...]] = (
    (np.ndarray, _of_array),
    (types.FunctionType, lambda value: (value.__code__, *defaults_of(value).values())),
    (functools.partial, lambda x: (x.func, *x.args, *x.keywords, *x.keywords.values(), *_attributes(x))),
    (functools._lru_cache_wrapper, lambda value: (value.cache_info().misses, value.cache_info().currsize)),
    (bytearray, lambda value: (bytes(value),)),
    (weakref.ref, lambda value: (value() is None, *(items_of(value()) or ()))),  # not the object, which it would keep
    (contextvars.ContextVar, lambda value: (value.get(None),)),
    (_ENVIRONMENT, lambda value: tuple(itertools.chain.from_iterable(value.items()))),
)
"""What objects of certain classes hold."""

_STREAMS: Final = (
    *("zlib.Compress", "zlib.Decompress", "_bz2.BZ2Compressor", "_bz2.BZ2Decompressor"),
    *("_lzma.LZMACompressor", "_lzma.LZMADecompressor", "zipfile.ZipFile", "tarfile.TarFile"),
)
_HASHES: Final = ("_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_blake2", "hmac")


def _of_connection(connection: Any) -> tuple[Any, ...]:
    try:
        return (connection.total_changes,)
    except connection.ProgrammingError:
        return ("closed",)


_STATE: Final[dict[str, Callable[[Any], tuple[Any, ...]]]] = {
    **dict.fromkeys(("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "threading.Event"), _attributes),
    "_queue.SimpleQueue": lambda value: (value.qsize(),),
    "hashlib": lambda value: (value.digest() if value.digest_size else value.digest(32),),  # SHAKE has any length
    "sqlite3.Connection": _of_connection,
    "sqlite3.Cursor": lambda value: (value.lastrowid,),
    **dict.fromkeys([f"weakref.{kind.__name__}" for kind in WEAK], lambda value: (len(value),)),
    **dict.fromkeys(("_csv.writer", *_STREAMS), lambda value: ()),  # they hide what they hold
    "csv.DictWriter": _attributes,
    "decimal.Context": lambda x: (x.prec, x.rounding, x.Emin, x.Emax, x.capitals, x.clamp, *x.traps.values()),
    "xml.etree.ElementTree.Element": lambda x: (x.tag, x.text, x.tail, *x.attrib, *x.attrib.values(), *x),
}
"""What objects of Python's own library hold that change by their methods, by the names of their classes."""

_COMPARED: Final = frozenset([
    *("builtins", "types", "functools", "collections", "limelight", "limelight_kernel", "limelight_widgets"),
    *("numpy", "random", "matplotlib", "logging", "IPython"),  # their changes are warned of
])  # fmt: skip
"""Where the classes are whose objects are looked into, or of whose methods is known what they do."""
_READ_ONLY: Final = frozenset([
    *("cache_info", "cache_parameters", "getvalue", "getbuffer", "tell", "closed", "digest", "hexdigest", "name"),
    *("is_set", "qsize", "empty", "full", "mode", "encoding", "fileno", "isatty", "readable", "writable", "seekable"),
    *("namelist", "infolist", "getinfo", "getnames", "getmembers", "filename"),
])  # fmt: skip


def changes_state(owner: object, name: str) -> bool:
    """Whether `owner` is one of those objects, and its method `name` may change it."""
    if isinstance(owner, functools._lru_cache_wrapper):
        return name in ("cache_clear", "cache_info")  # what it counts, each run changes
    return name not in _READ_ONLY and has_state(owner)


def has_state(x: object) -> bool:
    """Whether `x` is one of those objects, or a file; whoever it is handed to may change it."""
    return isinstance(x, io.IOBase) or any(_name_of(kind) in _STATE for kind in type(x).__mro__)


def may_have_state(x: object) -> bool:
    """Whether `x` is of another library's class, so that a method may change what nobody compares."""
    return _library(x) not in _COMPARED and not is_users_object(x) and _known_items_of(x) is None
