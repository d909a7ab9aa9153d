"""What became of each line of a staged cell.

A line's mark follows from the graph alone: which nodes carry that line in their stack, whether their values reach an
output or an effect, whether they depend on anything but literals, and whether they are still there after optimisation.
What happened to each node on the way is told by the records of the passes.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from limelight_kernel.story import NodeStory, line_of, shared_line, stories
from limelight_widgets.folds.fates import Fate, fates

if TYPE_CHECKING:
    from limelight.graph import Graph, Node
    from limelight_kernel.cell import Cell

STAGED, FUSED, CONSTANT, DEAD, MERGED = "staged", "fused", "constant", "dead", "merged"
TRACE_TIME = "trace-time only"

GLYPHS = {STAGED: "●", FUSED: "◉", CONSTANT: "◆", DEAD: "✕", MERGED: "◇", TRACE_TIME: "○", "": " "}
MEANING = {
    STAGED: "runs in the graph on every call",
    FUSED: "runs in the graph, evaluated in one go with the other ops of its group",
    CONSTANT: "computed once, its value is part of the graph",
    DEAD: "nothing uses what it computes, so it was dropped",
    MERGED: "another line computes the same, or it was simplified away",
    TRACE_TIME: "Python ran it while tracing, and does not on a cache hit",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a cell: its number, its text, its mark ("" for blank lines, comments and continuations).

    `nodes` counts the ops of the traced graph, each at the innermost of the cell's lines that made it. So all lines
    together have the graph's ops, but for those that no line of the cell made; ops of called functions do not count.
    `note` says more about the mark in a word or two, "group 1" or "line 3"; `remarks` are sentences about what may
    surprise; `story` tells of each of these ops.
    """

    number: int
    text: str
    mark: str
    nodes: int
    note: str = ""
    remarks: tuple[str, ...] = ()
    story: tuple[NodeStory, ...] = field(default=(), repr=False, compare=False)

    @property
    def words(self) -> str:
        """The mark with its note."""
        return f"{self.mark}, {self.note}" if self.note else self.mark

    def to_dict(self) -> dict[str, Any]:
        said = {"number": self.number, "text": self.text, "mark": self.mark, "note": self.note, "nodes": self.nodes}
        return {**said, "remarks": list(self.remarks), "story": [told.to_dict() for told in self.story]}


def annotate(
    cell: Cell, traced: Graph | None, optimised: Graph | None, records: Sequence[Any] = ()
) -> tuple[Line, ...]:
    """The lines of `cell`, each with its mark; without a graph every statement is trace-time only."""
    made = _by_line(traced, cell.filename)
    kept = _by_line(optimised, cell.filename)
    live = _live(traced) if traced is not None else set()
    fixed = _constant(traced) if traced is not None else set()
    known = fates(traced, optimised, records) if traced is not None and optimised is not None else {}
    marks = {line: _mark(nodes, kept.get(line, []), live, fixed, known) for line, nodes in made.items()}
    heads = {line for line, nodes in made.items() if any(node.op.higher_order for node in nodes)}
    for first, last, within in _statements(cell.tree.body, heads):
        if not any(line in marks for line in range(first, last + 1)):
            marks[first] = (STAGED if within else TRACE_TIME, "")
    own = _innermost(traced, cell.filename)
    told = stories(traced, optimised, known, cell.filename)
    return tuple(
        Line(number, text, *_counted(marks.get(number, ("", "")), own[number]), story=tuple(told.get(number, ())))
        for number, text in enumerate(cell.lines, start=cell.header + 1)
    )


def _counted(mark: tuple[str, str], nodes: int) -> tuple[str, int, str]:
    return mark[0], nodes, mark[1]


def _innermost(graph: Graph | None, filename: str) -> Counter[int]:
    """How many nodes of `graph` itself each line made, as the innermost of the cell's lines that did."""
    lines = (line_of(node, filename) for node in ([] if graph is None else graph.nodes))
    return Counter(line for line in lines if line)


def _mark(
    made: list[Node], kept: list[Node], live: set[Node], fixed: set[Node], known: Mapping[Node, Fate]
) -> tuple[str, str]:
    """The mark of a line, and the note to it."""
    ops = [node for node in made if _is_op(node)]
    if all(node in fixed for node in ops):
        return CONSTANT, ""
    if any(_is_op(node) for node in kept):
        return _staged(ops, known)
    if any(node in live for node in ops):
        line = shared_line([known[node] for node in ops if node in known])
        return MERGED, f"line {line}" if line else ""
    return DEAD, ""


def _staged(ops: Sequence[Node], known: Mapping[Node, Fate]) -> tuple[str, str]:
    """Fused where every op that is left of a line belongs to a group."""
    left = [known[node] for node in ops if node in known and any(map(_is_op, known[node].after))]
    if not left or not all(fate.groups for fate in left):
        return STAGED, ""
    groups = sorted({number for fate in left for number in fate.groups})
    return FUSED, f"group {groups[0]}" if len(groups) == 1 else f"{len(groups)} groups"


def _by_line(graph: Graph | None, filename: str) -> dict[int, list[Node]]:
    """Nodes under every line of the cell in their stack, so that a line that calls a helper has the helper's."""
    found: dict[int, list[Node]] = {}
    for node in _nodes(graph):
        for line in {source.line for source in node.stack if source.file == filename}:
            found.setdefault(line, []).append(node)
    return found


def _nodes(graph: Graph | None) -> Iterator[Node]:
    """The nodes of a graph and of the functions that it calls, each graph once."""
    waiting = [] if graph is None else [graph]
    seen: set[int] = set()
    while waiting:
        graph = waiting.pop()
        if id(graph) not in seen:
            seen.add(id(graph))
            yield from graph.nodes
            waiting += [function.graph for function in graph.functions()]


def _is_op(node: Node) -> bool:
    return node.op.name != "constant"


def _live(graph: Graph) -> set[Node]:
    """Nodes whose values reach an output, or that do something besides computing a value."""
    waiting = [value.node for value in graph.outputs if value.node is not None]
    waiting += [node for node in graph.nodes if node.op.effect not in (None, "read", "random")]
    found: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [value.node for value in node.inputs if value.node is not None]
    return found


def _constant(graph: Graph) -> set[Node]:
    """Nodes that depend on literals alone."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op.effect is None and all(value.node in found for value in node.inputs):
            found.add(node)
    return found


def _statements(body: Iterable[ast.stmt], heads: Set[int], within: bool = False) -> Iterator[tuple[int, int, bool]]:
    """The first and last line of every simple statement, and of the head of every compound one.

    A name or a literal by itself does nothing, and is left out. With each of them whether it stands within a compound
    statement whose head, one of the lines in `heads`, is an op of the graph that runs the statements under it.
    """
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Name | ast.Constant):
            continue
        blocks = [inner for inner in _blocks(statement) if inner]
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        last = max(min([last, *(inner[0].lineno - 1 for inner in blocks)]), first)
        yield first, last, within
        staged = isinstance(statement, ast.If | ast.While | ast.For) and not heads.isdisjoint(range(first, last + 1))
        for inner in blocks:
            yield from _statements(inner, heads, within or staged)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, []):
            yield part.body
