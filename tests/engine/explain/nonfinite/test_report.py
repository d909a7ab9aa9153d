"""The first op that made a number which is not finite, forward and backward (a NaN hunt on the step executor)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import limelight as ll


@ll.function
def logarithm(x: Any) -> Any:
    return ll.log(x)


@ll.function
def entropy(p: Any) -> Any:
    y = p * logarithm(p)
    return -ll.sum(y)


def test_the_first_op_its_line_its_operands_and_the_way() -> None:
    found = ll.explain.nan(entropy, ll.constant([0.0, 1.0]))
    assert (found.op, found.function, found.backward, found.reaches) == ("log", "logarithm", False, True)
    assert found.line is not None
    assert found.line.text == "return ll.log(x)"
    assert found.operands[0] is not None
    assert (found.operands[0].low, found.operands[0].high, found.operands[0].finite) == (0.0, 1.0, True)
    assert found.result is not None
    assert (found.result.infinities, found.result.nans) == (1, 0)
    assert found.became_nan is not None
    assert found.became_nan.op == "multiply"
    assert [place.op for place in found.way] == ["multiply", "sum", "negative"]
    assert "y = p * logarithm(p)" in found.calls[0]
    assert "the first number that is not finite comes from log in `logarithm`" in str(found)


def test_when_all_is_finite_it_says_so() -> None:
    found = ll.explain.nan(entropy, ll.constant([0.5, 0.5]))
    assert not found
    assert str(found) == "all numbers of `entropy` are finite for these arguments"


def test_nan_that_came_from_outside() -> None:
    assert ll.explain.nan(entropy, ll.constant([np.nan, 1.0])).op == "argument `p`"
    v = ll.Variable([1.0, np.nan], name="weights")
    found = ll.explain.nan(ll.function(lambda x: x * v), ll.constant(1.0))
    assert found.op == "captured `weights`"
    assert "has NaN already" in str(found)


def test_infinities_that_are_meant_are_not_blamed() -> None:
    f = ll.function(lambda x: ll.exp(ll.where(x > 0.0, x, -ll.inf)))
    assert not ll.explain.nan(f, ll.constant([-1.0, 1.0]))
    g = ll.function(lambda x: ll.where(x > 0.0, x, ll.inf) - ll.inf)
    assert ll.explain.nan(g, ll.constant([-1.0, 1.0])).op == "subtract"


def test_what_reaches_a_result_comes_first() -> None:
    @ll.function
    def f(x: Any) -> Any:
        safe = ll.where(x > 0.0, ll.log(x), 0.0)
        return safe + ll.sqrt(x - 1.0)

    assert ll.explain.nan(f, ll.constant([0.0, 1.0])).op == "sqrt"
    found = ll.explain.nan(ll.function(lambda x: ll.where(x > 0.0, ll.log(x), 0.0)), ll.constant(0.0))
    assert (found.op, found.reaches) == ("log", False)
    assert "no result of the function is concerned" in str(found)


@ll.function
def norm(x: Any) -> Any:
    return ll.sqrt(ll.sum(x * x))


@pytest.mark.parametrize("by", [True, "x", ["x"]])
def test_going_back(by: Any) -> None:
    assert not ll.explain.nan(norm, ll.zeros((3,)))
    found = ll.explain.nan(norm, ll.zeros((3,)), gradient_of=by)
    assert (found.op, found.backward) == ("divide", True)
    assert found.line is not None
    assert found.line.text == "return ll.sqrt(ll.sum(x * x))"
    assert "going back" in str(found)


def test_going_back_through_a_call_by_a_variable() -> None:
    v = ll.Variable([0.0, 0.0])
    f = ll.function(lambda: norm(v) * 2.0)
    found = ll.explain.nan(f, gradient_of=v)
    assert (found.backward, found.line.text if found.line else "") == (True, "return ll.sqrt(ll.sum(x * x))")
    with pytest.raises(ll.errors.ArgumentError, match="no floating input"):
        ll.explain.nan(norm, ll.zeros((3,)), gradient_of="y")


def test_a_training_step_with_its_tape_inside_has_no_effects() -> None:
    v = ll.Variable(1.0, name="v")

    @ll.function
    def train(x: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.sqrt(v * x) + 0.0 * ll.random.normal(())
        v.assign_sub(tape.gradient(loss, v))
        return loss

    state = ll.random.default_generator().state.tolist()
    for _ in range(2):
        found = ll.explain.nan(train, ll.constant(0.0))
        assert (found.op, found.backward, found.reaches) == ("divide", True, True)
    assert v.numpy() == 1.0
    assert ll.random.default_generator().state.tolist() == state


def test_in_a_branch_of_a_loop_in_a_call() -> None:
    @ll.function
    def f(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, ll.cond(y > 1.5, lambda: y - 1.0, lambda: logarithm(y - 1.0))

        return ll.while_loop(lambda i, y: i < 5, body, (ll.constant(0), x))[1]

    found = ll.explain.nan(f, ll.constant(3.0))
    assert (found.op, found.function) == ("log", "logarithm")
    kinds = [call.split()[0] for call in found.calls]
    assert kinds == ["while_loop", "cond", "call"]
    assert "iteration 3" in found.calls[0]
    back = ll.explain.nan(f, ll.constant(2.25), gradient_of=True)
    assert back.op == "log" or back.backward


def test_py_func_runs_and_its_assignments_are_put_back() -> None:
    v = ll.Variable(1.0)
    ran = []

    def python(t: Any) -> Any:
        ran.append(t)
        v.assign(7.0)
        return t / 0.0 * 0.0

    f = ll.function(lambda x: ll.py_func(python, [x], ll.TensorSpec((), "float32")) + 1.0)
    found = ll.explain.nan(f, ll.constant(1.0))
    assert found.op == "py_func"
    assert (len(ran), v.numpy()) == (1, 1.0)


def test_custom_gradients_and_scans_are_gone_into() -> None:
    @ll.custom_gradient
    def odd(x: Any) -> Any:
        return x * 2.0, lambda g: g / (x - x)

    found = ll.explain.nan(ll.function(lambda x: odd(x) + 1.0), ll.constant(3.0), gradient_of=True)
    assert (found.op, found.backward) == ("divide", True)
    g = ll.function(lambda xs: ll.scan(lambda a, x: (a / x, None), ll.constant(1.0), xs)[0])
    found = ll.explain.nan(g, ll.constant([1.0, 0.0, 2.0]))
    assert found.op == "divide"
    assert "iteration 2" in found.calls[0]


def test_plain_functions_and_counts() -> None:
    def plain(x: Any) -> Any:
        return ll.log(x)

    assert ll.explain.nan(plain, ll.constant(-1.0)).op == "log"
    f = ll.function(plain)
    f(ll.constant(1.0))
    ll.explain.nan(f, ll.constant(-1.0))
    assert (f.trace_count, f.trace_cache[0].hits) == (1, 0)
    with pytest.raises(ll.errors.ArgumentError, match="needs a function"):
        ll.explain.nan(3)  # type: ignore[arg-type]


def test_on_another_device() -> None:
    f = ll.function(lambda x: ll.log(x) * 2.0)
    ll.config.set_virtual_devices(CPU=max(2, sum(d.kind == "CPU" for d in ll.list_devices())))
    with ll.device("cpu:1"):
        assert ll.explain.nan(f, ll.constant([0.0, 1.0])).op == "log"
        assert ll.explain.nan(entropy, ll.constant([0.0, 1.0])).op == "log"


def test_the_place_of_a_branch_that_did_not_run_has_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float, **_: np.full(shape, np.nan).astype(dtype))

    def step(total: Any, a: Any) -> Any:
        root = ll.sqrt(a * a)
        return ll.cond(root > 0, lambda: total + a / root, lambda: total), None

    f = ll.function(lambda x: ll.scan(step, ll.constant(0.0), x)[0])
    found = ll.explain.nan(f, ll.constant([1.0, 0.0]), gradient_of="x")
    assert (found.op, found.of) == ("divide", "sqrt")
    assert found.fix == "root = ll.where(a * a > 0, ll.sqrt(ll.where(a * a > 0, a * a, 1)), 0)"


def test_numpy_says_nothing_beside_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ll.explain.nan(lambda x: ll.log(x) - 1.0 / x, ll.constant([0.0, 1.0])).op == "log"
