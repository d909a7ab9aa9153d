"""Calling graph functions as ops, and differentiating the calls (paper section 4.2).

The first call under a tape that watches an input builds a pair. The forward version returns, besides the results, the
residuals: the intermediates that the backward pass reads. The backward version maps residuals and the gradients of the
results to the gradients of the inputs. Backward calls are ordinary calls and have pairs of their own, which gives
higher orders. Gradients are taken on the traced graph, before any pass, so no pass merges what a tape could have told
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, GradientTape
from limelight.batching import Site
from limelight.core import device_scopes, dispatch
from limelight.core.collector import collector_paused
from limelight.core.op import Op, TapedVariant, defop
from limelight.core.spec import Spec, TensorSpec
from limelight.core.tensor import as_tensor
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.known_sizes import inferred
from limelight.graph.subgraph import take_over
from limelight.ops.create.literal import constant_op
from limelight.optimise.dead_code import pruned
from limelight.staging.body_batching import batch_size, batched_function, note_looped_ops, tensors_only, with_shared
from limelight.staging.body_tangents import jvp_function, present_tangents, split_tangents, tangent_flags
from limelight.staging.graph_function import GraphFunction
from limelight.staging.joint_tracer import JointTracer
from limelight.staging.tracer import Tracer

Place = tuple[str, int, int]
"""The place of a residual in a joint trace: ("input", i, 0) or ("node", position, number of the output)."""


class Joint(NamedTuple):
    """A graph replayed under a tape, with the gradient computation behind it, in one trace.

    The forward half may consist of that graph's own nodes, so nobody may change them.
    """

    inputs: list[Value]
    forward: list[Node]
    backward: list[Node]
    outputs: list[Value]
    seeds: list[Value]
    gradients: list[Value | None]


class Pair:
    """The forward version of a graph function and its backward versions, for one set of watched inputs."""

    apart = False
    """Whether residuals have outputs of their own even where they are results as well."""

    def __init__(self, function: GraphFunction, watched: tuple[bool, ...], apart: bool = False) -> None:
        self.apart = apart
        self._graph = function.graph
        self._executor: str | None = function.executor
        self._compiles = function.compiles
        self._watched = watched
        self.n_outputs = len(function.graph.outputs)
        self._backward: dict[tuple[tuple[bool, ...], tuple[bool, ...]], tuple[GraphFunction, tuple[int, ...]]] = {}
        with collector_paused():
            joint = self._trace(watched, (True,) * self.n_outputs)
            self.connected = tuple([g is not None for g in joint.gradients])
            self._first: Joint | None = joint  # until its backward half is asked for, as nearly always it is
            self._split_halves(joint)

    def _split_halves(self, joint: Joint) -> None:
        """Sets the forward version, and where the backward versions find the residuals."""
        self._places = _residual_places(joint)
        residuals = _at(joint, self._places)
        self.forward = self._build_forward(joint, residuals)
        self.sources = self._sources(joint, residuals)

    def backward(self, needed: tuple[bool, ...], given: tuple[bool, ...]) -> tuple[GraphFunction, tuple[int, ...]]:
        """The function from residuals and the given output gradients to gradients, and which inputs these belong to."""
        version = self._backward.get((needed, given))
        if version is None:
            with collector_paused():
                version = self._backward[needed, given] = self._build_backward(self._joint(needed, given))
        return version

    def _joint(self, needed: tuple[bool, ...], given: tuple[bool, ...]) -> Joint:
        """The joint trace for these gradients; the first one, where it has no others."""
        continuous = [getattr(y.spec, "dtype", None) in INEXACT for y in self._graph.outputs]
        seeded = all(g for g, c in zip(given, continuous, strict=True) if c)
        first = self._first if seeded and all(n for n, c in zip(needed, self.connected, strict=True) if c) else None
        if first is None:
            return self._trace(needed, given)
        self._first = None
        return first

    def residuals(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """The residuals, out of the inputs and outputs of a forward call."""
        return [inputs[i] if where == "input" else outputs[i] for where, i in self.sources]

    def _sources(self, joint: Joint, residuals: list[Value]) -> list[tuple[str, int]]:
        """For each residual the input or the output of `forward` that has it."""
        named = {} if self.apart else {value: i for i, value in reversed(list(enumerate(joint.outputs)))}
        extra = iter(range(self.n_outputs, self.n_outputs + len(residuals)))
        return [
            ("input", place[1]) if place[0] == "input" else ("output", named[value] if value in named else next(extra))
            for place, value in zip(self._places, residuals, strict=True)
        ]

    def _trace(self, needed: tuple[bool, ...], given: tuple[bool, ...]) -> Joint:
        graph = self._graph
        with dispatch.fresh_stack(), device_scopes.cleared(), JointTracer(graph) as tracer:
            inputs = tracer.add_graph_inputs()
            with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
                # always the same set: what the forward version saves (sizes, for example) must not depend on who asks
                tape.watch([x for x, watched in zip(inputs, self._watched, strict=True) if watched])
                outputs = tracer.replay(inputs)
            n_forward = len(tracer.nodes)
            seeds = [_seed(tracer, y) if used else None for y, used in zip(outputs, given, strict=True)]
            tracer.scope = "gradient/"
            sources = [x if wanted else None for x, wanted in zip(inputs, needed, strict=True)]
            gradients = _gradients(tape, outputs, seeds, sources)
            values = [None if g is None else tracer.value_of(as_tensor(g)) for g in gradients]
            return Joint(
                tracer.inputs[: len(inputs)],
                tracer.nodes[:n_forward],
                tracer.nodes[n_forward:],
                [tracer.value_of(y) for y in outputs],
                [tracer.value_of(s) for s in seeds if s is not None],
                values,
            )

    def _build_forward(self, joint: Joint, residuals: list[Value]) -> GraphFunction:
        named = {*joint.inputs, *(() if self.apart else joint.outputs)}
        outputs = [*joint.outputs, *[value for value in residuals if value not in named]]
        name, names = f"forward_{self._graph.name}", self._graph.input_names
        graph = Graph(name, joint.inputs, joint.forward, outputs, input_names=names)
        return GraphFunction(pruned(graph), self._executor, self._compiles)

    def _build_backward(self, joint: Joint) -> tuple[GraphFunction, tuple[int, ...]]:
        residuals = _at(joint, self._places)
        gradients = [(i, g) for i, g in enumerate(joint.gradients) if g is not None]
        inputs = [*residuals, *joint.seeds]
        names = [*(f"saved{i}" for i in range(len(residuals))), *(f"gradient{i}" for i in range(len(joint.seeds)))]
        name, outputs = f"backward_{self._graph.name}", [g for _, g in gradients]
        graph = take_over(name, inputs, joint.backward, outputs, names, _literals(joint))
        return GraphFunction(pruned(graph), self._executor, self._compiles), tuple(i for i, _ in gradients)


def _seed(tracer: Tracer, output: Any) -> Any:
    return tracer.add_input(output.spec) if output.dtype in INEXACT else None


def _gradients(tape: GradientTape, outputs: list[Any], seeds: list[Any], sources: list[Any]) -> list[Any]:
    """The gradients of the outputs that have a seed, one for each source that is not None.

    Args:
        tape: the tape that has recorded the forward nodes.
        outputs: the results.
        seeds: their gradients, or None.
        sources: inputs whose gradients are wanted, or None.
    """
    pairs = [(y, s) for y, s in zip(outputs, seeds, strict=True) if s is not None]
    wanted = [x for x in sources if x is not None]
    gradients = iter(tape.gradient([y for y, _ in pairs], wanted, output_gradients=[s for _, s in pairs]))
    return [None if x is None else next(gradients) for x in sources]


def _residual_places(joint: Joint) -> list[Place]:
    """The residuals: what the backward nodes read of the forward ones, each once, in order of first use."""
    places = {  # literals are copied into both halves
        value: position
        for position, node in enumerate(joint.forward)
        if node.op is not constant_op
        for value in node.outputs
    }
    places |= {value: ~i for i, value in enumerate(joint.inputs)}
    read = dict.fromkeys([value for node in joint.backward for value in node.inputs if value in places])
    read |= dict.fromkeys([g for g in joint.gradients if g is not None and g in places])
    found = [(value, places[value]) for value in read]
    return [("node", i, value.index) if i >= 0 else ("input", ~i, 0) for value, i in found]


def _at(joint: Joint, places: list[Place]) -> list[Value]:
    inputs, forward = joint.inputs, joint.forward
    return [inputs[i] if where == "input" else forward[i].outputs[index] for where, i, index in places]


def _literals(joint: Joint) -> list[Node]:
    """The constants that the backward nodes read."""
    literals = [node for node in joint.forward if node.op is constant_op]
    if not literals:
        return []
    used = {value for node in joint.backward for value in node.inputs} | {g for g in joint.gradients if g is not None}
    return [node for node in literals if node.outputs[0] in used]


# The ops


def _infer(*arguments: Any) -> tuple[Spec, ...]:
    *specs, function = arguments
    return infer_outputs(function.graph, specs)


def infer_outputs(graph: Graph, specs: Sequence[Spec]) -> tuple[Spec, ...]:
    """The output specs of `graph` for inputs of `specs`, which may know more sizes than the graph does."""
    declared = tuple(value.spec for value in graph.outputs)
    known = all(not isinstance(s, TensorSpec) or None not in s.shape for s in declared)
    if known or tuple(specs) == tuple(value.spec for value in graph.inputs):
        return declared
    known_specs: dict[Value, Any] = dict(zip(graph.inputs, specs, strict=True))
    for node in graph.nodes:
        result = inferred(node.op, [known_specs[value] for value in node.inputs], node.params)
        known_specs.update(zip(node.outputs, map(refine_spec, result, node.outputs), strict=True))
    return tuple(known_specs[value] for value in graph.outputs)


def refine_spec(spec: Spec, value: Value) -> Spec:
    """`spec` with the sizes that it does not know and the spec of `value` in its graph does."""
    declared = value.spec
    if not isinstance(spec, TensorSpec) or not isinstance(declared, TensorSpec) or None not in spec.shape:
        return spec
    shape = tuple([n if m is None else m for m, n in zip(spec.shape, declared.shape, strict=True)])
    return spec if shape == spec.shape else spec.with_shape(shape)


def watched_mask(inputs: Sequence[Any]) -> tuple[bool, ...]:
    """Which inputs a gradient may be wanted for: floating tensors and variables."""
    return tuple(x.dtype in INEXACT for x in inputs)


def pair_of(function: GraphFunction, watched: tuple[bool, ...], apart: bool = False) -> Pair:
    """The forward/backward pair, built on first use and shared by all callers."""
    key = (watched, apart) if apart else watched
    pair: Pair | None = function.pairs.get(key)
    if pair is None:
        pair = function.pairs[key] = Pair(function, watched, apart)
    return pair


def _taped_call(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant | None:
    function: GraphFunction = attrs[0]
    pair = pair_of(function, watched_mask(inputs))
    if not any(pair.connected):
        return None
    return TapedVariant(call_forward, (pair.forward, pair), lambda outputs: outputs[: pair.n_outputs])


def _pull_call(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    pair: Pair = saved[0]
    residuals = saved[1:]
    seeds = g[: pair.n_outputs]
    wanted = tuple(n and c for n, c in zip(needed, pair.connected, strict=True))
    function, targets = pair.backward(wanted, tuple(s is not None for s in seeds))
    results: list[Any] = [None] * len(needed)
    if targets:
        values = dispatch.apply(call, (*residuals, *[s for s in seeds if s is not None]), (function,))
        for i, value in zip(targets, values, strict=True):
            results[i] = value
    return tuple(results)


def _run(xp: Any, *payloads: Any) -> tuple[Any, ...]:
    *data, function = payloads
    outputs: tuple[Any, ...] = function.run(*data)
    return outputs


def _jvp_call(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    function = attrs[0]
    version = jvp_function(function, tangent_flags(tangents))
    n = len(function.graph.outputs)
    if not version.moving:
        return dispatch.apply(call, inputs, (function,)), [None] * n
    return split_tangents(
        dispatch.apply(call, (*inputs, *present_tangents(tangents)), (version.function,)), n, version.moving
    )


def _batch_call(site: Site) -> Any:
    version = batched_function(batch_size(site), site.attrs[0], site.mask) if tensors_only(site) else None
    if version is None:
        return NotImplemented
    note_looped_ops(site, version)
    return with_shared(dispatch.apply(call, site.inputs, (version.function,)), version.mask)


call: Op = defop(
    "call",
    inputs="*xs:any",
    attrs="function",
    infer=_infer,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped_call,
    jvp=_jvp_call,
    batching=_batch_call,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records call_forward
    maths={"xs": "x̄ = backward(saved, ȳ)"},
)

call_forward: Op = defop(
    "call_forward",
    inputs="*xs:any",
    attrs="function pair",
    infer=lambda *arguments: _infer(*arguments[:-1]),
    kernel=lambda xp, *payloads: _run(xp, *payloads[:-1]),
    multiple=True,
    higher_order=True,
    taped=_taped_call,
    jvp=_jvp_call,
    batching=_batch_call,
    save=lambda inputs, out, attrs: (attrs[1], *attrs[1].residuals(inputs, out)),
    vjp={"xs": _pull_call},
    maths={"xs": "x̄ = backward(saved, ȳ)"},
)
