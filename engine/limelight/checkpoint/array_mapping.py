"""Arrays by path, as something to be restored: the way in for weights that no checkpoint of ours has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from limelight.checkpoint.manifest import Manifest, SavedNode, give_paths
from limelight.checkpoint.object_paths import Edge
from limelight.core.dtypes import DType

Array = np.ndarray[Any, Any]


class Offered(NamedTuple):
    """An array that is read when it is needed: its shape, its dtype, and how it is had."""

    shape: tuple[int, ...]
    dtype: DType
    get: Callable[[], Array]


class ArrayMapping:
    """Arrays by the edges that lead to their variables, in the place of a checkpoint's file.

    Args:
        path: what messages call it.
        arrays: the arrays, by edges from the root.
    """

    casts = True

    def __init__(self, path: Path, arrays: Mapping[tuple[Edge, ...], Offered]) -> None:
        self.path = path
        self._arrays: dict[str, Offered] = {}
        root = SavedNode("object")
        self.manifest = Manifest([root], "")
        numbers: dict[tuple[Edge, ...], int] = {(): 0}
        for edges, offered in arrays.items():
            for i in range(1, len(edges) + 1):
                self._add(edges[:i], numbers, leaf=i == len(edges))
            node = self.manifest.nodes[numbers[edges]]
            node.kind, node.array = "variable", repr(edges)
            self._arrays[node.array] = offered
        give_paths(self.manifest.nodes, int(math.pow(2, 40)))

    def _add(self, edges: tuple[Edge, ...], numbers: dict[tuple[Edge, ...], int], *, leaf: bool) -> None:
        if edges not in numbers:
            numbers[edges] = len(self.manifest.nodes)
            self.manifest.nodes[numbers[edges[:-1]]].children.append((edges[-1], numbers[edges]))
            self.manifest.nodes.append(SavedNode("variable" if leaf else "object"))

    def spec(self, key: str, dtype: str = "") -> tuple[tuple[int, ...], DType]:
        return self._arrays[key][:2]

    def array(self, key: str, dtype: str = "") -> Array:
        return self._arrays[key].get()

    def value_array(self, key: str) -> Array:
        return self.array(key)

    def place(self, key: str) -> tuple[int, int]:
        return (0, 0)

    def reopened(self) -> ArrayMapping:
        return self
