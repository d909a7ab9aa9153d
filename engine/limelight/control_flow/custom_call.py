"""`custom_gradient` in a graph: the ops `custom_call` and `custom_forward`.

The body and its gradient function are traced in one go and split into two graph functions, like the forward/backward
pair of any graph function (`staging.call_gradient`). A tape records the forward half, which also returns the residuals
that the gradient function reads. Gradients of the body's own results go through the user's rule; gradients of the
residuals, which exist for second order, go through the ops of the body.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from limelight.autodiff import INEXACT, GradientTape, filled, zeros
from limelight.batching import Site
from limelight.batching.rule_table import repeated
from limelight.control_flow.custom_gradient_rules import Arguments, Body, Packing, Rule
from limelight.core import device_scopes, dispatch, name_scopes
from limelight.core.module_calls import calls_around
from limelight.core.op import Op, TapedVariant, defop
from limelight.core.spec import Spec, TensorSpec
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import Value
from limelight.graph.subgraph import extract
from limelight.optimise.dead_code import prune
from limelight.staging.body_batching import (
    BatchedFunction,
    Flags,
    batch_size,
    batched_function,
    note_looped_ops,
    tensors_only,
    with_shared,
)
from limelight.staging.call_gradient import Joint, Pair, call, infer_outputs, pair_of, watched_mask
from limelight.staging.graph_function import GraphFunction
from limelight.staging.structured_outputs import split
from limelight.staging.tracer import Tracer


def call_staged(name: str, body: Body, arguments: Arguments, closures: bool = False) -> Any:
    """Traces `body` and its rule inside the trace in progress, and applies `custom_call`.

    Args:
        name: the name of the user's function.
        body: runs it.
        arguments: its arguments.
        closures: whether the rule also gives gradients of tensors that the body closes over.
    """
    with Tracer(name, scope=name_scopes.current_name_scope(), calls=calls_around()) as tracer:
        tensors = [
            x if isinstance(x, Resource) else tracer.add_input(x.spec, f"x{i}") for i, x in enumerate(arguments.tensors)
        ]
        within = arguments.replaced(tensors)
        result, make_rule = body(within)
        outputs, shape = split(result, name)
        values = [tracer.value_of(y) for y in outputs]
        traced = _TracedBody(name, tracer, within, outputs, values, closures)
        rule = make_rule(within, Packing(shape.structure, _specs(shape, outputs)), traced.variables)
        pair = traced.pair(rule)
    operands = [x for x in arguments.tensors if not isinstance(x, Resource)]
    results = dispatch.apply(custom_call, (*operands, *tracer.captures), (pair.function, pair))
    return shape.rebuild(results)


def _specs(shape: Any, outputs: Sequence[Any]) -> tuple[TensorSpec | None, ...]:
    feed = iter(outputs)
    return tuple([next(feed).spec if is_tensor else None for is_tensor in shape.are_tensors])


class _TracedBody:
    """A body that has just been traced, and whose gradient function is traced next, in the same trace."""

    def __init__(
        self,
        name: str,
        tracer: Tracer,
        arguments: Arguments,
        outputs: list[Any],
        values: list[Value],
        closures: bool,
    ) -> None:
        self.name = name
        self.tracer = tracer
        self.arguments = arguments
        self.outputs = outputs
        self.values = values
        self.variables = self._variables(closures)

    def _variables(self, closures: bool) -> list[Any]:
        """The trainable variables that the body reads, but for its arguments; with `closures` also tensors."""
        graph = self.tracer.finish(self.outputs)
        reads = effects_of_graph(graph).reads
        argument_uids = {x._uid for x in self.arguments.tensors if isinstance(x, Resource)}
        variables = []
        for uid, (handle, value) in self.tracer.captured.items():
            if handle.dtype in INEXACT and uid not in argument_uids:
                variable = isinstance(handle, Resource)
                if (value in reads and handle.trainable) if variable else closures:
                    variables.append(handle)
        return variables

    def pair(self, rule: Rule) -> CustomPair:
        """Traces the gradient function. What it raises is raised when a gradient is asked for."""
        tracer = self.tracer
        forward = list(tracer.nodes)
        tracer.scope = "gradient/"
        n_arguments = len(tracer.inputs)
        seeds = [tracer.add_input(y.spec) if y.dtype in INEXACT else None for y in self.outputs]
        traced: list[Any] = []
        error: Exception | None = None
        try:
            gradients = rule(seeds, [()] * len(seeds), self.variables)
            traced = [None if g is None else tracer.value_of(as_tensor(g)) for g in gradients]
        except Exception as raised:  # noqa: BLE001  # of the user's code; kept until a gradient is asked for
            error = raised
        captured = [value for _, value in tracer.captured.values()]
        inputs = [*tracer.inputs[:n_arguments], *captured]
        placed = self._by_input(inputs, traced)
        backward = tracer.nodes[len(forward) :] if error is None else []
        values = [tracer.value_of(s) for s in seeds if s is not None]
        joint = Joint(inputs, forward, backward, self.values, values, placed)
        return CustomPair(self.name, joint, error)

    def _by_input(self, inputs: list[Value], gradients: Sequence[Value | None]) -> list[Value | None]:
        """The gradients in the order of the inputs, from the order of tensor arguments and variables."""
        place: dict[Value, int] = {value: i for i, value in enumerate(inputs)}
        by_uid = {uid: place[value] for uid, (_, value) in self.tracer.captured.items()}
        plain = iter(range(len(inputs)))
        targets = [by_uid.get(x._uid, -1) if isinstance(x, Resource) else next(plain) for x in self.arguments.tensors]
        targets += [by_uid[v._uid] for v in self.variables]
        by_input: list[Value | None] = [None] * len(inputs)
        for target, g in zip(targets, gradients, strict=False):
            if g is not None and target >= 0:
                by_input[target] = g
        return by_input


class CustomPair(Pair):
    """The forward/backward pair of a function with a custom gradient. It has one backward half, for all outputs."""

    apart = True  # gradients of results go through the user's rule, those of residuals through the ops

    def __init__(self, name: str, joint: Joint, error: Exception | None) -> None:
        names = [f"x{i}" for i in range(len(joint.inputs))]
        self._graph = prune(extract(name, joint.inputs, joint.forward, joint.outputs, names))[0]
        self._executor, self._compiles = None, False  # those of the trace in which it is
        self.function = GraphFunction(self._graph)
        self.error = error
        self.n_outputs = len(joint.outputs)
        self.specs = tuple([value.spec for value in joint.outputs])
        self.connected = tuple([g is not None for g in joint.gradients])
        if error is not None:
            self.connected = watched_mask([value.spec for value in joint.inputs])
        self._split_halves(joint)
        self._whole = self._build_backward(joint)

    def with_functions(self, change: Callable[[Any], Any]) -> CustomPair:
        """The same gradient for versions of the function with values in the place of some variables.

        A residual that was the value read from such a variable is an input now, so a loop need not stack it.
        """
        pair = copy.copy(self)
        pair.function, pair.forward = change(self.function), change(self.forward)
        place = {value: i for i, value in enumerate(pair.forward.graph.inputs)}
        outputs = pair.forward.graph.outputs
        pair.sources = [
            ("input", place[outputs[i]]) if where == "output" and outputs[i] in place else (where, i)
            for where, i in self.sources
        ]
        return pair

    @property
    def parts(self) -> tuple[Any, ...] | None:
        """What the pair is made of, functions and plain values, for a file; None where the rule raised an error."""
        if self.error is not None:
            return None
        function, targets = self.whole
        return (self.function, self.forward, function, targets, tuple(self.sources), tuple(self.connected))

    @classmethod
    def of_parts(cls, parts: tuple[Any, ...]) -> CustomPair:
        """The pair with these `parts`."""
        pair: CustomPair = object.__new__(cls)
        pair.function, pair.forward, function, targets, sources, pair.connected = parts
        pair.sources = list(sources)
        pair._graph, pair._whole, pair.error = pair.function.graph, (function, targets), None
        pair.specs = tuple([value.spec for value in pair._graph.outputs])
        pair.n_outputs = len(pair.specs)
        return pair

    @property
    def whole(self) -> tuple[GraphFunction, tuple[int, ...]]:
        """The backward function, from residuals and gradients of all inexact outputs, and the inputs of its results."""
        return self._whole

    def pull(self, g: Sequence[Any], residuals: Sequence[Any], sizes: Sequence[Any], count: int) -> list[Any]:
        """The gradients of the inputs from those of the results. Raises what the rule raised in its trace.

        Args:
            g: the gradients of the results, None where there is none.
            residuals: what the rule reads.
            sizes: sizes and dtypes of the results.
            count: the number of inputs.
        """
        if self.error is not None:
            raise self.error
        function, targets = self.whole
        seeds = [seed_of(s, size, spec) for s, size, spec in zip(g, sizes, self.specs, strict=True)]
        results: list[Any] = [None] * count
        if targets:
            values = dispatch.apply(call, (*residuals, *[s for s in seeds if s is not None]), (function,))
            for i, value in zip(targets, values, strict=True):
                results[i] = value
        return results


def seed_of(g: Any, size: tuple[Any, Any], spec: Any) -> Any:
    """The gradient of an output as the rule gets it: zeros where it has none, None for integers."""
    if spec.dtype not in INEXACT:
        return None
    return zeros(*size) if g is None else g


# The ops


def _infer_call(*arguments: Any) -> tuple[Spec, ...]:
    *specs, function, _ = arguments
    return infer_outputs(function.graph, specs)


def _run(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *payloads, function, _ = arguments
    outputs: tuple[Any, ...] = function.run(*payloads)
    return outputs


def _taped_call(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant | None:
    pair: CustomPair = attrs[1]
    if not any(pair.connected):
        return None
    return TapedVariant(custom_forward, (pair.forward, pair, None), lambda outputs: outputs[: pair.n_outputs])


def _taped_forward(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant:
    """For an outer tape: the residuals, which the gradient function has used, get gradients as well."""
    function, pair, _ = attrs
    ordinary = pair_of(function, watched_mask(inputs), apart=True)
    n = len(function.graph.outputs)
    return TapedVariant(custom_forward, (ordinary.forward, pair, ordinary), lambda outputs: outputs[:n])


def _save(inputs: tuple[Any, ...], out: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    _, pair, ordinary = attrs
    sizes = tuple([(y.sizes(), y.dtype) for y in out[: pair.n_outputs]])
    further = () if ordinary is None else tuple(ordinary.residuals(inputs, out))
    return (pair, ordinary, tuple(pair.residuals(inputs, out)), sizes, further)


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    pair, ordinary, residuals, sizes, further = saved
    n = pair.n_outputs
    results: list[Any] = [None] * len(needed)
    if any(s is not None for s in g[:n]):
        results = pair.pull(g[:n], residuals, sizes, len(needed))
    seeds = (None,) * n + tuple(g[n:])
    if ordinary is not None and any(s is not None for s in seeds):
        more = _through(ordinary, further, seeds[: ordinary.n_outputs], needed)
        results = [_sum(a, b) for a, b in zip(results, more, strict=True)]
    return tuple([r if wanted else None for r, wanted in zip(results, needed, strict=True)])


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _through(pair: Pair, residuals: Sequence[Any], seeds: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
    """The gradients of the inputs from those of the residuals, through the ops of the body.

    Args:
        pair: the forward/backward pair of the forward half, as of any graph function.
        residuals: the residuals of that pair.
        seeds: the gradients of the outputs of the forward half.
        needed: the inputs whose gradients are needed.
    """
    wanted = tuple(n and c for n, c in zip(needed, pair.connected, strict=True))
    function, targets = pair.backward(wanted, tuple(s is not None for s in seeds))
    results: list[Any] = [None] * len(needed)
    if targets:
        values = dispatch.apply(call, (*residuals, *[s for s in seeds if s is not None]), (function,))
        for i, value in zip(targets, values, strict=True):
            results[i] = value
    return results


def _jvp_call(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """Forward mode: the user's rule, transposed."""
    pair: CustomPair = attrs[1]
    swapped = (pair.forward, pair, None)
    out = dispatch.apply(custom_forward, inputs, swapped)
    n = pair.n_outputs
    return out[:n], _transposed(inputs, tangents, out, swapped, n)


