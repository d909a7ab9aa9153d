"""Convolutions by limelight-native: random windows against one place after the other, threads, memory, wrong calls."""

from __future__ import annotations

import _thread
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.core import native_package
from limelight.ops.nn import _native_convolution, _numpy_convolution, _taps
from limelight.ops.nn._windows import windows_over

pytestmark = pytest.mark.skipif(not _native_convolution.is_usable(), reason="limelight-native is not installed")


@st.composite
def windows(draw):
    """Windows, images, channels, filters: of all that matters to tiles, which have 6 or 8 rows and 8 to 32 columns."""
    n = draw(st.integers(1, 3))

    def each(most, least=1):
        return tuple(draw(st.lists(st.integers(least, most), min_size=n, max_size=n)))

    space, window, stride, dilation = each((40, 14, 7)[n - 1]), each(4), each(4), each(3)
    padding = draw(st.one_of(st.just("same"), st.just(tuple(zip(each(4, 0), each(4, 0), strict=True)))))
    try:
        at = windows_over("conv", None, space, window, stride, padding, dilation)
    except ll.errors.ShapeError:
        assume(False)
    sizes = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 33])
    return at, draw(st.integers(1, 4)), draw(sizes), draw(sizes)


def operands(at, images, channels, filters, rng):
    shapes = (images, *at.space, channels), (*at.window, channels, filters), (images, *at.out, filters)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def apart(x, rng):
    """The same numbers in other memory: axes backwards, gaps, or another order of the axes."""
    way = rng.integers(4)
    if way == 0:
        return np.flip(np.flip(x, 1).copy(), 1)
    if way == 1:
        return np.repeat(x, 2, axis=1)[:, ::2]
    if way == 2:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return np.asfortranarray(x)


def results(x, w, g, at):
    return (
        _numpy_convolution.FORWARD["tiles"](x, w, at),
        _numpy_convolution.INPUT["tiles"](g, w, at),
        _numpy_convolution.FILTERS["tiles"](x, g, at),
    )


def close(found, wanted, terms):
    """Within a few roundings of each number that was added up."""
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * np.sqrt(terms) * max(1, np.abs(wanted).max() / 30))


@settings(max_examples=150, deadline=None)
@given(windows(), st.integers(0, 1 << 30))
def test_any_windows_as_one_place_after_the_other(layout, seed):
    at, images, channels, filters = layout
    rng = np.random.default_rng(seed)
    x, w, g = operands(at, images, channels, filters, rng)
    forward, to_x, to_w = results(apart(x, rng), apart(w, rng), apart(g, rng), at)
    exact = [z.astype(np.float64) for z in (x, w, g)]
    close(forward, _taps.convolution(np, exact[0], exact[1], at), channels * np.prod(at.window))
    close(to_x, _taps.input_gradient(np, exact[2], exact[1], at), filters * np.prod(at.window))
    close(to_w, _taps.filter_gradient(np, exact[0], exact[2], at), images * np.prod(at.out))


LARGE = [  # space, window, stride, images, channels, filters: each with work for several threads
    ((30, 31), (3, 3), 1, 3, 20, 70),
    ((7, 7), (3, 3), 1, 9, 70, 130),
    ((23, 23), (1, 1), 1, 5, 100, 130),
    ((40, 40), (1, 1), 2, 4, 130, 150),
    ((61, 50), (5, 5), 2, 2, 3, 64),
    ((2000,), (9,), 1, 2, 17, 65),
    ((9, 10, 11), (3, 3, 3), 1, 2, 16, 35),
    ((3, 30, 31), (2, 3, 3), 1, 2, 9, 35),
    ((3, 1000), (2, 3), 1, 2, 9, 70),
    ((2, 40, 50), (3, 1, 2), 2, 2, 16, 65),
]


@pytest.mark.parametrize("layer", LARGE)
def test_the_same_bits_on_any_number_of_threads(layer, monkeypatch):
    space, window, stride, images, channels, filters = layer
    at = windows_over("conv", None, space, window, (stride,) * len(space), "same", (1,) * len(space))
    x, w, g = operands(at, images, channels, filters, np.random.default_rng(3))
    of_threads = {}
    for threads in (1, 2, 3, 8, 1000):
        monkeypatch.setattr(_native_convolution, "threads", lambda n=threads: n)
        of_threads[threads] = results(x, w, g, at)
        for one, other in zip(of_threads[1], of_threads[threads], strict=True):
            np.testing.assert_array_equal(one, other)
    exact = [z.astype(np.float64) for z in (x, w, g)]
    forward, to_x, to_w = of_threads[8]
    close(forward, _taps.convolution(np, exact[0], exact[1], at), channels * np.prod(at.window))
    close(to_x, _taps.input_gradient(np, exact[2], exact[1], at), filters * np.prod(at.window))
    close(to_w, _taps.filter_gradient(np, exact[0], exact[2], at), images * np.prod(at.out))


