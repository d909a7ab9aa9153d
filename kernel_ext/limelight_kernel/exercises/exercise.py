"""An exercise: a question, a judge of answers, and hints; no solution is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and why; of a wrong one, the misconception that leads to it. `str()` is the text."""

    right: bool
    why: str

    def __str__(self) -> str:
        return f"{'✓ Right' if self.right else '✗ Not yet'}: {self.why}"

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        return {"right": self.right, "why": self.why}


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Args:
        question: what is asked, and what is to be given as the answer.
        judge: from the answer, an object, to a verdict; runs at most a second and changes nothing of the notebook.
        hints: the first points at where to look, the last nearly tells.
    """

    question: str
    judge: Callable[[Any], Verdict]
    hints: tuple[str, str, str]
