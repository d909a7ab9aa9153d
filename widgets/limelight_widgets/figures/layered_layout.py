"""A layered drawing of a directed graph, in time linear in its size, without recursion.

Ranks by longest path, edges over several ranks split by bends, order within ranks by barycentres, and then horizontal
places that are, rank by rank, the best in the sense of least squares that keep the distances (isotonic regression).
Equal input gives equal output. `js/src/graph/layered-layout.js` does the same for the live view, when Graphviz cannot.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import Final

GAP = 16.0  # between neighbours of a rank
RANK_GAP = 34.0
BEND_WIDTH = 8.0
MOST_BENDS = 20_000
SWEEPS = 8
GUTTER = 26.0  # between two bands of ranks
TURN = 9.0  # how far beyond a band its edges turn round to the next
APART = 4.0  # between edges of two boxes that turn round there, at most
TRACKS = 5.0  # the room of all of these

Point = tuple[float, float]
ANY_SIZE: Final[Point] = (inf, inf)


@dataclass(frozen=True, slots=True)
class Strip:
    """The room of one lane in one band; the first of a lane has a title."""

    lane: str
    title: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Turns:
    """Where edges go from one band of ranks to the next: the band of each rank, gutters before bands, ends of bands.

    `sources`: for each band, from where edges come round to it, the leftmost box first: each has a track of its own.
    """

    band: list[int]
    gutters: list[float]
    ends: list[float]
    sources: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, bends of the edges from source to target, and the size of the whole.

    `entering` and `leaving` are the ways past other boxes, from the top to a box and from a box to the bottom.
    """

    centres: list[Point]
    bends: list[list[Point]]
    width: float
    height: float
    entering: dict[int, list[Point]] = field(default_factory=dict)
    leaving: dict[int, list[Point]] = field(default_factory=dict)
    strips: list[Strip] = field(default_factory=list)


def layered(
    sizes: Sequence[Point],
    edges: Sequence[tuple[int, int]],
    entering: Sequence[int] = (),
    leaving: Sequence[int] = (),
    limit: float = inf,
    most: Point = ANY_SIZE,
) -> Layout | None:
    """Places boxes; an edge points down wherever that is possible.

    Args:
        sizes: width and height of each box.
        edges: pairs of boxes, from and to. They are followed in the order of the boxes: one that points backwards is
            drawn from below to above.
        entering: boxes that are reached from outside, by way of the top.
        leaving: boxes that lead out below.
        limit: the height beyond which the ranks go on in another band, beside the first.
        most: width and height; None is returned where the layout would be larger.
    """
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    ranks = ranks_of(len(sizes), edges)
    drawing = Ranked(sizes, edges, ranks, entering, leaving)
    if exceeds(drawing.least(limit), most):
        return None
    drawing.order()
    drawing.place()
    return drawing.layout(limit, most)


def exceeds(size: Point, most: Point) -> bool:
    """Whether a width or a height is more than it may be."""
    return size[0] > most[0] or size[1] > most[1]


def band_starts(heights: Sequence[float], limit: float, gap: float = RANK_GAP) -> list[int]:
    """The first rank of each band, so that no band is higher than the limit and all are about equal."""
    total = sum(height + gap for height in heights) - gap
    if total <= limit:
        return [0]
    fewest = len(_cut(heights, limit, gap))
    most = total / fewest
    while most < limit:
        starts = _cut(heights, most, gap)
        if len(starts) <= fewest:
            return starts
        most += gap / 2
    return _cut(heights, limit, gap)


def _cut(heights: Sequence[float], most: float, gap: float) -> list[int]:
    starts, height = [0], -gap
    for rank, one in enumerate(heights):
        height += one + gap
        if height > most and rank != starts[-1]:
            starts.append(rank)
            height = one
    return starts


