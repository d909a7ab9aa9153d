"""A tensor's value at a glance: shape, dtype and device, statistics, a heat map and a histogram.

The HTML holds no script, no style and no inline SVG, and takes the page's own colours for its words, so that it reads
on a light page and on a dark one, and in a notebook that is not trusted. It is a few kilobytes, whatever the tensor.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight_widgets.figures import svg
from limelight_widgets.figures.heat_map import HeatMap, heat_map, picked
from limelight_widgets.figures.tensor_sample import Statistics, magnitudes, sampled, statistics
from limelight_widgets.format import bytes_text, shortened

LEGIBLE = 24  # elements up to which numbers say more than a picture
NAME_WIDTH = 60
BINS, BIN_WIDTH, BARS_HEIGHT = 32, 4, 64
BARS = "#4a8fc2"  # 3 to 1 and more against white and against a dark page


@dataclass(frozen=True, slots=True)
class TensorTile:
    """A tensor as text, and as HTML where a picture says more than its numbers (else None).

    >>> import limelight as ll
    >>> tile = ll.widgets.tensor_tile(ll.ones((64, 32)))
    >>> tile.html is not None
    True
    """

    text: str
    html: str | None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        forms = {"text/plain": self.text}
        return forms if self.html is None else forms | {"text/html": self.html}

    def __repr__(self) -> str:
        return self.text


def tensor_tile(x: Tensor | Variable) -> TensorTile:
    """The value of a tensor or a variable, as a notebook shows it when it is a cell's last value.

    Up to 24 elements are shown as text alone, and so is what has no value yet, in a trace. Of more than 262,144
    elements a sample is drawn and measured, and the tile says so.

    Raises:
        TypeError: `x` is neither a tensor nor a variable.

    >>> import limelight as ll
    >>> tile = ll.widgets.tensor_tile(ll.ones((64, 32)))
    >>> tile.text == repr(ll.ones((64, 32))), "f32[64,32]" in tile.html
    (True, True)
    """
    if not isinstance(x, Tensor | Variable):
        raise TypeError(f"a tile shows a limelight.Tensor or a limelight.Variable; this is a {type(x).__name__}")
    return TensorTile(repr(x), tile_html(x))


def tile_html(x: Tensor | Variable) -> str | None:
    """The tile alone; None where text says as much."""
    if type(x) is not Tensor and not isinstance(x, Variable):  # of a trace or a batch: no value yet, or not one
        return None
    payload = x._data.array if isinstance(x, Variable) else x._data
    if payload.size <= LEGIBLE:
        return None
    values = sampled(payload, x._device)
    numbers = magnitudes(values)
    if (values == values.flat[0]).all():
        drawn = f"all {_number(values.flat[0].item())}{_sample(payload, values, ' in ')}"
    else:
        drawn = _pictures(payload, values, numbers) + _words(payload, values, statistics(values, numbers))
    return f"<div>{_heading(x, payload)}<br>{drawn}</div>"


def _heading(x: Tensor | Variable, payload: Any) -> str:
    spec = f"{dtypes.short(payload.dtype)}[{','.join(map(str, payload.shape))}]"
    kind = f"ll.Variable {escape(shortened(repr(x.name), NAME_WIDTH))}" if isinstance(x, Variable) else "ll.Tensor"
    return f"{kind} <b>{spec}</b> · {escape(x._device.short)} · {bytes_text(payload.nbytes)}"


def _pictures(payload: Any, values: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> str:
    """The heat map and the histogram, side by side, and in words what they show."""
    place = picked(values.shape)
    drawn = heat_map(numbers[tuple(slice(None) if at is None else at for at in place)])
    bars = _histogram(numbers, whole=values.dtype.kind in "iu") if values.dtype.kind != "b" else ""
    images = [_image("image/png", drawn.png, drawn.width, drawn.height, "heat map"), bars]
    words = [_map_caption(values, place, drawn), *(["histogram: how many, from min to max"] if bars else [])]
    words.append(_sample(payload, values))
    return "\u00a0 ".join(filter(None, images)) + f"<br><small>{'; '.join(filter(None, words))}</small><br>"


def _sample(payload: Any, values: np.ndarray[Any, Any], before: str = "") -> str:
    return f"{before}a sample of {values.size:,} of {payload.size:,} elements" if values.size < payload.size else ""


def _map_caption(values: np.ndarray[Any, Any], place: tuple[int | None, ...], drawn: HeatMap) -> str:
    index = ", ".join(":" if at is None else str(at) for at in place)
    what = "absolute values" if values.dtype.kind == "c" else "values"
    where = f" at [{index}]" if len(place) > place.count(None) else ""
    one_sign = "dark False, bright True" if values.dtype.kind == "b" else "dark < bright"
    colours = "blue < 0 < orange" if drawn.both_signs else one_sign
    rows, columns = drawn.block
    means = f", means of {rows} × {columns}" if rows * columns > 1 else ""
    return escape(f"{what}{where}{means}, {colours}")


def _histogram(numbers: np.ndarray[Any, Any], *, whole: bool) -> str:
    """How many finite values lie in each of equal steps between the least and the greatest; "" where all are equal.

    Steps of `whole` numbers are whole, so that no bar stands for more of them than another.
    """
    finite = numbers[np.isfinite(numbers)]
    scale = 1.0 if whole else float(np.abs(finite).max(initial=0.0)) or 1.0  # divided by: the range may overflow
    finite = finite / scale
    least, most = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if not least < most:
        return ""
    step = np.ceil((most - least + 1) / BINS) if whole else (most - least) / BINS
    bins = np.clip((finite - least) // step, 0, BINS - 1) if step else np.zeros_like(finite)
    counts = np.bincount(bins.astype(np.int64))
    return _bars(np.ceil(counts / counts.max() * (BARS_HEIGHT - 1)))


def _bars(heights: np.ndarray[Any, Any]) -> str:
    path = "".join(
        f"M{i * BIN_WIDTH} {BARS_HEIGHT}v-{h:.0f}h{BIN_WIDTH - 1}v{h:.0f}" for i, h in enumerate(heights) if h
    )
    width = len(heights) * BIN_WIDTH
    base = svg.element("path", d=f"M0 {BARS_HEIGHT}.5h{width}", stroke=BARS)
    size = f'width="{width}" height="{BARS_HEIGHT + 1}"'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{svg.element("path", d=path, fill=BARS)}{base}</svg>'
    return _image("image/svg+xml", picture.encode(), width, BARS_HEIGHT + 1, "histogram")


def _image(kind: str, data: bytes, width: int, height: int, alternative: str) -> str:
    content = base64.b64encode(data).decode()
    return f'<img src="data:{kind};base64,{content}" width="{width}" height="{height}" alt="{alternative}">'


def _words(payload: Any, values: np.ndarray[Any, Any], found: Statistics) -> str:
    """The statistics in a line; what is not finite is counted, and stands in bold."""
    at_least = "at least " if values.size < payload.size else ""
    odd = ((found.nans, "NaN"), (found.infinities, "+inf"), (found.negative_infinities, "−inf"))
    marked = [f"<b>{at_least}{count:,} {name}</b>" for count, name in odd if count]
    return " · ".join([*_measures(values.dtype.kind, found), *marked])


def _measures(kind: str, found: Statistics) -> list[str]:
    if found.mean is None:
        return ["nothing finite"]
    if kind == "b":
        return [f"{found.mean:.1%} True"]
    named = (("min", found.least), ("mean", found.mean), ("max", found.most), ("std", found.deviation))
    return [f"{name} {_number(value)}" for name, value in named if value is not None]


def _number(value: complex) -> str:
    if isinstance(value, bool):
        return str(value)
    return (f"{value:,}" if isinstance(value, int) else f"{value:.4g}").replace("-", "−")