def _jvp_forward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    swap = _taped_forward(inputs, attrs)
    out = dispatch.apply(custom_forward, inputs, swap.attrs)
    n = len(attrs[0].graph.outputs)
    return out[:n], _transposed(inputs, tangents, out, swap.attrs, n)


def _transposed(
    inputs: Sequence[Any], tangents: Sequence[Any], out: Sequence[Any], attrs: tuple[Any, ...], n: int
) -> Sequence[Any]:
    """The tangents of the first `n` outputs: the rule is linear in the gradients, and forward mode is its transpose.

    Args:
        inputs: the inputs of `custom_forward`.
        tangents: their tangents.
        out: its outputs.
        attrs: its parameters.
        n: how many outputs have tangents.
    """
    seeds = [filled(0, y) if i < n and y.dtype in INEXACT else None for i, y in enumerate(out)]
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([s for s in seeds if s is not None])
        saved = _save(tuple(inputs), tuple(out), attrs)
        pulled = _pull(tuple(seeds), saved, tuple([t is not None for t in tangents]))
    pairs = [(p, t) for p, t in zip(pulled, tangents, strict=True) if p is not None and t is not None]
    transposed: list[Any] = tape.gradient([p for p, _ in pairs], seeds[:n], output_gradients=[t for _, t in pairs])
    return transposed


