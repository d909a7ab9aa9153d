"""A graph without a widget: a picture, a table, and a listing for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log10
from textwrap import wrap

from limelight_widgets.figures import svg
from limelight_widgets.figures.box_text import Words
from limelight_widgets.figures.first_sight import Sight, first_sight
from limelight_widgets.figures.lanes import lanes_of, saved
from limelight_widgets.figures.layered_layout import Point, Strip
from limelight_widgets.figures.nested_layout import Rectangle, draw
from limelight_widgets.figures.op_listing import listing, matching, passed
from limelight_widgets.figures.outline_text import outline_table
from limelight_widgets.figures.overlays import NOT_MEASURED, Told, legend, told
from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.visible_boxes import Frame, Picture
from limelight_widgets.folds.fold import State
from limelight_widgets.format import bytes_text, counted, shortened

ROOM = (860.0, 640.0)  # for the picture, of the 900 pixels that a figure is wide
MARGIN = 16.0
HEAD = 30.0
NOTE = 15.0  # a line below the picture
NOTE_CHARACTER = 5.8


def graph_figure(state: State, which: str) -> Figure:
    """The static forms of a graph fold's state."""
    if not state["variants"]:
        return figure(f"Graph of {state['title']}", state["empty"], None, None)
    chosen = next((v for v in state["variants"] if v["key"] == which), state["variants"][0])
    graph = state["graphs"][chosen["graph"]]
    heading = f"Graph of {shortened(state['title'], 60)}"
    summary = _summary(state, graph, chosen["key"])
    begin = state.get("begin", {})
    sight, known = _overlaid(state, first_sight(state, chosen["graph"], ROOM, begin.get("depth")))
    rows = listing(state, chosen, begin.get("find", ""))
    if "find" in begin:
        summary = f"{summary}; {matching(state, chosen['graph'], begin['find'])}"
    if "stop" in begin and "history" in state:
        rows = replace(rows, sentences=[*passed(state["history"], state["graphs"], begin["stop"]), *rows.sentences])
    if "failed" in state:
        rows = replace(rows, sentences=[state["failed"]["error"], *rows.sentences])
    note = legend(state, chosen["graph"], state["overlay"]) if "overlay" in state else ""
    if note:
        rows = replace(rows, sentences=[note, *rows.sentences])
    return figure(
        heading, summary, _svg(sight, heading, summary, known, note), rows, outline_table(graph, rows.sentences)
    )


def _overlaid(state: State, sight: Sight) -> tuple[Sight, dict[str, Told]]:
    """The sight with what an overlay tells in the second line of each box, laid out for it."""
    if "overlay" not in state:
        return sight, {}
    known = told(state, sight.picture.boxes, state["overlay"])
    by_name = {
        name: replace(word, detail=known[name].text) if name in known else word for name, word in sight.words.items()
    }
    drawing = draw(sight.picture, {name: word.size() for name, word in by_name.items()}, sight.manner)
    return replace(sight, words=by_name, drawing=drawing), known


def _summary(state: State, graph: State, key: str) -> str:
    if "failed" in state:
        return f"{state['label']}: {shortened(state['failed']['error'], 64)}"
    parts = [
        key if len(state["variants"]) > 1 or "waiting" in state else "traced" if "running" in state else "as it is"
    ]
    if "label" in state:
        parts = [f"{parts[0]}, {state['label']}"]
    parts += [counted(len(graph["nodes"]), "op"), counted(len(graph["inputs"]), "input")]
    return ", ".join([*parts, counted(len(graph["outputs"]), "output")])


def _svg(sight: Sight, heading: str, summary: str, known: Mapping[str, Told], note: str) -> str:
    picture, by_name, drawing = sight.picture, sight.words, sight.drawing
    width = max(drawing.width + 2 * MARGIN, 7.4 * (len(heading) + len(summary) + 4) + 2 * MARGIN)
    left = (width - drawing.width) / 2
    notes = wrap(note, int((width - 2 * MARGIN) / NOTE_CHARACTER))
    below = drawing.height + 2 * MARGIN + HEAD - 8
    frames = [frame for frame in _outside_in(picture) if frame.name in drawing.frames]
    body = [
        svg.label(heading, MARGIN, 20, 13, font_weight="bold", font_family=svg.SANS),
        svg.label(summary, width - MARGIN, 20, 12, fill=svg.QUIET, anchor="end", font_family=svg.SANS),
        f'<g transform="translate({left:.1f},{MARGIN + HEAD - 8:.1f})">',
        *map(_strip, drawing.strips),
        *(_frame(frame, drawing.frames[frame.name]) for frame in frames),
        *(_edge(sight, edge, points) for edge, points in drawing.edges.items() if not _is_told(sight, edge)),
        *_saved(sight),  # behind the boxes, which it may pass
        *(_frame_title(frame, drawing.frames[frame.name]) for frame in frames),
        *(_box(by_name[name], place, known.get(name)) for name, place in drawing.boxes.items()),
        "</g>",
        *(
            svg.label(line, MARGIN, below + NOTE * i, 11, fill=svg.QUIET, font_family=svg.SANS)
            for i, line in enumerate(notes)
        ),
    ]
    described = f"{summary}. " + "; ".join(_spoken(by_name[box.name]) for box in picture.boxes[:40])
    return svg.document(width, below + NOTE * len(notes), heading, described, body)


