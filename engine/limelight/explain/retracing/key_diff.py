"""What differs between two cache keys, part by part, each with its path (`batch["x"]`) and its cause.

There may be a thousand parts, so the common cases come first and records are made without their constructors.
`benchmarks/explain.py` times it.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from limelight.core import nest
from limelight.core.nest import Structure
from limelight.explain.retracing.causes import Cause
from limelight.explain.story import Contrast
from limelight.staging.key import Key
from limelight.staging.key_parts import LONG, ObjectPart, Part, TensorPart, ValuePart, VariablePart
from limelight.staging.signature import Signature
from limelight.staging.weak_identity import Bound, Identity

_NUMBERS: Final = (int, float, complex)
_PLAIN: Final = frozenset([bool, int, float, complex, type(None)])
_SPELLED: Final = 12
_CLOSED_OVER: Final = "a variable that the function closes over, too"
_SHAPE, _DTYPE, _RANK, _DEVICE, _TYPE = Cause.SHAPE, Cause.DTYPE, Cause.RANK, Cause.DEVICE, Cause.TYPE
"""For loops over a thousand changes: reading a member off its class takes as long as comparing two shapes (3.11)."""
_NOTES: Final = {
    Cause.FUNCTION: "a new function object",
    Cause.REDEFINED: "defined again: the same name, another object",
    Cause.EXCHANGED: "the same function, with other code or defaults",
    Cause.DELETED: "the former one has been deleted",
}


class TextPart(NamedTuple):
    """What differs and is no part of a key by itself, in words; for a container with its kind and its keys."""

    words: str
    kind: type | None = None
    keys: tuple[Any, ...] = ()


class Change(NamedTuple):
    """One differing part of a key."""

    path: str
    cause: Cause
    before: Part | TextPart
    after: Part | TextPart
    note: str = ""

    @property
    def detail(self) -> str:
        """What exactly has changed, where that is not plain: "axis 0: 32 -> 17"."""
        if isinstance(self.before, TensorPart) and isinstance(self.after, TensorPart):
            return _tensor_detail(self.before, self.after)
        return self.note

    @property
    def contrast(self) -> Contrast:
        """The change in words."""
        what = _WHOLE.get(self.path) or f"argument `{self.path}`"
        return Contrast(what, show(self.before), show(self.after), self.detail)

    def __str__(self) -> str:
        return str(self.contrast)


_new: Final[Callable[[tuple[Any, ...]], Change]] = functools.partial(tuple.__new__, Change)
"""`Change` of all its fields, in half the time: there may be a thousand."""
_new_text: Final[Callable[[tuple[Any, ...]], TextPart]] = functools.partial(tuple.__new__, TextPart)
"""The same for `TextPart`."""
SCOPE: Final = "ll.device"
"""The path under which the device scope around a call is listed; no argument can have this name."""
SHARED: Final = "is"
"""The same for what is one and the same among the arguments."""
_WHOLE: Final = {SCOPE: "the device scope", SHARED: "what is one and the same among the arguments"}


def show(part: Part | TextPart, limit: int = 60) -> str:
    """A part in at most `limit` characters."""
    if isinstance(part, TextPart):
        text = part.words
    else:
        text = part.type_words if isinstance(part, VariablePart) else part.describe()
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def quoted(key: Any) -> str:
    """A dictionary key as code; strings as this project writes them."""
    return json.dumps(key, ensure_ascii=False) if type(key) is str else repr(key)


def sealed(change: Change) -> Change:
    """`change` without hold on what the user passed: the types of tensors and numbers stay, the rest becomes words."""
    path, cause, before, after, note = change
    was = before if type(before) is TensorPart else _sealed_part(before)
    now = after if type(after) is TensorPart else _sealed_part(after)
    return change if was is before and now is after else _new((path, cause, was, now, note))


def _sealed_part(part: Part | TextPart) -> Part | TextPart:
    """A part that is no tensor's: as it is where it holds nothing but a number, a short string or a variable's spec."""
    if isinstance(part, ValuePart):
        kind = part.kind
        if kind in _PLAIN or (kind is str and len(part.value) <= LONG):
            return part
    elif isinstance(part, VariablePart) and part.identity is None:
        return part
    return _new_text((show(part), None, ()))


def differing(before: Key, after: Key, signature: Signature, paths: Sequence[str] = ()) -> list[Change]:
    """Every part in which two keys of one function differ, in the order of the arguments.

    Args:
        before: the key of a trace.
        after: that of a call.
        signature: of the function.
        paths: of the leaves of `before`, where they are known.
    """
    comparison = _Comparison(_Side(before, signature, paths), _Side(after, signature), signature)
    if before.device is not after.device:
        words = [TextPart("none" if d is None else d.short) for d in (before.device, after.device)]
        comparison.changes.append(Change(SCOPE, Cause.DEVICE, words[0], words[1]))
    if before.shared != after.shared:
        was, now = [TextPart(words or "nothing") for words in (before.shared, after.shared)]
        comparison.changes.append(Change(SHARED, Cause.SHARING, was, now))
    comparison.run()
    return comparison.changes


def cause_of(before: Part, after: Part) -> Cause:
    """Why two different parts at one place differ; the severest reason where there are several."""
    if isinstance(before, TensorPart) and isinstance(after, TensorPart):
        return _tensor_cause(before, after)
    if isinstance(before, VariablePart) and isinstance(after, VariablePart):
        if before.spec != after.spec:
            return Cause.VARIABLE
        return Cause.ALIASING if before.device is after.device else Cause.DEVICE
    if isinstance(before, ValuePart) and isinstance(after, ValuePart) and before.kind is after.kind:
        return Cause.NUMBER if before.kind in _NUMBERS else Cause.VALUE
    if isinstance(before, ObjectPart) and isinstance(after, ObjectPart):
        return _identity_cause(before.identity, after.identity)
    return Cause.TYPE


class _Side:
    """One of two keys that are compared."""

    def __init__(self, key: Key, signature: Signature, paths: Sequence[str] = ()) -> None:
        self.key = key
        self.parts = key.parts
        self._paths = paths
        self._signature = signature

    @cached_property
    def structure(self) -> Structure:
        count = len(self.parts)
        return self.key.structure or Structure(tuple, tuple(range(count)), (nest.LEAF,) * count)

    @cached_property
    def paths(self) -> Sequence[str]:
        return self._paths or self._signature.paths(self.key.structure, len(self.parts))

    @cached_property
    def _owners(self) -> dict[int, int]:
        owners: dict[int, int] = {}
        for i, part in enumerate(self.parts):
            if isinstance(part, VariablePart):
                owners.setdefault(part.alias, i)
        return owners

    def owner(self, variable: VariablePart) -> str:
        """The path of the first argument that is this variable."""
        return self.paths[self._owners[variable.alias]]


class _Node(NamedTuple):
    """A container or a leaf of a key: its structure, the index of its first leaf, and how many leaves it has."""

    structure: Structure
    start: int
    size: int

    def children(self) -> Sequence[tuple[Any, Structure, int, int]]:
        """The key and the fields of each child's node."""
        structure, start = self.structure, self.start
        inner = len(structure.children) - structure.children.count(nest.LEAF)
        if not inner:
            return tuple(zip(structure.keys, structure.children, itertools.count(start), itertools.repeat(1)))
        children = []
        for key, child in zip(structure.keys, structure.children, strict=True):
            if child is nest.LEAF:
                size = 1
            else:  # the only one has the rest: leaves that lie deep are not counted again at each level
                size = self.size - len(structure.children) + 1 if inner == 1 else child.n_leaves
            children.append((key, child, start, size))
            start += size
        return children

    def summary(self, parts: tuple[Part, ...]) -> Part | TextPart:
        """A leaf's part; for a container its kind and size."""
        kind = self.structure.kind
        if kind is None:
            return parts[self.start]
        keys = self.structure.keys
        words = f"{kind.__name__} of {len(keys)}" if kind in (list, tuple, dict) else kind.__name__
        return TextPart(words, kind, keys)

    def outline(self, apart: Container[Any] = ()) -> TextPart:
        """The keys of a dictionary, the number of values of another container; but for the keys in `apart`."""
        keys = tuple([key for key in self.structure.keys if key not in apart])
        if self.structure.kind is dict:
            more = [f"{len(keys) - _SPELLED} more"] if len(keys) > _SPELLED else []
            return TextPart(f"keys {{{', '.join([*map(quoted, keys[:_SPELLED]), *more])}}}", dict, keys)
        return TextPart(f"{len(keys)} value{'' if len(keys) == 1 else 's'}", self.structure.kind, keys)


