"""How Keras' layers call their weights, and lay them out, where ours do otherwise.

Kernels of Dense, Conv and ConvTranspose, and the gates of an LSTM (input, forget, candidate, output), lie as ours do. A
GRU of Keras has the update gate first, ours the reset gate; with `reset_after`, its default, it has two biases, and its
weights cannot be had. Kernels of attention have an axis for the heads, ours have heads and their depth as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.errors import CheckpointError

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_NORM: Final = {"gamma": "scale", "beta": "offset"}
_CELL: Final = {"kernel": "kernel", "recurrent_kernel": "recurrent", "bias": "bias"}
_NAMES: Final[dict[str, dict[str, str]]] = {
    "Dense": {"kernel": "kernel", "bias": "bias"},
    "Embedding": {"embeddings": "table"},
    "BatchNorm": {**_NORM, "moving_mean": "mean", "moving_variance": "variance"},
    "LayerNorm": _NORM,
    "GroupNorm": _NORM,
    "LSTMCell": _CELL,
    "GRUCell": _CELL,
    "RNNCell": _CELL,
}
_CELL_OF: Final = {"LSTM": "LSTMCell", "GRU": "GRUCell", "RNN": "RNNCell"}
_CELL_PART: Final = re.compile(r"(lstm|gru|simple_rnn)_cell(_\d+)?")
IGNORED: Final = ("seed_generator_state",)
"""Names of Keras' that ours have no use for."""


def _update_gate_second(x: Array) -> Array:
    update, reset, candidate = np.split(x, 3, axis=-1)
    return np.concatenate([reset, update, candidate], axis=-1)


TURNS: Final[dict[str, Callable[[Array], Array]]] = {
    "gates": _update_gate_second,
    "heads last": lambda x: x.reshape(x.shape[0], -1) if x.ndim == 3 else x.reshape(-1),
    "heads first": lambda x: x.reshape(-1, x.shape[-1]),
}
"""By name: from Keras' layout to ours."""


def _kind(layer: Any, known: Any) -> str:
    return next((kind.__name__ for kind in type(layer).__mro__ if kind.__name__ in known), "")


def part(layer: Any, name: str) -> str:
    """The attribute of a layer that Keras calls `name`, which has weights of its own."""
    if _kind(layer, _CELL_OF) and _CELL_PART.fullmatch(name):
        return "cell"
    if _kind(layer, ("Bidirectional",)) and name.partition("_")[0] in ("forward", "backward"):
        return name.partition("_")[0]
    if _kind(layer, ("MultiHeadAttention",)) and name == "attention_output":
        return "output"
    return name


def ours(layer: Any, name: str, above: Any, shape: Shape) -> tuple[str, str] | None:
    """The path from a layer to the variable that Keras calls `name`, and the name of the turn, which may be empty.

    Args:
        layer: a layer, or anything else that is on the way.
        name: the last part of the path of one of Keras' variables.
        above: what the layer is called where it was found.
        shape: that of the array.

    Raises:
        CheckpointError: it is of a GRU with two biases.
    """
    if _kind(layer, _CELL_OF):  # as in older files, which do not name the cell
        return _of_cell(_CELL_OF[_kind(layer, _CELL_OF)], name, "cell/", shape)
    kind = _kind(layer, _NAMES)
    if kind.endswith("Cell"):
        return _of_cell(kind, name, "", shape)
    attribute = _NAMES.get(kind, {}).get(name)
    if attribute is None:
        return None
    if kind == "Dense" and len(shape) == (3 if name == "kernel" else 2):
        return attribute, "heads first" if above == "output" else "heads last"
    return attribute, ""


def _of_cell(kind: str, name: str, way: str, shape: Shape) -> tuple[str, str] | None:
    if name not in _CELL:
        return None
    if kind == "GRUCell" and name == "bias" and len(shape) == 2:
        raise CheckpointError(
            "load_weights: the bias of this GRU has two rows, as Keras' GRU(reset_after=True) has, its default, where "
            "the reset gate applies after the product; GRU here is that of reset_after=False: train it so, or write "
            "the step in a layer of your own"
        )
    return way + _CELL[name], "gates" if kind == "GRUCell" else ""