def _outside_in(picture: Picture) -> list[Frame]:
    """Frames so that what is drawn later lies within what is drawn earlier."""
    depth = {"": 0}
    for frame in picture.frames:  # a frame comes after the one around it
        depth[frame.name] = depth[frame.parent] + 1
    return sorted(picture.frames, key=lambda frame: depth[frame.name])


def _frame(frame: Frame, place: Rectangle) -> str:
    fill, dashes = (svg.FILL["fused"], None) if frame.fused else ("#f4f1f8", "5 3")
    return svg.element(
        "rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=8,
        fill=fill, fill_opacity=0.6, stroke=svg.RULE, stroke_dasharray=dashes,
    )  # fmt: skip


def _frame_title(frame: Frame, place: Rectangle) -> str:
    """The title above the edges, with a ground of its own: edges pass behind it."""
    title = shortened(f"{svg.GLYPH['fused']} {frame.label}" if frame.fused else frame.label, 60)
    ground = svg.element(
        "rect", x=place.x + 5, y=place.y + 4, width=min(place.width - 10, 6.7 * len(title) + 10), height=16, rx=4,
        fill="#f9f6d9" if frame.fused else "#f8f5f8",
    )  # fmt: skip
    return ground + svg.label(title, place.x + 10, place.y + 16, 11, fill=svg.QUIET)


def _box(box: Words, place: Rectangle, known: Told | None = None) -> str:
    middle = place.x + place.width / 2
    title = f"{svg.GLYPH[box.kind]} {box.title}".strip()
    round_ends = box.kind in {"input", "output", "constant", "decision"}
    outline = svg.element(
        "rect", x=place.x, y=place.y, width=place.width, height=place.height,
        rx=min(place.height / 2, 19) if round_ends else 5, fill=svg.FILL[box.kind],
        stroke=svg.FAILED if box.kind == "error" else svg.EDGE,
        stroke_width=2 if box.kind in {"call", "group", "error"} else None,
        stroke_dasharray="3 3" if known is not None and known.text == NOT_MEASURED else None,
    )  # fmt: skip
    if known is not None and known.share is not None:
        outline += _bar(place, known.share)
    lines = [
        *([svg.label(box.detail, middle, place.y + 30, 11, anchor="middle", fill=svg.QUIET)] if box.detail else []),
        *([svg.label(box.tags, middle, place.y + (44 if box.detail else 30), 11, anchor="middle")] if box.tags else []),
    ]
    weight = "bold" if lines else None
    return outline + svg.label(title, middle, place.y + 16, 12, anchor="middle", font_weight=weight) + "".join(lines)


def _bar(place: Rectangle, share: float) -> str:
    width = max(share * (place.width - 6), 1.0 if share else 0.0)
    return svg.element(
        "rect", x=place.x + 3, y=place.y + place.height - 5, width=width, height=4, rx=2, fill=svg.ACCENT
    )


def _strip(strip: Strip) -> str:
    """The ground of a lane."""
    ground = svg.element(
        "rect", x=strip.x, y=strip.y, width=strip.width, height=strip.height, rx=6, fill=svg.LANE[strip.lane]
    )
    return ground + (svg.label(strip.title, strip.x + 8, strip.y + 13, 11, fill=svg.QUIET) if strip.title else "")


def _is_told(sight: Sight, edge: tuple[str, str]) -> bool:
    """Whether an edge is left out: those between lanes, and those into the update, would hide the others."""
    lane = {box.name: box.lane for box in sight.picture.boxes}
    into_update = bool(sight.drawing.strips) and lane[edge[1]] == "update" != lane[edge[0]]
    return edge in sight.drawing.bridges or into_update


