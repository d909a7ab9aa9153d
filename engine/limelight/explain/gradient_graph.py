"""A graph, and then its gradient by some of its inputs, in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.autodiff import INEXACT, GradientTape
from limelight.core import device_scopes, dispatch
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


def with_gradient(graph: Graph, wanted: Sequence[int]) -> Graph:
    """`graph` and then its gradient by some inputs, in one graph."""
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(graph.name) as tracer:
        inputs = [tracer.add_input(v.spec, name) for v, name in zip(graph.inputs, graph.input_names, strict=True)]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([inputs[i] for i in wanted])
            outputs = replay(graph, inputs)
        tracer.scope = "gradient/"
        targets = [y for y in outputs if isinstance(y, Tensor) and y.dtype in INEXACT]
        gradients = tape.gradient(targets, [inputs[i] for i in wanted])
        return tracer.finish([*outputs, *[as_tensor(g) for g in gradients if g is not None]])
