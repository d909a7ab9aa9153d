"""Whether a table is no slower than NumPy's functions: they cost a call each, tables some memory traffic.

A call of a NumPy function takes some 400 ns more than the same instruction. On large arrays that is nothing, and an
instruction that goes through them alone, in no run of blocks, writes into other memory than it has just read, where the
plan gives NumPy the buffer of a dead operand. `benchmarks/loops_or_plan.py` checks the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from limelight.executors.loops.blocks import SMALLEST, in_runs
from limelight.executors.loops.instructions import AnyInstruction, Instruction
from limelight.executors.loops.layout import Buffer

CALL: Final = 400.0
"""Nanoseconds that an instruction saves."""
ELEMENT: Final = 0.2
"""Nanoseconds that it loses for each element of a large array."""


def is_no_slower(instructions: Sequence[AnyInstruction], results: Iterable[Buffer]) -> bool:
    """Whether these instructions as a table are no slower than the plan, by a model that only looks at sizes.

    Args:
        instructions: those of the table. With loops and branches it always is: a plan calls Python there.
        results: the buffers that others see.
    """
    plain = [one for one in instructions if type(one) is Instruction]
    if all(one[2][0] < SMALLEST and not one[4] for one in plain):
        return True  # nearly always
    if any(not isinstance(one, Instruction) for one in instructions):
        return True
    alone = [one for one in in_runs(plain, results) if type(one) is Instruction]
    return ELEMENT * sum(map(_elements, alone)) <= CALL * len(instructions)


def _elements(one: Instruction) -> int:
    """How many elements it writes one by one, where they are many; none for products, which take their time anyway."""
    if len(one.dims) > 1 or one.steps[-1] == 0:
        return 0
    n = one.dims[0] * math.prod(one.axes[:: 1 + len(one.operands)])
    return n if n >= SMALLEST else 0
