"""Does code ask which object something is? `a is b`, `id(a)`, `tape.watch(a)`: told by its instructions.

To a trace each argument is an object of its own, so that code which asks gets other answers than in Python, unless the
trace knows which arguments are one and the same. `x is None` asks for no argument, and `x in xs` ends in an error where
tensors are not the same.

>>> def f(x, y):
...     return x if x is y else None
>>> asks(f), asks(lambda x: 0 if x is None else x)
(True, False)
"""

from __future__ import annotations

import dis
import functools
from collections import deque
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from limelight.user_code import source_line

_CALLED: Final = frozenset(["watch", "is_", "is_not"])  # a tape's method, and the functions of `operator`
_MOST: Final = 200


def asks(function: Callable[..., Any]) -> bool:
    """Whether the code of `function`, or of a function of the user's that it names, asks for identities."""
    waiting = deque(_functions_in(function))
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        one = waiting.popleft()
        if id(one) in seen or source_line.is_installed(one.__code__.co_filename):
            continue
        seen.add(id(one))
        if _asks(one.__code__):
            return True
        waiting += _named_in(one)
    return False


def _functions_in(x: Any) -> Iterator[FunctionType]:
    """The Python function behind something callable; runs no code of the user's."""
    while not isinstance(x, FunctionType):
        if isinstance(x, MethodType):
            x = x.__func__
        elif isinstance(x, functools.partial):
            x = x.func
        else:
            x = _attributes(x).get("__wrapped__")  # of a staged function, and of decorators that say so
            if x is None:
                return
    yield x


def _attributes(x: Any) -> dict[str, Any]:
    try:
        own: dict[str, Any] = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}


def _named_in(function: FunctionType) -> Iterator[FunctionType]:
    """The functions that the names in a function's code stand for: of its closure, and globals."""
    for cell in function.__closure__ or ():
        try:
            yield from _functions_in(cell.cell_contents)
        except ValueError:  # nothing is in it yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield from _functions_in(function.__globals__[name])


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> frozenset[str]:
    inner = [_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(code.co_names).union(*inner)


@functools.lru_cache(maxsize=1024)
def _asks(code: CodeType) -> bool:
    before = None
    for one in dis.get_instructions(code):
        if one.opname == "IS_OP" and not (before is not None and before.opname == "LOAD_CONST"):
            return True
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and one.argval == "id":
            return True
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL") and one.argval in _CALLED:
            return True
        before = one
    return any(_asks(x) for x in code.co_consts if isinstance(x, CodeType))
