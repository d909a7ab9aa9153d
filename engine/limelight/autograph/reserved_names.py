"""Names that converted code adds, none of which a user can have written: they hold a space, which compilers allow.

The library writes its operators as `ag__`, and flags such as `break_` beside the user's names. So a user's `ag__` steps
aside while a function is rewritten, and everything that was added gets a name that no source can spell.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

OPERATORS: Final = "ag__ operators"
_AS_EMITTED: Final = "ag__"
_OF_THE_USER: Final = "ag__ of the user"
_ADDED: Final = " added"


def added(name: str) -> str:
    """A name that is not the user's."""
    return name + _ADDED


def is_added(name: str) -> bool:
    return name.endswith(_ADDED)


def step_aside(node: ast.AST) -> None:
    """Gives a name of the user's that the library's operators bear another one, before any are added."""
    _rename(node, {_AS_EMITTED: _OF_THE_USER})


def come_back(node: ast.AST) -> None:
    """Gives the user's names back, and the operators their own."""
    _rename(node, {_AS_EMITTED: OPERATORS, _OF_THE_USER: _AS_EMITTED})


_FIELDS: Final = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name", ast.ClassDef: "name"} | {
    ast.ExceptHandler: "name",
    ast.Constant: "value",  # the names of a block's state are text
    ast.alias: "asname",
    ast.Global: "names",
    ast.Nonlocal: "names",
}


def _rename(node: ast.AST, names: Mapping[str, str]) -> None:
    for part in {id(x): x for x in ast.walk(node)}.values():  # a tree may hold a node twice
        field = _FIELDS.get(type(part))
        if field is None:
            continue
        value: Any = getattr(part, field)
        if isinstance(value, list):
            value[:] = [names.get(x, x) for x in value]
        elif isinstance(value, str) and value in names:
            setattr(part, field, names[value])
