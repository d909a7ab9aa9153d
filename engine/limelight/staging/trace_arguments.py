"""The arguments of a function that is traced."""

from __future__ import annotations

from typing import Any

from limelight.core.spec import TensorSpec
from limelight.core.variable import Variable, stand_in
from limelight.staging.key_parts import Part, TensorPart, VariablePart
from limelight.staging.tracer import Tracer


def add_input(tracer: Tracer, leaf: Any, part: Part, path: str, seen: dict[int, Variable]) -> Any:
    """What the Python function sees in place of one leaf of its arguments; `seen` has the variables so far, by uid."""
    if isinstance(part, TensorPart):
        return tracer.add_input(TensorSpec(part.shape, part.dtype), path)
    if isinstance(part, VariablePart) and isinstance(leaf, Variable):
        if leaf._uid in seen:
            tracer.add_input(leaf.spec, path)  # the same variable again: the graph has one input for each leaf
        else:
            seen[leaf._uid] = stand_in(leaf) if part.identity is None else leaf
            tracer.bind_variable(seen[leaf._uid], path)
        return seen[leaf._uid]
    return leaf
