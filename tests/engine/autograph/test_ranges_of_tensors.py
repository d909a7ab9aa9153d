"""`for` over ranges whose ends only the run knows: alone, zipped, and in a batch whose examples end them elsewhere."""

# ruff: noqa: B905  # the plain zip is what people write

import pytest

import limelight as ll
from limelight.errors import ControlFlowError


def product_of_steps(n, xs):
    total = ll.astype(n, "float32") * 0.0
    for i in range(n):
        for j in range(i):
            total = total + xs[j] * 2.0
    return total + ll.sum(xs)


def backwards(n, xs):
    seen = xs[0] * 0.0
    for i in range(n, -3, -2):
        seen = seen * 3.0 + xs[i % 3]
    return seen


def last_number(n, xs):
    i = -1
    for i in range(n):  # noqa: B007  # a step that does not read it
        pass
    return xs[i]


def range_first(n, xs):
    total = xs[0] * 0.0
    for i, x in zip(range(n), xs):
        total = total * 2.0 + x * xs[i]
    return total


def range_last(n, xs):
    total = xs[0] * 0.0
    for k, (x, _) in enumerate(zip(xs, range(1, n))):
        total = total + x * xs[k] * 3.0
    return total


def two_ranges(n, xs):
    total = xs[0] * 0.0
    for i, j in zip(range(n), range(2, 5 - n)):
        total = total * 2.0 + xs[i] * xs[j % 3]
    return total


PROGRAMS = (product_of_steps, backwards, last_number, range_first, range_last, two_ranges)
XS = ll.constant([0.5, -1.5, 2.0])


def slope(f):
    return lambda n, xs: ll.grad(lambda xs: f(n, xs))(xs)


@pytest.mark.parametrize("f", PROGRAMS)
def test_each_ends_where_python_would(f):
    staged = ll.function(f, autograph=True)
    for n in (0, 1, 3):
        number = ll.constant(n)
        assert ll.allclose(staged(number, XS), f(n, XS)).item(), n
        assert ll.allclose(slope(staged)(number, XS), slope(f)(n, XS)).item(), n


@pytest.mark.parametrize("f", PROGRAMS)
def test_examples_of_a_batch_end_by_themselves(f):
    staged, numbers = ll.function(f, autograph=True), (3, 0, 1)
    for g in (f, slope(f)):
        h = staged if g is f else slope(staged)
        values = ll.vectorize(h, in_axes=(0, None))(ll.constant(numbers), XS)
        assert ll.allclose(values, ll.stack([g(n, XS) for n in numbers])).item()


def test_a_strict_zip_with_a_range_is_refused():
    def strictly(n, xs):
        total = xs[0]
        for i, x in zip(range(n), xs, strict=True):
            total = total + x * i
        return total

    with pytest.raises(ControlFlowError, match=r"zip\(strict=True\) of a range of tensors"):
        ll.function(strictly, autograph=True)(ll.constant(3), XS)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_ends_of_every_integer_dtype(dtype):
    def numbers(n, m):
        seen = 0
        for i in range(n, 7):
            seen = seen * 10 + i
        for i in range(5, m):
            seen = seen * 10 + i
        return seen

    staged = ll.function(numbers, autograph=True)
    for n, m in ((4, 3), (9, 7), (100, 6)):
        assert staged(ll.constant(n, dtype), ll.constant(m, dtype)).item() == numbers(n, m)