# Batching: body and gradient function for all examples


class BatchedCustomPair(CustomPair):
    """The pair for all examples of a batch. Gradients of inputs that the examples share are summed over them."""

    def __init__(
        self, pair: CustomPair, function: BatchedFunction, forward: BatchedFunction, mask: Flags, count: int | None
    ) -> None:
        self._unbatched = pair
        self.function = function.function
        self.forward = forward.function
        self.sources = pair.sources
        self.error = pair.error
        self.n_outputs = pair.n_outputs
        self.specs = pair.specs
        self.connected = pair.connected
        self._mask = mask
        self._count = count
        self._saved = tuple([(mask if where == "input" else forward.mask)[i] for where, i in pair.sources])

    def pull(self, g: Sequence[Any], residuals: Sequence[Any], sizes: Sequence[Any], count: int) -> list[Any]:
        if self.error is not None:
            raise self.error
        seeds = [seed_of(s, size, spec) for s, size, spec in zip(g, sizes, self.specs, strict=True)]
        results: list[Any] = [None] * count
        targets = self._unbatched.whole[1]
        for i, value in zip(targets, self._gradients(residuals, [s for s in seeds if s is not None]), strict=True):
            results[i] = value
        return results

    @cached_property
    def whole(self) -> tuple[GraphFunction, tuple[int, ...]]:
        """The gradient as one function, for a batch of batches."""
        values = {"input": self.function.graph.inputs, "output": self.forward.graph.outputs}
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"backward_{self.function.name}") as tracer:
            tracer.scope = "gradient/"
            saved = [tracer.add_input(values[where][i].spec, f"saved{k}") for k, (where, i) in enumerate(self.sources)]
            specs: list[Any] = [value.spec for value in self.function.graph.outputs]
            seeds = [tracer.add_input(s, f"gradient{k}") for k, s in enumerate(specs) if s.dtype in INEXACT]
            return GraphFunction(tracer.finish(self._gradients(saved, seeds))), self._unbatched.whole[1]

    def _gradients(self, residuals: Sequence[Any], seeds: Sequence[Any]) -> list[Tensor]:
        function, targets = self._unbatched.whole
        if not targets:
            return []
        backward = batched_function(self._count, function, (*self._saved, *[True] * len(seeds)))
        assert backward is not None, "gradients are tensors"
        values = dispatch.apply(call, (*residuals, *seeds), (backward.function,))
        size = seeds[0].sizes()[0]
        gradients = zip(targets, values, backward.mask, strict=True)
        return [self._of_all(i, value if differs else repeated(value, size)) for i, value, differs in gradients]

    def _of_all(self, i: int, g: Tensor) -> Tensor:
        """The gradients of all examples; of an input that they share, their sum."""
        return g if self._mask[i] else g.sum(0)