def ranks_of(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path to each box; a box that nothing leads to sits just above the first that needs it."""
    forward = sorted({(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]})
    ranks, has_input, first_use = [0] * count, [False] * count, [-1] * count
    for a, b in forward:
        ranks[b] = max(ranks[b], ranks[a] + 1)
        has_input[b] = True
    for a, b in forward:
        if first_use[a] < 0 or ranks[b] < first_use[a]:
            first_use[a] = ranks[b]
    return [
        rank if inside or use < 0 else use - 1 for rank, inside, use in zip(ranks, has_input, first_use, strict=True)
    ]


class Ranked:
    """Boxes and bends, both called cells here, in their ranks."""

    def __init__(
        self,
        sizes: Sequence[Point],
        edges: Sequence[tuple[int, int]],
        ranks: list[int],
        entering: Sequence[int] = (),
        leaving: Sequence[int] = (),
        count: int = 0,
    ) -> None:
        self.sizes = list(sizes)
        self.edges = edges
        self.boxes = len(sizes)
        self.rank = list(ranks)
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.paths = self._split()
        self.entering, self.leaving = self._ways(entering, leaving, max(self.rank))
        self.rows: list[list[int]] = [[] for _ in range(max(count, max(self.rank) + 1))]
        for cell, rank in enumerate(self.rank):
            self.rows[rank].append(cell)
        self.x = [0.0] * len(self.rank)
        self.y = [0.0] * len(self.rank)
        self.heights = [max([self.sizes[cell][1] for cell in row], default=0.0) for row in self.rows]

    def _split(self) -> list[list[int]]:
        """Gives every edge one bend in each rank that it crosses; returns the bends, from source to target."""
        bends = sum(max(abs(self.rank[a] - self.rank[b]) - 1, 0) for a, b in self.edges)
        paths = []
        for a, b in self.edges:
            high, low = (a, b) if self.rank[a] <= self.rank[b] else (b, a)
            path, last = [], high
            crossed = range(self.rank[high] + 1, self.rank[low]) if bends <= MOST_BENDS else range(0)
            for rank in crossed:
                path.append(self._bend(rank, last))
                last = path[-1]
            if high != low:
                self._join(last, low)
            paths.append(path if high == a else path[::-1])
        return paths

    def _ways(
        self, entering: Sequence[int], leaving: Sequence[int], bottom: int
    ) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Bends from the topmost rank to each box that is entered, and from each that is left to the lowest."""
        bends = sum(self.rank[box] for box in entering) + sum(bottom - self.rank[box] for box in leaving)
        if bends > MOST_BENDS:
            return {}, {}
        down: dict[int, list[int]] = {box: [] for box in entering}
        for box, path in down.items():
            for rank in range(self.rank[box]):
                path.append(self._bend(rank, path[-1] if path else None))
            if path:
                self._join(path[-1], box)
        out: dict[int, list[int]] = {box: [] for box in leaving}
        for box, path in out.items():
            for rank in range(self.rank[box] + 1, bottom + 1):
                path.append(self._bend(rank, path[-1] if path else box))
        return down, out

    def _bend(self, rank: int, above: int | None) -> int:
        cell = len(self.rank)
        self.rank.append(rank)
        self.sizes.append((BEND_WIDTH, 0.0))
        self.above.append([])
        self.below.append([])
        if above is not None:
            self._join(above, cell)
        return cell

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def row_widths(self) -> list[float]:
        """The least width of each row, whatever the order and the places of what is in it."""
        return [sum([self.sizes[cell][0] for cell in row]) + GAP * max(len(row) - 1, 0) for row in self.rows]

    def least(self, limit: float) -> Point:
        """What the layout measures at least, known before cells have an order: that takes most of the time."""
        starts = band_starts(self.heights, limit)
        bands = list(zip(starts, [*starts[1:], len(self.rows)], strict=True))
        widths, turns = self.row_widths(), 2 * TURN if len(bands) > 1 else 0.0
        width = sum(max(widths[start:end]) for start, end in bands) + GUTTER * (len(bands) - 1)
        height = max(sum(self.heights[start:end]) + RANK_GAP * (end - start - 1) for start, end in bands)
        return width, height + turns

    def order(self) -> None:
        """Orders each row by the mean place of its neighbours, sweeping down and up."""
        place = [0.0] * len(self.rank)
        for row in self.rows:
            for position, cell in enumerate(row):
                place[cell] = float(position)
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                wish = {cell: _mean(place, neighbours[cell], place[cell]) for cell in row}
                row.sort(key=wish.__getitem__)
                for position, cell in enumerate(row):
                    place[cell] = float(position)

    def place(self, gap: float = RANK_GAP) -> None:
        """Places each row below the last, and in it all cells near their neighbours."""
        top = 0.0
        for row, height in zip(self.rows, self.heights, strict=True):
            for cell in row:
                self.y[cell] = top + height / 2
            top += height + gap
            self._set_row(row, [0.0] * len(row))
        for sweep in range(SWEEPS + 1):  # the last one down, so that chains hang straight
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                self._set_row(row, [_mean(self.x, neighbours[cell], self.x[cell]) for cell in row])

    def _set_row(self, row: list[int], wishes: list[float]) -> None:
        """Places as near to the wishes as the distances allow: the weighted means of runs that would overlap."""
        offset, offsets = 0.0, []
        for before, cell in zip([None, *row], row, strict=False):
            if before is not None:
                offset += (self.sizes[before][0] + self.sizes[cell][0]) / 2 + GAP
            offsets.append(offset)
        blocks: list[tuple[float, int]] = []
        for wish, shift in zip(wishes, offsets, strict=True):
            total, count = wish - shift, 1
            while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
                before_total, before_count = blocks.pop()
                total, count = total + before_total, count + before_count
            blocks.append((total, count))
        start = 0
        for total, count in blocks:
            for i in range(start, start + count):
                self.x[row[i]] = total / count + offsets[i]
            start += count

    def layout(self, limit: float, most: Point) -> Layout | None:
        """The places, in as many bands as the limit asks for; None where they take more room than `most`."""
        turns = self._fold(band_starts(self.heights, limit))
        left = min(x - size[0] / 2 for x, size in zip(self.x, self.sizes, strict=True))
        right = max(x + size[0] / 2 for x, size in zip(self.x, self.sizes, strict=True))
        bottom = max(y + size[1] / 2 for y, size in zip(self.y, self.sizes, strict=True)) + (TURN if turns else 0.0)
        if exceeds((right - left, bottom), most):
            return None
        points = [(x - left, y) for x, y in zip(self.x, self.y, strict=True)]
        if turns is None:
            bends = [
                self.along(path, points, up=self.rank[a] > self.rank[b])
                for path, (a, b) in zip(self.paths, self.edges, strict=True)
            ]
            entering, leaving = (
                {box: self.along(path, points) for box, path in of.items()} for of in (self.entering, self.leaving)
            )
            return Layout(points[: self.boxes], bends, right - left, bottom, entering, leaving)
        turns = replace(turns, gutters=[x - left for x in turns.gutters], sources=self._sources(turns.band))
        bends = [self._turning(edge, points, turns) for edge in range(len(self.edges))]
        return Layout(points[: self.boxes], bends, right - left, bottom)

    def _fold(self, starts: Sequence[int]) -> Turns | None:
        """Puts bands of ranks side by side; None where there is one only."""
        if len(starts) < 2:
            return None
        band = [bisect(starts, rank) - 1 for rank in range(len(self.heights))]
        tops = [min(self.y[cell] for cell in self.rows[start]) - self.heights[start] / 2 - TURN for start in starts]
        lefts, rights = [inf] * len(starts), [-inf] * len(starts)
        for cell, rank in enumerate(self.rank):
            at, half = band[rank], self.sizes[cell][0] / 2
            lefts[at] = min(lefts[at], self.x[cell] - half)
            rights[at] = max(rights[at], self.x[cell] + half)
        shifts, gutters = [0.0], [0.0]
        for at in range(1, len(starts)):
            end = rights[at - 1] + shifts[at - 1]
            gutters.append(end + GUTTER / 2)
            shifts.append(end + GUTTER - lefts[at])
        ends = [0.0] * len(starts)
        for cell, rank in enumerate(self.rank):
            at = band[rank]
            self.x[cell] += shifts[at]
            self.y[cell] -= tops[at]
            ends[at] = max(ends[at], self.y[cell] + self.heights[rank] / 2 + TURN)
        return Turns(band, gutters, ends)

    def _cells(self, i: int) -> list[int]:
        """The cells of an edge from the top on, its boxes included."""
        (a, b), path = self.edges[i], self.paths[i]
        return [b, *path[::-1], a] if self.rank[a] > self.rank[b] else [a, *path, b]

    def _sources(self, band: Sequence[int]) -> list[list[int]]:
        places: list[dict[int, float]] = [{} for _ in range(band[-1] + 1)]
        for i in range(len(self.edges)):
            cells = self._cells(i)
            for before, cell in pairwise(cells):
                for at in range(band[self.rank[before]] + 1, band[self.rank[cell]] + 1):
                    places[at][cells[0]] = min(places[at].get(cells[0], inf), self.x[before])
        return [sorted(of, key=lambda source: (of[source], source)) for of in places]

    def _turning(self, edge: int, points: Sequence[Point], turns: Turns) -> list[Point]:
        """The bends of an edge, round the ends of bands where it goes from one to another."""
        cells = self._cells(edge)
        way: list[Point] = []
        previous = 0.0  # the gutter that it has come through
        for i, cell in enumerate(cells):
            here, before = turns.band[self.rank[cell]], turns.band[self.rank[cells[max(i - 1, 0)]]]
            for at in range(before + 1, here + 1):
                track, last = turns.sources[at].index(cells[0]), len(turns.sources[at]) - 1
                step = min(APART, TRACKS / last) if last else 0.0
                # The leftmost turns round outermost, and innermost where it arrives: none crosses another between.
                low, gutter = turns.ends[at - 1] - step * track, turns.gutters[at] + step * (last / 2 - track)
                top = step * (last - track)
                start = points[cells[i - 1]][0] if at == before + 1 else previous
                end = points[cell][0] if at == here else gutter
                way += [(start, low), (gutter, low), (gutter, top), (end, top)]
                previous = gutter
            if 0 < i < len(cells) - 1:
                way += self.along([cell], points)
        return way if cells[0] == self.edges[edge][0] else way[::-1]

    def along(self, path: Sequence[int], points: Sequence[Point], *, up: bool = False) -> list[Point]:
        """The points of a path: straight through each rank that it crosses, so that it passes beside tall boxes."""
        bends = []
        for cell in path:
            (x, y), half = points[cell], self.heights[self.rank[cell]] / 2
            bends += [(x, y + half), (x, y - half)] if up else [(x, y - half), (x, y + half)]
        return bends


def _mean(values: Sequence[float], cells: Sequence[int], otherwise: float) -> float:
    return sum(values[cell] for cell in cells) / len(cells) if cells else otherwise
