"""Tensors made of a number that is a tensor itself: eager, staged, differentiated and for each example alike."""

import numpy as np
import pytest

import limelight as ll

MADE = {
    "full": lambda v: ll.full((3,), v),
    "full_like": lambda v: ll.full_like(ll.zeros((3,)), v),
    "linspace to": lambda v: ll.linspace(0.0, v, 3),
    "linspace from": lambda v: ll.linspace(v, 4.0, 3, endpoint=False),
    "linspace between": lambda v: ll.linspace(v, 2.0 * v, 3),
}


@pytest.mark.parametrize("name", MADE)
def test_a_number_may_be_a_tensor(name):
    make = MADE[name]
    x, wanted = ll.constant(2.0), make(2.0).numpy()
    for made in (make(x), ll.function(make)(x), make(ll.Variable(2.0)), ll.vectorize(make)(ll.constant([2.0]))[0]):
        np.testing.assert_allclose(made.numpy(), wanted)
        assert made.dtype == ll.float32
    slope = (make(2.5).numpy() - make(1.5).numpy()).sum()
    np.testing.assert_allclose(ll.grad(lambda v: ll.sum(make(v)))(x).item(), slope)


def test_dtypes_and_sizes_are_as_of_python_numbers():
    whole = ll.constant(3)
    assert ll.full((2,), whole).dtype == ll.int32
    assert ll.function(lambda n: ll.full((2,), n, dtype="float32"))(whole).tolist() == [3.0, 3.0]
    assert ll.function(lambda x, n: ll.full(ll.shape_of(x), n))(ll.ones((2, 1)), whole).tolist() == [[3], [3]]
    assert ll.linspace(0, whole, 4).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert ll.linspace(ll.constant(np.float64(0.0)), 1.0, 2).dtype == ll.float64


def test_several_numbers_and_lost_fractions_are_refused():
    with pytest.raises(ll.errors.ShapeError, match=r"full needs one number, got f32\[3\].*broadcast_to"):
        ll.full((2, 3), ll.ones((3,)))
    with pytest.raises(ll.errors.DTypeError, match=r"full: f32\[\] does not fit the dtype int32; write ll.astype"):
        ll.full((2,), ll.constant(2.5), dtype="int32")
