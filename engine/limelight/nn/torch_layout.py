"""How PyTorch's layers call their weights, and lay them out: names, and transposes by name.

"linear" is (out, in) to (in, out); "conv" is (out, in, *window) to (*window, in, out), for transposed convolutions
(in, out, *window) to (*window, out, in). The gates of an LSTM stand in one order; its two biases are added. PyTorch's
GRU has two biases, of which one lies within a product: its weights cannot be had.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.errors import CheckpointError

Array = np.ndarray[Any, Any]

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
_OF_RECURRENT: Final = {
    "weight_ih": ("cell/kernel", "linear"), "weight_hh": ("cell/recurrent", "linear"),
    "bias_ih": ("cell/bias", "addend"), "bias_hh": ("cell/bias", "addend"),
}  # fmt: skip
_RECURRENT: Final = re.compile(r"((?:weight|bias)_[ih]h)_l0(_reverse)?")
IGNORED: Final = ("num_batches_tracked",)
"""Names of PyTorch's that ours have no use for."""

TRANSPOSES: Final[dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]]] = {
    "linear": (lambda x: x.T, lambda x: x.T),
    "conv": (
        lambda x: np.moveaxis(x, (0, 1), (-1, -2)),
        lambda x: np.moveaxis(x, (-1, -2), (0, 1)),
    ),
    "addend": (lambda x: x, lambda x: x),
}
"""By name: from PyTorch's layout to ours, and back. Addends of one variable are added."""


def _class_of(layer: Any) -> str:
    return next((kind.__name__ for kind in type(layer).__mro__ if kind.__name__ in _NAMES), "")


def ours(layer: Any, name: str) -> tuple[str, str] | None:
    """The path from a layer for PyTorch's name, and the name of the transpose, which may be empty.

    Raises CheckpointError for the weights of a GRU.
    """
    recurrent = _RECURRENT.fullmatch(name)
    if recurrent is not None:
        return _of_recurrent(layer, recurrent[1], reverse=bool(recurrent[2]))
    kind = _class_of(layer)
    attribute = _NAMES.get(kind, {}).get(name)
    return None if attribute is None else (attribute, _KERNEL.get(kind, "") if attribute == "kernel" else "")


def _of_recurrent(layer: Any, name: str, *, reverse: bool) -> tuple[str, str] | None:
    kinds = {kind.__name__ for kind in type(layer).__mro__}
    way, transpose = _OF_RECURRENT[name]
    if "Bidirectional" in kinds:
        layer, way = layer.forward, f"{'backward' if reverse else 'forward'}/{way}"
        kinds = {kind.__name__ for kind in type(layer).__mro__}
    if "GRU" in kinds:
        raise CheckpointError(
            "load_weights: PyTorch's GRU has a second bias within a product, which GRU here has not, as it applies the "
            "reset gate before the product: write its step in a layer of your own"
        )
    return (way, transpose) if kinds & {"LSTM", "RNN"} else None


def theirs(layer: Any, attribute: str) -> tuple[str, str] | None:
    """PyTorch's name for an attribute of a layer, and the name of the transpose."""
    kind = _class_of(layer)
    name = next((name for name, own in _NAMES.get(kind, {}).items() if own == attribute), None)
    return None if name is None else (name, _KERNEL.get(kind, "") if attribute == "kernel" else "")
