"""What a newcomer hands to losses, to clipping, and to arguments that are axes or sizes."""

from __future__ import annotations

import numpy as np
import pytest

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
        (lambda: ll.optim.clip_by_norm({"a": X}, 1.0), r"^clip_by_norm needs a list .*write list\(gradients.values"),
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
