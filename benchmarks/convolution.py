"""Convolution and its gradients: every route on NumPy, JAX's compiled kernels, and PyTorch, layer by layer, in one run.

    python benchmarks/convolution.py [--rounds N] [--layers TEXT] [--processor]

One table: the least time of the rounds in milliseconds, a star at the route that the engine chooses, and at the end the
time of that route by those of JAX and PyTorch. JAX gets and gives NumPy arrays, as a kernel of ours would have to; what
its first call takes, with compiling, is in a table of its own. Layers are those of a ResNet on batches of 4 images, and
some of smaller networks, of one and of three dimensions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

import report
from measure import Library, Row, Samples, fair_environment, installed, interleave

DIRECTIONS = ("forward", "input", "filters")


class Layer(NamedTuple):
    """One convolution: shapes of input and filters, stride, and margins before and after."""

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    margin: int = 0


LAYERS = [
    Layer("7x7 224x3>64 /2", (4, 224, 224, 3), (7, 7, 3, 64), 2, 3),
    Layer("1x1 56x64>256", (4, 56, 56, 64), (1, 1, 64, 256)),
    Layer("3x3 56x64>64", (4, 56, 56, 64), (3, 3, 64, 64), 1, 1),
    Layer("3x3 56x128>128 /2", (4, 56, 56, 128), (3, 3, 128, 128), 2, 1),
    Layer("1x1 56x256>512 /2", (4, 56, 56, 256), (1, 1, 256, 512), 2),
    Layer("3x3 28x128>128", (4, 28, 28, 128), (3, 3, 128, 128), 1, 1),
    Layer("3x3 14x256>256", (4, 14, 14, 256), (3, 3, 256, 256), 1, 1),
    Layer("3x3 7x512>512", (4, 7, 7, 512), (3, 3, 512, 512), 1, 1),
    Layer("5x5 28x1>32, 64 images", (64, 28, 28, 1), (5, 5, 1, 32)),
    Layer("3x3 26x32>64, 64 images", (64, 26, 26, 32), (3, 3, 32, 64)),
    Layer("3x3 16x8>8, 8 images", (8, 16, 16, 8), (3, 3, 8, 8), 1, 1),
    Layer("5 of 1000x64>64", (4, 1000, 64), (5, 64, 64), 1, 2),
    Layer("3x3x3 16x32>32, 2 images", (2, 16, 16, 16, 32), (3, 3, 3, 32, 32), 1, 1),
]


def laid(layer: Layer) -> Any:
    """The layer's windows."""
    from limelight.ops.nn._windows import windows_over

    n = len(layer.x) - 2
    pads = ((layer.margin, layer.margin),) * n
    return windows_over("conv", None, layer.x[1:-1], layer.w[:-2], (layer.stride,) * n, pads, (1,) * n)


def arrays(layer: Layer) -> tuple[Any, Any, Any]:
    """Input, filters, and the gradient of the output."""
    rng = np.random.default_rng(0)
    shapes = (layer.x, layer.w, (layer.x[0], *laid(layer).out, layer.w[-1]))
    x, w, g = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    return x, w * 0.1, g


def jobs(
    make: Callable[[Layer], Mapping[str, Callable[[], Any]]], warm: bool = False
) -> Callable[[], Mapping[str, Any]]:
    """What `run(layer, direction)` means: the jobs of a layer are made when it is first asked for."""

    def words() -> Mapping[str, Any]:
        made: dict[int, Mapping[str, Callable[[], Any]]] = {}
        if warm:  # no first call shall set up the library
            make(LAYERS[-1])["forward"]()

        def run(index: int, direction: str) -> Any:
            if index not in made:
                made.clear()
                made[index] = make(LAYERS[index])
            return made[index][direction]()

        def first(calls: int) -> int:
            for direction in DIRECTIONS:
                make(LAYERS[FIRST])[direction]()
            return len(DIRECTIONS)

        return {"run": run, "first": first}

    return words


FIRST = [layer.name for layer in LAYERS].index("3x3 56x64>64")


def route(name: str) -> Callable[[Layer], Mapping[str, Callable[[], Any]]]:
    def make(layer: Layer) -> Mapping[str, Callable[[], Any]]:
        from limelight.ops.nn import _numpy_convolution

        (x, w, g), at = arrays(layer), laid(layer)
        return {
            "forward": lambda: _numpy_convolution.FORWARD[name](x, w, at),
            "input": lambda: _numpy_convolution.INPUT[name](g, w, at),
            "filters": lambda: _numpy_convolution.FILTERS[name](x, g, at),
        }

    return make


def of_jax(layer: Layer) -> Mapping[str, Callable[[], Any]]:
    import jax

    (x, w, g), n = arrays(layer), len(layer.x) - 2
    space = "DHW"[3 - n :]
    names = (f"N{space}C", f"{space}IO", f"N{space}C")

    def conv(x: Any, w: Any) -> Any:
        pads = [(layer.margin, layer.margin)] * n
        return jax.lax.conv_general_dilated(x, w, (layer.stride,) * n, pads, dimension_numbers=names)

    forward = jax.jit(conv)
    to_x = jax.jit(lambda w, g: jax.linear_transpose(lambda x: conv(x, w), x)(g)[0])
    to_w = jax.jit(lambda x, g: jax.linear_transpose(lambda w: conv(x, w), w)(g)[0])
    return {
        "forward": lambda: np.asarray(forward(x, w)),
        "input": lambda: np.asarray(to_x(w, g)),
        "filters": lambda: np.asarray(to_w(x, g)),
    }


