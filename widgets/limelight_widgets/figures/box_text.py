"""What is written on the boxes of a graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from limelight_widgets.figures.lanes import lanes_of, outermost_of
from limelight_widgets.figures.layered_layout import Point
from limelight_widgets.figures.nested_layout import Manner
from limelight_widgets.figures.visible_boxes import Box, Picture, call_label
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NodeColumns
from limelight_widgets.format import bytes_text, counted, shortened

TITLE_WIDTH = 28  # characters
RULES_WIDTH = 40  # of an optimiser: its kind, how many variables, how many rules
DETAIL_WIDTH = 34
TITLE_CHARACTER = 7.4
MANY = 30  # ops of a layer from which on they are counted on its box
TAG_WIDTH = 26  # characters of all variables of a box together; beyond, they are counted
DETAIL_CHARACTER = 6.7  # width of a character of the second line
RANDOM_STATE = "random state"
GRADIENT = "∇"  # before the title of what a gradient computes


@dataclass(frozen=True, slots=True)
class Words:
    """A box's name in the listing, its title, its second line, its kind, and the line of code behind it."""

    name: str
    title: str
    detail: str
    kind: str
    line: str
    tags: str = ""

    def size(self) -> Point:
        """Width and height of the box."""
        glyph = 0 if self.kind == "op" else 2
        below = DETAIL_CHARACTER * max(len(self.detail), len(self.tags))
        width = max(TITLE_CHARACTER * (len(self.title) + glyph), below, 24.0)
        return width + 14.0, 24.0 + (14.0 if self.detail else 0.0) + (14.0 if self.tags else 0.0)


def words_in(state: State, picture: Picture, manner: Manner) -> dict[str, Words]:
    """The words on all boxes of a picture that is drawn in that manner: where no lane says it, gradients do.

    Closed gradients that stand below no box of their own tell what is kept for them: no line does.
    """
    said = {box.name: words(state, box, picture.tags.get(box.name, ())) for box in picture.boxes}
    for name, kept in _kept_for(picture, manner).items():
        said[name] = replace(said[name], detail=f"{said[name].detail} · {bytes_text(kept)} kept")
    for box in picture.boxes:
        if box.lane == "backward" and not manner.lanes:
            said[box.name] = replace(said[box.name], title=f"{GRADIENT} {said[box.name].title}")
        if manner.terse:
            said[box.name] = replace(said[box.name], detail="", tags="")
    return said


def _kept_for(picture: Picture, manner: Manner) -> dict[str, float]:
    """By closed gradient, the bytes of the forward pass that it reads, but for those that a dotted line tells."""
    lanes = lanes_of(picture) if manner.lanes else None
    beside, around = lanes.partners if lanes is not None else {}, outermost_of(picture)
    closed = {box.name for box in picture.boxes if box.kind == "group" and box.lane == "backward"}
    made = {box.name for box in picture.boxes if box.lane in {"forward", "loss"}}
    kept: dict[str, float] = {}
    lined = set(beside.values())
    for (source, target), size in picture.bytes.items():
        told = around[target] in beside or around[source] in lined
        if size and target in closed and source in made and not told:
            kept[target] = kept.get(target, 0) + size
    return kept


