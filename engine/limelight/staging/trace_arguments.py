"""The arguments of a function that is traced."""

from __future__ import annotations

from typing import Any

from limelight.core.spec import TensorSpec
from limelight.core.variable import Variable, stand_in
from limelight.staging.tracer import Tracer
from limelight.staging.weak_identity import Identity


def add_input(tracer: Tracer, leaf: Any, part: tuple[Any, ...], path: str, seen: dict[int, Variable]) -> Any:
    """What the Python function sees in place of one leaf of its arguments; `seen` has the variables so far, by uid."""
    if part[0] == "tensor":
        return tracer.add_input(TensorSpec(part[2], part[1]), path)
    if part[0] == "variable" and isinstance(leaf, Variable):
        if leaf._uid in seen:
            tracer.add_input(leaf.spec, path)  # the same variable again: the graph has one input for each leaf
        else:
            seen[leaf._uid] = leaf if isinstance(part[-1], Identity) else stand_in(leaf)
            tracer.bind_variable(seen[leaf._uid], path)
        return seen[leaf._uid]
    return leaf
