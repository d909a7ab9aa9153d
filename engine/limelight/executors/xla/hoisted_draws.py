"""Random draws of a compiled graph: made on the host before it runs, in the order of the graph, and handed in.

So a generator gives the same numbers whichever executor runs a function. What is drawn must be known when the program
is made: sizes and other operands are constants or computed from shapes. A draw in a branch or in a loop is refused,
since whether it happens, or how often, is not known beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.executors.xla.graph_lowering import NoFormError
from limelight.graph.ir import Node
from limelight.ops.random._draws import Source, state_of

_WITHIN: Final = (
    "draws inside of a branch or a loop, and compiled code does not draw: draw before it, one row for each step, and "
    "hand the numbers in"
)
_SPLIT: Final = "splits a generator, and compiled code does not draw: split outside, and pass the parts as arguments"
_COMPUTED: Final = "draws by numbers that the function computes, and compiled code does not draw: draw outside of it"


class GeneratorCell:
    """What stands for the payload of a generator, `index` among the inputs of the graph."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    @property
    def array(self) -> Any:
        raise ValueError("the state of a generator is on the host")


class Draw(NamedTuple):
    """A node that draws, with the operands that follow its generator, which is input `generator` of the graph."""

    node: Node
    generator: int
    operands: tuple[Any, ...]

    def results(self, source: Source) -> tuple[Any, ...]:
        """The numbers that `source` gives: arrays of NumPy."""
        drawn = self.node.op.numpy_kernel(source, *self.operands, *self.node.params)
        return tuple(drawn) if self.node.op.multiple else (drawn,)


class DrawRecorder:
    """Lowers nodes that draw by taking note of them: their results are those of a generator that is thrown away."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.drawn: list[Any] = []
        self._source = Source(state_of(0))

    def __call__(self, node: Node, inputs: list[Any], within: bool) -> Sequence[Any]:
        generator, *operands = inputs
        if node.op.name == "split_generator":
            raise NoFormError(node, _SPLIT)
        if within:
            raise NoFormError(node, _WITHIN)
        if not isinstance(generator, GeneratorCell) or not all(
            isinstance(x, np.ndarray | np.generic) for x in operands
        ):
            raise NoFormError(node, _COMPUTED)
        draw = Draw(node, generator.index, tuple(operands))
        results = draw.results(self._source)
        self.draws.append(draw)
        self.drawn += results
        return results


class HandedIn:
    """Lowers nodes that draw by taking the next ones of the numbers that were drawn, in the order of the recorder."""

    def __init__(self, drawn: Sequence[Any]) -> None:
        self._next = iter(drawn)

    def __call__(self, node: Node, inputs: list[Any], within: bool) -> Sequence[Any]:
        return [next(self._next) for _ in node.outputs]
