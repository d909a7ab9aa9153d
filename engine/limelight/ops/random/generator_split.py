"""Splitting a generator, as an op: its results are generators, values of a graph as long as it runs."""

from __future__ import annotations

from typing import Any, Final

from limelight.core.op import Op, defop
from limelight.core.spec import GENERATOR
from limelight.ops.random._draws import DRAWN, Source


def _split(xp: Any, source: Source, n: int) -> tuple[Source, ...]:
    return tuple([Source(state) for state in source.split(n)])


split_op: Final[Op] = defop(
    "split_generator",
    inputs="generator:var",
    attrs="n",
    infer=lambda generator, n: (GENERATOR,) * n,
    kernel=_split,
    effect="random",
    multiple=True,
    why_no_gradient=DRAWN,
    batching="split",
)
