"""Forward, backward and update in lanes that mirror each other: each box beside its gradient.

The loss has the end of the forward lane to itself: it comes after all of the model, and its gradient begins there.

`js/src/graph/lanes.js` does the same for the live view; the tests hold both to the same examples.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, inf

from limelight_widgets.figures.layered_layout import (
    ANY_SIZE,
    TURN,
    Layout,
    Point,
    Ranked,
    Strip,
    band_starts,
    exceeds,
    ranks_of,
)
from limelight_widgets.figures.visible_boxes import Box, Frame, Picture

LANES = ("forward", "backward", "update")
NUMBER = {"forward": 0, "loss": 0, "backward": 1, "update": 2}
RANK_GAP = 20.0
LANE_GAP = 10.0
COLUMN_GAP = 42.0  # between lanes that stand side by side: what is kept is written there
BAND_GAP = 18.0
TITLE = 19.0  # room for the name of a lane
MARGIN = 7.0
LOSS_TITLE = 18.0  # room for the name of the loss above its first box, within the gap
LOSS_INSET = 14.0  # the same before it, where the picture runs from left to right
TITLE_CHARACTER = 6.7  # width of one of the name of a lane
APART = 4.0  # from edges of the forward pass, which turn round to the next band, to those of the other lanes

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lane of each box and frame that stands by itself, and for gradients the box whose they are."""

    of: dict[str, int]
    partners: dict[str, str]
    updates: frozenset[str]
    losses: frozenset[str]


def lanes_of(picture: Picture, *, joined: bool = False) -> Lanes | None:
    """The lanes of a picture, None where there is only one.

    `joined`: the update stands at the end of the backward lane.
    """
    things: list[Box | Frame] = [*picture.boxes, *picture.frames]
    outermost = [thing for thing in things if not thing.parent]
    if not any(NUMBER.get(thing.lane, 0) for thing in outermost):
        return None
    of = {thing.name: min(NUMBER.get(thing.lane, 0), 1 if joined else 2) for thing in outermost}
    around = outermost_of(picture)
    outputs = {box.name for box in picture.boxes if box.kind == "output"}
    for source, target in picture.edges:
        if target in outputs:
            of[target] = of.get(around[source], 0)
    losses = {thing.name for thing in outermost if thing.lane == "loss"}
    losses |= {target for source, target in picture.edges if target in outputs and around[source] in losses}
    forward = {thing.path: thing.name for thing in outermost if thing.path and not NUMBER.get(thing.lane, 0)}
    gradients = [thing for thing in outermost if thing.lane == "backward" and thing.path in forward]
    updates = frozenset(thing.name for thing in outermost if thing.lane == "update")
    return Lanes(of, {thing.name: forward[thing.path] for thing in gradients}, updates, frozenset(losses))


def outermost_of(picture: Picture) -> dict[str, str]:
    """For each box and frame the outermost frame around it, or itself."""
    parent = {box.name: box.parent for box in picture.boxes} | {frame.name: frame.parent for frame in picture.frames}
    found = {}
    for name in parent:
        at = name
        while parent[at]:
            at = parent[at]
        found[name] = at
    return found


def saved(picture: Picture, lanes: Lanes) -> list[tuple[str, str, float]]:
    """What is kept of each forward box for the backward pass: (box, its gradient, bytes), most first.

    Each value counts once, although several gradients may read it.
    """
    around, kept = outermost_of(picture), dict[str, dict[tuple[str, int], float]]()
    for (source, target), values in picture.carried.items():
        start, end = around[source], around[target]
        if lanes.of.get(start) == 0 and lanes.of.get(end) == 1:
            kept.setdefault(start, {}).update(values)
    pairs = [(box, gradient, sum(kept.get(box, {}).values())) for gradient, box in lanes.partners.items()]
    return sorted((pair for pair in pairs if pair[2]), key=lambda pair: -pair[2])


