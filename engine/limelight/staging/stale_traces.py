"""Traces that keep a part or a setting of a module as it was, where the module is given another one.

A trace means the layers, the variables and the settings that it was made with: those are its captures and constants.
So `net.head = ll.nn.Dense(3)`, or `optimizer.weight_decay = 0.1`, does nothing to traces that are there. It is said at
that line. Which traces: those that capture a variable of the part, or have nodes that a call of the module has written.

Nothing is said where the last reference to the variables goes with the change: then the next call raises
DeadVariableError, or traces anew. Nor of numbers that are attributes of the user's own modules, and may be anything:
`explain.baked` reads the code, and knows. Nor of staged cells, which compare what they read at each run.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from limelight.core.module_calls import ModuleCall
from limelight.core.name_scopes import graph_writer
from limelight.core.variable import Variable
from limelight.errors import LostChangeWarning
from limelight.graph.printer import nested
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function, alive
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

_PLAIN: Final = (bool, int, float, str, type(None))
_calls: Final[weakref.WeakKeyDictionary[ConcreteFunction, tuple[ModuleCall, ...]]] = weakref.WeakKeyDictionary()


class Stale(NamedTuple):
    """A trace that means what is exchanged, and the uids of the variables of it that it has captured."""

    function: Function
    trace: ConcreteFunction
    held: frozenset[int]

    def means_the_old_one(self) -> bool:
        """Whether it still will when the old part has no other reference than it had elsewhere."""
        return not self.held or any(x is not None and x._uid in self.held for x in self.trace.captures)


def of_part(part: Any, variables: Iterable[Variable]) -> list[Stale]:
    """The traces that were made with `part`, a module or a variable, of which those are the variables."""
    if graph_writer() is not None:
        return []
    uids = {variable._uid for variable in variables}
    found = []
    for function, trace in _traces():
        held = frozenset([x._uid for x in trace.captures if isinstance(x, Variable) and x._uid in uids])
        if held or _was_called(part, trace):
            found.append(Stale(function, trace, held))
    return found


def of_setting(module: Any, old: Any, new: Any) -> list[Stale]:
    """The traces that have `old`, a setting of `module`, for a constant; none where `new` is the same."""
    if not (_is_setting(old) and _is_setting(new)) or (isinstance(old, _PLAIN) and old == new):
        return []
    if graph_writer() is not None:
        return []
    return [Stale(function, trace, frozenset()) for function, trace in _traces() if _was_called(module, trace)]


def warn(found: Sequence[Stale], change: str) -> None:
    """Warns at the user's line of what has just changed: LostChangeWarning.

    Args:
        found: what `of_part` or `of_setting` gave before the change.
        change: the change in words, with "{names}" for the staged functions.
    """
    functions = list(dict.fromkeys(stale.function for stale in found if stale.means_the_old_one()))
    if not functions:
        return
    names = " and ".join([f"`{function.name}`" for function in functions])
    clear = " and ".join([_clearing(function) for function in functions])
    line = source_line.user_line() or source_line.Source("<unknown>", 1, "")
    call = "call traces" if len(functions) == 1 else "calls trace"
    message = (
        f"{change.format(names=names)}{source_line.at(line)}. Call {clear}, before the change or after it, so that "
        f"the next {call} with what is there now"
    )
    warn_at(line, message, LostChangeWarning)


def _traces() -> list[tuple[Function, ConcreteFunction]]:
    return [
        (function, trace)
        for function in alive()
        if function.follows_sharing and not function.is_for_question
        for trace in function.trace_cache
    ]


def _is_setting(value: Any) -> bool:
    return isinstance(value, _PLAIN) or callable(value)


def _was_called(module: Any, trace: ConcreteFunction) -> bool:
    calls = _calls.get(trace)
    if calls is None:
        calls = _calls[trace] = tuple(_calls_in(trace))
    return any(call.module() is module for call in calls)


def _calls_in(trace: ConcreteFunction) -> set[ModuleCall]:
    """The calls that have written the nodes of a trace, and of what it calls; with the calls around them."""
    calls: set[ModuleCall] = set()
    for graph in (trace.graph, *[function.graph for function in nested(trace.graph)]):
        lines = {id(line): line for node in graph.nodes for line in node.stack}  # equal ones differ in their call
        for line in lines.values():
            call = getattr(line, "call", None)
            while call is not None and call not in calls:
                calls.add(call)
                call = call.outer
    return calls


def _clearing(function: Function) -> str:
    if hasattr(function.python_function, "__limelight_instance__"):
        return f".{function.name}.clear_cache() of the object"
    return f"{function.name}.clear_cache()" if function.name.isidentifier() else "clear_cache() of the staged function"
