"""Changes that a traced function makes to containers it was given: they would be lost, silently.

A trace has lists and dictionaries of its own, built anew around symbolic tensors; what the code writes to these never
reaches the caller, neither while tracing nor on calls that find the trace. So they are compared after the trace with
what they were. A container that the function returns is not lost, and may be changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.nest import Structure
from limelight.core.tensor import Tensor
from limelight.errors import LostChangeWarning
from limelight.staging.signature import Signature
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import source_line
from limelight.user_code.code_uses import Chain, uses_of
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at

_MUTATORS: Final = frozenset([
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem",
])  # fmt: skip
_SPELLED: Final = 3
_COMPARED: Final = (int, str, bytes)
_COMPARED_AS_WRITTEN: Final = (float, complex, np.generic)
"""NaN is one value, 0.0 and -0.0 are two."""


class Changes(NamedTuple):
    """What a call has changed of its arguments: whether it has changed `any`, and what of it is `lost`."""

    any: bool
    lost: tuple[ArgumentChange, ...]


class ArgumentChange(NamedTuple):
    """What of an argument is no longer what it was: `path` 'd["n"]', of the argument `root`; `line` changes it."""

    path: str
    root: str
    line: Source | None


def changes_of(
    function: Callable[..., Any],
    signature: Signature,
    structure: Structure | None,
    leaves: Sequence[Any],
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
    result: Any,
) -> Changes:
    """What a call of a Python function has changed in the containers among its arguments, lost if it returns none.

    Args:
        function: the Python function.
        signature: its signature.
        structure: that of the arguments, as in its key.
        leaves: what the containers were built around.
        arguments: the positional arguments and those by name, after the call.
        result: what it has returned.
    """
    if structure is None:
        return Changes(False, ())
    comparison = _Comparison(iter(leaves), _containers(result))
    args, kwargs = arguments
    nodes = structure.children[0].children if signature.takes_keywords else structure.children
    roots = [(signature.root(i), node, x) for i, (node, x) in enumerate(zip(nodes, args, strict=True))]
    if signature.takes_keywords:
        named = structure.children[1]
        roots += [(name, node, kwargs[name]) for name, node in zip(named.keys, named.children, strict=True)]
    found = [(path, root) for root, node, x in roots for path in comparison.changed(root, node, x)]
    lost = tuple([ArgumentChange(path, root, _line(function, root, path)) for path, root in found])
    return Changes(comparison.any, lost)


def warn(name: str, changes: Sequence[ArgumentChange]) -> None:
    """Warns of changes that are lost, at the line of the first: LostChangeWarning."""
    if not changes:
        return
    line = changes[0].line or source_line.user_line() or Source("<unknown>", 1, "")
    paths = [f"`{change.path}`" for change in changes[:_SPELLED]]
    more = [f"{len(changes) - _SPELLED} more"] if len(changes) > _SPELLED else []
    message = (
        f"`{name}` changes what it was given ({', '.join([*paths, *more])}), and the change is lost: a staged function "
        f"works on a copy of each container, and the caller's stays as it is{source_line.at(line)}. "
        f"{remedy(changes[0])}"
    )
    warn_at(line, message, LostChangeWarning)


def remedy(change: ArgumentChange) -> str:
    """What to write instead."""
    root = change.root
    return f"Return `{root}` and go on with the result; or return the value, and store it outside the function"


def _containers(result: Any) -> set[int]:
    """The ids of all containers in a result."""
    found: set[int] = set()
    waiting = [result]
    while waiting:
        x = waiting.pop()
        container = nest.opened(x)
        if container is not None and id(x) not in found:
            found.add(id(x))
            waiting += container[2]
    return found


class _Comparison:
    """Arguments as they are beside what they were built of."""

    def __init__(self, leaves: Iterator[Any], returned: set[int]) -> None:
        self._leaves = leaves
        self._returned = returned
        self.any = False  # whether anything differs, lost or not

    def changed(self, path: str, before: Structure, now: Any, lost: bool = True) -> Iterator[str]:
        """The paths of what differs and is `lost`; goes through the leaves of `before`, whatever there is now."""
        if before.kind is None:
            if not _is_same(next(self._leaves), now):
                self.any = True
                if lost:
                    yield path
            return
        container = nest.opened(now)
        lost = lost and id(now) not in self._returned
        if container is None or container[0] is not before.kind:
            self._skip(before)
            self.any = True
            if lost:
                yield path
            return
        kind, keys, children = container
        present = dict(zip(keys, children, strict=True))
        for key, child in zip(before.keys, before.children, strict=True):
            if key in present:
                yield from self.changed(path + nest.step(kind, key), child, present.pop(key), lost)
            else:
                self._skip(child)
                self.any = True
                if lost:
                    yield path + nest.step(kind, key)
        self.any = self.any or bool(present)
        if lost:
            yield from [path + nest.step(kind, key) for key in present]

    def _skip(self, structure: Structure) -> None:
        for _ in range(structure.n_leaves):
            next(self._leaves)


def _is_same(before: Any, now: Any) -> bool:
    """Whether a leaf is what it was, or is equal to it in any call: what is equal by chance shows in values only."""
    if before is now:
        return True
    if type(before) is not type(now):
        return False
    if isinstance(before, SymbolicTensor):
        return before._value is now._value
    if isinstance(before, Tensor):
        return before.spec == now.spec and before.device == now.device and _same_bytes(before.numpy(), now.numpy())
    if isinstance(before, np.ndarray):
        return before.dtype == now.dtype and before.shape == now.shape and _same_bytes(before, now)
    if isinstance(before, _COMPARED):
        return bool(before == now)
    return isinstance(before, _COMPARED_AS_WRITTEN) and repr(before) == repr(now)


def _same_bytes(a: Any, b: Any) -> bool:
    return bool(a.dtype.kind != "O" and a.tobytes() == b.tobytes())


def _line(function: Any, root: str, path: str) -> Source | None:
    """The line that changes the argument `root` at `path`, as far as the code of the function shows it."""
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(getattr(function, "func", function), "__code__", None)
    if code is None:
        return None
    begins = Source(code.co_filename, code.co_firstlineno, code.co_name)
    written = [use for use in uses_of(code).uses if _changes(use.how, use.chain, root)]
    exact = [use for use in written if str(use.chain) == path.replace('"', "'")] or written
    return begins._replace(line=exact[0].line) if exact else begins


def _changes(how: str, chain: Chain, root: str) -> bool:
    if chain.name != root or chain.root != "local" or not chain.steps:
        return False
    return how == "write" or (how == "call" and chain.steps[-1][1] in _MUTATORS)