def _batched_pair(site: Site, pair: CustomPair) -> BatchedCustomPair | None:
    """The pair for all examples, built once; None where it cannot be batched."""
    key = ("custom", site.mask, batch_size(site))
    if key not in pair.function.pairs:
        function = batched_function(batch_size(site), pair.function, site.mask, _tensors(pair.function))
        forward = batched_function(batch_size(site), pair.forward, site.mask, _tensors(pair.forward, pair.n_outputs))
        whole = None if function is None or forward is None else (function, forward)
        batched = None if whole is None else BatchedCustomPair(pair, *whole, site.mask, batch_size(site))
        pair.function.pairs[key] = batched
    batched_pair: BatchedCustomPair | None = pair.function.pairs[key]
    return batched_pair


def _batch(site: Site) -> Any:
    """The batching rule: the outputs are the function's results, and of `custom_forward` its residuals."""
    function, unbatched, *_ = site.attrs
    pair = _batched_pair(site, unbatched) if tensors_only(site) else None
    if pair is None:
        return NotImplemented
    version = batched_function(batch_size(site), function, site.mask, _tensors(function, pair.n_outputs))
    if version is None:
        return NotImplemented
    note_looped_ops(site, version)
    if site.op == "custom_call":
        results = dispatch.apply(custom_call, site.inputs, (pair.function, pair))
    else:
        results = dispatch.apply(custom_forward, site.inputs, (version.function, pair, None))
    return with_shared(results, version.mask)


def _tensors(function: Any, n: int | None = None) -> Flags:
    """Flags of those of the first `n` outputs that are tensors; residuals may be the same for all examples."""
    return tuple([isinstance(value.spec, TensorSpec) for value in function.graph.outputs[:n]])


custom_call: Op = defop(
    "custom_call",
    inputs="*xs:any",
    attrs="function pair",
    infer=_infer_call,
    kernel=_run,
    multiple=True,
    higher_order=True,
    taped=_taped_call,
    jvp=_jvp_call,
    batching=_batch,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records custom_forward
    maths={"xs": "x̄ = grad(ȳ), as the user wrote it"},
)

custom_forward: Op = defop(
    "custom_forward",
    inputs="*xs:any",
    attrs="function pair ordinary",
    infer=lambda *arguments: _infer_call(*arguments[:-1]),
    kernel=lambda xp, *arguments: _run(xp, *arguments[:-1]),
    multiple=True,
    higher_order=True,
    taped=_taped_forward,
    jvp=_jvp_forward,
    batching=_batch,
    save=_save,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = grad(ȳ), as the user wrote it"},
)
