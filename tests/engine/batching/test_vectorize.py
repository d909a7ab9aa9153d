"""`vectorize`: axes, structures, effects, randomness, errors; what ops do is in tests/engine/ops/test_batching.py."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight import batching
from limelight.batching import rule_table
from limelight.core import dispatch, op
from limelight.errors import ArgumentError, LeakedTensorError, ShapeError, SymbolicValueError
from limelight.staging import body_batching as staged_batching


@pytest.fixture(params=[lambda f: f, ll.function], ids=["eager", "staged"])
def stage(request):
    return request.param


def numbers(*shape):
    return ll.constant(np.arange(np.prod(shape), dtype=np.float64).reshape(shape))


# --- axes and structures


def test_axes_of_arguments_and_results(stage):
    x, y = numbers(2, 3, 4), numbers(4, 5)
    F = ll.vectorize(lambda a, b: (a.sum(0), b * 2.0, 7), in_axes=(-1, 0), out_axes=(1, -1, None))
    sums, doubled, seven = stage(F)(x, y)
    np.testing.assert_array_equal(sums.numpy(), x.numpy().sum(0))
    np.testing.assert_array_equal(doubled.numpy(), 2 * y.numpy().T)
    assert int(seven) == 7


def test_nests_of_arguments_axes_and_keywords(stage):
    def f(p, scale, *, bias, label):
        return {"y": p["a"] * scale + bias, "z": [p["b"][0], None if label == "same" else 0]}

    p = {"a": numbers(3, 2), "b": (numbers(2, 3),)}
    F = ll.vectorize(f, in_axes=({"a": 0, "b": 1}, None), out_axes={"y": 0, "z": [1, None]})
    found = stage(F)(p, numbers(2), bias=numbers(3, 2), label="same")
    np.testing.assert_array_equal(found["y"].numpy(), p["a"].numpy() * np.arange(2) + p["a"].numpy())
    np.testing.assert_array_equal(found["z"][0].numpy(), p["b"][0].numpy())
    assert found["z"][1] is None


def test_results_that_are_the_same_for_all_examples():
    x = numbers(3, 2)
    both, shared = ll.vectorize(lambda a: (ll.constant(2.0), ll.ones(2)), out_axes=(0, None))(x)
    assert (both.tolist(), shared.tolist()) == ([2.0] * 3, [1.0, 1.0])
    assert ll.vectorize(lambda a: 5)(x).tolist() == [5, 5, 5]


def test_defaults_are_shared(stage):
    def f(x, axis=0, *, power=2):
        return ll.sum(x**power, axis=axis)

    x = numbers(2, 3)
    assert stage(ll.vectorize(f))(x).tolist() == (x.numpy() ** 2).sum(1).tolist()


def test_variables_are_shared_and_may_be_arguments():
    v = ll.Variable([1.0, 2.0])
    assert ll.vectorize(lambda x: ll.sum(x * v))(ll.ones((3, 2))).tolist() == [3.0] * 3
    assert ll.vectorize(lambda x: x * x)(v).tolist() == [1.0, 4.0]


def test_nested(stage):
    x, y = numbers(3, 2), numbers(4, 2)
    pairs = ll.vectorize(lambda a: ll.vectorize(lambda b: ll.sum(a * b))(y))
    np.testing.assert_allclose(stage(pairs)(x).numpy(), x.numpy() @ y.numpy().T)
    elements = ll.vectorize(ll.vectorize(lambda a, b: a * b + 1.0, in_axes=(0, None)), in_axes=(0, 0))
    np.testing.assert_allclose(stage(elements)(x, numbers(3)).numpy(), x.numpy() * np.arange(3)[:, None] + 1)


@pytest.mark.parametrize("n", [0, 1])
def test_no_examples_and_one(stage, n):
    F = stage(ll.vectorize(lambda x: (ll.sum(x * 2.0), ll.tril(ll.outer(x, x)), ll.argmax(x))))
    total, outer, place = F(numbers(n, 3))
    assert (total.shape, outer.shape, place.shape) == ((n,), (n, 3, 3), (n,))


def test_chunks_give_the_same(stage):
    x = numbers(7, 3)
    seen = []

    def f(a):
        seen.append(a._batcher.size)
        return ll.tanh(a), ll.sum(a)

    wanted = ll.vectorize(f)(x)
    del seen[:]
    found = stage(ll.vectorize(f, out_axes=(1, 0), chunk_size=3))(x)
    assert seen == [3, 3, 1]
    np.testing.assert_array_equal(found[0].numpy().T, wanted[0].numpy())
    np.testing.assert_array_equal(found[1].numpy(), wanted[1].numpy())


def test_of_an_unknown_number_of_examples():
    def f(x, w):
        return ll.nn.softmax(ll.tanh(x @ w)).reshape((-1, 1)), x[1:], ll.max(x)

    F = ll.function(
        ll.vectorize(f, in_axes=(0, None)),
        input_signature=[ll.TensorSpec((None, 3), "float64"), ll.TensorSpec((3, 2), "float64")],
    )
    w = numbers(3, 2)
    for n in (1, 4):
        for found, column in zip(
            F(numbers(n, 3), w), zip(*[f(row, w) for row in numbers(n, 3)], strict=True), strict=True
        ):
            np.testing.assert_allclose(found.numpy(), np.stack([x.numpy() for x in column]))
    assert F.trace_count == 1


# --- what happens in loops, effects, random numbers


def test_a_loop_is_told():
    op.defop(
        "twice_for_a_test",
        inputs="x",
        infer=lambda x: x,
        kernel=lambda xp, x: x * 2,
        vjp={"x": lambda g: g * 2.0},
        maths={"x": "x̄ = 2 ȳ"},
    )
    try:
        F = ll.vectorize(lambda x: dispatch.apply(op.get("twice_for_a_test"), (ll.sin(x),)) * 1.0)
        x = numbers(3, 2)
        np.testing.assert_allclose(F(x).numpy(), 2 * np.sin(x.numpy()))
        assert F.looped == {"twice_for_a_test": 1}
        assert batching.how("twice_for_a_test") == "loop"
        g = ll.grad(lambda x: ll.sum(F(x)))(x)
        np.testing.assert_allclose(g.numpy(), 2 * np.cos(x.numpy()))
        rule_table.rule("twice_for_a_test")(rule_table.elementwise)
        np.testing.assert_allclose(F(x).numpy(), 2 * np.sin(x.numpy()))
        assert not F.looped
        assert batching.how("twice_for_a_test") == "elementwise"
    finally:
        del op._ops["twice_for_a_test"]
        del rule_table._SEPARATE["twice_for_a_test"]


def test_every_op_has_a_batching_rule_or_states_that_it_loops():
    silent = [
        name
        for name, each in op.all_ops().items()
        if rule_table.rule_for(each) is None
        and each.batching != "loop"
        and each.effect != "write"  # refused
        and any(operand.accepts != "var" for operand in each.operands)  # else there is nothing to batch
    ]
    assert not silent


def test_no_op_states_a_rule_that_follows_from_what_it_is():
    assert not [
        each for each in op.all_ops().values() if each.batching in ("elementwise", "reduction") and each.elementwise
    ]


def test_every_kind_of_batching_rule_has_an_op():
    stated = {each.batching for each in op.all_ops().values()}
    assert set(rule_table.KINDS) - stated == {"reduction"}  # which is derived


def test_an_op_of_ones_own_states_its_batching_rule():
    fields = {"inputs": "x", "infer": lambda x: x, "kernel": lambda xp, x: x - x.max(-1, keepdims=True)}
    why = "a test needs none"
    by_kind = op.defop("centred_by_kind", why_no_gradient=why, batching="last_axes", **fields)
    by_rule = op.defop("centred_by_rule", why_no_gradient=why, batching=lambda site: site.run(site.inputs), **fields)
    separate = op.defop("centred_by_a_rule_apart", why_no_gradient=why, **fields)
    batching.rule("centred_by_a_rule_apart")(lambda site: site.run(site.inputs))
    wrong = op.defop("centred_wrongly", why_no_gradient=why, batching="last_axis", **fields)
    x = numbers(3, 2)
    for one in (by_kind, by_rule, separate):
        F = ll.vectorize(one)
        np.testing.assert_array_equal(F(x).numpy(), [[-1.0, 0.0]] * 3)
        assert not F.looped
    with pytest.raises(ArgumentError, match=r"op centred_wrongly: batching='last_axis' is no kind .* last_axes,"):
        ll.vectorize(wrong)(x)


def test_random_numbers_are_independent_for_each_example(stage):
    def f(x):
        rate = ll.exp(x) + 1.0
        return ll.random.normal((500,)) + x, ll.random.permutation(50), ll.random.poisson(rate), ll.random.poisson(5.0)

    F = ll.vectorize(f)
    drawn, orders, counts, alike = stage(F)(ll.zeros((40,)))
    assert (drawn.shape, counts.shape, alike.shape) == ((40, 500), (40,), (40,))
    assert np.abs(np.corrcoef(drawn.numpy()) - np.eye(40)).max() < 0.3
    assert len({tuple(order) for order in orders.tolist()}) == 40
    assert len(set(counts.tolist())) > 2
    assert len(set(alike.tolist())) > 2
    assert F.looped == {"random_permutation": 1}


def test_dropout_differs_between_examples():
    masks = ll.vectorize(lambda x: ll.random.dropout_mask(ll.ones(200), 0.5) * x)(ll.ones(3))
    assert (masks.numpy()[0] != masks.numpy()[1]).any()


def test_effects_that_depend_on_no_example_happen_once(stage):
    v = ll.Variable(0.0)
    printed = []

    def f(x):
        v.assign_add(1.0)
        ll.py_func(lambda: printed.append(1), [], None)
        return x * v

    assert stage(ll.vectorize(f))(ll.ones(3)).tolist() == [1.0] * 3
    assert (v.numpy(), printed) == (1.0, [1])


def test_python_functions_run_for_each_example(stage):
    seen = []

    def note(x):
        seen.append(float(x))
        return x * 2.0

    F = ll.vectorize(lambda x: ll.py_func(note, [x], ll.TensorSpec((), "float64")))
    assert stage(F)(numbers(3)).tolist() == [0.0, 2.0, 4.0]
    assert seen == [0.0, 1.0, 2.0]
    g = ll.grad(lambda x: ll.sum(stage(F)(x)))(numbers(3))
    assert g.tolist() == [2.0, 2.0, 2.0]


# --- what is refused


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ll.vectorize(3), ArgumentError, "needs a function, got int"),
        (lambda: ll.vectorize(abs, in_axes="x"), ArgumentError, "ints, None, or nests of them, got 'x'"),
        (lambda: ll.vectorize(abs, chunk_size=0), ArgumentError, "chunk_size must be"),
        (lambda: ll.vectorize(abs)(2.0), ShapeError, r"`x` is f32\[\] and has no axis 0 .*in_axes=None"),
        (lambda: ll.vectorize(abs, in_axes=None)(ll.ones(2)), ArgumentError, "no argument has examples"),
        (lambda: ll.vectorize(abs, in_axes=(0, 0))(ll.ones(2)), ArgumentError, r"in_axes=\(0, 0\) for 1 arguments"),
        (lambda: ll.vectorize(max)(ll.ones(2), ll.ones(3)), ShapeError, r"2 in `argument 0`, 3 in `argument 1`"),
        (lambda: ll.vectorize(abs, out_axes=None)(ll.ones(2)), ArgumentError, "out_axes is None for a result"),
        (lambda: ll.vectorize(abs, out_axes=2)(ll.ones(2)), ShapeError, "out_axes=2 for a result"),
        (lambda: ll.vectorize(abs, out_axes=(0, 0))(ll.ones(2)), ArgumentError, "`out_axes` must have the structure"),
        (lambda: ll.vectorize(float)(ll.ones(2)), SymbolicValueError, "different for each example.*ll.where"),
        (lambda: ll.vectorize(lambda x: 1 if x > 0 else 2)(ll.ones(2)), SymbolicValueError, "cannot decide"),
        (lambda: ll.vectorize(np.asarray)(ll.ones(2)), SymbolicValueError, "no NumPy array"),
        (lambda: ll.vectorize(lambda x: x[x > 0])(ll.constant([[1.0, -1.0], [1.0, 1.0]])), ShapeError, "for another"),
        (lambda: ll.vectorize(ll.Variable(0.0).assign)(ll.ones(2)), ArgumentError, "assign after the call"),
        (lambda: ll.vectorize(lambda x: x @ ll.ones(3))(ll.ones((2, 2))), ShapeError, r"matmul: f32\[2\]"),
    ],
)
def test_what_is_refused_says_what_to_write(make, error, words):
    with pytest.raises(error, match=words):
        make()
    assert dispatch.active == []


def test_shape_errors_are_those_of_one_example():
    def f(x):
        return ll.sum(x + ll.ones(2))

    with pytest.raises(ShapeError) as alone:
        f(ll.ones(3))
    with pytest.raises(ShapeError) as vectorised:
        ll.vectorize(f)(ll.ones((5, 3)))
    assert str(vectorised.value) == str(alone.value)


def test_one_examples_tensor_outside_its_call():
    kept = []
    ll.vectorize(lambda x: kept.append(x) or x)(ll.ones((2, 3)))
    assert repr(kept[0]) == "<one example's f32[3] in vectorize(<lambda>) over 2 examples>"
    with pytest.raises(LeakedTensorError, match="leaked out of vectorize"):
        kept[0] + 1.0
    with pytest.raises(LeakedTensorError, match="leaked out of vectorize"):
        kept[0].numpy()


def test_nothing_is_left_active_after_an_error_inside():
    with pytest.raises(KeyError):
        ll.vectorize(lambda x: {}["missing"])(ll.ones(2))
    assert dispatch.active == []
    assert not hasattr(ll.ones(2) + 1.0, "_batcher")


def test_gradients_of_ones_own(stage):
    """The rule is for one example; it reads what differs between examples, and what they share."""
    seen = []

    @ll.custom_gradient
    def f(x, w):
        e = ll.sin(x)

        def pull(dy):
            seen.append(dy.shape)
            return dy * 10.0 * e, ll.sum(dy * e)

        return x * w, pull

    x, w = numbers(4, 3), ll.constant(2.0, "float64")
    s = np.sin(x.numpy())
    inner = ll.vectorize(ll.grad(lambda x, w: ll.sum(f(x, w)), argnums=(0, 1)), in_axes=(0, None))
    by_x, by_w = stage(inner)(x, w)
    np.testing.assert_allclose(by_x.numpy(), 10 * s)
    np.testing.assert_allclose(by_w.numpy(), s.sum(1))
    outer = ll.grad(lambda x, w: ll.sum(ll.vectorize(f, in_axes=(0, None))(x, w)), argnums=(0, 1))
    by_x, by_w = stage(outer)(x, w)
    np.testing.assert_allclose(by_x.numpy(), 10 * s)
    np.testing.assert_allclose(by_w.numpy(), s.sum())
    assert set(seen) == {(3,)}
    V = ll.vectorize(ll.function(lambda x: f(x, w)))
    np.testing.assert_allclose(ll.grad(lambda x: ll.sum(V(x)))(x).numpy(), 10 * s)
    assert not V.looped
    second = ll.grad(lambda x: ll.sum(outer(x, w)[0] * x))(x)
    np.testing.assert_allclose(second.numpy(), 10 * s + 10 * np.cos(x.numpy()) * x.numpy())
    assert dispatch.active == []


def test_recomputed_parts_that_close_over_an_example(stage):
    def f(x):
        return ll.recompute_grad(lambda y: ll.sum(ll.sin(y) * x))(x * 2.0)

    def plain(x):
        return ll.sum(ll.sin(x * 2.0) * x)

    x = numbers(4, 3)
    wanted = ll.vectorize(ll.grad(plain))(x)

    def by_element(row):
        rows, units = ll.stack([row] * 3), ll.eye(3, dtype="float64")
        return ll.jvp(ll.vectorize(f), (rows,), (units,))[1]

    for way in (ll.vectorize(ll.grad(f)), ll.grad(lambda x: ll.sum(ll.vectorize(f)(x))), ll.vectorize(by_element)):
        np.testing.assert_allclose(stage(way)(x).numpy(), wanted.numpy(), rtol=1e-12)


def test_nothing_is_kept_alive_by_the_call():
    x = ll.constant(np.ones((2, 3)))
    seen = []
    gc.disable()
    try:
        y = ll.vectorize(lambda row: seen.append(weakref.ref(row)) or ll.sin(row) * row)(x)
        assert seen[0]() is None
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_versions_for_many_numbers_of_examples_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(staged_batching, "MAX_VERSIONS", 4)
    inner = ll.function(lambda x: ll.cond(ll.sum(x) > 0, lambda: x * 2.0, lambda: -x))
    V = ll.vectorize(lambda x: inner(x) + 1.0)
    for n in range(1, 12):
        np.testing.assert_array_equal(V(numbers(n, 2)), [inner(row) + 1.0 for row in numbers(n, 2)])
    versions = [key for key in inner.trace_cache[0].function.pairs if key[:1] == ("many",)]
    assert [key[2] for key in versions] == [8, 9, 10, 11]
