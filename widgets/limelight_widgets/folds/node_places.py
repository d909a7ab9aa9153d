"""Where in a program each node of a graph belongs: its lane, and the path of modules, scopes and functions around it.

Lanes partition the nodes. What a gradient wrote is "backward"; an optimiser's update is "update", and so is what only
such updates read, whatever else is made of gradients without going into another one, and what is written to variables
after a gradient, outside of modules, as a momentum that is kept by hand; running the model again on what a gradient has
made is none. Of the rest, what follows the
last module is "loss", if the graph has a backward pass, and so is what is made of a module's results and goes into no
other, where several models are trained; all others are "forward". A gradient that is differentiated in its turn is no
"backward": it stands as a group among what reads it (`inner_gradients`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import groupby
from typing import Any, Literal, NamedTuple

from limelight_widgets.folds.gradient_origins import origins
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


def places(nodes: Sequence[Any], ops: Sequence[str], inputs: Sequence[Sequence[int]], function: str) -> list[Place]:
    """The place of each node of a graph; nodes of one line and module have the same object.

    Args:
        nodes: the nodes in execution order.
        ops: the name of the op of each.
        inputs: for each node the indices of the nodes that it reads from; -1 is an input of the graph.
        function: the graph's name, which ends the stacks of its nodes.
    """
    stacks, scopes = [node.stack for node in nodes], [node.scope or "" for node in nodes]
    known = {id(stack): getattr(stack[0], "call", None) if stack else None for stack in stacks}
    calls = list(map(known.__getitem__, map(id, stacks)))
    of_gradient = {scope: scope.startswith(_GRADIENT) for scope in set(scopes)}
    gradient = list(map(of_gradient.__getitem__, scopes))
    writing = {op: op.startswith("assign") for op in set(ops)}
    writes = list(map(writing.__getitem__, ops))
    inner = [False] * len(nodes)
    if any(gradient):
        changes = [one or _is_update(call) for one, call in zip(writes, calls, strict=True)]
        inner = differentiated(gradient, stacks, inputs, changes)
    outer = [one and not within for one, within in zip(gradient, inner, strict=True)]
    called = [None if within else call for call, within in zip(calls, inner, strict=True)] if any(inner) else calls
    sites = _sites(stacks, ops) if any(outer) else ()
    chosen = lanes(called, outer, inputs, sites, writes)
    if "update" in chosen:
        chosen = _with_the_model_run_again(
            chosen, called, inputs, list(zip(ops, [stack[:1] for stack in stacks], strict=True)), writes
        )
    helpers = _HelperCalls(function)
    origin = origins(outer, stacks, ops, inputs) if any(outer) else ()
    before: list[tuple[int, int, tuple[Segment, ...]]] = []  # the calls around nodes, from one to another
    moved = list(map(_ANYWHERE.__contains__, ops))
    for start, stop in _alike(stacks, scopes, chosen, moved, inner):
        if inner[start]:
            before += [(i, i + 1, helpers.of_inner_gradient(i, stacks[i], moved[i])) for i in range(start, stop)]
        elif chosen[start] == "backward":
            before += [(i, i + 1, helpers.of_gradient(i, stacks[i], calls[i], origin[i])) for i in range(start, stop)]
        else:
            before.append((start, stop, helpers.of(range(start, stop), stacks[start], moved[start], calls[start])))
    again = helpers.repeated()  # a function that calls a model once would only hide it
    models = {f for start, _, functions in before if called[start] is not None for f in functions}
    places_of: dict[Any, Place] = {}
    result: list[Place] = []
    for start, stop, functions in before:
        call, scope, lane = calls[start], scopes[start], chosen[start]
        if functions and lane == "loss" and functions[0] in models and _name(functions[0]) in again:
            lane = "forward"  # after the last module, but with it
        key = (call, scope, lane, functions)
        place = places_of.get(key)
        if place is None:
            place = places_of[key] = Place(lane, _path(call, scope, functions, again, models))
        result += [place] * (stop - start)
    return result


def _alike(
    stacks: Sequence[Any], scopes: Sequence[str], chosen: Sequence[Lane], moved: Sequence[bool], inner: Sequence[bool]
) -> Iterator[tuple[int, int]]:
    """Consecutive nodes that are in the same place, from one to another."""
    start = 0
    for _, run in groupby(zip(map(id, stacks), scopes, chosen, moved, inner, strict=True)):
        stop = start + len(list(run))
        yield start, stop
        start = stop


def _path(
    call: Any, scope: str, functions: tuple[Segment, ...], again: Set[str], models: Set[Segment]
) -> tuple[Segment, ...]:
    """The path of nodes of a module's call and a scope, in these calls of functions."""
    modules = () if call is None else tuple([_of_call(one) for one in call.chain()])
    repeats = [f for f in functions if f.kind == "gradient" or _name(f) in again or (call is None and f not in models)]
    around = repeats if call is not None or any(_name(f) in again for f in functions) else functions
    scoped = _scopes(scope)
    return (*around, *modules, *scoped) if call is not None else (*scoped, *around)


def _sites(stacks: Sequence[Any], ops: Sequence[str]) -> list[tuple[str, int]]:
    """For each node its op, and a number for the lines that led to it."""
    numbers: dict[Any, int] = {}
    known = {key: numbers.setdefault(stack, len(numbers)) for key, stack in {id(one): one for one in stacks}.items()}
    return list(zip(ops, map(known.__getitem__, map(id, stacks)), strict=True))


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
    known = {id(call): _is_update(call) for call in calls}
    updates = list(map(known.__getitem__, map(id, calls)))
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


