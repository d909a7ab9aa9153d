"""One trace for all sizes, and tables for the shapes that come again: the plan's numbers, whatever the sizes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors import base
from limelight.executors.loops import shape_specialisations

OPEN = ll.TensorSpec((None, None), ll.float32)
WEIGHT = np.random.default_rng(1).standard_normal((4, 3)).astype("f4")


def normed(x: Any) -> Any:
    return (x - ll.mean(x, axis=0)) * ll.rsqrt(ll.var(x, axis=0) + 1.0)


def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def g(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.sum(f(x))
        return tape.gradient(y, x)

    return g


def joined(x: Any) -> Any:
    return ll.concat([x[:1] * 2.0, x, ll.broadcast_to(ll.mean(x, axis=0), ll.shape_of(x)[:])], axis=0)


def looped(x: Any) -> Any:
    return ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, ll.tanh(y) * 1.5), (ll.constant(0), x + 1.0))[1]


PROGRAMS: list[Callable[[Any], Any]] = [
    lambda x: ll.nn.softmax(x) * 2.0 + ll.sum(ll.reshape(x, (-1,))),
    lambda x: ll.exp(x @ ll.transpose(x)) - ll.max(x),
    normed,
    slope(normed),
    slope(lambda x: ll.square(ll.nn.relu(x)) * ll.sum(x, axis=1, keepdims=True)),
    slope(lambda x: ll.tanh(x)[1:, ::2] * 3.0),
    lambda x: ll.where(x > 0.0, x, x * 0.1) / ll.sum(ll.ones_like(x)),
    lambda x: ll.reshape(ll.stack([x, x * 2.0], axis=1), (-1,)) + 1.0,
    looped,
    slope(looped),
]


def results(executor: str, program: Any, arrays: list[Any]) -> list[bytes]:
    with base.chosen.override(executor):
        f = ll.function(program, input_signature=[OPEN])
        found = [f(ll.constant(x)).numpy().tobytes() for x in arrays for _ in range(3)]
        assert f.trace_count == 1
        return found


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_numbers_are_the_plans(program: Any) -> None:
    random = np.random.default_rng(3)
    shapes = [(1, 1), (2, 3), (40, 5), (3, 130), *[tuple(random.integers(1, 9, 2)) for _ in range(3)]]
    arrays = [random.standard_normal(shape).astype("f4") for shape in shapes]
    assert results("loops", program, arrays) == results("plan", program, arrays)


def traced(program: Any, *specs: Any) -> Any:
    with base.chosen.override("loops"):
        f = ll.function(program, input_signature=list(specs or [OPEN]))
        f.get_concrete_function()
        return f


def tables(f: Any) -> Any:
    return f.trace_cache[0].function.run


def ones(*shape: int) -> Any:
    return ll.constant(np.ones(shape, "f4"))


def test_a_shape_has_a_table_when_it_comes_again_and_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_specialisations, "MOST_KEPT", 2)
    monkeypatch.setattr(shape_specialisations, "_MOST_SEEN", 4)
    monkeypatch.setattr(shape_specialisations, "_CALLS_IN_PLACE", 3)
    f = traced(PROGRAMS[0])
    for n in range(1, 10):
        f(ones(n, 2))
    assert tables(f).shapes == ()
    for n in (3, 4, 3, 4, 3, 5, 5):
        f(ones(n, 2))
    assert tables(f).shapes == (((4, 2),), ((3, 2),))
    f(ones(5, 2))
    assert tables(f).shapes == (((3, 2),), ((5, 2),))


def test_shapes_that_take_turns_make_tables_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_specialisations, "MOST_KEPT", 4)
    f = traced(PROGRAMS[0])
    made: list[Any] = []
    build = tables(f)._build
    monkeypatch.setattr(tables(f), "_build", lambda graph: made.append(graph) or build(graph))
    for _ in range(20):
        for n in range(1, 7):
            f(ones(n, 2))
    assert len(made) == 4, "the other two shapes have no table"
    for _ in range(64):
        for n in range(1, 7):
            f(ones(n, 2))
    assert len(made) <= 8, "a table is not made at each call"


def test_all_nodes_of_known_sizes_are_in_a_table() -> None:
    f = traced(PROGRAMS[4])
    sized = shape_specialisations.with_shapes(f.trace_cache[0].optimised, {0: (5, 3)})
    lines = base.get("loops").code(sized)
    assert lines
    assert all(line.startswith("table 1") for _, line in lines)


def test_variables_are_assigned() -> None:
    v = ll.Variable(WEIGHT)

    def step(x: Any) -> Any:
        y = ll.tanh(x @ v)
        v.assign_add(ll.transpose(x) @ y * 0.1)
        return ll.sum(y)

    found = []
    for executor in ("plan", "loops"):
        v.assign(WEIGHT)
        with base.chosen.override(executor):
            f = ll.function(step, input_signature=[ll.TensorSpec((None, 4), ll.float32)])
            found.append([float(f(ones(n, 4))) for n in (2, 2, 3, 3, 2)] + v.numpy().tolist())
    assert found[0] == found[1]


def test_a_scan_that_assigns_keeps_its_place_among_reads() -> None:
    def step(v: Any, x: Any) -> Any:
        def add(carry: Any, row: Any) -> Any:
            v.assign_add(ll.sum(row))
            return carry + row, row

        ll.scan(add, ll.sin(x[0]), x)
        return ll.tanh(v * 0.5)

    found = []
    for executor in ("plan", "loops"):
        v = ll.Variable(1.0)
        with base.chosen.override(executor):
            f = ll.function(functools.partial(step, v), input_signature=[OPEN])
            found.append([float(f(ones(4, 3) * 0.1)) for _ in range(4)])
    assert found[0] == found[1]


def test_what_does_not_fit_is_said_in_the_plans_words() -> None:
    def product(x: Any, y: Any) -> Any:
        return ll.tanh(x @ y) + 1.0 - ll.sum(x)

    with base.chosen.override("plan"):
        plan = ll.function(product, input_signature=[OPEN, OPEN])
        with pytest.raises(ll.errors.LimelightError) as said:
            plan(ones(2, 3), ones(4, 5))
    f = traced(product, OPEN, OPEN)
    f(ones(2, 3), ones(3, 5))
    for _ in range(3):
        with pytest.raises(type(said.value)) as error:
            f(ones(2, 3), ones(4, 5))
        assert str(error.value) == str(said.value)
    f(ones(2, 3), ones(3, 5))


def test_threads_may_ask_for_different_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_specialisations, "MOST_KEPT", 2)
    f = traced(lambda x: ll.sum(ll.tanh(x) * 2.0 + 1.0) * 3.0)
    wrong: list[Any] = []

    def work(n: int) -> None:
        x = ones(n, 2)
        wanted = f(x).item()
        wrong.extend(n for _ in range(200) if f(x).item() != wanted)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []
