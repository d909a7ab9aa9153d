"""Memory of tables: who lies where in the arena and in the results, and that nobody lies where another one does."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from staged_on_loops import bits, in_tables, staged

import limelight as ll
from limelight.executors.loops import arena, blocks, in_place, program, spare_results

N = 128
BYTES = 4 * N * N
"""Of a matrix, which is large."""


def matrix(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((N, N)).astype("f4") * np.float32(0.1)


def descent(executor: str, layers: int) -> tuple[Any, list[bytes]]:
    """A step of gradient descent on a network; the function, and what is in its variables afterwards."""
    variables = [ll.Variable(matrix(i)) for i in range(layers)]

    def step(x: Any) -> Any:
        with ll.GradientTape() as tape:
            y = x
            for v in variables:
                y = ll.tanh(y @ v)
            loss = ll.sum(y * y)
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.01 * g)
        return loss

    x = ll.constant(matrix(100))
    run = staged(step, x, executor=executor)
    for _ in range(2):
        run(x)
    return run, bits(list(variables))


def test_what_the_forward_pass_keeps_lies_in_the_results() -> None:
    run, found = descent("loops", 8)
    (table,), _ = in_tables(run)
    assert table.arena < 3.5 * BYTES  # eight activations, and eight gradients
    assert found == descent("plan", 8)[1]


def test_a_gradient_is_made_in_the_place_of_the_new_value() -> None:
    v = ll.Variable(matrix(0))
    x, y = ll.constant(matrix(1)), ll.constant(matrix(2))
    run = staged(lambda x, y: v.assign_sub(0.1 * (x @ y)), x, y)
    (table,), _ = in_tables(run)
    assert table.arena < BYTES


def test_what_is_needed_later_is_not_in_the_place_of_a_result() -> None:
    def both(x: Any) -> Any:
        y = ll.tanh(x @ x)
        early = y * 2.0 + x
        late = ll.sin(y @ early)
        return early, late, y * late

    x = ll.constant(matrix(3))
    assert bits(staged(both, x)(x)) == bits(staged(both, x, executor="plan")(x))


def test_gaps_are_filled_and_joined() -> None:
    there = arena.Arena()
    size = arena.LARGE
    first, second, third = (there.take(n * size) for n in (1, 2, 1))
    there.give_back(2 * size, second)
    there.give_back(size, first)
    assert there.take(3 * size) == first
    there.give_back(size, third)
    assert there.take(2 * size) == third  # the last gap grows
    assert there.nbytes == third + 2 * size


@pytest.mark.parametrize("seed", range(5))
def test_no_two_buffers_lie_in_one_place(seed: int) -> None:
    draw = random.Random(seed)
    there = arena.Arena()
    live: list[tuple[int, int]] = []
    most = 0
    for _ in range(300):
        if live and draw.random() < 0.48:
            there.give_back(*live.pop(draw.randrange(len(live))))
            continue
        nbytes = draw.choice([4, 100, 5000, arena.LARGE, 3 * arena.LARGE - 4, draw.randrange(1, 5 * arena.LARGE)])
        offset = there.take(nbytes)
        assert offset % arena.ALIGNMENT == 0
        assert all(offset >= o + n or o >= offset + nbytes for n, o in live)
        live.append((nbytes, offset))
        most = max(most, sum(n for n, _ in live))
        assert offset + nbytes <= there.nbytes
    assert there.nbytes < 1.5 * most + arena.LARGE


def test_small_arrays_as_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (blocks, program, in_place):
        monkeypatch.setattr(module, "SMALLEST", 4)
    for module in (blocks, program):
        monkeypatch.setattr(module, "BLOCK", 2)
    for module in (arena, program, spare_results):
        monkeypatch.setattr(module, "LARGE", 8)
    x = ll.constant(np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4))

    def program_of_many(x: Any) -> Any:
        y = x * 2.0 + 1.0
        z = ll.tanh(y) * y
        w = ll.where(z > 0.5, z - x, y) @ ll.transpose(x)
        return y - z, z * z + x, w * 0.5, ll.sum(z, axis=0) * 3.0

    assert bits(list(staged(program_of_many, x)(x))) == bits(list(staged(program_of_many, x, executor="plan")(x)))
