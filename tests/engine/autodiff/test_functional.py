"""Derivatives as functions: arguments, structures, errors, and every order and nesting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import limelight as ll
from limelight.core import dispatch
from limelight.errors import ArgumentError, DTypeError, ShapeError

DOUBLE = "float64"


@pytest.fixture(params=[lambda f: f, ll.function], ids=["eager", "staged"])
def stage(request):
    return request.param


def arrays(tree):
    return ll.nest.map_structure(lambda t: t if t is None else t.numpy().tolist(), tree)


# --- grad


def test_arguments_in_any_structure(stage):
    def f(params, scale, label, *, power=2):
        assert label == "loss"
        return ll.sum(params["w"] ** power) * scale + params["rest"][0] * params["step"].astype(ll.float32)

    params = {"w": ll.constant([1.0, 2.0]), "rest": [3.0, None], "step": ll.constant(5)}
    value, (g, by_scale) = ll.value_and_grad(stage(f), argnums=(0, 1))(params, np.float32(10.0), "loss", power=3)
    assert value.item() == 9 * 10 + 15
    assert arrays(g) == {"rest": [5.0, None], "step": None, "w": [30.0, 120.0]}
    assert by_scale.item() == 9.0


def test_argnums_count_from_the_end_and_pick_one(stage):
    f = stage(lambda a, b, c: a * b * b * c)
    assert ll.grad(f, argnums=-1)(2.0, 3.0, 5.0).item() == 18.0
    assert [g.item() for g in ll.grad(f, argnums=[1])(2.0, 3.0, 5.0)] == [60.0]


def test_aux_goes_along(stage):
    def f(x):
        return ll.sum(x * x), {"doubled": x * 2.0, "name": 3}

    g, aux = ll.grad(stage(f), has_aux=True)(ll.constant([1.0, 2.0]))
    assert (g.tolist(), aux["doubled"].tolist()) == ([2.0, 4.0], [2.0, 4.0])
    (value, aux), g = ll.value_and_grad(stage(f), has_aux=True)(ll.constant([1.0, 2.0]))
    assert (value.item(), g.tolist()) == (5.0, [2.0, 4.0])
    h, aux = ll.hessian(stage(f), has_aux=True)(ll.constant([1.0, 2.0]))
    assert h.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert aux["doubled"].tolist() == [2.0, 4.0]


def test_variables(stage):
    v, w, unused = ll.Variable(3.0), ll.Variable([1.0, 2.0]), ll.Variable(7.0)
    f = stage(lambda x: ll.sum(w * w) * v * x)
    g, (by_v, by_unused) = ll.grad(f, variables=[v, unused])(2.0)
    assert (g.item(), by_v.item(), by_unused.item()) == (15.0, 10.0, 0.0)
    assert ll.grad(f, argnums=None, variables=[w])(2.0)[0].tolist() == [12.0, 24.0]
    assert ll.grad(lambda params: params["v"] * params["v"])({"v": v})["v"].item() == 6.0
    assert ll.grad(f)(2.0).item() == 15.0  # variables that nobody asked for are constants


def test_what_has_no_influence_has_zeros_or_none(stage):
    f = stage(lambda x, y: ll.sum(y * ll.stop_gradient(x)))
    x, y = ll.constant([1.0, 2.0]), ll.constant([3.0, 4.0])
    assert arrays(ll.grad(f, argnums=(0, 1))(x, y)) == ([0.0, 0.0], [1.0, 2.0])
    assert ll.grad(f, unconnected_gradients="none")(x, y) is None
    assert ll.grad(lambda x: 5.0)(x).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ll.grad(lambda x: x)(ll.ones(2)), ShapeError, "must return one number, got f32.2.*ll.jacobian"),
        (lambda: ll.grad(lambda x: (x, x))(1.0), ShapeError, "got tuple; for further results .*has_aux=True"),
        (lambda: ll.grad(lambda x: None)(1.0), ShapeError, "got NoneType"),
        (lambda: ll.grad(lambda x: x > 0)(1.0), DTypeError, "one real floating number, got bool"),
        (lambda: ll.grad(lambda x: x)(1j), DTypeError, "one real floating number, got c64"),
        (lambda: ll.grad(lambda x: x)(3), DTypeError, "argument 0 .int. .*write 3.0 for 3"),
        (lambda: ll.grad(lambda x: x)(ll.constant(3)), DTypeError, "argument 0 .i32"),
        (lambda: ll.grad(lambda x: x)("a"), DTypeError, "argument 0 .str."),
        (lambda: ll.grad(lambda x: x, argnums=1)(1.0), ArgumentError, "argnums says 1, and there are 1 positional"),
        (lambda: ll.grad(lambda x: x, argnums=(0, -1))(1.0), ArgumentError, "names an argument twice"),
        (lambda: ll.grad(lambda x: x, argnums="x")(1.0), ArgumentError, "argnums says 'x'"),
        (lambda: ll.grad(lambda x: x, has_aux=True)(1.0), ArgumentError, r"must return \(value, aux\)"),
        (lambda: ll.grad(3.0), ArgumentError, "needs a function, got float"),
        (lambda: ll.grad(lambda x: x, argnums=None), ArgumentError, r"needs variables=\[...\]"),
        (lambda: ll.grad(lambda x: x, variables=[1.0]), ArgumentError, "a list of variables, got float"),
        (lambda: ll.jvp(lambda x: x, 1.0, 1.0), ArgumentError, r"tuples or lists.*write \(x,\)"),
        (lambda: ll.jvp(lambda x: x, (1.0,), (1.0, 2.0)), ArgumentError, "must have the structure"),
        (lambda: ll.jvp(lambda x: x, (1.0,), (ll.ones(2),)), ShapeError, r"a tangent of shape \(2,\)"),
        (lambda: ll.jvp(lambda x: x, (1,), (1,)), DTypeError, "is int32 and cannot move"),
        (lambda: ll.vjp(lambda x: x, 1.0)[1](ll.ones(2)), ShapeError, r"an output gradient of shape \(2,\)"),
        (lambda: ll.vjp(lambda x: (x, x), 1.0)[1](1.0), ArgumentError, "`g` must have the structure"),
        (lambda: ll.jacobian(lambda x: x, mode="both")(1.0), ArgumentError, '"reverse" or "forward", got \'both\''),
    ],
)
def test_what_is_refused_says_what_to_write(make, error, words):
    with pytest.raises(error, match=words):
        make()
    assert dispatch.active == []


# --- jvp and vjp


def test_a_product_for_nested_arguments_and_results(stage):
    def f(p, k):
        return {"y": p["a"] * p["b"], "n": k, "rest": [ll.sum(p["a"])]}

    p = {"a": ll.constant([1.0, 2.0]), "b": ll.constant([3.0, 4.0])}
    moves = {"a": ll.constant([1.0, 0.0]), "b": None}
    value, tangent = ll.jvp(stage(f), (p, 5), (moves, None))
    assert arrays(tangent) == {"n": None, "rest": [1.0], "y": [3.0, 0.0]}
    assert value["y"].tolist() == [3.0, 8.0]
    value, pull = ll.vjp(stage(lambda p: f(p, 5)), p)
    (g,) = pull({"y": ll.constant([1.0, 10.0]), "n": None, "rest": [None]})
    assert arrays(g) == {"a": [3.0, 40.0], "b": [1.0, 20.0]}
    (g,) = pull({"y": None, "n": None, "rest": [ll.constant(2.0)]})
    assert arrays(g) == {"a": [2.0, 2.0], "b": [0.0, 0.0]}


def test_products_with_aux():
    assert [x.item() for x in ll.jvp(lambda x: (x * x, x), (3.0,), (1.0,), has_aux=True)] == [9.0, 6.0, 3.0]
    value, pull, aux = ll.vjp(lambda x: (x * x, x + 1.0), 3.0, has_aux=True)
    assert (value.item(), pull(1.0)[0].item(), aux.item()) == (9.0, 6.0, 4.0)


# --- jacobian and hessian


def field(x, y):
    return {"a": ll.stack([x[0] * x[1], ll.sin(x[1]), ll.sum(y)]), "b": ll.sum(x) * y}


@pytest.mark.parametrize(
    "options", [{}, {"chunk_size": 2}, {"vectorized": False}], ids=["at once", "chunks", "one by one"]
)
def test_both_modes_agree(stage, options):
    x, y = ll.constant([0.3, 0.7], DOUBLE), ll.constant([[1.0, -1.0, 2.0]], DOUBLE)
    found = [ll.jacobian(stage(field), (0, 1), mode=mode, **options)(x, y) for mode in ("reverse", "forward")]
    for key, argument in itertools.product("ab", (0, 1)):
        one, other = found[0][key][argument], found[1][key][argument]
        assert one.shape == other.shape == (*((3,) if key == "a" else (1, 3)), *(x, y)[argument].shape)
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)
    np.testing.assert_allclose(found[0]["a"][0].numpy(), [[0.7, 0.3], [0, np.cos(0.7)], [0, 0]])


def test_hessians(stage):
    def f(x, y):
        return ll.sum(x * x * x) * ll.sum(y) + ll.prod(x)

    x, y = ll.constant([1.0, 2.0], DOUBLE), ll.constant([3.0], DOUBLE)
    h = ll.hessian(stage(f), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(h[0][0].numpy(), [[18, 1], [1, 36]])
    np.testing.assert_allclose(h[0][1].numpy(), [[3], [12]])
    np.testing.assert_allclose(h[1][0].numpy(), [[3, 12]])
    np.testing.assert_allclose(h[1][1].numpy(), [[0]])
    twice = ll.jacobian(ll.jacobian(stage(f)))(x, y)
    np.testing.assert_allclose(twice.numpy(), h[0][0].numpy())
    np.testing.assert_allclose(ll.function(ll.hessian(f))(x, y).numpy(), h[0][0].numpy())


def test_a_jacobian_of_unknown_sizes():
    f = ll.function(ll.jacobian(lambda a: ll.tanh(a) * ll.sum(a), mode="forward"))
    F = ll.function(f.python_function, input_signature=[ll.TensorSpec((None,), DOUBLE)])
    for n in (1, 4):
        x = ll.constant(np.linspace(0, 1, n))
        np.testing.assert_allclose(F(x).numpy(), f(x).numpy(), rtol=1e-12)
    assert F.trace_count == 1


# --- any order and nesting

TRANSFORMS = {
    "grad": lambda f: ll.grad(lambda x: ll.sum(f(x))),
    "jvp": lambda f: lambda x: ll.jvp(f, (x,), (ll.ones_like(x),))[1],
    "tape": lambda f: lambda x: _by_tape(f, x),
    "vectorize": lambda f: lambda x: ll.vectorize(f)(ll.stack([x, x * 2.0])).sum(0),
    "function": ll.function,
}


def _by_tape(f, x):
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def by_hand(names, polynomial):
    """What the transforms do to sums of c x^n, element by element."""
    for name in reversed(names):
        if name in ("grad", "jvp", "tape"):
            polynomial = {n - 1: c * n for n, c in polynomial.items() if n}
        elif name == "vectorize":
            polynomial = {n: c * (1 + 2.0**n) for n, c in polynomial.items()}
    return lambda x: sum(c * x**n for n, c in polynomial.items())


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@pytest.mark.parametrize("names", list(itertools.product(TRANSFORMS, repeat=2)), ids=" ".join)
def test_any_three_in_any_order(names):
    for third in TRANSFORMS:
        as_by_hand((*names, third))


def as_by_hand(names):
    f = lambda x: x**5.0 + 2.0 * x**3.0  # noqa: E731  # the innermost of a row of functions
    for name in reversed(names):
        f = TRANSFORMS[name](f)
    x = ll.constant([0.5, 1.5], DOUBLE)
    np.testing.assert_allclose(f(x).numpy(), by_hand(names, {5: 1.0, 3: 2.0})(x.numpy()), rtol=1e-10)


# --- devices


def test_derivatives_are_where_their_sources_are(second_cpu):
    with ll.device("cpu:1"):
        x = ll.constant([1.0, 2.0])
    f = lambda a: (a * a).to("cpu:0") * ll.constant([3.0, 4.0])  # noqa: E731
    for mode in ("reverse", "forward"):
        found = ll.jacobian(lambda a: a * a, mode=mode)(x)
        assert (found.device.short, found.tolist()) == ("CPU:1", [[2.0, 0.0], [0.0, 4.0]])
    assert ll.jacobian(f)(x).device.short == "CPU:1"
    assert ll.jvp(f, (x,), (x,))[1].device.short == "CPU:0"
    assert ll.hessian(lambda a: ll.sum(a * a * a))(x).device.short == "CPU:1"
    assert ll.vectorize(lambda a: a * 2.0)(x).device.short == "CPU:1"
