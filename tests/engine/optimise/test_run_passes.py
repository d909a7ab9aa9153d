"""The pipeline at each level: what stays whatever it does, records that close, and the switch."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.optimise import optimise, pipeline

LEVELS = range(4)


def effects(graph: Any) -> list[str]:
    return [node.op.name for node in graph.nodes if node.op.effect not in (None, "read")]


@pytest.mark.parametrize("level", LEVELS)
def test_effects_stay_in_their_order_at_every_level(level: int) -> None:
    """Behaviours 18 and 19: nobody uses their results, and still they happen, each as often as it was written."""
    said: list[float] = []
    v, generator = ll.Variable(1.0), ll.random.Generator(0)

    def say(x: Any) -> Any:
        said.append(x.item())
        return x

    def f(x: Any) -> Any:
        v.assign(x * 1.0)
        generator.normal(())
        before = v.read_value()
        v.assign_add(before - 0.0)
        ll.py_func(say, [v.read_value()], [ll.TensorSpec(())])
        ll.py_func(say, [v.read_value()], [ll.TensorSpec(())])
        generator.normal(())
        return ll.cond(x > 0, lambda: v.assign(ll.negative(-x)), lambda: x) + before

    staged = ll.function(f)
    with ll.config.optimiser(level):
        staged.get_concrete_function(ll.constant(2.0))
        assert staged(ll.constant(2.0)).item() == 4.0
    graph, better = staged.trace_cache[0].graph, staged.trace_cache[0].optimised
    assert effects(better) == effects(graph)
    assert len(effects(graph)) == 6
    assert (said, v.numpy()) == ([4.0, 4.0], 2.0)
    other = ll.random.Generator(0)
    other.normal(())
    other.normal(())
    assert generator.normal(()).item() == other.normal(()).item()


def training_step() -> tuple[Any, list[Any], list[Any]]:
    random = np.random.default_rng(0)
    shapes = [(4, 8), (8,), (8, 8), (8,), (8, 2), (2,)]
    weights = [ll.Variable(random.normal(size=shape, scale=0.5).astype(np.float32)) for shape in shapes]
    x, y = (ll.constant(random.normal(size=shape).astype(np.float32)) for shape in ((16, 4), (16, 2)))

    def step(x: Any, y: Any) -> Any:
        with ll.GradientTape() as tape:
            w1, b1, w2, b2, w3, b3 = [w.read_value() for w in weights]
            h = ll.tanh(x @ w1 + b1)
            for _ in range(5):
                h = ll.nn.relu(h @ w2 + b2) / 2 + h * 1
            loss = ll.mean(ll.square(h @ w3 + b3 - y))
        for w, g in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign_sub(0.1 * g)
        return loss

    return step, weights, [x, y]


@pytest.mark.parametrize("level", LEVELS)
def test_a_training_step_at_every_level(level: int) -> None:
    step, weights, data = training_step()
    losses = [step(*data).item() for _ in range(3)]
    trained = [w.numpy() for w in weights]
    step, weights, data = training_step()
    staged = ll.function(step)
    with ll.config.optimiser(level):
        assert [staged(*data).item() for _ in range(3)] == pytest.approx(losses, rel=1e-5)
    for w, expected in zip(weights, trained, strict=True):
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-4, atol=1e-6)
    graph = staged.trace_cache[0].graph
    better, records = optimise(graph, level, check=True)
    assert len(graph.nodes) - sum(r.removed - r.added for r in records) == len(better.nodes)
    assert [r.before for r in records[1:]] == [r.after for r in records[:-1]]
    assert (len(better.nodes) < len(graph.nodes)) == (level > 1)
    if level == 3:
        assert sum(node.op == "concat" for node in better.nodes) >= 2, "gradients of w2 and b2"


def test_passes_can_be_left_out_and_overrides_end() -> None:
    graph = ll.function(lambda x: ll.exp(ll.negative(-x)) + 1.0).get_concrete_function(ll.constant(1.0)).graph
    with ll.config.optimiser(without=["fuse", "simplify"]):
        better, records = optimise(graph)
        assert not {"fuse", "simplify"} & {record.name for record in records}
        assert better.groups == ()
        with ll.config.optimiser(level=0):
            assert optimise(graph).graph is graph
        assert len(optimise(graph).records) == len(records)
    assert optimise(graph).graph.groups
    names: list[set[str]] = []
    with ll.config.optimiser(level=1):
        thread = threading.Thread(target=lambda: names.append({r.name for r in optimise(graph).records}))
        thread.start()
        thread.join()
    assert "fuse" in names[0], "an override is this thread's"


def test_a_bare_call_sets_the_level_of_the_process_until_the_next() -> None:
    graph = ll.function(lambda x: ll.exp(ll.negative(-x)) + 1.0).get_concrete_function(ll.constant(1.0)).graph
    try:
        assert repr(ll.config.optimiser(level=0)) == "<optimiser: level 0>"
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(optimise(graph).graph))
        thread.start()
        thread.join()
        assert seen == [graph]
        with ll.config.optimiser(without=["fuse"]) as block:
            assert repr(block) == "<optimiser: level 3, without=['fuse']>"
            assert optimise(graph).graph is not graph
        assert optimise(graph).graph is graph, "as before the block"
    finally:
        ll.config.optimiser()
    assert optimise(graph).graph.groups


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"level": 4}, "optimisation levels are 0 to 3, got 4"),
        ({"level": True}, "got True"),
        ({"level": None}, "got None"),
        (
            {"without": ["fusion"]},
            f"without='fusion': no such pass; there are {', '.join(pipeline.names())}",
        ),
        ({"without": "fusion"}, "without='fusion'"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words), ll.config.optimiser(**given):
        pass


def test_what_is_returned_captured_or_viewed_keeps_its_numbers() -> None:
    """Behaviour 19: results of one call survive the next, and operands are never written into."""
    captured = ll.constant(np.arange(6, dtype=np.float32).reshape(2, 3))

    def f(x: Any) -> Any:
        h = ll.tanh(x * captured + captured)
        view = h.reshape((3, 2)).mT
        return h, view, ll.exp(h) - h, ll.square(view) * 2.0, captured * 1.0, x - 0.0

    x = ll.constant(np.ones((2, 3), np.float32))
    staged = ll.function(f)
    first = staged(x)
    copies = [np.array(t) for t in first]
    staged(x * 3.0)
    for kept, copy, eager in zip(first, copies, f(x), strict=True):
        np.testing.assert_array_equal(kept, copy)
        np.testing.assert_allclose(kept, eager, rtol=1e-6)
    assert captured.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.numpy().tolist() == [[1, 1, 1], [1, 1, 1]]
