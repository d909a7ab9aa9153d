"""Where in a program each node of a graph belongs: its lane, and the path of modules, scopes and functions around it.

Lanes partition the nodes. What a gradient wrote is "backward"; an optimiser's update is "update", and so is what only
such updates read, whatever else is made of gradients without going into another one, and what is written to variables
after a gradient, outside of modules, as a momentum that is kept by hand. Of the rest, what follows the
last module is "loss", if the graph has a backward pass, and so is what is made of a module's results and goes into no
other, where several models are trained; all others are "forward". A gradient that is differentiated in its turn is no
"backward": it stands as a group among what reads it (`inner_gradients`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from limelight_widgets.folds.inner_gradients import differentiated
from limelight_widgets.folds.source_excerpts import definition_line, line_title, own_stack

Lane = Literal["forward", "loss", "backward", "update"]
LANES: tuple[Lane, ...] = ("forward", "loss", "backward", "update")
_GRADIENT = "gradient/"
_LAYER = re.compile(r"layers\.(\d+)")
_MADE_BY_PYTHON = "<"  # names such as "<lambda>" and "<module>"
_CELL = "<module>"  # what the body of a staged cell is called
_ROUNDS = 3  # of modules that are called in turns with the same ops, from which on these are of a loop
_ANYWHERE = frozenset({"constant", "read_variable", "full", "zeros", "ones", "arange", "eye"})


class Segment(NamedTuple):
    """One step of a path: a call of a module, a name scope, a function, a gradient that is differentiated in its turn.

    `key` tells it from its siblings, the same in each trace; `at` is the line that calls and `defined` that where what
    is called begins, both None where not known.
    """

    key: str
    kind: Literal["module", "optimiser", "variable", "scope", "function", "gradient"]
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
    ops = [str(node.op) for node in nodes]
    gradient = [(node.scope or "").startswith(_GRADIENT) for node in nodes]
    writes = [op.startswith("assign") for op in ops]
    changes = [one or _is_update(call) for one, call in zip(writes, calls, strict=True)]
    inner = differentiated(gradient, [node.stack for node in nodes], inputs, changes)
    outer = [one and not within for one, within in zip(gradient, inner, strict=True)]
    called = [None if within else call for call, within in zip(calls, inner, strict=True)]
    sites = _sites(nodes, ops) if any(outer) else ()
    chosen = lanes(called, outer, inputs, sites, writes)
    helpers = _HelperCalls(function)
    before = []
    for i, (node, call, lane) in enumerate(zip(nodes, calls, chosen, strict=True)):
        if inner[i]:
            before.append(helpers.of_inner_gradient(node))
        elif lane == "backward":
            before.append(helpers.of_gradient(node, call, [nodes[k] for k in inputs[i] if k >= 0]))
        else:
            before.append(helpers.of(node, ops[i], call))
    again = helpers.repeated()  # a function that calls a model once would only hide it
    models = {f for functions, call in zip(before, called, strict=True) if call is not None for f in functions}
    known: dict[Any, Place] = {}
    result: list[Place] = []
    last: tuple[Any, ...] = ()
    for node, call, of_ops, functions in zip(nodes, calls, chosen, before, strict=True):
        if last and call is last[0] and functions is last[1] and (of_ops, node.scope) == last[2:]:
            result.append(result[-1])  # of most nodes: what follows compares lines and names
            continue
        last = (call, functions, of_ops, node.scope)
        with_model = functions and functions[0] in models and _name(functions[0]) in again
        lane = "forward" if with_model and of_ops == "loss" else of_ops  # after the last module, but with it
        key = (call, node.scope, lane, functions)
        place = known.get(key)
        if place is None:
            modules = () if call is None else tuple([_of_call(one) for one in call.chain()])
            repeats = [
                f for f in functions
                if f.kind == "gradient" or _name(f) in again or (call is None and f not in models)
            ]  # fmt: skip
            around = repeats if call is not None or any(_name(f) in again for f in functions) else functions
            scopes = _scopes(node.scope)
            path = (*around, *modules, *scopes) if call is not None else (*scopes, *around)
            place = known[key] = Place(lane, path)
        result.append(place)
    return result


def _sites(nodes: Sequence[Any], ops: Sequence[str]) -> list[tuple[str, int]]:
    """For each node its op, and a number for the lines that led to it."""
    numbers: dict[Any, int] = {}
    known: dict[int, int] = {}  # by the identity of the lines, which most nodes share
    result = []
    for node, op in zip(nodes, ops, strict=True):
        number = known.get(id(node.stack))
        if number is None:
            number = known[id(node.stack)] = numbers.setdefault(node.stack, len(numbers))
        result.append((op, number))
    return result


def lanes(
    calls: Sequence[Any],
    gradient: Sequence[bool],
    inputs: Sequence[Sequence[int]],
    sites: Sequence[object],
    writes: Sequence[bool],
) -> list[Lane]:
    """The lane of each node.

    Args:
        calls: the module call of each, or None.
        gradient: whether a gradient wrote it.
        inputs: for each the indices of the nodes that it reads from, -1 for an input of the graph.
        sites: for each what is the same in each round of a loop: its op, and the lines that led to it; asked of those
            with a gradient alone.
        writes: whether each writes to a variable.
    """
    count = len(calls)
    updates = [_is_update(call) for call in calls]
    if not any(gradient) and not any(updates):
        return ["forward"] * count
    into = list(gradient)  # whether it goes into a gradient
    for i in range(count - 1, -1, -1):
        if into[i]:
            for k in inputs[i]:
                if k >= 0:
                    into[k] = True
    module = [i for i in range(count) if calls[i] is not None and not gradient[i] and not updates[i]]
    last = module[-1] if module and any(gradient) else count
    first = gradient.index(True) if any(gradient) else count
    result: list[Lane] = []
    for i in range(count):
        # What a loss makes of the values of an inner gradient is read by no gradient, and is no update: those begin
        # with what reads a gradient itself.
        of_gradient = not into[i] and any(k >= 0 and (gradient[k] or result[k] == "update") for k in inputs[i])
        if gradient[i] and not updates[i]:
            result.append("backward")
        elif updates[i] or of_gradient or (not into[i] and writes[i] and calls[i] is None and i > first):
            result.append("update")
        else:
            result.append("loss" if i > last else "forward")
    if any(gradient):
        result = _with_earlier_losses(result, calls, inputs, sites)
    return _with_what_updates_alone_read(result, calls, inputs)


def _is_update(call: Any) -> bool:
    """Whether a module's call is that of an optimiser."""
    while call is not None and call.outer is not None:
        call = call.outer
    return call is not None and bool(call.kind == "optimiser")


def _with_earlier_losses(
    chosen: list[Lane], calls: Sequence[Any], inputs: Sequence[Sequence[int]], sites: Sequence[object]
) -> list[Lane]:
    """The same lanes, but what is made of a module's results and goes into no module is of a loss, too.

    So is that of a discriminator, after which the generator's is computed. What a loop does after each of its calls, as
    to count something, stays with the calls.
    """
    model = [lane == "forward" and call is not None for lane, call in zip(chosen, calls, strict=True)]
    goes_on = list(model)
    for i in range(len(chosen) - 1, -1, -1):
        for k in inputs[i] if goes_on[i] and chosen[i] != "update" else ():  # what is updated may be read again
            goes_on[k] |= k >= 0
    after = list(model)
    rounds: dict[object, set[int]] = {}
    called = 0  # how often modules were called, one or several in a row
    for i, row in enumerate(inputs):
        called += model[i] and not (i and model[i - 1])
        after[i] |= any(k >= 0 and after[k] and chosen[k] == "forward" for k in row)
        rounds.setdefault(sites[i], set()).add(called)
    return [
        "loss" if lane == "forward" and after[i] and not goes_on[i] and len(rounds[sites[i]]) < _ROUNDS else lane
        for i, lane in enumerate(chosen)
    ]


def _with_what_updates_alone_read(
    chosen: list[Lane], calls: Sequence[Any], inputs: Sequence[Sequence[int]]
) -> list[Lane]:
    """The same lanes, but what no module makes and only updates read, as a learning rate, is of the update, too."""
    if "update" not in chosen:
        return chosen
    readers: list[list[int]] = [[] for _ in chosen]
    for i, row in enumerate(inputs):
        for k in row:
            if k >= 0:
                readers[k].append(i)
    for i in range(len(chosen) - 1, -1, -1):
        if chosen[i] in {"forward", "loss"} and calls[i] is None and readers[i]:
            chosen[i] = "update" if all(chosen[k] == "update" for k in readers[i]) else chosen[i]
    return chosen


def _scopes(scope: str | None) -> tuple[Segment, ...]:
    parts = (scope or "").removeprefix(_GRADIENT).split("/")
    return tuple([Segment(part, "scope", part) for part in parts if part])


def _of_call(call: Any) -> Segment:
    layer = _LAYER.fullmatch(call.name)  # of a sequence, which says nothing by its name
    name = f"{layer[1]}: {call.cls}" if layer and call.kind == "module" else call.name
    title = name if call.ordinal == 1 else f"{name} (call {call.ordinal})"
    return Segment(call.key, call.kind, title, call.cls if call.kind != "variable" else "", call.at, call.defined)


class _HelperCalls:
    """Which calls of the user's own functions, by the traced one, a node was written in, outermost first.

    A function that is called again, after ops that are not its own, is called a second time: rounds of a loop are told
    apart, and can be found to be equal. Ops of a gradient know no callers: they belong to the call whose values they
    read, or to that of the gradient that they read.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._count: dict[tuple[str, ...], int] = {}  # of the calls of a function in another
        self._now: list[tuple[Segment, Segment]] = []  # the last call: each function without its number, and with it
        self._outermost: tuple[tuple[Segment, ...], tuple[Segment, ...]] = ((), ())  # those of the last call
        self._known: dict[int, tuple[Any, tuple[Segment, ...]]] = {}  # by the identity of the stack
        self._told: tuple[Any, Any] = (None, None)  # line and calls of the last node
        self._plain: dict[Any, tuple[Segment, ...]] = {}  # by the stack, or by the module's call that it is in
        self._last: dict[Any, tuple[Segment, ...]] = {}  # by the line, or that call
        self._order: dict[Segment, int] = {}  # of the outermost calls
        self._within: dict[tuple[Segment, Any], tuple[Segment, ...]] = {}  # by the outermost call, and the line
        self._of: dict[int, tuple[Segment, ...]] = {}  # by the identity of a node
        self._definitions: dict[str, dict[tuple[str, int], None]] = {}  # where functions of a name begin, as they come
        self._begins: dict[Any, tuple[str, int]] = {}  # the same by their lines

    def of(self, node: Any, op: str, call: Any) -> tuple[Segment, ...]:
        """The calls around a node that no gradient wrote."""
        if not node.stack:
            return ()
        begin, plain = self._known.get(id(node.stack)) or self._begin_and_plain(node, call)
        if op in _ANYWHERE:  # passes move these
            result = self._last.get(begin, plain)
        else:
            result = self._last[begin] = self._numbered(plain)
        if result and (begin is not self._told[0] or result is not self._told[1]):
            self._order.setdefault(result[0], len(self._order))
            self._within[result[0], begin] = result
            self._told = begin, result
        self._of[id(node)] = result
        return result

    def _begin_and_plain(self, node: Any, call: Any) -> tuple[Any, tuple[Segment, ...]]:
        """The line or module's call that a node begins with, and the calls around it, without their numbers."""
        begin = _begin(node, call)
        lines = node.stack if call is None else begin
        plain = self._plain.get(lines)
        if plain is None:
            calls = _functions(node, call, self._function)
            plain = self._plain[lines] = tuple([self._segment(inner, outer) for inner, outer in calls])
        known = self._known[id(node.stack)] = begin, plain
        return known

    def of_inner_gradient(self, node: Any) -> tuple[Segment, ...]:
        """The gradient that a node is of, by the line that asks for it, and the calls around that line."""
        asked = node.stack[1:]
        plain = self._plain.get(asked)
        if plain is None:
            calls = [self._segment(inner, outer) for inner, outer in _functions_of(asked, self._function)]
            title = line_title(asked[0].label, asked[0].line, asked[0].text).partition(" · ")[
                0
            ]  # its box tells the line
            gradient = Segment(f"gradient@{asked[0].line}", "gradient", f"∇ {title}", at=asked[0])
            plain = self._plain[asked] = (*calls, gradient)
        if str(node.op) in _ANYWHERE:
            return self._last.get(asked, plain)
        result = self._of[id(node)] = self._last[asked] = self._numbered(plain)
        return result

    def _segment(self, inner: Any, outer: Any) -> Segment:
        """The call, on the line `outer`, of the function that `inner` is a line of; two of one name are two."""
        begin = self._begins.get(inner)
        if begin is None:
            begin = self._begins[inner] = inner.file, definition_line(inner)
        known = self._definitions.setdefault(inner.function, {})
        known.setdefault(begin)
        number = list(known).index(begin) + 1
        if number == 1:
            return Segment(inner.function, "function", inner.function, at=outer)
        where = f"{inner.label} line {begin[1]}" if begin[1] else inner.label
        return Segment(f"{inner.function}@{number}", "function", f"{inner.function} ({where})", at=outer)

    def _numbered(self, plain: tuple[Segment, ...]) -> tuple[Segment, ...]:
        if plain is self._outermost[0]:
            return self._outermost[1]
        common = 0
        while common < min(len(plain), len(self._now)) and self._now[common][0] == plain[common]:
            common += 1
        del self._now[common:]
        for step in plain[common:]:
            at = (*[one.key for _, one in self._now], step.key)
            number = self._count[at] = self._count.get(at, 0) + 1
            again = step._replace(key=f"{step.key}#{number}", title=f"{step.title} (call {number})")
            self._now.append((step, step if number == 1 else again))
        self._outermost = plain, tuple([one for _, one in self._now])
        return self._outermost[1]

    def repeated(self) -> set[str]:
        """The functions that are called again."""
        times = Counter(at[-1] for at in self._count)
        for at, number in self._count.items():
            times[at[-1]] += number - 1
        return {name for name, number in times.items() if number > 1}

    def of_gradient(self, node: Any, call: Any, read: Sequence[Any]) -> tuple[Segment, ...]:
        """The calls around the op that a node of a gradient belongs to; `read` are the nodes that it reads from."""
        if not node.stack:
            return ()
        begin = _begin(node, call)
        known = self._last.get(begin, ())
        if known and call is None:
            near = [at[0] for one in read if (at := self._of.get(id(one))) and _name(at[0]) == _name(known[0])]
            if near:  # an op reads what its own call or earlier ones have made
                known = self._within.get((max(near, key=self._order.__getitem__), begin), known)
        self._of[id(node)] = known
        if known:
            self._last[begin] = known
        return known


def _name(step: Segment) -> str:
    return step.key.partition("#")[0]


def _begin(node: Any, call: Any) -> Any:
    if call is None:
        return node.stack[0]
    while call.outer is not None:
        call = call.outer
    return call


def _functions(node: Any, call: Any, function: str) -> Sequence[tuple[Any, Any]]:
    """The user's functions that the traced one called, down to the node's own, or to that which called its module.

    Of each a line of its own, and the line that called it.
    """
    stack = own_stack(node.stack, function)
    if call is not None:
        outermost = call.chain()[0].at
        stack = stack[stack.index(outermost) :] if outermost in stack else ()
    return _functions_of(stack, function)


def _functions_of(stack: Sequence[Any], function: str) -> Sequence[tuple[Any, Any]]:
    """The same by the lines that led to it."""
    stack = own_stack(stack, function)
    if len(stack) < 2 or stack[-1].function not in {function, _CELL}:
        return ()
    pairs = zip(reversed(stack[:-1]), reversed(stack[1:]), strict=True)
    return [(inner, outer) for inner, outer in pairs if not inner.function.startswith(_MADE_BY_PYTHON)]
