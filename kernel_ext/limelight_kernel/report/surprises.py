"""What a trace of a cell has that its reader may not expect.

These are side effects of tracing alone, values baked in, gradients that are None, and functions that cannot be read.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from limelight import explain
from limelight.explain.tracing.side_effects import not_known
from limelight.user_code import source_line
from limelight_kernel.explain.retrace_fixes import worded_for_cell
from limelight_kernel.staged.staged_cell import StagedCell

GLYPH = "\N{WARNING SIGN}"


@dataclass(frozen=True, slots=True)
class Surprise:
    """One of them: the `line` of the cell (0 for a line elsewhere), what `kind` it is, and a `sentence` with the fix.

    `stale`: a value that was baked in and has changed since.
    """

    line: int
    kind: str
    sentence: str
    stale: bool = False

    def __str__(self) -> str:
        return f"{GLYPH} {self.kind}: {self.sentence}"


class StrictError(RuntimeError):
    """A strict cell would do something while it is traced alone; shown without a traceback.

    See docs/errors/StrictError.md.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"StrictError: {self}"]


def surprises(staged: StagedCell, entry: Any) -> tuple[Surprise, ...]:
    """The surprises of one trace, in the order of lines; of values baked in only those that have changed since."""
    missing = [Surprise(one.line, "gradient", one.sentence) for one in staged.unconnected(entry)]
    worth_saying = [one for one in _all(staged, entry) if one.kind != "baked in" or one.stale]
    return tuple(sorted([*missing, *worth_saying, *_unknown(staged)], key=_place))


def check_strict(staged: StagedCell, entry: Any, ran: Collection[int] | None = None) -> None:
    """Raises StrictError for side effects of tracing, and for attributes and items that became constants.

    `ran` are the lines of the cell that ran while it was traced, None where nobody knows: those of others do nothing.
    Reading the cell finds what any of its lines may do, and only what has run is refused; so nothing is refused for
    functions of which it is not known what they do.
    """
    forbidden = [one for one in _all(staged, entry) if ran is None or not one.line or one.line in ran]
    if forbidden:
        lines = [f"- line {one.line}: {one.sentence}" if one.line else f"- {one.sentence}" for one in forbidden]
        said = (
            "what --strict forbids: Python would do this once for each trace, and calls that find the trace would not"
        )
        raise StrictError("\n".join([f"`{staged.name}` does {said}.", *lines]))


def _all(staged: StagedCell, entry: Any) -> Iterable[Surprise]:
    seen = [
        Surprise(_line(staged, one.line), one.kind, _placed(str(one), staged, one.line))
        for one in staged.effects().records
        if one.kind != "global write" or not _is_output(staged, entry, one.what)
    ]
    # What a cell reads by name is an input of it, and so never out of date; attributes and items of objects are.
    seen += [
        Surprise(_line(staged, one.line), "baked in", _placed(_baked(one), staged, one.line), one.changed)
        for one in explain.baked(staged).records
        if one.trace == entry.index + 1 and one.where in ("attribute", "item") and one.kind == "constant"
    ]
    return sorted(seen, key=_place)


def _unknown(staged: StagedCell) -> list[Surprise]:
    """The functions of which nobody knows what they do, each at the first line of the cell that names it."""
    found = staged.effects().unknown
    lines: dict[str, int] = {}
    for node in ast.walk(staged.cell.tree) if found else ():
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        line = getattr(node, "lineno", 0)
        lines[name] = min(line, lines.get(name, line))
    return [
        Surprise(_line(staged, one) or lines.get(one.function, 0), "not known", sentence)
        for one, sentence in zip(found, not_known("does", found), strict=True)
    ]


def _place(one: Surprise) -> tuple[bool, int]:
    return one.line == 0, one.line


def _is_output(staged: StagedCell, entry: Any, written: str) -> bool:
    """Whether what `global` sets, "q = ...", is a tensor that the graph computes, and so anew at each call."""
    name = written.partition(" ")[0]
    return any(output.partition("[")[0] == name for output in staged.output_names(entry))


def _baked(value: Any) -> str:
    """A value that was baked in, with what to write instead: `--strict` refuses it before it is out of date."""
    fix = worded_for_cell(value.fix)
    if value.name.startswith(("self.", "cls.")):  # no name of the notebook; the cell may hand it on
        _, variable, rest = value.fix.partition("make it a variable, ")
        argument = value.name.rpartition(".")[2]
        fix = variable + rest if variable else f"give the method an argument, `{argument}`, that the cell hands it"
    if value.changed:
        return str(value).replace(value.fix, fix)
    said = f"`{value.name}` ({value.where}) is {value.then}, and a constant of the trace{source_line.at(value.line)}"
    return f"{said}. Fix: {fix}"


def _line(staged: StagedCell, where: source_line.Source) -> int:
    return where.line if where.file == staged.cell.filename else 0


def _placed(sentence: str, staged: StagedCell, where: source_line.Source) -> str:
    """The sentence, without its position where it stands at that line anyway."""
    return sentence.replace(source_line.at(where), "") if _line(staged, where) else sentence
