"""Random pipelines, and elements and states in a form that can be compared."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import limelight as ll

Build = Callable[[], Any]
"""Makes a dataset, the same each time: as a script does that is started again."""


def _arrays(n: int) -> Any:
    return ll.data.from_arrays((np.arange(n, dtype=np.float32), np.arange(n) * 10))


def _sequence(n: int) -> Any:
    return ll.data.from_sequence(range(n)).map(lambda i: (ll.astype(i, ll.float32), i))


def _generator(n: int) -> Any:
    def elements() -> Any:
        for i in range(n):
            yield np.float32(i), i

    return ll.data.from_generator(elements)


def _zipped(n: int) -> Any:
    return ll.data.zip((_arrays(n), _generator(n + 1))).map(lambda a, b: (a[0] + b[0], a[1]))


def _skipped(d: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "skip.*draws another order for each pass")  # `test_split_warning` is for that
        return d.skip(2)


SOURCES = [_arrays, _sequence, _generator, _zipped]
ELEMENTWISE = [
    ("map", lambda d: d.map(lambda x, y: (x * 2, y))),
    ("map seed", lambda d: d.map(lambda x, y, draws: (x + draws.normal(()), y), seed=3)),
    ("filter", lambda d: d.filter(lambda x, y: y % 3 != 1)),
    ("take", lambda d: d.take(7)),
    ("skip", _skipped),
    ("enumerate", lambda d: d.enumerate().map(lambda i, pair: (pair[0], pair[1] + i))),
    ("repeat", lambda d: d.repeat(2)),
    ("window", lambda d: d.shuffle(seed=5, window=4)),
    ("unseeded window", lambda d: d.shuffle(window=3)),
    ("one order", lambda d: d.shuffle(seed=5, window=4, reshuffle=False)),
    ("prefetch", lambda d: d.prefetch(2)),
    ("cache", lambda d: d.cache()),
]
PERMUTED = ("shuffle", lambda d: d.shuffle(seed=2))
BATCHED = [
    ("keep", lambda d: d.batch(3)),
    ("drop", lambda d: d.batch(3, last="drop")),
    ("pad", lambda d: d.batch(4, last="pad")),
]


@st.composite
def builds(draw: Any) -> tuple[str, Build]:
    """A pipeline of a source, up to four steps, and perhaps batches and two steps behind them."""
    source, n = draw(st.sampled_from(SOURCES)), draw(st.integers(0, 11))
    first = [PERMUTED] if source in (_arrays, _sequence) and draw(st.booleans()) else []
    steps = first + draw(st.lists(st.sampled_from(ELEMENTWISE), max_size=4))
    if draw(st.booleans()):
        behind = [step for step in ELEMENTWISE if step[0] not in ("map seed", "filter", "enumerate")]
        steps += [draw(st.sampled_from(BATCHED)), *draw(st.lists(st.sampled_from(behind), max_size=2))]

    def build() -> Any:
        dataset = source(n)
        for _, step in steps:
            dataset = step(dataset)
        return dataset

    return f"{source.__name__}({n}) " + ", ".join(name for name, _ in steps), build


def plain(elements: Any) -> list[Any]:
    """Elements as nested lists with dtypes: equal where they are the same bit for bit."""
    return [ll.tree.map(lambda x: (str(x.dtype), x.numpy().tobytes(), x.shape), element) for element in elements]


def through_a_file(state: Any) -> Any:
    """A state as another process gets it: JSON, and arrays apart."""
    arrays: list[Any] = []

    def write(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            arrays.append(x.copy())
            return {"array": len(arrays) - 1}
        if isinstance(x, dict):
            return {key: write(value) for key, value in x.items()}
        return [write(value) for value in x] if isinstance(x, list) else x

    def read(x: Any) -> Any:
        if isinstance(x, dict):
            return arrays[x["array"]] if x.keys() == {"array"} else {key: read(value) for key, value in x.items()}
        return [read(value) for value in x] if isinstance(x, list) else x

    return read(json.loads(json.dumps(write(state), allow_nan=False)))
