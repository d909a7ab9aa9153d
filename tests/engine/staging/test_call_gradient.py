"""The forward and backward halves of a graph function: what making them costs, in nodes."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight import with_blocks
from limelight.graph import ir
from limelight.staging.call_gradient import pair_of
from limelight.staging.graph_function import GraphFunction


@pytest.mark.parametrize("op", [ll.sin, ll.tanh])
def test_halves_of_a_gradient_take_the_nodes_of_their_trace(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies, and a scope around each op that is replayed, made the gradient of a long chain three times as slow."""

    def chain(x: Any) -> Any:
        for _ in range(50):
            x = op(x)
        return x

    graph = ll.function(chain).get_concrete_function(ll.constant(0.5)).graph
    counts = {ir.Node: 0, with_blocks.Block: 0}

    def count(kind: Any) -> None:
        begin = kind.__init__

        def counted(self: Any, *args: Any, **kwargs: Any) -> None:
            counts[kind] += 1
            begin(self, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", counted)

    for kind in counts:
        count(kind)
    pair = pair_of(GraphFunction(graph), (True,))
    backward, _ = pair.backward((True,), (True,))
    assert counts[ir.Node] <= len(pair.forward.graph.nodes) + len(backward.graph.nodes) + 5
    assert counts[with_blocks.Block] < 20
