"""What compiling a graph is expected to cost, and from when on it is worth its price: the ski-rental rule.

Who does not know how often a function will be called, and begins to compile when the time spent on it exceeds what
compiling takes, never pays more than twice what the best choice in hindsight would have cost (Karlin, Manasse,
McGeoch, Owicki: "Competitive randomized algorithms for nonuniform problems", 1990). Here most of the price is paid by
another process. What this process pays, importing JAX and writing the program out, holds Python's lock; it shall not be
felt: that may take a thirtieth of the time spent so far.
"""

from __future__ import annotations

import sys
from typing import Final

from limelight.graph.ir import Graph
from limelight.graph.printer import nested

START: Final = 3.0
"""Seconds until the other process, with JAX, compiles."""
IMPORT: Final = 0.8
"""Seconds of Python's lock for importing JAX."""
COMPILE: Final = 2e-3
"""Seconds a node in the other process: 300 ops take 0.3, the L2HMC step with 9,000 takes 16 and more."""
EXPORT: Final = 1.5e-3
"""Seconds a node of Python's lock."""
LEAST_EXPORT: Final = 0.1
FELT: Final = 30
"""By how many times the time spent exceeds what this process pays."""


def seconds_due(graph: Graph) -> float:
    """How long a graph must have run in all before it is compiled."""
    nodes = sum(len(one.nodes) for one in (graph, *[function.graph for function in nested(graph)]))
    here = LEAST_EXPORT + EXPORT * nodes + (0.0 if "jax" in sys.modules else IMPORT)
    return max(START + COMPILE * nodes + here, FELT * here)
