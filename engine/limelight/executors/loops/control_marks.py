"""Instructions in the order of memory: what leads elsewhere than to the next one, and where that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from limelight.executors.loops.instructions import AnyInstruction, Choice, Guard, Instruction, Repetition
from limelight.executors.loops.layout import Buffer, View


class Label:
    """A place among instructions."""

    __slots__ = ()


@final
class Mark(NamedTuple):
    """What is no call of a loop.

    Args:
        name: "guard", "branch", "jump", "begin" and "again" as tables know them; a "label" is where the others lead.
        operands: what it looks at; for loops the arrays of the rows, and the carried values and stacks.
        label: where it leads, or for a label which it is.
        counter: of a loop.
        steps: of a loop.
        rows: of a loop.
    """

    name: str
    operands: tuple[View, ...] = ()
    label: Label | None = None
    counter: int = 0
    steps: int = 0
    rows: tuple[Buffer, ...] = ()


def in_order(instructions: Sequence[AnyInstruction]) -> list[Instruction | Mark]:
    """The instructions one after the other, each buffer in its place."""
    kinds = set(map(type, instructions))
    if kinds == {Instruction}:
        return list(instructions)  # type: ignore[arg-type]  # just asked
    if kinds <= {Instruction, Guard}:  # whose buffers are their own roots: only branches and loops join some
        return [Mark("guard", (one.condition,)) if type(one) is Guard else one for one in instructions]  # type: ignore[misc]
    writer = _Order()
    writer.write(instructions)
    return writer.items


def length(instruction: AnyInstruction) -> int:
    """How many instructions of a table it becomes, but for those that are joined to blocks."""
    if isinstance(instruction, Choice):
        return 2 + sum(length(one) for branch in instruction.branches for one in branch)
    if isinstance(instruction, Repetition):
        holds = instruction.holds is not None
        return 2 + holds + sum(length(one) for one in (*instruction.check, *instruction.body))
    return 1


class _Order:
    def __init__(self) -> None:
        self.items: list[Instruction | Mark] = []
        self._counters = 0

    def write(self, instructions: Sequence[AnyInstruction]) -> None:
        for one in instructions:
            if isinstance(one, Instruction):
                self.items.append(_with_roots(one))
            elif isinstance(one, Guard):
                self._mark("guard", (one.condition,))
            elif isinstance(one, Choice):
                self._choice(one)
            else:
                self._repetition(one)

    def _mark(self, name: str, operands: Sequence[View] = (), label: Label | None = None) -> None:
        self.items.append(Mark(name, tuple(map(_with_root, operands)), label))

    def _choice(self, choice: Choice) -> None:
        otherwise, end = Label(), Label()
        self._mark("branch", (choice.condition,), otherwise)
        self.write(choice.branches[0])
        self._mark("jump", (), end)
        self._mark("label", (), otherwise)
        self.write(choice.branches[1])
        self._mark("label", (), end)

    def _repetition(self, loop: Repetition) -> None:
        top, end, counter = Label(), Label(), self._counters
        self._counters += 1
        there = tuple(map(_with_root, (*loop.whole_arrays(), *loop.written)))
        self.items.append(Mark("begin", there, None, counter, 0, loop.rows))
        self._mark("label", (), top)
        self.write(loop.check)
        if loop.holds is not None:
            self._mark("branch", (loop.holds,), end)
        self.write(loop.body)
        self.items.append(Mark("again", there, top, counter, loop.steps, loop.rows))
        self._mark("label", (), end)


def _with_root(view: View) -> View:
    return view if view.buffer.same is None else view._replace(buffer=view.buffer.root)


def _with_roots(one: Instruction) -> Instruction:
    for x in one.operands:
        if x.buffer.same is not None:
            break
    else:
        return one
    return one._replace(operands=tuple(map(_with_root, one.operands)))
