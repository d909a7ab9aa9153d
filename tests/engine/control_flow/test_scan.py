"""`scan`, `map_fn` and `switch`: the same eagerly and staged, to any order, forwards, backwards and vectorised."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, ControlFlowError, ShapeError
from limelight.graph import parse, verify

pytestmark = [
    pytest.mark.usefixtures("retraces_are_meant"),
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),
]

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
x32 = ll.constant(np.linspace(-1.0, 1.3, 6).reshape(3, 2))
w2 = ll.constant(np.array([0.5, -0.3]))


def recurrent(x: Any, w: Any) -> Any:
    return ll.scan(lambda h, r: (ll.tanh(h * w + r), h * r), w * 0.5, x)


def backwards(x: Any, w: Any) -> Any:
    (h, n), y = ll.scan(
        lambda c, r: ((ll.sin(c[0] + r["a"] * r["b"][0]), c[1] + 1), {"y": c[0], "none": None, "n": c[1]}),
        (w, ll.constant(0)),
        {"a": x, "b": [x * w]},
        reverse=True,
    )
    return h * n.astype("float64"), y["y"] * y["n"].astype("float64").expand_dims(1)


def counted(x: Any, w: Any) -> Any:
    return ll.scan(lambda h, _: (h * w + ll.sum(x), ll.exp(h)), w, length=4)


def mapped(x: Any, w: Any) -> Any:
    return ll.map_fn(lambda r: ll.cond(ll.sum(r) > 0, lambda: r * w, lambda: ll.sin(r)), x), x * 1.0


def chosen(x: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        k = (ll.sum(r) > 0).astype("int32") + (ll.sum(h) > 0).astype("int32")
        return ll.switch(k, [lambda: h * r, lambda: ll.sin(h * w), lambda: r + w * h]), ll.sum(h)

    return ll.scan(step, w, x)


def nested(x: Any, w: Any) -> Any:
    def row(h: Any, r: Any) -> Any:
        inner, ys = ll.scan(lambda a, b: (a * b + ll.sum(h), a), ll.sum(h), r)
        more = ll.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, ll.sin(a) + inner), (0, inner))[1]
        return h + more * w, ys

    return ll.scan(row, w, x)


PROGRAMS = [recurrent, backwards, counted, mapped, chosen, nested]
program = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: sum(ll.sum(ll.sin(y)) for y in f(*xs))


def slope(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, w: ll.sum(ll.grad(f)(x, w) ** 2) + ll.sum(ll.grad(lambda w: f(x, w))(w) ** 3)


@pytest.mark.slow  # three orders
@program
def test_values_and_three_orders_of_gradients_agree(f: Callable[..., Any]) -> None:
    for given, wanted in zip(ll.function(f)(x32, w2), f(x32, w2), strict=True):
        np.testing.assert_allclose(given.numpy(), wanted.numpy(), rtol=1e-12)
    eager, inside, around = total(f), total(ll.function(f)), total(f)
    for _ in range(3):
        wanted = eager(x32, w2).item()
        assert inside(x32, w2).item() == pytest.approx(wanted, rel=1e-9)
        assert ll.function(around)(x32, w2).item() == pytest.approx(wanted, rel=1e-9)
        eager, inside, around = slope(eager), slope(inside), slope(around)


@program
def test_gradients_are_those_of_differences(f: Callable[..., Any]) -> None:
    assert ll.gradcheck(total(ll.function(f)), x32, w2).ok


@pytest.mark.slow  # Hessians
@program
def test_forward_mode_and_hessians(f: Callable[..., Any]) -> None:
    staged = total(ll.function(f))
    for g in (staged, ll.function(total(f))):
        _, given = ll.jvp(g, (x32, w2), (x32 * 2, w2 + 1))
        _, wanted = ll.jvp(total(f), (x32, w2), (x32 * 2, w2 + 1))
        assert given.item() == pytest.approx(wanted.item(), rel=1e-10)
        hessian = ll.hessian(lambda w, g=g: g(x32, w))(w2).numpy()
        np.testing.assert_allclose(hessian, ll.hessian(lambda w: total(f)(x32, w))(w2).numpy(), rtol=1e-8, atol=1e-12)


@program
@pytest.mark.parametrize("shared", [False, True], ids=["all differ", "one shared"])
def test_vectorised(f: Callable[..., Any], shared: bool) -> None:
    xs = ll.stack([x32, x32 * 2, x32 * -0.5])
    ws = w2 if shared else ll.stack([w2, w2 * 2, w2 * -1])
    axes = (0, None) if shared else (0, 0)
    for derive in (lambda g: g, ll.grad):
        rows = [derive(total(f))(x, ws if shared else ws[i]).numpy() for i, x in enumerate(xs)]
        for g in (total(f), total(ll.function(f)), ll.function(total(f))):
            many = ll.vectorize(derive(g), in_axes=axes)
            np.testing.assert_allclose(many(xs, ws).numpy(), np.stack(rows), rtol=1e-9, atol=1e-12)
            assert not many.looped, "every op has a rule"


@program
def test_graphs_verify_and_can_be_read_back(f: Callable[..., Any]) -> None:
    @ll.function
    def g(x: Any, w: Any) -> Any:
        return ll.grad(total(f))(x, w)

    g(x32, w2)
    entry = g.trace_cache[0]
    for graph in (entry.graph, entry.optimised):
        verify(graph)
    F = ll.function(f)
    F(x32, w2)
    text = F.trace_cache[0].graph.text(literals="full")
    assert verify(parse(text)).text(literals="full") == text


def test_a_scan_is_one_node_whatever_its_length() -> None:
    F = ll.function(lambda x, w: recurrent(x, w)[0])
    sizes = []
    for n in (2, 50):
        F(ll.ones((n, 2), dtype="float64"), w2)
        sizes.append([node.op.name for node in F.trace_cache[-1].graph.nodes])
    assert sizes[0] == sizes[1]
    assert sizes[0].count("scan") == 1
    node = next(node for node in F.trace_cache[0].graph.nodes if node.op == "scan")
    assert [f.graph.input_names[:2] for f in node.functions] == [("carry", "r")] or node.functions[0].graph.input_names


def test_a_switch_shows_its_branches() -> None:
    F = ll.function(lambda k, a: ll.switch(k, [lambda: a, lambda: a * 2, lambda: a * 3]))
    assert F(ll.constant(2), ll.constant(1.0)).item() == 3.0
    (node,) = F.trace_cache[0].graph.nodes
    assert [f.name for f in node.functions] == ["branch0", "branch1", "branch2"]
    assert "switch(%0, %1)  {branches=(@branch0, @branch1, @branch2)}" in F.trace_cache[0].graph.text()


# --- Lengths


@both
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_no_steps_and_lengths_known_only_at_run_time(stage: Callable[..., Any], steps: int) -> None:
    F = stage(lambda n: ll.scan(lambda s, _: (s * 2, s), ll.constant(1.0), length=n))
    last, all_ = F(ll.constant(steps))
    assert (last.item(), all_.tolist()) == (2.0**steps, [2.0**k for k in range(steps)])
    rows = [ll.TensorSpec((None, 2))]
    G = ll.function(lambda x: ll.scan(lambda s, r: (s + r, s * r), ll.zeros(2), x), input_signature=rows)
    last, all_ = G(ll.ones((steps, 2)))
    assert last.tolist() == [steps] * 2
    assert all_.shape == (steps, 2)
    assert G.trace_cache[0].graph.outputs[1].spec.shape == (None, 2)


@both
def test_the_gradient_of_no_steps_is_that_of_the_first_carry(stage: Callable[..., Any]) -> None:
    F = stage(lambda c, x, w: ll.sum(ll.scan(lambda s, r: (ll.tanh(s * w) + r, s), c, x)[0] * 3))
    c, x, w = ll.ones(2), ll.zeros((0, 2)), ll.constant(2.0)
    with ll.GradientTape() as tape:
        tape.watch([c, x, w])
        y = F(c, x, w)
    found = tape.gradient(y, [c, x, w], unconnected_gradients="zero")
    assert found[0].tolist() == [3.0, 3.0]
    assert found[1].shape == (0, 2)
    assert found[2].item() == 0.0


def test_an_unknown_number_of_steps_that_nothing_in_the_gradient_tells() -> None:
    def slope(s: Any, x: Any) -> Any:
        return ll.grad(lambda s: ll.scan(lambda s, r: (s * 2.0, None), s, x)[0])(s)

    F = ll.function(slope, input_signature=[ll.TensorSpec(()), ll.TensorSpec((None, 3))])
    assert [F(ll.constant(1.0), ll.ones((n, 3))).item() for n in (0, 1, 4)] == [1.0, 2.0, 16.0]


# --- Effects, draws, captured variables


@both
def test_effects_and_draws_happen_step_by_step_in_order(stage: Callable[..., Any]) -> None:
    v, log, g = ll.Variable(1.0), [], ll.random.Generator(5)

    @stage
    def f(x: Any) -> Any:
        def step(c: Any, r: Any) -> Any:
            v.assign_add(r)
            ll.py_func(lambda t: log.append(t.item()), [v.read_value()], None)
            return c + v, g.normal(())

        last, draws = ll.scan(step, ll.constant(0.0), x, reverse=True)
        return last, draws, v.read_value()

    last, draws, after = f(ll.constant([1.0, 2.0, 3.0]))
    assert log == [4.0, 6.0, 7.0]
    assert (last.item(), after.item()) == (17.0, 7.0)
    again = ll.random.Generator(5)
    assert draws.tolist() == [again.normal(()).item() for _ in range(3)][::-1]


@both
def test_gradients_of_captured_variables_add_up_over_steps(stage: Callable[..., Any]) -> None:
    w, frozen = ll.Variable(2.0), ll.Variable(3.0, trainable=False)
    F = stage(lambda x: ll.scan(lambda c, r: (c * w + r * frozen, c * w), ll.constant(1.0), x))
    with ll.GradientTape() as tape:
        last, all_ = F(ll.constant([1.0, 1.0]))
        y = last + ll.sum(all_)
    # c: 1, 2 + 3, 10 + 3; last = w² + 3w + 3, all = w + (w² + 3w)
    assert y.item() == 25.0
    assert tape.gradient(y, w).item() == (2 * 2 + 3) + 1 + (2 * 2 + 3)


def test_a_switch_runs_one_branch_and_draws_stay_in_it() -> None:
    ran: list[str] = []
    v = ll.Variable(0.0)

    def seen(name: str, change: float) -> Callable[[], Any]:
        def branch() -> Any:
            ll.py_func(lambda: ran.append(name), [], None)
            return v.assign_add(change)

        return branch

    F = ll.function(lambda k: ll.switch(k, [seen("a", 1.0), seen("b", 10.0), seen("c", 100.0)]))
    assert [F(ll.constant(k)).item() for k in (2, 0, 2)] == [100.0, 101.0, 201.0]
    assert ran == ["c", "a", "c"]


@both
def test_a_number_out_of_range_is_an_error_eager_staged_and_vectorised(stage: Callable[..., Any]) -> None:
    F = stage(lambda k: ll.switch(k, [lambda: ll.constant(0), lambda: ll.constant(1)]))
    for k in (-1, 2):
        with pytest.raises(ControlFlowError, match=rf"switch: index {k} for 2 branches.*ll.clip\(index, 0, 1\)"):
            F(ll.constant(k))
    many = ll.vectorize(F)
    assert many(ll.constant([1, 0, 1])).tolist() == [1, 0, 1]
    with pytest.raises(ControlFlowError, match="index 5 for 2 branches"):
        many(ll.constant([0, 5]))


# --- What does not add up

c1, v3 = ll.constant(1.0), ll.ones(3)
keep = lambda c, r: (c, r)  # noqa: E731
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ll.scan(keep, c1), ControlFlowError, "without xs, length must say"),
    (lambda: ll.scan(keep, c1, v3, length=4), ControlFlowError, "must be one, got length=4 and `xs`, f32[3]"),
    (
        lambda: ll.scan(keep, c1, {"a": v3, "b": ll.ones(4)}),
        ControlFlowError,
        '`xs["a"]`, f32[3] and `xs["b"]`, f32[4]',
    ),
    (lambda: ll.scan(keep, c1, (v3, c1)), ControlFlowError, "`xs[1]` is f32[]; a scan goes along the first axis"),
    (lambda: ll.scan(keep, c1, (v3, None)), ControlFlowError, "got None among them"),
    (lambda: ll.scan(lambda c, r: c, c1, v3), ControlFlowError, "must return a pair (carry, y), got"),
    (lambda: ll.scan(lambda c, r: ((c, c), r), c1, v3), ControlFlowError, "structure * on entry and (*, *) after"),
    (
        lambda: ll.scan(lambda c, r: ({"w": c["w"].astype("int32")}, r), {"w": c1}, v3),
        ControlFlowError,
        '`carry["w"]` is f32[] on entry and i32[] after one step',
    ),
    (
        lambda: ll.scan(lambda c, r: (ll.stack([c, c]), r), c1, v3),
        ControlFlowError,
        "`carry` is f32[] on entry and f32[2]",
    ),
    (lambda: ll.scan(keep, c1, length=-1), ShapeError, "length must be from 0 on, got -1"),
    (lambda: ll.scan(keep, c1, length=2.5), ShapeError, "length: sizes must be integers, got 2.5"),
    (lambda: ll.scan(3, c1, v3), ArgumentError, "scan: fn must be a function, got int"),  # type: ignore[arg-type]
    (lambda: ll.map_fn(3, v3), ArgumentError, "map_fn: fn must be a function, got int"),  # type: ignore[arg-type]
    (lambda: ll.map_fn(lambda r: r, c1), ControlFlowError, "map_fn: `xs` is f32[]"),
    (lambda: ll.switch(0, []), ArgumentError, "at least one, got []"),
    (lambda: ll.switch(0, [1]), ArgumentError, "branches[0] must be a function"),  # type: ignore[list-item]
    (lambda: ll.switch(c1, [lambda: 1]), ControlFlowError, "index must be one integer, got f32[]"),
    (lambda: ll.switch(c1 > 0, [lambda: 1]), ControlFlowError, "got bool[]; write ll.cond"),
    (lambda: ll.switch(ll.constant([0, 1]), [lambda: 1]), ControlFlowError, "one integer, got i32[2]"),
]


@both
@pytest.mark.parametrize(("wrong", "error", "message"), MISTAKES, ids=[m[2][:30] for m in MISTAKES])
def test_what_does_not_add_up(stage: Any, wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        stage(wrong)()


def test_branches_of_a_switch_must_agree() -> None:
    F = ll.function(lambda k: ll.switch(k, [lambda: c1, lambda: c1, lambda: v3]))
    with pytest.raises(ControlFlowError, match=r"the output is f32\[\] from branch0 and f32\[3\] from branch2"):
        F(ll.constant(0))


def test_results_of_an_eager_scan_must_be_alike() -> None:
    with pytest.raises(ControlFlowError, match=r"y is f32\[0\] after one step and f32\[1\] after another"):
        ll.scan(lambda i, _: (i + 1, v3[: int(i)]), ll.constant(0), length=2)
