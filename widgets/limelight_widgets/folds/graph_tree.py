"""The tree of a described graph: its nodes' lanes, groups, tags, and what crosses from forward to backward.

Each graph of a graph fold's state has, besides `inputs`, `nodes` and `outputs`:

- `groups`, in the order of an outline (each before those inside, siblings as their nodes run), a list of `{id, parent,
  kind, title, label, path, cls, lane, ops, size, bytes, saved, tags, repeat, at, defined}`. `parent` is the index of
  the group around it, -1 for none; a node's `group` is the index of its innermost.
  - `id` is made of lane and path ("forward:model.blocks.2"), so it is the same in the traced and the optimised graph,
    and in each trace of the same code; the gradient of "forward:P" is in "backward:P".
  - `kind`: "module" | "optimiser" | "variable" (the update of one) | "scope" | "function" | "gradient" (one that is
    differentiated in its turn) | "line" | "block" (cut by number) | "step" (one round of a loop) | "repeat".
  - `title` is short ("blocks.2"), `label` says all in a line ("Adam: 52 variables, one rule", "blocks.0-3 x4").
  - `path` is the path of attributes, `cls` the module's class.
  - `ops` counts nodes that its boxes tell of, `size` those that were made in it; `bytes` those that its nodes make,
    `saved` those of them that are kept for the backward pass.
  - `tags` are the parameters that its own nodes use: "conv1.kernel f32[3,3,16,32]".
  - `at` and `defined` are [source, line]: where the module is called, and where its method `call` begins.
  - `repeat`: `{count, members, period, differs}` of a group whose members are equal. `members` are indices of groups in
    order, of which one at a time need be drawn. Without members, the group's own nodes that are drawn are cut in order
    into slices of `period` nodes. `differs` are lines such as "matmul: f32[8,32] | f32[8,64]".
- each node has its `lane` ("forward" | "loss" | "backward" | "update"), perhaps `tags`, and perhaps `folded_into`: the
  node as a part of which it is drawn. Folded nodes that are `inline` have no edges.
- inputs that are nothing but tags are `folded`.
- `crossings`: what forward or loss makes and backward reads, as `{from, to, bytes, values, spec}` by pair of innermost
  groups (-1: none), heaviest first; each value counts once, with
  the gradient of its own group if that reads it, else where it is read first. `spec` is that of a lone tensor.
- `open`: groups that are open at first.

What is empty is left out.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any

import numpy as np

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.folded_nodes import READS, fold
from limelight_widgets.folds.group_tree import Facts, Group
from limelight_widgets.folds.node_columns import NodeColumns, spec_bytes
from limelight_widgets.folds.node_groups import Hierarchy
from limelight_widgets.folds.node_places import Place, places
from limelight_widgets.folds.source_excerpts import Excerpts, line_title
from limelight_widgets.format import counted, shortened

TITLE_WIDTH = 200
MOST_DIFFERENCES = 6
MOST_VALUES = 4  # of one difference
MOST_NAMED = 3  # groups in a round of a loop that its title names
MEMBERS_WIDTH = 24  # characters of the names of members that differ
_INDEXING = frozenset(
    {"slice", "getitem", "index", "reshape", "broadcast_to", "pad", "take", "split", "slice_gradient", "conv_transpose"}
    | {"index_update", "index_add"}
)
_NUMBER = re.compile(r"\d+")
_LAYER = re.compile(r"(\d+): (\w+)")
_APPLIES = re.compile(r"(\w+)\.apply\(")
_NUMBERS = re.compile(r"(\d+)")


def grow(
    graph: Any, state: State, columns: NodeColumns, line: Callable[[State], tuple[int, int]], excerpts: Excerpts
) -> None:
    """Adds the tree to a described graph.

    Args:
        graph: the graph.
        state: its description, with `inputs` and `outputs`.
        columns: its nodes.
        line: gives the number of the file and the line where the statement begins that made nodes of a kind.
        excerpts: the lines of code that the view shows.
    """

    def at(source: Any) -> list[object]:
        return list(excerpts.at(source))

    def begin(source: Any) -> tuple[int, int]:
        file, number = excerpts.at(source)
        return file, excerpts.statement(file, number)

    sources = columns.sources()
    where = places(graph.nodes, columns.by_kind(itemgetter("op")), sources, graph.name)
    lanes = [place.lane for place in where]
    columns.split(lanes)
    fold(state, columns, lanes)
    folded, inline = columns.noted("folded_into"), columns.noted("inline")
    facts = Facts(
        where, _signatures(columns), columns.by_kind(line), columns.sources(but=inline) if inline else sources,
        [folded.get(k, -1) for k in range(len(columns))] if folded else [-1] * len(columns),
        begin=begin,
        titles=lambda file, number: line_title(excerpts.label(file), number, excerpts.code(file, number)),
    )  # fmt: skip
    tree = Hierarchy(facts)
    columns.group = np.array(tree.of, np.int64)
    crossings, saved = _crossings(graph, where, tree, columns)
    state["groups"] = [_described(tree, index, columns, at) for index in range(len(tree.groups))]
    _sum_up(state["groups"], columns, saved)
    state["open"] = tree.initially_open()
    if crossings:
        state["crossings"] = crossings


def _signatures(columns: NodeColumns) -> list[tuple[int, int]]:
    """For each node what must be equal where nodes are, as `Facts` has it."""
    known: dict[Any, tuple[int, int]] = {}
    result = columns.by_kind(lambda kind: _signature(kind, "", known))
    for node, operands in columns.noted("operands").items():
        result[node] = _signature(columns.kind_of(node), operands, known)
    return result


def _signature(kind: State, operands: str, known: dict[Any, tuple[int, int]]) -> tuple[int, int]:
    """What must be equal for updates of variables, 0 for what writes to none; and what for any other group.

    Of an update only the assignments count: the first one computes, and fuses, what all others use as well. Ranks count
    in no update, whose variables have many, and numbers among the operands nowhere: they are what a loop changes.

    `known` has those of nodes that were like this one.
    """
    op, out, stack = kind["op"], kind.get("out", ()), kind.get("stack")
    line = (stack[0][0], stack[0][1]) if stack else None
    attrs = str(kind["attrs"]) if "attrs" in kind else ""
    calls = tuple([name for _, name in kind["calls"]]) if "calls" in kind else ()
    key = (op, *out, line, kind["lane"], operands, attrs, calls)
    signature = known.get(key)
    if signature is None:
        dtypes = [text.partition("[")[0] for text in out]
        ranks = [0 if "[]" in text else text.count(",") + 1 for text in out]
        blurred = _NUMBER.sub("#", attrs) if op in _INDEXING else attrs  # where a round of a loop is, not what it does
        common = (op, blurred, calls, *dtypes, line, kind["lane"])
        if kind["lane"] == "update":
            ranks = []
        loose = hash(common) if kind["kind"] == "variable" and op not in READS else 0
        signature = known[key] = loose, hash((common, *ranks, _NUMBER.sub("#", operands)))
    return signature


def _described(tree: Hierarchy, index: int, columns: NodeColumns, at: Callable[[Any], list[object]]) -> State:
    group, tags = tree.groups[index], columns.noted("tags")
    segment = group.segment
    title = _repeat_title(tree, group) if group.repeat is not None else group.title
    result: State = {
        "id": group.id,
        "parent": group.parent,
        "kind": group.kind,
        "title": shortened(title, TITLE_WIDTH),
        "label": shortened(_label(tree, group, title), TITLE_WIDTH),
        "path": group.path,
        "cls": segment.cls if segment else _class_of_members(tree, group),
        "lane": group.lane,
        "size": group.size,
        "at": at(segment.at) if segment and segment.at is not None else None,
        "defined": at(segment.defined) if segment and segment.defined is not None else None,
        "tags": list(dict.fromkeys(
            tag for child in group.children if not child.is_group for tag in tags.get(child.at, ())
        )) if tags and group.repeat is None else [],
    }  # fmt: skip
    if group.repeat is not None:
        repeat = {"count": group.repeat.count, "members": group.repeat.members, "period": group.repeat.period,
                  "differs": _differences(tree, group, columns)}  # fmt: skip
        result["repeat"] = {key: value for key, value in repeat.items() if value}
    return {key: value for key, value in result.items() if value not in ("", [], None)}


def _label(tree: Hierarchy, group: Group, title: str) -> str:
    if group.repeat is not None:
        return f"{title} ×{group.repeat.count:,}"
    if group.kind == "optimiser":
        kind = group.segment.cls if group.segment else group.title
        return f"{kind}{_receiver(tree, group)}: {_rules(tree, group)}"
    return title


def _receiver(tree: Hierarchy, group: Group) -> str:
    """What the user calls an optimiser that is not the only one of its class: the name before `.apply(` at its line."""
    segment = group.segment
    if segment is None or segment.at is None:
        return ""
    rivals = [one for one in tree.groups if one.kind == "optimiser" and one.segment and one.segment.cls == segment.cls]
    if len({one.segment.key for one in rivals if one.segment}) < 2:
        return ""
    names = set(_APPLIES.findall(linecache.getline(segment.at.file, segment.at.line)))
    return f" {names.pop()}" if len(names) == 1 else ""


def _rules(tree: Hierarchy, group: Group) -> str:
    """How many variables an optimiser updates, by how many rules; where there are several, of which module."""
    updates, waiting = [], [group]
    while waiting:
        inside = [child.at for child in waiting.pop().children if child.is_group]
        updates += [k for k in inside if tree.groups[k].kind == "variable"]
        waiting += [tree.groups[k] for k in inside if tree.groups[k].kind != "variable"]
    loose = [[tree.facts.signatures[node][0] for node in tree.nodes_of(k)] for k in updates]
    kinds = {tuple(filter(None, of_one)) for of_one in loose}  # equal where repeats hold updates to be
    rules = "one rule" if len(kinds) == 1 else f"{len(kinds)} rules"
    several = len({one.segment.key for one in tree.groups if one.kind == "optimiser" and one.segment}) > 1
    owner = _owner([tree.groups[k].title for k in updates]) if several else ""
    return counted(len(updates), "variable") + owner + (f", {rules}" if len(updates) > 1 else "")


def _owner(names: Sequence[str]) -> str:
    """The module that all of these variables are of, as " of net.encoder"; "" for none."""
    modules = [name.split(".")[:-1] for name in names]
    common = [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*modules, strict=False))]
    while common[-1:] == ["layers"]:  # of a sequence, which says nothing
        common.pop()
    return f" of {'.'.join(common)}" if common else ""


def _repeat_title(tree: Hierarchy, group: Group) -> str:
    """What the members are called: "blocks.0–3" where they are numbered, names where they differ, else the first's."""
    assert group.repeat is not None
    members = [tree.groups[k] for k in group.repeat.members]
    if members and members[0].kind == "variable":
        return "variable"
    rounds = [_called(tree, member) for member in members]
    if not rounds or not rounds[0] or len({len(names) for names in rounds}) > 1:
        return group.title.partition(" (call ")[0]
    if len(rounds[0]) > MOST_NAMED:
        return group.title
    return " + ".join(
        _range_title([name.partition(" (call ")[0] for name in names]) for names in zip(*rounds, strict=True)
    )


