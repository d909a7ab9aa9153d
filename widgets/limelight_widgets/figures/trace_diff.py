"""Two traces of a function side by side: where their signatures differ, and which nodes of their graphs do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from limelight.explain.retracing.key_diff import differing, show
from limelight.explain.story import Contrast, Story
from limelight_widgets.figures.static_forms import Table, html_table, marked, text_table
from limelight_widgets.folds.graph_json import attribute_text
from limelight_widgets.format import counted, joined_arrows

MOST_NODES = 4_000  # of a graph that is compared node by node
ROWS = 200
ABSENT = "–"


@dataclass(frozen=True)
class Differences:
    """What distinguishes two entries of a trace cache, `numbers` counted from 1.

    `arguments` are rows of path, first, second, detail; `nodes` rows of position, op, first, second: "–" stands for an
    op that a trace does not have.
    """

    function: str
    numbers: tuple[int, int]
    arguments: tuple[tuple[str, str, str, str], ...]
    nodes: tuple[tuple[str, str, str, str], ...]
    sizes: tuple[int, int]
    compared: bool = True

    @property
    def sentence(self) -> str:
        """What differs, in a sentence."""
        first, second = self.numbers
        parts = counted(len(self.arguments), "part")
        ops = counted(len(self.nodes), "op")
        graphs = f"their graphs ({self.sizes[0]:,} and {self.sizes[1]:,} ops, as traced)"
        about = f"{graphs} in {ops}" if self.compared else f"{graphs} are too large to compare op by op"
        if not self.arguments and not self.nodes and self.compared:
            return f"{self.function}: traces #{first} and #{second} have the same signature and the same graph."
        return f"{self.function}: the signatures of traces #{first} and #{second} differ in {parts}, {about}."

    def tables(self) -> list[tuple[str, Table]]:
        """The tables that have rows, each with a heading."""
        first, second = (f"trace #{number}" for number in self.numbers)
        left_out = max(len(self.nodes) - ROWS, 0)
        tables = [
            ("Signatures", Table(("argument", first, second, "what"), self.arguments)),
            ("Graphs", Table(("line", "op", first, second), self.nodes[:ROWS], hidden=left_out, unit="op")),
        ]
        return [(heading, table) for heading, table in tables if table.rows]

    @property
    def stories(self) -> tuple[Story, ...]:
        """One, of both traces: the arguments that differ, then the ops."""
        rows = [Contrast(f"argument `{path}`", *row) for path, *row in self.arguments]
        rows += [Contrast(f"op {op}", before, after, line) for line, op, before, after in self.nodes[:ROWS]]
        name, _, said = self.sentence.partition(": ")
        title, capital = f"`{name}`: two traces compared", said[:1].upper() + said[1:]
        unlisted = max(len(self.nodes) - ROWS, 0)
        return (Story("difference", title, said=(capital,), contrasts=tuple(rows), unlisted=unlisted),)

    def to_dict(self) -> dict[str, Any]:
        rows = {"arguments": [list(row) for row in self.arguments], "nodes": [list(row) for row in self.nodes]}
        return {"function": self.function, "traces": list(self.numbers), **rows}

    def __str__(self) -> str:
        return "\n\n".join([self.sentence, *(f"{heading}\n{text_table(table)}" for heading, table in self.tables())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        arguments = tuple((path, one, other, joined_arrows(what)) for path, one, other, what in self.arguments)
        told = replace(self, arguments=arguments)
        parts = [f"<h4>{heading}</h4>{html_table(table)}" for heading, table in told.tables()]
        return f"<p>{marked(self.sentence)}</p>{''.join(parts)}"


def differences(function: Any, first: int, second: int) -> Differences:
    """What distinguishes the traces at the positions `first` and `second` of a function's cache."""
    one, two = function.trace_cache[first], function.trace_cache[second]
    changes = differing(one.key, two.key, function._signature, one.paths)
    arguments = tuple((change.path, show(change.before), show(change.after), change.detail) for change in changes)
    sizes = (len(one.graph.nodes), len(two.graph.nodes))
    compared = max(sizes) <= MOST_NODES
    nodes = tuple(_nodes(one.graph, two.graph)) if compared else ()
    return Differences(function.name, (one.index + 1, two.index + 1), arguments, nodes, sizes, compared)


def _nodes(one: Any, two: Any) -> Iterator[tuple[str, str, str, str]]:
    """The nodes that differ: matched by op and line first, so that a matched pair may differ in types or parameters."""
    matcher = SequenceMatcher(None, [_place(n) for n in one.nodes], [_place(n) for n in two.nodes], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        before, after = one.nodes[a:b], two.nodes[c:d]
        if tag == "equal":
            for old, new in zip(before, after, strict=True):
                if _text(old) != _text(new):
                    yield *_place(old), _text(old), _text(new)
        else:
            yield from ((*_place(old), _text(old), ABSENT) for old in before)
            yield from ((*_place(new), ABSENT, _text(new)) for new in after)


def _place(node: Any) -> tuple[str, str]:
    return (f"{node.source[0]}:{node.source[1]}" if node.source else "", str(node.op))


def _text(node: Any) -> str:
    """Types and parameters of a node."""
    functions = node.functions
    attrs = [f"{name}={attribute_text(value)}" for name, value in node.attrs.items() if value not in functions]
    return " ".join([", ".join(str(value.spec) for value in node.outputs), *attrs]).strip()
