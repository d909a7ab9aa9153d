"""The executor `xla`: what a compiled function computes, assigns, draws, refuses and raises is what the plan does."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import limelight as ll
from compiled import ROWS, X, both_ways, jax_only, reason  # beside this file
from limelight.errors import ControlFlowError, LinAlgError, OutOfBoundsError, RunError

pytestmark = jax_only


def test_a_function_is_one_program_and_says_so():
    f = ll.function(lambda x: ll.tanh(x) * 2.0 + x, jit_compile=True)
    np.testing.assert_allclose(f(X).numpy(), np.tanh(X) * 2 + X, rtol=1e-6)
    entry = f.trace_cache[0]
    assert (entry.tier, entry.tier_reason, f.trace_count) == ("xla", "", 1)
    assert "fusion" in entry.function.run.source
    assert entry.function.run.memory().nbytes >= X.nbytes


def test_the_setting_chooses_it_and_false_keeps_away_from_it():
    with ll.config.executor("xla"):
        f, never = ll.function(lambda x: x + 1.0), ll.function(lambda x: x + 1.0, jit_compile=False)
        f(X), never(X)
    assert f.trace_cache[0].tier == "xla"
    assert never.trace_cache[0].tier == "plan"


def test_each_set_of_shapes_is_compiled_under_one_graph_of_unknown_sizes():
    f = ll.function(lambda x: (x - x.mean(0)).sum(1), input_signature=[ROWS], jit_compile=True)
    for n in (5, 2, 5):
        np.testing.assert_allclose(f(X[:n]).numpy(), (X[:n] - X[:n].mean(0)).sum(1), atol=1e-6)
    assert f.trace_count == 1
    assert len(f.trace_cache[0].function.run._programs) == 2


def test_variables_are_assigned_and_reads_are_snapshots():
    v, w = ll.Variable(2.0), ll.Variable(np.zeros(3, "float32"))

    def step(x: Any) -> Any:
        before = v.read_value()
        v.assign_add(x.sum())
        w.at[1].assign(v * 2.0)
        return before, v * 3.0

    for result in both_ways(step, [v, w], X):
        assert len(result) == 2


def test_an_update_is_not_lost_among_threads():
    v = ll.Variable(0.0)
    step = ll.function(lambda: v.assign_add(1.0), jit_compile=True)
    step()
    threads = [threading.Thread(target=lambda: [step() for _ in range(25)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert v.numpy() == 101.0


def test_a_variable_that_the_plan_has_assigned_stays_on_the_host():
    count = ll.Variable(0, dtype="int64")

    def step(x: Any) -> Any:
        return x * ll.astype(count.assign_add(1), "float32")

    with ll.config.executor("plan"):
        plan, compiled = ll.function(step), ll.function(step, jit_compile=True)
        for f in (plan, compiled, plan, compiled):
            f(X)
            assert isinstance(count._data.array, np.ndarray | np.generic)
    assert compiled.trace_cache[0].tier == "xla"
    assert (count.numpy(), count.numpy().dtype) == (4, np.int64)


def test_control_flow_carries_what_it_assigns():
    v = ll.Variable(1.0)

    def run(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            v.assign_add(y.sum())
            return i + 1, y * 1.5

        last = ll.while_loop(lambda i, y: i < 3, body, (0, x))
        ll.cond(x.sum() > 0, lambda: v.assign(v * 2.0), lambda: v.assign(v - 1.0))
        inner = ll.function(lambda c, r: (v.assign_sub(r.sum()), c * v)[1])
        carry, rows = ll.scan(lambda c, r: (inner(c, r), c), ll.constant(0.1), x)
        picked = ll.switch(ll.argmax(x[0]), [lambda: v * 1.0, lambda: v * 2.0, lambda: v.assign(5.0)])
        return last, carry, rows, picked

    both_ways(run, [v], X)
    both_ways(run, [v], abs(X))


def test_a_condition_may_assign():
    v = ll.Variable(0.0)

    def run(x: Any) -> Any:
        return ll.while_loop(lambda y: v.assign_add(1.0) < 4.0, lambda y: (y * v,), (x,))[0]

    both_ways(run, [v], X)


def test_draws_are_those_of_the_plan():
    generator = ll.random.Generator(3)

    def run(x: Any) -> Any:
        inner = ll.function(lambda: ll.random.uniform((2,)))
        noise = generator.normal(ll.shape_of(x))
        return noise + x, inner(), ll.random.permutation(5), ll.random.integers(0, 9, (3,)), generator.uniform((2,))

    f = ll.function(run, input_signature=[ROWS])
    results = []
    for executor in ("plan", "xla"):
        with ll.config.executor(executor):
            f.clear_cache()
            ll.random.seed(1)
            generator.reset(3)
            results.append([f(X), f(X[:2]), generator.state])
            assert f.trace_cache[0].tier == executor
    for plan, xla in zip(ll.tree.leaves(results[0]), ll.tree.leaves(results[1]), strict=True):
        np.testing.assert_allclose(plan.numpy(), xla.numpy(), rtol=1e-6)


def test_gradients_inside_and_around():
    def loss(x: Any) -> Any:
        carry, _ = ll.scan(lambda c, r: (ll.tanh(c * r), c), x[0], x)
        return ll.cond(x.sum() > 0, lambda: ll.sum(carry**2), lambda: ll.exp(carry[:2]).sum())

    for sign in (1.0, -1.0):
        x = ll.constant(sign * abs(X))
        (inside,) = both_ways(ll.grad(loss), [], x)[:1]
        outside = ll.grad(ll.function(loss, jit_compile=True))(x)
        np.testing.assert_allclose(outside.numpy(), np.asarray(inside), rtol=1e-5, atol=1e-6)


def test_the_halves_of_a_gradient_and_batched_versions_are_compiled_too():
    f = ll.function(lambda x: ll.tanh(x).sum(), jit_compile=True)
    x = ll.constant(X)
    ll.grad(f)(x)
    ll.vectorize(f)(x)
    ll.jvp(f, (x,), (x,))
    versions = list(f.trace_cache[0].function.pairs.values()) + [
        v for entry in f.trace_cache for v in entry.function.pairs.values()
    ]
    made = [getattr(v, "forward", None) or getattr(v, "function", None) for v in versions]
    assert made
    assert {function.executor for function in made if function is not None} == {"xla"}


# What is refused

V = ll.Variable(1.0)
REFUSED = {
    "Python": (
        lambda x: ll.py_func(lambda v: v + 1.0, [x], ll.TensorSpec((5, 3))),
        r"py_func at test_xla.py:\d+ does something besides computing, in Python or to a table",
    ),
    "a draw in a loop": (
        lambda x: ll.scan(lambda c, r: (c + ll.random.normal(()), c), ll.constant(0.0), x)[0],
        r"random_normal at test_xla.py:\d+ draws inside of a branch or a loop",
    ),
    "a draw by a result": (
        lambda x: ll.random.gamma(abs(x) + 1.0),
        r"random_\w+ at .*:\d+ draws by numbers that the function computes",
    ),
    "a shape": (ll.nonzero, r"nonzero at .*:\d+ has no form"),
    "a loop's gradient": (
        ll.grad(lambda x: ll.sum(ll.while_loop(lambda y: ll.sum(y) < 9.0, lambda y: (y * 2.0,), (abs(x),))[0])),
        r"while_forward at .*:\d+ keeps something for a gradient",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_form_runs_as_a_plan_and_the_entry_says_why(what):
    f, words = REFUSED[what]
    ll.random.seed(2)
    expected = ll.function(f)(ll.constant(X))
    ll.random.seed(2)
    compiled = ll.function(f, jit_compile=True)
    got = compiled(ll.constant(X))
    for x, y in zip(ll.tree.leaves(expected), ll.tree.leaves(got), strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()
    assert compiled.trace_cache[0].tier == "plan"
    assert reason(compiled, words)


def test_a_called_function_is_compiled_where_its_caller_is_not():
    inner = ll.function(lambda x: ll.sin(x) * 2.0, jit_compile=True)
    outer = ll.function(lambda x: ll.py_func(lambda v: v, [inner(x)], ll.TensorSpec((5, 3))))
    with ll.config.executor("plan"):
        outer(X)
    assert outer.trace_cache[0].tier == "plan"
    assert inner.trace_cache[0].tier == "xla"


# Errors

i = ll.constant
ERRORS = {
    "index": (lambda x, k: x[k], i(7), OutOfBoundsError, "index 7 is out of bounds"),
    "indices": (lambda x, k: x[k], i([1, -6]), OutOfBoundsError, "index -6 is out of bounds"),
    "take": (lambda x, k: ll.take(x, k, 1), i([0, 3]), OutOfBoundsError, "index 3 is out of bounds"),
    "along": (lambda x, k: ll.take_along_axis(x, k, 0), i([[5]]), OutOfBoundsError, "index 5 is out of bounds"),
    "gather_nd": (ll.gather_nd, i([[1, 4]]), OutOfBoundsError, "index 4 is out of bounds"),
    "update": (lambda x, k: x.at[k].set(1.0), i([9]), OutOfBoundsError, "index 9 is out of bounds"),
    "embedding": (lambda x, k: ll.nn.embedding(x, k, negative=False), i([-1]), OutOfBoundsError, "index -1 is below 0"),
    "switch": (lambda x, k: ll.switch(k, [lambda: x, lambda: -x]), i(2), ControlFlowError, "index 2 for 2 branches"),
    "inverse": (lambda x, k: ll.linalg.inv(ll.zeros((2, 2)) * x[0, 0]), i(0), LinAlgError, "singular"),
    "in a loop": (
        lambda x, k: ll.while_loop(lambda n: n < k, lambda n: (n + ll.astype(x[n + 3, 0] * 0.0, "int32") + 1,), (0,)),
        i(9), OutOfBoundsError, "index 5 is out of bounds",
    ),
    "in a condition": (
        lambda x, k: ll.while_loop(lambda n: x[n, 0] < 9.0, lambda n: (n + k,), (0,)),
        i(1), OutOfBoundsError, "index 5 is out of bounds",
    ),
    "in a branch": (
        lambda x, k: ll.cond(k > 0, lambda: x[k], lambda: x[0]), i(8), OutOfBoundsError, "index 8 is out of bounds"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_values_that_a_kernel_refuses_raise_as_in_the_plan_at_the_users_line(what):
    f, k, error, words = ERRORS[what]
    v = ll.Variable(0.0)
    compiled = ll.function(lambda x, k: (v.assign_add(ll.random.uniform(())), f(x, k)), jit_compile=True)
    ll.random.seed(5)
    with pytest.raises(error, match=rf"(?s){words}.*test_xla\.py line \d+"):
        compiled(ll.constant(X), k)
    assert compiled.trace_cache[0].tier == "xla"
    ll.random.seed(5)
    assert v.numpy() == ll.random.uniform(()).numpy(), "what came before the error stands, once"


def test_a_shape_that_does_not_fit_raises_and_the_next_one_runs():
    f = ll.function(lambda x, y: x + y, input_signature=[ROWS, ROWS], jit_compile=True)
    with pytest.raises(ll.errors.ShapeError, match=r"test_xla\.py line"):
        f(X, X[:2])
    np.testing.assert_array_equal(f(X, X).numpy(), X + X)
    assert f.trace_cache[0].tier == "xla"


def test_an_error_of_the_users_own_passes_and_one_of_xla_is_a_run_error(monkeypatch):
    def fails(x: Any) -> Any:
        raise RuntimeError("mine")

    f = ll.function(lambda x: ll.py_func(fails, [x], ll.TensorSpec((5, 3))), jit_compile=True)
    with pytest.raises(RuntimeError, match="mine") as caught:
        f(X)
    assert type(caught.value) is RuntimeError
    g = ll.function(lambda x: x + 1.0, jit_compile=True, name="growing")
    g(X)

    def exhausted(*payloads: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(g.trace_cache[0].function.run, "_only", exhausted)
    with pytest.raises(RunError, match="growing, as a program of XLA, failed: RuntimeError: RESOURCE_EXHAUSTED"):
        g(X)


def test_what_a_run_has_drawn_that_fails_is_drawn_again(monkeypatch):
    noise = ll.random.Generator(3)
    f = ll.function(lambda x: x + noise.normal((5, 3)), jit_compile=True)
    f(X)
    (program,) = f.trace_cache[0].function.run._programs.values()

    def exhausted(*arrays: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(program, "_compiled", exhausted)
    noise.reset(7)
    with pytest.raises(RuntimeError, match="EXHAUSTED"):
        program.runner()(*[x._data for x in (ll.constant(X), noise)])
    assert noise.normal(()).item() == ll.random.Generator(7).normal(()).item()


def test_programs_go_with_their_function_without_the_collector():
    v = ll.Variable(1.0)
    for body in (lambda x: ll.tanh(x), lambda x: v.assign_add(x.sum())):  # noqa: PLW0108  # two functions
        f = ll.function(body, jit_compile=True)
        f(X), f(X)
        run = weakref.ref(f.trace_cache[0].function.run)
        gc.disable()
        try:
            del f
            assert run() is None
        finally:
            gc.enable()


def test_programs_for_the_host_are_made_for_the_cpu_where_jax_has_a_gpu(monkeypatch):
    import jax

    platforms, default_device = [], jax.default_device

    def chosen(device):
        platforms.append(device.platform)
        return default_device(device)

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "default_device", chosen)
    f = ll.function(lambda x: x * 2.0, jit_compile=True)
    assert f(ll.constant([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert platforms == ["cpu"]
    f(ll.constant([1.0, 2.0]).to("XLA:0"))
    assert platforms == ["cpu"]
