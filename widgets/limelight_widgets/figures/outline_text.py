"""A graph in plain text: the outline of its tree, a row for each group, repeats once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from limelight_widgets.figures.static_forms import Table
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_outline import Row, folded, outline
from limelight_widgets.format import bytes_text, counted, shortened

PART_WIDTH = 36
MOST_LISTED = 24  # ops
MOST_CROSSINGS = 3  # that are named
_DEEPER = "│ "


def outline_table(graph: State, more: Sequence[str] = ()) -> Table | None:
    """The outline as a table of text, None for a graph without groups, or so small that its ops are listed.

    `more` are sentences to be said below it, without those that name each fusion group.
    """
    if not graph["groups"] or len(graph["nodes"]) <= MOST_LISTED:
        return None
    said = [one for one in more if not one.startswith("fused ") and "fusion groups more" not in one]
    rows = outline(graph)
    kept = any(row.saved for row in rows)
    size = "kept" if kept else "makes"
    cells = [[_part(row), _ops(row), _bytes(row.saved if kept else row.bytes), row.holds] for row in rows]
    numbers = frozenset({"ops", size})
    return Table(
        ("part", "ops", size, "of"),
        cells,
        numbers,
        sentences=[*_folded(graph), *_crossings(graph), *_fusions(graph), *said],
        wrapped=frozenset({"of"}),
    )


def _part(row: Row) -> str:
    named = row.title.startswith(row.cls) or row.title.endswith(f": {row.cls}")  # "0: Dense", of a list of layers
    cls = f": {row.cls}" if row.cls and not named else ""
    return shortened(_DEEPER * row.depth + row.title, PART_WIDTH - len(cls)) + cls


def _ops(row: Row) -> str:
    return f"{row.ops:,}"


def _bytes(count: float) -> str:
    return bytes_text(count) if count else ""


def _folded(graph: State) -> list[str]:
    """What is counted, but not named."""
    count = folded(graph)
    if not count:
        return []
    are = "is" if count == 1 else "are"
    return [f"{count:,} of the ops {are} part of another's box and counted there: reads, constants, casts, reshapes"]


def _fusions(graph: State) -> list[str]:
    sizes = [len(fusion["nodes"]) for fusion in graph.get("fusions", ())]
    if not sizes:
        return []
    return [f"{sum(sizes):,} of the ops run in {counted(len(sizes), 'fusion group')} of {_range(sizes)} ops"]


def _range(sizes: Sequence[int]) -> str:
    return f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _crossings(graph: State) -> list[str]:
    """What is kept for the backward pass, heaviest first."""
    crossings = graph.get("crossings", ())
    if not crossings:
        return []
    made: dict[str, float] = {}
    for one in crossings:
        name = _name(graph["groups"][one["from"]]) if one["from"] >= 0 else "ops of no module"
        made[name] = made.get(name, 0) + one["bytes"]
    heaviest = sorted(made.items(), key=lambda pair: -pair[1])
    named = ", ".join(f"{bytes_text(count)} of {name}" for name, count in heaviest[:MOST_CROSSINGS])
    more = len(heaviest) - MOST_CROSSINGS
    rest = f" and less of {counted(more, 'other')}" if more > 0 else ""
    total = sum(one["bytes"] for one in crossings)
    return [f"{bytes_text(total)} {'are' if total != 1 else 'is'} kept for the backward pass: {named}{rest}"]


def _name(group: State) -> str:
    """A group by itself, without those around it: a module by its whole path, in which later calls have numbers.

    >>> _name({"kind": "module", "title": "0: Dense", "path": "D#2.layers.0"})
    'D.layers.0 (call 2)'
    """
    if group["kind"] != "module" or not group.get("path"):
        return str(group["title"])
    calls = re.findall(r"#(\d+)", group["path"])
    return re.sub(r"#\d+", "", group["path"]) + (f" (call {calls[-1]})" if calls else "")
