"""What code without a source mentions, by its instructions: names, and the attributes that are looked up on them.

Code that `exec` has made, or whose file was edited since, is run as any other. Instructions tell less than a source:
keys and local names are not known, so what these lead to counts as a whole.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Final, NamedTuple

_GLOBALS: Final = frozenset(["LOAD_GLOBAL", "LOAD_NAME"])
_ATTRIBUTES: Final = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
_CELLS: Final = frozenset(["LOAD_DEREF", "LOAD_CLASSDEREF"])
_BETWEEN: Final = frozenset(["CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL", "PRECALL"])


class Mention(NamedTuple):
    """A name and the attributes that are looked up on it, and whether it is called."""

    root: str  # "global", "free" or "local", as of `code_uses.Chain`
    name: str
    attributes: tuple[str, ...]
    line: int
    is_called: bool


def mentions(code: CodeType) -> Iterator[Mention]:
    """Those in one code, without the codes within.

    >>> def f(x):
    ...     return print(x * config.rate)
    >>> [(one.name, one.attributes, one.is_called) for one in mentions(f.__code__)]
    [('print', (), True), ('x', (), False), ('config', ('rate',), False)]
    """
    parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    now: Mention | None = None
    for one in dis.get_instructions(code):
        if one.opname in _BETWEEN:
            continue
        calls = one.opname == "LOAD_METHOD" or "NULL" in one.argrepr
        if now is not None and one.opname in _ATTRIBUTES:
            now = now._replace(attributes=(*now.attributes, str(one.argval)), is_called=calls)
            continue
        if now is not None:
            yield now
        root = _root(one.opname, str(one.argval), code, parameters)
        line = one.positions.lineno if one.positions is not None else None
        now = Mention(root, str(one.argval), (), line or code.co_firstlineno, calls) if root else None
    if now is not None:
        yield now


def _root(opname: str, name: str, code: CodeType, parameters: frozenset[str]) -> str:
    """Where a name is looked up that an instruction loads; empty for no name, and for a local one of the code."""
    if opname in _GLOBALS:
        return "global"
    if opname in _CELLS:
        return "free" if name in code.co_freevars else ""
    return "local" if opname.startswith("LOAD_FAST") and name in parameters else ""
