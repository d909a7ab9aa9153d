"""What running a staged cell gives: a record that displays itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

import limelight_widgets as views
from limelight_kernel.annotate import Line, annotate
from limelight_kernel.beside import widget_bundle
from limelight_kernel.listing import html_legend, html_listing, text_listing, wrapped
from limelight_kernel.staged import StagedCell

MOST_BYTES = 50_000  # of HTML: a notebook keeps every output


@dataclass(frozen=True)
class StageResult:
    """One run of a staged cell.

    Args:
        name: of the staged cell.
        headline: what happened, in one sentence: traced, traced again and why, or a cache hit.
        hit: whether the cache had the trace.
        ran: false after `--no-run`.
        outputs: the names that the cell assigned, with their values; empty after `--no-run`.
        result: the value of the last expression.
        seconds: wall time, of tracing (nothing on a hit) and running together.
        entry: the trace, an entry of the cell's trace cache.
        staged: the staged cell.
    """

    name: str
    headline: str
    hit: bool
    ran: bool
    outputs: dict[str, Any]
    result: Any
    seconds: float
    entry: Any = field(repr=False)
    staged: StagedCell = field(repr=False)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The cell line by line, each with its mark."""
        return annotate(self.staged.cell, self.entry.graph, self.entry.optimised)

    @cached_property
    def graph(self) -> views.GraphView:
        """The view of the trace's graph."""
        entries = list(self.staged.trace_cache)
        if self.entry in entries:
            return views.graph(self.staged, trace=entries.index(self.entry))
        return views.graph(self.entry)

    def explain(self) -> str:
        """What happened, and why."""
        return self.headline

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tensors, ready for JSON."""
        return {
            "name": self.name,
            "headline": self.headline,
            "hit": self.hit,
            "ran": self.ran,
            "outputs": list(self.outputs),
            "seconds": self.seconds,
            "trace": self.entry.index + 1,
            "lines": [line.to_dict() for line in self.lines],
        }

    def static(self) -> StaticResult:
        """The result as it is now, without a widget: a picture, tables and text."""
        figure = self.graph.static()
        text = "\n\n".join([wrapped(self.headline), text_listing(self.lines), figure.text])
        head = self._head()
        for graph in (figure.html, figure.html.partition("<details>")[0]):  # with its table, else the picture alone
            if len(head) + len(graph) < MOST_BYTES:
                return StaticResult(text, head + graph)
        return StaticResult(text, f"{head}<p>Its graph is large: <code>%graph {self.name}</code> draws it.</p>")

    def _head(self) -> str:
        return f"<p>{escape(self.headline)}</p>{html_listing(self.lines)}{html_legend(self.lines)}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {**self.static().bundle(), **widget_bundle(self._head(), self.graph)}

    def __str__(self) -> str:
        return self.static().text


@dataclass(frozen=True)
class StaticResult:
    """A result as it was, in forms that need no widget."""

    text: str
    html: str

    def bundle(self) -> dict[str, str]:
        """The forms by MIME type."""
        return {"text/plain": self.text, "text/html": self.html}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()

    def __str__(self) -> str:
        return self.text


class PlainText:
    """A view as plain text alone; `view` is what it shows."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def __repr__(self) -> str:
        return str(self.view)
