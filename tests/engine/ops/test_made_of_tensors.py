"""`full`, `full_like` and `linspace` of tensors: values, gradients, traces, batches; and zeros with a minus sign."""

import numpy as np
import pytest

import limelight as ll
from limelight.errors import DTypeError, ShapeError

a, b = ll.constant(np.float64(1.5)), ll.constant(np.array([2.0, -1.0]))

MAKERS = {
    "full": (lambda a, b: ll.full((3, 2), b) * a, lambda a, b: np.full((3, 2), b) * a),
    "full of a scalar": (lambda a, b: ll.full(2, a) * b, lambda a, b: np.full(2, a) * b),
    "full_like": (lambda a, b: ll.full_like(b, a) * b, lambda a, b: np.full_like(b, a) * b),
    "linspace": (lambda a, b: ll.linspace(a, b, 5), lambda a, b: np.linspace(a, b, 5)),
    "from a number": (lambda a, b: ll.linspace(1, b, 4) * a, lambda a, b: np.linspace(1, b, 4) * a),
    "without its end": (
        lambda a, b: ll.linspace(b, a, 4, endpoint=False),
        lambda a, b: np.linspace(b, a, 4, endpoint=False),
    ),
    "of one": (lambda a, b: ll.linspace(b, a, 1), lambda a, b: np.linspace(b, a, 1)),
    "of none": (lambda a, b: ll.linspace(b, a, 0), lambda a, b: np.linspace(b, a, 0)),
}


@pytest.mark.parametrize(("f", "like"), MAKERS.values(), ids=MAKERS)
def test_values_and_gradients_whichever_way_it_runs(f, like):
    want = like(a.numpy(), b.numpy())
    for run in (f, ll.function(f)):
        made = run(a, b)
        assert made.dtype == ll.float64
        np.testing.assert_allclose(made.numpy(), want)
    rows = ll.stack([a, a + 1.0]), ll.stack([b, b * 2.0])
    many = ll.vectorize(f)(*rows)
    each = [like(x.numpy(), y.numpy()) for x, y in zip(*rows, strict=True)]
    np.testing.assert_allclose(many.numpy(), each, atol=1e-12)
    assert ll.gradcheck(f, a, b)


def test_both_ends_are_as_given():
    x, y = ll.constant([0.1, 1e8]), ll.constant([0.7, 1e-8])
    made = ll.linspace(x, y, 7)
    assert made[0].tolist() == x.tolist()
    assert made[-1].tolist() == y.tolist()


def test_dtypes():
    assert ll.full(2, ll.constant(1.0), dtype="float64").dtype == ll.float64
    assert ll.full(2, np.int64(2), dtype="float32").tolist() == [2.0, 2.0]
    assert ll.linspace(ll.constant(0), 3, 4).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert ll.linspace(ll.constant(0.0), 1.0, 2, dtype="float64").dtype == ll.float64
    with pytest.raises(DTypeError, match=r"full: the value f32\[\] does not fit the dtype int32; write ll.astype"):
        ll.full(2, ll.constant(1.5), dtype="int32")
    with pytest.raises(ShapeError, match=r"linspace: .* do not broadcast"):
        ll.linspace(ll.ones(2), ll.ones(3), 4)


def test_dtypes_and_sizes_are_as_of_python_numbers():
    whole = ll.constant(3)
    assert ll.full((2,), whole).dtype == ll.int32
    assert ll.function(lambda n: ll.full((2,), n, dtype="float32"))(whole).tolist() == [3.0, 3.0]
    assert ll.function(lambda x, n: ll.full(ll.shape_of(x), n))(ll.ones((2, 1)), whole).tolist() == [[3], [3]]
    assert ll.linspace(0, whole, 4).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert ll.linspace(ll.constant(np.float64(0.0)), 1.0, 2).dtype == ll.float64


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ll.full(2, -0.0) * x,
        lambda x: ll.full_like(x, -0.0),
        lambda x: ll.pad(x, 1, value=-0.0)[:1],
        lambda x: ll.imag(ll.full(2, complex(0.0, -0.0), dtype="complex64")) * x,
    ],
)
def test_minus_zero_keeps_its_sign(make):
    for f in (make, ll.function(make)):
        assert ll.all(ll.signbit(f(ll.ones((2,))))).item()
