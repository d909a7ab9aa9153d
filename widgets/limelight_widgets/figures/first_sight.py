"""What a graph shows at first: as much of it as can be read at once in the room there is.

Begins with the closed graph and opens the group that is worth most, as long as at most `MOST_BOXES` boxes are drawn and
the drawing fits at its natural size. `js/src/graph/first-sight.js` does the same for the live view, with the size of
the view; the tests hold both to the same examples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from math import ceil, log2

from limelight_widgets.figures.box_text import Words, words_in
from limelight_widgets.figures.layered_layout import ANY_SIZE, Point
from limelight_widgets.figures.nested_layout import Drawing, Manner, draw_within
from limelight_widgets.figures.opened_groups import opened_to
from limelight_widgets.figures.visible_boxes import Box, Picture, Table, by_default, visible
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NodeColumns

MOST_BOXES = 40
MOST_EDGES = 120  # of a picture that is tried: nobody can follow more, and to lay them out takes most of the time
WRAPS = 0.7  # of a lane's nodes that a group holds for its frame to be left out
FEW = 4
FEW_BOXES = 14  # a picture of fewer says too little
MOST_TRIALS = 24
MOST_NODES = 250_000  # walked over in all trials
ROUNDED = 1 + 1e-9
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Sight:
    """What is shown, and how.

    `open` are the groups that are open, None for those that are by default; `dissolved` those of them without a frame;
    `scale` is the largest at which all of it is in the room, 1 at most.
    """

    open: frozenset[str] | None
    dissolved: frozenset[str]
    folded: bool
    manner: Manner
    picture: Picture
    words: dict[str, Words]
    drawing: Drawing
    scale: float


def first_sight(state: State, graph: int, room: Point, depth: int | None = None) -> Sight:
    """What is to be seen of graph number `graph` in a room of that width and height.

    With a `depth` the groups of so many levels are open, however much that is.
    """
    tables: dict[int, Table] = {}
    if depth is not None:
        opened = opened_to(state, graph, depth)
        picture = visible(state, graph, lambda name, _: name in opened, folded=True, tables=tables)
        return _whole(state, picture, room, opened)
    whole = visible(state, graph, by_default, most=MOST_BOXES, tables=tables)
    if len(whole.boxes) <= MOST_BOXES and all(box.kind != "group" for box in whole.boxes):
        sight = _laid_out(state, whole, room, None, frozenset(), least=1.0)
        if sight is not None:
            return sight
    return _opened(state, graph, room, tables)


def _opened(state: State, graph: int, room: Point, tables: dict[int, Table]) -> Sight:
    described = state["graphs"][graph]

    def seen(opened: Set[str], dissolved: Set[str], most: int | None = None) -> Picture:
        def is_open(name: str, _: bool) -> bool:
            return name in opened

        return visible(state, graph, is_open, folded=True, dissolved=dissolved, most=most, tables=tables)

    def trial(opened: Set[str], dissolved: Set[str], least: float, *, terse: bool = False) -> Sight | None:
        picture = seen(opened, dissolved, MOST_BOXES)
        if len(picture.boxes) > MOST_BOXES or len(picture.edges) > MOST_EDGES:
            return None
        return _laid_out(state, picture, room, frozenset(opened), frozenset(dissolved), least=least, terse=terse)

    best = _whole(state, seen(set(), set()), room, frozenset(), closed=True)
    wrapping = _wrappers(described)
    with_steps = _all_steps(described, wrapping)
    ahead = [_but_gradients(described, names) for names in (with_steps, wrapping)]
    tried = [with_steps, wrapping, *(names for names in ahead if names != wrapping)]
    few = len(best.picture.boxes) < FEW_BOXES  # the names of layers say more than the shapes of what is around them
    for dissolved, terse in [*((names, False) for names in tried), *((names, True) for names in tried if few)]:
        more = trial(dissolved, dissolved, best.scale, terse=terse)
        if more is not None:
            best = more
            break
    refused: set[str] = set()
    left = min(MOST_TRIALS, ceil(MOST_NODES / (len(described["nodes"]) + 1)))
    while left > 0 and (found := _worth_most(state, best.picture, refused)) is not None:
        for opened, without_frame in _ways(*found, few=len(best.picture.boxes) < FEW_BOXES):
            more = trial((best.open or frozenset()) | set(opened), best.dissolved | set(without_frame), best.scale)
            left -= 1
            if more is not None:  # it can be read as well
                best = more
                break
        else:
            refused.update(found[0])
    return best


def _ways(opened: list[str], dissolved: list[str], *, few: bool) -> list[tuple[list[str], list[str]]]:
    """How groups may be opened: as they are; where little is shown so far, without frames, or all but the gradient."""
    ahead = [(opened[:1], opened[:1])] if len(opened) > 1 else []
    return [(opened, dissolved), *([(opened, opened), *ahead] if few else [])]


def _wrappers(graph: State) -> set[str]:
    """Modules and functions around nearly all there is in a lane: what is in them says more than their frames do.

    So are their gradients, whatever else there is in that lane.
    """
    lanes = NodeColumns.of(graph).count(lambda kind: kind.get("lane", ""))
    inside = {-1}
    paths: set[str] = set()
    for index, group in enumerate(graph["groups"]):
        if group["parent"] not in inside or group["kind"] not in {"module", "function", "scope"}:
            continue
        of_wrapper = group.get("lane") == "backward" and group.get("path") in paths
        if of_wrapper or group["size"] >= WRAPS * lanes.get(group.get("lane", ""), group["size"]):
            inside.add(index)
            paths |= {group["path"]} if group.get("path") else set()
    return {f"g{index}" for index in inside if index >= 0}


def _but_gradients(graph: State, names: Set[str]) -> set[str]:
    """Those of the groups that are no gradients: where both have no room, the model says more than its gradient."""
    return {name for name in names if graph["groups"][int(name[1:])].get("lane") != "backward"}


def _all_steps(graph: State, wrappers: Set[str]) -> set[str]:
    """Wrappers, and what is around the members in repeats of a few."""
    found = set(wrappers)
    for index, group in enumerate(graph["groups"]):
        steps = _steps(graph, index) if group["parent"] < 0 or f"g{group['parent']}" in wrappers else []
        if steps:
            found |= {f"g{index}", *(f"g{step}" for step in _nameless(graph, steps))}
    return found


def _steps(graph: State, group: int) -> Sequence[int]:
    """The members of a repeat of a few that are not alike, as layers that differ in width, or heads: all say more.

    Rounds that hold a gradient each are steps of a descent: one says it all, and so does the gradient of one.
    """
    repeat = graph["groups"][group].get("repeat", {})
    members: Sequence[int] = repeat.get("members", [])
    inside = [graph["groups"][member] for member in members]
    names = {_DIGITS.sub("", member.get("title", "")) for member in inside}
    unlike = all(member["kind"] == "step" for member in inside) or len(names) == len(inside) > 1
    if not unlike or repeat.get("count", 0) > FEW:
        return []
    back = graph["groups"][group].get("lane") == "backward"
    descent = any(one["kind"] == "gradient" and (back or one["parent"] in members) for one in graph["groups"])
    return [] if descent else members


def _says_it_all(graph: State, group: int) -> bool:
    """Whether a group is a repeat of what is alike."""
    return "repeat" in graph["groups"][group] and not _steps(graph, group)


def _nameless(graph: State, steps: Sequence[int]) -> list[int]:
    """Those of the members that are rounds of a loop: a frame around one would say less than what is in it."""
    return [step for step in steps if graph["groups"][step]["kind"] == "step"]


def _worth_most(state: State, picture: Picture, refused: Set[str]) -> tuple[list[str], list[str]] | None:
    """The group that is worth opening most, and its gradient: what is to be opened, and what of it dissolved."""
    most, best = 0.0, None
    for box in picture.boxes:
        if box.kind != "group" or box.more or box.name in refused:
            continue
        graph = state["graphs"][box.graph]
        group = graph["groups"][box.index]
        if group.get("ops", group["size"]) < 2 or group["kind"] in {"optimiser", "block"}:
            continue
        if _says_it_all(graph, box.index):
            continue
        worth = group["size"] * (1 + log2(1 + group.get("bytes", 0)))
        if worth > most:
            most, best = worth, box
    return None if best is None else _with_gradient(state, picture, best)


def _with_gradient(state: State, picture: Picture, best: Box) -> tuple[list[str], list[str]]:
    both = [best]
    if best.path:
        others = [b for b in picture.boxes if b.kind == "group" and b.path == best.path and b.lane != best.lane]
        both += [b for b in others if not _says_it_all(state["graphs"][b.graph], b.index)]
    both.sort(key=lambda box: box.lane == "backward")
    dissolved: list[str] = []
    for box in both:
        graph = state["graphs"][box.graph]
        steps = _steps(graph, box.index)
        prefix = box.name.removesuffix(str(box.index))
        dissolved += [box.name, *(f"{prefix}{step}" for step in _nameless(graph, steps))] if steps else []
    return [*(box.name for box in both), *dissolved], dissolved


def _whole(state: State, picture: Picture, room: Point, opened: frozenset[str], *, closed: bool = False) -> Sight:
    """The picture, however small."""
    sight = _laid_out(state, picture, room, opened, frozenset(), closed=closed)
    assert sight is not None
    return sight


def _laid_out(
    state: State,
    picture: Picture,
    room: Point,
    opened: frozenset[str] | None,
    dissolved: frozenset[str],
    *,
    least: float = 0.0,
    closed: bool = False,
    terse: bool = False,
) -> Sight | None:
    """The picture in the manner that fits best; None where its scale would be less than `least`.

    Args:
        state: the fold's.
        picture: to be laid out.
        room: width and height.
        opened: groups, as in `Sight`.
        dissolved: groups, as in `Sight`.
        least: what it is worth to be known for; most of what is tried is larger, which is known before it is laid out.
        closed: whether nothing less than this picture can be shown: where it fits so alone, it is drawn without lanes,
            and without words but its titles.
        terse: whether it is drawn without these words in any case.
    """
    folded = opened is not None
    far = len(picture.boxes) > 4 * MOST_BOXES  # it will not be shown: no need to know how it would look
    best: Sight | None = None
    said: dict[tuple[bool, bool], dict[str, Words]] = {}
    manners = [
        replace(manner, terse=manner.terse or terse) for manner in _manners(picture, room, folded=folded, closed=closed)
    ]
    for manner in [Manner()] if far else manners:
        if (manner.lanes, manner.terse) not in said:
            said[manner.lanes, manner.terse] = words_in(state, picture, manner)
        words = said[manner.lanes, manner.terse]
        needed = least if best is None else max(least, best.scale)
        sizes = {name: box.size() for name, box in words.items()}
        drawing = draw_within(picture, sizes, manner, _at_scale(room, needed))
        if drawing is None:
            continue
        scale = min(room[0] / max(drawing.width, 1e-9), room[1] / max(drawing.height, 1e-9), 1.0)
        if scale >= least and (best is None or scale > best.scale):
            best = Sight(opened, dissolved, folded, manner, picture, words, drawing, scale)
        if scale == 1:
            break
    return best


def _at_scale(room: Point, scale: float) -> Point:
    """How large a picture of that scale may be, and a little more: sums of floats differ by their order."""
    return (room[0] / scale * ROUNDED, room[1] / scale * ROUNDED) if scale else ANY_SIZE


def _manners(picture: Picture, room: Point, *, folded: bool, closed: bool) -> list[Manner]:
    """In the order in which they are tried."""
    width, height = room
    lanes = {box.lane for box in picture.boxes} | {frame.lane for frame in picture.frames}
    plain = [Manner(), Manner(limit=height), Manner(across=True, limit=width)]
    if folded and lanes & {"backward", "update"}:  # else each op has a box, and what lanes leave out cuts boxes off
        in_lanes = [
            Manner(across=True, limit=width, lanes=True),
            Manner(across=True, limit=width, lanes=True, joined=True),
            Manner(limit=height, lanes=True),
            Manner(limit=height, lanes=True, joined=True),
        ]
        long = Manner(lanes=True, joined=True)  # another band takes twice the room of what does not fit by a little
        plain = [*in_lanes, long, *plain] if closed else in_lanes  # type that can be read is worth more than lanes
    return [*plain, *(replace(manner, terse=True) for manner in plain)] if closed else plain  # and than shapes
