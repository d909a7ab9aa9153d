"""`reshape` to sizes of `x.shape` that are unknown while tracing: None where only one size is possible, else advice."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ShapeError

UNKNOWN = ll.TensorSpec((None, 6, 4))


def heads(x):
    b, t, d = x.shape
    return ll.permute_dims(x.reshape((b, t, 2, d // 2)), (0, 2, 1, 3)).reshape((b, 2, t * d // 2))


def test_none_stands_for_the_one_size_that_is_left():
    x = ll.reshape(ll.arange(72.0), (3, 6, 4))
    staged = ll.function(heads, input_signature=[UNKNOWN])
    assert staged(x).tolist() == heads(x).tolist()
    assert staged.trace_count == 1


@pytest.mark.parametrize("sizes", [(6, 2, -1), (-1,), (24,), (2, -1, 3), (6, -1, 4, 1)])
def test_none_is_the_one_unknown_size_of_the_tensor(sizes):
    x = ll.reshape(ll.arange(72.0), (3, 6, 4))

    def f(x):
        return x.reshape((x.shape[0], *sizes)) + ll.reshape(x, [x.shape[0], *sizes])

    staged = ll.function(f, input_signature=[UNKNOWN])
    assert staged(x).shape == f(x).shape
    assert staged(x).tolist() == f(x).tolist()


@pytest.mark.parametrize("sizes", [(2,), (12,), (5, -1), (48, -1)])
def test_another_number_of_elements_is_refused_as_it_is_eagerly(sizes):
    def f(x):
        return x.reshape((x.shape[0], *sizes))

    with pytest.raises(ShapeError, match="reshape"):
        f(ll.ones((3, 6, 4)))
    with pytest.raises(ShapeError, match="and then the number of elements would change"):
        ll.function(f, input_signature=[UNKNOWN])(ll.ones((4, 6, 4)))


def test_where_several_are_possible_the_error_says_what_to_write():
    two = ll.TensorSpec((None, None, 4))
    for sizes in ((None, 8), (None, -1), (None, None, 2, 2)):
        with pytest.raises(ShapeError, match=r"has None.*write `b, t, d = x\.sizes\(\)` for"):
            ll.function(lambda x, sizes=sizes: x.reshape(sizes), input_signature=[two])(ll.ones((3, 6, 4)))

    def with_sizes(x):
        b, t, _ = x.sizes()
        return x.reshape((b, t, 2, -1))

    assert ll.function(with_sizes, input_signature=[two])(ll.ones((3, 6, 4))).shape == (3, 6, 2, 2)


def test_a_known_tensor_is_not_reshaped_to_none():
    with pytest.raises(ShapeError, match="has None"):
        ll.ones((4,)).reshape((None, 2))
