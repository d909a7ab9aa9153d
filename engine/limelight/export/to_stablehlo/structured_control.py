"""Control flow as that of XLA: `cond` and `switch` as `lax.switch`, `while_loop` and `scan` as their namesakes.

Branches and bodies close over what they capture. What a loop carries keeps its shape and dtype from step to step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from limelight.export.to_stablehlo.graph_lowering import GraphLowering
from limelight.export.to_stablehlo.symbolic_sizes import value_of
from limelight.graph.ir import FunctionLike, Node

Arrays = Sequence[Any]


def _run(lowering: GraphLowering, function: FunctionLike, inputs: Arrays) -> tuple[Any, ...]:
    """The results of a function as arrays of JAX, of just the dtypes that its graph says: `lax` compares them."""
    import jax.numpy as jnp  # noqa: PLC0415  # JAX is imported when something is exported

    results = lowering.run(function.graph, inputs)
    return tuple(
        [
            jnp.asarray(value_of(x), v.spec.dtype)  # type: ignore[union-attr]  # tensors: an object is refused by `lax`
            for x, v in zip(results, function.graph.outputs, strict=True)
        ]
    )


def _cond(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    from jax import lax  # noqa: PLC0415

    predicate, *captures = inputs
    true, false = _alike(lowering, node.params[:2], captures)
    results: tuple[Any, ...] = lax.cond(predicate, true, false)
    return results


def _switch(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    from jax import lax  # noqa: PLC0415

    index, *captures = inputs
    results: tuple[Any, ...] = lax.switch(index, _alike(lowering, node.params[0], captures))
    return results


def _alike(lowering: GraphLowering, branches: Sequence[FunctionLike], captures: Arrays) -> list[Callable[[], Any]]:
    """Branches that return the same shapes, as `lax` wants them.

    What one branch saves for its gradient the others return empty (their `blanks`): here as zeros of its shape.
    """
    import jax  # noqa: PLC0415  # imported when something is exported
    import jax.numpy as jnp  # noqa: PLC0415  # imported when something is exported

    runs = [functools.partial(_run, lowering, branch, captures) for branch in branches]
    blanks: list[frozenset[int]] = [getattr(branch, "blanks", frozenset()) for branch in branches]
    if not any(blanks):
        return list(runs)
    types = [jax.eval_shape(run) for run in runs]
    full = [next((t[i] for t, b in zip(types, blanks, strict=True) if i not in b), None) for i in range(len(types[0]))]

    def filled(run: Callable[[], Any], empty: frozenset[int]) -> tuple[Any, ...]:
        return tuple([
            jnp.zeros(like.shape, like.dtype) if i in empty and like is not None else x
            for i, (x, like) in enumerate(zip(run(), full, strict=True))
        ])  # fmt: skip

    return [functools.partial(filled, run, empty) for run, empty in zip(runs, blanks, strict=True)]


def _while(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    import jax.numpy as jnp  # noqa: PLC0415  # imported when something is exported
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

    first = [jnp.asarray(value_of(x), spec.dtype) for x, spec in zip(inputs[:n], specs, strict=True)]  # type: ignore[union-attr]  # tensors
    results: tuple[Any, ...] = lax.while_loop(goes_on, step, (jnp.int32(0), *first))
    return results[1:]


def _scan(lowering: GraphLowering, node: Node, inputs: Arrays) -> tuple[Any, ...]:
    import jax.numpy as jnp  # noqa: PLC0415  # imported when something is exported
    from jax import lax  # noqa: PLC0415

    body, n, m, length, reverse = node.params[:5]
    captures = tuple(inputs[n + m :])
    specs = [value.spec for value in node.outputs[:n]]

    def step(carry: tuple[Any, ...], rows: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        results = _run(lowering, body, (*carry, *rows, *captures))
        return results[:n], results[n:]

    first = tuple([jnp.asarray(value_of(x), spec.dtype) for x, spec in zip(inputs[:n], specs, strict=True)])  # type: ignore[union-attr]  # tensors
    rows = tuple([jnp.asarray(value_of(x)) for x in inputs[n : n + m]])
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
