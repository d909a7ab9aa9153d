"""Control flow as that of XLA: `cond` and `switch` as `lax.switch`, `while_loop` and `scan` as their namesakes.

Branches and bodies close over what they capture. What a loop carries keeps its shape and dtype from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from limelight.export.to_stablehlo.graph_lowering import GraphLowering
from limelight.graph.ir import FunctionLike, Node

Arrays = Sequence[Any]


def _run(lowering: GraphLowering, function: FunctionLike, inputs: Arrays) -> tuple[Any, ...]:
    """The results of a function as arrays of JAX, of just the dtypes that its graph says: `lax` compares them."""
    import jax.numpy as jnp  # noqa: PLC0415  # JAX is imported when something is exported

    results = lowering.run(function.graph, inputs)
    return tuple([jnp.asarray(x, v.spec.dtype) for x, v in zip(results, function.graph.outputs, strict=True)])  # type: ignore[union-attr]  # tensors: an object is refused by `lax`


def _cond(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    from jax import lax  # noqa: PLC0415

    predicate, *captures = inputs
    true, false = node.params[:2]
    results: tuple[Any, ...] = lax.cond(
        predicate, lambda: _run(lowering, true, captures), lambda: _run(lowering, false, captures)
    )
    return results


def _switch(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    from jax import lax  # noqa: PLC0415

    index, *captures = inputs
    branches = [lambda branch=branch: _run(lowering, branch, captures) for branch in node.params[0]]
    results: tuple[Any, ...] = lax.switch(index, branches)
    return results


def _while(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    import jax.numpy as jnp  # noqa: PLC0415
    from jax import lax  # noqa: PLC0415

    condition, body, n, limit = node.params[:4]
    captures = tuple(inputs[n:])
    most = 2**31 - 1 if limit is None else limit
    specs = [value.spec for value in node.outputs]

    def goes_on(state: tuple[Any, ...]) -> Any:
        holds = _run(lowering, condition, (*state[1:], *captures))[0]
        return holds if limit is None else (state[0] < most) & holds

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        return (state[0] + 1, *_run(lowering, body, (*state[1:], *captures)))

    first = [jnp.asarray(x, spec.dtype) for x, spec in zip(inputs[:n], specs, strict=True)]  # type: ignore[union-attr]  # tensors
    results: tuple[Any, ...] = lax.while_loop(goes_on, step, (jnp.int32(0), *first))
    return results[1:]


def _scan(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    import jax.numpy as jnp  # noqa: PLC0415
    from jax import lax  # noqa: PLC0415

    body, n, m, length, reverse = node.params[:5]
    captures = tuple(inputs[n + m :])
    specs = [value.spec for value in node.outputs[:n]]

    def step(carry: tuple[Any, ...], rows: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        results = _run(lowering, body, (*carry, *rows, *captures))
        return results[:n], results[n:]

    first = tuple([jnp.asarray(x, spec.dtype) for x, spec in zip(inputs[:n], specs, strict=True)])  # type: ignore[union-attr]  # tensors
    rows = tuple([jnp.asarray(x) for x in inputs[n : n + m]])
    carry, stacks = lax.scan(step, first, rows, length=None if m else length, reverse=reverse)
    return (*carry, *stacks)


CONTROL: Final[Mapping[str, Callable[[GraphLowering, Node, Arrays], tuple[Any, ...]]]] = {
    "cond": _cond,
    "cond_forward": _cond,
    "switch": _switch,
    "switch_forward": _switch,
    "while_loop": _while,
    "while_detached": _while,
    "scan": _scan,
    "scan_forward": _scan,
}
"""How ops over functions are lowered; their variants for tapes compute the same."""