class _Comparison:
    """Two keys side by side; `changes` collects what differs."""

    def __init__(self, old: _Side, new: _Side, signature: Signature) -> None:
        self.old = old
        self.new = new
        self.changes: list[Change] = []
        self._signature = signature

    def run(self) -> None:
        old, new = self.old, self.new
        if old.structure == new.structure:
            for i, (before, after) in enumerate(zip(old.parts, new.parts, strict=True)):
                if before is not after and before != after:
                    self._leaf(old.paths[i], before, after)
            return
        roots = _Node(old.structure, 0, len(old.parts)), _Node(new.structure, 0, len(new.parts))
        signature = self._signature
        named = range(len(signature.positional))
        if not signature.takes_keywords:
            self._children(signature.root, signature.rest_name, *roots, named)
            return
        (args, keywords), (new_args, new_keywords) = ([_Node(*c[1:]) for c in root.children()] for root in roots)
        self._children(signature.root, signature.rest_name, args, new_args, named)
        self._children(str, signature.keywords_name, keywords, new_keywords, signature.parameter_names)

    def _visit(self, path: str, before: _Node, after: _Node) -> None:
        """One argument, or a part of one."""
        kind = after.structure.kind
        if before.structure == after.structure:
            count = after.size
            old = self.old.parts[before.start : before.start + count]
            new = self.new.parts[after.start : after.start + count]
            if old != new:
                for leaf, was, now in zip(nest.paths(after.structure, path), old, new, strict=True):
                    if was != now:
                        self._leaf(leaf, was, now)
        elif kind is None or before.structure.kind is not kind:
            summaries = before.summary(self.old.parts), after.summary(self.new.parts)
            self.changes.append(Change(path, Cause.CONTAINER, *summaries))
            if {kind, before.structure.kind} == {list, tuple}:
                self._shared(lambda key: path + nest.step(list, key), before, after)
        else:
            self._children(lambda key: path + nest.step(kind, key), path, before, after)

    def _children(
        self, name: Callable[[Any], str], path: str, before: _Node, after: _Node, apart: Container[Any] = ()
    ) -> None:
        """Two containers of one kind: their keys, and what is under them.

        Args:
            name: the path of a child, from its key.
            path: of the containers.
            before: the former one.
            after: the present one.
            apart: keys that are not counted: parameters that lie outside of `*args` or `**kwargs`.
        """
        if before.structure.keys != after.structure.keys:
            cause = Cause.KEYS if after.structure.kind is dict else Cause.COUNT
            note = _missing_keys(before.structure.keys, after.structure.keys) if cause is Cause.KEYS else ""
            self.changes.append(Change(path, cause, before.outline(apart), after.outline(apart), note))
        self._shared(name, before, after)

    def _shared(self, name: Callable[[Any], str], before: _Node, after: _Node) -> None:
        """What is under the keys that two containers share."""
        old, new = self.old.parts, self.new.parts
        if before.structure.is_flat and after.structure.is_flat:  # the common case, without a node for each leaf
            places = dict(zip(before.structure.keys, itertools.count(before.start), strict=False))
            for j, key in enumerate(after.structure.keys, after.start):
                at = places.get(key)
                if at is not None and old[at] != new[j]:
                    self._leaf(name(key), old[at], new[j])
            return
        known = {child[0]: child for child in before.children()}
        for now in after.children():
            was = known.get(now[0])
            if was is None:
                continue
            if not was[1] is now[1] is nest.LEAF:
                self._visit(name(now[0]), _Node(*was[1:]), _Node(*now[1:]))
            elif old[was[2]] != new[now[2]]:
                self._leaf(name(now[0]), old[was[2]], new[now[2]])

    def _leaf(self, path: str, before: Part, after: Part) -> None:
        if type(before) is not type(after):  # this and the next come first, since there may be a thousand of these
            self.changes.append(_new((path, _TYPE, before, after, "")))
        elif isinstance(before, TensorPart) and isinstance(after, TensorPart):
            if None not in before.shape or not before.covers(after):  # else the trace has these sizes open
                self.changes.append(_new((path, _tensor_cause(before, after), before, after, "")))
        elif isinstance(before, VariablePart) and isinstance(after, VariablePart):
            self._variable(path, before, after)
        else:
            cause = cause_of(before, after)
            self.changes.append(_new((path, cause, before, after, _note(cause, before, after))))

    def _variable(self, path: str, before: VariablePart, after: VariablePart) -> None:
        cause = cause_of(before, after)
        owners = self.old.owner(before), self.new.owner(after)
        own = ["a variable of its own" if o == path else f"the same variable as `{o}`" for o in owners]
        if cause is not Cause.ALIASING:
            note = "" if owners[0] == owners[1] else f"{own[0]} -> {own[1]}"
            self.changes.append(_new((path, cause, before, after, note)))
        elif owners[0] != owners[1]:
            self.changes.append(Change(path, cause, TextPart(own[0]), TextPart(own[1])))
        elif before.identity != after.identity:
            said = ["any other variable" if part.identity is None else _CLOSED_OVER for part in (before, after)]
            if said[0] == said[1]:
                said[1] = f"another v{_CLOSED_OVER[3:]}"
            self.changes.append(Change(path, cause, TextPart(said[0]), TextPart(said[1])))
        # else only variables before this one are numbered differently


