"""Nested structures: lists, tuples, named tuples, dictionaries and dataclasses with values at their leaves.

>>> leaves, structure = flatten({"b": [1, 2], "a": 3})
>>> leaves
[3, 1, 2]
>>> unflatten(structure, [30, 10, 20])
{'b': [10, 20], 'a': 30}
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from limelight.errors import ArgumentError


class Keys(tuple[Any, ...]):  # noqa: SLOT001  # a tuple takes no slots
    """The keys of a dictionary, sorted, that remember their own order: it makes no difference, but is given back."""

    order: tuple[Any, ...]


class TypedKeys(Keys):
    """Keys among which a 1, a 1.0 and a True are three, as the values of a trace are."""

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and list(map(_numeric, self)) == list(map(_numeric, other))  # type: ignore[call-overload]  # a tuple

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class Attribute(str):
    """Stands among the keys of a container for an attribute that it has besides its items; it is no string to these."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is Attribute and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Attribute, str(self)))


class KeysOfType(TypedKeys):
    """Keys of a dictionary, or positions of a list or tuple, of another type than these: that makes a difference.

    `like` is its type, the default factory, if it has one, and whether its items are its attributes, too (a class that
    says `self.__dict__ = self`). The last ones are attributes besides these, if it has any.
    """

    like: tuple[type, Any, bool]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeysOfType) and self.like == other.like and TypedKeys.__eq__(self, other)

    __hash__ = tuple.__hash__

    def remade(self, children: Sequence[Any]) -> Any:
        """What they are the keys of, with other items and attributes."""
        kind, factory, items_are_attributes = self.like
        if issubclass(kind, tuple):
            positions = [x for key, x in zip(self, children, strict=True) if type(key) is not Attribute]
            return _with_attributes(tuple.__new__(kind, positions), self, children)
        made = _bare(kind)
        if items_are_attributes:
            object.__setattr__(made, "__dict__", made)
        if isinstance(made, defaultdict):
            made.default_factory = factory
        if isinstance(made, list):
            list.extend(made, children[: len(self.order)])
        else:
            items = dict(zip(self, children, strict=True))
            ordered = {key: items[key] for key in self.order}
            (OrderedDict if isinstance(made, OrderedDict) else dict).update(made, ordered)
        return _with_attributes(made, self, children)


def _bare(kind: type) -> Any:
    """An empty container of a class of the user's, past its own `__new__` and `__init__`, as a copy is made."""
    builtin: Any = next(c for c in kind.__mro__ if not c.__flags__ & _MADE_BY_CLASS_STATEMENT)
    return builtin.__new__(kind)


_MADE_BY_CLASS_STATEMENT: Final = 1 << 9
"""Py_TPFLAGS_HEAPTYPE, which lists, dictionaries and their kin of Python's own have not."""


def _numeric(key: Any) -> type | None:
    return type(key) if isinstance(key, (bool, float, complex)) else None


def _with_attributes(made: Any, keys: tuple[Any, ...], children: Sequence[Any]) -> Any:
    for key, child in zip(keys, children, strict=True):
        if type(key) is Attribute:
            object.__setattr__(made, str(key), child)
    return made


class Structure(NamedTuple):
    """The shape of a nested value, hashable: `kind` is the container's type, `keys` name its children."""

    kind: type | None
    keys: tuple[Any, ...]
    children: tuple[Structure, ...]

    @property
    def n_leaves(self) -> int:
        if self.kind is None:
            return 1
        return len(self.children) if self.is_flat else sum(child.n_leaves for child in self.children)

    @property
    def is_flat(self) -> bool:
        """Whether it is a container of leaves only."""
        return self.kind is not None and self.children.count(LEAF) == len(self.children)

    def __str__(self) -> str:
        return words(self, ["*"] * self.n_leaves)


