"""Control flow as that of XLA: `cond` and `switch` as `lax.switch`, `while_loop` and `scan` as their namesakes.

Branches and bodies close over what they capture. What a loop carries keeps its shape and dtype from step to step. A
variable that a body assigns is carried along, and so is whether a kernel has met a value that it refuses
(`core.value_checks`), where whoever makes the program asks for that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from limelight.core import value_checks
from limelight.executors.xla.graph_lowering import Control, GraphLowering, VariableCell, array_of
from limelight.executors.xla.symbolic_sizes import value_of
from limelight.graph.effects import effects_of
from limelight.graph.ir import FunctionLike, Node

Arrays = Sequence[Any]


class _State:
    """What bodies of a node change besides their results: variables that they assign, and the flag of refused values.

    Args:
        lowering: lowers the bodies.
        node: the node of control flow.
        inputs: its operands.
    """

    def __init__(self, lowering: GraphLowering, node: Node, inputs: Arrays) -> None:
        writes = effects_of(node).writes
        written = [x for value, x in zip(node.inputs, inputs, strict=True) if value in writes]
        self._lowering = lowering
        self._cells: list[VariableCell] = list({id(x): x for x in written if isinstance(x, VariableCell)}.values())
        self._asks = value_checks.is_kept()
        self._met = False

    def first(self) -> tuple[Any, ...]:
        """The state before the node."""
        import jax.numpy as jnp  # noqa: PLC0415  # JAX is imported when something is lowered

        flag = (jnp.asarray(False),) if self._asks else ()
        return (*[jnp.asarray(cell.array) for cell in self._cells], *flag)

    def run(
        self, function: FunctionLike, inputs: Arrays, state: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The results of a body and the state after it: arrays of JAX, of just the dtypes that its graph says."""
        import jax.numpy as jnp  # noqa: PLC0415  # JAX is imported when something is lowered

        fresh = {id(cell): VariableCell(x) for cell, x in zip(self._cells, state, strict=False)}
        own = [fresh.get(id(x), x) for x in inputs]
        if not self._asks:
            results = self._lowering.run(function.graph, own)
            flag: tuple[Any, ...] = ()
        else:
            with value_checks.keeps() as questions:
                results = self._lowering.run(function.graph, own)
            self._met = self._met or bool(questions)
            flag = (functools.reduce(jnp.logical_or, questions, state[-1]),)
        arrays = [array_of(x, value) for x, value in zip(results, function.graph.outputs, strict=True)]
        after = [jnp.asarray(x.array, y.dtype) for x, y in zip(fresh.values(), state, strict=False)]
        return tuple(arrays), (*after, *flag)

    def goes_on(self, state: tuple[Any, ...]) -> Any:
        """Whether a loop may go on: not where a value has been refused."""
        return ~state[-1] if self._asks else True

    def take(self, state: Arrays) -> None:
        """Takes up the state after the node."""
        for cell, x in zip(self._cells, state, strict=False):
            cell.set(x)
        if self._met:
            value_checks.ask(state[-1])


def _cond(lowering: GraphLowering, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
    from jax import lax  # noqa: PLC0415

    predicate, *captures = inputs
    state = _State(lowering, node, inputs)
    true, false = _alike(state, node.params[:2], captures)
    results, after = lax.cond(predicate.reshape(()), true, false)
    state.take(after)
    return tuple(results)


def _switch(lowering: GraphLowering, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
    from jax import lax  # noqa: PLC0415

    index, *captures = inputs
    branches, state = node.params[0], _State(lowering, node, inputs)
    if value_checks.any_wrong(index, lambda: (index < 0) | (index >= len(branches))):
        raise ValueError(f"there is no branch {index}")
    results, after = lax.switch(index.reshape(()), _alike(state, branches, captures))
    state.take(after)
    return tuple(results)


def _alike(state: _State, branches: Sequence[FunctionLike], captures: Arrays) -> list[Callable[[], Any]]:
    """Branches that return the same shapes, as `lax` wants them.

    What one branch saves for its gradient the others return empty (their `blanks`): here as zeros of its shape.
    """
    import jax  # noqa: PLC0415  # imported when something is lowered
    import jax.numpy as jnp  # noqa: PLC0415

    before = state.first()
    runs = [functools.partial(state.run, branch, captures, before) for branch in branches]
    blanks: list[frozenset[int]] = [getattr(branch, "blanks", frozenset()) for branch in branches]
    if not any(blanks):
        return list(runs)
    types = [jax.eval_shape(run)[0] for run in runs]
    full = [next((t[i] for t, b in zip(types, blanks, strict=True) if i not in b), None) for i in range(len(types[0]))]

    def filled(run: Callable[[], Any], empty: frozenset[int]) -> Any:
        results, after = run()
        return tuple([
            jnp.zeros(like.shape, like.dtype) if i in empty and like is not None else x
            for i, (x, like) in enumerate(zip(results, full, strict=True))
        ]), after  # fmt: skip

    return [functools.partial(filled, run, empty) for run, empty in zip(runs, blanks, strict=True)]


def _while(lowering: GraphLowering, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
    """Whether it goes on is computed before the loop and by each step: a condition may assign, or refuse a value."""
    import jax.numpy as jnp  # noqa: PLC0415  # imported when something is lowered
    from jax import lax  # noqa: PLC0415

    condition, body, n, limit = node.params[:4]
    captures, outer = tuple(inputs[n:]), _State(lowering, node, inputs)
    specs: list[Any] = [value.spec for value in node.outputs]

    def with_condition(i: Any, values: tuple[Any, ...], state: tuple[Any, ...]) -> tuple[Any, ...]:
        (holds,), state = outer.run(condition, (*values, *captures), state)
        return i, holds.reshape(()), values, state

    def goes_on(carried: tuple[Any, ...]) -> Any:
        i, holds, _, state = carried
        return holds & outer.goes_on(state) & (True if limit is None else i < limit)

    def step(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        i, _, values, state = carried
        values, state = outer.run(body, (*values, *captures), state)
        return with_condition(i + 1, values, state)

    first = tuple([jnp.asarray(value_of(x), spec.dtype) for x, spec in zip(inputs[:n], specs, strict=True)])
    results = lax.while_loop(goes_on, step, with_condition(jnp.int64(0), first, outer.first()))
    outer.take(results[3])
    return tuple(results[2])


def _scan(lowering: GraphLowering, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
    import jax.numpy as jnp  # noqa: PLC0415  # imported when something is lowered
    from jax import lax  # noqa: PLC0415

    body, n, m, length, reverse = node.params[:5]
    captures, outer = tuple(inputs[n + m :]), _State(lowering, node, inputs)
    specs: list[Any] = [value.spec for value in node.outputs[:n]]

    def step(carried: tuple[Any, ...], rows: tuple[Any, ...]) -> tuple[Any, ...]:
        values, state = carried
        results, state = outer.run(body, (*values, *rows, *captures), state)
        return (results[:n], state), results[n:]

    first = tuple([jnp.asarray(value_of(x), spec.dtype) for x, spec in zip(inputs[:n], specs, strict=True)])
    rows = tuple([jnp.asarray(value_of(x)) for x in inputs[n : n + m]])
    (carry, state), stacks = lax.scan(step, (first, outer.first()), rows, length=None if m else length, reverse=reverse)
    outer.take(state)
    return (*carry, *stacks)


CONTROL: Final[Mapping[str, Control]] = {
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
