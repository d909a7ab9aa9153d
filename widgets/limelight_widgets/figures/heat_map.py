"""A heat map of two axes of an array, as a picture: small enough for every cell's output, NaN and infinities marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from limelight_widgets.figures.palette_png import Colour, palette_png

ROWS, COLUMNS = 32, 64  # cells at most
WIDTH, HEIGHT, LARGEST = 256, 128, 16  # pixels: of the picture, and of a cell's side at most
FEW = 4  # rows or columns whose cells need not be squares
CHANNELS = 4  # a last axis so short is one of channels
SHADES = 20
SEQUENTIAL: Final[list[Colour]] = [(27, 31, 75), (0, 114, 178), (60, 180, 165), (240, 228, 66)]
DIVERGING: Final[list[Colour]] = [(0, 72, 130), (86, 180, 233), (244, 244, 240), (230, 159, 0), (168, 60, 0)]
PAPER, MARK = SHADES, SHADES + 1  # of a cell that holds something not finite
NAN, INFINITY, NEGATIVE, SEVERAL = range(1, 5)
_OUTSIDE: Final[list[Colour]] = [(20, 20, 20), (255, 120, 200)]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The picture, its size in pixels, how many elements a cell stands for, and whether there are both signs."""

    png: bytes
    width: int
    height: int
    block: tuple[int, int]
    both_signs: bool


def picked(shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """Which two axes are drawn (None), and at which index of each other axis.

    The last two of a matrix or a stack; of images with a short last axis the two before it, at its first channel.

    >>> picked((64, 32)), picked((8, 28, 28, 3)), picked((5,))
    ((None, None), (0, None, None, 0), (None,))
    """
    rank = len(shape)
    drawn = {rank - 3, rank - 2} if rank >= 3 and shape[-1] <= CHANNELS < shape[-2] else {rank - 2, rank - 1}
    return tuple(None if axis in drawn else 0 for axis in range(rank))


def heat_map(values: np.ndarray[Any, Any]) -> HeatMap:
    """Draws a float64 array of one or two axes, none of them empty; a cell that stands for several has their mean."""
    numbers = np.atleast_2d(values)
    block = (-(-numbers.shape[0] // ROWS), -(-numbers.shape[1] // COLUMNS))
    outside = _outside(numbers, block)
    shades, both_signs = _shades(_means(numbers, block))
    down, across = _sides(*shades.shape)
    pixels = np.kron(shades, np.ones((down, across), np.uint8))
    for row, column in np.argwhere(outside):
        place = (slice(row * down, row * down + down), slice(column * across, column * across + across))
        pixels[place] = np.where(_mark(outside[row, column], down, across), MARK, PAPER)
    png = palette_png(pixels, [*_blend(DIVERGING if both_signs else SEQUENTIAL), *_OUTSIDE])
    return HeatMap(png, pixels.shape[1], pixels.shape[0], block, both_signs)


def _sides(rows: int, columns: int) -> tuple[int, int]:
    """The height and the width of a cell: a square, but where there are few rows or few columns."""
    down, across = min(HEIGHT // rows, LARGEST), min(WIDTH // columns, LARGEST)
    return (down, across) if min(rows, columns) <= FEW else (min(down, across), min(down, across))


def _blocks(numbers: np.ndarray[Any, Any], block: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Sums over blocks of rows and columns."""
    rows = np.add.reduceat(numbers, np.arange(0, numbers.shape[0], block[0]), axis=0)
    return np.add.reduceat(rows, np.arange(0, numbers.shape[1], block[1]), axis=1)


def _means(numbers: np.ndarray[Any, Any], block: tuple[int, int]) -> np.ndarray[Any, Any]:
    """The mean of what is finite in each block, in units of the largest magnitude; NaN where nothing is finite."""
    finite = np.isfinite(numbers)
    known = np.where(finite, numbers, 0.0)
    sums = _blocks(known / (float(np.abs(known).max()) or 1.0), block)  # divided first: no sum overflows
    counts = _blocks(finite.astype(np.float64), block)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _outside(numbers: np.ndarray[Any, Any], block: tuple[int, int]) -> np.ndarray[Any, Any]:
    """What is not finite in each block: 0 for nothing, else `NAN`, `INFINITY`, `NEGATIVE` or `SEVERAL`."""
    kinds = np.zeros((-(-numbers.shape[0] // block[0]), -(-numbers.shape[1] // block[1])), np.int64)
    for kind, where in ((NAN, np.isnan), (INFINITY, np.isposinf), (NEGATIVE, np.isneginf)):
        here = _blocks(where(numbers).astype(np.int64), block) > 0
        kinds = np.where(here, np.where(kinds > 0, SEVERAL, kind), kinds)
    return kinds


def _shades(means: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], bool]:
    """The shade of each cell, and whether there are both signs: then zero lies in the middle."""
    finite = means[np.isfinite(means)]
    least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    both_signs = least < 0 < most
    if both_signs:
        most = max(-least, most)
        least = -most
    share = np.nan_to_num((means - least) / ((most - least) or 1.0))
    return np.clip(share * SHADES, 0, SHADES - 1).astype(np.uint8), both_signs


def _blend(anchors: list[Colour]) -> list[Colour]:
    places = np.linspace(0, len(anchors) - 1, SHADES)
    parts = [np.interp(places, range(len(anchors)), [colour[part] for colour in anchors]) for part in range(3)]
    return [(round(r), round(g), round(b)) for r, g, b in zip(*parts, strict=True)]


def _mark(kind: int, down: int, across: int) -> np.ndarray[Any, Any]:
    """The sign on a cell: a cross for NaN, plus and minus for the infinities, a frame for several of these."""
    x, y = np.meshgrid(abs(np.linspace(-1, 1, across)), abs(np.linspace(-1, 1, down)))
    width = 1.01 / max(min(down, across) - 1, 1)  # one pixel of an odd number, two of an even one
    marks: dict[int, np.ndarray[Any, Any]] = {
        NAN: abs(x - y) <= width / 2,
        INFINITY: (y <= width) | (x <= width),
        NEGATIVE: y <= width,
        SEVERAL: (x == 1) | (y == 1),
    }
    return marks[kind]
