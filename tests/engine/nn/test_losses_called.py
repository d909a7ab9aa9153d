"""What a newcomer hands to losses, to clipping, and to arguments that are axes or sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll

X = ll.constant([[0.5, -1.0], [2.0, 0.25]])
WHOLE = np.array([[0, 1], [1, 1]], "int32")


@pytest.mark.parametrize(
    "loss",
    [ll.nn.sigmoid_cross_entropy, ll.nn.mean_squared_error, ll.nn.mean_absolute_error, ll.nn.huber, ll.nn.log_cosh],
)
@pytest.mark.parametrize("dtype", ["int32", "bool", "uint8"])
def test_targets_may_be_integers_and_booleans(loss, dtype):
    targets = ll.constant(WHOLE.astype(dtype))
    wanted = loss(X, ll.constant(WHOLE.astype("float32")))
    for call in (loss, ll.function(loss)):
        found = call(X, targets)
        assert found.dtype == ll.float32
        assert (found == wanted).numpy().all()
    short = loss(X.astype("bfloat16"), targets)
    assert short.dtype == ll.bfloat16


PAIRS = {
    "mean_squared_error": "targets",
    "mean_absolute_error": "targets",
    "huber": "targets",
    "log_cosh": "targets",
    "hinge": "targets",
    "sigmoid_cross_entropy": "labels",
    "kl_divergence": "targets",
    "cosine_similarity": "y",
}


@pytest.mark.parametrize("name", PAIRS)
@given(st.lists(st.integers(1, 3), max_size=3), st.lists(st.integers(1, 3), max_size=3), st.booleans())
@settings(max_examples=25, deadline=None)
@pytest.mark.usefixtures("retraces_are_meant")
def test_losses_of_pairs_take_pairs_and_nothing_that_broadcasts(name, first, second, staged):
    loss = ll.function(getattr(ll.nn, name)) if staged else getattr(ll.nn, name)
    axes = name in ("kl_divergence", "cosine_similarity")
    x, y = ll.ones((*first, 2)) * 0.5, ll.ones((*second, 2)) * 0.5
    if first == second:
        assert loss(x, y).shape in ((), tuple(first) if axes else x.shape)
        return
    with pytest.raises(ll.errors.ShapeError, match=f"^{name}: .* must have the same shape, got ") as caught:
        loss(x, y)
    assert str(x.spec) in str(caught.value)
    assert str(y.spec) in str(caught.value)


@pytest.mark.parametrize("name", PAIRS)
def test_the_error_of_a_pair_says_what_to_write(name):
    loss, second = getattr(ll.nn, name), PAIRS[name]
    column, row = ll.ones((4, 1)) * 0.5, ll.ones((4,)) * 0.5
    with pytest.raises(ll.errors.ShapeError, match=rf"f32\[4,1\] and f32\[4\].*write {second}\.reshape\(\(4, 1\)\)"):
        loss(column, row)
    with pytest.raises(ll.errors.ShapeError, match=rf"write {second}\.reshape\(\(4,\)\)"):
        loss(row, column)
    with pytest.raises(ll.errors.ShapeError, match=rf"write ll.broadcast_to\({second}, \(3, 4\)\)"):
        loss(ll.ones((3, 4)) * 0.5, row)
    with pytest.raises(ll.errors.ShapeError, match="must have the same shape"):
        loss(ll.ones((3, 4)) * 0.5, ll.ones((5, 4)))
    any_batch = ll.function(loss, input_signature=[ll.TensorSpec((None, 1)), ll.TensorSpec((None,))])
    with pytest.raises(ll.errors.ShapeError, match=rf"write {second}\.reshape\(\(-1, 1\)\)"):
        any_batch(column, row)


@pytest.mark.parametrize("labels", [(1, 3), (2, 1), (3,), (2, 3, 1)])
def test_labels_that_are_probabilities_do_not_broadcast_either(labels):
    with pytest.raises(ll.errors.ShapeError, match="must have the shape of the logits"):
        ll.nn.softmax_cross_entropy(ll.ones((2, 3)), ll.ones(labels))


def test_hinge_takes_integers_but_no_booleans():
    signs = ll.constant(2 * WHOLE - 1)
    assert (ll.nn.hinge(X, signs) == ll.nn.hinge(X, signs.astype("float32"))).numpy().all()
    with pytest.raises(ll.errors.DTypeError, match="hinge needs floating operands, got bool"):
        ll.nn.hinge(X, signs > 0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ll.nn.softmax_cross_entropy(X, WHOLE[0], "mean"), r"write reduction='mean'"),
        (lambda: ll.nn.nll(X, WHOLE[0], "sum"), r"^nll: axis must be an int, got 'sum'; write reduction='sum'"),
        (lambda: ll.nn.kl_divergence(X, X, "mean"), r"^kl_divergence: .* write reduction='mean'"),
        (lambda: ll.nn.huber(X, X, "mean"), r"^huber: delta must be a number, got 'mean'; write reduction='mean'"),
        (lambda: ll.nn.cosine_similarity(X, X, "mean"), r"^cosine_similarity: axis must be an int, got 'mean'"),
        (lambda: ll.sum(X, axis="0"), r"^sum: axis must be an int, a tuple of ints or None, got '0' \(str\)"),
        (lambda: ll.mean(X, axis=1.0), r"^mean: axis must be an int, a tuple of ints or None, got 1.0 \(float\)"),
        (lambda: ll.argmax(X, axis=(0, 1)), r"^argmax: axis must be an int, got \(0, 1\)"),
        (lambda: ll.optim.clip_by_norm({"a": X}, 1.0), r"^clip_by_norm needs a list .*ll.tree.leaves\(gradients"),
        (lambda: ll.optim.clip_by_global_norm(X, 1.0), r"^clip_by_global_norm needs a list .*write \[gradient\]"),
        (lambda: ll.optim.clip_by_value(X, 1.0), r"^clip_by_value needs a list of gradients, got Tensor"),
        (lambda: ll.optim.global_norm(X), r"^global_norm needs a list of gradients, got Tensor"),
    ],
)
def test_arguments_that_stand_for_others_are_refused_in_words(call, said):
    with pytest.raises(ll.errors.ArgumentError, match=said):
        call()
    with pytest.raises(ll.errors.ArgumentError, match=said):
        ll.function(call)()


@pytest.mark.parametrize("make", [ll.zeros, ll.ones, lambda n: ll.full(n, 2.0), ll.random.normal])
def test_a_size_may_be_a_scalar_tensor(make):
    n = ll.constant(3)
    for call in (make, ll.function(make)):
        assert call(n).shape == (3,)
    both = lambda n: make((n, 2))  # noqa: E731
    for call in (both, ll.function(both)):
        assert call(n).shape == (3, 2)


@pytest.mark.parametrize("labels", [ll.constant([0, 1]), ll.constant([True, False]), np.array([0, 1])])
@pytest.mark.parametrize(
    "loss", ["softmax_cross_entropy", "sigmoid_cross_entropy", "nll", "mean_squared_error", "huber", "hinge"]
)
def test_labels_before_predictions_as_in_tensorflow_are_refused_with_the_order(loss, labels):
    with pytest.raises(ll.errors.DTypeError, match=rf"^{loss}: [a-z-]+ come first, and are floating; got .*{loss}\("):
        getattr(ll.nn, loss)(labels, ll.ones(2))
