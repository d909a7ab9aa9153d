"""A run of a graph beside the program: on copies of what it may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight.core.tensor import as_tensor
from limelight.core.variable import Resource
from limelight.executors import step
from limelight.executors.step import Observer, Steps
from limelight.explain.without_effects import private
from limelight.graph.ir import Graph
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.key import Call


def inputs_of(entry: ConcreteFunction, call: Call) -> list[Any]:
    """The inputs of an entry's graph for a call: its tensors and variables, then what is captured."""
    inputs = [*[call.leaves[i] for i in entry._tensor_leaves], *entry._captured()]
    return [x if isinstance(x, Resource) else as_tensor(x) for x in inputs]


def begin(graph: Graph, inputs: Sequence[Any], observer: Observer) -> Steps:
    """Starts a run on copies of storages and generators."""
    copies: dict[int, Any] = {}
    payloads = [private(x._data, copies) for x in inputs]
    return step.run(graph, payloads, [x._device for x in inputs], observer)
