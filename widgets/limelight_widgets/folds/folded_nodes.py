"""Nodes that are no boxes: parameters, their reads, constants, casts and reshapes fold into what uses them.

Parameters, tensors of a list and constants become tags of the nodes that use them ("conv1.kernel f32[3,3,16,32]"); a
cast or a change of shape that only one node uses is drawn as a part of that. A folded node keeps its place in the
graph: searches and listings find it, and `folded_into` is the box to go to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NodeColumns

PASSED_THROUGH = frozenset({
    "astype", "reshape", "identity", "broadcast_to", "expand_dims", "squeeze", "transpose", "matrix_transpose", "sum_to"
})  # fmt: skip
READS = frozenset({"read_variable"})
_FOLDING = PASSED_THROUGH | READS
MOST_TAGS = 12  # on one node
MOST_OF_LIST = 3  # elements of a list of tensors that have boxes


def fold(graph: State, columns: NodeColumns, lanes: Sequence[str]) -> None:
    """Notes on each folded node of a described graph what it is `folded_into`, and on the others their `tags`.

    A parameter or constant is `inline` as well: no edge leads from it. Inputs that are only tags are marked `folded`.

    Args:
        graph: the graph, with `inputs` and `outputs`.
        columns: its nodes.
        lanes: the lane of each node.
    """
    inputs, readers = graph["inputs"], columns.readers
    results = set(graph["outputs"])
    lists = _lists(inputs)
    told = [k for k, given in enumerate(inputs) if _is_variable(given) or _list(given) in lists]
    names = {k: f"{inputs[k]['name']} {_short(inputs[k]['spec'])}" for k in told}
    calls = columns.flags(columns.where(lambda kind: "calls" in kind))
    has_calls = bool(calls.any())
    inline, into, tags = dict(columns.noted("inline")), dict[int, int](), dict[int, list[str]]()
    for index, number in _values_of(columns, columns.where(_may_fold)):
        node, readers_of = columns.kind_of(index), readers[number]
        if has_calls and calls[readers_of].any():  # an opened call shows where its inputs come from
            continue
        if node["op"] in READS and columns.reads[index][0] in names and readers_of and number not in results:
            tag = names[columns.reads[index][0]]
            _tag(tags, [k for k in readers_of if lanes[k] == lanes[index]] or readers_of[:1], tag)
            into[index], inline[index] = readers_of[0], True
        elif node["kind"] == "constant" and readers_of and number not in results:
            if index not in inline:
                inline[index] = True
                _tag(tags, readers_of, f"constant {', '.join(node['out'])}")
            into[index] = readers_of[0]
        elif _passes_through(columns, index, number, readers_of, results) and lanes[readers_of[0]] == lanes[index]:
            into[index] = readers_of[0]
    for number, tag in names.items():
        called = bool(calls[readers[number]].any())
        direct = [k for k in readers[number] if columns.kind_of(k)["op"] not in READS and not calls[k]]
        _tag(tags, direct, tag)
        if (inputs[number].get("captured") or _list(inputs[number]) in lists) and not called:
            inputs[number]["folded"] = True
    _shorten_chains(into, tags)
    columns.notes |= {key: noted for key, noted in (("inline", inline), ("folded_into", into), ("tags", tags)) if noted}


def _may_fold(kind: State) -> bool:
    return kind["kind"] == "constant" or kind["op"] in _FOLDING


def _values_of(columns: NodeColumns, nodes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each value that one of these nodes makes: the node, and the value's number."""
    firsts = columns.firsts
    for index in nodes:
        for number in range(int(firsts[index]), int(firsts[index + 1])):
            yield index, number


def _passes_through(
    columns: NodeColumns, index: int, number: int, readers_of: Sequence[int], results: set[int]
) -> bool:
    node = columns.kind_of(index)
    one = len(node.get("out", ())) == 1 and len(set(readers_of)) == 1
    fused = index in columns.noted("fused")
    return one and node["op"] in PASSED_THROUGH and number not in results and not fused


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


def _tag(tags: dict[int, list[str]], nodes: Sequence[int], tag: str) -> None:
    for k in dict.fromkeys(nodes):
        of_node = tags.setdefault(k, [])
        if tag not in of_node and len(of_node) < MOST_TAGS:
            of_node.append(tag)


def _shorten_chains(into: dict[int, int], tags: dict[int, list[str]]) -> None:
    """Has each folded node name the box at the end: a reshape of a cast is folded into what uses the reshape."""
    for index in sorted(into, reverse=True):
        into[index] = into.get(into[index], into[index])
    for index in sorted(into.keys() & tags.keys()):  # a tag of a node that is drawn as a part of another is that one's
        for tag in tags.pop(index):
            _tag(tags, [into[index]], tag)
