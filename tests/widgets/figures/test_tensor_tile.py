"""A tensor's tile: true counts, a few kilobytes, no script, for every dtype and whatever the values."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from html.parser import HTMLParser

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import limelight as ll
from limelight.core import dtypes
from limelight_widgets import tensor_tile
from limelight_widgets.figures import tensor_sample
from limelight_widgets.figures.heat_map import MARK, PAPER, SHADES, heat_map, picked
from limelight_widgets.figures.palette_png import palette_png
from limelight_widgets.figures.tensor_tile import LEGIBLE

MOST_BYTES = 6_000
KEPT = {"div", "b", "br", "small", "img"}  # what a notebook that is not trusted keeps of it


class Page(HTMLParser):
    """The tags and the words of a tile."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words += data


def pixels(png: bytes) -> np.ndarray:
    """The palette indices of a picture, read back."""
    width, height = struct.unpack(">II", png[16:24])
    at = png.index(b"IDAT")
    (length,) = struct.unpack(">I", png[at - 4 : at])
    rows = np.frombuffer(zlib.decompress(png[at + 4 : at + 4 + length]), np.uint8).reshape(height, width + 1)
    return rows[:, 1:]


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=12)
EXTREME = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 1.0, -3.0]


@st.composite
def arrays(draw):
    """Arrays of every dtype, with values at the ends of their range and beyond."""
    dtype, shape = draw(st.sampled_from(dtypes.ALL)), draw(SHAPES)
    size = int(np.prod(shape))
    if dtypes.kind(dtype) in ("floating", "complex"):
        values = draw(st.lists(st.sampled_from(EXTREME), min_size=1, max_size=8))
    elif dtype == dtypes.bool_:
        values = [True, False, False]
    else:
        limits = np.iinfo(dtype)
        values = draw(st.lists(st.integers(int(limits.min), int(limits.max)), min_size=1, max_size=8))
    with np.errstate(over="ignore"):
        return np.resize(np.array(values).astype(dtype), size).reshape(shape)


@settings(max_examples=60, deadline=None)
@given(arrays())
def test_every_tensor_has_a_tile_of_markup_that_readers_keep(array):
    x = ll.constant(array)
    tile = tensor_tile(x)
    assert tile.text == repr(x)
    assert (tile.html is None) == (array.size <= LEGIBLE)
    if tile.html is None:
        return
    page = Page(tile.html)
    assert len(tile.html) <= MOST_BYTES
    assert {tag for tag, _ in page.tags} <= KEPT
    assert all(set(given) <= {"src", "width", "height", "alt"} for _, given in page.tags)
    assert x.spec.__str__() in page.words
    numbers = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    nans = int(np.isnan(numbers if array.dtype.kind != "c" else np.abs(numbers)).sum())
    assert ("NaN" in page.words) == (nans > 0)
    if nans:
        assert f"{nans:,} NaN" in page.words


def test_statistics_are_numpys():
    array = np.random.default_rng(0).normal(size=(40, 50)).astype("float32")
    array[0, 0], array[1, 1], array[2, 2], array[3, 3] = np.nan, np.inf, -np.inf, np.nan
    words = Page(tensor_tile(ll.constant(array)).html).words.replace("−", "-")
    finite = array[np.isfinite(array)].astype("float64")
    for name, value in (("min", finite.min()), ("mean", finite.mean()), ("max", finite.max()), ("std", finite.std())):
        assert f"{name} {value:.4g}" in words
    assert "2 NaN" in words
    assert "1 +inf" in words
    assert "1 -inf" in words


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_large_integers_are_exact(value):
    words = Page(tensor_tile(ll.constant(np.full(30, value, "int64"))).html).words.replace("−", "-")
    assert f"all {value:,}" in words


def test_constant_values_have_one_shade():
    for value in (0.1, -7e300, 1.7e308, 0.0):
        drawn = heat_map(np.full((333, 777), value))
        assert len(np.unique(pixels(drawn.png))) == 1


def test_what_is_not_finite_is_marked_where_it_is():
    values = np.linspace(0.0, 1.0, 64).reshape(8, 8)
    values[2, 3], values[4, 5] = np.nan, -np.inf
    drawn = pixels(heat_map(values).png)
    side = drawn.shape[0] // 8
    marked = (drawn >= SHADES).reshape(8, side, 8, side).any(axis=(1, 3))
    assert np.argwhere(marked).tolist() == [[2, 3], [4, 5]]
    assert {MARK, PAPER} <= set(np.unique(drawn))


def test_one_nan_among_many_elements_marks_its_block():
    values = np.zeros((320, 640))
    values[319, 639] = np.nan
    assert (pixels(heat_map(values).png) == MARK).any()


@pytest.mark.parametrize(
    ("shape", "drawn"),
    [
        ((64, 32), (None, None)),
        ((8, 28, 28, 3), (0, None, None, 0)),
        ((3, 3, 16, 32), (0, 0, None, None)),
        ((5,), (None,)),
    ],
)
def test_images_show_their_first_channel(shape, drawn):
    assert picked(shape) == drawn


@pytest.mark.parametrize("shape", [(2**33,), (2**17, 2**16), (3, 2**31), (2**40, 1), (1000, 1000, 1000)])
def test_of_a_large_tensor_a_sample_is_looked_at(shape):
    large = np.broadcast_to(np.float32(1.0), shape)  # terabytes, all of one element
    part = tensor_sample.sampled(large, ll.zeros(()).device)
    assert tensor_sample.MOST_ELEMENTS // 4 <= part.size <= tensor_sample.MOST_ELEMENTS


def test_a_sample_is_said_to_be_one():
    words = Page(tensor_tile(ll.ones((1024, 1024))).html).words
    assert "all 1 in a sample of 262,144 of 1,048,576 elements" in words
    assert "at least 262,144 NaN" in Page(tensor_tile(ll.ones((1024, 1024)) * float("nan")).html).words


def test_names_are_escaped():
    html = tensor_tile(ll.Variable(np.zeros((6, 6), "float32"), name="<script>alert(1)</script>" * 9)).html
    assert "<script" not in html
    assert "&lt;script" in html


def test_what_has_no_value_stays_text():
    seen = []

    @ll.function
    def f(x):
        seen.append(tensor_tile(x))
        return x + 1.0

    f(ll.ones((40, 40)))
    assert seen[0].html is None
    with pytest.raises(TypeError, match="ndarray"):
        tensor_tile(np.zeros((40, 40)))


def test_the_histogram_of_whole_numbers_has_no_gaps():
    html = tensor_tile(ll.constant(np.arange(60).reshape(6, 10))).html
    (data,) = re.findall(r"svg\+xml;base64,([^\"]+)", html)
    heights = set(re.findall(r"v-(\d+)", base64.b64decode(data).decode()))
    assert len(heights) == 1


def test_the_picture_is_a_png():
    png = palette_png(np.array([[0, 1], [1, 0]]), [(0, 0, 0), (255, 255, 255)])
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert pixels(png).tolist() == [[0, 1], [1, 0]]


def test_the_colours_of_truth_values_are_named_for_these():
    html = tensor_tile(ll.constant(np.arange(30) % 3 == 0)).html
    assert "dark False, bright True" in html
    assert "&lt;" not in html


def test_equal_values_are_named_but_not_those_of_equal_magnitude():
    assert "all True" in tensor_tile(ll.constant(np.ones(30, "bool"))).html
    assert "all 1" not in tensor_tile(ll.constant(np.exp(1j * np.arange(30)))).html
    assert "all −inf" in tensor_tile(ll.constant(np.full(30, -np.inf))).html
