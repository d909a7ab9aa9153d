"""What tests of tables share: functions staged for an executor, the tables that run them, and the bits of results."""

from __future__ import annotations

from typing import Any

import numpy as np

import limelight as ll
from limelight.executors import base
from limelight.executors.loops import loops

RANDOM = np.random.default_rng(0)
X = (RANDOM.standard_normal((6, 5)) * 0.5).astype("f4")
W = (RANDOM.standard_normal((5, 5)) * 0.5).astype("f4")


def staged(function: Any, *args: Any, executor: str = "loops") -> Any:
    """The function, traced for an executor."""
    with base.chosen.override(executor):
        run = ll.function(function)
        run(*args)
    return run


def in_tables(run: Any) -> tuple[list[Any], set[str]]:
    """The tables that a function runs, and the ops that the plan runs."""
    graph = loops.in_stretches(run.trace_cache[0].optimised, lambda stretch: stretch).graph
    tables = [node.op.table for node in graph.nodes if hasattr(node.op, "table")]
    return tables, {str(node.op) for node in graph.nodes if not hasattr(node.op, "table")} - {"constant"}


def bits(result: Any) -> list[bytes]:
    leaves = result if isinstance(result, (list, tuple)) else [result]
    return [byte for x in leaves for byte in (bits(x) if isinstance(x, (list, tuple)) else [x.numpy().tobytes()])]


def with_gradient(function: Any) -> Any:
    def both(*args: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(args)
            result = function(*args)
            target = result[0] if isinstance(result, tuple) else result
        return result, tape.gradient(target, list(args), unconnected_gradients="zero")

    return both