def _with_the_model_run_again(
    chosen: list[Lane],
    calls: Sequence[Any],
    inputs: Sequence[Sequence[int]],
    written: Sequence[object],
    writes: Sequence[bool],
) -> list[Lane]:
    """The same lanes, but where nothing is updated, running the model on what a gradient has made is no update.

    As in meta-learning: weights are moved along a gradient, and the loss is computed with them. What runs the model is
    a module's call, or what is `written`, op and line, like something before the gradient; what leads there, and what
    is made of it, goes with it.
    """
    moved = [lane == "update" for lane in chosen]
    if any(one and (writes[i] or _is_update(calls[i])) for i, one in enumerate(moved)):
        return chosen
    before = {one for one, lane in zip(written, chosen, strict=True) if lane in {"forward", "loss"}}
    again = [one and (calls[i] is not None or written[i] in before) for i, one in enumerate(moved)]
    leads = list(again)
    for i in range(len(chosen) - 1, -1, -1):
        for k in inputs[i] if leads[i] else ():
            leads[k] |= k >= 0 and moved[k]
    for i, row in enumerate(inputs):
        again[i] |= moved[i] and any(k >= 0 and again[k] for k in row)
    last = max([i for i, call in enumerate(calls) if call is not None and chosen[i] != "backward"], default=len(chosen))
    anew: list[Lane] = ["forward" if i <= last else "loss" for i in range(len(chosen))]
    return [anew[i] if again[i] or leads[i] else lane for i, lane in enumerate(chosen)]


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
    apart, and can be found to be equal. Ops of a gradient know no callers: they belong to the call of their op.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._count: dict[tuple[str, ...], int] = {}  # of the calls of a function in another
        self._now: list[tuple[Segment, Segment]] = []  # the last call: each function without its number, and with it
        self._outermost: tuple[tuple[Segment, ...], tuple[Segment, ...]] = ((), ())  # those of the last call
        self._known: dict[int, tuple[Any, tuple[Segment, ...]]] = {}  # by the identity of the stack
        self._plain: dict[Any, tuple[Segment, ...]] = {}  # by the stack, or by the module's call that it is in
        self._last: dict[Any, tuple[Segment, ...]] = {}  # by the line, or that call
        self._of: dict[int, tuple[Segment, ...]] = {}  # by the node
        self._definitions: dict[str, dict[tuple[str, int], None]] = {}  # where functions of a name begin, as they come
        self._begins: dict[Any, tuple[str, int]] = {}  # the same by their lines

    def of(self, nodes: range, stack: Any, moved: bool, call: Any) -> tuple[Segment, ...]:
        """The calls around nodes that no gradient wrote; `moved` are those of ops that passes move."""
        if not stack:
            return ()
        begin, plain = self._known.get(id(stack)) or self._begin_and_plain(stack, call)
        if moved:
            result = self._last.get(begin, plain)
        else:
            result = self._last[begin] = self._numbered(plain)
        self._of.update(dict.fromkeys(nodes, result))
        return result

    def _begin_and_plain(self, stack: Any, call: Any) -> tuple[Any, tuple[Segment, ...]]:
        """The line or module's call that nodes begin with, and the calls around it, without their numbers."""
        begin = _begin(stack, call)
        lines = stack if call is None else begin
        plain = self._plain.get(lines)
        if plain is None:
            calls = _functions(stack, call, self._function)
            plain = self._plain[lines] = tuple([self._segment(inner, outer) for inner, outer in calls])
        known = self._known[id(stack)] = begin, plain
        return known

    def of_inner_gradient(self, node: int, stack: Any, moved: bool) -> tuple[Segment, ...]:
        """The gradient that a node is of, by the line that asks for it, and the calls around that line."""
        asked = stack[1:]
        plain = self._plain.get(asked)
        if plain is None:
            calls = [self._segment(inner, outer) for inner, outer in _functions_of(asked, self._function)]
            title = line_title(asked[0].label, asked[0].line, asked[0].text).partition(" · ")[
                0
            ]  # its box tells the line
            gradient = Segment(f"gradient@{asked[0].line}", "gradient", f"∇ {title}", at=asked[0])
            plain = self._plain[asked] = (*calls, gradient)
        if moved:
            return self._last.get(asked, plain)
        result = self._of[node] = self._last[asked] = self._numbered(plain)
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

    def of_gradient(self, node: int, stack: Any, call: Any, origin: int) -> tuple[Segment, ...]:
        """The calls around the op that a node of a gradient belongs to, `origin` if that is known."""
        if not stack:
            return ()
        begin = _begin(stack, call)
        known = self._last.get(begin, ())
        if call is None and known:
            known = self._of.get(origin, known)
        self._of[node] = known
        if known:
            self._last[begin] = known
        return known


def _name(step: Segment) -> str:
    return step.key.partition("#")[0]


def _begin(stack: Any, call: Any) -> Any:
    if call is None:
        return stack[0]
    while call.outer is not None:
        call = call.outer
    return call


def _functions(stack: Any, call: Any, function: str) -> Sequence[tuple[Any, Any]]:
    """The user's functions that the traced one called, down to the node's own, or to that which called its module.

    Of each a line of its own, and the line that called it.
    """
    stack = own_stack(stack, function)
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
