"""A call, step by step: traced, optimised, run, and differentiated; recorded once, and replayed without the engine."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from limelight.core import dispatch
from limelight.executors.placement import copy_op
from limelight.explain.gradient_graph import chosen_inputs, with_gradient
from limelight.explain.norms import norm, widened
from limelight.explain.sandboxed_run import begin, inputs_of
from limelight.explain.stepping.breakpoints import stops
from limelight.explain.stepping.levels import listed
from limelight.explain.stepping.line_watch import LineWatch, Visit, shortened
from limelight.explain.stepping.portrait import Portrait, portrait
from limelight.explain.stepping.step_marks import EventMarks, Mark
from limelight.explain.subject import staged_for
from limelight.explain.without_effects import restored
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import FunctionLike, Graph, Node
from limelight.graph.printer import describe
from limelight.optimise.pass_record import PassRecord
from limelight.staging import explainer, partial_trace
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function
from limelight.staging.key import Call
from limelight.staging.state_creation import Creation
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

Kind = Literal["trace", "pass", "run", "backward", "error"]
KINDS: Final[tuple[Kind, ...]] = ("trace", "pass", "run", "backward")
_CALLED: Final = {"trace": "tracing", "pass": "passes", "run": "run", "backward": "backward", "error": "error"}
_GRADIENT: Final = "gradient/"
_MOST_CHANGES: Final = 6
_AROUND: Final = 3
_SHAPE: Final = re.compile(r"(?:variable |array )?\w+(\[[\d, ?]*\])(?:,|$)")
"""The shape in what `line_watch.seen` says of a tensor or an array; lists and numbers have none."""


class Step(NamedTuple):
    """One step. `line` is the user's, where there is one.

    `kind` is "trace" (Python runs a line, and the graph gains ops), "pass" (the optimiser has changed the graph),
    "run" (an op has run), "backward" (an op of a gradient has run) or "error". `text` is the line, the pass, or the op.
    `sees` are the names that a traced line has bound, with what Python knows of them; `records` what the graph gains,
    what a pass did, or the norm of a gradient. `value` is what an op has computed, `depth` how many calls, branches or
    loops lead to it.
    `marks` say where a shape changes, something is copied or traced again, each with words for it.

    >>> import limelight as ll
    >>> recorded = ll.explain.steps(lambda x: x + x, ll.constant([1.0, 2.0]))
    >>> [(one.text, str(one.value)) for one in recorded.of("run")]
    [('%1: f32[2] = add(%0, %0)', 'f32[2] = 2, 4')]
    """

    kind: Kind
    line: Source | None
    text: str
    sees: tuple[tuple[str, str], ...] = ()
    records: tuple[str, ...] = ()
    value: Portrait | None = None
    depth: int = 0
    marks: tuple[Mark, ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """What the graph gains or a pass did, the norm of a gradient, and what is special about the step."""
        return (*self.records, *[words for _, words in self.marks if words])

    def __str__(self) -> str:
        where = f"{self.line.label}:{self.line.line}" if self.line is not None else ""
        said = [f"{name}: {text}" for name, text in self.sees] + list(self.said)
        said += [str(self.value)] if self.value is not None else []
        return f"{self.kind:8} {where:12} {'  ' * self.depth}{self.text}" + "".join([f"\n{'':24}{one}" for one in said])


@dataclass(frozen=True)
class Recording:
    """The steps of one call. `is_cut`: there were more than were asked for; they have been left out.

    `totals` says how many there were of each kind that was cut, 0 where that is not known. `str()` lists all steps, but
    one level of a recursion alone; `of(kind)` are those of one kind.

    >>> import limelight as ll
    >>> recorded = ll.explain.steps(lambda x: x + x, ll.constant([1.0, 2.0]))
    >>> recorded.is_cut, recorded.stops("op:add")
    (False, (0, 1))
    """

    name: str
    steps: tuple[Step, ...]
    is_cut: bool = False
    totals: tuple[tuple[Kind, int], ...] = ()

    def of(self, kind: Kind) -> tuple[Step, ...]:
        """The steps of one kind."""
        return tuple([one for one in self.steps if one.kind == kind])

    def counted(self, kind: Kind) -> str:
        """How many steps of a kind there are, in words where more have been left out: "the first 1,000 of 1,529"."""
        count, totals = len(self.of(kind)), dict(self.totals)
        if kind not in totals:
            return f"{count:,}"
        return f"the first {count:,} of {totals[kind]:,}" if totals[kind] else f"the first {count:,}"

    def stops(self, wanted: str) -> tuple[int, ...]:
        """The numbers, from 0, of the steps at "line:7", "op:matmul", "nan", "shape", "copy", "retrace" or "error".

        Several are joined with commas. "shape": a name gets a value of another shape, or an op gives a shape that none
        of its inputs has.

        Raises:
            ArgumentError: another condition is asked for.

        >>> import limelight as ll
        >>> def f(x):
        ...     return ll.log(x * 0.0)
        >>> recorded = ll.explain.steps(f, ll.constant(1.0))
        >>> [recorded.steps[i].kind for i in recorded.stops("op:log")], len(recorded.stops("nan"))
        (['trace', 'run'], 1)
        >>> recorded = ll.explain.steps(lambda x: (x + x).sum(), ll.ones((2, 3)))
        >>> [recorded.steps[i].text for i in recorded.stops("shape")]  # doctest: +ELLIPSIS
        ['%2: f32[] = sum(%1...
        """
        return stops(self.steps, wanted)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        counts = [f"{_CALLED[kind]} {self.counted(kind)}" for kind in (*KINDS, "error") if self.of(kind)]
        cut = "; the rest was left out" if self.is_cut else ""
        many = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        return "\n".join([f"`{self.name}` in {many}: {', '.join(counts)}{cut}", *listed(self.steps)])

    __repr__ = __str__


def steps(F: Callable[..., Any], *args: Any, gradient_of: Any = None, most: int = 1000, **kwargs: Any) -> Recording:
    """Records the call `F(*args, **kwargs)` step by step.

    First Python's lines while it is traced, beside what the graph records; then what each pass of the optimiser
    changes; then the ops as they run, with their values; and, where asked for or where `F` has a tape inside, those of
    the gradient. Nothing that the call would change is changed, but Python code in `F` runs once, and a `py_func`
    does too. The trace is one on the side: the cache and the trace count stay as they are, except that a function
    which has not been traced at all is traced first. An error ends the recording, as its last step.

    Args:
        F: a staged function, or one that can be staged.
        *args: its arguments.
        gradient_of: go back, too, from the sum of all results: True (all arguments and trainable variables), or
            parameter names, tensors or variables. The ops are then those of the graph as traced, else as optimised.
        most: how many steps of each kind are kept.
        **kwargs: its arguments by name.

    Returns:
        The recording.

    Raises:
        ArgumentError: `F` cannot be called or is a class, or `gradient_of` is unknown.

    >>> import limelight as ll
    >>> @ll.function
    ... def double(x):
    ...     y = x + x
    ...     return y
    >>> recorded = ll.explain.steps(double, ll.constant([1.0, 2.0]))
    >>> [one.text for one in recorded.of("trace")]
    ['y = x + x', 'return y']
    >>> recorded.of("trace")[0].sees, recorded.of("trace")[0].records
    ((('y', 'f32[2], no value yet'),), ('%1: f32[2] = add(%0, %0)',))
    >>> str(recorded.of("run")[0].value)
    'f32[2] = 2, 4'
    """
    function = staged_for("steps", F)
    recorder = _Recorder(most)
    call = function._call(args, kwargs)
    entry = recorder.trace(function, call)
    if entry is not None:
        recorder.optimise(entry.function.optimised.records)
        recorder.run(entry, call, gradient_of, function.summed_outputs(entry))
    return Recording(function.name, tuple(recorder.steps), bool(recorder.totals), tuple(recorder.totals.items()))


@dataclass
class _Recorder:
    most: int
    steps: list[Step] = field(default_factory=list)
    totals: dict[Kind, int] = field(default_factory=dict)  # of the kinds that were cut, 0 where it is not known
    _again: tuple[Mark, ...] = ()  # whether the call itself would trace again, and why

    def trace(self, function: Function, call: Call) -> ConcreteFunction | None:
        """Steps of Python's lines in a trace on the side; None where that fails."""
        watch = LineWatch(self.most)
        count = function._runs
        self._again = _traced_again(function, call)
        try:
            if not len(function.trace_cache):  # makes its variables
                with watch:
                    return self._traced(watch, function._trace_once(call, run=False))
            creation = Creation(function.name, allowed=False, of_objects=False)
            with watch:
                entry = function._trace_body(call, creation)
            function._runs = count
            return self._traced(watch, entry)
        except Exception as error:  # noqa: BLE001  # the user's own, which the recording is to show at its line
            function._runs = count
            self._visits(watch.visits, _written(function) if watch.visits else None)
            self._failed(error, watch.visits[-1].line if watch.visits else None)
            return None

    def _traced(self, watch: LineWatch, entry: ConcreteFunction) -> ConcreteFunction:
        self._visits(watch.visits, entry.graph)
        if watch.is_cut:
            self.totals["trace"] = 0
        return entry

    def _visits(self, visits: Sequence[Visit], graph: Graph | None) -> None:
        own = set(graph.nodes) if graph is not None else set()
        shapes: dict[tuple[int, str], str] = {}
        for visit in visits:
            marks = (*(self._again if visit is visits[0] else ()), *visit.marks, *_other_shapes(visit, shapes))
            records = [_said(graph if node in own else None, node) for node in visit.nodes]
            self.steps.append(
                Step("trace", visit.line, visit.line.text, visit.names, tuple(records), None, visit.depth, marks)
            )

    def optimise(self, records: Sequence[PassRecord]) -> None:
        """A step for each pass that has changed something."""
        for record in records:
            if record.changes or record.removed or record.added:
                self.steps.append(Step("pass", None, str(record), (), tuple(_changes(record))))

    def run(self, entry: ConcreteFunction, call: Call, gradient_of: Any, summed: Sequence[int]) -> None:
        """Steps of the ops, without effects; `summed` are the outputs whose sum is differentiated."""
        inputs = inputs_of(entry, call)
        graph = entry.graph
        if gradient_of is not None and gradient_of is not False:
            graph = with_gradient(graph, chosen_inputs("explain.steps", gradient_of, graph, inputs), summed)
        else:
            graph = entry.function.optimised.graph
        marks = EventMarks()
        ran = _Ran(self, graph, {node.stack[0] for node in entry.graph.nodes if node.stack}, marks)
        with marks, dispatch.fresh_stack(), restored() if "io" in effects_of_graph(graph).chains else nullcontext():
            try:
                for _ in begin(graph, inputs, ran):
                    if ran.is_full:
                        self.totals |= {"run": 0, "backward": 0}
                        break
            except Exception as error:  # noqa: BLE001  # as above
                self._failed(error, None)

    def _failed(self, error: Exception, line: Source | None) -> None:
        said = str(error).splitlines() or [""]
        self.steps.append(Step("error", line, f"{type(error).__name__}: {said[0]}", (), tuple(said[1:])))


class _Ran:
    """Observes the run: a step for each op."""

    def __init__(self, recorder: _Recorder, graph: Graph, lines: Set[Source], marks: EventMarks) -> None:
        self._recorder = recorder
        self._event_marks = marks
        self._lines = lines  # others are not the function's: whoever asked for the gradient
        self._graphs = [graph]
        self._left = {"run": recorder.most, "backward": recorder.most}

    @property
    def is_full(self) -> bool:
        """Whether no kind of step has room left."""
        return not any(self._left.values())

    def enter(self, node: Node, function: FunctionLike) -> None:
        self._graphs.append(function.graph)

    def leave(self) -> None:
        self._graphs.pop()

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        kind: Kind = "backward" if _GRADIENT in node.scope else "run"
        marks = self._event_marks.take()
        if node.op == "constant":
            return
        if not self._left[kind]:
            totals = self._recorder.totals
            totals[kind] = totals.get(kind, self._recorder.most) + 1
            return
        self._left[kind] -= 1
        line = node.stack[0] if node.stack else None
        line = None if kind == "backward" and line not in self._lines else line
        shown = portrait(outputs[0]) if outputs else None
        text = "a copy between devices" if node.op is copy_op else _said(self._graphs[-1], node)
        marks += _new_shape(operands, outputs)
        told = _norm(outputs) if kind == "backward" else ()
        self._recorder.steps.append(Step(kind, line, text, (), told, shown, len(self._graphs) - 1, marks))


def _norm(outputs: Sequence[Any]) -> tuple[str, ...]:
    """The norm of a gradient, in words; nothing of what has no real numbers."""
    first: list[Any] = [one for one in outputs[:1] if getattr(getattr(one, "dtype", None), "kind", "") in "fV"]
    return tuple([f"norm {norm(widened(one)):.4g}" for one in first if one.size])


def _traced_again(function: Function, call: Call) -> tuple[Mark, ...]:
    """The mark of a call for which the function has traces, but not the right one."""
    if not len(function.trace_cache) or function._find(call.lookup) is not None:
        return ()
    record = explainer.current().diagnose(function, call.key, source_line.user_stack())
    return (("retrace", str(record).partition("\n")[0]),)


def _other_shapes(visit: Visit, shapes: dict[tuple[int, str], str]) -> Iterator[Mark]:
    """Marks of the names that a line binds to another shape than they had in the same call; `shapes` is kept up."""
    for name, text in visit.names:
        found = _SHAPE.match(text)
        if found is None:
            continue
        shape = found[1].replace(" ", "")
        before = shapes.get((visit.call, name), shape)
        shapes[visit.call, name] = shape
        if before != shape:
            yield "shape", f"{name}: {before} → {shape}"


def _new_shape(operands: Sequence[Any], outputs: Sequence[Any]) -> tuple[Mark, ...]:
    """The mark of an op whose first result has a shape that none of its operands has."""
    shapes = [tuple(one.shape) for one in operands if hasattr(one, "shape")]
    new = bool(shapes) and bool(outputs) and tuple(getattr(outputs[0], "shape", shapes[0])) not in shapes
    return (("shape", ""),) if new else ()


def _written(function: Function) -> Graph | None:
    """What the trace that has just failed had written: its tracer lives as long as the error."""
    tracer = function._tracer()
    return None if tracer is None else partial_trace.written_by(tracer)


def _said(graph: Graph | None, node: Node) -> str:
    """A node in words; without its graph, which a body that is still traced has not got yet, by its op."""
    return shortened(describe(graph, node)) if graph is not None else f"{node.op.name} in an inner function"


def _changes(record: PassRecord) -> Iterator[str]:
    for change in record.changes[:_MOST_CHANGES]:
        old = ", ".join([node.op.name for node in change.old[:3]]) or "-"
        yield shortened(f"{change.rule}: {old}") + f" ({change.reason})"
    if len(record.changes) > _MOST_CHANGES:
        yield f"and {len(record.changes) - _MOST_CHANGES} more"


class Excerpt(NamedTuple):
    """The lines of a file that steps are in, and a few around them; `first` is the number of the first."""

    label: str
    first: int
    lines: tuple[str, ...]


def excerpts(recording: Recording) -> dict[str, Excerpt]:
    """The source that the steps are in, by file; without lines where a file cannot be read."""
    numbers: dict[str, list[int]] = {}
    labels: dict[str, str] = {}
    for one in recording.steps:
        if one.line is not None:
            numbers.setdefault(one.line.file, []).append(one.line.line)
            labels[one.line.file] = one.line.label
    return {file: _excerpt(file, labels[file], lines) for file, lines in numbers.items()}


def _excerpt(file: str, label: str, numbers: Sequence[int]) -> Excerpt:
    first = max(1, min(numbers) - _AROUND)
    lines = linecache.getlines(file)[first - 1 : max(numbers) + _AROUND]
    return Excerpt(label, first, tuple([line.rstrip("\n") for line in lines]))
