"""Graphs as files, by the ending of the name: what `%graph --save` and the button of the view write.

| ending | what |
| --- | --- |
| `.svg` | the static picture, its text selectable; the same bytes for the same graph |
| `.png` | that picture at twice its size, where `cairosvg` is installed |
| `.html` | a page with the picture and the listing, as a notebook has them where there is no kernel |
| `.dot`, `.gv` | Graphviz's language: groups are clusters, called functions are drawn beside |
| `.json` | all that the view knows (see `docs/graph_files.md`) |
| `.me.json` | a graph collection for Model Explorer |
| `.txt` | a listing of all ops |

`js/src/graph/graph-files.js` writes the same DOT and JSON in the page; the tests hold both to the same examples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from limelight.errors import ArgumentError
from limelight_widgets.figures import files
from limelight_widgets.figures.box_text import at, values
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.figures.visible_boxes import call_label
from limelight_widgets.folds.fold import State

SCHEMA: Final = "limelight-graph/1"
ENDINGS: Final = (".svg", ".png", ".html", ".dot", ".gv", ".me.json", ".json", ".txt")
_LISTED: Final = ".svg, .png, .html, .dot, .json, .me.json (for Model Explorer) or .txt"


def ending_of(path: str | os.PathLike[str]) -> str:
    """The ending of a file's name that says what is written.

    >>> ending_of("step.ME.json")
    '.me.json'

    Raises:
        ArgumentError: nothing is written under such a name.
    """
    name = Path(path).name.lower()
    for ending in ENDINGS:
        if name.endswith(ending) and name != ending:
            return ending
    raise ArgumentError(f"a graph is not saved as {Path(path).name!r}: give a name that ends in {_LISTED}")


def write(path: str | os.PathLike[str], state: State, which: str, form: Callable[[], Figure]) -> str:
    """Writes a file, in the place of one that is there; what was there stays if that fails.

    Args:
        path: the file's name; its ending says what is written.
        state: of a graph fold.
        which: the version of the graph.
        form: gives the static forms.

    Returns:
        what was done, in a sentence.

    Raises:
        ArgumentError: there is no graph, or no such ending.
        ImportError: for a PNG something must be installed.
        OSError: the file cannot be written; the message says why.
    """
    ending = ending_of(path)
    if not state["variants"]:
        raise ArgumentError(state["empty"])
    content = _content(ending, state, which, form)
    return files.replaced(path, content)


def _content(ending: str, state: State, which: str, form: Callable[[], Figure]) -> bytes:
    if ending == ".png":
        return files.png(form().svg)
    if ending == ".svg":
        return (form().svg + "\n").encode()
    if ending == ".html":
        return (files.page(form()) + "\n").encode()
    text = {".json": as_json, ".me.json": model_explorer, ".txt": listing}.get(ending, dot)(state, which)
    return text.encode()


def as_json(state: State, which: str) -> str:
    """All that the view knows of a graph, with the version that is meant."""
    chosen = _chosen(state, which)
    head = {"schema": SCHEMA, "version": chosen["key"]}
    known = {key: value for key, value in state.items() if key not in ("revision", "described")}
    return json.dumps(head | known, ensure_ascii=False, separators=(",", ":")) + "\n"


def listing(state: State, which: str) -> str:
    """A line for each op, those of called functions after it."""
    root = _chosen(state, which)["graph"]
    lines = [state["title"]]
    for index in _reached(state, root):
        graph = state["graphs"][index]
        names = [name for name, _ in values(graph)]
        lines += [] if index == root else ["", f"in {graph['name']}:"]
        lines += [_row(state, node, names) for node in graph["nodes"]]
    return "\n".join([*lines, ""])


def _row(state: State, node: State, names: Sequence[str]) -> str:
    of = ", ".join([names[value] for value in node.get("in", ())])
    if node["kind"] == "constant":
        of = next(iter(node.get("attrs", {}).values()), "constant")
    named = f"{', '.join(node['names'])} = " if node.get("names") else ""
    op = call_label(node) if node["kind"] == "call" else node["op"]
    parts = [f"{named}{op}({of})", ", ".join(node.get("out", ())), at(state, node)]
    return "  ".join([part for part in parts if part])


def model_explorer(state: State, which: str) -> str:
    """A graph collection of Model Explorer: https://github.com/google-ai-edge/model-explorer, `graph_builder.py`."""
    root = _chosen(state, which)["graph"]
    graphs = [_explored(state, index) for index in _reached(state, root)]
    collection = {"label": state["title"], "graphs": graphs}
    return json.dumps(collection, ensure_ascii=False, separators=(",", ":")) + "\n"