LEAF = Structure(None, (), ())


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree` in order (dictionaries by sorted key), and its structure.

    Raises ArgumentError for a container that holds itself, or that is nested hundreds of levels deep.
    """
    leaves: list[Any] = []
    try:
        return leaves, _walk(tree, leaves)
    except RecursionError:
        if not _is_endless(tree):  # it was the caller who had used up the stack
            raise
    raise ArgumentError(
        f"a {type(tree).__name__} that contains itself, or is nested more than {_DEEPEST} levels deep, has no "
        "structure to go by; pass its parts"
    )


_DEEPEST: Final = 100


def _is_endless(tree: Any) -> bool:
    level = [tree]
    for _ in range(_DEEPEST):
        nodes = [opened(x) for x in {id(x): x for x in level}.values()]
        level = [child for node in nodes if node is not None for child in node[2]]
    return bool(level)


def words(structure: Structure, leaves: Iterable[str]) -> str:
    """A nest as Python writes it, with words at its leaves."""
    return _words(structure, iter(leaves))


def _words(structure: Structure, feed: Iterator[str]) -> str:
    kind = structure.kind
    if kind is None:
        return next(feed)
    inside = [_words(child, feed) for child in structure.children]
    if kind is list or kind is tuple:
        ends = "[]" if kind is list else ("(", ",)" if len(inside) == 1 else ")")
        return f"{ends[0]}{', '.join(inside)}{ends[1]}"
    named = ", ".join(f"{key}: {child}" for key, child in zip(structure.keys, inside, strict=True))
    return "{" + named + "}" if kind is dict else f"{shown_kind(kind)}({named})"


def shown_kind(kind: type) -> str:
    """What a container's type is called; the engine's own may be variants of a public one."""
    name: str = getattr(kind, "__limelight_name__", kind.__name__)
    return name


def advice(structure: Structure) -> str:
    """What the engine's own structures in `structure` say to a loop that did not keep it; "" where there are none."""
    said: str = getattr(structure.kind, "__limelight_advice__", "")
    return said or next(filter(None, map(advice, structure.children)), "")


def leaves_of(tree: Any) -> list[Any]:
    return flatten(tree)[0]


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The inverse of `flatten`: puts `leaves` back, in order."""
    kind, n = structure.kind, len(structure.children)
    if (kind is list or kind is tuple) and type(leaves) is list and len(leaves) == n and structure is _row(kind, n):
        return kind(leaves)
    feed = iter(leaves)
    tree = _build(structure, feed)
    if next(feed, _END) is not _END:
        raise ArgumentError(f"more leaves than the structure {structure} holds")
    return tree


def flatten_like(structure: Structure, tree: Any, path: str = "") -> list[Any]:
    """The parts of `tree` at the leaves of `structure`; what lies below a leaf is left as it is.

    Raises ArgumentError that names the place, from `path` on, where `tree` has another container.
    """
    if structure.kind is None:
        return [tree]
    node = opened(tree)
    if node is None or node[:2] != (structure.kind, structure.keys):
        given = Structure(*node[:2], (LEAF,) * len(node[1])) if node else type(tree).__name__
        raise ArgumentError(f"`{path}` must have the structure {structure}, got {given}")
    leaves: list[Any] = []
    for key, child, part in zip(structure.keys, structure.children, node[2], strict=True):
        leaves += flatten_like(child, part, path + step(structure.kind, key))
    return leaves


def map_structure(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`tree` with `fn(leaf, *leaves of the others)` at each leaf; the structures must agree."""
    leaves, structure = flatten(tree)
    columns = [leaves]
    for other in others:
        its_leaves, its_structure = flatten(other)
        if its_structure != structure:
            raise ArgumentError(f"structures differ: {structure} and {its_structure}")
        columns.append(its_leaves)
    return unflatten(structure, (fn(*row) for row in zip(*columns, strict=True)))


def paths(structure: Structure, root: str = "") -> list[str]:
    """Python expressions that reach each leaf from `root`: 'batch["x"]', 'pair[0]'."""
    if structure.kind is None:
        return [root]
    if structure.is_flat:
        kind = structure.kind
        return [root + step(kind, key) for key in structure.keys]
    expressions: list[str] = []
    for key, child in zip(structure.keys, structure.children, strict=True):
        expressions += paths(child, root + step(structure.kind, key))
    return expressions


_END = object()
_LEAVES: set[type] = {bool, int, float, complex, str, bytes, type(None)}
"""Types that are leaves for sure; those that say so themselves join when they are first met."""


def step(kind: type, key: Any) -> str:
    """The end of the expression that goes from a container of `kind` to its child `key`."""
    if type(key) is Attribute:
        return f".{key}"
    if kind is dict or (isinstance(key, int) and not hasattr(kind, "_fields")):
        return f"[{key!r}]" if not isinstance(key, str) else f"[{_quoted(key)}]"
    return f".{key}"


def _quoted(key: str) -> str:
    """A string as code, in double quotes where that needs no escapes."""
    return f'"{key}"' if key.isprintable() and not {'"', "\\"} & set(key) else repr(key)


def _walk(tree: Any, leaves: list[Any]) -> Structure:
    kind = type(tree)
    if (kind is list or kind is tuple) and _LEAVES.issuperset(map(type, tree)):
        leaves.extend(tree)
        return _row(kind, len(tree))
    container = opened(tree)
    if container is None:
        leaves.append(tree)
        return LEAF
    kind, keys, children = container
    inner = [_walk(child, leaves) for child in children]
    if (kind is list or kind is tuple) and type(keys) is tuple and inner.count(LEAF) == len(inner):
        return _row(kind, len(inner))
    return Structure(kind, keys, tuple(inner))


_rows: dict[tuple[type, int], Structure] = {}


def _row(kind: type, n: int) -> Structure:
    """A list or tuple of `n` leaves: the commonest structure by far, so each is made once."""
    structure = _rows.get((kind, n))
    if structure is None:
        structure = Structure(kind, tuple(range(n)), (LEAF,) * n)
        if n <= 64:
            _rows[kind, n] = structure
    return structure


def opened(tree: Any) -> tuple[type, tuple[Any, ...], Sequence[Any]] | None:
    """The kind, the keys and the children of a container; None for a leaf."""
    kind = type(tree)
    if kind is list or kind is tuple:
        return kind, tuple(range(len(tree))), tree
    if kind in _LEAVES:
        return None
    if getattr(kind, "__limelight_leaf__", False):
        _LEAVES.add(kind)
        return None
    if isinstance(tree, Mapping):
        keys = _sorted_keys(tree)
        children = [tree[key] for key in keys]
        return (dict, keys, children) if kind is dict or not isinstance(tree, dict) else _of_type(tree, keys, children)
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        own = getattr(tree, "__dict__", None)
        if own:
            return kind, (*kind._fields, *map(Attribute, own)), [*tree, *own.values()]
        return kind, tuple(kind._fields), tree
    if isinstance(tree, (list, tuple)) and _is_own_kind(kind):
        return _of_type(tree, tuple(range(len(tree))), list(tree))
    if isinstance(tree, (list, tuple)):
        return list if isinstance(tree, list) else tuple, tuple(range(len(tree))), tree
    names = _field_names(kind)
    if names is None:
        return None
    if not is_plain(kind):
        names += _further_attributes(tree, names)
    return kind, names, [getattr(tree, name) for name in names]


def _of_type(tree: Any, keys: tuple[Any, ...], children: list[Any]) -> tuple[type, KeysOfType, list[Any]]:
    """The same as `opened`, for a container of a class of its own, which may have attributes."""
    own = getattr(tree, "__dict__", None)
    items_are_attributes = own is not None and own is tree
    own = {} if own is None or items_are_attributes else own
    typed = KeysOfType((*keys, *map(Attribute, own)))
    typed.order = getattr(keys, "order", keys)
    typed.like = type(tree), getattr(tree, "default_factory", None), items_are_attributes
    return next(kind for kind in (dict, list, tuple) if isinstance(tree, kind)), typed, [*children, *own.values()]


def _is_own_kind(kind: type) -> bool:
    """Whether a class of lists or tuples is the user's, of which instances can be made from their items."""
    if kind.__module__.startswith("limelight"):
        return False
    made_by: Any = kind.__new__  # Python's own records, such as times, have another one, and can be made by it alone
    return not issubclass(kind, tuple) or made_by is tuple.__new__ or isinstance(made_by, FunctionType)


def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass or attrs class, None for other types; opaque types set `__limelight_leaf__`.

    Structures of the engine's own name theirs in `__limelight_fields__`, and are made by `__limelight_from_fields__`.
    """
    own: tuple[str, ...] | None = getattr(kind, "__limelight_fields__", None)
    if own is not None:
        return own
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    attrs: Sequence[Any] | None = getattr(kind, "__attrs_attrs__", None)
    return None if attrs is None else tuple(attribute.name for attribute in attrs)


def is_plain(kind: Any) -> bool:
    """Whether `kind`, called with its fields by name, does no more than to keep them."""
    plain = _plain.get(kind)
    if plain is None:
        plain = _plain[kind] = _only_keeps(kind)
    return plain


_plain: Final[weakref.WeakKeyDictionary[type, bool]] = weakref.WeakKeyDictionary()


def _only_keeps(kind: Any) -> bool:
    if hasattr(kind, "__limelight_from_fields__") or issubclass(kind, tuple):
        return True
    code = getattr(kind.__init__, "__code__", None)
    if hasattr(kind, "__post_init__") or not dataclasses.is_dataclass(kind) or code is None:
        return False
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    fields = tuple(field.name for field in dataclasses.fields(kind))
    return bool(code.co_filename == "<string>" and set(names) == set(fields))


def _further_attributes(tree: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """What an object that has computed something when it was made keeps besides its fields."""
    own = getattr(tree, "__dict__", {})
    if own.keys() <= set(names):
        return ()
    cached = functools.cached_property
    return tuple([k for k in own if k not in names and not isinstance(getattr(type(tree), k, None), cached)])


def _sorted_keys(tree: Mapping[Any, Any]) -> tuple[Any, ...]:
    order = tuple(tree)
    try:
        ordered = tuple(sorted(order))
    except TypeError:  # keys of several types have no order of their own
        ordered = tuple(sorted(order, key=lambda key: (type(key).__name__, repr(key))))
    plain = not ordered or type(ordered[0]) is str
    if ordered == order and plain:
        return ordered
    keys = Keys(ordered) if plain else TypedKeys(ordered)
    keys.order = order
    return keys


def _build(structure: Structure, feed: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        leaf = next(feed, _END)
        if leaf is _END:
            raise ArgumentError("fewer leaves than the structure holds")
        return leaf
    return packed(structure, [_build(child, feed) for child in structure.children])


def packed(structure: Structure, children: list[Any]) -> Any:
    """The container that a structure is the outermost level of, around `children`."""
    kind: Any = structure.kind
    if kind is list:
        return structure.keys.remade(children) if isinstance(structure.keys, KeysOfType) else children
    if kind is tuple:
        return structure.keys.remade(children) if isinstance(structure.keys, KeysOfType) else tuple(children)
    if kind is dict:
        if isinstance(structure.keys, KeysOfType):
            return structure.keys.remade(children)
        items = dict(zip(structure.keys, children, strict=True))
        if not isinstance(structure.keys, Keys):
            return items
        return {key: items[key] for key in structure.keys.order}
    if not is_plain(kind):  # as a copy is made: what it has computed is there, and is not computed again
        made: Any = object.__new__(kind)
        for name, child in zip(structure.keys, children, strict=True):
            object.__setattr__(made, name, child)
        return made
    if issubclass(kind, tuple) and len(children) > len(kind._fields):
        return _with_attributes(tuple.__new__(kind, children[: len(kind._fields)]), structure.keys, children)
    make: Any = getattr(kind, "__limelight_from_fields__", kind)
    return make(**dict(zip(structure.keys, children, strict=True)))


def __dir__() -> list[str]:
    """The names that are defined here, without those that are imported."""
    return sorted([k for k, v in globals().items() if k[0] != "_" and getattr(v, "__module__", "") == __name__])
