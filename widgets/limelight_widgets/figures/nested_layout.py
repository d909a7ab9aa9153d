"""Drawings with frames: every open group is laid out by itself, and is one box in what is around it.

Edges pass beside boxes, not behind them: an edge into a frame, or out of one, has bends in that frame's layout as well,
and runs straight through each rank. Where it meets a frame's title, the title is above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from limelight_widgets.figures.lanes import in_lanes, lanes_of, named_partners
from limelight_widgets.figures.layered_layout import ANY_SIZE, Layout, Point, Strip, layered
from limelight_widgets.figures.visible_boxes import Picture

PADDING = 12.0
TITLE_HEIGHT = 20.0
CHARACTER = 6.7


@dataclass(frozen=True, slots=True)
class Manner:
    """How a picture is laid out.

    `across`: from left to right, not from top to bottom. `limit`: the extent beyond which a chain of boxes goes on in
    another row, or column. `lanes`: forward, backward and update have a row each; `joined`: the update has none.
    `terse`: boxes bear their titles alone.
    """

    across: bool = False
    limit: float = inf
    lanes: bool = False
    joined: bool = False
    terse: bool = False


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Top left corner, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Drawing:
    """Places of boxes and frames by name, the points of edges from source to target, and the size of the whole."""

    boxes: dict[str, Rectangle] = field(default_factory=dict)
    frames: dict[str, Rectangle] = field(default_factory=dict)
    edges: dict[tuple[str, str], list[Point]] = field(default_factory=dict)
    bridges: set[tuple[str, str]] = field(default_factory=set)  # edges from one lane to another
    strips: list[Strip] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def draw(picture: Picture, sizes: Mapping[str, Point], manner: Manner = Manner()) -> Drawing:  # frozen
    """Places a picture whose boxes have the given (width, height)."""
    drawing = draw_within(picture, sizes, manner, ANY_SIZE)
    assert drawing is not None
    return drawing


def draw_within(picture: Picture, sizes: Mapping[str, Point], manner: Manner, most: Point) -> Drawing | None:
    """The same; None where it would be wider or higher than `most`, which is mostly known before all is placed."""
    plan = _Plan(picture, sizes, manner)
    return plan.drawing() if plan.lay_out(most) else None


class _Plan:
    def __init__(self, picture: Picture, sizes: Mapping[str, Point], manner: Manner) -> None:
        self.picture = picture
        self.across, self.limit = manner.across, manner.limit
        self.lanes = lanes_of(picture, joined=manner.joined) if manner.lanes else None
        self.sizes = dict(sizes)
        self.parent = {box.name: box.parent for box in picture.boxes} | {f.name: f.parent for f in picture.frames}
        self.label = {frame.name: frame.label for frame in picture.frames}
        self.members: dict[str, list[str]] = {name: [] for name in ("", *self.label)}
        self._gather()
        self.inner: dict[str, list[tuple[str, str]]] = {}  # for each frame the edges between its members
        self.lifted: dict[tuple[str, str], tuple[str, str, str]] = {}
        self.place = {name: i for members in self.members.values() for i, name in enumerate(members)}
        self.entered: dict[str, list[str]] = {}  # for each frame the members that edges from outside lead to
        self.left: dict[str, list[str]] = {}
        self.crossed: dict[tuple[str, str], tuple[list[str], list[str]]] = {}  # members that an edge leaves, enters
        for edge in picture.edges:
            self._lift(edge)
        self.layouts: dict[str, Layout] = {}

    def _gather(self) -> None:
        """Members in execution order: a frame stands where its first box does, a fusion group where its last does."""
        placed: set[str] = set()
        fused = {frame.name for frame in self.picture.frames if frame.fused}
        last = {box.parent: box.name for box in self.picture.boxes}
        for box in self.picture.boxes:
            name = box.name
            while name and name not in placed and not (name in fused and last[name] != box.name):
                placed.add(name)
                self.members[self.parent[name]].append(name)
                name = self.parent[name]

    def _around(self, name: str) -> list[str]:
        """The frames around a box, from the outside in, and the box."""
        chain = [name]
        while self.parent[chain[-1]]:
            chain.append(self.parent[chain[-1]])
        return chain[::-1]

    def _lift(self, edge: tuple[str, str]) -> None:
        """Notes an edge as one between two members of the innermost frame around both of its ends."""
        source, target = self._around(edge[0]), self._around(edge[1])
        common = 0
        while common < min(len(source), len(target)) - 1 and source[common] == target[common]:
            common += 1
        frame = source[common - 1] if common else ""
        self.lifted[edge] = (frame, source[common], target[common])
        self.inner.setdefault(frame, []).append((source[common], target[common]))
        forward = self.place[source[common]] < self.place[target[common]]
        passes = forward and not self._bridges(source[0], target[0])
        self.crossed[edge] = (source[:common:-1], target[common + 1 :]) if passes else ([], [])
        for members, names in zip((self.left, self.entered), self.crossed[edge], strict=True):
            for name in names:
                members.setdefault(self.parent[name], []).append(name)

    def _bridges(self, source: str, target: str) -> bool:
        """Whether an edge leads straight over from one lane to another: it has no way past the others in its frames."""
        if self.lanes is None:
            return False
        of, updates = self.lanes.of, self.lanes.updates
        return of.get(source, 0) != of.get(target, 0) or (source in updates) != (target in updates)

    def lay_out(self, most: Point) -> bool:
        """From the innermost frames out, so that a frame's size is known when what is around it is laid out.

        Whether the whole is no larger than `most`; no frame is, then.
        """
        most = self._turned(most)
        by_depth = sorted((f.name for f in self.picture.frames), key=lambda name: -len(self._around(name)))
        for frame in [*by_depth, ""]:
            between = list(dict.fromkeys(self.inner.get(frame, [])))
            self.inner[frame] = between
            layout = self._arranged(frame, [(self.place[a], self.place[b]) for a, b in between], most)
            if layout is None:
                return False
            self.layouts[frame] = layout
            if frame:
                inside = self._turned((layout.width, layout.height))
                width = max(inside[0], CHARACTER * (len(self.label[frame]) + 2)) + 2 * PADDING
                self.sizes[frame] = (width, inside[1] + 2 * PADDING + TITLE_HEIGHT)
        return True

    def _arranged(self, frame: str, edges: list[tuple[int, int]], most: Point) -> Layout | None:
        members = self.members[frame]
        sizes = [self._turned(self.sizes[name]) for name in members]
        limit = self.limit - len(self._depth(frame)) * (2 * PADDING + (0.0 if self.across else TITLE_HEIGHT))
        if not frame and self.lanes is not None and members:
            of = [self.lanes.of.get(name, 0) for name in members]
            partners = named_partners(self.lanes, members)
            updates = [name in self.lanes.updates for name in members]
            losses = [name in self.lanes.losses for name in members]
            return in_lanes(sizes, edges, of, partners, updates, losses, limit, most, across=self.across)
        entering = sorted({self.place[name] for name in self.entered.get(frame, ())})
        leaving = sorted({self.place[name] for name in self.left.get(frame, ())})
        layout = layered(sizes, edges, entering, leaving, limit, most)
        return _reversed(layout) if layout is not None and frame and self._lane(frame) == 1 else layout

    def _depth(self, frame: str) -> list[str]:
        return self._around(frame) if frame else []

    def _turned(self, point: Point) -> Point:
        return (point[1], point[0]) if self.across else point

    def _lane(self, name: str) -> int:
        return self.lanes.of.get(self._around(name)[0], 0) if self.lanes is not None else 0

    def drawing(self) -> Drawing:
        root = self.layouts[""]
        width, height = self._turned((root.width, root.height))
        strips = [
            Strip(one.lane, one.title, one.y, one.x, one.height, one.width) if self.across else one
            for one in root.strips
        ]
        done = Drawing(width=width, height=height, strips=strips)
        corners: dict[str, Point] = {"": (0.0, 0.0)}
        bends: dict[tuple[str, str, str], list[Point]] = {}
        waiting = [""]
        while waiting:
            frame = waiting.pop()
            left, top = corners[frame]
            layout = self.layouts[frame]
            for name, centre in zip(self.members[frame], layout.centres, strict=True):
                (x, y), (width, height) = self._turned(centre), self.sizes[name]
                place = Rectangle(left + x - width / 2, top + y - height / 2, width, height)
                if name in self.members:
                    done.frames[name] = place
                    corners[name] = (place.x + self._indent(name), place.y + PADDING + TITLE_HEIGHT)
                    waiting.append(name)
                else:
                    done.boxes[name] = place
            for (a, b), path in zip(self.inner[frame], layout.bends, strict=True):
                bends[frame, a, b] = [(left + x, top + y) for x, y in map(self._turned, path)]
        for edge, lifted in self.lifted.items():
            outward, inward = self.crossed[edge]
            way = [
                *(point for name in outward for point in self._way(name, corners, leaving=True)),
                *bends[lifted],
                *(point for name in inward for point in self._way(name, corners, leaving=False)),
            ]
            crossing = self._lane(edge[0]) != self._lane(edge[1])
            if crossing:
                done.bridges.add(edge)
            across = self.across is not crossing
            done.edges[edge] = _ends(done.boxes[edge[0]], [] if crossing else way, done.boxes[edge[1]], across=across)
        return done

    def _way(self, name: str, corners: Mapping[str, Point], *, leaving: bool) -> list[Point]:
        """The way past the other members of its frame, to or from one of them."""
        frame = self.parent[name]
        left, top = corners[frame]
        ways = self.layouts[frame].leaving if leaving else self.layouts[frame].entering
        return [(left + x, top + y) for x, y in map(self._turned, ways.get(self.place[name], ()))]

    def _indent(self, frame: str) -> float:
        """A frame with a long title is wider than what is in it, which then stands in the middle."""
        layout = self.layouts[frame]
        return (self.sizes[frame][0] - (layout.height if self.across else layout.width)) / 2


def _reversed(layout: Layout) -> Layout:
    """The same from the bottom to the top."""

    def over(points: Sequence[Point]) -> list[Point]:
        return [(x, layout.height - y) for x, y in points]

    entering, leaving = ({box: over(way) for box, way in of.items()} for of in (layout.entering, layout.leaving))
    bends = [over(way) for way in layout.bends]
    return replace(layout, centres=over(layout.centres), bends=bends, entering=entering, leaving=leaving)


def _ends(source: Rectangle, bends: Sequence[Point], target: Rectangle, *, across: bool) -> list[Point]:
    """From the side of the source that faces the way, to the side of the target that does: lower edge to upper mostly.

    Where the way goes on in another band, the target may lie above the source and yet be entered from above.

    `across`: from the right edge to the left one.
    """
    at, to = _centre(source), _centre(target)
    ahead, behind = bends[0] if bends else to, bends[-1] if bends else at
    if across:
        start = (source.x + (source.width if ahead[0] >= at[0] else 0.0), at[1])
        return [start, *bends, (target.x + (0.0 if behind[0] <= to[0] else target.width), to[1])]
    start = (at[0], source.y + (source.height if ahead[1] >= at[1] else 0.0))
    return [start, *bends, (to[0], target.y + (0.0 if behind[1] <= to[1] else target.height))]


def _centre(place: Rectangle) -> Point:
    return (place.x + place.width / 2, place.y + place.height / 2)
