"""How saved values and live objects were matched, as records and as a tree to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

STATES: Final = ("matched", "waiting", "unused", "mismatched", "new")
_MEANING: Final = {
    "matched": "has the saved value",
    "waiting": "its object is not there yet, and gets the value when it is",
    "unused": "no object of the program is for it",
    "mismatched": "does not fit",
    "new": "in the program and not in the file: it keeps its own value",
}


@dataclass(frozen=True, slots=True)
class MatchRecord:
    """One saved value, or one object that has none.

    `path` is where it was saved, empty if it was not; `object` where it is in the program, empty if it is not there.
    `before` and `after` are its dtype and shape before it was restored and then, empty for what is no array; of what is
    not restored, `after` is what was saved. `state` is matched, waiting, unused, mismatched or new, and `why` says so
    in words.
    """

    path: str
    object: str
    kind: str
    before: str
    after: str
    state: str
    why: str = ""


@dataclass(frozen=True)
class MatchTree:
    """All records of one restore. Its text is a tree; `records` are for programs."""

    source: str
    records: tuple[MatchRecord, ...]

    def of(self, *states: str) -> list[MatchRecord]:
        """The records that are in one of `states`."""
        return [record for record in self.records if record.state in states]

    @property
    def counts(self) -> dict[str, int]:
        """How many records are in each state that occurs."""
        counted = Counter(record.state for record in self.records)
        return {state: counted[state] for state in STATES if counted[state]}

    @property
    def headline(self) -> str:
        """The counts as a sentence."""
        said = ", ".join(f"{count} {state}" for state, count in self.counts.items())
        return f"{self.source}: {said or 'nothing was saved'}"

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"source": self.source, "counts": self.counts, "records": [asdict(record) for record in self.records]}

    def __str__(self) -> str:
        lines = [self.headline, *tree_lines((r.path or r.object, _said(r)) for r in self.records)]
        lines += [f"({state}: {_MEANING[state]})" for state in self.counts if state != "matched"]
        return "\n".join(lines)

    __repr__ = __str__


def _said(record: MatchRecord) -> str:
    changed = record.before and record.after and record.before != record.after
    spec = f"{record.before} -> {record.after}" if changed else record.after or record.before or record.kind
    place = f" at {record.object}" if record.path and record.object and record.object != record.path else ""
    return f"{spec:<16} {record.state}{place}{': ' + record.why if record.why else ''}"


def tree_lines(rows: Iterable[tuple[str, str]]) -> list[str]:
    r"""Paths as a tree, each with what is said of it.

    >>> print(*tree_lines([("a/b/x", "one"), ("a/b/y", "two"), ("c", "three")]), sep="\n")
    a/b
      x  one
      y  two
    c  three
    """
    rows = list(rows)
    parents = [path.rpartition("/")[0] for path, _ in rows]
    widths: dict[str, int] = {}
    for (path, _), parent in zip(rows, parents, strict=True):
        widths[parent] = max(widths.get(parent, 0), len(path) - len(parent) - bool(parent))
    lines: list[str] = []
    last = ""
    for (path, said), parent in zip(rows, parents, strict=True):
        if parent != last and parent:
            lines.append(parent)
        last = parent
        name = path[len(parent) + 1 :] if parent else path
        lines.append(f"{'  ' if parent else ''}{name:<{min(widths[parent], 40)}}  {said}")
    return lines