def _called(tree: Hierarchy, member: Group) -> list[str]:
    """The titles of what a member is, or of the groups in a round of a loop."""
    if member.kind != "step":
        return [member.title]
    return [tree.groups[child.at].title for child in member.children if child.is_group]


def _range_title(titles: Sequence[str]) -> str:
    """The titles of equal things as one.

    >>> _range_title(["blocks.0", "blocks.1", "blocks.2"]), _range_title(["1: Dense", "2: Dense"])
    ('blocks.0–2', '1–2: Dense')
    >>> _range_title(["layer2.0", "layer3.0"]), _range_title(["layer2.0", "layer3.1"])
    ('layer2–3.0', 'layer2.0, layer3.1')
    >>> _range_title(["block_01", "block_02", "block_03"]), _range_title(["block_10", "block_09"])
    ('block_01–03', 'block_09–10')
    >>> _range_title(["2: Dense", "1: Dense"])  # of a gradient
    '1–2: Dense'
    >>> _range_title(["age_head", "sex_head"]), _range_title(["net", "net"]), _range_title(["query", "key", "value"])
    ('age_head, sex_head', 'net', 'query, key, value')
    >>> _range_title(["a_head_with_a_long_name", "head_2", "head_3"])
    'a_head_with_a_long_name, …'
    """
    parts = [_NUMBERS.split(title) for title in titles]
    varying = [k for k, part in enumerate(zip(*parts, strict=False)) if len(set(part)) > 1]
    if len(varying) == 1 and varying[0] % 2 and len({len(part) for part in parts}) == 1 and not _LAYER.match(titles[0]):
        before, after = "".join(parts[0][: varying[0]]), "".join(parts[0][varying[0] + 1 :])
        numbers = sorted([part[varying[0]] for part in parts], key=int)
        return f"{before}{numbers[0]}–{numbers[-1]}{after}"
    layers = [match for title in titles if (match := _LAYER.fullmatch(title))]
    if len(layers) == len(titles) and len({match[2] for match in layers}) == 1:
        numbers = sorted([match[1] for match in layers], key=int)
        return f"{numbers[0]}–{numbers[-1]}: {layers[0][2]}"
    distinct = list(dict.fromkeys(titles))
    named = ", ".join(distinct)
    return named if len(named) <= MEMBERS_WIDTH else f"{distinct[0]}, …"


