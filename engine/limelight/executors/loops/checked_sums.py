"""Sums in another order (`optimise.guarded_sum`) in a table: their bounds are instructions, and a guard at their end.

Where the bounds say that something might have overflowed, the run of the table ends there, and the plan runs all of its
nodes, the sum as it was written among them. That is rare, and costs no more than the table that it makes useless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limelight.executors.loops import templates
from limelight.executors.loops.instructions import Instructions
from limelight.executors.loops.traced_array import TracedArray
from limelight.optimise.guarded_sum import GuardedSum


def checked_total(guard: GuardedSum, operands: Sequence[TracedArray], to: Instructions) -> TracedArray:
    """The total, which is the first operand, behind the guard."""
    total, *others = operands
    checked = others[: guard.n_checked]
    what, views, start = (guard.bounds, guard.limit), tuple([x.view for x in checked]), len(to.list)
    if templates.written(what, views, to.list) is not None:
        return total
    norms = []
    for x in checked:
        flat = x.reshape(-1)
        norms.append(np.sqrt(flat.dot(flat).astype(np.float64)))
    bound = _sum(guard.bounds, norms, guard.limit)
    to.guard(np.less(bound, guard.limit).view)
    templates.keep_as(what, views, to.list[start:], ())
    return total


def _sum(bounds: tuple[Any, ...], norms: Sequence[Any], limit: float) -> Any:
    """The sum of the bounds, in 64 bits; infinite where it reaches the limit, or is NaN."""
    total: Any = 0.0
    for left, right, factor in bounds:
        norm = norms[right] * factor
        if type(left) is tuple:
            norm = norm * _sum(left, norms, limit)
        elif left is not None:
            norm = norm * norms[left]
        total = total + norm
    return np.where(np.less(total, limit), total, np.inf)