def _tensor_cause(before: TensorPart, after: TensorPart) -> Cause:
    """Why two tensors differ: a rank is more than a dtype, a dtype more than sizes, and sizes more than a device."""
    old, new = before.shape, after.shape
    if len(old) != len(new):
        return _RANK
    if before.dtype != after.dtype:
        return _DTYPE
    if old == new or (None in old and not differing_sizes(old, new)):
        return _DEVICE
    return _SHAPE


def differing_sizes(before: Sequence[int | None], after: Sequence[int | None]) -> list[tuple[int, Any, Any]]:
    """Axis, former size and size, where a trace for `before` does not serve `after`: unknown sizes serve all."""
    return [(i, m, n) for i, (m, n) in enumerate(zip(before, after, strict=True)) if m != n and m is not None]


def _tensor_detail(before: TensorPart, after: TensorPart) -> str:
    """The axes whose sizes differ; nothing where the ranks do, since the shapes say it."""
    if len(before.shape) != len(after.shape):
        return f"rank {len(before.shape)} -> {len(after.shape)}"
    sizes = differing_sizes(before.shape, after.shape)
    return ", ".join(f"axis {i}: {m} -> {'?' if n is None else n}" for i, m, n in sizes)


def _identity_cause(before: Identity, after: Identity) -> Cause:
    """A function made anew each time its line runs, one that was defined again, or an object of another kind."""
    if before.label != after.label:
        return Cause.OBJECT
    if after.ref() is not None and before.ref() is after.ref():
        return Cause.EXCHANGED
    if not (before.is_function and after.is_function):
        return Cause.OBJECT if before.target() is not None else Cause.DELETED
    made_anew = "<lambda>" in after.label or "<locals>" in after.label or after.is_made_by(before)
    return Cause.FUNCTION if made_anew else Cause.REDEFINED


def _note(cause: Cause, before: Part, after: Part) -> str:
    """What is said beside a change of a value or an object."""
    if isinstance(before, ValuePart) and isinstance(after, ValuePart):
        return f"{before.kind.__name__} -> {after.kind.__name__}" if cause is _TYPE else ""
    note = _NOTES.get(cause, "")
    if note or not (isinstance(before, ObjectPart) and isinstance(after, ObjectPart)):
        return note
    what = "another instance" if isinstance(after.identity, Bound) else "another object"
    return what if before.identity.label == after.identity.label else ""


def _missing_keys(before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    old, new = set(before), set(after)
    gone, come = [k for k in before if k not in new], [k for k in after if k not in old]
    return ", ".join(f"{word} {_some(keys)}" for word, keys in (("without", gone), ("with", come)) if keys)


def _some(keys: list[Any]) -> str:
    more = [f"{len(keys) - _SPELLED} more"] if len(keys) > _SPELLED else []
    return " and ".join([*map(quoted, keys[:_SPELLED]), *more])
