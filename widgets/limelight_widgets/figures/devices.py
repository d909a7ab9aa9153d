"""The devices without a widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limelight_widgets.figures.static_forms import Figure, Table, figure
from limelight_widgets.figures.table_picture import Column, drawn_table, line_text, shares, table_figure
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.source_excerpts import line_state
from limelight_widgets.format import bytes_text, counted, seconds_text


def devices_figure(state: State) -> Figure:
    """The static forms of a devices fold's state; copies follow the devices in the table."""
    devices = state["devices"]
    summary = f"{counted(len(devices), 'device')}, {counted(state['copied'], 'copy', 'copies')} seen"
    most = max([device["peak"] for device in devices], default=0)
    columns = [
        Column("device", [device["name"] for device in devices]),
        Column("live", [bytes_text(d["live"]) for d in devices], True, [d["live"] / (most or 1) for d in devices]),
        Column("peak", [peak_text(device) for device in devices], True),
    ]
    if state["ops_counted"]:
        columns.append(Column("eager ops", [f"{device['ops']:,}" for device in devices], True))
        columns.append(Column("staged calls", [f"{device['calls']:,}" for device in devices], True))
    picture = drawn_table("Devices", summary, columns)
    rows = [_device_row(device, state["ops_counted"]) for device in devices] + [
        _copy_row(copy) for copy in state["copies"]
    ]
    columns_of_table = ("device", "bytes", "how many", "line")
    wrapped = frozenset({"bytes", "line"})
    numbers = frozenset({"how many"})
    unlisted = [f"{counted(state['unlisted'], 'more copy', 'more copies')} not listed."] if state["unlisted"] else []
    table = Table(columns_of_table, rows, numbers, sentences=[*unlisted, state["note"]], wrapped=wrapped)
    return figure("Devices", summary, picture, table)


def live_figure(answer: Any) -> Figure:
    """The answer of `limelight.explain.live_tensors`: the largest buffers, who holds each, and its line."""
    records = answer.records
    summary = f"{counted(answer.count, 'buffer')}, {bytes_text(answer.nbytes)}"
    columns = [
        Column("bytes", [bytes_text(one.nbytes) for one in records], True, shares([one.nbytes for one in records])),
        Column("device", [one.device for one in records]),
        Column("tensor", [one.spec for one in records]),
        Column("held by", [", ".join(one.names) or "nothing with a name" for one in records], widest=60),
        Column("line", [line_text(line_state(one.line)) for one in records]),
        Column("code", ["" if one.line is None else one.line.text for one in records], widest=36),
    ]
    note = "Lines are known of what was made while a view or another listener was open."
    return table_figure("Live tensors", summary, columns, answer.count, note)


def memory_figure(devices: Sequence[Any], exact: bool) -> Figure:
    """`limelight.memory_info` of each device; `exact` where peaks were counted at every moment."""
    live, peaks = [one.current for one in devices], [one.peak for one in devices]
    summary = f"{bytes_text(sum(live))} alive on {counted(len(devices), 'device')}"
    columns = [
        Column("device", [one.device for one in devices]),
        Column("alive", [bytes_text(n) for n in live], True, shares(live)),
        Column("peak", [bytes_text(n) for n in peaks], True, shares(peaks)),
        Column("tensors and variables", [f"{one.tensors:,}" for one in devices], True),
    ]
    note = (
        "Peaks are of every moment since %devices --watch."
        if exact
        else "A peak is the most that a question, a watch or a view has found: %devices --watch counts every moment."
    )
    return table_figure("Memory", summary, columns, len(devices), note)


def peak_text(device: State) -> str:
    """The peak, as at least what it says where not all sizes were known."""
    return f"{'' if device['exact'] else '≥ '}{bytes_text(device['peak'])}"


def _device_row(device: State, ops_counted: bool) -> list[str]:
    ran = f"{counted(device['ops'], 'op')}, {counted(device['calls'], 'call')}" if ops_counted else "ops not counted"
    memory = f"live {bytes_text(device['live'])}, peak {peak_text(device)}"
    return [device["name"], memory, ran, ""]


def _copy_row(copy: State) -> list[str]:
    what = f"copied {copy['what']}, {bytes_text(copy['nbytes'])} in {seconds_text(copy['seconds'])}: {copy['cause']}"
    what += f"; {copy['fix']}" if copy["fix"] else ""
    return [f"{copy['from']} → {copy['to']}", what, f"{copy['count']:,}", line_text(copy["line"])]
