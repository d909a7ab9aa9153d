"""What the backward pass keeps alive, and what recomputing it instead would save and cost (Chen et al. 2016)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple

from limelight.core import dispatch
from limelight.explain.backward_pass.both_passes import BothPasses, both_passes, is_backward
from limelight.explain.op_costs import payload_bytes
from limelight.graph.ir import Node, Value
from limelight.user_code import source_line
from limelight.user_code.source_line import Source

_RUNS: Final = 5  # of which the median is taken


class Recomputation(NamedTuple):
    """A tensor that the backward pass needs: dropping it saves `nbytes`, making it again costs `seconds`.

    The time is measured, and has that of all ops which would run again: back to inputs and to what is kept anyway.

    >>> import limelight as ll
    >>> report = ll.explain.recomputations(lambda x: ll.sum(ll.tanh(x)), ll.ones(10))
    >>> report.records[0].op, report.records[0].nbytes
    ('tanh', 40)
    """

    op: str
    line: Source | None
    spec: str
    nbytes: int
    seconds: float
    again: tuple[str, ...]

    def __str__(self) -> str:
        ops = f" ({', '.join(self.again)})" if len(self.again) > 1 else ""
        what = f"{self.op} {self.spec}{source_line.at(self.line)}"
        return (
            f"{what}: dropping this and recomputing saves {self.nbytes:,} bytes, costs {self.seconds * 1e3:.3g} ms{ops}"
        )


@dataclass(frozen=True)
class Recomputations:
    """A record for each tensor that is kept for the gradient, the most bytes for a second first.

    >>> import limelight as ll
    >>> print(ll.explain.recomputations(lambda x: ll.sum(x), ll.ones(10)))
    the gradient of `<lambda>` keeps nothing but inputs
    """

    name: str
    records: tuple[Recomputation, ...]

    def __str__(self) -> str:
        if not self.records:
            return f"the gradient of `{self.name}` keeps nothing but inputs"
        total = sum(record.nbytes for record in self.records)
        kept = f"keeps {total:,} bytes that ops made; ll.recompute_grad(f) keeps none of f's"
        head = f"the gradient of `{self.name}` {kept}:"
        return "\n".join([head, *[f"  {record}" for record in self.records]])

    __repr__ = __str__


def recomputations(F: Callable[..., Any], *args: Any, gradient_of: Any = True, **kwargs: Any) -> Recomputations:
    """What the gradient of `F(*args, **kwargs)` keeps, and for each tensor what recomputing it would save and cost.

    Times are medians of five runs of the traced graph, op by op. `gradient_of` and what is raised are as for
    `ll.explain.check_gradient`.

    >>> import limelight as ll
    >>> report = ll.explain.recomputations(lambda x: ll.sum(ll.tanh(x) * 2.0), ll.ones((10,)))
    >>> [(kept.op, kept.nbytes) for kept in report.records]
    [('tanh', 40)]
    """
    passes = both_passes("recomputations", F, gradient_of, args, kwargs)
    nodes = [node for node in passes.graph.nodes if not is_backward(node)]
    made = {value: node for node in nodes for value in node.outputs}
    needed = [value for node in passes.graph.nodes if is_backward(node) for value in node.inputs if value in made]
    kept = {value: made[value] for value in needed if made[value].op.name != "constant" and not made[value].op.effect}
    seconds, sizes = _measured(passes)
    records = [_record(value, node, kept, made, seconds, sizes[value]) for value, node in kept.items()]
    records.sort(key=lambda record: -record.nbytes / max(record.seconds, 1e-9))
    return Recomputations(passes.name, tuple(records))


def _measured(passes: BothPasses) -> tuple[dict[Node, float], dict[Value, int]]:
    """How long each op took, and the bytes of each value: a spec does not know them all."""
    times: dict[Node, list[float]] = {}
    sizes: dict[Value, int] = {}
    for _ in range(_RUNS):
        with dispatch.fresh_stack(), passes.without_effects():
            run = passes.run()  # to set it up takes the longer the larger the graph is, and is no op's time
            start = time.perf_counter()
            for node, outputs in run:
                now = time.perf_counter()
                times.setdefault(node, []).append(now - start)
                sizes |= zip(node.outputs, map(payload_bytes, outputs), strict=True)
                start = time.perf_counter()
    return {node: median(measured) for node, measured in times.items()}, sizes


def _record(
    value: Value,
    node: Node,
    kept: dict[Value, Node],
    made: dict[Value, Node],
    seconds: dict[Node, float],
    nbytes: int,
) -> Recomputation:
    """A record for one tensor.

    Args:
        value: the tensor.
        node: the op that made it.
        kept: what is kept for the gradient.
        made: the ops of all values of the call.
        seconds: how long each op took.
        nbytes: of the tensor, as it ran.
    """
    again: dict[Node, None] = {}
    waiting = [node]
    while waiting:
        one = waiting.pop()
        again[one] = None
        waiting += [made[x] for x in one.inputs if x in made and x not in kept and made[x] not in again]
    cost = sum(seconds.get(one, 0.0) for one in again)
    line = node.stack[0] if node.stack else None
    ops = tuple([one.op.name for one in again if one.op.name != "constant"])
    return Recomputation(node.op.name, line, str(value.spec), nbytes, cost, ops)
