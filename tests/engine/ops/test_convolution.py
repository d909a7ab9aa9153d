"""Convolutions beyond the cases: random settings against loops, every route, unknown sizes, errors."""

from __future__ import annotations

import looped_windows
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.ops.nn import _native_convolution, _numpy_convolution, _taps
from limelight.ops.nn._windows import windows_over

SETTINGS = settings(max_examples=60, deadline=None)


@st.composite
def layouts(draw, grouped=True):
    """(x's shape, w's shape, stride, padding, dilation, groups) that fit together."""
    n = draw(st.integers(1, 3))
    each = st.integers(1, 3)
    window, stride, dilation = (tuple(draw(st.lists(each, min_size=n, max_size=n))) for _ in range(3))
    pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=n, max_size=n).map(tuple)
    padding = draw(st.one_of(st.just("same"), pairs))
    space = tuple(draw(st.lists(st.integers(1, 6 if n < 3 else 4), min_size=n, max_size=n)))
    margins = looped_windows.margins(space, window, stride, padding, dilation)
    reaches = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
    assume(all(m + a + b >= r for m, (a, b), r in zip(space, margins, reaches, strict=True)))
    groups = draw(st.integers(1, 3)) if grouped else 1
    channels, filters = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    x, w = (draw(st.integers(1, 2)), *space, channels), (*window, channels // groups, filters)
    return x, w, stride, padding, dilation, groups


def drawn(*shapes):
    rng = np.random.default_rng(7)
    return [rng.uniform(-1, 1, shape) for shape in shapes]


@SETTINGS
@given(layouts())
def test_as_loops_over_windows_places_and_channels_say(layout):
    x_shape, w_shape, *attrs = layout
    x, w = drawn(x_shape, w_shape)
    y = looped_windows.conv(x, w, *attrs)
    (g,) = drawn(y.shape)
    X, W = ll.constant(x), ll.constant(w)
    with ll.GradientTape() as tape:
        tape.watch([X, W])
        out = ll.nn.conv(X, W, *attrs)
    np.testing.assert_allclose(out.numpy(), y, atol=1e-12)
    to_x, to_w = tape.gradient(out, [X, W], output_gradients=ll.constant(g))
    np.testing.assert_allclose(to_x.numpy(), looped_windows.conv_transpose(g, w, x_shape[1:-1], *attrs), atol=1e-12)
    np.testing.assert_allclose(to_w.numpy(), looped_windows.conv_filter_gradient(x, g, w_shape, *attrs), atol=1e-12)


@SETTINGS
@given(layouts(), st.data())
def test_a_transposed_convolution_is_the_transpose(layout, data):
    """<conv(x, w), y> = <x, conv_transpose(y, w)> for each size that the convolution may have come from."""
    x_shape, w_shape, stride, padding, dilation, groups = layout
    windows = looped_windows.counts(x_shape[1:-1], w_shape[:-2], stride, padding, dilation)
    y, w = drawn((x_shape[0], *windows, w_shape[-1]), w_shape)
    more = 0 if padding == "same" else tuple(data.draw(st.integers(0, s - 1)) for s in stride)
    smallest = [
        (m - 1) * s + (k - 1) * d + 1 - (0 if padding == "same" else sum(padding[i]))
        for i, (m, s, k, d) in enumerate(zip(windows, stride, w_shape, dilation, strict=False))
    ]
    assume(padding == "same" or min(smallest) > 0)
    back = ll.nn.conv_transpose(ll.constant(y), ll.constant(w), stride, padding, dilation, groups, more)
    if padding == "same":
        assert back.shape[1:-1] == tuple(m * s for m, s in zip(windows, stride, strict=True))
    else:
        assert back.shape[1:-1] == tuple(m + extra for m, extra in zip(smallest, more, strict=True))
    (x,) = drawn(back.shape)
    there = looped_windows.conv(x, w, stride, padding, dilation, groups)
    assert there.shape == y.shape
    np.testing.assert_allclose((there * y).sum(), (x * back.numpy()).sum(), atol=1e-10)


# --- routes: whatever is chosen, the result is the same

ROUTES = [
    *[("forward", name) for name in _numpy_convolution.FORWARD],
    *[("input", name) for name in _numpy_convolution.INPUT],
    *[("filters", name) for name in _numpy_convolution.FILTERS],
]


@pytest.mark.slow  # thirty convolutions, each by every route
@pytest.mark.parametrize(("direction", "name"), ROUTES)
@pytest.mark.parametrize("budget", [1, 700, 1 << 22])
def test_every_route_leads_to_the_same(direction, name, budget, monkeypatch):
    if name == "tiles" and not _native_convolution.is_usable():
        pytest.skip("limelight-native is not installed")
    dtype, error = (np.float32, 1e-4) if name == "tiles" else (np.float64, 1e-12)
    monkeypatch.setattr(_numpy_convolution, "BUDGET", budget)  # patches in pieces of rows, of images, and all at once
    taken = []

    @settings(max_examples=25, deadline=None)
    @given(layouts(grouped=False))
    def check(layout):
        x_shape, w_shape, stride, padding, dilation, _ = layout
        at = windows_over("conv", None, x_shape[1:-1], w_shape[:-2], stride, padding, dilation)
        x, w, g = (z.astype(dtype) for z in drawn(x_shape, w_shape, (x_shape[0], *at.out, w_shape[-1])))
        if name != "tiles" and (name == "product") != (at.window == (1,) * len(at.window)):
            return
        if name == "flipping" and _numpy_convolution.flipped(at) is None:
            return
        taken.append(layout)
        if direction == "forward":
            found, wanted = _numpy_convolution.FORWARD[name](x, w, at), _taps.convolution(np, x, w, at)
        elif direction == "input":
            found, wanted = _numpy_convolution.INPUT[name](g, w, at), _taps.input_gradient(np, g, w, at)
        else:
            found, wanted = _numpy_convolution.FILTERS[name](x, g, at), _taps.filter_gradient(np, x, g, at)
        np.testing.assert_allclose(found, wanted, atol=error)

    check()
    assert taken or name in ("product", "flipping"), "no layout took this route"


@pytest.mark.parametrize(
    ("space", "window", "stride", "channels", "routes"),
    [
        ((1, 1), (1, 1), 1, 8, ("product", "product", "product")),
        ((32, 32), (3, 3), 1, 8, ("rows", "flipping", "patches")),
        ((6, 6), (3, 3), 1, 8, ("patches", "scattering", "patches")),
        ((64, 64), (3, 3), 2, 8, ("patches", "scattering", "patches")),
        ((64, 64), (7, 7), 2, 3, ("patches", "patches", "patches")),
        ((28, 28), (5, 5), 1, 1, ("patches", "patches", "patches")),
    ],
)
def test_the_choice_of_route(space, window, stride, channels, routes):
    at = windows_over("conv", None, space, window, (stride,) * 2, "same", (1, 1))
    found = [_numpy_convolution.chosen_route(d, at, channels, 8, np.float64) for d in ("forward", "input", "filters")]
    assert tuple(found) == routes


@pytest.mark.parametrize(
    ("window", "channels", "filters", "tiles"),
    [
        ((3, 3), 8, 8, ("forward", "input", "filters")),
        ((3, 3), 1, 8, ("forward", "filters")),  # BLAS is quicker for a column or two
        ((3, 3), 8, 2, ("input",)),
        ((1, 1), 8, 8, ("forward", "input", "filters")),
        ((1, 1), 4, 8, ()),
    ],
)
def test_float32_goes_by_tiles_where_there_is_enough_to_fill_them(window, channels, filters, tiles, monkeypatch):
    at = windows_over("conv", None, (32, 32), window, (1, 1), "same", (1, 1))

    def by_tiles():
        chosen = {
            d: _numpy_convolution.chosen_route(d, at, channels, filters, np.float32)
            for d in ("forward", "input", "filters")
        }
        return tuple(d for d, name in chosen.items() if name == "tiles")

    monkeypatch.setattr(_native_convolution, "is_usable", lambda: True)
    assert by_tiles() == tiles
    monkeypatch.setattr(_native_convolution, "is_usable", lambda: False)
    assert by_tiles() == ()


def test_patches_take_a_bounded_amount_of_memory(monkeypatch):
    monkeypatch.setattr(_numpy_convolution, "BUDGET", 1 << 16)
    largest = []
    original = np.empty
    monkeypatch.setattr(np, "empty", lambda shape, *rest: largest.append(np.prod(shape)) or original(shape, *rest))
    at = windows_over("conv", None, (64, 64), (3, 3), (2, 2), "same", (1, 1))
    _numpy_convolution.FORWARD["patches"](np.zeros((4, 64, 64, 8), np.float32), np.zeros((3, 3, 8, 2), np.float32), at)
    out, buffer = largest
    assert out == 4 * 32 * 32 * 2
    assert buffer * 4 <= 1 << 16


# --- sizes that are unknown in a trace


def test_an_unknown_batch_leaves_the_other_sizes_known():
    seen = []

    @ll.function(input_signature=[ll.TensorSpec((None, 8, 6, 3))])
    def net(x):
        y = ll.nn.conv(x, ll.ones((3, 3, 3, 4)), stride=2)
        z = ll.nn.conv_transpose(y, ll.ones((3, 3, 5, 4)), stride=2)
        u = ll.nn.avg_pool(ll.nn.max_pool(z, 2), 2, padding="same")
        seen.extend([y.shape, z.shape, u.shape])
        return u.sum()

    assert net(ll.ones((2, 8, 6, 3))).item() == 2 * net(ll.ones((1, 8, 6, 3))).item() != 0
    assert seen == [(None, 4, 3, 4), (None, 8, 6, 5), (None, 2, 2, 5)]


def test_staged_gradients_of_any_batch_and_space():
    w = ll.Variable(np.linspace(-1, 1, 54).reshape(3, 3, 3, 2).astype(np.float32))

    def step(x):
        with ll.GradientTape() as tape:
            tape.watch(x)
            loss = ll.nn.conv(x, w, stride=2).square().sum()
        return tape.gradient(loss, [x, w])

    F = ll.function(step, input_signature=[ll.TensorSpec((None, None, None, 3))])
    for shape in ((2, 8, 6, 3), (1, 5, 7, 3)):
        x = ll.random.normal(shape)
        for found, wanted in zip(F(x), step(x), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)
    assert F.trace_count == 1


# --- what does not fit

BAD = [
    (
        lambda x, w: ll.nn.conv(x, ll.ones((3, 3, 4, 2))),
        r"conv: the last axis of f32\[1,5,5,3\] has 3 channels.*axis 2",
    ),
    (lambda x, w: ll.nn.conv(x, ll.ones((3, 3, 3))), "needs filters .* of as many axes"),
    (lambda x, w: ll.nn.conv(x, w, groups=2), "the 3 channels .* do not divide into 2 groups"),
    (lambda x, w: ll.nn.conv(x, ll.ones((3, 3, 1, 4)), groups=3), "the 4 filters .* do not divide into 3 groups"),
    (
        lambda x, w: ll.nn.conv(x, ll.ones((7, 1, 3, 2)), padding="valid"),
        "window of 7 does not fit into axis 1 .*size 5",
    ),
    (lambda x, w: ll.nn.conv(x, w, padding=0, dilation=(1, 3)), "reaches over 7 .* axis 2"),
    (lambda x, w: ll.nn.conv(x[0], w), r"x must be .* got f32\[5,5,3\].*expand_dims|needs filters"),
    (lambda x, w: ll.nn.conv(x[0, 0], w), "x must be .*expand_dims"),
    (
        ll.nn.conv_transpose,
        "last axis of f32.1,5,5,3. has 3 channels, so the last axis of the filters",
    ),
    (lambda x, w: ll.nn.conv_transpose(x, ll.ones((3, 3))), "of as many axes"),
    (lambda x, w: ll.nn.conv_transpose(x, ll.ones((1, 1, 2, 3)), padding=4), "cuts off more than there is"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_misfits_are_explained_alike_eagerly_and_staged(call, words):
    x, w = ll.ones((1, 5, 5, 3)), ll.ones((3, 3, 3, 2))
    with pytest.raises(ll.errors.ShapeError, match=words) as eager:
        call(x, w)
    with pytest.raises(ll.errors.ShapeError) as staged:
        ll.function(call)(x, w)
    assert eager.value.bare == staged.value.bare


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stride": 0}, "stride must be one whole number of at least 1, or one for each of the 2 spatial axes; got 0"),
        ({"stride": (1, 1, 1)}, r"got \(1, 1, 1\)"),
        ({"dilation": 1.5}, "dilation must be"),
        ({"padding": "causal"}, "padding must be 'same', 'valid'"),
        ({"padding": -1}, "none negative"),
        ({"padding": (1, 2, 3)}, "2 spatial axes"),
        ({"groups": 0}, "groups must be a whole number"),
    ],
)
def test_settings_that_make_no_sense(options, words):
    with pytest.raises(ll.errors.ArgumentError, match=words):
        ll.nn.conv(ll.ones((1, 5, 5, 3)), ll.ones((3, 3, 3, 2)), **options)


def test_output_padding_is_less_than_the_stride():
    with pytest.raises(ll.errors.ArgumentError, match="must be less than the stride"):
        ll.nn.conv_transpose(ll.ones((1, 5, 1)), ll.ones((3, 1, 1)), 2, 0, output_padding=2)
    with pytest.raises(ll.errors.ArgumentError, match="give margins as numbers"):
        ll.nn.conv_transpose(ll.ones((1, 5, 1)), ll.ones((3, 1, 1)), 2, output_padding=1)


def test_integers_and_mixed_dtypes():
    with pytest.raises(ll.errors.DTypeError, match=r"conv needs floating operands, got int32; write ll.astype"):
        ll.nn.conv(ll.ones((1, 5, 1), dtype="int32"), ll.ones((3, 1, 1), dtype="int32"))
    mixed = ll.nn.conv(ll.ones((1, 5, 1), dtype="float16"), ll.ones((3, 1, 1)))
    assert mixed.dtype == ll.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_added_up_in_float32(dtype):
    x = ll.ones((1, 3000, 1), dtype=dtype)
    w = ll.ones((3000, 1, 1), dtype=dtype)
    assert ll.nn.conv(x, w, padding="valid").item() == ll.constant(3000.0, dtype).item()
