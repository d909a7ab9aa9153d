"""What does a helper function of the notebook read when it runs?

A staged cell must be traced again when a helper that it calls is redefined in another cell, and also when a helper of
that helper is. So the names that the notebook's own functions and classes read belong to the cell's inputs, wherever
the functions are kept: in lists and dictionaries, attributes, closures, as defaults. Code that was imported is taken as
it is.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from limelight.core.tensor import Tensor
from limelight.core.variable import Resource, Variable
from limelight.staging.function import Function
from limelight.user_code.names_read import contents

EVALUATE = frozenset(["eval", "exec"])
"""Builtins by which text leads to names, told with the names that are read."""
MOST_OBJECTS = 200  # that one value is looked through for functions
MOST_MEMBERS = 200  # a class with more of them is no helper written in a cell
MOST_LAYERS = 20  # a wrapper that wraps itself must not hang the cell


def reads_of(value: object, namespace: Mapping[str, Any]) -> frozenset[str]:
    """The global names that `value`'s code reads, when it is written in the notebook whose globals are `namespace`.

    `value` may be a function, a staged function, a bound method, a partial, a class written in a cell or an instance
    of one, or a container or a closure that leads to such.

    >>> scale = 2.0
    >>> def helper(x):
    ...     return [scale * y for y in x]
    >>> sorted(reads_of(helper, helper.__globals__))
    ['scale']
    """
    if isinstance(value, list | tuple | dict | set | frozenset) and _is_data(value):
        return frozenset()  # most containers: this is asked at each call that has others
    names: set[str] = set()
    for x in _leads_to(value, namespace.get("__name__")):
        if isinstance(x, Function):
            names |= set(getattr(x, "reads", ()))  # a staged cell's
        for function in _functions(x, namespace):
            names |= global_loads(function.__code__)
    return frozenset(name for name in names if name in namespace or name in EVALUATE)


@functools.lru_cache(maxsize=1024)
def global_loads(code: CodeType) -> frozenset[str]:
    """The names that `code`, or a function or class inside it, looks up among its globals, or may evaluate."""
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    }
    if not EVALUATE.isdisjoint(names):
        names.update(*[re.findall(r"[^\W\d]\w*", text) for text in code.co_consts if isinstance(text, str)])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= global_loads(constant)
    return frozenset(names)


def _functions(value: object, namespace: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The notebook's own functions that make up `value`."""
    functions = [layer for layer in _layers(value) if isinstance(layer, FunctionType)]
    yield from (function for function in functions if function.__globals__ is namespace)
    module = namespace.get("__name__")
    if functions or module is None:
        return
    cls = value if isinstance(value, type) else type(value)
    kinds: list[type] = list(cls.__mro__)
    if isinstance(value, type):  # classes made of it run the code of its own class
        kinds += inspect.getmro(type(value))
    for base in kinds:
        if base.__module__ == module:
            for member in list(vars(base).values())[:MOST_MEMBERS]:
                inner = member.fget if isinstance(member, property) else member
                yield from (f for f in _layers(inner) if isinstance(f, FunctionType) and f.__globals__ is namespace)


def _is_data(container: Any) -> bool:
    elements = container.values() if isinstance(container, dict) else container
    return _PLAIN.issuperset(map(type, itertools.islice(elements, MOST_OBJECTS)))


def _leads_to(value: object, module: str | None) -> Iterator[object]:
    """`value`, and what is kept in it, but for plain data; the first `MOST_OBJECTS` of them."""
    met: dict[int, object] = {}
    waiting = deque([value])
    while waiting and len(met) < MOST_OBJECTS:
        x = waiting.popleft()
        if id(x) not in met:
            met[id(x)] = x
            yield x
            waiting += [part for part in _parts(x, module) if not isinstance(part, _DATA)]


def _parts(x: object, module: str | None) -> Iterable[object]:
    """What `x` keeps: elements, what a function closes over and defaults to, attributes of the user's objects."""
    if isinstance(x, dict | list | tuple | set | frozenset | deque):
        elements = x.values() if isinstance(x, dict) else x
        return itertools.islice(elements, MOST_OBJECTS)
    if isinstance(x, FunctionType):
        cells = [contents(cell) for cell in x.__closure__ or ()]
        return [*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if inspect.ismethod(x):
        return [x.__func__, x.__self__]
    if isinstance(x, Function) and not hasattr(x, "reads"):
        return [x.python_function]
    if isinstance(x, SimpleNamespace) or (type(x).__module__ == module and not isinstance(x, type)):
        return itertools.islice(getattr(x, "__dict__", {}).values(), MOST_OBJECTS)
    return ()


_PLAIN = frozenset([Tensor, Variable, np.ndarray, bool, int, float, complex, str, bytes, type(None)])
_DATA = (Tensor, Resource, np.ndarray, np.generic, CellType, bool, int, float, complex, str, bytes, type(None))


def _layers(value: object) -> Iterator[object]:
    """`value`, and what is inside when it is a partial, a method, a staged function or a well-behaved wrapper."""
    for _ in range(MOST_LAYERS):
        yield value
        if isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, staticmethod | classmethod) or inspect.ismethod(value):
            value = value.__func__
        else:
            value = _static(value, "python_function") or _static(value, "__wrapped__")
            if value is None:
                return


def _static(value: object, name: str) -> object:
    """`value.name` where that cannot run the user's code: a plain attribute, or a property of ours."""
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and name in own:
        return own[name]
    if type(value).__module__.partition(".")[0] in ("limelight", "limelight_kernel"):
        return getattr(value, name, None)
    return None
