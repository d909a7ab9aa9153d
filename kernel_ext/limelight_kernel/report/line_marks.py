"""What became of each line of a staged cell.

A line's mark follows from the graph alone: which nodes carry that line in their stack, whether their values reach an
output or an effect, whether they depend on anything but literals, and whether they are still there after optimisation.
What happened to each node on the way is told by the records of the passes.

Every line that is code has a word. The lines of one statement share it, `else:` has that of its `if`, and a name at the
end is the *result*. A line is *dead* if nothing of it reaches an output, *constant* if all that does comes from
literals and was folded, *fused* only if all that is left of it is in groups, *merged* with line n if all of it was
shared with that one line. Python's own loops are *trace-time only*, whatever their bodies do: a head counts for ops
that it makes itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from limelight_kernel.cell.statements import Statement, enclosing_statements, statements
from limelight_kernel.report.node_history import NodeStory, Part, line_of, parts_of, shared_line, stories

if TYPE_CHECKING:
    from limelight.graph import Graph, Node
    from limelight_kernel.cell.compiled_cell import Cell

STAGED, FUSED, CONSTANT, DEAD, MERGED = "staged", "fused", "constant", "dead", "merged"
TRACE_TIME, WRITTEN_BACK, RESULT, REFUSED = "trace-time only", "written back", "result", "refused"

GLYPHS = {STAGED: "●", FUSED: "◉", CONSTANT: "◆", DEAD: "✕", MERGED: "◇", TRACE_TIME: "○"}
GLYPHS |= {WRITTEN_BACK: "\N{LEFTWARDS ARROW WITH HOOK}", RESULT: "▸", REFUSED: "⊘", "": " "}
MEANING = {
    STAGED: "runs in the graph on every call",
    FUSED: "runs in the graph, evaluated in one go with the other ops of its group",
    CONSTANT: "depends on literals alone: computed once, its value is part of the graph",
    DEAD: "nothing uses what it computes, so it was dropped",
    MERGED: "another line computes the same, or it was simplified away",
    TRACE_TIME: "no op of the graph: Python ran it while tracing, if at all, and does not on a cache hit",
    WRITTEN_BACK: "no op of the graph: a change in place, which each run makes again",
    RESULT: "names the value that the cell shows",
    REFUSED: "a staged cell cannot do what the plain one does here: nothing of this run is kept",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a cell: its number, its text, its mark ("" for blank lines and comments).

    `nodes` counts the ops of the traced graph, each once, at the innermost of the cell's lines that made it, constants
    too. So all lines together have the graph's ops, but for those that no line of the cell made. `inside` counts those
    of the functions that the graph calls, each at the innermost of the cell's lines in that function: "4 ops, 7 in
    calls".
    `note` says more about the mark in a word or two, "group 1" or "line 3"; `remarks` are sentences about what may
    surprise; `story` tells of each of these ops; `plan` is the code that runs what is left of them, where it was asked.
    """

    number: int
    text: str
    mark: str
    nodes: int
    note: str = ""
    remarks: tuple[str, ...] = ()
    story: tuple[NodeStory, ...] = field(default=(), repr=False, compare=False)
    plan: tuple[str, ...] = field(default=(), repr=False, compare=False)
    inside: int = 0

    @property
    def words(self) -> str:
        """The mark with its note."""
        return f"{self.mark}, {self.note}" if self.note else self.mark

    def to_dict(self) -> dict[str, Any]:
        said = {"number": self.number, "text": self.text, "mark": self.mark, "note": self.note, "nodes": self.nodes}
        said["inside"] = self.inside
        told = [one.to_dict() for one in self.story]
        return {**said, "remarks": list(self.remarks), "story": told, "plan": list(self.plan)}


def annotate(
    cell: Cell, traced: Graph | None, optimised: Graph | None, records: Sequence[Any] = ()
) -> tuple[Line, ...]:
    """The lines of a cell, each with its mark.

    Args:
        cell: the compiled cell.
        traced: its graph as traced; without one every statement is trace-time only.
        optimised: the graph as it runs.
        records: what the passes did in between.
    """
    nodes = list(_nodes(traced))
    around = enclosing_statements(cell.tree.body)
    made = _by_line(nodes, cell.filename, around)
    kept = _by_line(_nodes(optimised, optimised=True), cell.filename, around)
    parts = parts_of(traced, optimised, records)
    marking = _Marking(traced, parts)
    marks = {line: marking.of(nodes_made, kept.get(line, [])) for line, nodes_made in made.items()}
    heads = {line_of(node, cell.filename) for node in nodes if node.op.higher_order}
    for statement in statements(cell.tree.body, heads):
        _fill(marks, statement, cell)
    own, inside = _innermost(traced, cell.filename), _inside(traced, cell.filename)
    told = stories(parts, cell.filename)
    return tuple(
        Line(
            number,
            text,
            *_counted(marks.get(number, ("", "")), own[number]),
            story=tuple(told.get(number, ())),
            inside=inside[number],
        )
        for number, text in enumerate(cell.lines, start=cell.header + 1)
    )


def annotate_refused(cell: Cell, traced: Graph | None, refused: int) -> tuple[Line, ...]:
    """The lines of a cell that was refused at one of them; those above it made the ops that were traced, or none."""
    own, inside = _innermost(traced, cell.filename), _inside(traced, cell.filename)
    marks = {number: (STAGED, "") for number in own if own[number]}
    for statement in statements(cell.tree.body, set()) if traced is not None else ():
        if max(statement.lines, default=refused) < refused:
            _fill(marks, statement, cell)
    return tuple(
        Line(
            number,
            text,
            REFUSED if number == refused else marks.get(number, ("", ""))[0],
            own[number],
            remarks=("the notebook is as it was before this run",) if number == refused else (),
            inside=inside[number],
        )
        for number, text in enumerate(cell.lines, start=cell.header + 1)
    )