def _class_of_members(tree: Hierarchy, group: Group) -> str:
    """The class of the modules that a repeat is made of, "" where there are others."""
    members = [] if group.repeat is None else [tree.groups[k] for k in group.repeat.members]
    inside = [[tree.groups[c.at] for c in m.children if c.is_group] if m.kind == "step" else [m] for m in members]
    classes = {one.segment.cls if one.segment and one.kind == "module" else "" for row in inside for one in row}
    return classes.pop() if len(classes) == 1 else ""


def _differences(tree: Hierarchy, group: Group, columns: NodeColumns) -> list[str]:
    """In what the members of a repeat differ: results, parameters, tags."""
    assert group.repeat is not None
    members = [list(tree.nodes_of(k)) for k in group.repeat.members]
    if not members:
        own = [child.at for child in group.children]
        members = [own[k : k + group.repeat.period] for k in range(0, len(own), group.repeat.period)]
    operands = columns.noted("operands")
    found: list[str] = []
    for column in zip(*members, strict=False):  # updates of variables may have more scalars than others
        kinds = [columns.kinds[k] for k in dict.fromkeys(columns.kind[list(column)].tolist())]
        outs = list(dict.fromkeys(", ".join(kind.get("out", ())) for kind in kinds))
        said = outs if len(outs) > 1 else list(dict.fromkeys(operands.get(k, "") for k in column))
        if len(said) > 1 and len({kind["op"] for kind in kinds}) == 1:
            found.append(f"{kinds[0]['op']}: {_some(said)}")
        if len(found) >= MOST_DIFFERENCES:
            break
    return list(dict.fromkeys(found))


