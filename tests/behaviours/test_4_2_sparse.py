"""Section 4.2, differentiation: behaviour 45 (sparse gradients), and what of 81 they need (updates of parts)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from behaving import both

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, RunError, ShapeError

TABLE = np.arange(8.0, dtype=np.float32).reshape(4, 2)


def embedding_gradient(ids: Any, source: Any, also: Callable[[Any], Any] = lambda t: 0.0) -> Any:
    """Of a sum of squares of the rows at `ids`, and something else."""
    with ll.GradientTape() as tape:
        tape.watch(source)
        rows = ll.nn.embedding(source, ids)
        y = ll.sum(rows * rows) + also(source)
    return tape.gradient(y, source)


def expected(*ids: int) -> Any:
    wanted = np.zeros_like(TABLE)
    for i in ids:
        wanted[i] += 2 * TABLE[i]
    return wanted


# 45 Sparse gradients


@pytest.mark.parametrize("make", [ll.Variable, ll.constant], ids=["variable", "tensor"])
def test_045_a_lookup_has_the_rows_it_touched(make: Callable[..., Any]) -> None:
    g = embedding_gradient(ll.constant([[2, 0], [2, -1]]), make(TABLE))
    assert isinstance(g, ll.SparseGradient)
    assert (g.shape, g.dtype, g.indices.tolist()) == ((4, 2), ll.float32, [2, 0, 2, -1])
    assert g.values.tolist() == (2 * TABLE[[2, 0, 2, 3]]).tolist()
    assert np.asarray(g).tolist() == g.dense().tolist() == expected(2, 0, 2, 3).tolist()
    assert str(g) == "<sparse gradient f32[4,2]: rows [2, 0, 2, -1]>"


def test_045_several_lookups_and_dense_parts_add_up() -> None:
    v = ll.Variable(TABLE)
    g = embedding_gradient([0, 1], v, lambda t: ll.sum(ll.nn.embedding(t, ll.constant([[1], [1]], "int64"))))
    assert isinstance(g, ll.SparseGradient)
    assert sorted(g.indices.tolist()) == [0, 1, 1, 1]
    ones = np.zeros_like(TABLE)
    ones[1] = 2.0
    assert g.numpy().tolist() == (expected(0, 1) + ones).tolist()
    for also in (lambda t: ll.sum(t * 3.0), lambda t: ll.sum(ll.take(t, [0, 1, 2, 3])) * 3.0):
        dense = embedding_gradient([0, 1], v, also)
        assert type(dense) is ll.Tensor
        assert dense.tolist() == (expected(0, 1) + 3.0).tolist()


def test_045_it_is_a_tensor_wherever_one_is_wanted() -> None:
    g = embedding_gradient([2, 0, 2], ll.Variable(TABLE))
    dense = expected(2, 0, 2)
    for found, wanted in (
        (g + 1.0, dense + 1),
        (1.0 - g, 1 - dense),
        (np.ones((4, 2), "float32") * g, dense),
        (ll.constant(TABLE) + g, TABLE + dense),
        (ll.add(g, g), 2 * dense),
        (ll.sum(g, axis=0), dense.sum(0)),
        (g @ np.ones(2, "float32"), dense.sum(1)),
        (g.mean(), dense.mean()),
        (g[2], dense[2]),
        (ll.function(lambda t: t * t)(g), dense * dense),
    ):
        assert type(found) is ll.Tensor
        np.testing.assert_allclose(found.numpy(), wanted)
    for sparse, wanted in (
        (g + g, 2 * dense),
        (g * 2, 2 * dense),
        (0.5 * g, dense / 2),
        (-g, -dense),
        (g / 4.0, dense / 4),
    ):
        assert isinstance(sparse, ll.SparseGradient)
        np.testing.assert_allclose(sparse.numpy(), wanted)
    with pytest.raises(AttributeError, match="no attribute 'rows'"):
        g.rows  # noqa: B018


def test_045_rows_that_occur_again_can_be_added_up() -> None:
    g = embedding_gradient([3, 0, -1, 3], ll.Variable(TABLE))
    once = g.coalesced()
    assert once.indices.tolist() == [0, 3]
    assert once.values.tolist() == [expected(0)[0].tolist(), expected(3, 3, 3)[3].tolist()]
    assert once.dense().tolist() == g.dense().tolist()


@pytest.mark.parametrize("signature", [None, [ll.TensorSpec((None, None), "int32")]], ids=["known", "unknown"])
def test_045_sparse_inside_a_staged_step(signature: Any) -> None:
    v, seen = ll.Variable(TABLE), []

    @ll.function(input_signature=signature)
    def step(ids: Any) -> Any:
        g = embedding_gradient(ids, v, lambda t: ll.sum(ll.nn.embedding(t, ids[0])))
        seen.append(type(g))
        once = g.coalesced()
        v.scatter_sub(g.indices, g.values)
        return g, once.indices

    dense, rows = step(ll.constant([[2, 0], [2, -1]]))
    wanted = expected(2, 0, 2, 3)
    wanted[[2, 0]] += 1
    assert seen == [ll.SparseGradient]
    assert dense.tolist() == wanted.tolist()
    assert rows.tolist() == [0, 2, 3]
    np.testing.assert_allclose(v.numpy(), TABLE - wanted)


def test_045_dense_where_it_goes_on() -> None:
    """Through another op's rule, out of a staged function, to second order."""
    v, ids = ll.Variable(TABLE), ll.constant([1, 1, 3])
    with ll.GradientTape() as tape:
        y = ll.sum(ll.nn.embedding(v * 3.0, ids))
    through = tape.gradient(y, v)
    assert type(through) is ll.Tensor
    assert through.numpy()[:, 0].tolist() == [0.0, 6.0, 0.0, 3.0]
    staged = ll.function(lambda i: ll.sum(ll.nn.embedding(v, i) * 3.0))
    with ll.GradientTape() as tape:
        y = staged(ids)
    around = tape.gradient(y, v)
    assert type(around) is ll.Tensor
    assert around.tolist() == through.tolist()
    spec = ll.TensorSpec((), "float32")
    escaped = ll.function(lambda t, i: ll.py_func(lambda a, b: ll.sum(ll.nn.embedding(a, b) * 3.0), [t, i], spec))
    with ll.GradientTape() as tape:
        tape.watch(x := ll.constant(TABLE))
        y = escaped(x, ids)
    assert tape.gradient(y, x).tolist() == through.tolist()


