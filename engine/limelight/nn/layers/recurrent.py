"""Recurrent layers: LSTM, GRU and a simple RNN, as cells for one step in time and as layers over sequences.

Steps are unrolled where their number is known: the plan of a straight line is fastest. The product of the inputs with
their weights is one for all steps, taken apart by `unstack`, since the gradient of `x[:, t]` is as large as `x`, at
each step. Elsewhere they are a scan: forward in the same time, forward and gradient in twice the time, traced in the
time of one step (100 steps of an LSTM: 16 ms for the first call instead of 230 to 300).
"""

from __future__ import annotations

from typing import Any, Final

from limelight.control_flow.scan import scan
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ShapeError, undefined_method
from limelight.nn import initializers
from limelight.nn.functional._operands import floating
from limelight.nn.functional.recurrence import gru_step, lstm_step
from limelight.nn.initializers import Initializer, Sizes
from limelight.nn.layers.constructor_checks import checked_dtype, checked_flag, checked_size
from limelight.nn.layers.layer import Layer
from limelight.ops.create.creation import arange, zeros, zeros_like
from limelight.ops.shape.concat import concat, stack, unstack

_SEQUENCE: Final = "(batch, time, features)"


class Cell(Layer):
    """Base class of LSTMCell, GRUCell and RNNCell: weights for `gates` gates side by side, a state that begins at 0.

    Args:
        units: the size of the state.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state, gate by gate.
        bias_initializer: the same for the bias.
    """

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
        self.dtype = checked_dtype(type(self).__name__, dtype)
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
        """The next state.

        Args:
            x: (batch, features), floating.
            state: (batch, units), for an LSTM a pair (h, c) of these; by default zeros.

        Returns:
            The next state, in the form of `state` and the cell's dtype. The output is the state, or its first part h.

        Raises:
            ShapeError: `x` or the state has another shape.
            ArgumentError: the state of an LSTM is no pair.
            DTypeError: `x` is not floating.
        """
        x = floating(repr(self), self.ready(x)).astype(self.dtype)
        return self.step(self.given(x), self.first_state(x) if state is None else self.checked(state))

    def given(self, x: Tensor) -> Tensor:
        """What the inputs (..., features) add to the gates: the part of a step that needs no state."""
        return x @ self.kernel + self.bias

    def step(self, given: Tensor, state: Any) -> Any:
        """The next state."""
        error = undefined_method(self, "step(self, given, state)")
        raise error

    def first_state(self, x: Tensor) -> Any:
        """The state before the first step: zeros of shape (batch, units), for `x` of shape (batch, features)."""
        return _zeros(x, self.units, self.dtype)

    def checked(self, state: Any) -> Any:
        """A state that was handed in, in the cell's dtype.

        Raises:
            ShapeError: it does not have the shape (batch, units).
            ArgumentError: that of an LSTM is no pair.
        """
        h = as_tensor(state)
        if h.ndim != 2 or h.shape[-1] not in (None, self.units):
            raise ShapeError(f"{self!r}: a state must have shape (batch, {self.units}), got {h.spec}")
        return h.astype(self.dtype)

    def _gate_by_gate(self, shape: Sizes, dtype: DTypeLike) -> Tensor:
        square = (self.units, self.units)
        return concat([self.recurrent_initializer(square, dtype) for _ in range(self.gates)], axis=1)