def test_what_is_no_number_spreads_as_far_as_its_windows():
    at = windows_over("conv", None, (9, 9), (3, 3), (1, 1), "same", (1, 1))
    x, w, _ = operands(at, 1, 8, 16, np.random.default_rng(0))
    x[0, 4, 4, 3], x[0, 0, 0, 0] = np.nan, np.inf
    found = _native_convolution.prepared_forward(x.shape, w.shape[-1], at)(x, w)
    assert np.isnan(found).any(-1)[0].nonzero()[0].tolist() == [3, 3, 3, 4, 4, 4, 5, 5, 5]
    assert np.isinf(found[0, :2, :2]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_op_with_gradients_in_groups(dtype):
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 9, 9, 12)), rng.standard_normal((3, 3, 4, 9))

    def run(dtype):
        X, W = ll.constant(x, dtype), ll.constant(w, dtype)
        with ll.GradientTape() as tape:
            tape.watch([X, W])
            y = (ll.nn.conv(X, W, stride=2, groups=3) ** 2).sum()
        return [g.astype("float64").numpy() for g in tape.gradient(y, [X, W])]

    error = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-5}[dtype]
    for found, wanted in zip(run(dtype), run("float64"), strict=True):
        assert np.abs(found - wanted).max() <= error * np.abs(wanted).max()


def fitting(**changed):
    """Arguments of `convolve` that fit, but for those that are given."""
    made = {
        "x": np.ones((1, 1, 1, 9, 4), np.float32),
        "w": np.ones((1, 1, 3, 4, 5), np.float32),
        "y": np.ones((1, 1, 1, 9, 5), np.float32),
        "stride": (1, 1, 1),
        "dilation": (1, 1, 1),
        "pads": (0, 0, 1),
        "threads": 1,
    }
    return tuple((made | changed).values())


FIXED = np.broadcast_to(np.float32(1), (1, 1, 1, 9, 5))
WRONG = [
    ({"x": np.ones((1, 1, 1, 9, 4))}, TypeError),
    ({"x": np.ones((1, 1, 9, 4), np.float32)}, TypeError),
    ({"x": [1.0]}, TypeError),
    ({"x": np.ones((1, 1, 1, 9, 4), ">f4")}, TypeError),
    ({"x": np.ones((1, 1, 1, 9, 3), np.float32)}, ValueError),
    ({"x": np.ones((2, 1, 1, 9, 4), np.float32)}, ValueError),
    ({"x": np.ones((1, 1, 1, 9, 8), np.float32)[..., ::2]}, ValueError),
    ({"x": np.ones((1, 1, 1, 0, 4), np.float32)}, ValueError),
    ({"y": np.ones((1, 1, 1, 9, 6), np.float32)}, ValueError),
    ({"stride": (1, 1, 0)}, ValueError),
    ({"dilation": (1, -1, 1)}, ValueError),
    ({"pads": (0, 0, 1 << 40)}, ValueError),
    ({"pads": (0, 1)}, TypeError),
]
FIXED_FILTERS = np.broadcast_to(np.float32(1), (1, 1, 3, 4, 5))


@pytest.mark.parametrize(
    ("name", "changed", "error"),
    [
        *[("convolve", *one) for one in [*WRONG, ({"y": FIXED}, TypeError)]],
        *[("convolve_filters", *one) for one in [*WRONG, ({"w": FIXED_FILTERS}, TypeError)]],
    ],
)
def test_wrong_calls_are_refused(name, changed, error):
    function = getattr(native_package.native(), name)
    function(*fitting())
    with pytest.raises(error):
        function(*fitting(**changed))


@pytest.mark.parametrize("channels", [4, 8])
@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("power", [24, 26, 28, 29, 30, 31])
def test_margins_that_cannot_be_counted_are_refused(channels, axes, power):
    dilation = (1,) * (3 - axes) + (1 << power,) * axes
    window = (1,) * (3 - axes) + (2,) * axes
    x, y = np.ones((1, 1, 1, 1, channels), np.float32), np.ones((1, 1, 1, 1, 8), np.float32)
    w = np.ones((*window, channels, 8), np.float32)
    for function in (native_package.native().convolve, native_package.native().convolve_filters):
        for less in (0, 1):
            with pytest.raises((ValueError, MemoryError)):
                function(x, w, y, (1, 1, 1), tuple([n - less if n > 1 else n for n in dilation]), (0, 0, 0), 64)


