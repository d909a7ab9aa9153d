"""State that a staged function creates: when it may create variables, and their initial values.

The contract (paper section 4.6): a variable may be created on a function's first call. The function is then traced
again, and that second trace, the one that is kept, may create none: it finds the variables where the Python code has
put them. There are no variables local to a call. `Creation` takes note of what a trace creates, or refuses it.

What a layer or an optimiser makes for itself (`created_by`) is state of that object and not of the function: it may be
made in any trace. So may state of other objects on the first call with them (`Function._may_create`). The second trace
tells what the code would make anew each time.

Slots of optimisers (`found_again`) need no second trace, which would have the same graph: they are made once for each
variable, and their initial values depend on nothing that is traced.

An initial value that the traced code computes is lifted out of the trace: `lifted_value` runs the part of the graph so
far that the value depends on, on the arguments of the call that is traced.

Initial values are drawn while tracing, and what the code draws besides when the graph runs. `DrawsInOrder` gives both
the numbers of eager code all the same, where one comes between the others (weights, dropout, weights).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import attachments, dispatch
from limelight.core.spec import VariableSpec
from limelight.core.tensor import Tensor, constant, wrap
from limelight.core.variable import Resource, Variable, created_by, found_again
from limelight.errors import StateCreationError, SymbolicValueError
from limelight.graph.effects import effects_of
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.subgraph import extract
from limelight.staging import branch_state
from limelight.staging.graph_function import GraphFunction
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

Lifter = Callable[[Any], Any]
_MADE: Final = {
    "variable": "self.w = ll.Variable(...)",
    "generator": "self.w = ll.random.Generator(seed)",
    "layer": "self.layer = ll.nn.Dense(...)",
    "optimiser": "self.optimiser = ll.optim.Adam(...)",
}
"""What is to be made outside, or once, and how the latter is written."""
_OUT_OF_ORDER: Final = (
    "an initial value is drawn while this is traced, and so before the random numbers that the code above it draws: "
    "both differ from those of eager code. This is so within a loop, a branch or a staged function that another one "
    "calls, and where those numbers depend on what is read once, as by next(iterator). For the same numbers make the "
    "weights before: call the layer once outside, or net.build(shape)"
)


class Creation:
    """Takes note of the variables created during one trace, or refuses them.

    Args:
        name: that of the staged function, for messages.
        allowed: whether the function may create any.
        again: whether the trace is the second one for its call.
        of_objects: whether layers and optimisers may create theirs.
        runs: whether the trace will be run for the call that it is made for.
    """

    def __init__(
        self, name: str, *, allowed: bool, again: bool = False, of_objects: bool = True, runs: bool = False
    ) -> None:
        self.variables: list[Any] = []  # for which the function is traced again
        self.any = False
        self.drew = (
            False  # whether an initial value was drawn after draws of the trace: the first run is the trace's own
        )
        self.runs = runs
        self.in_branch: branch_state.Made | None = None  # the latest, if it was made while a branch is traced
        self._name = name
        self._allowed = allowed
        self.again = again
        self._of_objects = of_objects and not again

    def note(self, variable: Any) -> None:
        if not (self._allowed or (self._of_objects and created_by.get())):
            raise StateCreationError(self._message(variable))
        self.any = True
        self.in_branch = None
        if not found_again.get():
            self.variables.append(variable)  # kept alive until the second trace, which must find it
            self.in_branch = branch_state.note(variable, created_by.get()) if self.runs else None

    def _message(self, created: Any) -> str:
        kind = "variable" if isinstance(created, Variable) else "generator"
        what = created_by.get() or kind
        when = "each time its Python code runs" if self.again else "on a call other than its first"
        by = f" of {'an' if what[0] == 'o' else 'a'} {what}" if what != kind else ""
        made = f"{_MADE[what]}`"
        if what == "generator":  # seldom meant to last, as a variable is
            made += "; or split outside, and pass the parts: generators are arguments like variables, and trace once"
        return (
            f"{self._name} creates a {kind}{by} {when}{source_line.here()}. A staged function may create "
            f"{kind}s on its first call only, since its graph refers to them afterwards. Create the {what} outside, or "
            f"once: `if {made.partition(' ')[0]} is None: {made}"
        )


def lifted_value(tracer: Tracer, leaves: list[Any], outer: Lifter | None, initial: Any) -> Any:
    """The value, now, of an initial value that belongs to a trace still going on.

    Only what it depends on is run, and nothing with an effect: the function itself runs afterwards.

    Args:
        tracer: the trace of the staged function whose call is traced.
        leaves: the arguments of that call.
        outer: does the same for the trace around; None where there is none.
        initial: a tensor of `tracer`'s trace, or of a branch or body that is traced within it; any other value, which
            is returned; or a function without arguments that makes one. It is called outside the trace, or in it where
            it uses what is traced.

    Raises:
        SymbolicValueError: the value does not exist yet, or computing it would have an effect.
    """
    symbolic = _call_initializer(initial) if callable(initial) else initial
    if not isinstance(symbolic, SymbolicTensor):
        return symbolic
    if symbolic._tracer is tracer:
        return _compute(tracer, [x for x in leaves if isinstance(x, (Tensor, Resource))], outer, symbolic)
    if _is_within(symbolic._tracer, tracer):
        return _compute(symbolic._tracer, [], functools.partial(lifted_value, tracer, leaves, outer), symbolic)
    if outer is None:
        raise SymbolicValueError(
            f"the initial value of a variable is computed inside {symbolic._tracer.name!r}, a branch or a loop "
            "body, whose values do not exist yet; create the variable before it, or compute the value outside"
        )
    return outer(symbolic)


class DrawsInOrder:
    """Lifts initial values in their place among the draws of a trace that is run at once, and once, for the same call.

    The draws so far are run, the initial value is drawn, and the generators are set back: the graph will draw the
    former again. There it is written that they are to be as they were then. So that graph serves the first call alone.

    Args:
        creation: is told that it was so.
        tracer: the trace of the staged function whose call is traced.
        leaves: the arguments of that call.
        outer: lifts values of the trace around; where there is one, draws stay as they come.
    """

    def __init__(self, creation: Creation, tracer: Tracer, leaves: list[Any], outer: Lifter | None) -> None:
        self._creation, self._tracer, self._leaves, self._outer = creation, tracer, leaves, outer
        self._before: tuple[int, list[Any]] = 0, []  # after so many nodes the generators had these states
        self._happens_once = False  # whether draws of the trace cannot be had without input, say

    def __call__(self, initial: Any) -> Any:
        if found_again.get():  # a slot, which nothing is drawn for
            return lifted_value(self._tracer, self._leaves, self._outer, initial)
        if callable(initial):
            with self._in_place() as streams:
                late = [] if streams or not self._creation.runs else _drawn_from_around()
                before, others = _states(streams), _states(late)
                noted = _Draws() if self._creation.in_branch else None
                initial = _call_initializer(initial, noted)
                after = _states(streams)
            self._write(streams, before, after)
            if not all(map(np.array_equal, others, _states(late))):
                _warn_of_order(_OUT_OF_ORDER)
            elif self._creation.in_branch and noted is not None:
                self._creation.in_branch.drawn = noted.any
        streams = self._drawn_from() if isinstance(initial, SymbolicTensor) else []
        if not streams or initial._tracer is not self._tracer:
            return lifted_value(self._tracer, self._leaves, self._outer, initial)
        with self._set_back(streams):
            (value,) = self._drawn([initial])
        self._creation.drew = True
        return value

    @contextlib.contextmanager
    def _in_place(self) -> Iterator[list[Any]]:
        """A block in which the generators that the trace has drawn from are where its draws so far have led them."""
        streams = self._drawn_from()
        known, states = self._before
        if len(states) != len(streams) or any(effects_of(node).writes for node in self._tracer.nodes[known:]):
            states = self._led_to(streams) if streams else []
            streams = streams if states else []
        with self._set_back(streams):
            _set(streams, states)
            yield streams

    def _led_to(self, streams: list[Any]) -> list[Any]:
        """The states to which the draws of the trace so far lead; none where they depend on what happens only once."""
        try:
            with self._set_back(streams):
                self._drawn([])
                return _states(streams)
        except SymbolicValueError:  # what data gives, say: then initial values are drawn before, with a warning
            self._happens_once = True
            return []

    @contextlib.contextmanager
    def _set_back(self, streams: list[Any]) -> Iterator[None]:
        began = _states(streams)
        try:
            yield
        finally:
            _set(streams, began)

    def _write(self, streams: list[Any], before: list[Any], after: list[Any]) -> None:
        """Writes into the trace what an initial value has drawn."""
        start = len(self._tracer.nodes)
        for stream, old, new in zip(streams, before, after, strict=True):
            if not np.array_equal(old, new):
                stream.state = constant(new)
                self._creation.drew = True
        self._before = len(self._tracer.nodes), after
        if len(self._tracer.nodes) > start and attachments.waiting:
            take_out = functools.partial(_take_out, weakref.ref(self), self._tracer.nodes[start:])
            attachments.written_draws.append(take_out)

    def take_out(self, written: list[Node]) -> Callable[[], None]:
        """Takes out what `_write` wrote, since a saved value replaces the initial one; returns what puts it back."""
        nodes = self._tracer.nodes
        start = nodes.index(written[0])
        del nodes[start : start + len(written)]
        self._before = 0, []

        def put_back() -> None:
            nodes[start:start] = written

        return put_back

    def _drawn_from(self) -> list[Any]:
        """The generators that the trace has written to, where initial values can be drawn in their place."""
        above = dispatch.stack()[dispatch.stack().index(self._tracer) + 1 :] if self._tracer in dispatch.stack() else ()
        if not self._creation.runs or self._outer is not None or any(isinstance(x, Tracer) for x in above):
            return []
        if self._happens_once:
            return []
        return _drawn_from(self._tracer)

    def _drawn(self, outputs: list[Any]) -> list[Tensor]:
        """Has the generators draw what the trace has drawn so far; returns the values of symbolic tensors."""
        graph = self._tracer.finish(outputs)
        generators = {value for value in graph.inputs if isinstance(value.spec, VariableSpec) and value.spec.anywhere}
        needed = _needed(graph, lambda node: not generators.isdisjoint(effects_of(node).writes))
        _refuse_effects(graph, needed)
        arguments = [x for x in self._leaves if isinstance(x, (Tensor, Resource))]
        part = extract(graph.name, graph.inputs, needed, graph.outputs, graph.input_names)
        return _run(self._tracer, arguments, None, part)


def _take_out(draws: weakref.ref[DrawsInOrder], written: list[Node]) -> Callable[[], None]:
    """`DrawsInOrder.take_out`, while the trace goes on; afterwards there is nothing to change."""
    alive = draws()
    return (lambda: None) if alive is None else alive.take_out(written)


def _drawn_from(tracer: Tracer) -> list[Any]:
    """The generators that a trace has drawn from, or set."""
    generators = [(x, value) for x, value in tracer.captured.values() if _is_generator(value)]
    if not generators:  # most traces: this is asked for each variable that is made
        return []
    written = {value for node in tracer.nodes for value in effects_of(node).writes}
    return [x for x, value in generators if value in written]


def _drawn_from_around() -> list[Any]:
    """Those that any trace going on has drawn from, or set; themselves, not what stands for them in a trace."""
    streams = [x for tracer in dispatch.stack() if isinstance(tracer, Tracer) for x in _drawn_from(tracer)]
    return [x for x in {id(x): x for x in streams}.values() if hasattr(x, "_data") and hasattr(x._data, "array")]


def _warn_of_order(why: str) -> None:
    line = source_line.user_line()
    if line is not None:
        warn_at(line, why, UserWarning)


def _states(streams: Sequence[Any]) -> list[Any]:
    return [stream._data.array for stream in streams]


def _set(streams: Sequence[Any], states: Sequence[Any]) -> None:
    for stream, state in zip(streams, states, strict=True):
        stream._data.set(state)


def _is_within(inner: Tracer, outer: Tracer) -> bool:
    """Whether a trace goes on inside another one: of a branch, say."""
    stack = dispatch.stack()
    return inner in stack and outer in stack and stack.index(inner) > stack.index(outer)


def _compute(tracer: Tracer, arguments: list[Any], outer: Lifter | None, symbolic: SymbolicTensor) -> Tensor:
    """Runs what `symbolic` depends on in `tracer`'s graph so far.

    Args:
        tracer: the trace to which it belongs.
        arguments: the values of that trace's inputs; of another number where they have none.
        outer: lifts values of the trace around.
        symbolic: the tensor whose value is wanted.
    """
    (result,) = _run(tracer, arguments, outer, _without_effects(tracer.finish([symbolic])))
    return result


def _run(tracer: Tracer, arguments: list[Any], outer: Lifter | None, graph: Graph) -> list[Tensor]:
    """Runs a part of `tracer`'s graph, whose inputs are all of it; see `_compute`."""
    if len(arguments) != len(tracer.inputs):
        arguments = [None] * len(tracer.inputs)
    read = {value for node in graph.nodes for value in node.inputs}.union(graph.outputs)
    is_read = [value in read for value in graph.inputs]
    handles = [x for x, used in zip([*arguments, *tracer.captures], is_read, strict=True) if used]
    values = [_known_input(x, tracer, outer) for x in handles]
    inputs = list(itertools.compress(graph.inputs, is_read))
    names = list(itertools.compress(graph.input_names, is_read))
    graph = extract(graph.name, inputs, graph.nodes, graph.outputs, names)
    with dispatch.fresh_stack():
        function = GraphFunction(graph).placed_on([x._device for x in values])
        results = function.run(*[x._data for x in values])
        return [wrap(x, device) for x, device in zip(results, function.run.output_devices, strict=True)]


