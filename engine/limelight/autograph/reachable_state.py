"""What the code of a block can reach that was there before it: objects, and variables that functions share."""

from __future__ import annotations

import dis
import functools
from collections import deque
from collections.abc import Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.autograph import user_lines
from limelight.autograph.undefined_variables import shown
from limelight.core.tensor import Tensor
from limelight.errors import ControlFlowError
from limelight.user_code import source_line

_DEEP: Final = 4
_MOST: Final = 10_000
"""So many objects are looked at; a list of more than that is hardly changed by name."""
_PLAIN: Final = (int, float, complex, str, bytes, type, type(None), type(np), Tensor)
_NOTHING: Final = object()
_LEADING: Final = (list, dict, tuple, set, deque, FunctionType, BuiltinFunctionType, functools.partial)


class _Shared(NamedTuple):
    """A variable that `function` assigns, and that is not its own: a cell, or a global of a namespace."""

    name: str
    function: FunctionType
    where: CellType | dict[str, Any]

    def content(self) -> Any:
        if isinstance(self.where, dict):
            return self.where.get(self.name, _NOTHING)
        return _content(self.where)

    def restore(self, value: Any) -> None:
        if isinstance(self.where, dict):
            self.where[self.name] = value
            if value is _NOTHING:
                del self.where[self.name]
        else:
            self.where.cell_contents = value
            if value is _NOTHING:
                del self.where.cell_contents


class Outer(NamedTuple):
    """What was there before a block: objects by identity (and kept alive, so that it stays so), and variables.

    `names` has what the block's own code calls objects, by their identities. `contained` are those that variables
    and containers lead to; what is an attribute may well change, as the caches of objects do.
    """

    objects: dict[int, Any]
    variables: Sequence[_Shared]
    names: dict[int, str]
    contained: Sequence[Any] = ()

    def contents(self) -> list[Any]:
        """What the variables are now."""
        return [variable.content() for variable in self.variables]

    def refuse_changes(self, before: Sequence[Any], what: str) -> None:
        """Raises ControlFlowError if variables are no longer what they were `before`, which they are afterwards."""
        for variable, known in zip(self.variables, before, strict=True):
            if variable.content() is not known:
                variable.restore(known)
                name = variable.function.__name__
                where = user_lines.line_of_assignment(variable.name, variable.function)
                kind = "global" if isinstance(variable.where, dict) else "nonlocal"
                raise ControlFlowError(
                    f"{shown(variable.name)}, a {kind} variable, is assigned by `{name}`{where}, which {what} calls. "
                    "That would happen once, while tracing, whatever the tensor says. Return the value from "
                    f"`{name}` and assign it to a local variable in the block; keep state in a ll.Variable (.assign)"
                )


def reachable(*functions: Any, state: Any = None, names: Sequence[str] = ()) -> Outer:
    """What `functions`, those of a block, can reach by their variables.

    The variables `names`, which the function `state` closes over, are those of the block itself.
    """
    roots = [function for function in functions if isinstance(function, FunctionType)]
    objects: dict[int, Any] = {}
    contained: list[Any] = []
    waiting = [(value, 0, True) for function in roots for value in _values(function)]
    for value, depth, is_contained in waiting:  # which grows: what is near comes first
        if len(objects) >= _MOST:
            break
        if id(value) not in objects and not isinstance(value, _PLAIN):
            objects[id(value)] = value
            contained += [value] if is_contained else []
            if depth < _DEEP:
                leads = is_contained and isinstance(value, _LEADING)
                waiting += [(part, depth + 1, leads) for part in _parts(value)]
    own = {id(cell) for cell in getattr(state, "__closure__", None) or ()}
    own_globals = {id(function.__globals__) for function in roots} if names else set()
    users = [x for x in objects.values() if isinstance(x, FunctionType) and not _is_installed(x)]
    variables = [
        shared
        for function in users  # what the block itself assigns is its state
        for shared in _assigned(function)
        if id(shared.where) not in own and not (id(shared.where) in own_globals and shared.name in names)
    ]
    named = [
        (name, cell) for x in roots for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True)
    ]
    return Outer(objects, variables, {id(_content(cell)): name for name, cell in named}, contained)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, FunctionType):
        return [] if _is_installed(value) else _values(value)
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, BuiltinFunctionType):
        return [value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | deque):
        return list(value)
    attributes = getattr(value, "__dict__", {})
    return [*([attributes] if type(attributes) is dict else []), *attributes.values(), *_methods(type(value))]


def _methods(kind: type) -> list[Any]:
    """The functions that a class of the user's gives its objects: what these reach, the objects do."""
    return [x for base in kind.__mro__ for x in vars(base).values() if isinstance(x, FunctionType)]


def _is_installed(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return source_line.is_library_file(file) or source_line.is_installed(file)


def _values(function: FunctionType) -> list[Any]:
    names = _global_names(function.__code__)
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    return values + [_content(cell) for cell in function.__closure__ or ()]


def _global_names(code: CodeType) -> set[str]:
    inner = [_global_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return set(code.co_names).union(*inner)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


_STORES: Final = {dis.opmap[name]: name for name in ("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL")}


def _assigned(function: FunctionType) -> list[_Shared]:
    """The variables of others that `function` assigns, itself or by functions within it."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return [
        _Shared(name, function, function.__globals__ if is_global else cells[name])
        for name, is_global in _stored(function.__code__)
        if is_global or name in cells
    ]


def _stored(code: CodeType) -> set[tuple[str, bool]]:
    """The names of cells and globals that `code` assigns, and whether they are globals."""
    names = set().union(*[_stored(x) for x in code.co_consts if isinstance(x, CodeType)])
    if _STORES.keys().isdisjoint(code.co_code[::2]):
        return names
    steps = [step for step in dis.get_instructions(code) if step.opcode in _STORES]
    return names | {(step.argval, step.opname.endswith("GLOBAL")) for step in steps}