def _fill(marks: dict[int, tuple[str, str]], statement: Statement, cell: Cell) -> None:
    """Marks the lines of a statement: those that made no op are as the first of it that did."""
    mark = next((marks[line] for line in statement.lines if line in marks), None)
    if mark is None:
        mark = (RESULT if statement.shows else STAGED if statement.carried else TRACE_TIME), ""
    for line in statement.lines:
        text = "".join(cell.lines[line - cell.header - 1 : line - cell.header]).strip()  # an AST may have other lines
        if text and not text.startswith("#"):
            marks.setdefault(line, mark)


def _counted(mark: tuple[str, str], nodes: int) -> tuple[str, int, str]:
    return mark[0], nodes, mark[1]


def _innermost(graph: Graph | None, filename: str) -> Counter[int]:
    """How many nodes of `graph` itself each line made, as the innermost of the cell's lines that did."""
    lines = (line_of(node, filename) for node in ([] if graph is None else graph.nodes))
    return Counter(line for line in lines if line)


def _inside(graph: Graph | None, filename: str) -> Counter[int]:
    """How many nodes of the functions that `graph` calls each line made."""
    called = [] if graph is None else list(_graphs(graph))[1:]
    lines = (line_of(node, filename, one.name) for one in called for node in one.nodes)
    return Counter(line for line in lines if line)


class _Marking:
    """Marks lines by what is known of the nodes of a graph and of the functions that it calls.

    `live` are those whose values reach an output, or that do something besides computing one; `fixed` those that
    depend on literals alone; `fates` tell what became of each, `own` those in the graph itself.
    """

    def __init__(self, traced: Graph | None, parts: Sequence[Part]) -> None:
        graphs = [] if traced is None else list(_graphs(traced))
        self._live = {node for graph in graphs for node in _live(graph)}
        self._fixed = {node for graph in graphs for node in _constant(graph)}
        self._fates = {node: fate for part in parts for node, fate in part.fates.items()}
        self._own = set() if traced is None else set(traced.nodes)

    def of(self, made: Sequence[Node], kept: Sequence[Node]) -> tuple[str, str]:
        """The mark of a line whose nodes are `made`, and `kept` after optimisation, with a note to it."""
        ops = [node for node in made if _is_op(node)]
        if any(map(_is_op, kept)):
            return self._staged(ops)
        living = [node for node in ops or made if node in self._live]
        if not living:
            return DEAD, ""
        if all(node in self._fixed for node in living):
            return CONSTANT, ""
        line = shared_line([self._fates[node] for node in living if node in self._fates])
        return MERGED, f"line {line}" if line else ""

    def _staged(self, ops: Sequence[Node]) -> tuple[str, str]:
        """Fused where every op that is left of a line belongs to a group."""
        left = [node for node in ops if node in self._fates and any(map(_is_op, self._fates[node].after))]
        if not left or not all(self._fates[node].groups for node in left):
            return STAGED, ""
        if not self._own.issuperset(left):
            return FUSED, ""  # a function that the graph calls has groups of its own, with numbers of their own
        groups = sorted({number for node in left for number in self._fates[node].groups})
        return FUSED, f"group {groups[0]}" if len(groups) == 1 else f"{len(groups)} groups"


def _by_line(nodes: Iterable[Node], filename: str, around: Mapping[int, set[int]]) -> dict[int, list[Node]]:
    """Nodes under every line of the cell in their stack, so that a line that calls a helper has the helper's.

    Not under the heads that those lines stand in: `around` has them by line.
    """
    nodes_of: dict[int, list[Node]] = {}
    for node in nodes:
        lines = dict.fromkeys(source.line for source in node.stack if source.file == filename)
        heads: set[int] = set()
        for line in lines:
            if line not in heads:
                nodes_of.setdefault(line, []).append(node)
            heads |= around.get(line, set())
    return nodes_of


def _nodes(graph: Graph | None, optimised: bool = False) -> Iterator[Node]:
    """The nodes of a graph and of the functions that it calls; of these in the form that runs, where it is asked."""
    for one in [] if graph is None else _graphs(graph, optimised):
        yield from one.nodes


def _graphs(graph: Graph, optimised: bool = False) -> Iterator[Graph]:
    """A graph and those of the functions that it calls, each once."""
    waiting: list[Graph] = [graph]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            for function in current.functions():
                result = getattr(function, "optimised", None) if optimised else None
                waiting.append(function.graph if result is None else result.graph)


def _is_op(node: Node) -> bool:
    return node.op.name != "constant"


def _live(graph: Graph) -> set[Node]:
    """Nodes whose values reach an output, or that do something besides computing a value."""
    waiting = [value.node for value in graph.outputs if value.node is not None]
    waiting += [node for node in graph.nodes if node.op.effect not in (None, "read", "random")]
    live: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in live:
            live.add(node)
            waiting += [value.node for value in node.inputs if value.node is not None]
    return live


def _constant(graph: Graph) -> set[Node]:
    """Nodes that depend on literals alone."""
    constant: set[Node] = set()
    for node in graph.nodes:
        if node.op.effect is None and all(value.node in constant for value in node.inputs):
            constant.add(node)
    return constant
