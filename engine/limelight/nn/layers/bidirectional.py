"""`Bidirectional`: a recurrent layer in both directions of time."""

from __future__ import annotations

import copy
from typing import Any

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ArgumentError
from limelight.nn.layers.layer import Layer
from limelight.nn.layers.recurrent import Recurrent
from limelight.ops.shape.concat import concat
from limelight.ops.shape.flip import flip


class Bidirectional(Layer):
    """A recurrent layer that reads forward and one that reads backward, side by side (Schuster and Paliwal 1997).

    Args:
        forward: an LSTM, a GRU or an RNN.
        backward: the one that reads from the end; by default another one of the settings of `forward`, with weights of
            its own.

    Raises:
        ArgumentError: these are no recurrent layers, return different things, or `forward` has its weights already and
            `backward` is not given.

    >>> import limelight as ll
    >>> ll.nn.Bidirectional(ll.nn.LSTM(4, return_sequences=True))(ll.ones((2, 7, 3))).shape
    (2, 7, 8)
    """

    def __init__(self, forward: Recurrent, backward: Recurrent | None = None) -> None:
        for given in (forward, forward if backward is None else backward):
            if not isinstance(given, Recurrent):
                raise ArgumentError(f"Bidirectional: a layer must be an LSTM, a GRU or an RNN, got {given!r}")
        if backward is None:
            if forward.cell.kernel is not None:
                raise ArgumentError(
                    "Bidirectional: the layer has its weights already, and the other direction needs some of its own: "
                    "write Bidirectional(forward, backward)"
                )
            backward = copy.deepcopy(forward)
        if _returns(forward) != _returns(backward):
            raise ArgumentError("Bidirectional: both layers need equal return_sequences and return_state")
        self.forward = forward
        self.backward = backward

    def call(self, x: TensorLike, state: Any = None) -> Any:
        """The outputs of both directions, those of `forward` first.

        Args:
            x: (batch, time, features), floating.
            state: the pair of the first states of the two layers; by default zeros.

        Returns:
            (batch, both units), or with `return_sequences` (batch, time, both units), where each time has what both
            directions know of it; with `return_state` the pair of that and the pair of the last states.

        Raises:
            ShapeError: `x` or a state has another shape.
            ArgumentError: `state` is no pair, or a state is not in the form of its layer's.
            DTypeError: `x` is not floating.
        """
        x = as_tensor(x)
        first = self._pair(state)
        y, z = self.forward(x, first[0]), self.backward(flip(x, axis=1), first[1])
        if not self.forward.return_state:
            return self._joined(y, z)
        return self._joined(y[0], z[0]), (y[1], z[1])

    def _joined(self, y: Tensor, z: Tensor) -> Tensor:
        return concat([y, flip(z, axis=1) if self.forward.return_sequences else z], axis=-1)

    def _pair(self, state: Any) -> tuple[Any, Any]:
        if state is None:
            return None, None
        if not isinstance(state, (tuple, list)) or len(state) != 2:
            raise ArgumentError(f"{self!r}: the state must be a pair, one for each layer, got {type(state).__name__}")
        return state[0], state[1]


def _returns(layer: Recurrent) -> tuple[bool, bool]:
    return layer.return_sequences, layer.return_state