class LSTMCell(Cell):
    """One step of a long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates).

    The gates stand in the weights in the order input, forget, candidate, output (see `ll.nn.lstm_cell`). The bias of
    the forget gate begins at 1, so that memory is kept at first (Jozefowicz et al. 2015). The weights, of shapes
    (features, 4 units), (units, 4 units) and (4 units,), are made on the first call.

    Args:
        units: the size of the output h and of the memory c.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: of the input's weights: a function of a shape and a dtype, or the name of one in
            `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state, gate by gate.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above.

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
    """One step of a gated recurrent unit (Cho et al. 2014).

    The gates stand in the weights in the order reset, update, candidate (see `ll.nn.gru_cell`). The weights, of shapes
    (features, 3 units), (units, 3 units) and (3 units,), are made on the first call.

    Args:
        units: the size of the state h, which is also the output.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: of the input's weights: a function of a shape and a dtype, or the name of one in
            `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state, gate by gate.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> cell = ll.nn.GRUCell(4)
    >>> cell(ll.ones((2, 3)), cell(ll.ones((2, 3)))).shape
    (2, 4)
    """

    gates = 3

    def step(self, given: Tensor, state: Tensor) -> Tensor:
        return gru_step(given, state, as_tensor(self.recurrent), self.units)


class RNNCell(Cell):
    """One step of a simple recurrent network (Elman 1990): h' = tanh(x kernel + h recurrent + bias).

    The weights, of shapes (features, units), (units, units) and (units,), are made on the first call.

    Args:
        units: the size of the state h, which is also the output.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: of the input's weights: a function of a shape and a dtype, or the name of one in
            `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> cell = ll.nn.RNNCell(4)
    >>> cell(ll.ones((2, 3)), cell(ll.ones((2, 3)))).shape
    (2, 4)
    """

    gates = 1

    def step(self, given: Tensor, state: Tensor) -> Tensor:
        return (given + state @ as_tensor(self.recurrent)).tanh()


class Recurrent(Layer):
    """Base class of LSTM, GRU and RNN: a cell applied along the time axis of sequences (batch, time, features).

    Where the number of steps is known they are unrolled: the graph of a staged call has each of them. With
    `unroll=False`, and where it is unknown, they are an `ll.scan`: a small graph for any number of steps, which is
    traced and differentiated in no more time than one step; forward as fast, its gradient takes about twice as long.

    Args:
        units: the size of the state.
        return_sequences: whether all outputs are returned, or the last one. False.
        return_state: whether the last state is returned as well. False.
        unroll: False for a scan in any case; by default steps are unrolled where their number is known.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state, gate by gate.
        bias_initializer: the same for the bias.
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
        self.dtype = checked_dtype(type(self).__name__, dtype)
        self.cell = self.cell_type(
            units,
            dtype=dtype,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
        )

    def build(self, features: int) -> None:
        self.cell.build(features)
        self.cell._features = features

    def call(self, x: TensorLike, state: Any = None) -> Any:
        """The outputs of the cell for sequences.

        Args:
            x: (batch, time, features), floating.
            state: the first state, (batch, units), for an LSTM a pair (h, c) of these; by default zeros.

        Returns:
            The last output, (batch, units), or with `return_sequences` all of them, (batch, time, units), in the
            layer's dtype; with `return_state` the pair of that and the last state, which a later call takes as `state`.

        Raises:
            ShapeError: `x` or the state has another shape.
            ArgumentError: the state of an LSTM is no pair.
            DTypeError: `x` is not floating.
        """
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
    """A long short-term memory over sequences (Hochreiter and Schmidhuber 1997), with the weights of an `LSTMCell`.

    Steps are unrolled where their number is known, and a scan otherwise: in a staged function a small graph for any
    number of steps, whose gradient takes about twice as long.

    Args:
        units: the size of the output h and of the memory c.
        return_sequences: whether all outputs are returned, or the last one. False.
        return_state: whether the last state (h, c) is returned as well. False.
        unroll: False for a scan in any case; by default steps are unrolled where their number is known.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: of the input's weights: a function of a shape and a dtype, or the name of one in
            `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state, gate by gate.
        bias_initializer: the same for the bias, to which 1 is added for the forget gate.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> layer = ll.nn.LSTM(4, return_sequences=True, return_state=True)
    >>> y, (h, c) = layer(ll.ones((2, 7, 3)))
    >>> y.shape, h.shape, bool((y[:, -1] == h).all())
    ((2, 7, 4), (2, 4), True)
    """

    cell_type = LSTMCell


class GRU(Recurrent):
    """Gated recurrent units over sequences (Cho et al. 2014), with the weights of a `GRUCell`.

    Steps are unrolled where their number is known, and a scan otherwise: in a staged function a small graph for any
    number of steps, whose gradient takes about twice as long.

    Args:
        units: the size of the state h, which is also the output.
        return_sequences: whether all outputs are returned, or the last one. False.
        return_state: whether the last state is returned as well. False.
        unroll: False for a scan in any case; by default steps are unrolled where their number is known.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: of the input's weights: a function of a shape and a dtype, or the name of one in
            `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state, gate by gate.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.GRU(4)(ll.ones((2, 7, 3))).shape
    (2, 4)
    """

    cell_type = GRUCell


class RNN(Recurrent):
    """A simple recurrent network over sequences (Elman 1990), with the weights of an `RNNCell`.

    Steps are unrolled where their number is known, and a scan otherwise. It forgets within tens of steps, where an LSTM
    or a GRU does not.

    Args:
        units: the size of the state h, which is also the output.
        return_sequences: whether all outputs are returned, or the last one. False.
        return_state: whether the last state is returned as well. False.
        unroll: False for a scan in any case; by default steps are unrolled where their number is known.
        dtype: the dtype of weights and state, floating; float32.
        kernel_initializer: of the input's weights: a function of a shape and a dtype, or the name of one in
            `ll.nn.initializers`.
        recurrent_initializer: the same for the weights of the state.
        bias_initializer: the same for the bias.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.RNN(4)(ll.ones((2, 7, 3))).shape
    (2, 4)
    """

    cell_type = RNNCell


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
