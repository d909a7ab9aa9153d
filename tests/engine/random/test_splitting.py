"""Splitting generators in staged functions: the children of eager code, new ones at each call, of which none meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LeakedTensorError, SignatureError, SymbolicValueError
from limelight.graph.parser import parse

X = ll.constant([0.5, 1.0, 2.0])


@ll.function
def called(g: Any, x: Any) -> Any:
    a, b = g.split()
    return a.normal((3,)) * x + b.uniform(())


def in_a_branch(g: Any, x: Any) -> Any:
    (a,) = g.split(1)
    chosen = ll.cond(ll.sum(x) > 1.0, lambda: a.normal((3,)), lambda: g.split(1)[0].normal((3,)))
    return chosen + a.uniform(())


def in_a_loop(g: Any, x: Any) -> Any:
    (a,) = g.split(1)

    def body(i: Any, y: Any) -> Any:
        return i + 1, y + a.normal((3,)) * g.split(2)[1].uniform(())

    return ll.while_loop(lambda i, y: i < 3, body, (0, x))[1]


def in_a_gradient(g: Any, x: Any) -> Any:
    a, b = g.split()
    return ll.grad(lambda x: ll.sum(a.normal((3,)) * x * x * b.gamma(x)))(x)


def recomputed(g: Any, x: Any) -> Any:
    return ll.grad(ll.recompute_grad(lambda x: ll.sum(g.split(1)[0].normal((3,)) * x * x)))(x)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "draws": lambda g, x: [part.normal((2,)) for part in g.split(3)],
    "of a part": lambda g, x: [g.split()[1].split(3)[2].uniform((2,)), g.uniform(())],
    "none": lambda g, x: [g.split(0), g.uniform(())][1],
    "called": lambda g, x: called(g, x) + called(g.split(1)[0], x),
    "state": lambda g, x: (g.split(1), g.state, g.split(1)[0].state)[1:],
    "set": lambda g, x: (setattr(g.split(1)[0], "state", g.state), g.split(1)[0].uniform(()))[1],
    "of parameters": lambda g, x: [part.gamma(x) for part in g.split()],
    "branch": in_a_branch,
    "loop": in_a_loop,
    "gradient": in_a_gradient,
    "recomputed": recomputed,
    "vectorized": lambda g, x: ll.vectorize(lambda y: g.split()[1].normal() * y)(x),
    "vectorized, one each": lambda g, x: ll.vectorize(lambda p, y: p.split()[1].normal() * y)(g.split(3), x),
}


@pytest.mark.parametrize("executor", ["plan", "loops", "step"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_each_call_has_the_children_of_eager_code(program: Any, executor: str) -> None:
    ours, theirs = ll.random.Generator(1), ll.random.Generator(1)
    with ll.config.executor(executor):
        captured = ll.function(lambda x: program(ours, x))
        given = ll.function(program)
        for i in range(4):
            found = captured(X) if i % 2 else given(ours, X)
            wanted = program(theirs, X)
            for a, b in zip(ll.tree.leaves(found), ll.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
            np.testing.assert_array_equal(ours.state.numpy(), theirs.state.numpy())
        assert captured.trace_count == given.trace_count == 1


def test_children_of_all_calls_have_keys_of_their_own() -> None:
    g = ll.random.Generator(1)
    f = ll.function(lambda: [part.state for part in g.split(3)])
    keys = [tuple(words.tolist()[3:6]) for _ in range(5) for words in [*f(), g.split(1)[0].state]]
    assert len(set(keys)) == 20


def test_what_must_outlive_the_call_is_refused_in_words() -> None:
    g, kept = ll.random.Generator(1), []
    with pytest.raises(SignatureError, match=r"returns a generator at `result\[0\]` that it splits off"):
        ll.function(g.split)()
    f = ll.function(lambda: (kept.append(g.split(1)[0]), kept[-1].uniform(()))[1])
    f()
    with pytest.raises(LeakedTensorError, match="split outside, and pass the parts"):
        kept[0].uniform(())
    assert "staged function" in repr(kept[0])
    with pytest.raises(SymbolicValueError, match="has one only when the graph runs"):
        ll.function(lambda: g.split(1)[0]._data.array)()


def test_it_is_text_that_reads_back_and_a_file_that_loads(tmp_path: Any) -> None:
    g, twin = ll.random.Generator(1), ll.random.Generator(1)
    f = ll.function(lambda: g.split()[1].uniform((2,)))
    again = ll.load(ll.save(f, tmp_path / "f.ll"))
    assert again().tolist() == f().tolist() == twin.split()[1].uniform((2,)).tolist()
    text = f.trace_cache[0].graph.text()
    assert "split_generator" in text
    assert parse(text).text() == text


def test_a_program_of_xla_leaves_it_to_the_plan() -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install 'limelight[xla]'")
    g, twin = ll.random.Generator(1), ll.random.Generator(1)
    f = ll.function(lambda: g.split()[1].uniform((2,)), jit_compile=True)
    assert f().tolist() == twin.split()[1].uniform((2,)).tolist()
    assert "split outside" in f.trace_cache[0].tier_reason