class _Draws(dispatch.BlockInterpreter):
    """Takes note of whether its block draws random numbers."""

    any = False

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        self.any = self.any or op.effect == "random"
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        return self.below.process(op, inputs, attrs)


def _call_initializer(make: Callable[[], Any], noted: _Draws | None = None) -> Any:
    try:
        with dispatch.fresh_stack(), noted or contextlib.nullcontext():
            return make()
    except SymbolicValueError:  # it uses what is traced
        return make()


def _known_input(x: Any, tracer: Tracer, outer: Lifter | None) -> Any:
    """An argument or captured tensor with its value; a tensor of the trace around is lifted there."""
    if x is None or (isinstance(x, SymbolicTensor) and outer is None):
        raise SymbolicValueError(
            f"the initial value of a variable depends on an argument of {tracer.name!r} that has no value yet; "
            "call the function with real tensors first (in the body of a loop: create the variable before the loop), "
            "or make the initial value a function without arguments"
        )
    return outer(x) if isinstance(x, SymbolicTensor) and outer else x


def _without_effects(graph: Graph) -> Graph:
    """The part of `graph` that its output depends on; raises SymbolicValueError if running it could be noticed."""
    needed = _needed(graph, lambda _: False)
    _refuse_effects(graph, needed)
    return extract(graph.name, graph.inputs, needed, graph.outputs, graph.input_names)