def in_lanes(
    sizes: Sequence[Point],
    edges: Sequence[Edge],
    lanes: Sequence[int],
    partners: Sequence[int],
    updates: Sequence[bool],
    losses: Sequence[bool],
    limit: float,
    most: Point = ANY_SIZE,
    *,
    across: bool,
) -> Layout | None:
    """Places boxes in lanes, side by side.

    Args:
        sizes: width and height of each box.
        edges: pairs of boxes, from and to.
        lanes: the lane of each box.
        partners: for each box that whose gradient it is, -1 for none.
        updates: whether each box is of the update: edges into it are not drawn.
        losses: whether each box is of the loss.
        limit: the height beyond which all lanes go on in another band.
        most: width and height; None is returned where the layout would be larger.
        across: whether the picture will be turned, so that lanes are rows.
    """
    drawn = [updates[a] == updates[b] for a, b in edges]
    ranks = _ranks_in_lanes([e for e, is_drawn in zip(edges, drawn, strict=True) if is_drawn], edges, lanes, partners,
                            updates, losses)  # fmt: skip
    parts, heights, starts = _arranged(sizes, edges, drawn, lanes, ranks, limit)
    late = [update or lane == 2 for update, lane in zip(updates, lanes, strict=True)]
    if len(starts) > 1 and any(late):
        ranks = _update_last(ranks, edges, late)
        parts, heights, starts = _arranged(sizes, edges, drawn, lanes, ranks, limit)
    if exceeds(_least(parts, heights, starts, across=across), most):
        return None
    for part in parts:
        part.drawing.order()
        part.drawing.place(RANK_GAP)
    first = min((rank for rank, loss in zip(ranks, losses, strict=True) if loss), default=len(heights))
    stack = _Stack(parts, starts, heights, updates, first, across=across)
    return None if exceeds(stack.size, most) else stack.layout(len(sizes), len(edges))


def _arranged(
    sizes: Sequence[Point],
    edges: Sequence[Edge],
    drawn: Sequence[bool],
    lanes: Sequence[int],
    ranks: Sequence[int],
    limit: float,
) -> tuple[list[_Part], list[float], list[int]]:
    """The lanes by themselves, not in order yet, the heights of their ranks, and the ranks with which bands begin."""
    count = max(ranks) + 1
    parts = [_Part(sizes, edges, drawn, lanes, ranks, lane, count) for lane in range(len(LANES)) if lane in lanes]
    heights = [max(part.drawing.heights[rank] for part in parts) for rank in range(count)]
    for part in parts:
        part.drawing.heights = list(heights)
    return parts, heights, band_starts(heights, limit - TITLE - MARGIN - 2 * TURN, RANK_GAP)


def _least(parts: Sequence[_Part], heights: Sequence[float], starts: Sequence[int], *, across: bool) -> Point:
    """A width and a height that the lanes have at least, as `Ranked.least` has them of one."""
    widths = [(part, part.drawing.row_widths()) for part in parts]
    width = height = 0.0
    for start, end in zip(starts, [*starts[1:], len(heights)], strict=True):
        there = [max(rows[start:end]) for part, rows in widths if any(part.drawing.rows[start:end])]
        width += sum(there) + 2 * MARGIN * len(there) + (LANE_GAP if across else COLUMN_GAP) * (len(there) - 1)
        height = max(height, sum(heights[start:end]) + RANK_GAP * (end - start - 1))
    turns = 2 * TURN if len(starts) > 1 else 0.0
    return width + BAND_GAP * (len(starts) - 1), height + (MARGIN if across else TITLE) + MARGIN + turns


def _ends(count: int, edges: Sequence[Edge]) -> list[int]:
    """How many boxes of the update come after each, at most; `edges` are those between such boxes."""
    after = [0] * count
    for a, b in sorted(edges, reverse=True):
        if a < b:
            after[a] = max(after[a], after[b] + 1)
    return after


def _update_last(ranks: Sequence[int], edges: Sequence[Edge], late: Sequence[bool]) -> list[int]:
    """The same ranks, but those of the update, `late`: in the last of several bands, in no earlier one."""
    after = _ends(len(ranks), [(a, b) for a, b in edges if late[a] and late[b]])
    distinct = sorted({rank for rank, moved in zip(ranks, late, strict=True) if not moved})
    place = {rank: i for i, rank in enumerate(distinct)}
    first = max(len(distinct) - 1 - max(after), 0)
    return [first + after[box] if late[box] else place[rank] for box, rank in enumerate(ranks)]


class _Part:
    """The boxes of one lane, drawn by themselves."""

    def __init__(
        self,
        sizes: Sequence[Point],
        edges: Sequence[Edge],
        drawn: Sequence[bool],
        lanes: Sequence[int],
        ranks: Sequence[int],
        lane: int,
        count: int,
    ) -> None:
        self.lane = lane
        self.members = [box for box, of in enumerate(lanes) if of == lane]
        place = {box: i for i, box in enumerate(self.members)}
        self.edges = [e for e, (a, b) in enumerate(edges) if drawn[e] and a in place and b in place]
        own = [(place[edges[e][0]], place[edges[e][1]]) for e in self.edges]
        self.drawing = Ranked(
            [sizes[box] for box in self.members], own, [ranks[box] for box in self.members], count=count
        )


