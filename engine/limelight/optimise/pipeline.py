"""The pass pipeline: every pass on one line, in the order in which they run. No other list of them exists.

Passes are pure: each makes a graph from a graph, with a record that closes (`before - removed + added == after`).
Gradients are taken of the graph as traced, so no pass merges what a tape could have told apart. Up to level 2 every bit
of every result stays, NaN, infinities and signs of zeros included; level 3 rounds otherwise.

To add a pass, write it in a file of its own as a function `run(graph) -> (graph, record)` (`pass_record.Recorder` takes
the notes), and give it a line in `PASSES`. Its level, its name in `ll.config.optimiser(without=[...])`, when and how
often it runs, and what the views say of nodes that it changed are read from there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from limelight.graph.ir import Graph
from limelight.optimise.broadcasts import spread
from limelight.optimise.constant_folding import fold
from limelight.optimise.cse import share, share_exactly
from limelight.optimise.dead_code import prune
from limelight.optimise.fusion import fuse
from limelight.optimise.loop_invariants import hoist
from limelight.optimise.pass_record import PassRecord
from limelight.optimise.simplify import simplify, simplify_exactly
from limelight.optimise.stacked_sums import stack

Run: TypeAlias = Callable[[Graph], tuple[Graph, PassRecord]]

EXACT: Final = 2
"""The level up to which every result keeps its bits."""
HIGHEST: Final = 3
"""The level that is in force unless somebody asks for less: results may round otherwise."""

SAYS: Final = "{name}: {rule}: {reason}"
"""What a pass says of a node that it changed, unless it has words of its own."""


class When(Enum):
    """When a pass runs; those of one kind run in the order of the table."""

    REPEATED = "first, and again as long as passes of this kind find work for one another"
    ONCE = "after those"
    LAST = "after everything else"


class Pass(NamedTuple):
    """A pass, and what the pipeline and the views need to know of it.

    Args:
        name: its public name.
        run: from a graph to another and a record of what changed. It leaves the graph alone that it is given, and
            returns that one itself where it has found nothing.
        level: the lowest level of the optimiser that has it.
        mark: what became of a node that it changed, in a word, for the graph views.
        says: the same as a clause, in which `{rule}` and `{reason}` are those of the change, `{name}` the pass, and
            `{where}` the place of the node that now stands for it.
        when: when it runs, and whether again.
        tidies: whether this repeated pass runs once more after a pass that runs `When.ONCE` has changed something.
        leads_on: whether a change of its is a reason to repeat passes; not so for one that only removes.
        exact: what runs instead up to level `EXACT`, where the pass has rules that round otherwise.
    """

    name: str
    run: Run
    level: int
    mark: str
    says: str = SAYS
    when: When = When.ONCE
    tidies: bool = False
    leads_on: bool = True
    exact: Run | None = None

    def at(self, level: int) -> Run:
        """What runs at a level of the optimiser."""
        return self.exact if self.exact is not None and level <= EXACT else self.run


_AGAIN: Final = When.REPEATED
PASSES: tuple[Pass, ...] = (
    Pass("prune", prune, 1, "pruned", "pruned: nothing uses it", when=_AGAIN, tidies=True, leads_on=False),
    Pass("fold", fold, 2, "folded", "folded into a constant", when=_AGAIN, tidies=True),
    Pass("simplify", simplify, 2, "simplified", "simplified by {rule}: {reason}", when=_AGAIN, exact=simplify_exactly),
    Pass("share", share, 2, "shared", "shared with {where}", when=_AGAIN, tidies=True, exact=share_exactly),
    Pass("hoist", hoist, 2, "hoisted"),
    Pass("stack", stack, 3, "stacked"),
    Pass("spread", spread, 2, "spread"),
    Pass("fuse", fuse, 2, "fused", when=When.LAST),  # its groups name nodes, which any other pass may replace
)


def names() -> tuple[str, ...]:
    """The names of all passes."""
    return tuple([one.name for one in PASSES])


def named(name: str) -> Pass | None:
    """The pass of a name; None where there is no such pass."""
    return next((one for one in PASSES if one.name == name), None)


def tidy_passes() -> tuple[Pass, ...]:
    """The passes that run once more after those that run `When.ONCE`, in this order.

    It is another turn of the round of repeated passes, begun behind the first one, so that it ends with that: `prune`
    removes what the others of this turn leave unused.
    """
    repeated = [one for one in PASSES if one.when is When.REPEATED]
    return tuple([one for one in (*repeated[1:], *repeated[:1]) if one.tidies])
