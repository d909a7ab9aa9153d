"""The operand as it is: `identity`, and `stop_gradient`, which cuts it off from gradients."""

from __future__ import annotations

from limelight.core.eager import entry_point
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike
from limelight.ops._shape_rules import same

__all__ = ["identity", "stop_gradient"]

# identity

_identity = entry_point(defop(
    "identity",
    inputs="x",
    infer=same,
    kernel=lambda xp, x: x,
    vjp={"x": lambda g: g},
    linear="x",
    maths={"x": "x̄ = ȳ"},
    view=True,
))  # fmt: skip


def identity(x: TensorLike, /) -> Tensor:
    """`x` as a tensor of its own: a tape tells it from `x`, although both have the same data.

    >>> import limelight as ll
    >>> ll.identity(ll.constant(1.0)).item()
    1.0
    """
    return _identity(x)


# stop_gradient

_stop_gradient = entry_point(defop(
    "stop_gradient",
    inputs="x",
    infer=same,
    kernel=lambda xp, x: x,
    why_no_gradient="stop_gradient was asked to cut the connection",
    view=True,
))  # fmt: skip


def stop_gradient(x: TensorLike, /) -> Tensor:
    """`x`, but a constant to every gradient: what leads here is not connected.

    >>> import limelight as ll
    >>> x = ll.constant(2.0)
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * ll.stop_gradient(x)
    >>> tape.gradient(y, x).item()
    2.0
    """
    return _stop_gradient(x)
