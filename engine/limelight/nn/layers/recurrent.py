"""Recurrent layers: LSTM and GRU, as cells for one step in time and as layers over sequences."""

from __future__ import annotations

from typing import Any, Final

from limelight.control_flow.scan import scan
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ShapeError
from limelight.nn import initializers
from limelight.nn.functional._operands import floating
from limelight.nn.functional.recurrence import gru_step, lstm_step
from limelight.nn.initializers import Initializer, Sizes
from limelight.nn.layers.layer import Layer
from limelight.nn.layers.settings import checked_flag, checked_size
from limelight.ops.create.creation import arange, zeros, zeros_like
from limelight.ops.shape.concat import concat, stack, unstack

_SEQUENCE: Final = "(batch, time, features)"


class Cell(Layer):
    """What LSTMCell and GRUCell share: weights for `gates` gates side by side, and a state that begins at zero."""

    form = "(batch, features)"
    rank = 2
    gates: int

    def __init__(
        self,
        units: int,
        *,
        dtype: DTypeLike = "float32",
        kernel_initializer: str | Initializer = "glorot_uniform",
        recurrent_initializer: str | Initializer = "orthogonal",
        bias_initializer: str | Initializer = "zeros",
    ) -> None:
        self.units = checked_size(type(self).__name__, "units", units)
        self.dtype = dtype
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel: Variable | None = None
        self.recurrent: Variable | None = None
        self.bias: Variable | None = None

    def build(self, features: int) -> None:
        width = self.gates * self.units
        self.kernel = self.weight("kernel", (features, width), self.kernel_initializer)
        self.recurrent = self.weight("recurrent", (self.units, width), self._gate_by_gate)
        self.bias = self.weight("bias", (width,), self.first_bias)

    def first_bias(self, shape: Sizes, dtype: DTypeLike) -> Tensor:
        """What the bias begins as."""
        return self.bias_initializer(shape, dtype)

    def call(self, x: TensorLike, state: Any = None) -> Any:
        x = floating(repr(self), self.ready(x)).astype(self.dtype)
        return self.step(self.given(x), self.first_state(x) if state is None else self.checked(state))

    def given(self, x: Tensor) -> Tensor:
        """What the inputs (..., features) add to the gates: the part of a step that needs no state."""
        return x @ self.kernel + self.bias

    def step(self, given: Tensor, state: Any) -> Any:
        """The next state."""
        raise TypeError(f"{type(self).__name__} does not define step(self, given, state)")

    def first_state(self, x: Tensor) -> Any:
        """The state before the first step: zeros of shape (batch, units), for `x` of shape (batch, features)."""
        return _zeros(x, self.units, self.dtype)

    def checked(self, state: Any) -> Any:
        """A state that was handed in. Raises ShapeError where it does not fit."""
        h = as_tensor(state)
        if h.ndim != 2 or h.shape[-1] not in (None, self.units):
            raise ShapeError(f"{self!r}: a state must have shape (batch, {self.units}), got {h.spec}")
        return h.astype(self.dtype)

    def _gate_by_gate(self, shape: Sizes, dtype: DTypeLike) -> Tensor:
        square = (self.units, self.units)
        return concat([self.recurrent_initializer(square, dtype) for _ in range(self.gates)], axis=1)


