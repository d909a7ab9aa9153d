"""Where did the NaN come from?

The traced graph is run step by step, not the optimised one, on copies of storages and generators. Control flow needs no
second implementation: kernels of those ops only call `.run`, so they are given functions that step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from limelight.core import dispatch
from limelight.core.storage import Storage
from limelight.core.tensor import as_tensor
from limelight.core.variable import Resource
from limelight.executors import step
from limelight.explain.fix import Fix
from limelight.explain.gradient_graph import chosen_inputs, with_gradient
from limelight.explain.nonfinite.fixes import hint_and_fix
from limelight.explain.nonfinite.origin_tracker import Figures, Origin, OriginTracker, Place, is_bad
from limelight.explain.story import Contrast, Story
from limelight.explain.story import Place as StoryPlace
from limelight.explain.subject import staged_for
from limelight.explain.without_effects import private, restored
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import Graph
from limelight.user_code import source_line
from limelight.user_code.source_line import Source


@dataclass(frozen=True)
class Nan:
    """The first op that made a number which is not finite, and the way from there.

    `op` is empty when all numbers are finite; it is "argument `x`" or the like when NaN came from outside. `function`
    is the function that the op is in, `line` the user's line, `backward` whether it happened in a gradient, and then
    `of` the op whose gradient it is (the line is that op's). `operands` and `result` are figures (None for what has no
    floating numbers). `calls` lead into the function, `way` goes on from the op, `became_nan` is where infinities
    turned to NaN. `reaches`: whether a result of the function is concerned. `hint` says why such ops make such numbers,
    `fix` what the line should be, where that is known. `str()` is all of it in sentences.

    >>> import limelight as ll
    >>> found = ll.explain.nan(lambda x: 1.0 / x, ll.constant([0.0, 1.0]))
    >>> found.op, found.reaches
    ('divide', True)
    """

    name: str
    op: str = ""
    function: str = ""
    line: Source | None = None
    backward: bool = False
    operands: tuple[Figures | None, ...] = ()
    result: Figures | None = None
    calls: tuple[str, ...] = ()
    way: tuple[Place, ...] = ()
    became_nan: Place | None = None
    reaches: bool = False
    of: str = ""
    hint: str = ""
    fix: str = ""

    def __bool__(self) -> bool:
        return bool(self.op)

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentences, and of the card."""
        if not self.op:
            return Story("NaN", f"all numbers of `{self.name}` are finite for these arguments", ("finite",))
        operands = ", ".join(str(x) for x in self.operands if x is not None) or "none"
        return Story(
            "NaN",
            self._title(),
            tuple(filter(None, (self.op, "backward" if self.backward else ""))),
            contrasts=(Contrast(self.op, operands if self.operands else "", str(self.result)),),
            places=StoryPlace.of("line", self.line),
            hints=(self.hint,) if self.hint else (),
            fixes=Fix.of_line(self.fix, self.line),
            more=tuple(self._way()),
        )

    def _title(self) -> str:
        if self.line is None and not self.function:
            return f"`{self.name}` is given {self.op}, which has NaN already"
        when = "going back, " if self.backward else ""
        where = f", in the gradient of {self.of}" if self.of else ""
        where += f" in `{self.function}`" if self.function != self.name else ""
        return f"`{self.name}`: {when}the first number that is not finite comes from {self.op}{where}"

    def _way(self) -> Iterator[str]:
        """Into the function, and on from the op."""
        yield from [f"inside: {call}" for call in reversed(self.calls)]
        if self.became_nan is not None:
            yield f"infinities become NaN at {_by_line([self.became_nan], self.line)}"
        if self.way:
            yield f"goes on through {_by_line(self.way, self.line)}"
        if not self.reaches:
            yield "no result of the function is concerned"

    __repr__ = __str__


