"""A graph as a listing: a row for each op, those of the functions that it calls after its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from limelight_widgets.figures.box_text import at, value_name
from limelight_widgets.figures.graph_search import matches
from limelight_widgets.figures.static_forms import Table
from limelight_widgets.figures.visible_boxes import call_label
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NodeColumns
from limelight_widgets.format import counted, shortened

MOST_ROWS = 200
MOST_INPUTS = 8
MOST_GROUPS = 12  # fusion groups of a graph that are told
MOST_CHANGES = 20
COLUMNS = ("value", "op", "of", "gives", "line")


def listing(state: State, variant: State, find: str = "") -> Table:
    """The table of a version of a graph; below it what the optimiser did.

    With `find` only the ops that match it are listed (`graph_search`).
    """
    root = variant["graph"]
    graphs = list(_with_callees(state, root))
    fused = any("fusions" in graph for _, graph in graphs)
    changed = variant["key"] == "traced" and len(state["variants"]) > 1
    more = (("fused",) if fused else ()) + (("became",) if changed else ())
    rows: list[Sequence[str]] = []

    found = [
        [node for node in graph["nodes"] if matches(node, find)] if find else graph["nodes"] for _, graph in graphs
    ]
    for (name, graph), nodes in zip(graphs, found, strict=True):
        if name and (nodes or not find):
            rows.append(["", f"in {name}:", "", "", "", *[""] * len(more)])
        for node in nodes[: max(MOST_ROWS - len(rows), 0)]:
            rest = [str(node.get("fused", ""))] * fused + [_became(node)] * changed
            rows.append([*_row(state, graph, node), *rest])
    headings = sum(bool(name) and bool(nodes or not find) for (name, _), nodes in zip(graphs, found, strict=True))
    hidden = sum(map(len, found)) + headings - len(rows)
    said = [] if find else _fused(graphs) + (_changed(state, graphs[0][1]["nodes"]) if changed else _summary(state))
    return Table(
        (*COLUMNS, *more), rows, sentences=said, wrapped=frozenset({"op", "of"}), hidden=max(hidden, 0), unit="op"
    )


def matching(state: State, root: int, find: str) -> str:
    """How many ops of a graph, and of those that it calls, match."""
    nodes = [node for _, graph in _with_callees(state, root) for node in graph["nodes"]]
    return f"{sum(matches(node, find) for node in nodes):,} of {counted(len(nodes), 'op')} match {find}"


def passed(history: State, graphs: Sequence[State], stop: int) -> list[str]:
    """What the pass at a stop of the history did: its arithmetic, then its changes."""
    one = history["stops"][stop]
    if not stop:
        return [f"{one['name']}: {counted(one['after'], 'op')}"]
    nodes = graphs[history["graph"]]["nodes"]

    def said(places: Sequence[int]) -> str:
        return ", ".join(f"{' '.join(nodes[k]['names'][:1])} {nodes[k]['op']}".strip() for k in places[:4]) or "nothing"

    head = f"{one['name']}: {one['before']} − {one['removed']} + {one['added']} = {counted(one['after'], 'op')}"
    changes = [f"{rule}: {said(old)} → {said(new)} ({reason})" for rule, reason, old, new in one["changes"]]
    more = len(changes) - MOST_CHANGES
    return [head, *changes[:MOST_CHANGES], *([f"and {more:,} more"] if more > 0 else [])]


def _with_callees(state: State, root: int) -> Iterator[tuple[str, State]]:
    """A graph and all that it calls, each once; the first without a name."""
    names = {root: ""}
    for index in names.copy():
        waiting = [index]
        while waiting:
            graph = waiting.pop(0)
            yield names[graph], state["graphs"][graph]
            nodes = NodeColumns.of(state["graphs"][graph])
            for k in nodes.where(lambda kind: "calls" in kind):
                for callee, name in nodes.kind_of(k)["calls"]:
                    if callee not in names:
                        names[callee] = name
                        waiting.append(callee)


def _row(state: State, graph: State, node: State) -> list[str]:
    inputs = ", ".join(value_name(graph, number) for number in node.get("in", ())[:MOST_INPUTS])
    op = call_label(node) if node["kind"] == "call" else node["op"]
    if node["kind"] == "constant":
        inputs = shortened(", ".join(node.get("attrs", {}).values()), 24)
    return [" ".join(node.get("names", ())), op, inputs, ", ".join(node.get("out", ())), at(state, node)]


def _became(node: State) -> str:
    words, _, mark = node.get("became", ("", (), ""))
    return mark or ("fused" if "fused into" in words else "")


def _fused(graphs: Sequence[tuple[str, State]]) -> list[str]:
    """The fusion groups, which a picture shows as frames."""
    said = []
    for name, graph in graphs:
        fusions = graph.get("fusions", ())
        for number, fusion in enumerate(fusions[:MOST_GROUPS], start=1):
            ops = ", ".join(graph["nodes"][index]["op"] for index in fusion["nodes"][:MOST_INPUTS])
            more = f" and {len(fusion['nodes']) - MOST_INPUTS} more" if len(fusion["nodes"]) > MOST_INPUTS else ""
            where = f" (in {name})" if name else ""
            said.append(f"fused {number}{where}: {counted(len(fusion['nodes']), 'op')} in one go: {ops}{more}")
        if len(fusions) > MOST_GROUPS:
            said.append(f"and {len(fusions) - MOST_GROUPS} fusion groups more{f' in {name}' if name else ''}")
    return said


def _changed(state: State, nodes: Sequence[State]) -> list[str]:
    """What became of the nodes that did not stay as they were traced."""
    changed = [node for node in nodes if node.get("became", ("", (), ""))[2]]
    said = [f"{' '.join(node['names'])} {node['op']}: {node['became'][0]}" for node in changed[:MOST_CHANGES]]
    more = len(changed) - len(said)
    return _summary(state) + said + ([f"and {more:,} more"] if more else [])


def _summary(state: State) -> list[str]:
    """How many nodes of the traced graph had which fate; where it is not described, what each pass took and gave."""
    traced = next((v for v in state["variants"] if v["key"] == "traced"), None)
    if traced is not None and len(state["variants"]) > 1:
        nodes = NodeColumns.of(state["graphs"][traced["graph"]])
        marks = Counter(mark for _, _, mark in nodes.noted("became").values())
        before, told = len(nodes), [f"{count:,} {mark}" for mark, count in marks.items() if mark]
    elif state.get("waiting") == "traced" and state.get("passes"):
        before = state["passes"][0]["before"]
        told = [f"{one['name']}{_difference(one)}" for one in state["passes"] if _difference(one)]
    else:
        return []
    did = f"what the optimiser did to the {counted(before, 'op')} as traced: {', '.join(told)}"
    return [did + _arithmetic(state, before)] if told else []


def _difference(one: State) -> str:
    """What a pass took away and added, nothing where it did neither."""
    return (f" −{one['removed']:,}" if one["removed"] else "") + (f" +{one['added']:,}" if one["added"] else "")


def _arithmetic(state: State, before: int) -> str:
    """How many nodes that leaves; what takes the place of others has been added."""
    removed, added = (sum(one[key] for one in state.get("passes", ())) for key in ("removed", "added"))
    return f"; {before:,} − {removed:,} + {added:,} = {counted(before - removed + added, 'op')}" if removed else ""
