"""Which keys of a dictionary a cell reads: of a large one, the rest is not looked at when the cell runs again.

Keys are written in the cell (`table["a"]`), are inputs (`table[word]`), or come from containers that are inputs and
that the cell does no more than read: `table[keys[i]]`, `for word in words: table[word]`. Of the latter all elements
count, whichever the cell takes: they are keyed with the container anyway.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight_kernel.inputs.input_keys import MANY, PLAIN
from limelight_kernel.inputs.sharing import sharing

_OTHER_WAYS: Final = frozenset(["globals", "locals", "vars", "eval", "exec", "get_ipython"])  # to what a name means
_SAME_ELEMENTS: Final = frozenset(["sorted", "reversed", "set", "list", "tuple"])
_BUILTINS: Final = frozenset([*_SAME_ELEMENTS, "enumerate", "zip", "len"])
_CONTAINERS: Final = frozenset([list, tuple, set, frozenset])
_PARTS: Final = PLAIN | {Tensor, Variable, np.ndarray}
"""What may stand there: nothing that leads on."""


class Keys(NamedTuple):
    """Where keys come from: written in the cell, inputs, the elements of inputs, by names that the cell binds."""

    written: tuple[Hashable, ...] = ()
    inputs: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()

    def __or__(self, other: Any) -> Keys:
        return Keys(*[tuple(dict.fromkeys([*one, *more])) for one, more in zip(self, other, strict=True)])

    def found(self, values: Mapping[str, Any]) -> Collection[Hashable] | None:
        """The keys, by what the inputs mean; None where one means something else than a plain value or a container."""
        if any(type(values.get(name)) not in _CONTAINERS for name in self.elements):
            return None
        if not values.keys().isdisjoint([*self.loops, *(_BUILTINS if self.elements else ())]):
            return None  # an empty loop leaves its name what it was
        computed = [*[values.get(name) for name in self.inputs], *itertools.chain(*[values[x] for x in self.elements])]
        if not PLAIN.issuperset(map(type, computed)) or not values.keys() >= set(self.inputs):
            return None
        keys = dict.fromkeys([*self.written, *computed])
        return keys if not computed or len(set(map(type, keys))) == 1 else None  # others have no order


def keys_read(tree: ast.Module) -> Mapping[str, Keys]:
    """The names of which every mention in a cell reads an item by a key that can be told beforehand, with these keys.

    >>> found = keys_read(ast.parse("y = d['a'] + d['b'] * c['a']; c['a'] = y; len(e); e['a']; f[k]; g[ks[i]]"))
    >>> {name: tuple(found[name]) for name in "dfg"}
    {'d': (('a', 'b'), (), (), ()), 'f': ((), ('k',), (), ()), 'g': ((), (), ('ks',), ())}
    """
    mentions = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    if not _OTHER_WAYS.isdisjoint(mentions):
        return {}
    origins = _Origins(tree, mentions)
    found: dict[str, list[Keys]] = {}
    for name, key in _items_read(tree):
        if (keys := origins.of(key)) is not None:
            found.setdefault(name, []).append(keys)
    complete = {name: keys for name, keys in found.items() if len(keys) == mentions[name] and name not in origins.bound}
    return {name: _union(keys) for name, keys in complete.items()}


def parts_read(
    values: Mapping[str, Any], keys: Mapping[str, Keys], helpers: Collection[str] = ()
) -> dict[str, dict[Any, Any]]:
    """What a cell finds in large dictionaries, of which it reads these keys, where plain values or tensors stand there.

    Nothing of what helper functions read, nor of what takes its keys from containers that may change by another name.

    >>> reads = {"d": Keys((7, "other")), "e": Keys((1,)), "f": Keys(elements=("k",))}
    >>> parts_read({"d": dict.fromkeys(range(100), 0.5), "e": {1: 2}, "f": dict.fromkeys("ab" * 70), "k": ["a"]}, reads)
    {'d': {7: 0.5}}
    >>> parts_read({"d": {i: np.ones(2) for i in range(100)}}, {"d": Keys((7,))})
    {'d': {7: array([1., 1.])}}
    """
    keys = {name: x for name, x in keys.items() if not {name, *x.elements}.intersection(helpers)}
    large = {name: x for name in keys if type(x := values.get(name)) is dict and len(x) >= MANY}
    parts: dict[str, dict[Any, Any]] = {}
    for name, x in large.items():
        read = keys[name].found(values)
        if read is None or len(read) * 2 > len(x):
            continue
        part = {key: x[key] for key in read if key in x}
        if _PARTS.issuperset(map(type, part.values())):
            parts[name] = part
    if any(keys[name].elements for name in parts):
        _, shared = sharing(values, parts)
        parts = {x: part for x, part in parts.items() if shared.isdisjoint(id(values[y]) for y in keys[x].elements)}
    return parts


def _items_read(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names of what is asked for items, with the keys: `d[k]`, `d.get(k)`, `k in d`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.value.id, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            if isinstance(node.func.value, ast.Name) and node.args and not isinstance(node.args[0], ast.Starred):
                yield node.func.value.id, node.args[0]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn) and len(node.ops) == 1:
            yield from [(name, node.left) for name in _name(node.comparators[0])]


@dataclass
class _Origins:
    """Where the values of a cell's expressions come from."""

    tree: ast.Module
    mentions: Counter[str]
    bound: set[str] = field(default_factory=set)
    _loops: dict[str, list[ast.expr]] = field(default_factory=dict)  # what a name goes over, of names that only do that
    _once: dict[str, ast.expr] = field(default_factory=dict)  # what the only assignment of a name gives it
    _harmless: Counter[str] = field(default_factory=Counter)  # mentions that leave a container as it is

    def __post_init__(self) -> None:
        targets: Counter[str] = Counter()
        for node in ast.walk(self.tree):
            self.bound.update(_bound(node))
            if isinstance(node, ast.For | ast.comprehension):
                for name, over in _gone_over(node.target, node.iter):
                    self._loops.setdefault(name, []).append(over)
                self._harmless.update(_read_by(node.iter))
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                self._harmless.update(_name(node.value))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
                self._harmless.update(_name(node.args[0]) if node.args else ())
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and len(node.targets) == 1:
                self._once[node.targets[0].id] = node.value
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                targets[node.id] += 1
            elif not isinstance(node, ast.Name):
                targets.update(dict.fromkeys(_bound(node), 2))  # an argument, a definition: anything
        self._loops = {name: overs for name, overs in self._loops.items() if len(overs) == targets[name]}
        self._once = {name: value for name, value in self._once.items() if targets[name] == 1}

    def of(self, node: ast.expr) -> Keys | None:
        """Where the value of an expression comes from; None where that is not known."""
        if isinstance(node, ast.Constant):
            return Keys((node.value,))
        if isinstance(node, ast.IfExp):
            return self._all(map(self.of, (node.body, node.orelse)))
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            return self._elements(node.value)
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._loops:
            keys = self._all(map(self._elements, self._loops[node.id]))
            return keys and keys | Keys(loops=(node.id,))
        if (value := self._once.pop(node.id, None)) is not None:  # not for `k = k`
            keys = self.of(value)
            self._once[node.id] = value
            return keys and keys | Keys(loops=(node.id,))
        return None if node.id in self.bound else Keys(inputs=(node.id,))

    def _elements(self, node: ast.expr) -> Keys | None:
        """Where the elements of a container come from."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return self._all(map(self.of, node.elts))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._elements(node.value)
        if isinstance(node, ast.Call) and _is_same_elements(node):
            return self._elements(node.args[0])
        if not isinstance(node, ast.Name) or node.id in self.bound or self._harmless[node.id] < self.mentions[node.id]:
            return None
        return Keys(elements=(node.id,))

    @staticmethod
    def _all(keys: Iterable[Keys | None]) -> Keys | None:
        known = list(keys)
        return None if None in known else _union([x for x in known if x is not None])


def _union(keys: Iterable[Keys]) -> Keys:
    whole = Keys()
    for one in keys:
        whole |= one
    return whole


def _name(node: ast.expr) -> tuple[str, ...]:
    return (node.id,) if isinstance(node, ast.Name) else ()


def _is_same_elements(node: ast.Call) -> bool:
    """Whether a call gives the elements of its argument."""
    return isinstance(node.func, ast.Name) and node.func.id in _SAME_ELEMENTS and len(node.args) == 1


def _gone_over(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names of a loop's target, with what each goes over."""
    if isinstance(target, ast.Name):
        yield target.id, over
    elif isinstance(target, ast.Tuple) and isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
        if over.func.id == "enumerate" and len(target.elts) == 2 and over.args:
            yield from _gone_over(target.elts[1], over.args[0])
        elif over.func.id == "zip" and len(target.elts) == len(over.args):
            for part, one in zip(target.elts, over.args, strict=True):
                yield from _gone_over(part, one)


def _read_by(over: ast.expr) -> Iterator[str]:
    """The names of the containers that a loop over this goes over."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id in _BUILTINS:
        for argument in over.args:
            yield from _read_by(argument)
    yield from _name(over)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds by itself."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
