"""What became of one node of a line, before and after optimisation: records that are words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from limelight_widgets.folds.fates import Fate


@dataclass(frozen=True, slots=True)
class NodeStory:
    """A node as `traced`, what the passes did to it in `words`, and the nodes that stand for it as `optimised`.

    `groups` are the numbers of the fusion groups that those are in.
    """

    traced: str
    words: str
    optimised: tuple[str, ...]
    groups: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        said = {"traced": self.traced, "words": self.words, "optimised": list(self.optimised)}
        return {**said, "groups": list(self.groups)}


def shared_line(found: Iterable[Fate]) -> int:
    """The line that all of these nodes were merged with, 0 where there is no such single line."""
    lines = {step.line for fate in found for step in fate.steps if step.made_by == "share"}
    return lines.pop() if len(lines) == 1 else 0
