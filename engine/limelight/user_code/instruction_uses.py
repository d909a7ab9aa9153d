"""What code without a source mentions, by its instructions: names, and the attributes that are looked up on them.

Code that `exec` has made, or whose file was edited since, is run as any other. Instructions tell less than a source:
keys are not known, nor local names but those of imports, so what these lead to counts as a whole.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

_GLOBALS: Final = frozenset(["LOAD_GLOBAL", "LOAD_NAME"])
_ATTRIBUTES: Final = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
_CELLS: Final = frozenset(["LOAD_DEREF", "LOAD_CLASSDEREF"])
_STORES: Final = frozenset(["STORE_FAST", "STORE_DEREF"])
_BETWEEN: Final = frozenset(["CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL", "PRECALL"])


class Mention(NamedTuple):
    """A name and the attributes that are looked up on it, and whether it is called."""

    root: str  # "global", "free", "local" or "import", as of `code_uses.Chain`
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
    imports = _Imports()
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
        root, name, attributes = imports.meant(one) or (_root(one.opname, str(one.argval), code, parameters), "", ())
        line = one.positions.lineno if one.positions is not None else None
        name = name or str(one.argval)
        now = Mention(root, name, attributes, line or code.co_firstlineno, calls) if root else None
    if now is not None:
        yield now


class _Imports:
    """The modules that the instructions import, and what names of the code's own stand for them and their parts."""

    def __init__(self) -> None:
        self._of: dict[str, _Meaning] = {}
        self._last: _Meaning | None = None  # what has been imported, until it has a name
        self._names: object = None  # what is imported from a module; None for the module itself

    def meant(self, one: dis.Instruction) -> _Meaning | None:
        """What an instruction imports, or loads of what was imported; None for all others."""
        name = str(one.argval)
        if one.opname == "LOAD_CONST":
            self._names = one.argval
        elif one.opname == "IMPORT_NAME":
            self._last = ("import", name if self._names else name.partition(".")[0], ())
        elif one.opname == "IMPORT_FROM" and self._last is not None:
            self._last = (*self._last[:2], (*(() if self._names else self._last[2]), name))
            return self._last
        elif one.opname in _STORES:
            self._of.pop(name, None)
            if self._last is not None:
                self._of[name] = self._last
                self._last = self._last if self._names else None
        elif one.opname == "POP_TOP" and self._names:
            self._last = None
        return self._of.get(name) if one.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) else None


_Meaning: TypeAlias = "tuple[str, str, tuple[str, ...]]"
"""Root, name and attributes of a Mention."""


def _root(opname: str, name: str, code: CodeType, parameters: frozenset[str]) -> str:
    """Where a name is looked up that an instruction loads; empty for no name, and for a local one of the code."""
    if opname in _GLOBALS:
        return "global"
    if opname in _CELLS:
        return "free" if name in code.co_freevars else ""
    return "local" if opname.startswith("LOAD_FAST") and name in parameters else ""
