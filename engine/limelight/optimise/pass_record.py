"""What a pass did: records for people and views."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from limelight.graph.build import Rewriter
from limelight.graph.ir import Graph, Node


class Change(NamedTuple):
    """One thing that a pass did: `new` nodes of its result stand for `old` nodes of the graph that it was given.

    Both may be many, or none: what is unused has no new nodes, a mark or a node that came to others no old ones. `rule`
    is a word, `reason` a sentence, `source` the user's line of the first of these nodes: (file or cell, line).
    """

    rule: str
    reason: str
    old: tuple[Node, ...]
    new: tuple[Node, ...]

    @property
    def source(self) -> tuple[str, int] | None:
        nodes = self.old or self.new
        return nodes[0].source if nodes else None


class PassRecord(NamedTuple):
    """One run of a pass over a graph: `before - removed + added == after` nodes, in `seconds`.

    `rewired` maps the nodes that stayed but have other operands now to their new selves; all others stayed as they are
    or stand in `changes`.
    """

    name: str
    before: int
    removed: int
    added: int
    after: int
    seconds: float
    changes: list[Change]
    rewired: Mapping[Node, Node]

    def __str__(self) -> str:
        return f"{self.name}: {self.before} - {self.removed} + {self.added} = {self.after} nodes"


class Recorder:
    """Takes the notes for a PassRecord while a pass is running."""

    def __init__(self, name: str, graph: Graph) -> None:
        self._name = name
        self._graph = graph
        self._started = time.perf_counter()
        self._removed = 0
        self._added = 0
        self.changes: list[Change] = []

    def note(self, rule: str, reason: str, old: tuple[Node, ...], new: tuple[Node, ...] = (), added: int = 0) -> None:
        """Notes a change.

        Args:
            rule: what was done, in a word.
            reason: why it may be done, or what it is good for, in a sentence.
            old: the nodes that went.
            new: those that stand for them.
            added: how many of these were not there before.
        """
        self._removed += len(old)
        self._added += added
        self.changes.append(Change(rule, reason, old, new))

    def unchanged(self, graph: Graph) -> tuple[Graph, PassRecord]:
        """The result of a pass that changed no node: the graph, or one of the same nodes."""
        seconds, n = time.perf_counter() - self._started, len(graph.nodes)
        return graph, PassRecord(self._name, n, 0, 0, n, seconds, self.changes, {})

    def finish(self, rewriter: Rewriter) -> tuple[Graph, PassRecord]:
        """The pass's result."""
        result = rewriter.finish()
        seconds = time.perf_counter() - self._started
        before, after = len(self._graph.nodes), len(result.nodes)
        record = PassRecord(
            self._name, before, self._removed, self._added, after, seconds, self.changes, rewriter.rewired
        )
        return result, record