def _explored(state: State, index: int) -> State:
    graph = state["graphs"][index]
    producers = _producers(graph)
    nodes = [{"id": f"i{k}", "label": given["name"], "namespace": "", "attrs": _pairs({"kind": "input"}),
              "outputsMetadata": [_metadata(0, given["spec"])]} for k, given in enumerate(graph["inputs"])]  # fmt: skip
    for k, node in enumerate(graph["nodes"]):
        facts = {"lane": node.get("lane", ""), "line": at(state, node), "device": node.get("device", "")}
        nodes.append({
            "id": f"n{k}", "label": node["op"], "namespace": _namespace(graph, node),
            "subgraphIds": [_graph_id(state, callee) for callee, _ in node.get("calls", ())],
            "attrs": _pairs(node.get("attrs", {}) | facts),
            "incomingEdges": [_edge(producers[value], place) for place, value in enumerate(node.get("in", ()))],
            "outputsMetadata": [_metadata(i, spec) for i, spec in enumerate(node.get("out", ()))],
        })  # fmt: skip
    for k, value in enumerate(graph["outputs"]):
        nodes.append(
            {"id": f"o{k}", "label": f"output {k}", "namespace": "", "incomingEdges": [_edge(producers[value], 0)]}
        )
    return {"id": _graph_id(state, index), "nodes": nodes}


def _graph_id(state: State, index: int) -> str:
    return f"{index}: {state['graphs'][index]['name']}"


def _pairs(facts: dict[str, Any]) -> list[State]:
    return [{"key": key, "value": str(value)} for key, value in facts.items() if value]


def _metadata(place: int, spec: str) -> State:
    return {"id": str(place), "attrs": [{"key": "tensor_shape", "value": spec}]}


def _edge(producer: tuple[str, int], place: int) -> State:
    return {"sourceNodeId": producer[0], "sourceNodeOutputId": str(producer[1]), "targetNodeInputId": str(place)}


def _namespace(graph: State, node: State) -> str:
    """The lane, and the groups around a node."""
    names: list[str] = []
    index = node.get("group", -1)
    while index >= 0:
        group = graph["groups"][index]
        names.insert(0, group["label"].replace("/", "|"))
        index = group["parent"]
    return "/".join([*([node["lane"]] if "lane" in node else []), *names])


def _producers(graph: State) -> list[tuple[str, int]]:
    """For each value the id of what makes it, and its place among that one's outputs."""
    made = [(f"i{k}", 0) for k in range(len(graph["inputs"]))]
    for k, node in enumerate(graph["nodes"]):
        made += [(f"n{k}", i) for i in range(len(node.get("out", ())))]
    return made


def _reached(state: State, root: int) -> list[int]:
    """A graph and all that it calls, each once."""
    found = [root]
    for index in found:
        for node in state["graphs"][index]["nodes"]:
            found += [callee for callee, _ in node.get("calls", ()) if callee not in found]
    return list(dict.fromkeys(found))


def dot(state: State, which: str) -> str:
    """Graphviz's language."""
    root = _chosen(state, which)["graph"]
    lines = [f"digraph {_quoted(state['title'])} {{", '  node [shape=box, fontname="sans-serif"];']
    for index in _reached(state, root):
        called = index != root
        if called:
            lines += [f"  subgraph cluster_g{index} {{", f"    label={_quoted(state['graphs'][index]['name'])};"]
        lines += list(_drawn(state, index))
        lines += ["  }"] * called
    return "\n".join([*lines, "}", ""])


def _drawn(state: State, index: int) -> Iterator[str]:
    graph = state["graphs"][index]
    prefix = f"g{index}_"
    for k, given in enumerate(graph["inputs"]):
        yield f"  {prefix}i{k} [label={_quoted(given['name'], given['spec'])}, shape=ellipse];"
    yield from _clusters(state, index, -1, prefix)
    specs = [spec for _, spec in values(graph)]
    producers = _producers(graph)
    for k, node in enumerate(graph["nodes"]):
        for value in node.get("in", ()):
            yield f"  {prefix}{producers[value][0]} -> {prefix}n{k} [label={_quoted(specs[value])}];"
    for k, value in enumerate(graph["outputs"]):
        yield f'  {prefix}o{k} [label="output {k}", shape=ellipse, style=bold];'
        yield f"  {prefix}{producers[value][0]} -> {prefix}o{k} [label={_quoted(specs[value])}];"


def _clusters(state: State, index: int, parent: int, prefix: str) -> Iterator[str]:
    graph = state["graphs"][index]
    for k, node in enumerate(graph["nodes"]):
        if node.get("group", -1) == parent:
            label = [node["op"], *[f"{name}={text}" for name, text in node.get("attrs", {}).items()]]
            yield f"  {prefix}n{k} [label={_quoted(*label)}, tooltip={_quoted(at(state, node))}];"
    for k, group in enumerate(graph["groups"]):
        if group["parent"] == parent:
            yield f"  subgraph cluster_{prefix}{k} {{"
            yield f"    label={_quoted(group['label'])};"
            yield from _clusters(state, index, k, prefix)
            yield "  }"


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def _chosen(state: State, which: str) -> State:
    chosen: State = next((v for v in state["variants"] if v["key"] == which), state["variants"][0])
    return chosen
