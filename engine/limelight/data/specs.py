"""`with_spec`: what is declared of the types of elements, for staged code."""

from __future__ import annotations

from typing import Any

from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.data.epoch import Epoch
from limelight.data.stage import Cursor, Specs, Stage, View
from limelight.errors import ArgumentError


class Declared(Stage):
    """The elements of a source, of which the types are said."""

    name = "with_spec"

    def __init__(self, source: Stage, spec: Any) -> None:
        super().__init__(source)
        leaves, structure = nest.flatten(spec)
        for leaf, path in zip(leaves, nest.paths(structure, "spec"), strict=True):
            if not isinstance(leaf, TensorSpec):
                raise ArgumentError(f"with_spec: {path} must be a ll.TensorSpec, got {type(leaf).__name__}")
            leaf.ranked("with_spec")
        self._specs = structure, tuple(leaves)
        self.settings = str(spec)

    @property
    def declared(self) -> Specs:
        return self._specs

    @property
    def size(self) -> float | None:
        return self.sources[0].size

    def view(self, epoch: Epoch) -> View | None:
        return self.sources[0].view(epoch.below())

    def cursor(self, epoch: Epoch) -> Cursor:
        return self.sources[0].cursor(epoch.below())