def _ranks_in_lanes(
    drawn: Sequence[Edge],
    edges: Sequence[Edge],
    lanes: Sequence[int],
    partners: Sequence[int],
    updates: Sequence[bool],
    losses: Sequence[bool],
) -> list[int]:
    count = len(lanes)

    def own(lane: int) -> list[Edge]:
        return [(a, b) for a, b in edges if a != b and lanes[a] == lane == lanes[b]]

    ranks: list[float] = [float(rank) for rank in ranks_of(count, own(0))]
    model = max((ranks[box] for box in range(count) if lanes[box] == 0 and not losses[box]), default=-1.0)
    short = model + 1 - min((ranks[box] for box in range(count) if losses[box]), default=inf)
    ranks = [rank + max(short, 0.0) if losses[box] else rank for box, rank in enumerate(ranks)]
    last = max((ranks[a] for a, b in edges if lanes[a] == 0 and lanes[b] == 1), default=0.0)
    backward = [(a, b) for a, b in drawn if a != b and lanes[a] == 1 == lanes[b] and not updates[a]]
    update = own(2)
    after = _ends(count, [(a, b) for a, b in drawn if updates[a]])
    for box in range(count):
        if lanes[box] == 1 and partners[box] >= 0:
            ranks[box] = ranks[partners[box]]
    for box in range(count - 1, -1, -1):
        if lanes[box] == 1 and updates[box]:  # joined: where the backward pass ends
            ranks[box] = after[box]
        elif lanes[box] == 1 and partners[box] < 0:
            ranks[box] = _between(box, backward, ranks, partners, last)
    for box in range(count):
        if lanes[box] == 2:
            before = [ranks[a] - 0.5 for a, b in update if b == box and a < box]
            given = [ranks[a] for a, b in edges if b == box and lanes[a] != 2]
            rank = min(before) if before else sum(given) / len(given) if given else 0.0
            ranks[box] = floor(rank * 2 + 0.5) / 2
    place = {rank: i for i, rank in enumerate(sorted(set(ranks)))}
    return [place[rank] for rank in ranks]


def _between(box: int, edges: Sequence[Edge], ranks: Sequence[float], partners: Sequence[int], last: float) -> float:
    """The rank of a backward box that has no partner: before those that read it, after those that it reads."""
    after = [ranks[b] for a, b in edges if a == box and b > box]
    before = [ranks[a] for a, b in edges if b == box and a < box and partners[a] >= 0]
    low, high = max(after, default=-1.0), min(before, default=inf)
    if not after:
        return high - 0.5 if before else last
    if low + 1 < high:
        return low + 1
    return (low + high) / 2 if high > low else low + 0.5


