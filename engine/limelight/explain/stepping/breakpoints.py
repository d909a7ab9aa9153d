"""Where to stop in a recording: at a line, an op, NaN, another shape, a copy, a call that traces again, an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from limelight.errors import ArgumentError

_OP: Final = re.compile(r"= ?(\w+)\(")
_FORMS: Final = "line:7, op:matmul, nan, shape, copy, retrace or error"
_MARKS: Final = ("shape", "copy", "retrace")


def stops(steps: Sequence[Any], wanted: str) -> tuple[int, ...]:
    """The steps, by number from 0, at which one of the conditions in "line:7,op:matmul,nan,error" holds.

    `line:7` is a line's number in its cell or file, each time that it is come to; `op:matmul` an op that is recorded in
    the graph, or runs; `nan` a value with NaN or infinities. `shape` is a name that gets a value of another shape than
    it had, or an op that gives a shape which none of its inputs has; `copy` a copy between devices; `retrace` a call
    that is traced again, the recorded one among them.

    Raises:
        ArgumentError: a condition is none of these.
    """
    conditions = [_parsed(part.strip()) for part in wanted.split(",") if part.strip()]
    return tuple([i for i, one in enumerate(steps) if any(_holds(steps, i, one, *test) for test in conditions)])


def _parsed(text: str) -> tuple[str, str]:
    kind, _, value = text.partition(":")
    is_good = (kind == "line" and value.isdecimal()) or (kind == "op" and value) or text in ("nan", "error", *_MARKS)
    if not is_good:
        raise ArgumentError(f"a step to stop at is {_FORMS}; got {text!r}")
    return kind, value


def _holds(steps: Sequence[Any], i: int, step: Any, kind: str, value: str) -> bool:
    if kind == "line":
        here = step.line is not None and step.line.line == int(value)
        before = steps[i - 1] if i else None
        return here and (before is None or (before.line, before.kind) != (step.line, step.kind))
    if kind == "op":
        said = (step.text,) if step.kind in ("run", "backward") else step.records if step.kind == "trace" else ()
        return any((found := _OP.search(text)) is not None and found[1] == value for text in said)
    if kind == "nan":
        return step.value is not None and bool(step.value.nans or step.value.infinities)
    if kind in _MARKS:
        return any(mark == kind for mark, _ in step.marks)
    return bool(step.kind == "error")
