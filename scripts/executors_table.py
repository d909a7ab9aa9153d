"""Tries every op in the tables of the executor `loops`, and writes docs/executors.md.

    python scripts/executors_table.py

Each op is staged as one case of its tests uses it; what no table runs is left to the plan, with the executor's reason.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import all_ops, home_of
from limelight.errors import LimelightError
from limelight.executors.loops.control_flow import LOWERINGS
from limelight.executors.loops.stretches import in_stretches
from limelight.graph.ir import Graph
from stablehlo_table import cases

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "executors.md"
UNTRIED: Final = "has no case of its own: control flow, changes of state, what batching and gradients make of them"
ASSIGNMENTS: Final = ("assign", "assign_add", "assign_sub")
_OPEN_LOOPS: Final = ("while_forward",)
_COPIES: Final = 4  # a stretch of one or two nodes is not worth a table
_BEGINS: Final = "The tables run "
_KINDS: Final = {
    "too few nodes": "",  # a view or a constant, of which a table needs no row
    "tables do not know": "its kernel calls functions of NumPy that tables do not know",
    "NumPy's": "its kernel calls NumPy in a way that tables do not know",
    "no loop of": "its kernel calls NumPy in a way that tables do not know",
    "there is no loop": "its kernel calls NumPy in a way that tables do not know",
    "its kernel raises": "its kernel uses of arrays what tables do not know",
}
"""What the reasons begin with, and what the page says."""


def fate_of_case(case: Any) -> str:
    """Why the tables leave an op alone as a case uses it; "" where they run it."""
    dtype = case.tried[-1] if dtypes.is_inexact(case.tried[-1]) else case.tried[0]
    if dtypes.float32 in case.tried:
        dtype = dtypes.float32
    return fate(case.call, [ll.constant(array) for array in case.arrays(dtype)], case.op)


def fate(call: Callable[..., Any], tensors: list[Any], op: str) -> str:
    """Why the tables leave an op alone in a function of tensors; "" where they run it."""
    n = len(tensors)
    f = ll.function(lambda *xs: [call(*xs[i * n : (i + 1) * n]) for i in range(_COPIES)])
    f(*tensors * _COPIES)
    return _reason(f.trace_cache[0].graph, op)


def _reason(graph: Graph, op: str) -> str:
    tried = in_stretches(graph, lambda stretch: lambda *values: values)
    nodes = [node for node in tried.graph.nodes if node.op == op]
    reasons = [tried.reasons.get(node, "") for node in nodes]
    return _said(reasons[0]) if reasons else ""


def _said(reason: str) -> str:
    """A reason as the page has it, one for all nodes of its kind."""
    return next((said for begins, said in _KINDS.items() if reason.startswith(begins)), reason)


def outcomes() -> dict[str, str]:
    """For each op why it is left to the plan; "" for those that tables run."""
    found = {}
    by_op = cases()
    for name in sorted(all_ops()):
        if not home_of(name).startswith("limelight."):
            continue
        tries = [""] if name in LOWERINGS or name in ASSIGNMENTS or name in _OPEN_LOOPS else []
        for case in by_op.get(name, [])[:4]:
            try:
                tries.append(fate_of_case(case))
            except LimelightError as error:
                tries.append(f"{type(error).__name__} while tracing")
        found[name] = ("" if "" in tries else tries[0]) if tries else UNTRIED
    return found


def page() -> str:
    """The page: what stands above its table stays."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, why in outcomes().items():
        reasons[why].append(f"`{name}`")
    inside = reasons.pop("")
    lines = [
        f"{_BEGINS}{len(inside)} ops: {', '.join(inside)}.",
        "",
        "| left to the plan | since |",
        "| --- | --- |",
    ]
    lines += [
        f"| {', '.join(names)} | {why} |" for why, names in sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    ]
    above = PAGE.read_text(encoding="utf-8").partition(_BEGINS)[0]
    return above + "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a function is staged anew for each case
    PAGE.write_text(page(), encoding="utf-8")
