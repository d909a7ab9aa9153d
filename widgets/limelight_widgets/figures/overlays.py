"""What is told on the boxes of a graph besides: time, bytes, device, NaN and infinity, the norm of gradients.

Each box has a number or a word, and a bar at its foot for the share of the heaviest box; a group has the sum of what is
in it. What was not measured says so. `js/src/graph/overlays.js` does the same; the tests hold both to one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10
from typing import Final, Literal, NamedTuple

from limelight_widgets.figures.visible_boxes import Box, bytes_of
from limelight_widgets.folds.fold import State
from limelight_widgets.format import bytes_text, counted, rounded, seconds_text

Overlay = Literal["time", "bytes", "device", "nan", "grad"]
OVERLAYS: Final = ("time", "bytes", "device", "nan", "grad")
MEASURED: Final = ("time", "nan", "grad")
"""Those that need a call whose ops were measured."""
LEGENDS: Final = {
    "time": "seconds of each op, run by itself: the least of three runs",
    "bytes": "bytes of what each op gives",
    "device": "where each op was asked to run",
    "nan": "numbers that are NaN or infinite in what each op gave",
    "grad": "L2 norm of what each op of the backward pass gave",
}
NOT_MEASURED: Final = "not measured"
_ANY_CALL: Final = "a call", "(‹arguments›)", ", with the call's own for ‹arguments›"
"""These are no Python: copied as they are, they are an error at once."""
_ELSEWHERE: Final = "where its inputs are"
_MOST_DEVICES: Final = 2


class Told(NamedTuple):
    """What is told on a box, and its share of the heaviest one; None where that means nothing."""

    text: str
    share: float | None


def told(state: State, boxes: Sequence[Box], overlay: Overlay) -> dict[str, Told]:
    """What an overlay tells on each box that stands for ops, by its name."""
    found = {box.name: _of(state, box, overlay) for box in boxes if box.kind in {"node", "group"}}
    if overlay == "device":
        return {name: Told(str(value), None) for name, value in found.items()}
    numbers = [value for value in found.values() if isinstance(value, int | float) and isfinite(value)]
    most = max(numbers, default=0)
    return {name: Told(_text(overlay, value), _share(value, most)) for name, value in found.items()}


def legend(state: State, graph: int, overlay: Overlay) -> str:
    """What an overlay shows, in what unit, and how much it is all in all."""
    nodes = state["graphs"][graph]["nodes"]
    if overlay in MEASURED and not any("cost" in node for node in nodes):
        what, call, hint = ("the cell", "", "") if state.get("staged_cell") else _ANY_CALL
        write = f"%graph {state['title']}{call} --overlay {overlay}"
        return f"{overlay}: {NOT_MEASURED}. To run {what} and measure its ops, write {write}{hint}"
    said = f"{overlay}: {LEGENDS[overlay]}"
    if overlay == "device":
        return said
    total = _sum(nodes, overlay)
    return f"{said}; all in all {_text(overlay, total)}. The bar is the share of the heaviest box."


def _of(state: State, box: Box, overlay: Overlay) -> float | int | str | None:
    graph = state["graphs"][box.graph]
    nodes = [graph["nodes"][k] for k in members(graph, box)]
    if overlay == "device":
        devices = list(dict.fromkeys(node.get("device", _ELSEWHERE) for node in nodes))
        more = len(devices) - _MOST_DEVICES
        return ", ".join(devices[:_MOST_DEVICES]) + (f" and {more} more" if more > 0 else "")
    return _sum(nodes, overlay)


def _sum(nodes: Sequence[State], overlay: Overlay) -> float | int | None:
    """The sum over some nodes, None where nothing was measured; for norms the root of the sum of squares."""
    if overlay == "bytes":
        return sum(_made(node) for node in nodes if not node.get("inline"))
    costs = [(node, node["cost"]) for node in nodes if "cost" in node]
    if overlay == "time":
        return sum(seconds for _, (seconds, *_) in costs) if costs else None
    if overlay == "nan":
        return sum(nans + infinities for _, (_, nans, infinities, *_) in costs) if costs else None
    norms = [norm for node, (_, _, _, norm, _) in costs if node.get("lane") == "backward" and norm is not None]
    if any(isinstance(norm, str) for norm in norms):
        return float("inf")
    return sum(norm * norm for norm in norms) ** 0.5 if norms else None


def _made(node: State) -> float:
    """The bytes that a node gives: as measured, else as its specs say."""
    return node["cost"][-1] if "cost" in node else sum(map(bytes_of, node.get("out", ())))


def members(graph: State, box: Box) -> list[int]:
    """The nodes that a box stands for."""
    if box.kind == "node":
        return [box.index]
    inside = {box.index}
    for index, group in enumerate(graph["groups"]):  # each before those in it
        if group["parent"] in inside:
            inside.add(index)
    return [k for k, node in enumerate(graph["nodes"]) if node.get("group", -1) in inside]


def _text(overlay: Overlay, value: float | int | str | None) -> str:
    if value is None:
        return "" if overlay == "grad" else NOT_MEASURED
    if overlay == "time":
        return seconds_text(float(value))
    if overlay == "bytes":
        return bytes_text(float(value))
    if overlay == "nan":
        return "✓ all finite" if not value else f"⚠ {counted(int(value), 'number')} not finite"
    return norm_text(float(value))


def norm_text(value: float) -> str:
    """A norm to three digits, with a power of ten where they would be far from the point.

    >>> [norm_text(norm) for norm in (0.0, 26.412, 12.25, 9999.9, 1e4, 1.5e-7, float("inf"))]
    ['norm 0', 'norm 26.4', 'norm 12.3', 'norm 10000', 'norm 1.00e+4', 'norm 1.50e-7', 'norm ∞']
    """
    return f"norm {_figure(value) if isfinite(value) else '∞'}"


def _figure(value: float) -> str:
    if not value:
        return "0"
    number = rounded(value, 2 - floor(log10(value)))
    if 1e-3 <= value < 1e4:
        return f"{number:g}"
    digits, exponent = f"{number:.2e}".split("e")
    return f"{digits}e{exponent[0]}{int(exponent[1:])}"


def _share(value: float | int | str | None, most: float) -> float | None:
    if value is None or isinstance(value, str):
        return None
    return 1.0 if not isfinite(value) else value / most if most else 0.0
