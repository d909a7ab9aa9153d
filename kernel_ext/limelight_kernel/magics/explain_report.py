"""`%explain`: everything that the engine says of a staged function, in sections, each fact once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from limelight import explain
from limelight.explain.story import Story, by_cost
from limelight_kernel.explain.retrace_fixes import worded_for_cell
from limelight_kernel.explain.side_effects import side_effects
from limelight_kernel.staged.staged_cell import StagedCell


@dataclass(frozen=True)
class Explanation:
    """Why a function was traced, what it does while tracing alone, which values its traces have baked in.

    What two of the engine's answers say is left to one of them: draws and clocks to the side effects, values that have
    changed to what is baked in.
    """

    retrace: Any
    side_effects: Any
    baked: Any
    of_cell: bool = False

    @classmethod
    def of(cls, function: Any) -> Explanation:
        """The explanation of a staged function."""
        of_cell = isinstance(function, StagedCell)
        effects = function.effects() if of_cell else side_effects(function, None)
        baked = explain.baked(function)
        retrace = replace(explain.retrace(function), unseen=())
        return cls(retrace, effects, replace(baked, drawn=()), of_cell)

    def _worded(self, text: str) -> str:
        return worded_for_cell(text) if self.of_cell else text

    @property
    def stories(self) -> tuple[Story, ...]:
        """Of traces, the costliest first; of values that have changed since, of side effects, of other baked values."""
        still = [record.to_story() for record in self.baked.records if not record.changed]
        told = (*by_cost(self.retrace.stories), *self.baked.stories, *self.side_effects.stories, *still)
        return tuple([story.reworded(self._worded) for story in told])

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is none of, and what cannot be known."""
        unknown = [str(replace(self.baked, records=()))] if self.baked.unknown else []
        ran = self.side_effects if not self.side_effects.records else None
        quiet = [str(one) for one in (ran, None if self.baked.records or unknown else self.baked) if one is not None]
        return tuple([self._worded(line) for text in (*unknown, *quiet) for line in text.splitlines()])

    def to_dict(self) -> dict[str, str]:
        said = {"retrace": self.retrace, "side_effects": self.side_effects, "baked": self.baked}
        return {name: self._worded(str(one)) for name, one in said.items()}

    def __str__(self) -> str:
        return "\n\n".join(self.to_dict().values())

    __repr__ = __str__
