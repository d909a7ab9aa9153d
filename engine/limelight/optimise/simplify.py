"""Cheaper nodes for the same result: the rules of `algebra`, `view_algebra` and `inexact_algebra` in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from limelight.graph.ir import Graph
from limelight.optimise import algebra, inexact_algebra, view_algebra
from limelight.optimise.layouts import Layouts
from limelight.optimise.pass_record import PassRecord
from limelight.optimise.product_operands import partners_of
from limelight.optimise.rewriter import Rule, rewrite
from limelight.optimise.view_algebra import VIEWS


def _merged(*tables: Mapping[str, Sequence[Rule]]) -> dict[str, Sequence[Rule]]:
    ops = dict.fromkeys(op for table in tables for op in table)
    return {op: tuple([rule for table in tables for rule in table.get(op, ())]) for op in ops}


_ARITHMETIC: Final = VIEWS | {"constant", "negative"}
_PRODUCERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "maximum", "minimum"), _ARITHMETIC),
    **dict.fromkeys(("exp", "log", "sqrt", "tanh", "sin", "cos", "sigmoid"), VIEWS),
    "negative": VIEWS | {"negative", "multiply"},
    "pow": frozenset(["constant"]),
}
"""What must make an operand for a rule to find something: most nodes need not be looked at more closely."""
_EXACT: Final = _merged(algebra.EXACT, view_algebra.EXACT)
_INEXACT: Final = _merged(algebra.EXACT, view_algebra.EXACT, inexact_algebra.INEXACT)


def simplify(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with whatever the rules find, those included that round otherwise."""
    return rewrite("simplify", graph, _INEXACT, _PRODUCERS)


def simplify_exactly(graph: Graph) -> tuple[Graph, PassRecord]:
    """`graph` with what gives the same results bit for bit."""
    return rewrite("simplify", graph, _EXACT, _PRODUCERS, partners_of(graph), Layouts())
