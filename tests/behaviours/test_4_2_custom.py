"""Section 4.2, differentiation: behaviours 48 to 51, which are about custom_gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both, gradient, item, slope_of

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, GradientError, ShapeError, SignatureError

Function = Callable[..., Any]


@ll.custom_gradient
def log1pexp(x: Any) -> Any:
    e = ll.exp(x)

    def grad(dy: Any) -> Any:
        return dy * (1.0 - 1.0 / (1.0 + e))

    return ll.log(1.0 + e), grad


@ll.custom_gradient
def tripled(x: Any) -> Any:
    """The identity, whose gradient says otherwise."""
    return x, lambda dy: dy * 3.0


# 48 The basics


@both
def test_048_the_rule_takes_the_place_of_the_ops(stage: Function) -> None:
    x = ll.constant(100.0)
    assert gradient(stage(log1pexp), x)[0].item() == 1.0
    assert np.isnan(gradient(stage(lambda x: ll.log(1.0 + ll.exp(x))), x)[0].item()), "which is what it is for"
    assert stage(log1pexp)(ll.constant(0.0)).item() == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("where", ["inside", "outside", "both"])
def test_048_differentiated_inside_a_staged_function_and_from_outside(where: str) -> None:
    inner = log1pexp if where == "inside" else ll.function(log1pexp)
    slope = slope_of(inner) if where == "outside" else ll.function(slope_of(inner))
    for _ in range(2):
        assert slope(ll.constant(100.0)).item() == 1.0


@both
def test_048_ops_of_the_body_are_not_recorded(stage: Function) -> None:
    x = ll.ones((1000,))
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert [(record.op, record.saved_bytes) for record in tape.entries] == [("custom_gradient", 4000)]
    assert len(y.shape) == 1


@both
def test_048_an_output_that_is_the_input_goes_through_the_rule(stage: Function) -> None:
    x = ll.constant([1.0, 2.0])
    assert gradient(stage(lambda x: tripled(x) * 2.0), x)[0].tolist() == [6.0, 6.0]
    assert gradient(stage(lambda x: tripled(x) + x), x)[0].tolist() == [4.0, 4.0]
    assert gradient(stage(lambda x: tripled(tripled(x))), x)[0].tolist() == [9.0, 9.0]
    both_ways = ll.custom_gradient(lambda a, b: ((a, a), lambda da, db: (da * 10.0, db * 100.0)))
    assert [
        g.item() for g in gradient(stage(lambda a, b: both_ways(a, b)[0] * 1.0), ll.constant(1.0), ll.constant(1.0))
    ] == [
        10.0,
        0.0,
    ]


@both
@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (lambda dy: (dy,), "2 arguments, so its gradient function must return 2 gradients, got 1"),
        (lambda dy: dy, "got 1"),
        (lambda dy: (dy, dy, dy), "got 3"),
    ],
)
def test_048_a_wrong_number_of_gradients_is_counted(stage: Function, returned: Function, match: str) -> None:
    f = ll.custom_gradient(lambda a, b: (a * b, returned))
    x = ll.constant(2.0)
    assert stage(f)(x, x).item() == 4.0, "nobody has asked for a gradient"
    with pytest.raises(GradientError, match=match):
        gradient(stage(f), x, ll.constant(3.0))


@both
def test_048_gradients_fit_their_sources(stage: Function) -> None:
    x = ll.constant([1.0, 2.0])
    for wrong, error in ((ll.sum, ShapeError), (lambda dy: ll.astype(dy, ll.float64), DTypeError)):
        f = ll.custom_gradient(lambda a, wrong=wrong: (a * 2.0, wrong))
        with pytest.raises(error, match="custom_gradient"):
            gradient(stage(lambda a, f=f: f(a)), x)


@both
def test_048_nests_go_in_and_out(stage: Function) -> None:
    @ll.custom_gradient
    def f(pair: Any, scale: Any, label: str) -> Any:
        def grad(total: Any, rest: Any) -> Any:
            assert label == "name"
            return {"a": total * 2.0, "b": rest["x"] * 5.0}, None, None

        return (pair["a"] + pair["b"], {"x": pair["a"], "n": 7, "none": None}), grad

    a, b, s = ll.constant(1.0), ll.constant(2.0), ll.constant(3.0)

    @stage
    def total(a: Any, b: Any, s: Any) -> Any:
        y, rest = f({"a": a, "b": b}, s, "name")
        assert rest["none"] is None
        return y + rest["x"] * 10.0

    assert [item(g) for g in gradient(total, a, b, s)] == [2.0, 50.0, None]
    assert [item(g) for g in gradient(stage(lambda a, b, s: f({"a": a, "b": b}, s, "name")[0]), a, b, s)] == [
        2.0,
        0.0,
        None,
    ]


@both
def test_048_in_branches_and_loops(stage: Function) -> None:
    x = ll.constant(1.0)
    chosen = stage(lambda x: ll.cond(x > 0.0, lambda: tripled(x), lambda: x))
    assert [gradient(chosen, ll.constant(v))[0].item() for v in (1.0, -1.0)] == [3.0, 1.0]
    looped = stage(lambda x: ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tripled(a)), (0, x))[1])
    assert gradient(looped, x)[0].item() == 27.0


def test_048_methods_and_arguments_without_tensors() -> None:
    class Scale:
        @ll.custom_gradient
        def apply(self, x: Any, by: float = 2.0) -> Any:
            return x * by, lambda dy: dy * 10.0 * by

    assert gradient(Scale().apply, ll.constant(1.0))[0].item() == 20.0
    assert gradient(lambda x: ll.function(Scale().apply)(x, 3.0), ll.constant(1.0))[0].item() == 30.0


@both
def test_048_what_the_body_must_return(stage: Function) -> None:
    x = ll.constant(1.0)
    for result in (lambda x: x, lambda x: (x, x), lambda x: (x, lambda dy: dy, 1)):
        with pytest.raises(SignatureError, match="return y, grad"):
            stage(ll.custom_gradient(result))(x)
    with pytest.raises(ArgumentError, match="decorator"):
        ll.custom_gradient(3)  # type: ignore[arg-type]


@both
def test_048_what_the_rule_raises_is_raised_when_it_is_asked(stage: Function) -> None:
    def refuse(dy: Any) -> Any:
        raise KeyError("not today")

    f = ll.custom_gradient(lambda x: (x * 2.0, refuse))
    x = ll.constant(2.0)
    assert stage(f)(x).item() == 4.0
    with pytest.raises(KeyError, match="not today"):
        gradient(stage(f), x)
    assert gradient(stage(tripled), x)[0].item() == 3.0, "no tape is left active"


# 49 Variables


@both
def test_049_variables_that_the_body_reads_get_their_gradients_from_the_rule(stage: Function) -> None:
    v, w, frozen = ll.Variable(2.0, name="v"), ll.Variable(5.0, name="w"), ll.Variable(1.0, trainable=False)
    seen: list[Any] = []

    @ll.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            seen.append([u.name for u in variables])
            return dy * 10.0, [dy * 100.0, dy * 1000.0]

        return x * inner(x) * frozen, grad

    inner = ll.function(lambda x: ll.function(lambda x: x * v)(x) + w)
    x = ll.constant(3.0)
    F = stage(f)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = F(x)
    assert y.item() == 3.0 * 11.0
    assert [u.name for u in tape.watched_variables()] == ["v", "w"]
    assert [item(g) for g in tape.gradient(y, [x, v, w, frozen])] == [10.0, 100.0, 1000.0, None]
    assert seen[-1] == ["v", "w"]


@both
def test_049_a_rule_that_takes_no_variables_is_refused(stage: Function) -> None:
    v = ll.Variable(2.0)
    f = ll.custom_gradient(lambda x: (x * v, lambda dy: dy))
    x = ll.constant(3.0)
    with pytest.raises(TypeError, match=r"reads 1 trainable variable.*variables=None"):
        gradient(stage(f), x)
    assert gradient(stage(tripled), x)[0].item() == 3.0


@both
def test_049_a_variable_among_the_arguments_is_not_in_the_list(stage: Function) -> None:
    v, w = ll.Variable(2.0), ll.Variable(4.0)

    @ll.custom_gradient
    def f(a: Any, b: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            assert len(variables) == 1
            return (dy * 10.0, dy * 20.0), [dy * 30.0]

        return a * b * w, grad

    with ll.GradientTape() as tape:
        y = stage(lambda: f(v, 3.0))()
    assert [item(g) for g in tape.gradient(y, [v, w])] == [10.0, 30.0]


@both
def test_049_the_answer_for_variables_is_counted(stage: Function) -> None:
    v = ll.Variable(2.0)

    for wrong in (lambda dy, variables: dy, lambda dy, variables: (dy, [dy, dy])):
        f = ll.custom_gradient(lambda x, wrong=wrong: (x * v, wrong))
        with pytest.raises(GradientError, match="variable"):
            gradient(stage(lambda x, f=f: f(x)), ll.constant(1.0))


# 50 Keyword arguments


@both
def test_050_keywords_are_differentiated_in_the_order_of_the_parameters(stage: Function) -> None:
    f = ll.custom_gradient(lambda x, scale=1.0: (x * scale, lambda dy: (dy * 10.0, dy * 100.0)))
    x, s = ll.constant(1.0), ll.constant(2.0)
    for call in (f, lambda x, s: f(x, scale=s), lambda x, s: f(scale=s, x=x)):
        assert [g.item() for g in gradient(stage(call), x, s)] == [10.0, 100.0]
    assert gradient(stage(f), x)[0].item() == 10.0


@both
def test_050_a_tensor_that_can_only_be_named_is_refused(stage: Function) -> None:
    def body(x: Any, *, scale: Any) -> Any:
        return x * scale, lambda dy: dy * 10.0

    f, x = ll.custom_gradient(body), ll.constant(1.0)
    assert gradient(stage(lambda x: f(x, scale=2.0)), x)[0].item() == 10.0
    with pytest.raises(ArgumentError, match="keyword `scale`"):
        stage(lambda x: f(x, scale=x))(x)
    with pytest.raises(TypeError, match=r"missing a required .*argument: 'scale'"):
        stage(lambda x: f(x, factor=2.0))(x)


# 51 Higher orders


@pytest.mark.parametrize("levels", [(s, t) for s in (False, True) for t in (False, True)])
def test_051_the_rule_is_differentiated(levels: tuple[bool, bool]) -> None:
    s = 1 / (1 + np.exp(-0.5))
    f = log1pexp
    found = []
    for staged in (*levels, False):
        f = ll.function(f) if staged else f
        f = slope_of(f)
        found.append(f(ll.constant(0.5, "float64")).item())
    np.testing.assert_allclose(found, [s, s * (1 - s), s * (1 - s) * (1 - 2 * s)], rtol=1e-12)


@both
def test_051_a_nested_rule_says_what_second_order_is(stage: Function) -> None:
    @ll.custom_gradient
    def cube(x: Any) -> Any:
        def first(dy: Any) -> Any:
            @ll.custom_gradient
            def slope(x: Any) -> Any:
                return 3.0 * x * x, lambda ddy: ddy * 1000.0

            return dy * slope(x)

        return x * x * x, first

    slope = stage(lambda x: gradient(stage(cube), x)[0])
    x = ll.constant(2.0)
    assert slope(x).item() == 12.0
    assert gradient(slope, x)[0].item() == 1000.0


@both
def test_051_a_result_that_the_rule_uses_is_differentiated_by_the_ops(stage: Function) -> None:
    @ll.custom_gradient
    def f(x: Any) -> Any:
        y = ll.sin(x)
        return y, lambda dy: dy * y * 10.0  # the rule is no derivative, so it shows which one is taken

    x, slope = ll.constant(0.3, "float64"), f
    for wanted in (10 * np.sin(0.3), 10 * np.cos(0.3), -10 * np.sin(0.3)):
        slope = slope_of(stage(slope))
        assert slope(x).item() == pytest.approx(wanted)


@both
def test_051_gradients_with_respect_to_the_incoming_gradient(stage: Function) -> None:
    x, g = ll.constant([1.0, 2.0]), ll.constant([5.0, 7.0])
    with ll.GradientTape() as outer:
        outer.watch(g)
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = stage(tripled)(x)
        dx = tape.gradient(y, x, output_gradients=g)
    assert outer.gradient(dx, g).tolist() == [3.0, 3.0]


@both
def test_051_forward_mode_transposes_the_rule(stage: Function) -> None:
    x = ll.constant([1.0, 2.0])
    with ll.ForwardAccumulator(x, ll.constant([5.0, 7.0])) as forward:
        y = stage(tripled)(x)
        slope = gradient(stage(log1pexp), x)[0]
    assert forward.jvp(y).tolist() == [15.0, 21.0]
    s = 1 / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(forward.jvp(slope).numpy(), s * (1 - s) * [5.0, 7.0], rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("where", ["branch", "loop"])
def test_051_higher_orders_in_branches_and_loops(where: str, order: int) -> None:
    def inside(f: Function) -> Function:
        if where == "branch":
            return ll.function(lambda x: ll.cond(x > 0.0, lambda: f(x) * x, lambda: x))
        return ll.function(lambda x: ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, f(a) * x), (0, x))[1])

    found = []
    for f in (lambda x: ll.log(1.0 + ll.exp(x)), log1pexp, ll.recompute_grad(lambda x: ll.log(1.0 + ll.exp(x)))):
        g = inside(f)
        for _ in range(order):
            g = slope_of(g)
        found.append(g(ll.constant(0.7, "float64")).item())
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-12)


def test_051_vectorised_and_on_another_device(cpus: list[Any]) -> None:
    x = ll.constant([0.1, 0.2, 0.3], "float64")
    s = 1 / (1 + np.exp(-x.numpy()))
    for f in (log1pexp, ll.function(log1pexp)):
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(tape.jacobian(y, x).numpy(), np.diag(s), rtol=1e-12)
        far = x.to(cpus[1])
        (g,) = gradient(f, far)
        assert g.device is far.device
        np.testing.assert_allclose(g.numpy(), s, rtol=1e-12)