@both
def test_045_second_order(stage: Callable[..., Any]) -> None:
    x = ll.constant(TABLE)
    weights = np.arange(8.0, dtype="float32").reshape(4, 2)

    @stage
    def curvature(x: Any, use: Any) -> Any:
        with ll.GradientTape(persistent=True) as outer:
            outer.watch(x)
            g = embedding_gradient([2, 0, 2], x)
            total = ll.sum(g * use)
        return outer.gradient(total, x), outer.gradient(g, x, output_gradients=use), outer.gradient(g, x)

    computed, weighted, plain = curvature(x, ll.constant(weights))
    counts = np.array([[1.0], [0.0], [2.0], [0.0]], "float32")
    assert computed.numpy().tolist() == weighted.numpy().tolist() == (2 * counts * weights).tolist()
    assert plain.numpy().tolist() == (2 * counts * np.ones_like(TABLE)).tolist()


def test_045_taking_rows_otherwise_is_dense() -> None:
    v = ll.Variable(TABLE)
    for look_up in (
        lambda t: ll.take(t, [1, 1]),
        lambda t: t[[1, 1]],
        lambda t: ll.nn.embedding(t, [1, 1], sparse=False),
    ):
        with ll.GradientTape() as tape:
            y = ll.sum(look_up(v))
        g = tape.gradient(y, v)
        assert type(g) is ll.Tensor
        assert g.numpy()[:, 0].tolist() == [0.0, 2.0, 0.0, 0.0]


def test_045_mistakes() -> None:
    for table, ids, error in (
        (TABLE, [4], RunError),
        (TABLE, [0.5], DTypeError),
        (1.0, [0], ShapeError),
    ):
        with pytest.raises(error):
            ll.nn.embedding(ll.constant(table), ll.constant(ids))


# 81 Updates of a part of a variable


@both
def test_081_scatter_updates(stage: Callable[..., Any]) -> None:
    v = ll.Variable(TABLE)

    @stage
    def update(ids: Any, rows: Any) -> Any:
        before = v.read_value()
        added = v.scatter_add(ids, rows)
        between = v.read_value()
        taken = v.scatter_sub([[3]], 1.0)
        v.scatter_update(0, [7.0, 8.0])
        return before, added, between, taken, v.read_value()

    before, added, between, taken, after = [t.numpy() for t in update(ll.constant([1, 1, -1]), ll.ones((3, 2)))]
    wanted = TABLE.copy()
    assert before.tolist() == wanted.tolist(), "a read is a snapshot"
    wanted[1] += 2
    wanted[3] += 1
    assert added.tolist() == between.tolist() == wanted.tolist()
    wanted[3] -= 1
    assert taken.tolist() == wanted.tolist()
    wanted[0] = [7, 8]
    assert after.tolist() == v.numpy().tolist() == wanted.tolist()


@both
def test_081_slices_can_be_assigned(stage: Callable[..., Any]) -> None:
    v = ll.Variable(TABLE)

    @stage
    def update(x: Any) -> Any:
        before = v.read_value()
        v[1:3] = x
        v[..., 1] = [1, 2, 3, 4]
        v[0, 0] += 5.0
        v[::-2, 0] = 9
        return before

    assert update(ll.constant([50.0, 60.0])).tolist() == TABLE.tolist()
    assert v.numpy().tolist() == [[5.0, 1.0], [9.0, 2.0], [50.0, 3.0], [9.0, 4.0]]


@both
@pytest.mark.parametrize(
    ("update", "error", "match"),
    [
        (lambda v: v.scatter_add([4], 1.0), RunError, "out of bounds"),
        (lambda v: v.scatter_add([0.0], 1.0), DTypeError, "ll.int32"),
        (lambda v: v.scatter_update([0], [1.0, 2.0, 3.0]), ShapeError, "scatter_update"),
        (lambda v: v.scatter_sub([0, 1], ll.ones((3, 1, 2))), ShapeError, "does not broadcast to the part"),
        (lambda v: v.scatter_add([0], ll.constant([1])), DTypeError, "ll.float32"),
        (lambda v: v.__setitem__(4, 1.0), ArgumentError, "out of bounds"),
        (lambda v: v.__setitem__((0, 0, 0), 1.0), ArgumentError, "too many indices"),
        (lambda v: v.__setitem__([0, 1], 1.0), ArgumentError, r"v\.scatter_update"),
        (lambda v: v.__setitem__(True, 1.0), ArgumentError, "ints"),
        (lambda v: v.__setitem__(slice(None), ll.ones((3, 4, 2))), ShapeError, "does not broadcast"),
    ],
)
def test_081_parts_that_do_not_fit(
    stage: Callable[..., Any], update: Callable[[Any], Any], error: type[Exception], match: str
) -> None:
    v = ll.Variable(TABLE)
    with pytest.raises(error, match=match):
        stage(lambda: update(v) is None)()
    assert v.numpy().tolist() == TABLE.tolist()
