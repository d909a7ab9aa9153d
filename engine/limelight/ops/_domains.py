"""Domains that several ops share (see `core.op.Domain`)."""

from __future__ import annotations

from typing import Final

from limelight.core.op import Domain

LOGARITHM: Final = Domain(
    operand=0,
    condition="{x} > 0",
    inside="1",
    why="the logarithm of 0 and its slope there are infinite, below 0 it is NaN (ll.xlogy(x, y) is x * log(y), and 0 "
    "where x is)",
)
BETWEEN_ONES: Final = Domain(
    operand=0,
    condition="{ll}.abs({x}) < 1",
    inside="0",
    why="the slope is infinite at -1 and 1; beyond them it is NaN",
    nearest="{ll}.clip({x}, -0.999999, 0.999999)",
)
"""Of asin, acos and atanh."""
