"""One step in time of recurrent networks: `lstm_cell`, `gru_cell`.

A GRU applies its reset gate before the product with the recurrent weights, as in the paper.
"""

from __future__ import annotations

from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError

__all__ = ["gru_cell", "lstm_cell"]


def lstm_cell(
    x: TensorLike,
    h: TensorLike,
    c: TensorLike,
    kernel: TensorLike,
    recurrent: TensorLike,
    bias: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates); floating.

    The gates stand side by side in the weights: input, forget, candidate, output, each `units` wide.

    Args:
        x: (..., features), what comes in.
        h: (..., units), the output of the step before.
        c: (..., units), its memory.
        kernel: (features, 4 * units).
        recurrent: (units, 4 * units).
        bias: (4 * units,), or None.

    Returns:
        The next `h` and `c`: c' = forget * c + input * candidate, h' = output * tanh(c').

    Raises ShapeError when sizes do not fit.

    >>> import limelight as ll
    >>> h, c = ll.nn.lstm_cell(ll.ones((1, 2)), ll.zeros((1, 1)), ll.ones((1, 1)), ll.zeros((2, 4)), ll.zeros((1, 4)))
    >>> c.tolist()
    [[0.5]]
    """
    x, h, c = as_tensor(x), as_tensor(h), as_tensor(c)
    kernel, recurrent = as_tensor(kernel), as_tensor(recurrent)
    n = _units("lstm_cell", x, h, kernel, recurrent, 4)
    return lstm_step(x @ kernel if bias is None else x @ kernel + bias, h, c, recurrent, n)


def lstm_step(given: Tensor, h: Tensor, c: Tensor, recurrent: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """What is left of `lstm_cell` once the inputs are multiplied, which can be done for all times at once.

    Args:
        given: x @ kernel + bias, (batch, 4 units).
        h: the state that is shown, (batch, units).
        c: the memory, (batch, units).
        recurrent: the weights of `h`, (units, 4 units).
        n: the number of units.

    Returns:
        The next `h` and `c`.
    """
    gates = given + h @ recurrent
    enters, stays, leaves = (gates[..., i * n : (i + 1) * n].sigmoid() for i in (0, 1, 3))
    c = stays * c + enters * gates[..., 2 * n : 3 * n].tanh()
    return leaves * c.tanh(), c


def gru_cell(
    x: TensorLike, h: TensorLike, kernel: TensorLike, recurrent: TensorLike, bias: TensorLike | None = None
) -> Tensor:
    """One step of a gated recurrent unit (Cho et al. 2014); floating.

    The gates stand side by side in the weights: reset, update, candidate, each `units` wide. The reset gate applies
    to `h` before the product with the recurrent weights, as in the paper.

    Args:
        x: (..., features), what comes in.
        h: (..., units), the output of the step before.
        kernel: (features, 3 * units).
        recurrent: (units, 3 * units).
        bias: (3 * units,), or None.

    Returns:
        The next `h`: update * h + (1 - update) * candidate.

    Raises ShapeError when sizes do not fit.

    >>> import limelight as ll
    >>> ll.nn.gru_cell(ll.ones((1, 2)), ll.ones((1, 1)), ll.zeros((2, 3)), ll.zeros((1, 3))).tolist()
    [[0.5]]
    """
    x, h, kernel, recurrent = as_tensor(x), as_tensor(h), as_tensor(kernel), as_tensor(recurrent)
    n = _units("gru_cell", x, h, kernel, recurrent, 3)
    return gru_step(x @ kernel if bias is None else x @ kernel + bias, h, recurrent, n)


def gru_step(given: Tensor, h: Tensor, recurrent: Tensor, n: int) -> Tensor:
    """What is left of `gru_cell` once the inputs are multiplied.

    Args:
        given: x @ kernel + bias, (batch, 3 units).
        h: the state, (batch, units).
        recurrent: the weights of `h`, (units, 3 units).
        n: the number of units.

    Returns:
        The next state.
    """
    gates = (given[..., : 2 * n] + h @ recurrent[:, : 2 * n]).sigmoid()
    reset, update = gates[..., :n], gates[..., n:]
    candidate = (given[..., 2 * n :] + (reset * h) @ recurrent[:, 2 * n :]).tanh()
    return update * h + (1 - update) * candidate


def _units(name: str, x: Tensor, h: Tensor, kernel: Tensor, recurrent: Tensor, gates: int) -> int:
    """The number of units, which the recurrent weights tell. Raises ShapeError when the weights do not fit together."""
    units = recurrent.shape[0] if recurrent.ndim == 2 else None
    fits = (
        kernel.ndim == 2
        and units is not None
        and all(
            actual is None or actual == wanted
            for actual, wanted in ((recurrent.shape[1], gates * units), (kernel.shape[1], gates * units))
        )
    )
    if not fits or units is None:
        raise ShapeError(
            f"{name}: weights must be (features, {gates} * units) and (units, {gates} * units), "
            f"got {kernel.spec} and {recurrent.spec}"
        )
    for what, tensor, size, its in (("x", x, kernel.shape[0], "kernel"), ("h", h, units, "recurrent weights")):
        if not tensor.ndim or (None not in (tensor.shape[-1], size) and tensor.shape[-1] != size):
            raise ShapeError(
                f"{name}: the last axis of {what} must have size {size}, as the first of the {its}; got {tensor.spec}"
            )
    return units
