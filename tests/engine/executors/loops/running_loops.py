"""Runs programs of drawn_loops.py in one way or another, and counts what tables did of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from drawn_loops import DTYPES, INPUTS, VARIABLES

import limelight as ll
from limelight.executors import base
from limelight.executors.loops import open_loops, stateful_loops, stretch

Sizes = dict[str, int | None]


class Call(NamedTuple):
    """One call of a program.

    Args:
        sizes: of "N" and "M".
        seed: what its inputs are drawn from.
    """

    sizes: Sizes
    seed: int


def shape_of(shape: Any, sizes: Sizes) -> tuple[int | None, ...]:
    return tuple([sizes.get(n, n) for n in shape])


def inputs_of(call: Call) -> list[Any]:
    """Tensors, some in other orders of memory, or views of others."""
    random = np.random.default_rng(call.seed)
    is_plain = random.random() < 0.6
    tensors = []
    for shape, dtype in INPUTS.values():
        sizes = shape_of(shape, call.sizes)
        numbers = random.integers(-2, 6, sizes) if dtype == "i4" else random.standard_normal(sizes)
        array = np.asarray(numbers, dtype)
        way = 4 if is_plain else random.integers(5)
        if way == 0 and array.ndim > 1:
            tensors.append(ll.constant(np.asfortranarray(array)))
        elif way == 1 and array.ndim:
            tensors.append(ll.constant(np.repeat(array, 2, axis=0))[::2])
        elif way == 2 and array.ndim:
            tensors.append(ll.constant(array[::-1].copy())[::-1])
        elif way == 3 and array.ndim > 1:
            tensors.append(ll.transpose(ll.constant(array.T.copy())))
        else:
            tensors.append(ll.constant(array))
    return tensors


def copied(x: Any) -> Any:
    """The numbers, of which one NaN is like another."""
    array = np.array(x)
    return np.where(np.isnan(array), np.nan, array).astype(array.dtype) if array.dtype.kind == "f" else array


def bits(outcome: Any) -> list[bytes]:
    """Those of all numbers of a nest."""
    return [byte for x in outcome for byte in bits(x)] if isinstance(outcome, list) else [outcome.tobytes()]


def are_near(outcome: list[Any], other: list[Any]) -> bool:
    """Whether a staged outcome, the second one, is about the eager one: gradients are added up in another order there.

    Where it has more NaN nothing is said: what the branch not taken uses has zeros, not None (docs/design.md), and a
    zero times an infinite slope is NaN.
    """
    pairs = [(x, y) for mine, theirs in zip(outcome, other, strict=True) for x, y in zip(mine, theirs, strict=True)]
    if any(y.dtype.kind == "f" and np.isnan(y).sum() > np.isnan(x).sum() for x, y in pairs):
        return True
    return all(x.shape == y.shape and x.dtype == y.dtype and np.allclose(x, y, 1e-3, 1e-3, True) for x, y in pairs)


class State:
    """What programs assign and draw from."""

    def __init__(self) -> None:
        random = np.random.default_rng(5)
        arrays = {name: random.standard_normal(shape).astype(dtype) for name, (shape, dtype) in VARIABLES.items()}
        arrays["v3"] = np.asfortranarray(arrays["v3"])
        self.variables = {name: ll.Variable(array) for name, array in arrays.items()}
        self.generators = {f"g{i}": ll.random.Generator(i) for i in range(2)}
        ll.random.seed(3)

    def names(self) -> dict[str, Any]:
        return {**self.variables, **self.generators, "ll": ll}

    def now(self) -> list[Any]:
        generators = [*self.generators.values(), ll.random.default_generator()]
        return [copied(x) for x in self.variables.values()] + [np.array(g.state) for g in generators]


class Tables:
    """Counts the tables that are made, how often they ran, and how often the plan ran instead."""

    def __init__(self) -> None:
        self.made = 0
        self.runs = 0
        self.otherwise = 0
        self.instructions: Counter[str] = Counter()

    @contextmanager
    def counted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for module in (stretch, open_loops, stateful_loops):
                patch.setattr(module, "table", self._counting(module.table))
            yield

    def _counting(self, table: Any) -> Any:
        def counting(inputs: Any, results: Any, instructions: Any, otherwise: Any, *rest: Any) -> Any:
            def instead(*arrays: Any) -> Any:
                self.otherwise += 1
                return otherwise(*arrays)

            def run(*arrays: Any) -> Any:
                self.runs += 1
                return made(*arrays)

            self.instructions.update(type(one).__name__ for one in instructions)
            made = table(inputs, results, instructions, instead, *rest)
            self.made += 1
            return run

        return counting


def outcome(text: str, calls: list[Call], executor: str | None, unknown: bool, gradient: bool) -> list[list[Any]]:
    """What a program returns and leaves after each call, as arrays; for no executor it runs eagerly.

    Args:
        text: the program.
        calls: the calls.
        executor: its name.
        unknown: whether the sizes of inputs are unknown to the trace.
        gradient: whether the gradients of the results are results, too.
    """
    state = State()
    names = state.names()
    exec(compile(text, "<drawn program>", "exec"), names)
    run = with_gradient(names["program"], list(state.variables.values())) if gradient else names["program"]
    found: list[list[Any]] = []
    kept: list[list[Any]] = []
    with base.chosen.override(executor or "step"):
        if executor is not None:
            run = ll.function(run, input_signature=signature() if unknown else None)
        for call in calls:
            inputs = inputs_of(call)
            before = [copied(x) for x in inputs]
            results = run(*inputs)
            kept.append(results)
            found.append([*map(copied, results), *state.now()])
            assert bits([*map(copied, inputs)]) == bits(before), "somebody wrote to an input"
    for results, then in zip(kept, found, strict=True):
        assert bits([*map(copied, results)]) == bits(then[: len(results)]), "somebody wrote to earlier results"
    return found


def signature() -> list[Any]:
    return [
        ll.TensorSpec(shape_of(shape, {"N": None, "M": None}), DTYPES[dtype][3:]) for shape, dtype in INPUTS.values()
    ]


def with_gradient(program: Any, variables: list[Any]) -> Any:
    def both(*inputs: Any) -> Any:
        with ll.GradientTape() as tape:
            sources = [x for x in inputs if x.dtype.kind == "f"]
            tape.watch(sources)
            results = program(*inputs)
        targets = [x for x in results if x.dtype.kind == "f"]
        gradients = tape.gradient(targets, [*sources, *variables], unconnected_gradients="zero")
        return [*results, *gradients]

    return both
