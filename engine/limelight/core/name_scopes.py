"""Name scopes: paths such as "encoder/dense/" under which nodes and variables are named.

In a trace each node bears the scope of the line that wrote it; outside of traces only variables' names do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from types import TracebackType
from typing import Any, Final

from limelight.core.dispatch import Interpreter, local
from limelight.errors import ArgumentError
from limelight.settings import Scoped

outer_scope: Final[Scoped[str]] = Scoped("name_scope", "")
"""The name scope outside of every trace; in a trace the interpreter that writes nodes has it, as its `scope`."""
named_scopes: Final[list[str]] = []
"""Not empty once anybody has entered a name scope: until then nobody need look for one."""
_GRADIENT: Final = "gradient/"


def graph_writer() -> Interpreter | None:
    """The innermost interpreter of this thread that writes nodes."""
    return next((x for x in reversed(local.stack) if x.scope is not None), None)


def current_name_scope() -> str:
    """The path of the name scopes around this line ("encoder/dense/"), empty outside of them."""
    if not named_scopes:
        return ""
    writer = graph_writer()
    return (outer_scope.get() if writer is None else writer.scope) or ""


def in_current_scope(name: str | None, default: str) -> str:
    """The full name of what is made here and was given `name`. Raises ArgumentError for what is no text."""
    if name is not None and not isinstance(name, str):
        raise ArgumentError(f"{default}: name must be a str, got {name!r} ({type(name).__name__})")
    return current_name_scope() + (name or default)


def name_scope(name: str) -> _NameScope:
    """Puts the nodes and variables made in its block under `name`: node.scope is "encoder/", a name "encoder/w".

    Scopes nest, and are named alike in each trace, so that graphs can be compared. What a gradient writes has the scope
    of the op that it belongs to, after "gradient/". A staged function begins without one, since its graph serves
    callers in any scope; branches and loop bodies begin with that around them. The block gets the whole path. Raises
    ArgumentError for a name that is empty or has white space.

    >>> import limelight as ll
    >>> @ll.function
    ... def f(x):
    ...     with ll.name_scope("encoder"):
    ...         return ll.exp(x)
    >>> y = f(ll.constant(0.0))
    >>> f.trace_cache[0].graph.nodes[0].scope
    'encoder/'
    """
    if type(name) is not str or not name.strip("/") or any(c.isspace() for c in name):
        raise ArgumentError(f"name_scope: the name must be a word such as 'encoder', got {name!r}")
    if not named_scopes:
        named_scopes.append(name)
    return _NameScope(name.strip("/"))


class _NameScope(ContextDecorator):
    """One name scope, to be entered once; as a decorator it puts each call in one of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: AbstractContextManager[None] | None = None

    def _recreate_cm(self) -> _NameScope:
        return _NameScope(self._name)

    def __enter__(self) -> str:
        path = f"{current_name_scope()}{self._name}/"
        self._outer = outer_scope.override(path)
        self._outer.begin(sys._getframe(1))
        if graph_writer() is not None:
            self._nodes = scope_of_nodes(path)
            self._nodes.__enter__()
        return path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if self._nodes is not None:
                self._nodes.__exit__(kind, error, tb)
        finally:
            self._outer.__exit__(kind, error, tb)


@contextmanager
def scope_of_nodes(scope: str) -> Iterator[None]:
    """Names what a trace of this thread writes within its block, whatever the scopes around it."""
    writer = graph_writer()
    if writer is None:
        yield
        return
    block = _TraceScope(writer.enclosing_scope, writer.scope)
    try:
        writer.enclosing_scope, writer.scope = block, scope
        yield
    finally:
        block.over = True
        while writer.enclosing_scope is not None and writer.enclosing_scope.over:
            writer.enclosing_scope, writer.scope = writer.enclosing_scope.before


class _TraceScope:
    """One name scope of a trace, and what held before it: (the block around it, the scope).

    Blocks may be left in any order: what held before one of them holds again once all that were entered later are over.
    """

    __slots__ = ("before", "over")

    def __init__(self, *before: Any) -> None:
        self.before = before
        self.over = False


@contextmanager
def gradient_scope(of: str = "") -> Iterator[None]:
    """Names what a trace of this thread writes within its block as part of the gradient of an op in the scope `of`."""
    writer = graph_writer()
    if writer is None or writer.scope is None or (writer.scope.startswith(_GRADIENT) and not of):
        yield
        return
    with scope_of_nodes(_GRADIENT + (of or writer.scope).removeprefix(_GRADIENT)):
        yield
