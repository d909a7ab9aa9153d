"""`%explain`: everything that the engine says of a staged function, in sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limelight import explain
from limelight_kernel.explain.retrace_fixes import worded_for_cell
from limelight_kernel.explain.side_effects import side_effects
from limelight_kernel.report.listing import wrapped
from limelight_kernel.staged.staged_cell import StagedCell


@dataclass(frozen=True)
class Explanation:
    """Why a function was traced, what it does while tracing alone, which values its traces have baked in."""

    retrace: Any
    side_effects: Any
    baked: Any
    of_cell: bool = False

    @classmethod
    def of(cls, function: Any) -> Explanation:
        """The explanation of a staged function."""
        of_cell = isinstance(function, StagedCell)
        effects = function.effects() if of_cell else side_effects(function, None)
        return cls(explain.retrace(function), effects, explain.baked(function), of_cell)

    def to_dict(self) -> dict[str, str]:
        said = {"retrace": str(self.retrace), "side_effects": str(self.side_effects), "baked": str(self.baked)}
        return {name: worded_for_cell(text) for name, text in said.items()} if self.of_cell else said

    def __str__(self) -> str:
        return "\n\n".join(wrapped(text) for text in self.to_dict().values())

    __repr__ = __str__
