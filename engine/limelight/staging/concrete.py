"""Graph functions: a graph with the means to run it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from limelight.devices import CPU0, Device
from limelight.executors import plan
from limelight.graph.effects import Effects, effects_of_graph
from limelight.graph.ir import Graph, Value
from limelight.optimise.pipeline import Optimised, optimise

_ids = itertools.count(1)


class GraphFunction:
    """A graph that can be run on payloads (arrays, storages, opaque values).

    It is optimised and planned when it is first run, so a function that is only differentiated, printed or called
    from another graph costs nothing more.
    """

    __limelight_leaf__ = True

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.name = graph.name
        self.id = next(_ids)
        self.pairs: dict[Any, Any] = {}  # forward/backward pairs by watched inputs, kept here so that all callers share them

    @cached_property
    def run(self) -> Callable[..., tuple[Any, ...]]:
        """run(*payloads) -> tuple of output payloads."""
        return plan.build(self.optimised.graph)

    @cached_property
    def optimised(self) -> Optimised:
        """The graph after all passes, with a record of what each did."""
        return optimise(self.graph)

    @cached_property
    def effects(self) -> Effects:
        return effects_of_graph(self.graph)

    def output_devices(self, inputs: Sequence[Device]) -> list[Device]:
        """Where the outputs are when the inputs are on `inputs`: each op runs where asked, else where its first input is."""
        places: dict[Value, Device] = dict(zip(self.graph.inputs, inputs, strict=True))
        for node in self.graph.nodes:
            device = node.device or next((places[value] for value in node.inputs), CPU0)
            places.update(dict.fromkeys(node.outputs, device))
        return [places[value] for value in self.graph.outputs]

    def __repr__(self) -> str:
        return f"<graph function {self.name}: {len(self.graph.nodes)} nodes>"