def words(state: State, box: Box, tags: Collection[str] = ()) -> Words:
    """The words on `box`, a box of a picture of `state` with these `tags`."""
    graph = state["graphs"][box.graph]
    if box.kind == "input":
        value = graph["inputs"][box.index]
        role = "captured " if value.get("captured") else ""
        spec = RANDOM_STATE if value["spec"] == "generator" else role + value["spec"]  # a model may be a generator, too
        return _words(value["name"], value["name"], spec, "input", "")
    if box.kind == "output":
        name, spec = _value(graph, graph["outputs"][box.index])
        return _words(name, _output_title(graph, box.index), spec, "output", "")
    if box.kind == "decision":
        node = graph["nodes"][box.index]
        name, spec = _value(graph, node["in"][box.position])
        return _words(name, "index" if node["op"] == "switch" else "condition", spec, "decision", at(state, node))
    if box.kind == "group":
        return _group_words(graph["groups"][box.index], box, tags)
    node = graph["nodes"][box.index]
    names, specs = " ".join(node.get("names", ())), ", ".join(node.get("out", ()))
    if node["kind"] == "error":
        return _words("", node["op"], node["said"], "error", at(state, node))
    added = [node["device"]] if "device" in node else []
    added += [node["became"][2]] if "became" in node and node["became"][2] else []
    said = _words(names, _title(node), specs, node["kind"], at(state, node), " · ".join(added))
    return replace(said, tags=_tags(tags, box, writes=node["kind"] == "variable"))


def _group_words(group: State, box: Box, tags: Collection[str]) -> Words:
    if box.more:
        return _words("", f"{box.more:,} more", "equal to these", "group", "")
    forward = box.lane in {"", "forward"}  # kind and line are said once for a layer and its gradient
    told = group["label"].endswith(f": {group.get('cls')}")  # of a layer of a sequence
    kind = group.get("cls", "") if forward and group["kind"] in {"module", "repeat"} and not told else ""
    ops: int = group["ops"] if "ops" in group else group["size"]
    told_once = forward or group["kind"] == "optimiser"
    line = f"line {group['at'][1]}" if "at" in group and told_once else ""
    detail = [part for part in (kind, "" if kind and ops < MANY else counted(ops, "op"), line) if part]
    if len(" · ".join(detail)) > DETAIL_WIDTH:  # the number of ops is told by the details, too
        detail = [part for part in (kind, line) if part]
    said = _words("", group["label"], " · ".join(detail), "group", "")
    if group["kind"] == "optimiser":
        said = replace(said, title=shortened(group["label"], RULES_WIDTH))
    return replace(said, tags=_tags(_all_tags(group, tags), box))


def _all_tags(group: State, tags: Collection[str]) -> list[str]:
    """What its own nodes use, with shapes, then what groups inside it use; a constant says nothing of a whole group."""
    own = [] if "repeat" in group else [tag for tag in group.get("tags", ()) if not tag.startswith("constant ")]
    named = {tag.partition(" ")[0] for tag in own}
    return [*own, *(tag for tag in tags if tag.partition(" ")[0] not in named or tag.startswith("▶"))]


def _tags(tags: Collection[str], box: Box, *, writes: bool = False) -> str:
    """The variables that a box of the forward pass uses, or that an op writes to, and the outputs that it gives.

    They are named where there is room, else counted.
    """
    results = " ".join(tag for tag in tags if tag.startswith("▶"))
    used = [] if box.lane in {"backward", "update"} and not writes else [tag for tag in tags if not tag.startswith("▶")]
    named = " ".join(tag.split(" ")[0] for tag in used)
    noun = "value" if any(tag.split(" ")[0].endswith("]") for tag in used) else "variable"  # an element of a list
    short = len(named) <= TAG_WIDTH or len(used) == 1
    variables = f"▣ {shortened(named, TAG_WIDTH)}" if short else f"▣ {counted(len(used), noun)}"
    parts = [variables if used else "", results if len(results) <= TAG_WIDTH else "▶ outputs"]
    return "  ".join(part for part in parts if part)


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


def value_name(graph: State, number: int) -> str:
    """The name of one value."""
    return _value(graph, number)[0]


def _value(graph: State, number: int) -> tuple[str, str]:
    """Name and spec of one value."""
    if number < len(graph["inputs"]):
        given = graph["inputs"][number]
        return given["name"], given["spec"]
    nodes = NodeColumns.of(graph)
    index = int(nodes.makers[number])
    node, place = graph["nodes"][index], number - int(nodes.firsts[index])
    return node["names"][place], node["out"][place]


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
