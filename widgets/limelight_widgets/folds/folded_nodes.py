"""Nodes that are no boxes: parameters, their reads, constants, casts and reshapes fold into what uses them.

Parameters, tensors of a list and constants become tags of the nodes that use them ("conv1.kernel f32[3,3,16,32]"); a
cast or a change of shape that only one node uses is drawn as a part of that. A folded node keeps its place in the
graph: searches and listings find it, and `folded_into` is the box to go to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from limelight_widgets.folds.fold import State

PASSED_THROUGH = frozenset({
    "astype", "reshape", "identity", "broadcast_to", "expand_dims", "squeeze", "transpose", "matrix_transpose", "sum_to"
})  # fmt: skip
READS = frozenset({"read_variable"})
_FOLDING = PASSED_THROUGH | READS
MOST_TAGS = 12  # on one node
MOST_OF_LIST = 3  # elements of a list of tensors that have boxes


def fold(graph: State, lanes: Sequence[str], readers: Sequence[Sequence[int]], makers: Sequence[int]) -> None:
    """Notes on each folded node of a described graph what it is `folded_into`, and on the others their `tags`.

    A parameter or constant is `inline` as well: no edge leads from it. Inputs that are only tags are marked `folded`.

    Args:
        graph: the graph, with `nodes`, `inputs` and `outputs`.
        lanes: the lane of each node.
        readers: for each numbered value the nodes that read it.
        makers: for each numbered value the node that makes it, -1 for an input.
    """
    nodes, inputs = graph["nodes"], graph["inputs"]
    results = set(graph["outputs"])
    lists = _lists(inputs)
    told = [k for k, given in enumerate(inputs) if _is_variable(given) or _list(given) in lists]
    names = {k: f"{inputs[k]['name']} {_short(inputs[k]['spec'])}" for k in told}
    for number, index in enumerate(makers):
        node = nodes[index] if index >= 0 else None
        if node is None or (node["kind"] != "constant" and node["op"] not in _FOLDING):  # nearly all
            continue
        readers_of = readers[number]
        if any("calls" in nodes[k] for k in readers_of):  # an opened call shows where its inputs come from
            continue
        if node["op"] in READS and node["in"][0] in names and readers_of and number not in results:
            tag = names[node["in"][0]]
            _tag(nodes, [k for k in readers_of if lanes[k] == lanes[index]] or readers_of[:1], tag)
            node["folded_into"], node["inline"] = readers_of[0], True
        elif node["kind"] == "constant" and readers_of and number not in results:
            if not node.get("inline"):
                node["inline"] = True
                _tag(nodes, readers_of, f"constant {', '.join(node['out'])}")
            node["folded_into"] = readers_of[0]
        elif _passes_through(node, number, readers_of, results) and lanes[readers_of[0]] == lanes[index]:
            node["folded_into"] = readers_of[0]
    for number, tag in names.items():
        direct = [k for k in readers[number] if nodes[k]["op"] not in READS and "calls" not in nodes[k]]
        _tag(nodes, direct, tag)
        if (inputs[number].get("captured") or _list(inputs[number]) in lists) and not any(
            "calls" in nodes[k] for k in readers[number]
        ):
            inputs[number]["folded"] = True
    _shorten_chains(nodes)


def _passes_through(node: State, number: int, readers_of: Sequence[int], results: set[int]) -> bool:
    one = len(node.get("out", ())) == 1 and len(set(readers_of)) == 1
    return one and node["op"] in PASSED_THROUGH and number not in results and "fused" not in node


def _is_variable(given: State) -> bool:
    return "var " in str(given["spec"])


def _list(given: State) -> str:
    """The list that an input is an element of, as "times" of "times[3]", else ""."""
    name = str(given["name"])
    return name.partition("[")[0] if name.endswith("]") else ""


def _lists(inputs: Sequence[State]) -> set[str]:
    """Lists of so many tensors that boxes of their own would hide the rest."""
    sizes = Counter(_list(given) for given in inputs if not _is_variable(given))
    return {name for name, size in sizes.items() if name and size > MOST_OF_LIST}


def _short(spec: str) -> str:
    return spec.rpartition("var ")[2]


def _tag(nodes: Sequence[State], indices: Sequence[int], tag: str) -> None:
    for k in dict.fromkeys(indices):
        tags = nodes[k].setdefault("tags", [])
        if tag not in tags and len(tags) < MOST_TAGS:
            tags.append(tag)


def _shorten_chains(nodes: Sequence[State]) -> None:
    """Has each folded node name the box at the end: a reshape of a cast is folded into what uses the reshape."""
    for index in range(len(nodes) - 1, -1, -1):
        into = nodes[index].get("folded_into")
        if into is not None and "folded_into" in nodes[into]:
            nodes[index]["folded_into"] = nodes[into]["folded_into"]
    for node in nodes:  # a tag of a node that is drawn as a part of another is that one's
        if "folded_into" in node and "tags" in node:
            _tag(nodes, [node["folded_into"]] * 1, node["tags"][0])
            for tag in node.pop("tags")[1:]:
                _tag(nodes, [node["folded_into"]], tag)
