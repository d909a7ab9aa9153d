"""Cheaper nodes for the same result: the rules of `algebra`, `views` and `rounding` in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from limelight.graph.ir import Graph
from limelight.optimise import algebra, rounding, views
from limelight.optimise.record import PassRecord
from limelight.optimise.rewriting import Rule, rewrite


def _together(*tables: Mapping[str, Sequence[Rule]]) -> dict[str, Sequence[Rule]]:
    ops = dict.fromkeys(op for table in tables for op in table)
    return {op: tuple([rule for table in tables for rule in table.get(op, ())]) for op in ops}


_EXACT: Final = _together(algebra.EXACT, views.EXACT)
_ALL: Final = _together(algebra.EXACT, views.EXACT, rounding.INEXACT)


def simplify(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with whatever the rules find, those included that round otherwise."""
    return rewrite("simplify", graph, _ALL)


def simplify_exactly(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with what gives the same results bit for bit."""
    return rewrite("simplify", graph, _EXACT)
