"""A trace cache without a widget."""

from __future__ import annotations

from dataclasses import replace

from limelight_widgets.figures.static_forms import Figure, figure
from limelight_widgets.figures.table_picture import Column, drawn_table, shares, table_of
from limelight_widgets.folds.fold import State
from limelight_widgets.format import bytes_text, counted, seconds_text


def cache_figure(state: State) -> Figure:
    """The static forms of a cache fold's state."""
    functions = state["functions"]
    names = ", ".join(dict.fromkeys(function["name"] for function in functions[:3])) or "no function"
    heading = f"Trace cache of {names}" if len(functions) <= 3 else f"Trace caches of {len(functions)} functions"
    if state["empty"]:
        return figure(heading if functions else "Trace cache", state["empty"], None, None)
    entries = [(function, entry) for function in functions for entry in function["entries"]]
    hidden = sum(function["hidden"] for function in functions)
    summary = f"{counted(len(entries) + hidden, 'trace')}, {counted(sum(f['hits'] for f in functions), 'hit')}"
    several = len(functions) > 1
    called = {f["id"]: f"{f['name']}{state['places'].get(str(f['id']), '')} " if several else "" for f in functions}
    numbers = [f"{called[f['id']]}#{e['index'] + 1}" for f, e in entries]
    columns = [
        Column("trace", numbers),
        Column("arguments", [e["arguments"] for _, e in entries], wraps=True),
        Column("hits", [f"{e['hits']:,}" for _, e in entries], True, shares([e["hits"] for _, e in entries])),
        Column("traced in", [seconds_text(e["seconds"]) for _, e in entries], True),
        Column("size", [_size(e["nbytes"]) for _, e in entries], True),
        Column("device", [e["device"] for _, e in entries]),
        Column("runs on", [e["tier"] for _, e in entries]),
    ]
    newest = [i for i, (f, e) in enumerate(entries) if [f["id"], e["index"]] == state["newest"]]
    reasons = [e["reason"] for _, e in entries]
    picture = drawn_table(heading, summary, columns, reasons, newest[0] if newest else -1, hidden)
    sentences = [f"{number}: {reason}" for number, reason in zip(numbers, reasons, strict=True) if reason]
    table = table_of([*columns, Column("why it was traced", reasons)], hidden)
    in_text = replace(table_of(columns, hidden), sentences=sentences)
    return figure(heading, summary, picture, table, in_text)


def _size(nbytes: int | None) -> str:
    return "–" if nbytes is None else bytes_text(nbytes)