class _Stack:
    """The lanes side by side in every band."""

    def __init__(
        self,
        parts: Sequence[_Part],
        starts: Sequence[int],
        heights: Sequence[float],
        updates: Sequence[bool],
        loss: int,
        *,
        across: bool,
    ) -> None:
        self.updates = updates
        self.loss = loss
        self.parts = parts
        self.starts = starts
        self.band = [bisect(starts, rank) - 1 for rank in range(len(heights))]
        self.tops = [0.0]
        for height in heights:
            self.tops.append(self.tops[-1] + height + RANK_GAP)
        self.top = MARGIN if across else TITLE
        self.across = across
        self.between = LANE_GAP if across else COLUMN_GAP
        self.turn = TURN if len(starts) > 1 else 0.0
        self.strips: list[Strip] = []
        self.shifts: dict[tuple[int, int], float] = {}
        self.gaps = [0.0]  # before each band
        self.cross = self.bottom = 0.0
        for at in range(len(starts)):
            self._add_band(at)

    def _add_band(self, at: int) -> None:
        end = self.starts[at + 1] if at + 1 < len(self.starts) else len(self.band)
        height = self.tops[end] - RANK_GAP - self.tops[self.starts[at]] + self.top + MARGIN
        self.bottom = max(self.bottom, height)
        for part in self.parts:
            drawing = part.drawing
            cells = [cell for cell, rank in enumerate(drawing.rank) if self.band[rank] == at]
            if not cells:
                continue
            left = min(drawing.x[cell] - drawing.sizes[cell][0] / 2 for cell in cells)
            right = max(drawing.x[cell] + drawing.sizes[cell][0] / 2 for cell in cells)
            of_loss = [drawing.rank[cell] >= self.loss for cell in cells] if part.lane == 0 else [False]
            lane = "loss" if all(of_loss) else LANES[part.lane]
            split = any(of_loss) and not all(of_loss)
            named = all(strip.lane != lane for strip in self.strips)
            title = self._title(lane, part) if named else ""
            inset = TITLE if self.across and (named or split) else MARGIN
            needed = right - left + inset + MARGIN
            width = max(needed, TITLE_CHARACTER * len(title) + 2 * MARGIN) if named and not self.across else needed
            strip = Strip(lane, title, self.cross, self.turn, width, height)
            self.strips += self._split(strip, self.starts[at]) if split else [strip]
            self.shifts[at, part.lane] = self.cross + inset - left + (width - needed) / 2
            self.cross += width + self.between
        self.cross += BAND_GAP - self.between
        self.gaps.append(self.cross - BAND_GAP / 2)

    def _title(self, lane: str, part: _Part) -> str:
        """The name of a lane: the update may stand at the end of the backward pass."""
        joined = part.lane == 1 and any(self.updates[box] for box in part.members)
        return f"{lane}, update" if joined else lane

    def _split(self, strip: Strip, start: int) -> list[Strip]:
        """A forward strip whose end is the loss."""
        cut = self.tops[self.loss] - self.tops[start] + self.top - (LOSS_INSET if self.across else LOSS_TITLE)
        loss = replace(strip, lane="loss", title="loss", y=strip.y + cut)
        return [replace(strip, height=cut), loss]

    @property
    def size(self) -> Point:
        """Width and height."""
        return self.cross - BAND_GAP, self.bottom + 2 * self.turn

    def layout(self, boxes: int, edges: int) -> Layout:
        centres: list[Point] = [(0.0, 0.0)] * boxes
        bends: list[list[Point]] = [[] for _ in range(edges)]
        for part in self.parts:
            points = self._points(part)
            for box, point in zip(part.members, points, strict=False):
                centres[box] = point
            for i, edge in enumerate(part.edges):
                bends[edge] = self._bends(part, i, points)
        cut = {(strip.x, strip.y + strip.height) for strip in self.strips} & {(s.x, s.y) for s in self.strips}
        end = self.turn + self.bottom
        strips = [
            strip if (strip.x, strip.y + strip.height) in cut else replace(strip, height=end - strip.y)
            for strip in self.strips
        ]
        return Layout(centres, bends, *self.size, strips=strips)

    def _points(self, part: _Part) -> list[Point]:
        points = []
        for x, y, rank in zip(part.drawing.x, part.drawing.y, part.drawing.rank, strict=True):
            at = self.band[rank]
            down = y - self.tops[self.starts[at]] + self.top + self.turn
            points.append((x + self.shifts[at, part.lane], down))
        return points

    def _bends(self, part: _Part, i: int, points: Sequence[Point]) -> list[Point]:
        drawing = part.drawing
        a, b = drawing.edges[i]
        up = drawing.rank[a] > drawing.rank[b]
        start, end = (b, a) if up else (a, b)
        first, last = self.band[drawing.rank[start]], self.band[drawing.rank[end]]
        if first == last:
            return drawing.along(drawing.paths[i], points, up=up)
        path = drawing.paths[i][::-1] if up else drawing.paths[i]
        before = [cell for cell in path if self.band[drawing.rank[cell]] == first]
        after = [cell for cell in path if self.band[drawing.rank[cell]] == last]
        low, gap, high = self.bottom + 2 * self.turn - 3, self.gaps[last] + APART / 2, 3 + APART
        if part.lane:  # within the corner, and beyond it where they arrive: none crosses one of the forward pass
            low, gap, high = low - APART, gap - APART, high - APART
        x, to = points[[start, *before][-1]][0], points[[*after, end][0]][0]
        turning = [(x, low), (gap, low), (gap, high), (to, high)]
        way = [*drawing.along(before, points), *turning, *drawing.along(after, points)]
        return way[::-1] if up else way


def named_partners(lanes: Lanes, members: Sequence[str]) -> list[int]:
    """For each member the place of the one whose gradient it is, -1 for none."""
    place: Mapping[str, int] = {name: i for i, name in enumerate(members)}
    return [place.get(lanes.partners.get(name, ""), -1) for name in members]
