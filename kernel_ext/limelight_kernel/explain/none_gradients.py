"""Gradients that are None while a cell is traced: at which line, and why.

They are explained where they are asked for, since a tape knows less afterwards: tapes tell whoever listens
(`autodiff.missing_gradients`). The sentences are kept with the trace, for calls that find it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from limelight import explain
from limelight.autodiff import missing_gradients
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.user_code import source_line
from limelight_kernel.inputs.variable_names import path_to

MOST = 4
"""Sentences of one line: a model has many weights."""


@dataclass(frozen=True, slots=True)
class NoneGradient:
    """A gradient that is None: the `line` of the cell that asked for it (0 for one elsewhere), and why it is."""

    line: int
    sentence: str


@contextmanager
def recording_none_gradients(filename: str) -> Iterator[list[NoneGradient]]:
    """Within its block, gradients that are None are noted."""
    recorded: list[NoneGradient] = []
    many: dict[int, int] = {}

    def note(tape: Any, target: Any, asked: Any) -> None:
        if not isinstance(target, Tensor | Resource) or not isinstance(asked, Tensor | Resource):
            return
        stack = source_line.user_stack()
        line = next((int(one.line) for one in stack if one.file == filename), 0)
        scope = _scope(stack[0].text if stack else "")
        path = path_to(asked, scope)
        scope = {path: asked, **scope} if path is not None else scope
        sentence = str(explain.why_none(tape, target, asked, scope=scope))
        if stack and not line:
            sentence += source_line.at(stack[0])
        one = NoneGradient(line, sentence)
        if one not in recorded:
            many[line] = many.get(line, 0) + 1
            recorded.extend([one] if many[line] <= MOST else [])

    with missing_gradients.listener_scope(note):
        yield recorded


def _scope(line: str) -> Mapping[str, Any]:
    """The names of the user's code that is running, those in its `line` first: a tensor may have several."""
    frame = sys._getframe(1)
    while frame.f_back is not None and source_line.is_library(frame.f_code):
        frame = frame.f_back
    own = source_line.locals_of(frame)
    names = {**own, **{name: x for name, x in frame.f_globals.items() if name not in own}}
    return {**{name: names[name] for name in re.findall(r"\w+", line) if name in names}, **names}
