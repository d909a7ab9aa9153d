"""Would a tensor do in place of a number that a function is given, as far as its source tells?"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final, NamedTuple

from limelight.core.tensor import Tensor
from limelight.user_code.definitions import definition_of
from limelight.user_code.value_use import UNKNOWN, Obstacle, Scope, ValueUse

_DEEPEST: Final = 4
"""How many calls deep a number is followed."""
_ATTRIBUTES: Final = frozenset(dir(Tensor))


class Written(NamedTuple):
    """Code that is no function of Python's, as a cell of a notebook: what `function.__limelight_written__` gives.

    `names` are those that it finds outside itself. In `converted` code, tensors may decide what Python would.
    """

    body: list[ast.stmt]
    file: str
    name: str
    names: Mapping[str, Any]
    converted: bool = False


def obstacle(function: Callable[..., Any], path: str, converted: bool = False) -> Obstacle | None:
    """What keeps an argument of `function`, or the part of one at `path` ('batch["rate"]'), from being a tensor.

    None if nothing does. In `converted` code, tensors may decide what Python would.
    """
    try:
        return _obstacle(function, path, 0, converted)
    except (RecursionError, SyntaxError, ValueError, AttributeError, TypeError):
        return UNKNOWN


def _obstacle(function: Callable[..., Any], path: str, depth: int, converted: bool) -> Obstacle | None:
    follow = functools.partial(_followed, depth + 1, converted)
    written = getattr(function, "__limelight_written__", None)
    if isinstance(written, Written):
        bound = {n.id for one in written.body for n in ast.walk(one) if isinstance(n, ast.Name) and _is_bound(n)}
        look_up = functools.partial(_unbound, bound, written.names)
        scope = Scope(written.file, written.name, look_up, follow, _ATTRIBUTES)
        return ValueUse(scope, path, converted or written.converted).of(written.body)
    function = inspect.unwrap(getattr(function, "python_function", function))
    if not isinstance(function, FunctionType) or depth >= _DEEPEST:
        return UNKNOWN
    node = definition_of(function.__code__)
    if node is None:
        return UNKNOWN
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    code = function.__code__
    scope = Scope(code.co_filename, code.co_name, functools.partial(_outside, function), follow, _ATTRIBUTES)
    return ValueUse(scope, path, converted).of(body)


def _followed(depth: int, converted: bool, function: Callable[..., Any], parameter: str) -> Obstacle | None:
    return _obstacle(function, parameter, depth, converted)


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _unbound(bound: set[str], names: Mapping[str, Any], name: str) -> Any:
    return None if name in bound else _global(name, names)


def _global(name: str, names: Mapping[str, Any]) -> Any:
    return names.get(name, getattr(builtins, name, None))


def _outside(function: FunctionType, name: str) -> Any:
    """What a name in `function` stands for outside of it."""
    code = function.__code__
    if name in code.co_varnames or name in code.co_cellvars:
        return None
    if name in code.co_freevars:
        return (function.__closure__ or ())[code.co_freevars.index(name)].cell_contents
    return _global(name, function.__globals__)
