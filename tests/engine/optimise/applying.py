"""What the tests of passes share: graphs from text, a pass applied with what holds for every pass checked, a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import limelight as ll  # noqa: F401  # registers the ops
from limelight.executors import step
from limelight.executors.plan import plan
from limelight.graph import Graph, parse, verify
from limelight.optimise import PassRecord

Apply = Callable[[Graph], tuple[Graph, PassRecord]]


def body(*lines: str, inputs: str = "  input %0: f32[3]  x\n") -> str:
    return "graph g\n" + inputs + "".join(f"  {line}\n" for line in lines)


def constant(name: int, value: str, spec: str = "f32[]") -> str:
    return f"%{name}: {spec} = constant()  {{value={spec} {value}}}"


def run(apply: Apply, text: str) -> tuple[Graph, PassRecord]:
    """Applies a pass to a graph given as text, or one that exists; checks what holds for every pass."""
    return check(apply, parse(text))


def check(apply: Apply, graph: Graph) -> tuple[Graph, PassRecord]:
    before = graph.text()
    result, record = apply(graph)
    assert graph.text() == before, "a pass leaves its graph alone"
    verify(result)
    assert (record.before, record.after) == (len(graph.nodes), len(result.nodes))
    assert record.before - record.removed + record.added == record.after
    assert record.seconds >= 0
    old = [node for change in record.changes for node in change.old]
    assert len(old) == len(set(old)) == record.removed
    assert set(old) <= set(graph.nodes)
    assert not set(old) & set(result.nodes)
    assert all(node in result.nodes for change in record.changes for node in change.new)
    assert all(change.rule and change.reason for change in record.changes)
    assert set(record.rewired) <= set(graph.nodes)
    assert set(record.rewired.values()) <= set(result.nodes)
    assert [value.spec for value in result.outputs] == [value.spec for value in graph.outputs]
    return result, record


def ops(graph: Graph) -> list[str]:
    """The names of the nodes' ops, but for literals."""
    return [node.op.name for node in graph.nodes if node.op.name != "constant"]


def results(graph: Graph, payloads: Sequence[Any]) -> list[list[Any]]:
    """What both executors make of a graph."""
    with np.errstate(all="ignore"):
        return [list(plan.build(graph)(*payloads)), list(step.run(graph, payloads).outputs)]


def bits(array: Any) -> tuple[Any, ...]:
    """An array's dtype, shape and bits, all NaN being one."""
    array = np.asarray(array)
    if array.dtype.kind in "fc" or array.dtype.name == "bfloat16":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.dtype, array.shape, array.tobytes()