def nan(F: Callable[..., Any], *args: Any, gradient_of: Any = None, **kwargs: Any) -> Nan:
    """Runs `F(*args, **kwargs)` node by node and names the first op that made NaN or an infinity of finite numbers.

    `F` is a staged function, or one that can be staged; it uses the trace that such a call uses, and makes it if there
    is none. `gradient_of`: go back, too, from the sum of all results, by True (all arguments and trainable variables),
    or by parameter names, tensors or variables, one or several. A function that has a tape inside needs no such help.
    Calls, branches and loops are gone into. The run changes nothing: variables and generators are copies, which begin
    as those are now. What `ll.debug.print` prints is printed, and the Python of a `py_func` runs; what that assigns to
    variables is put back.

    An op is named if it makes NaN of numbers that are not, or infinities of finite ones; so masks of infinities are
    fine. Preferred is the op whose numbers reach a result. Raises ArgumentError for an unknown `gradient_of`, and what
    running `F` raises.

    >>> import limelight as ll
    >>> @ll.function
    ... def entropy(p):
    ...     return -ll.sum(p * ll.log(p))
    >>> found = ll.explain.nan(entropy, ll.constant([0.0, 1.0]))
    >>> found.op, str(found.operands[0]), found.became_nan.op
    ('log', 'f32[2] (from 0 to 1)', 'multiply')
    """
    function = staged_for("nan", F)
    call = function._call(args, kwargs)
    entry = function._find(call.lookup) or function._trace_once(call, run=False)
    inputs = [*[call.leaves[i] for i in entry._tensor_leaves], *entry._captured()]
    inputs = [x if isinstance(x, Resource) else as_tensor(x) for x in inputs]
    graph = entry.graph
    if gradient_of is not None and gradient_of is not False:
        graph = with_gradient(
            graph, chosen_inputs("explain.nan", gradient_of, graph, inputs), function.summed_outputs(entry)
        )
    with dispatch.fresh_stack():
        return _run(function.name, graph, inputs)


def _run(name: str, graph: Graph, inputs: Sequence[Any]) -> Nan:
    """Runs the graph without effects, and tells of the origin that reaches a result, else of the first."""
    tracker = OriginTracker(name)
    copies: dict[int, Any] = {}
    payloads = [private(x._data, copies) for x in inputs]
    for payload, value in zip(payloads, graph.inputs, strict=True):
        shown = getattr(payload, "array", payload) if isinstance(payload, Storage) else payload
        tracker.given(shown, _described(graph, graph.inputs.index(value)))
    before = {id(x): x.array for x in payloads if isinstance(x, Storage)}
    io = "io" in effects_of_graph(graph).chains
    with restored() if io else nullcontext(), np.errstate(all="ignore"):  # the report says it all
        outputs = step.run(graph, payloads, [x._device for x in inputs], tracker).outputs
    written = [x.array for x in payloads if isinstance(x, Storage) and x.array is not before[id(x)]]
    bad = [x for x in (*outputs, *written) if is_bad(x)]
    origins = [cause for x in bad if (cause := tracker.origin_of([x])) is not None]
    origin = min(origins, key=tracker.origins.index) if origins else next(iter(tracker.origins), None)
    return Nan(name) if origin is None else _report(name, origin, bool(origins), graph)


def _by_line(way: Sequence[Place], origin: Source | None) -> str:
    """Places in words, neighbours of one line together; `origin` is a line that has been told."""
    said = []
    for line, group in itertools.groupby(way, key=lambda place: place.line):
        where = ", on the same line" if line is not None and line == origin else source_line.at(line)
        said.append(", ".join(dict.fromkeys(place.op for place in group)) + where)
    return "; ".join(said) if origin in [place.line for place in way] else ", ".join(said)


def _described(graph: Graph, index: int) -> str:
    kind = "argument" if index < len(graph.arguments) else "captured"
    return f"{kind} `{graph.input_names[index]}`"


def _report(name: str, origin: Origin, reaches: bool, graph: Graph) -> Nan:
    op, function, line = origin.place
    is_input = not origin.operands and line is None and " `" in op
    return Nan(
        name,
        op,
        "" if is_input else function,
        line,
        origin.backward,
        origin.operands,
        origin.result,
        origin.calls,
        tuple(origin.way),
        origin.became_nan,
        reaches,
        origin.of,
        *("", "") if is_input else hint_and_fix(origin.of or op, line, graph, origin.backward),
    )
