"""Arrays of NumPy's that a traced function changes in place: in the trace tensors stand for them, which do not change.

`arr += 1` changes the array of the caller in Python, also by another name of it, a row, or another view. In a trace it
makes a new tensor, so that the caller's array would stay as it is, silently. It is noted while tracing, and said where
the argument is an array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from limelight.errors import LostChangeWarning
from limelight.graph.ir import Value
from limelight.staging.key import Call
from limelight.staging.symbolic import VIEWS, SymbolicTensor
from limelight.staging.tracer import Tracer
from limelight.user_code import operand_text, source_line
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at


class ArrayChange(NamedTuple):
    """The input of a graph, by number, whose array the Python code would change, and the line that does it."""

    place: int
    line: Source | None


def in_place(tracer: Tracer) -> tuple[ArrayChange, ...]:
    """What the traced code would change of the arrays among its arguments."""
    if not tracer.changed_in_place:
        return ()
    places = {id(value): i for i, value in enumerate(tracer.inputs)}
    changes = {places.get(id(_viewed(value)), -1): line for value, line in reversed(tracer.changed_in_place)}
    return tuple([ArrayChange(place, line) for place, line in changes.items() if place >= 0])


def hand_out(inner: Sequence[Any], outer: Sequence[Any]) -> None:
    """Has what a loop's body changes in place count as a change of what the loop began with.

    Args:
        inner: the tensors that the body begins with, those of its trace.
        outer: what they are before the first round.
    """
    begun = {id(x._value): y for x, y in zip(inner, outer, strict=True) if isinstance(x, SymbolicTensor)}
    for tracer in {id(x._tracer): x._tracer for x in inner if isinstance(x, SymbolicTensor)}.values():
        _note_those(tracer, begun)


def hand_out_captured(tracer: Tracer) -> None:
    """The same for what a branch or a body changes of the tensors that it captures."""
    _note_those(tracer, {id(value): x for x, value in tracer.captured.values()})


def _note_those(tracer: Tracer, outer: Mapping[int, Any]) -> None:
    """Notes changes of values, by identity, as changes of what stands for them outside of a trace."""
    for value, line in tracer.changed_in_place:
        _note(outer.get(id(_viewed(value))), line)


def _note(x: Any, line: Source | None) -> None:
    """Notes a change of `x` in its own trace, if it has one."""
    if isinstance(x, SymbolicTensor):
        x._tracer.changed_in_place.append((x._value, line))


def _viewed(value: Value) -> Value:
    """What a value is a view of, if it were an array's."""
    node = value.node
    while node is not None and node.op.name in VIEWS and value.spec.shape != ():  # type: ignore[union-attr]  # tensors
        value = node.inputs[0]
        node = value.node
    return value


def warn(name: str, entry: Any, call: Call) -> None:
    """Warns of arrays among the arguments of a call that stay as they are, at the line of the first change.

    Where the call is traced itself, tensors may stand for them: it is noted there.

    Args:
        name: that of the function.
        entry: the trace that the call has found.
        call: the call; it holds the arrays as they were given.
    """
    if not entry.array_changes:
        return
    inputs = [i for i, part in enumerate(entry.key.parts) if part.is_input]
    for x in entry.array_changes:
        _note(call.leaves[inputs[x.place]] if x.place < len(inputs) else None, x.line)
    lost = [x for x in entry.array_changes if x.place < len(inputs) and call.is_array(inputs[x.place])]
    if not lost:
        return
    paths = " and ".join(sorted(f"`{entry.paths[inputs[x.place]]}`" for x in lost))
    line = lost[0].line or source_line.user_line() or Source("<unknown>", 1, "")
    anew = operand_text.without_augmentation(line.text)
    message = (
        f"`{name}` changes the NumPy array {paths} in place, and the change is lost: in a staged function a tensor "
        f"stands for the array, and the caller's stays as it is{source_line.at(line)}. Write "
        f"{f'`{anew}`' if anew else '`x = x + y` in place of `x += y`'} for a new tensor, return it, and store it "
        "outside: `arr[...] = result`"
    )
    warn_at(line, message, LostChangeWarning)
