"""How PyTorch's layers call their weights, and lay them out: names, and transposes by name.

"linear" is (out, in) to (in, out); "conv" is (out, in, *window) to (*window, in, out), for transposed convolutions
(in, out, *window) to (*window, out, in). PyTorch's GRU has two biases where ours has one: its weights cannot be had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_KERNEL: Final = {"Dense": "linear", "Conv": "conv", "ConvTranspose": "conv"}
_NAMES: Final[dict[str, dict[str, str]]] = {
    "Dense": {"weight": "kernel", "bias": "bias"},
    "Conv": {"weight": "kernel", "bias": "bias"},
    "ConvTranspose": {"weight": "kernel", "bias": "bias"},
    "Embedding": {"weight": "table"},
    "BatchNorm": {"weight": "scale", "bias": "offset", "running_mean": "mean", "running_var": "variance"},
    "LayerNorm": {"weight": "scale", "bias": "offset"},
    "GroupNorm": {"weight": "scale", "bias": "offset"},
    "RMSNorm": {"weight": "scale"},
}
IGNORED: Final = ("num_batches_tracked",)
"""Names of PyTorch's that ours have no use for."""

TRANSPOSES: Final[dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]]] = {
    "linear": (lambda x: x.T, lambda x: x.T),
    "conv": (
        lambda x: np.moveaxis(x, (0, 1), (-1, -2)),
        lambda x: np.moveaxis(x, (-1, -2), (0, 1)),
    ),
}
"""By name: from PyTorch's layout to ours, and back."""


def _class_of(layer: Any) -> str:
    return next((kind.__name__ for kind in type(layer).__mro__ if kind.__name__ in _NAMES), "")


def ours(layer: Any, name: str) -> tuple[str, str] | None:
    """The attribute of a layer for PyTorch's name, and the name of the transpose, which may be empty."""
    kind = _class_of(layer)
    attribute = _NAMES.get(kind, {}).get(name)
    return None if attribute is None else (attribute, _KERNEL.get(kind, "") if attribute == "kernel" else "")


def theirs(layer: Any, attribute: str) -> tuple[str, str] | None:
    """PyTorch's name for an attribute of a layer, and the name of the transpose."""
    kind = _class_of(layer)
    name = next((name for name, own in _NAMES.get(kind, {}).items() if own == attribute), None)
    return None if name is None else (name, _KERNEL.get(kind, "") if attribute == "kernel" else "")


def transposed_shape(shape: Shape, transpose: str) -> Shape:
    """The shape in our layout."""
    return TRANSPOSES[transpose][0](np.broadcast_to(np.empty(()), shape)).shape if transpose else shape