def _needed(graph: Graph, also: Callable[[Node], bool]) -> list[Node]:
    """The nodes that the graph's outputs, and those nodes that are wanted `also`, depend on, in order."""
    wanted = set(graph.outputs)
    needed: list[Node] = []
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs) or also(node):
            needed.append(node)
            wanted.update(node.inputs)
    needed.reverse()
    return needed


def _refuse_effects(graph: Graph, needed: list[Node]) -> None:
    last = graph.nodes.index(needed[-1]) if needed else 0
    written: set[Value] = {v for node in graph.nodes[:last] for v in effects_of(node).writes if _is_state(v)}
    for node in needed:
        effects = effects_of(node)
        what = "does I/O" if "io" in effects.chains else ""
        if any(_is_state(value) for value in effects.writes):
            what = "assigns to a variable"
        if effects.reads & written:
            what = "reads what this function has assigned to before"
        if what:
            raise SymbolicValueError(
                f"the initial value of a variable depends on {node.op}, which {what}; this would happen twice or at "
                "the wrong time; create the variable first, or make the initial value a function without arguments"
            )


def _is_generator(value: Value) -> bool:
    return isinstance(value.spec, VariableSpec) and value.spec.anywhere


def _is_state(value: Value) -> bool:
    """Whether it matters how often `value` is written: a variable's does, a generator's does not.

    Initial values may be drawn from a generator.
    """
    return isinstance(value.spec, VariableSpec) and not value.spec.anywhere
