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
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from limelight.user_code import names_read

_CALLED: Final = frozenset(["watch", "is_", "is_not"])  # a tape's method, and the functions of `operator`


def asks(function: Callable[..., Any]) -> bool:
    """Whether the code of `function`, or of a function of the user's that it calls, asks for identities."""
    return any(_asks(scope.code) for scope in names_read.scopes(function))


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
