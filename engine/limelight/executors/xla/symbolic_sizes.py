"""Vectors of sizes among which are symbolic dimensions of JAX, as arrays of Python objects.

`jax.export` knows a size of None as a symbol, and takes symbols wherever a shape is given: but no traced array, which
is what `jnp.asarray(x.shape)` makes of them. So what computes sizes from sizes does so on the symbols, with NumPy's
functions over objects, and only what needs their values gets a traced array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core.index_expression import filled
from limelight.core.op import get
from limelight.graph.ir import Node

_DYNAMIC: Final = "_dynamic"
"""How the names of ops end that are given a shape as their last input (`ops._given_shape`)."""
_KEPT: Final = frozenset((
    "add", "concat", "expand_dims", "identity", "multiply", "pack_indices", "reshape", "slice", "squeeze", "stack",
    "subtract",
))  # fmt: skip
"""Ops that make sizes of sizes."""


def is_symbolic(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == object


def sizes_of(x: Any) -> Any:
    """The shape of an array: numbers where all are known, else objects."""
    known = all(isinstance(n, int) for n in x.shape)
    return np.asarray(x.shape, np.int64) if known else np.asarray(x.shape, object)


def value_of(x: Any) -> Any:
    """Symbolic sizes as a traced array, anything else as it is."""
    if not is_symbolic(x):
        return x
    import jax.numpy as jnp  # noqa: PLC0415  # JAX is imported when something is exported

    return jnp.asarray(x.tolist(), np.int64)


def results_of_sizes(node: Node, inputs: Sequence[Any]) -> Sequence[Any] | None:
    """What a node makes of symbolic sizes among its inputs; None where it needs their values."""
    name = node.op.name
    if name == "dynamic_slice" and is_symbolic(inputs[1]):
        return (value_of(inputs[0])[filled(node.params[0], inputs[1])],)
    if name.startswith("dynamic_slice_scatter") and is_symbolic(inputs[1]):
        shape = tuple(inputs[2]) if name.endswith(_DYNAMIC) else node.params[-1]
        return (_placed(value_of(inputs[0]), filled(node.params[0], inputs[1]), shape),)
    if name.endswith(_DYNAMIC) and is_symbolic(inputs[-1]):
        kernel = get(name.removesuffix(_DYNAMIC)).kernel_on("jax")
        return (kernel(*map(value_of, inputs[:-1]), *node.params[:-1], tuple(inputs[-1])),)
    if not all(isinstance(x, (np.ndarray, np.generic)) for x in inputs):
        return None
    if name == "astype" and np.issubdtype(node.params[0], np.integer):
        return inputs
    if name == "broadcast_sizes":
        from jax.numpy import broadcast_shapes  # noqa: PLC0415  # the same

        return (np.asarray(broadcast_shapes(*map(tuple, inputs)), object),)
    if name not in _KEPT:
        return None
    return (np.asarray(node.op.numpy_kernel(*inputs, *node.params), object),)


def _placed(x: Any, key: Any, shape: Sequence[Any]) -> Any:
    """Zeros with `x` at the key."""
    import jax.numpy as jnp  # noqa: PLC0415  # imported when something is exported

    return jnp.zeros(shape, x.dtype).at[key].set(x)
