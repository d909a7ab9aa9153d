"""A graph without a widget: a picture, a table, and a listing for the terminal."""

from __future__ import annotations

from limelight_widgets.figures import svg
from limelight_widgets.figures.box_text import Words, words
from limelight_widgets.figures.layered_layout import Point
from limelight_widgets.figures.nested_layout import Rectangle, draw
from limelight_widgets.figures.op_listing import listing
from limelight_widgets.figures.outline_text import outline_table
from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.visible_boxes import Frame, Picture, visible
from limelight_widgets.folds.fold import State
from limelight_widgets.format import counted, shortened

MARGIN = 16.0
HEAD = 30.0


def graph_figure(state: State, which: str) -> Figure:
    """The static forms of a graph fold's state."""
    if not state["variants"]:
        return figure(f"Graph of {state['title']}", state["empty"], None, None)
    chosen = next((v for v in state["variants"] if v["key"] == which), state["variants"][0])
    graph = state["graphs"][chosen["graph"]]
    heading = f"Graph of {shortened(state['title'], 60)}"
    summary = _summary(state, graph, chosen["key"])
    picture = visible(state, chosen["graph"])
    rows = listing(state, chosen)
    return figure(heading, summary, _svg(state, picture, heading, summary), rows, outline_table(graph, rows.sentences))


def _summary(state: State, graph: State, key: str) -> str:
    parts = [key if len(state["variants"]) > 1 else "as it is"]
    if "label" in state:
        parts = [f"{parts[0]}, {state['label']}"]
    parts += [counted(len(graph["nodes"]), "op"), counted(len(graph["inputs"]), "input")]
    return ", ".join([*parts, counted(len(graph["outputs"]), "output")])


def _svg(state: State, picture: Picture, heading: str, summary: str) -> str:
    by_name = {box.name: words(state, box) for box in picture.boxes}
    drawing = draw(picture, {name: box.size() for name, box in by_name.items()})
    width = max(drawing.width + 2 * MARGIN, 7.4 * (len(heading) + len(summary) + 4) + 2 * MARGIN)
    left = (width - drawing.width) / 2
    frames = [frame for frame in _outside_in(picture) if frame.name in drawing.frames]
    body = [
        svg.label(heading, MARGIN, 20, 13, font_weight="bold", font_family=svg.SANS),
        svg.label(summary, width - MARGIN, 20, 12, fill=svg.QUIET, anchor="end", font_family=svg.SANS),
        f'<g transform="translate({left:.1f},{MARGIN + HEAD - 8:.1f})">',
        *(_frame(frame, drawing.frames[frame.name]) for frame in frames),
        *(_edge(points, picture.edges[edge], edge in picture.again) for edge, points in drawing.edges.items()),
        *(_frame_title(frame, drawing.frames[frame.name]) for frame in frames),
        *(_box(by_name[name], place) for name, place in drawing.boxes.items()),
        "</g>",
    ]
    described = f"{summary}. " + "; ".join(_spoken(by_name[box.name]) for box in picture.boxes[:40])
    return svg.document(width, drawing.height + 2 * MARGIN + HEAD - 8, heading, described, body)


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


def _box(box: Words, place: Rectangle) -> str:
    middle = place.x + place.width / 2
    title = f"{svg.GLYPH[box.kind]} {box.title}".strip()
    round_ends = box.kind in {"input", "output", "constant", "decision"}
    outline = svg.element(
        "rect", x=place.x, y=place.y, width=place.width, height=place.height,
        rx=place.height / 2 if round_ends else 5, fill=svg.FILL[box.kind], stroke=svg.EDGE,
        stroke_width=2 if box.kind in {"call", "group"} else 1,
    )  # fmt: skip
    if not box.detail:
        return outline + svg.label(title, middle, place.y + 16, 12, anchor="middle")
    first = svg.label(title, middle, place.y + 16, 12, anchor="middle", font_weight="bold")
    return outline + first + svg.label(box.detail, middle, place.y + 30, 10, anchor="middle", fill=svg.QUIET)


def _edge(points: list[Point], count: int, again: bool) -> str:
    x, y = points[-1]
    down = 1 if y >= points[-2][1] else -1
    path = svg.element(
        "path", d=_curve([*points[:-1], (x, y - 5 * down)]), fill="none", stroke=svg.EDGE,
        stroke_width=1.2 if count == 1 else 2.2,
        stroke_dasharray="5 4" if again else None,
    )  # fmt: skip
    head = f"{x:.1f},{y:.1f} {x - 3.5:.1f},{y - 7 * down:.1f} {x + 3.5:.1f},{y - 7 * down:.1f}"
    return path + svg.element("polygon", points=head, fill=svg.EDGE)


def _curve(points: list[Point]) -> str:
    """Vertical at every point, so that an edge leaves and enters a box straight."""
    x, y = points[0]
    steps = [f"M{x:.1f},{y:.1f}"]
    for next_x, next_y in points[1:]:
        half = (y + next_y) / 2
        steps.append(f"C{x:.1f},{half:.1f} {next_x:.1f},{half:.1f} {next_x:.1f},{next_y:.1f}")
        x, y = next_x, next_y
    return " ".join(steps)


def _spoken(box: Words) -> str:
    return " ".join(part for part in (box.kind if box.kind != "op" else "", box.title, box.detail, box.line) if part)