def of_torch(layer: Layer) -> Mapping[str, Callable[[], Any]]:
    import torch

    n = len(layer.x) - 2
    form = {2: torch.channels_last, 3: torch.channels_last_3d}.get(n, torch.contiguous_format)
    first, last = (0, n + 1, *range(1, n + 1)), (n + 1, n, *range(n))
    x, w, g = [
        torch.tensor(array).permute(order).contiguous(memory_format=form)
        for array, order in zip(arrays(layer), (first, last, first), strict=True)
    ]
    settings = ([layer.stride] * n, [layer.margin] * n, [1] * n, False, [0] * n, 1)

    def back(*wanted: bool) -> Any:
        return torch.ops.aten.convolution_backward(g, x, w, None, *settings, wanted)

    return {
        "forward": lambda: torch.ops.aten.convolution(x, w, None, *settings),
        "input": lambda: back(True, False, False),
        "filters": lambda: back(False, True, False),
    }


def row_name(layer: Layer, direction: str) -> str:
    return f"{layer.name}, {direction}"


def impossible(name: str) -> tuple[str, ...]:
    """The rows that a route cannot do."""
    from limelight.ops.nn import _numpy_convolution

    tables = {
        "forward": _numpy_convolution.FORWARD,
        "input": _numpy_convolution.INPUT,
        "filters": _numpy_convolution.FILTERS,
    }
    return (
        "first call",
        *[
            row_name(layer, direction)
            for layer in LAYERS
            for direction in DIRECTIONS
            if name not in tables[direction]
            or (name != "tiles" and (name == "product") != (prod(layer.w[:-2]) == 1))
            or (name == "flipping" and _numpy_convolution.flipped(laid(layer)) is None)
        ],
    )


ROUTES = ("product", "patches", "rows", "flipping", "scattering", "places", "tiles")
LIBRARIES = [
    *[
        Library(
            name,
            "limelight",
            jobs(route(name)),
            beside=ROUTES[0],
            lacks=impossible(name),
            needs=("limelight_native",) if name == "tiles" else (),
        )
        for name in ROUTES
    ],
    Library("jax", "jax", jobs(of_jax, warm=True)),
    Library("torch", "torch", jobs(of_torch, warm=True)),
]
ROWS = [
    Row(row_name(layer, direction), direction, f"run({i}, {direction!r})")
    for i, layer in enumerate(LAYERS)
    for direction in DIRECTIONS
]


def table(samples: Samples, names: list[str], rows: list[Row]) -> list[str]:
    """The least milliseconds of each, a star at the chosen route, and its ratios to the peers."""
    from limelight.ops.nn import _numpy_convolution

    chosen = {
        row_name(layer, direction): _numpy_convolution.chosen_route(direction, laid(layer), *layer.w[-2:], np.float32)
        for layer in LAYERS
        for direction in DIRECTIONS
    }
    peers = [name for name in names if name not in ROUTES]
    lines = [["milliseconds", *names, *[f"ours / {peer}" for peer in peers]]]
    for row in rows:
        least = {name: min(samples[name, row.name]) * 1e3 for name in names if (name, row.name) in samples}
        ours = chosen[row.name]
        cells = [f"{'*' if name == ours else ''}{least[name]:.2f}" if name in least else "-" for name in names]
        ratios = [f"{least[ours] / least[peer]:.2f}" if {ours, peer} <= least.keys() else "-" for peer in peers]
        lines.append([row.name, *cells, *ratios])
    return report.aligned(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each row is measured")
    parser.add_argument("--layers", default="", help="only the layers whose names contain this")
    parser.add_argument("--processor", action="store_true", help="the time of all threads instead of the clock's")
    options = parser.parse_args()
    fair_environment()
    libraries = installed(None, LIBRARIES)
    rows = [row for row in ROWS if options.layers in row.name]
    print(report.describe(report.machine(["numpy", *[library.package for library in libraries]])), flush=True)

    def say(text: str) -> None:
        print(text, end="\r", file=sys.stderr, flush=True)

    once = [Row("first call", "first", "first", block=True, once=True)]
    peers = [library for library in libraries if library.name not in ROUTES]
    first = interleave(peers, once, 1, "convolution", say).wall
    wall, processor, failed, _ = interleave(libraries, rows, options.rounds, "convolution", say)
    print("", *table(processor if options.processor else wall, [library.name for library in libraries], rows), sep="\n")
    print()
    for name, (seconds,) in sorted((name, found) for (name, _), found in first.items()):
        print(f"first call of each direction, {LAYERS[FIRST].name}, {name}: {seconds * 1e3:.0f} ms on average")
    for (library, row), problem in failed.items():
        print(f"{library} could not do {row}: {problem}")


if __name__ == "__main__":
    main()