def _some(texts: Sequence[str]) -> str:
    return " | ".join(texts[:MOST_VALUES]) + (
        f" | and {len(texts) - MOST_VALUES} more" if len(texts) > MOST_VALUES else ""
    )


def _crossings(
    graph: Any, where: Sequence[Place], tree: Hierarchy, columns: NodeColumns
) -> tuple[list[State], dict[int, float]]:
    """What crosses from forward to backward by pair of groups, heaviest first; and the bytes saved of each node."""
    pairs: dict[tuple[int, int], State] = {}
    saved: dict[int, float] = {}
    inline, makers = columns.noted("inline"), columns.makers
    reader, value = columns.wires
    backward = columns.flags(columns.where(lambda kind: kind["lane"] == "backward"))
    ahead = columns.flags(columns.where(lambda kind: kind["lane"] in {"forward", "loss"}))
    crosses = backward[reader] & (value >= columns.inputs)
    for number in np.unique(value[crosses]).tolist():
        maker = int(makers[number])
        if not ahead[maker] or maker in inline:
            continue
        readers = [k for k in columns.readers[number] if backward[k]]
        read_by = next((k for k in readers if where[k].path == where[maker].path), readers[0])
        spec = graph.nodes[maker].outputs[number - int(columns.firsts[maker])].spec
        nbytes = spec_bytes(spec)
        saved[maker] = saved.get(maker, 0) + nbytes
        key = (tree.of[maker], tree.of[read_by])
        pair = pairs.setdefault(key, {"from": key[0], "to": key[1], "bytes": 0, "values": 0, "spec": str(spec)})
        pair["bytes"] += nbytes
        pair["values"] += 1
        if pair["values"] > 1:
            pair.pop("spec", None)
    return sorted(pairs.values(), key=lambda pair: -pair["bytes"]), saved


def _sum_up(groups: Sequence[State], columns: NodeColumns, saved: dict[int, float]) -> None:
    """Counts ops and bytes of each group, those inside included; a folded op counts with the box that it is told on."""
    drawn = (columns.group >= 0) & ~columns.flags(columns.noted("folded_into"))
    sums = {what: np.zeros(len(groups)) for what in ("ops", "bytes", "saved")}
    counted = columns.group[columns.boxes]
    np.add.at(sums["ops"], counted[counted >= 0], 1)
    np.add.at(sums["bytes"], columns.group[drawn], columns.bytes[drawn])
    for what, of_group in sums.items():
        for group, total in zip(groups, of_group.tolist(), strict=True):
            group[what] = int(total) if total.is_integer() else total
    for node, size in saved.items():
        if columns.group[node] >= 0:
            groups[columns.group[node]]["saved"] += size
    for index in range(len(groups) - 1, -1, -1):  # those inside come after those around
        parent = groups[index]["parent"]
        if parent >= 0:
            for what in sums:
                groups[parent][what] += groups[index][what]
