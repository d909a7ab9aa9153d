"""Traces that are not whole as graphs: what one has written so far, or up to the op or the line at which it failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from limelight.core.collector import collector_paused
from limelight.staging import partial_trace
from limelight.staging.partial_trace import PartialTrace
from limelight.user_code.source_line import Source
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_json import Describer
from limelight_widgets.folds.node_columns import Nodes
from limelight_widgets.format import counted


class _FailedNode:
    """What could not be written, or the line that raised, in the place of a node."""

    functions = outputs = params = after = ()
    device = None
    scope = ""

    def __init__(self, partial: PartialTrace) -> None:
        known = {value for node in partial.graph.nodes for value in node.outputs} | set(partial.graph.inputs)
        self.op = partial.op or partial.error.partition(":")[0]
        self.error = partial.error
        self.inputs = tuple([value for value in partial.operands if value in known])
        self.stack = tuple([Source(*line) for line in partial.stack[:1]])  # in no group: it may be closed
        self.attrs: dict[str, Any] = {}


def failed_trace(function: Any) -> PartialTrace | None:
    """The trace of a staged function that failed; None where it is traced now, or has been called well since."""
    partial = partial_trace.of(function.id)
    if partial is None or not partial.error or function.trace_cache.history.calls > partial.calls:
        return None
    return partial


def partial_state(partial: PartialTrace) -> State:
    """The state of a view of `partial`: one version of the graph, and what is said of it.

    `failed` is `{node, error}`: the last node, of kind "error", stands for what failed; it has `said`, the kind of
    error, or where no op failed how its message begins, and the module's call that it was in. Where it reads nothing
    that an op gave, it has `after`, the value that was made last. A trace that runs is `running`.
    """
    graph = partial.graph
    count = counted(len(graph.nodes), "op")
    failed = [_FailedNode(partial)] if partial.error else []
    shown = SimpleNamespace(
        name=graph.name, inputs=graph.inputs, nodes=(*graph.nodes, *failed), outputs=(), groups=(),
        input_names=graph.input_names, n_captures=graph.n_captures,
    )  # fmt: skip
    describer = Describer()
    with collector_paused():
        variants = [{"key": "traced", "graph": describer.graph(shown)}]
    if failed:
        nodes = describer.described(shown)["nodes"]  # type: ignore[index]  # it has just been described
        _stand_after_what_ran(nodes)
        node = nodes[-1]
        node["said"] = _said(partial)
        if partial.stack:
            node["stack"] = describer.stack(partial.stack, graph.name)
    said: State = {"label": f"tracing: {count} so far", "running": True}
    if failed:
        said = {"label": f"a trace that failed after {count}"}
        said["failed"] = {"node": len(graph.nodes), "error": partial.error}
    return {"variants": variants, "passes": []} | said | describer.state()


def _stand_after_what_ran(nodes: Nodes) -> None:
    """Has a failed node that reads from no op come after the last one that has a box, and be in its lane."""
    columns, at = nodes.columns, len(nodes) - 1
    inline = columns.noted("inline")
    if any(maker >= 0 and maker not in inline for maker in columns.makers[columns.reads[at]].tolist()):
        return
    ran = [k for k in range(at) if k not in inline and columns.firsts[k] < columns.firsts[k + 1]]
    if ran:
        nodes.note(at, "after", [int(columns.firsts[ran[-1]])])
        nodes.note(at, "lane", columns.kind_of(ran[-1])["lane"])


def _said(partial: PartialTrace) -> str:
    call = getattr(partial.source, "call", None)
    kind, _, message = partial.error.partition(": ")
    said = kind if partial.op or not message else message.splitlines()[0]  # the box is called as the op, or the error
    return said + (f" in {call.path}" if call is not None else "")
