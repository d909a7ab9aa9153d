"""Where in a program each node of a graph belongs: its lane, and the path of modules, scopes and functions around it.

Lanes partition the nodes. What a gradient wrote is "backward"; an optimiser's update is "update", and so is whatever
else comes of a gradient without going into another one. Of the rest, what follows the last module is "loss", if the
graph has a backward pass; all others are "forward".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from limelight_widgets.folds.source_excerpts import own_stack

Lane = Literal["forward", "loss", "backward", "update"]
LANES: tuple[Lane, ...] = ("forward", "loss", "backward", "update")
_GRADIENT = "gradient/"
_LAYER = re.compile(r"layers\.(\d+)")
_MADE_BY_PYTHON = "<"  # names such as "<lambda>" and "<module>"


class Segment(NamedTuple):
    """One step of a path: a call of a module, a name scope, a function.

    `key` tells it from its siblings, the same in each trace; `at` is the line that calls and `defined` that where what
    is called begins, both None where not known.
    """

    key: str
    kind: Literal["module", "optimiser", "variable", "scope", "function"]
    title: str
    cls: str = ""
    at: Any = None
    defined: Any = None


class Place(NamedTuple):
    """The lane of a node, and the path that leads to it, outermost first."""

    lane: Lane
    path: tuple[Segment, ...]


def places(nodes: Sequence[Any], inputs: Sequence[Sequence[int]], function: str) -> list[Place]:
    """The place of each node of a graph; nodes of one line and module have the same object.

    Args:
        nodes: the nodes in execution order.
        inputs: for each node the indices of the nodes that it reads from; -1 is an input of the graph.
        function: the graph's name, which ends the stacks of its nodes.
    """
    calls = [getattr(node.stack[0], "call", None) if node.stack else None for node in nodes]
    chosen = lanes(calls, [(node.scope or "").startswith(_GRADIENT) for node in nodes], inputs)
    known: dict[Any, Place] = {}
    of_line: dict[Any, tuple[Segment, ...]] = {}  # in a function that no module calls
    result = []
    for node, call, lane in zip(nodes, calls, chosen, strict=True):
        gradient = lane == "backward"
        stack = None if call is not None else node.stack[:1] if gradient else node.stack
        key = (call, node.scope, lane, stack)
        place = known.get(key)
        if place is None:
            outer = _scopes(call, node.scope)
            if call is None and node.stack and gradient:  # of the callers of its op it knows nothing
                path = outer + of_line.get(node.stack[0], ())
            elif call is None and node.stack:
                of_line[node.stack[0]] = inner = _functions(node, function)
                path = outer + inner
            else:
                path = outer
            place = known[key] = Place(lane, path)
        result.append(place)
    return result


def lanes(calls: Sequence[Any], gradient: Sequence[bool], inputs: Sequence[Sequence[int]]) -> list[Lane]:
    """The lane of each node.

    Args:
        calls: the module call of each, or None.
        gradient: whether a gradient wrote it.
        inputs: for each the indices of the nodes that it reads from, -1 for an input of the graph.
    """
    count = len(calls)
    after, into = [False] * count, list(gradient)  # whether it comes of a gradient; whether it goes into one
    for i in range(count):
        after[i] = gradient[i] or any(k >= 0 and after[k] for k in inputs[i])
    for i in range(count - 1, -1, -1):
        if into[i]:
            for k in inputs[i]:
                if k >= 0:
                    into[k] = True
    updates = [call is not None and call.chain()[0].kind == "optimiser" for call in calls]
    module = [i for i in range(count) if calls[i] is not None and not gradient[i] and not updates[i]]
    last = module[-1] if module and any(gradient) else count

    def lane(i: int) -> Lane:
        if updates[i]:
            return "update"
        if gradient[i]:
            return "backward"
        if after[i] and not into[i]:
            return "update"
        return "loss" if i > last else "forward"

    return [lane(i) for i in range(count)]


def _scopes(call: Any, scope: str) -> tuple[Segment, ...]:
    """The path of a module's call, then that of name scopes."""
    modules = () if call is None else tuple([_of_call(one) for one in call.chain()])
    parts = (scope or "").removeprefix(_GRADIENT).split("/")
    return (*modules, *[Segment(part, "scope", part) for part in parts if part])


def _of_call(call: Any) -> Segment:
    layer = _LAYER.fullmatch(call.name)  # of a sequence, which says nothing by its name
    name = f"{layer[1]}: {call.cls}" if layer and call.kind == "module" else call.name
    title = name if call.ordinal == 1 else f"{name} (call {call.ordinal})"
    return Segment(call.key, call.kind, title, call.cls if call.kind != "variable" else "", call.at, call.defined)


def _functions(node: Any, function: str) -> tuple[Segment, ...]:
    """The functions of the user's that the traced one called, down to the node's own."""
    stack = own_stack(node.stack, function)
    if len(stack) < 2 or not any(source.function == function for source in stack):
        return ()
    pairs = zip(reversed(stack[:-1]), reversed(stack[1:]), strict=True)
    return tuple(
        [
            Segment(f"{inner.function}:{outer.line}", "function", inner.function, at=outer)
            for inner, outer in pairs
            if not inner.function.startswith(_MADE_BY_PYTHON)
        ]
    )