@pytest.mark.parametrize("axes", [2, 3])
def test_the_op_refuses_margins_that_cannot_be_counted(axes):
    x, w = ll.ones((*(1,) * (axes + 1), 4)), ll.ones((*(2,) * axes, 4, 8))
    with pytest.raises((ll.errors.RunError, MemoryError)):
        ll.nn.conv(x, w, padding="same", dilation=2**31 - 1)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["convolve", "convolve_filters"])
def test_an_interrupt_ends_it_midway(name, threads):
    images, channels, filters = 200, 512, 64  # a second of work, or more
    x = np.broadcast_to(np.ones((28, 28, channels), np.float32), (images, 1, 28, 28, channels))
    w, y = np.ones((1, 3, 3, channels, filters), np.float32), np.ones((images, 1, 28, 28, filters), np.float32)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    alarm = threading.Timer(0.02, _thread.interrupt_main)
    try:
        with pytest.raises(KeyboardInterrupt):
            alarm.start()
            getattr(native_package.native(), name)(x, w, y, (1, 1, 1), (1, 1, 1), (0, 1, 1), threads)
    finally:
        alarm.join()
        signal.signal(signal.SIGINT, before)
    if name == "convolve":
        assert y[:, 0, 14, 14].min() < 9 * channels
    else:
        assert w[0, 1, 1].min() < images * 28 * 28


def test_windows_outside_of_the_space_see_zeros():
    for pads in [(0, 0, 30), (0, 0, -30), (5, 0, 0), (-5, -1, 0)]:
        x, w, y, *rest = fitting(pads=pads)
        native_package.native().convolve(x, w, y, *rest)
        assert not y.any(), pads


def test_the_error_of_the_filters_gradient_does_not_grow_with_the_windows():
    at = windows_over("conv", None, (200_000,), (1,), (1,), "same", (1,))
    rng = np.random.default_rng(0)
    x, g = [rng.random((1, 200_000, 6)).astype(np.float32) for _ in range(2)]  # positive: sums of sums round most
    found = _numpy_convolution.FILTERS["tiles"](x, g, at)[0]
    wanted = x[0].T.astype(np.float64) @ g[0]
    assert np.abs(found / wanted - 1).max() < 3e-7


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the most memory is not counted here")
@pytest.mark.parametrize("name", ["convolve", "convolve_filters"])
def test_memory_hardly_grows_with_threads(name):
    x, y = np.ones((1, 1, 32, 32, 512), np.float32), np.ones((1, 1, 32, 32, 512), np.float32)
    w = np.ones((1, 3, 3, 512, 512), np.float32)
    most = {}
    for threads in (1, 64):
        Path("/proc/self/clear_refs").write_text("5")  # the most so far is what there is now
        before = most_memory()
        getattr(native_package.native(), name)(x, w, y, (1, 1, 1), (1, 18, 18), (0, 18, 18), threads)
        most[threads] = most_memory() - before
    assert most[64] < most[1] + 40_000, most


def most_memory() -> int:
    """The most memory that the process had, in kB."""
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line).split()[1])


@settings(max_examples=30, deadline=None)
@given(windows(), st.sampled_from([np.inf, -np.inf, np.nan]), st.integers(0, 1 << 30))
def test_what_is_no_number_in_a_filter_reaches_what_its_place_has_seen(layout, value, seed):
    at, images, channels, filters = layout
    rng = np.random.default_rng(seed)
    _, w, g = operands(at, images, channels, filters, rng)
    w.flat[rng.integers(w.size)] = value
    with np.errstate(invalid="ignore"):
        wanted = _taps.input_gradient(np, g, w, at)
        for dtype in (np.float32, np.float64):
            found = _numpy_convolution.input_gradient(g.astype(dtype), w.astype(dtype), at)
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
            np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))


def test_arrays_that_are_not_aligned():
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((1, 9, 9, 8), (3, 3, 8, 16)))

    def shifted(array):
        return np.frombuffer(b"." + array.tobytes(), np.float32, offset=1).reshape(array.shape)

    for g, run in (
        (x, lambda x, w: ll.nn.conv(x, w, padding=1)),
        (rng.normal(size=(1, 9, 9, 16)).astype(np.float32), lambda g, w: ll.nn.conv_transpose(g, w, padding=1)),
    ):
        found = run(ll.asarray(shifted(g), copy=False), ll.asarray(shifted(w), copy=False))
        np.testing.assert_array_equal(found.numpy(), run(ll.constant(g), ll.constant(w)).numpy())
