"""What running a staged cell gives: a record that displays itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import limelight_widgets as views
from limelight.user_code.source_line import Source
from limelight_kernel.report.cell_state import StateRemark, state_remarks
from limelight_kernel.report.gradients import Gradients
from limelight_kernel.report.line_marks import TRACE_TIME, WRITTEN_BACK, Line, annotate
from limelight_kernel.report.listing import (
    NONE,
    SENTENCES,
    TABLES,
    folded,
    html_legend,
    html_listing,
    text_listing,
    wrapped,
)
from limelight_kernel.report.node_history import plans
from limelight_kernel.report.side_by_side import widget_bundle
from limelight_kernel.report.surprises import Surprise, surprises
from limelight_kernel.report.timing import Times
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.figures.static_forms import Figure, html_table, marked
from limelight_widgets.folds.node_fates import group_texts
from limelight_widgets.format import counted

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
        parts: what is shown of each line besides the line itself, rather than folded away: "trace", "opt", "plan".
        times: what the cell costs, with `--time`.
        gradients: those of the result, with `--grad`.
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
    parts: tuple[str, ...] = field(default=(), repr=False)
    times: Times | None = field(default=None, repr=False)
    gradients: Gradients | None = field(default=None, repr=False)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The cell line by line, each with its mark."""
        optimised = self.entry.function.optimised
        lines = annotate(self.staged.cell, self.entry.graph, optimised.graph, optimised.records)
        filename = self.staged.cell.filename
        code = plans(optimised.graph, filename, self.entry.tier) if "plan" in self.parts else {}
        said: dict[int, tuple[str, ...]] = {}
        remarks = state_remarks(self.staged, self.entry)
        written = {one.line for one in remarks if one.is_written}
        told: list[Surprise | StateRemark] = [*self.surprises, *remarks]
        for one in told:
            said[one.line] = (*said.get(one.line, ()), str(one))
        return tuple(
            replace(
                line,
                mark=WRITTEN_BACK if line.mark == TRACE_TIME and line.number in written else line.mark,
                remarks=said.get(line.number, ()),
                plan=tuple(code.get(line.number, ())),
            )
            for line in lines
        )

    @cached_property
    def surprises(self) -> tuple[Surprise, ...]:
        """What this trace does while tracing alone, and what it has baked in that has changed since."""
        return surprises(self.staged, self.entry)

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
            "groups": group_texts(self.entry.optimised),
            "times": None if self.times is None else self.times.to_dict(),
            "gradients": None if self.gradients is None else self.gradients.to_dict(),
        }

    @cached_property
    def gradient_graph(self) -> views.GraphView | None:
        """The view of the graph that computes the gradients, where there is one."""
        function = None if self.gradients is None else self.gradients.function
        return None if function is None else views.graph(function)

    def static(self) -> Figure:
        """The result as it is now, without a widget: a picture, tables and text."""
        figures = [self.graph.static()] + ([self.gradient_graph.static()] if self.gradient_graph is not None else [])
        listing = text_listing(self.lines, parts=self.parts)
        groups = "\n".join(group_texts(self.entry.optimised)) if "trace" in self.parts else ""
        elsewhere = "\n".join(wrapped(one) for one in self._elsewhere())
        more = [part.text() for part in (self.times, self.gradients) if part is not None]
        parts = [wrapped(self.headline), listing, elsewhere, groups, *more, *(figure.text for figure in figures)]
        text = "\n\n".join(part for part in parts if part)
        return Figure(text, self._html([figure.html for figure in figures]), figures[0].svg)

    def _html(self, figures: Sequence[str]) -> str:
        """As much as fits: everything, the pictures without their tables, the lines without their stories."""
        pictures = [html.partition("<details>")[0] for html in figures]
        for head in self._heads:
            for shown in (figures, pictures):
                html = "".join([head, *shown])
                if len(html) < MOST_BYTES:
                    return html
        return f"{self._head_that_fits()}<p>Its graph is large: <code>%graph {self.name}</code> draws it.</p>"

    def _head_that_fits(self) -> str:
        return next((head for head in self._heads if len(head) < MOST_BYTES), self._heads[-1])

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        """All but the pictures, from the longest form to the shortest."""
        return tuple(map(self._head, (TABLES, SENTENCES, NONE)))

    def _head(self, stories: str) -> str:
        label = Source(self.staged.cell.filename, 0, "").label
        groups = group_texts(self.entry.optimised)
        listed = "".join(f"<li>{escape(text)}</li>" for text in groups)
        count = len(getattr(self.entry.optimised, "groups", ()))  # of which the first few are listed
        fused = folded(f"{counted(count, 'group')} of fused ops", listed)
        parts = [f"<p>{marked(self.headline)}</p>", html_listing(self.lines, label, self.parts, stories)]
        parts += [f"<p>{marked(one)}</p>" for one in self._elsewhere()]
        if self.parts not in ((), ("source",)) and not stories:
            parts.append(
                "<p>What stands under the lines would take too much room here: <code>--text</code> shows it.</p>"
            )
        parts += [html_legend(self.lines), fused if groups else ""]
        if self.times is not None:
            parts.append(html_table(self.times.table()))
        if self.gradients is not None:
            parts.append(f"<p>{marked(self.gradients.sentence)}</p>")
            parts += [html_table(self.gradients.table())] if self.gradients.found else []
            parts += [f"<p>{marked(self.gradients.hunt)}</p>"] if self.gradients.hunt else []
        return "".join(parts)

    def _elsewhere(self) -> list[str]:
        """Surprises on lines that are not the cell's."""
        return [str(one) for one in self.surprises if not one.line]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        graphs = [self.graph] + ([self.gradient_graph] if self.gradient_graph is not None else [])
        shown = widget_bundle(self._head_that_fits(), graphs)  # first: the page begins while static forms are drawn
        return {**self.static().bundle(), **shown}

    def __str__(self) -> str:
        return self.static().text
