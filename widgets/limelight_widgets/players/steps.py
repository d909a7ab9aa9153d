"""A recording of steps as a page: a player that needs no kernel, with a table where scripts do not run.

A notebook that is trusted, and a page that `nbconvert` makes, run the inline script; one that is not trusted keeps the
table. The JSON is packed: a thousand steps take less than 300 kB.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from limelight.explain.stepping.recording import KINDS, Excerpt, Recording, Step, excerpts
from limelight.explain.stepping.recording import steps as recorded
from limelight_widgets.figures import files
from limelight_widgets.figures.static_forms import TEXT_WIDTH, Figure, Table, html_table

_STATIC: Final = Path(__file__).parents[1] / "static"
_MOST_ROWS: Final = 40


class StepsPlayer:
    """A recording that is displayed as a player; `recording` is what it shows. `save` writes it as a page.

    `stops` are the numbers of the steps at which it stops; it opens at the first.
    """

    def __init__(self, recording: Recording, stops: Sequence[int] = ()) -> None:
        self.recording = recording
        self.stops = tuple(stops)

    def __repr__(self) -> str:
        return _text(self.recording, self.stops)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": player_html(self.recording, self.stops)}

    def to_dict(self) -> dict[str, Any]:
        """The recording, ready for JSON: the steps with their names."""
        steps = [files.json_ready(one) for one in self.recording.steps]
        return {"name": self.recording.name, "cut": self.recording.is_cut, "stops": list(self.stops), "steps": steps}

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the player as an HTML page of its own, which needs neither kernel nor network; or `.json`, `.txt`.

        Args:
            path: the file's name; a file that is there is replaced.

        Returns:
            what was written, in a sentence.

        Raises:
            ArgumentError: the name ends otherwise.
            OSError: the file cannot be written.
        """
        if Path(path).suffix.lower() != ".html":
            return files.save(path, self.to_dict(), Figure(repr(self), "", ""))
        title = escape(f"{self.recording.name}, step by step")
        player = player_html(self.recording, self.stops)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8">'
            f'<meta name="color-scheme" content="light dark"><title>{title}</title>{player}'
        )
        return files.replaced(path, f"{page}</html>\n".encode())


def packed(recording: Recording, stops: Sequence[int] = ()) -> dict[str, Any]:
    """The recording as JSON: each step an array, its line an index into `sources` and a number."""
    sources = excerpts(recording)
    number = {file: i for i, file in enumerate(sources)}
    steps = [_step(one, number, sources) for one in recording.steps]
    head = {"name": recording.name, "cut": recording.is_cut, "stops": list(stops)}
    head["counts"] = {kind: recording.counted(kind) for kind, _ in recording.totals}
    return {**head, "sources": list(sources.values()), "steps": steps}


def _step(one: Step, number: Mapping[str, int], sources: Mapping[str, Excerpt]) -> list[Any]:
    where: tuple[int | None, int] = (None, 0)
    text: str | None = one.text
    if one.line is not None:
        where = (number[one.line.file], one.line.line)
        _, first, lines = sources[one.line.file]
        if one.line.line - first < len(lines) and lines[one.line.line - first].strip() == text:
            text = None  # the page has the source
    value = None if one.value is None else [_rounded(x) for x in one.value]
    kind = (*KINDS, "error").index(one.kind)
    return [kind, *where, text, list(map(list, one.sees)), list(one.said), value, one.depth]


def _rounded(x: Any) -> Any:
    return float(f"{x:.5g}") if isinstance(x, float) else list(x) if isinstance(x, tuple) else x


def player_html(recording: Recording, stops: Sequence[int] = ()) -> str:
    """The player as a piece of a page."""
    name = f"ll-steps-{uuid.uuid4().hex}"
    data = json.dumps(packed(recording, stops), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    style, script = [(_STATIC / f"player_steps.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")]
    return (
        f'<div class="ll-steps" id="{name}"><div class="fallback">{_table(recording)}</div>'
        f'<script type="application/json">{data}</script></div><style>{style}</style>'
        f'<script>{script};limelightSteps(document.getElementById("{name}"))</script>'
    )


def _rows(recording: Recording) -> Table:
    rows = []
    for i, one in enumerate(recording.steps[:_MOST_ROWS]):
        where = f"{one.line.label}:{one.line.line}" if one.line is not None else ""
        said = [f"{name}: {text}" for name, text in one.sees] + list(one.said)
        said += [str(one.value)] if one.value is not None else []
        rows.append((str(i + 1), one.kind, where, one.text, "; ".join(said)))
    left = len(recording.steps) - len(rows)
    note = f"{left:,} more steps are in the player" if left else ""
    return Table(("#", "kind", "line", "step", "what is known"), rows, frozenset(["#"]), note)


def _table(recording: Recording) -> str:
    heading = escape(f"{recording.name}, step by step")
    return (
        f"<details><summary>{heading}: {len(recording.steps)} steps</summary>{html_table(_rows(recording))}</details>"
    )


def _text(recording: Recording, stops: Sequence[int]) -> str:
    lines = str(recording).splitlines()
    marks = [f"stops at step {number + 1}: {recording.steps[number].text}" for number in stops[:_MOST_ROWS]]
    lines[1:1] = marks
    shown = [line if len(line) <= TEXT_WIDTH else f"{line[: TEXT_WIDTH - 1]}…" for line in lines[:200]]
    return "\n".join([*shown, *([f"… {len(lines) - 200} more lines"] if len(lines) > 200 else [])])


def steps(
    F: Recording | Callable[..., Any],
    *args: Any,
    gradient_of: Any = None,
    most: int = 1000,
    stop_at: str = "",
    **kwargs: Any,
) -> StepsPlayer:
    """A player of the call `F(*args, **kwargs)`, or of a recording that `ll.explain.steps` has made.

    Display it, or `save` it as a page. It needs no kernel: it is an inline script with the recording beside it, and a
    table where scripts do not run.

    Args:
        F: a staged function, one that can be staged, or a recording; then nothing else is given.
        *args: the arguments of the call.
        gradient_of: see `ll.explain.steps`.
        most: see `ll.explain.steps`.
        stop_at: where the player stops, as "line:7,op:matmul,nan,shape,copy,retrace,error"; see `Recording.stops`.
        **kwargs: arguments by name.

    Raises:
        ArgumentError: `F` is neither, or `stop_at` has another condition.

    >>> import limelight as ll
    >>> player = ll.widgets.steps(lambda x: x * 2.0, ll.constant(3.0))
    >>> len(player.recording.of("run"))
    1
    """
    recording = F if isinstance(F, Recording) else recorded(F, *args, gradient_of=gradient_of, most=most, **kwargs)
    return StepsPlayer(recording, recording.stops(stop_at))
