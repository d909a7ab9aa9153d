"""What is written on the boxes of a graph."""

from __future__ import annotations

from dataclasses import dataclass

from limelight_widgets.figures.layered_layout import Point
from limelight_widgets.figures.nested_layout import CHARACTER
from limelight_widgets.figures.visible_boxes import Box, call_label
from limelight_widgets.folds.fold import State
from limelight_widgets.format import counted, shortened

TITLE_WIDTH = 28  # characters
DETAIL_WIDTH = 34
DETAIL_CHARACTER = 6.1  # width of a character of the second line


@dataclass(frozen=True, slots=True)
class Words:
    """A box's name in the listing, its title, its second line, its kind, and the line of code behind it."""

    name: str
    title: str
    detail: str
    kind: str
    line: str

    def size(self) -> Point:
        """Width and height of the box."""
        glyph = 0 if self.kind == "op" else 2
        width = max(CHARACTER * 1.1 * (len(self.title) + glyph), DETAIL_CHARACTER * len(self.detail)) + 20.0
        return max(width, 44.0), 38.0 if self.detail else 24.0


def words(state: State, box: Box) -> Words:
    """The words on `box`, a box of a picture of `state`."""
    graph = state["graphs"][box.graph]
    if box.kind == "input":
        value = graph["inputs"][box.index]
        role = "captured " if value.get("captured") else ""
        return _words(value["name"], value["name"], role + value["spec"], "input", "")
    if box.kind == "output":
        name, spec = values(graph)[graph["outputs"][box.index]]
        return _words(name, _output_title(graph, box.index), spec, "output", "")
    if box.kind == "decision":
        node = graph["nodes"][box.index]
        name, spec = values(graph)[node["in"][box.position]]
        return _words(name, "index" if node["op"] == "switch" else "condition", spec, "decision", at(state, node))
    if box.kind == "group":
        group = graph["groups"][box.index]
        return _words("", group["label"], counted(group["size"], "op"), "group", "")
    node = graph["nodes"][box.index]
    names, specs = " ".join(node.get("names", ())), ", ".join(node.get("out", ()))
    added = [node["device"]] if "device" in node else []
    added += [node["became"][2]] if "became" in node and node["became"][2] else []
    return _words(names, _title(node), specs, node["kind"], at(state, node), " · ".join(added))


def at(state: State, node: State) -> str:
    """The label and number of the line that made a node, "" where that is not known."""
    stack = node.get("stack")
    return f"{state['sources'][stack[0][0]]['label']}:{stack[0][1]}" if stack else ""


def values(graph: State) -> list[tuple[str, str]]:
    """Name and spec of every numbered value of a described graph."""
    produced = [
        pair for node in graph["nodes"] for pair in zip(node.get("names", ()), node.get("out", ()), strict=True)
    ]
    return [(value["name"], value["spec"]) for value in graph["inputs"]] + produced


def _title(node: State) -> str:
    if node["kind"] == "call":
        return call_label(node)
    if node["kind"] == "constant":
        return next(iter(node.get("attrs", {}).values()), "constant")
    return str(node["op"] + node.get("operands", ""))


def _output_title(graph: State, index: int) -> str:
    if "output_names" in graph:
        return str(graph["output_names"][index])
    return "output" if len(graph["outputs"]) == 1 else f"output {index}"


def _words(name: str, title: str, detail: str, kind: str, line: str, added: str = "") -> Words:
    added = " · " * bool(detail and added) + added  # however long the rest is, it is not cut off
    detail = shortened(detail, DETAIL_WIDTH - len(added)) + added
    return Words(name, shortened(title, TITLE_WIDTH), detail, kind, line)
