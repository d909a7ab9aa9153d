"""Trace caches, tapes and devices without a widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from limelight_widgets.figures.rows import Column, drawn_table
from limelight_widgets.figures.static import Figure, Table, figure
from limelight_widgets.folds.fold import State
from limelight_widgets.units import bytes_text, counted, seconds_text

MOST_ROWS = 200


def cache_figure(state: State) -> Figure:
    """The static forms of a cache fold's state."""
    functions = state["functions"]
    names = ", ".join(function["name"] for function in functions[:3]) or "no function"
    heading = f"Trace cache of {names}" if len(functions) <= 3 else f"Trace caches of {len(functions)} functions"
    if state["empty"]:
        return figure(heading if functions else "Trace cache", state["empty"], None, None)
    entries = [(function, entry) for function in functions for entry in function["entries"]]
    summary = f"{counted(len(entries), 'trace')}, {counted(sum(f['hits'] for f in functions), 'hit')}"
    several = len(functions) > 1
    numbers = [f"{f['name']} #{e['index'] + 1}" if several else f"#{e['index'] + 1}" for f, e in entries]
    columns = [
        Column("trace", numbers),
        Column("arguments", [e["arguments"] for _, e in entries]),
        Column("hits", [f"{e['hits']:,}" for _, e in entries], True, _shares([e["hits"] for _, e in entries])),
        Column("traced in", [seconds_text(e["seconds"]) for _, e in entries], True),
        Column("size", [_size(e["nbytes"]) for _, e in entries], True),
        Column("device", [e["device"] for _, e in entries]),
        Column("runs on", [e["tier"] for _, e in entries]),
    ]
    newest = [i for i, (f, e) in enumerate(entries) if [f["id"], e["index"]] == state["newest"]]
    reasons = [e["reason"] for _, e in entries]
    picture = drawn_table(heading, summary, columns, reasons, newest[0] if newest else -1)
    sentences = [f"{number}: {reason}" for number, reason in zip(numbers, reasons, strict=True) if reason]
    table = _table([*columns, Column("why it was traced", reasons)])
    in_text = replace(_table(columns), sentences=sentences)
    return figure(heading, summary, picture, table, in_text)


def tape_figure(state: State) -> Figure:
    """The static forms of a tape fold's state."""
    if state["empty"]:
        return figure("Gradient tape", state["empty"], None, None)
    kept = "released" if state["released"] else "kept alive"
    summary = f"{counted(state['entries'], 'entry', 'entries')}, {bytes_text(state['saved'])} {kept}"
    rows = state["rows"][:MOST_ROWS]
    columns = [
        Column("#", [str(row[0]) for row in rows], True),
        Column("op", [row[1] for row in rows]),
        Column("line", [line_text(row[2]) for row in rows]),
        Column("inputs", [", ".join(row[3]) for row in rows]),
        Column("output", [", ".join(row[4]) for row in rows]),
        Column("saved", [bytes_text(row[5]) for row in rows], True, _shares([row[5] for row in rows])),
        Column("rule", [row[6] for row in rows], widest=60),
    ]
    picture = drawn_table("Gradient tape", summary, columns)
    return figure("Gradient tape", summary, picture, _table(columns, state["entries"] - len(rows), state["hint"]))


def devices_figure(state: State) -> Figure:
    """The static forms of a devices fold's state; copies follow the devices in the table."""
    devices = state["devices"]
    summary = f"{counted(len(devices), 'device')}, {counted(state['copied'], 'copy', 'copies')} seen"
    most = max([device["peak"] for device in devices], default=0)
    columns = [
        Column("device", [device["name"] for device in devices]),
        Column("live", [bytes_text(d["live"]) for d in devices], True, [d["live"] / (most or 1) for d in devices]),
        Column("peak", [bytes_text(device["peak"]) for device in devices], True),
        Column("eager ops", [f"{device['ops']:,}" for device in devices], True),
        Column("staged calls", [f"{device['calls']:,}" for device in devices], True),
    ]
    picture = drawn_table("Devices", summary, columns)
    rows = [_device_row(device) for device in devices] + [_copy_row(copy) for copy in state["copies"]]
    table = Table(("device", "bytes", "ops, calls or copies", "line"), rows, frozenset({"ops, calls or copies"}))
    return figure("Devices", summary, picture, table)


def _device_row(device: State) -> list[str]:
    memory = f"live {bytes_text(device['live'])}, peak {bytes_text(device['peak'])}"
    return [device["name"], memory, f"{device['ops']:,} + {device['calls']:,}", ""]


def _copy_row(copy: State) -> list[str]:
    what = f"copied {bytes_text(copy['nbytes'])}: {copy['cause']}"
    return [f"{copy['from']} → {copy['to']}", what, f"{copy['count']:,}", line_text(copy["line"])]


def line_text(line: Sequence[Any] | None) -> str:
    """A position as it stands in a table: "In[3]:4"."""
    return f"{line[0]}:{line[1]}" if line else ""


def _table(columns: Sequence[Column], hidden: int = 0, hint: str = "") -> Table:
    rows = list(zip(*(column.cells for column in columns), strict=True))
    numbers = frozenset(column.name for column in columns if column.number)
    note = " ".join([f"and {hidden:,} more rows"] * (hidden > 0) + [hint] * bool(hint))
    return Table([column.name for column in columns], rows[:MOST_ROWS], numbers, note)


def _shares(numbers: Sequence[float]) -> list[float]:
    most = max(numbers, default=0) or 1
    return [number / most for number in numbers]


def _size(nbytes: int | None) -> str:
    return "–" if nbytes is None else bytes_text(nbytes)
