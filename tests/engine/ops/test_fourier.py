"""ll.fft: against NumPy, its symmetries, dtypes, unknown sizes, non-finite numbers, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # every example is staged anew

NORMS = ("backward", "ortho", "forward")
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=5)


def numbers(shape, kind="c"):
    rng = np.random.default_rng(sum(shape))
    real = rng.uniform(-1, 1, shape)
    return real + 1j * rng.uniform(-1, 1, shape) if kind == "c" else real


@st.composite
def over_axes(draw):
    """A shape, some of its axes, and sizes for them or None."""
    shape = draw(SHAPES)
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, unique_by=lambda a: a % len(shape)))
    sizes = draw(st.none() | st.lists(st.integers(1, 6), min_size=len(axes), max_size=len(axes)))
    if sizes is None:
        sizes_of_irfft = [shape[a] for a in axes]
        shape = tuple(max(n, 2) for n in shape) if sizes_of_irfft[-1] < 2 else shape
    return shape, axes, sizes


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@given(over_axes(), st.sampled_from(NORMS))
@settings(max_examples=25, deadline=None)
def test_n_dimensional_as_in_numpy(name, example, norm):
    shape, axes, sizes = example
    x = numbers(shape, "f" if name == "rfftn" else "c")
    found = getattr(ll.fft, name)(ll.constant(x), s=sizes, axes=axes, norm=norm).numpy()
    wanted = getattr(np.fft, name)(x, s=sizes, axes=axes, norm=norm)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@given(SHAPES, st.none() | st.integers(1, 7), st.sampled_from(NORMS))
@settings(max_examples=20, deadline=None)
def test_one_dimensional_as_in_numpy_and_without_knowing_sizes(name, shape, n, norm):
    shape = tuple(size + 1 for size in shape)
    x = numbers(shape, "f" if name in ("rfft", "ihfft") else "c")
    wanted = getattr(np.fft, name)(x, n, axis=0, norm=norm)
    function = getattr(ll.fft, name)
    signature = [ll.TensorSpec((None,) * x.ndim, x.dtype)]
    F = ll.function(lambda x: function(x, n=n, axis=0, norm=norm), input_signature=signature)
    for found in (function(ll.constant(x), n=n, axis=0, norm=norm), F(x)):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)


@given(SHAPES)
@settings(max_examples=15, deadline=None)
def test_there_and_back_and_parseval(shape):
    x = ll.constant(numbers(shape))
    np.testing.assert_allclose(ll.fft.ifftn(ll.fft.fftn(x)).numpy(), x.numpy(), atol=1e-12)
    y = ll.fft.fftn(x, norm="ortho")
    np.testing.assert_allclose(np.linalg.norm(y.numpy()), np.linalg.norm(x.numpy()))
    np.testing.assert_array_equal(ll.fft.ifftshift(ll.fft.fftshift(x)).numpy(), x.numpy())


def test_dtypes_are_kept():
    for given_, spectrum in (("float32", "complex64"), ("float64", "complex128"), ("bfloat16", "complex64")):
        x = ll.ones(4, dtype=given_)
        assert ll.fft.fft(x).dtype.name == ll.fft.rfft(x).dtype.name == spectrum
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.abs(ll.fft.rfft(x))
        assert tape.gradient(y, x).dtype is x.dtype
    assert ll.fft.irfft(ll.ones(3, dtype="complex64")).dtype is ll.float32
    for freq in (ll.fft.fftfreq, ll.fft.rfftfreq):
        assert freq(4).dtype is ll.float32
        np.testing.assert_array_equal(freq(5, d=0.5, dtype=ll.float64).numpy(), getattr(np.fft, freq.__name__)(5, 0.5))


def test_the_gradient_of_a_power_spectrum():
    """D Σ |F x|² / dx = 2 n x, by Parseval; and its derivative is 2 n."""
    x = ll.constant([1.0, -2.0, 3.0], dtype="float64")
    with ll.GradientTape() as outer:
        outer.watch(x)
        with ll.GradientTape() as tape:
            tape.watch(x)
            spectrum = ll.fft.fft(x)
            power = ll.sum(ll.real(spectrum * ll.conj(spectrum)))
        g = tape.gradient(power, x)
    np.testing.assert_allclose(g.numpy(), [6, -12, 18])
    np.testing.assert_allclose(outer.gradient(g, x).numpy(), [6, 6, 6])


QUIET = """
import warnings
warnings.simplefilter("error")
import numpy as np
import limelight as ll
odd = ll.constant(np.array([np.inf, np.nan, -np.inf, 3e38], np.float32))
for name in "fft ifft rfft irfft hfft ihfft".split():
    getattr(ll.fft, name)(odd)
print("done")
"""


@pytest.mark.slow  # every transform
def test_not_finite_numbers_pass_through_without_a_warning():
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")


X = ll.ones((2, 3))
REFUSED = {
    "integers": (lambda: ll.fft.fft(ll.constant([1, 2])), DTypeError, "fft needs a floating tensor.*ll.astype"),
    "complex": (lambda: ll.fft.rfft(X.astype("complex64")), DTypeError, "rfft.*ll.real"),
    "no points": (lambda: ll.fft.fft(ll.ones((2, 0))), ShapeError, "axis 1.*no points"),
    "no points, real": (lambda: ll.fft.rfft(ll.ones(0)), ShapeError, "axis 0.*no points"),
    "one frequency": (lambda: ll.fft.irfft(ll.ones(1)), ShapeError, "give n=1, or two frequencies"),
    "n": (lambda: ll.fft.fft(X, n=0), ArgumentError, "one point at least, got size 0"),
    "axis": (lambda: ll.fft.fft(X, axis=2), IndexError, "fft: axis 2"),
    "axes": (lambda: ll.fft.fftn(X, axes=(0, -2)), ArgumentError, "same axis twice"),
    "s": (lambda: ll.fft.fftn(X, s=(1,), axes=(0, 1)), ArgumentError, "1 sizes.*2 axes"),
    "norm": (lambda: ll.fft.fft(X, norm="none"), ArgumentError, "norm='none'; write 'backward'"),
    "freq": (lambda: ll.fft.fftfreq(0), ArgumentError, "n=0"),
    "freq dtype": (lambda: ll.fft.fftfreq(3, dtype=ll.int32), DTypeError, "int32"),
    "no axes": (lambda: ll.fft.rfftn(X, axes=()), ArgumentError, "one axis at least"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why_eager_and_staged(case):
    function, error, words = REFUSED[case]
    for run in (function, ll.function(function)):
        with pytest.raises(error, match=words):
            run()
