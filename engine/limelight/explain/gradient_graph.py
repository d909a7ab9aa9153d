"""A graph, and then its gradient by some of its inputs, in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.autodiff import INEXACT, GradientTape
from limelight.core import device_scopes, dispatch
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError
from limelight.graph.ir import Graph
from limelight.staging.tracer import Tracer, replay


def chosen_inputs(asker: str, asked: Any, graph: Graph, inputs: Sequence[Any]) -> list[int]:
    """The places of the inputs that `gradient_of` means."""
    floating = [i for i, x in enumerate(inputs) if x.dtype in INEXACT]
    if asked is True:
        return [i for i in floating if not isinstance(inputs[i], Resource) or inputs[i].trainable]
    wanted = asked if isinstance(asked, (list, tuple, set)) else [asked]
    chosen: list[int] = []
    for one in wanted:
        places = [i for i in floating if inputs[i] is one or (isinstance(one, str) and graph.input_names[i] == one)]
        if not places:
            names = ", ".join(f"`{graph.input_names[i]}`" for i in floating) or "none"
            what = one if isinstance(one, str) else f"a {type(one).__name__}"
            raise ArgumentError(f"{asker}: gradient_of has {what!r}, no floating input; these are: {names}")
        chosen += places
    return chosen


def gradient_of_sum(graph: Graph, summed: Sequence[int] | None = None) -> Graph:
    """`graph` and then the gradient of the sum of its floating results by its floating inputs, in one graph.

    `summed` are the outputs that count, None for all. Of variables by the trainable ones. Raises ArgumentError where
    there are none, or where none of them is led to.
    """
    wanted = [
        i
        for i, value in enumerate(graph.inputs)
        if getattr(value.spec, "dtype", None) in INEXACT and getattr(value.spec, "trainable", True)
    ]
    if not wanted:
        raise ArgumentError(f"{graph.name} has no floating input and no trainable variable to differentiate by")
    made = with_gradient(graph, wanted, summed)
    if len(made.outputs) == len(graph.outputs):
        raise ArgumentError(f"no floating result of {graph.name} depends on its inputs: there is no gradient to show")
    return made


def with_gradient(graph: Graph, wanted: Sequence[int], summed: Sequence[int] | None = None) -> Graph:
    """`graph` and then the gradient of the sum of some outputs (None: of all) by some inputs, in one graph."""
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(graph.name) as tracer:
        inputs = [tracer.add_input(v.spec, name) for v, name in zip(graph.inputs, graph.input_names, strict=True)]
        outputs, gradients = _forward_and_back(tracer, graph, inputs, wanted, (), summed)
        return tracer.finish([*outputs, *[as_tensor(g) for g in gradients if g is not None]])


def with_seeded_gradient(
    graph: Graph, wanted: Sequence[int], summed: Sequence[int]
) -> tuple[Graph, tuple[bool, ...], list[Any]]:
    """`graph` and its gradients by some inputs, in one graph, from further inputs: what depends on those is a gradient.

    Args:
        graph: what is differentiated.
        wanted: the inputs by which it is.
        summed: the outputs whose sum is.

    Returns:
        The graph, for each wanted input whether it has a gradient, and the dtypes of the further inputs: numbers, each
        the gradient of all elements of one result.
    """
    specs = [graph.outputs[i].spec for i in summed]
    seeds = [spec.dtype for spec in specs if isinstance(spec, TensorSpec) and spec.dtype in INEXACT]
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(graph.name) as tracer:
        inputs = [tracer.add_input(v.spec, name) for v, name in zip(graph.inputs, graph.input_names, strict=True)]
        given = [tracer.add_input(TensorSpec((), dtype), f"seed{i}") for i, dtype in enumerate(seeds)]
        outputs, gradients = _forward_and_back(tracer, graph, inputs, wanted, given, summed)
        made = tracer.finish([*outputs, *[as_tensor(g) for g in gradients if g is not None]])
        return made, tuple([g is not None for g in gradients]), seeds


def _forward_and_back(
    tracer: Tracer,
    graph: Graph,
    inputs: Sequence[Any],
    wanted: Sequence[int],
    seeds: Sequence[Any],
    summed: Sequence[int] | None,
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The graph's outputs, and the gradients of the sum of some by the inputs `wanted`, None where there is none."""
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([inputs[i] for i in wanted])
        outputs = replay(graph, inputs)
    tracer.scope = "gradient/"
    chosen = outputs if summed is None else [outputs[i] for i in summed]
    targets = [y for y in chosen if isinstance(y, Tensor) and y.dtype in INEXACT]
    weights = [_filled(seed, y) for seed, y in zip(seeds, targets, strict=True)] if seeds else None
    return outputs, tape.gradient(targets, [inputs[i] for i in wanted], output_gradients=weights)


def _filled(seed: Any, target: Any) -> Any:
    """`seed` in the shape of a target."""
    sizes = target.shape if None not in target.shape else target.sizes()
    return seed if target.ndim == 0 else seed.broadcast_to(sizes)
