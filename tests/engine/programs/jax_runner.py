"""Random programs (programs.py) as JAX runs them: Python's own control flow over `jax.numpy`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from programs import Instruction, Numpy

jax.config.update("jax_enable_x64", True)


def _like(x: Any, number: float) -> Any:
    return jnp.asarray(number, x.dtype)


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return jnp.sum(x, axis=axis, keepdims=keepdims, dtype="int32" if x.dtype == "int8" else x.dtype)


def _total(x: Any) -> Any:
    x = x.real if x.dtype.kind == "c" else x
    return _sum(x.astype("float32") if x.dtype == "bool" else x)


def _repeated(step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        for _ in range(5):
            x = step(x, w)
        return x

    return run


MEANING: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in ("tanh", "sin", "negative", "absolute", "square")},
    **{name: getattr(jnp, name) for name in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{name: getattr(jnp, name) for name in ("matmul", "greater", "real", "conj", "transpose", "reshape")},
    "root": lambda x: jnp.sqrt(jnp.abs(x) + _like(x, 1)),
    "scaled": lambda x, c: x * _like(x, c),
    "shifted": lambda x, c: _like(x, c) - x,
    "where": lambda x, y: jnp.where(x > y, x, y * _like(y, 2)),
    "sum": _sum,
    "max": lambda x, a, k: jnp.max(x, axis=a, keepdims=k),
    "total": _total,
    "plus_total": lambda y, x: y + _sum(x),
    "choose": jnp.where,
    "and": jnp.logical_and,
    "or": jnp.logical_or,
    "not": jnp.logical_not,
    "expand": jnp.expand_dims,
    "slice": lambda x, key: x[key],
    "concat": lambda x, a: jnp.concatenate([x, jnp.flip(x)], a),
    "cast": lambda x, d: x.astype(d),
    "stop": jax.lax.stop_gradient,
    "power": lambda x, n: jnp.power(x, _like(x, n)),
    "quarter": lambda x: x / _like(x, 4),
    "same": lambda x: x,
    "unrolled": _repeated(lambda x, w: jnp.tanh(x * w + w)),
    "network": _repeated(lambda x, w: jnp.tanh(x @ w)),
}


class Jax(Numpy):
    """Control flow is that of the run for NumPy: JAX follows Python."""

    stack = staticmethod(jnp.stack)

    def total(self, x: Any) -> Any:
        return _total(x)

    def meaning(self, op: str) -> Callable[..., Any]:
        return MEANING[op]


def values(body: Sequence[Instruction], outputs: Sequence[int], variables: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """What a program returns: arrays of JAX."""
    found = Jax(variables).body(body, inputs)
    return [found[i] for i in outputs]


def gradients(f: Callable[..., Any], inputs: Sequence[np.ndarray], floats: Sequence[int]) -> list[np.ndarray]:
    """Of the sum of all floating outputs of `f`, with respect to those inputs that `floats` counts."""

    def whole(*moved: Any) -> Any:
        given = [jnp.asarray(x) for x in inputs]
        for i, x in zip(floats, moved, strict=True):
            given[i] = x
        return sum((jnp.sum(y).astype("float64") for y in f(given) if y.dtype.kind == "f"), jnp.zeros((), "float64"))

    return [
        np.asarray(g) for g in jax.grad(whole, tuple(range(len(floats))))(*[jnp.asarray(inputs[i]) for i in floats])
    ]