def _saved(sight: Sight) -> list[str]:
    """Dotted lines from boxes to their gradients, with what is kept for these."""
    lanes = lanes_of(sight.picture) if sight.manner.lanes else None
    places = sight.drawing.boxes | sight.drawing.frames
    pairs = saved(sight.picture, lanes) if lanes is not None else []
    strips = sight.drawing.strips
    return [_dotted(places[box], places[gradient], size, strips) for box, gradient, size in pairs]


def _gap_before(place: Rectangle, strips: Sequence[Strip], *, down: bool) -> float | None:
    """The middle of the gap before the lane that a place is in, above or to the left: it hides no lane's name there."""
    of = (s for s in strips if s.x <= place.x <= s.x + s.width and s.y <= place.y <= s.y + s.height)
    if (strip := next(of, None)) is None:
        return None
    start = strip.y if down else strip.x
    ends = [end for s in strips if (end := s.y + s.height if down else s.x + s.width) <= start]
    return (max(ends) + start) / 2 if ends else None


def _dotted(source: Rectangle, target: Rectangle, size: float, strips: Sequence[Strip]) -> str:
    down = target.y > source.y + source.height
    start = (source.x + source.width / 2, source.y + source.height)
    end = (target.x + target.width / 2, target.y)
    if not down:
        start = (source.x + source.width, source.y + source.height / 2)
        end = (target.x, target.y + target.height / 2)
    x, y, said = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2, bytes_text(size)
    gap = _gap_before(target, strips, down=down)
    if gap is not None:
        x, y = (x, gap) if down else (gap, y)
    width = 6.7 * len(said) + 6
    room = end[1] - start[1] >= 14 if down else end[0] - start[0] >= width - 8
    line = svg.element(
        "path", d=f"M{start[0]:.1f},{start[1]:.1f} L{end[0]:.1f},{end[1]:.1f}", fill="none", stroke=svg.EDGE,
        stroke_width=1 + log10(1 + size / 1000), stroke_dasharray="2 3",
    )  # fmt: skip
    ground = svg.element("rect", x=x - width / 2, y=y - 8, width=width, height=15, rx=4, fill=svg.BACKDROP)
    if not room:
        return line
    return line + ground + svg.label(said, x, y + 4, 11, anchor="middle", fill=svg.QUIET)


def _edge(sight: Sight, edge: tuple[str, str], points: list[Point]) -> str:
    (x, y), (before_x, before_y) = points[-1], points[-2]
    across = sight.manner.across
    ahead = 1 if (x >= before_x if across else y >= before_y) else -1
    end, head = ((x - 5 * ahead, y), (-7 * ahead, 3.5)) if across else ((x, y - 5 * ahead), (3.5, -7 * ahead))
    corners = [(x, y), (x + head[0], y + head[1])]
    corners.append((x + head[0], y - head[1]) if across else (x - head[0], y + head[1]))
    size = sight.picture.bytes.get(edge, 0)
    width = min(1.2 + log10(1 + size / 1000) * 0.8, 5.0) if size else 1.2 if sight.picture.edges[edge] == 1 else 2.2
    path = svg.element(
        "path", d=_curve([*points[:-1], end], across=across), fill="none", stroke=svg.EDGE, stroke_width=width,
        stroke_dasharray="5 4" if edge in sight.picture.again else None,
    )  # fmt: skip
    return path + svg.element("polygon", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), fill=svg.EDGE)


def _curve(points: list[Point], *, across: bool) -> str:
    """Along the picture at every point, so that an edge leaves and enters a box straight."""
    x, y = points[0]
    steps = [f"M{x:.1f},{y:.1f}"]
    for next_x, next_y in points[1:]:
        half_x, half_y = (x + next_x) / 2, (y + next_y) / 2
        if x == next_x if across else y == next_y:  # round the end of a band
            steps.append(f"L{next_x:.1f},{next_y:.1f}")
        elif across:
            steps.append(f"C{half_x:.1f},{y:.1f} {half_x:.1f},{next_y:.1f} {next_x:.1f},{next_y:.1f}")
        else:
            steps.append(f"C{x:.1f},{half_y:.1f} {next_x:.1f},{half_y:.1f} {next_x:.1f},{next_y:.1f}")
        x, y = next_x, next_y
    return " ".join(steps)


def _spoken(box: Words) -> str:
    return " ".join(part for part in (box.kind if box.kind != "op" else "", box.title, box.detail, box.line) if part)
