"""Results of `py_func` by `TensorSpec(None)` inside a trace: what they go through, and what asks for `ensure_shape`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors.base import names

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
OPEN = ll.TensorSpec(None)
SHAPES = [(), (0,), (1,), (3,), (2, 3), (2, 1, 3)]


def opened(x: Any) -> Any:
    """`x` twice, of which a trace knows no number of axes."""
    return ll.py_func(lambda t: t * 2.0, [x], OPEN)


def squared_and_more(y: Any) -> Any:
    return y * y + y


def numbers(shape: tuple[int, ...]) -> Any:
    return ll.constant(np.random.default_rng(3).normal(size=shape).astype(np.float32))


WITH_ONE: dict[str, Callable[[Any], Any]] = {
    "itself": opened,
    "chain": lambda x: ll.tanh(opened(x) * 3.0 + 1.0),
    "twice": lambda x: squared_and_more(opened(x)),
    "of two calls": lambda x: opened(x) - opened(x * 2.0),
    "comparison": lambda x: ll.where(opened(x) > 0.5, opened(x), -x),
    "clip": lambda x: ll.clip(opened(x), -1.0, 0.5),
    "cast": lambda x: opened(x).astype("float64"),
    "like": lambda x: ll.ones_like(opened(x)) + ll.debug.check_numerics(opened(x)),
    "numpy": lambda x: np.exp(opened(x)) + np.float32(1.0),
    "pair": lambda x: divmod(opened(x), 0.5),
    "sum": lambda x: ll.sum(opened(x)),
    "logsumexp": lambda x: ll.logsumexp(opened(x)),
    "all": lambda x: ll.all(opened(x) > 0.0),
    "loss": lambda x: ll.sum(ll.square(opened(x) - x)),
    "ravel": lambda x: ll.ravel(opened(x)),
    "sizes": lambda x: ll.shape_of(opened(x)),
    "nest": lambda x: {"a": opened(x), "b": [x, opened(x)]},
    "branch": lambda x: ll.cond(ll.sum(x) > 0.0, lambda: opened(x) + x, lambda: opened(-x)),
    "loop": lambda x: ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, opened(y) * 0.5 + x), (0, opened(x))),
    "call": lambda x: ll.function(lambda y: y + 1.0)(opened(x)),
    "python again": lambda x: ll.py_func(lambda t, u: t.reshape((-1,)) + u, [opened(x), ll.sum(x)], OPEN),
}


@pytest.mark.parametrize("name", WITH_ONE)
def test_it_is_in_a_trace_what_it_is_eagerly(name: str) -> None:
    call = WITH_ONE[name]
    staged = ll.function(call)
    for shape in SHAPES:
        if shape == (0,) and name == "logsumexp":
            continue
        x = numbers(shape)
        wanted, got = ll.nest.flatten(call(x)), ll.nest.flatten(staged(x))
        for a, b in zip(wanted[0], got[0], strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("left", SHAPES)
def test_shapes_meet_as_in_numpy_and_so_do_gradients(left: tuple[int, ...]) -> None:
    def loss(x: Any, y: Any) -> Any:
        both = opened(x) * ll.tanh(y) + opened(y)
        return ll.sum(both * both)

    staged = ll.function(loss)
    slope, staged_slope = ll.grad(loss, (0, 1)), ll.grad(staged, (0, 1))
    for right in SHAPES:
        x, y = numbers(left), numbers(right) + 1.0
        try:
            wanted = loss(x, y)
        except ll.errors.ShapeError as error:
            with pytest.raises(ll.errors.ShapeError, match=re.escape(str(error).split(";")[0])):
                staged(x, y)
            continue
        np.testing.assert_allclose(staged(x, y).numpy(), wanted.numpy(), rtol=1e-5)
        for a, b, c in zip(slope(x, y), staged_slope(x, y), ll.function(slope)(x, y), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-5, atol=1e-6)


def test_higher_orders_tangents_and_batches() -> None:
    def loss(x: Any) -> Any:
        return ll.sum(ll.sin(opened(x) * x[0]))

    x, staged = numbers((2, 3)), ll.function(loss)

    def second(f: Any) -> Any:
        return ll.grad(lambda x: ll.sum(ll.square(ll.grad(f)(x))))(x).numpy()

    np.testing.assert_allclose(second(loss), second(staged), rtol=1e-5)
    for a, b in zip(ll.jvp(loss, (x,), (x,)), ll.jvp(staged, (x,), (x,)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    each = ll.vectorize(ll.function(lambda row: opened(row) + 1.0))
    np.testing.assert_allclose(each(x).numpy(), x.numpy() * 2.0 + 1.0, rtol=1e-6)


def test_of_any_rank_through_one_trace() -> None:
    """What no trace for each rank could do: the Python function decides."""
    traced: list[Any] = []

    def f(x: Any) -> Any:
        traced.append(x.shape)
        return ll.py_func(ll.squeeze, [x], OPEN) * 2.0

    squeezed = ll.function(f, input_signature=[ll.TensorSpec((None, None))])
    assert [squeezed(ll.ones(shape)).shape for shape in ((2, 3), (1, 3), (1, 1))] == [(2, 3), (3,), ()]
    assert traced == [(None, None)]


def test_ensure_shape_and_reshape_make_it_a_tensor_like_others() -> None:
    seen: list[Any] = []

    @ll.function
    def f(x: Any) -> Any:
        y = ll.ensure_shape(opened(x), (None, 3))
        seen.append((y.shape, y.dtype.name))
        return y @ ll.ones((3, 1)) + ll.reshape(opened(x), (2, 3)) @ ll.ones((3, 1))

    assert f(ll.ones((2, 3))).tolist() == [[12.0], [12.0]]
    assert seen == [((None, 3), "float32")]


@pytest.mark.parametrize("wanted", [(None, 4), (3, None), (None,), 6, (2, 3, 1)])
def test_a_shape_that_is_not_so_is_an_error_when_it_is_known(wanted: Any) -> None:
    x = ll.ones((2, 3))
    open_sizes = [ll.TensorSpec((None, None))]
    for f in (
        lambda x: ll.ensure_shape(x, wanted),
        ll.function(lambda x: ll.ensure_shape(x, wanted)),
        ll.function(lambda x: ll.ensure_shape(x, wanted), input_signature=open_sizes),
        ll.function(lambda x: ll.ensure_shape(opened(x), wanted)),
    ):
        with pytest.raises(
            ll.errors.ShapeError, match=r"ensure_shape: a tensor of shape \((2|None), (3|None)\)"
        ) as told:
            f(x)
        assert "test_unranked_tensor.py line" in str(told.value)


def test_what_is_right_is_kept_and_known_from_there_on() -> None:
    x = ll.ones((2, 3))
    assert ll.ensure_shape(x, (2, None)) is x
    assert ll.ensure_shape(x, None) is x
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = ll.ensure_shape(x, (None, 3))
        seen.append(y.shape)
        return y * 2.0

    staged = ll.function(f, input_signature=[ll.TensorSpec((2, None))])
    assert staged(x).tolist() == [[2.0] * 3] * 2
    assert seen == [(2, 3)]
    assert ll.grad(lambda x: ll.sum(staged(x)))(x).tolist() == [[2.0] * 3] * 2
    each = ll.vectorize(ll.function(lambda row: ll.ensure_shape(row, 3), input_signature=[ll.TensorSpec((None,))]))
    assert each(x).tolist() == x.tolist()


ASKS_FOR_AXES: dict[str, Callable[[Any], Any]] = {
    "shape": lambda y: y.shape,
    "ndim": lambda y: y.ndim,
    "an axis": lambda y: ll.sum(y, axis=0),
    "kept axes": lambda y: ll.max(y, keepdims=True),
    "matmul": lambda y: y @ y,
    "index": lambda y: y[0],
    "len": len,
    "loop": list,
    "transpose": lambda y: y.T,
    "concat": lambda y: ll.concat([y, y]),
    "stack": lambda y: ll.constant([y, y]),
    "softmax": ll.nn.softmax,
    "expand_dims": lambda y: ll.expand_dims(y, 0),
    "assign": lambda y: ll.Variable(ll.zeros(3)).assign(y),
    "map_fn": lambda y: ll.map_fn(opened, ll.ones((2, 3))),
    "one branch": lambda y: ll.cond(ll.all(y > 0.0), lambda: y, lambda: ll.zeros(3)),
}


@pytest.mark.parametrize("name", ASKS_FOR_AXES)
def test_what_needs_the_number_of_axes_says_what_to_write(name: str) -> None:
    f = ll.function(lambda x: ASKS_FOR_AXES[name](opened(x)))
    with pytest.raises(ll.errors.LimelightError, match=r"ll\.ensure_shape"):
        f(ll.ones(3))


def test_what_needs_a_value_says_that_there_is_none() -> None:
    for ask in (bool, float, int, lambda y: y.numpy(), lambda y: y.tolist(), np.asarray, lambda y: f"{y:.1f}"):
        with pytest.raises(ll.errors.SymbolicValueError, match="has a value only when the graph"):
            ll.function(lambda x, ask=ask: ask(opened(x)))(ll.ones(3))
    kept: list[Any] = []
    with pytest.warns(ll.errors.LostChangeWarning, match=r"kept as kept\[0\]"):
        ll.function(lambda x: kept.append(opened(x)) or x)(ll.ones(3))
    with pytest.raises(ll.errors.LeakedTensorError, match="leaked"):
        kept[0] + 1.0


def test_it_is_a_tensor_with_a_dtype_and_words() -> None:
    seen: list[Any] = []

    @ll.function
    def f(x: Any) -> Any:
        y = ll.py_func(lambda t: t > 0.0, [x], ll.TensorSpec(None, "bool"))
        seen.append((isinstance(y, ll.Tensor), y.dtype.name, y.size, "bool[...]" in repr(y)))
        with pytest.raises(ll.errors.DTypeError, match=r"ll\.astype"):
            y * 2.0
        with pytest.raises(AttributeError, match=r"ll\.ensure_shape"):
            y.set_shape((3,))
        return y

    assert f(ll.constant([1.0, -1.0])).tolist() == [True, False]
    assert seen == [(True, "bool", None, True)]


def test_a_gradient_with_respect_to_it_names_what_has_one() -> None:
    @ll.function
    def f(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = opened(x)
            loss = ll.sum(y * y)
        return tape.gradient(loss, y)

    with pytest.raises(ll.errors.ShapeError, match=r"take it with respect to the result of ll.ensure_shape"):
        f(ll.ones(3))


def test_each_executor_runs_it() -> None:
    x = numbers((2, 3))
    f = lambda x: ll.ensure_shape(ll.tanh(opened(x) + x[0]), (2, None))  # noqa: E731
    for name in names():
        with ll.config.executor(name):
            np.testing.assert_allclose(ll.function(f)(x).numpy(), f(x).numpy(), rtol=1e-6)