class LSTMCell(Cell):
    """One step of a long short-term memory: x (batch, features) and the state (h, c) to the next (h, c).

    Both h and c have shape (batch, units). Raises ArgumentError for a state that is no pair.

    The gates stand in the weights in the order input, forget, candidate, output (see `ll.nn.lstm_cell`). The bias of
    the forget gate begins at 1, so that memory is kept at first (Jozefowicz et al. 2015).

    >>> import limelight as ll
    >>> cell = ll.nn.LSTMCell(4)
    >>> h, c = cell(ll.ones((2, 3)))
    >>> h, c = cell(ll.ones((2, 3)), (h, c))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    gates = 4

    def step(self, given: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return lstm_step(given, *state, as_tensor(self.recurrent), self.units)

    def first_state(self, x: Tensor) -> tuple[Tensor, Tensor]:
        start = super().first_state(x)
        return start, start

    def checked(self, state: Any) -> tuple[Tensor, Tensor]:
        if not isinstance(state, (tuple, list)) or len(state) != 2:
            raise ArgumentError(f"{self!r}: the state must be a pair (h, c), got {type(state).__name__}")
        return super().checked(state[0]), super().checked(state[1])

    def first_bias(self, shape: Sizes, dtype: DTypeLike) -> Tensor:
        forget = (arange(shape[0]) // self.units == 1).astype(dtype)
        return self.bias_initializer(shape, dtype) + forget


class GRUCell(Cell):
    """One step of a gated recurrent unit: x (batch, features) and h (batch, units) to the next h (Cho et al. 2014).

    The gates stand in the weights in the order reset, update, candidate (see `ll.nn.gru_cell`).

    >>> import limelight as ll
    >>> cell = ll.nn.GRUCell(4)
    >>> cell(ll.ones((2, 3)), cell(ll.ones((2, 3)))).shape
    (2, 4)
    """

    gates = 3

    def step(self, given: Tensor, state: Tensor) -> Tensor:
        return gru_step(given, state, as_tensor(self.recurrent), self.units)


class Recurrent(Layer):
    """A cell applied along the time axis of sequences (batch, time, features).

    Returns the last output, (batch, units), or with `return_sequences` all of them, (batch, time, units); with
    `return_state` the pair of that and the last state, which a later call takes as `state`.

    Where the number of steps is known they are unrolled: the graph of a staged call has each of them. With
    `unroll=False`, and where it is unknown, they are an `ll.scan`: a small graph for any number of steps, which is
    traced and differentiated in no more time than one step; forward as fast, its gradient takes about twice as long.
    """

    form = _SEQUENCE
    rank = 3
    cell_type: type[Cell]

    def __init__(
        self,
        units: int,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        unroll: bool | None = None,
        dtype: DTypeLike = "float32",
        kernel_initializer: str | Initializer = "glorot_uniform",
        recurrent_initializer: str | Initializer = "orthogonal",
        bias_initializer: str | Initializer = "zeros",
    ) -> None:
        self.units = checked_size(type(self).__name__, "units", units)
        self.return_sequences = checked_flag(type(self).__name__, "return_sequences", return_sequences)
        self.return_state = checked_flag(type(self).__name__, "return_state", return_state)
        self.unroll = unroll if unroll is None else checked_flag(type(self).__name__, "unroll", unroll)
        self.dtype = dtype
        self.cell = self.cell_type(
            units,
            dtype=dtype,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
        )

    def build(self, features: int) -> None:
        self.cell.build(features)
        self.cell.features = features

    def call(self, x: TensorLike, state: Any = None) -> Any:
        x = floating(repr(self), self.ready(x)).astype(self.dtype)
        state = self.cell.first_state(x.sum(axis=1)) if state is None else self.cell.checked(state)
        if x.shape[1] is None or self.unroll is False:
            y, state = self._scanned(x, state)
        else:
            y, state = self._unrolled(x, state)
        return (y, state) if self.return_state else y

    def _unrolled(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        outputs = []
        for given in unstack(self.cell.given(x), axis=1):  # [:, t] has a gradient as large as all
            state = self.cell.step(given, state)
            outputs.append(_output(state))
        if not self.return_sequences:
            return _output(state), state
        return stack(outputs, axis=1) if outputs else _zeros(x, self.units, self.dtype), state

    def _scanned(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        def step(state: Any, given: Tensor) -> tuple[Any, Tensor | None]:
            state = self.cell.step(given, state)
            return state, _output(state) if self.return_sequences else None

        state, outputs = scan(step, state, self.cell.given(x).transpose((1, 0, 2)))
        return _output(state) if outputs is None else outputs.transpose((1, 0, 2)), state


class LSTM(Recurrent):
    """A long short-term memory over sequences: (batch, time, features) to (batch, units), the last output.

    With `return_sequences` all outputs, (batch, time, units); with `return_state` a pair, the second of which is the
    last (h, c) and may be handed to a later call as `state`. The weights are those of an `LSTMCell`. Steps are unrolled
    where their number is known; see `unroll` in `Recurrent`.

    >>> import limelight as ll
    >>> layer = ll.nn.LSTM(4, return_sequences=True, return_state=True)
    >>> y, (h, c) = layer(ll.ones((2, 7, 3)))
    >>> y.shape, h.shape, bool((y[:, -1] == h).all())
    ((2, 7, 4), (2, 4), True)
    """

    cell_type = LSTMCell


class GRU(Recurrent):
    """Gated recurrent units over sequences: (batch, time, features) to (batch, units), the last output.

    With `return_sequences` all outputs, (batch, time, units); with `return_state` a pair, the second of which is the
    last h and may be handed to a later call as `state`. The weights are those of a `GRUCell`.

    >>> import limelight as ll
    >>> ll.nn.GRU(4)(ll.ones((2, 7, 3))).shape
    (2, 4)
    """

    cell_type = GRUCell


def _output(state: Any) -> Tensor:
    """What a cell's step shows: the state itself, or its first part."""
    shown: Tensor = state[0] if isinstance(state, tuple) else state
    return shown


def _zeros(x: Tensor, units: int, dtype: DTypeLike) -> Tensor:
    """Zeros of shape (*x.shape[:-1], units), whose known sizes stay known."""
    sizes = [n for n in x.shape[:-1] if n is not None]
    if len(sizes) == x.ndim - 1:
        return zeros((*sizes, units), dtype=dtype)
    return zeros_like(x.sum(axis=-1, keepdims=True), dtype=dtype) + zeros((units,), dtype=dtype)
