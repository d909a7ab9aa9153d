"""Random programs of views, copies and sums, whose numbers depend on how arrays lie in memory.

`LIMELIGHT_LAYOUT_PROGRAMS=2000` draws more of them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors.loops import loops, stretch
from limelight.executors.plan import plan
from limelight.optimise import optimise

N = int(os.environ.get("LIMELIGHT_LAYOUT_PROGRAMS", "60"))
SIZES = (1, 2, 3, 5, 8)
LARGE = 300


class Drawn:
    """A program that is drawn while it is traced."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = self.random.choice(["float32", "float64"])
        self.shapes = [tuple(self.random.choice(SIZES, self.random.integers(0, 4)).tolist()) for _ in range(2)]
        if self.random.random() < 0.3:
            self.shapes[0] = (*self.shapes[0], LARGE)
        self.arrays = [self.random.standard_normal(shape).astype(self.dtype) for shape in self.shapes]
        self.moves = [self.transposed, self.sliced, self.reshaped, self.widened, self.elementwise, self.elementwise]
        self.moves += [self.beside, self.reduced, self.reduced, self.product, self.chosen, self.cast, self.mean]

    def __call__(self, *inputs: Any) -> Any:
        values = list(inputs)
        for _ in range(14):
            move = self.moves[self.random.integers(len(self.moves))]
            value = move(values[self.random.integers(len(values))])
            if value is not None and value.size and value.size < 20_000:
                values.append(value)
        return tuple(values[-5:])

    def axis(self, x: Any) -> int:
        return int(self.random.integers(x.ndim))

    def transposed(self, x: Any) -> Any:
        return ll.transpose(x, tuple(self.random.permutation(x.ndim).tolist())) if x.ndim else None

    def sliced(self, x: Any) -> Any:
        if not x.ndim:
            return None
        keys: list[Any] = [slice(None)] * x.ndim
        axis = self.axis(x)
        keys[axis] = slice(int(self.random.integers(x.shape[axis])), None, int(self.random.integers(1, 3)))
        return x[tuple(keys)] if self.random.random() < 0.7 else x[..., None]

    def reshaped(self, x: Any) -> Any:
        size = x.size
        first = next((n for n in self.random.permutation(SIZES).tolist() if size % n == 0), 1)
        return ll.reshape(x, (first, size // first) if self.random.random() < 0.7 else (size,))

    def widened(self, x: Any) -> Any:
        return ll.broadcast_to(x, (int(self.random.integers(1, 4)), *x.shape))

    def elementwise(self, x: Any) -> Any:
        square = x.ndim == 2 and x.shape[0] in (1, x.shape[1])
        return (ll.tanh(x), x * x.T if square else x + x, x + 1.5, ll.exp(-x * x))[self.random.integers(4)]

    def beside(self, x: Any) -> Any:
        return ll.concat([x, ll.sin(x)], axis=self.axis(x)) if x.ndim else None

    def reduced(self, x: Any) -> Any:
        if not x.ndim:
            return None
        axes = tuple(self.random.permutation(x.ndim)[: self.random.integers(1, x.ndim + 1)].tolist())
        reduce = (ll.sum, ll.sum, ll.max, ll.prod)[self.random.integers(4)]
        return reduce(x, axis=axes, keepdims=bool(self.random.random() < 0.5))

    def mean(self, x: Any) -> Any:
        return ll.nn.softmax(x, axis=self.axis(x)) - ll.mean(x) if x.ndim else None

    def product(self, x: Any) -> Any:
        return x @ ll.matrix_transpose(x) if x.ndim > 1 else None

    def chosen(self, x: Any) -> Any:
        return ll.where(x > 0.0, x, ll.transpose(ll.transpose(x) * 3.0))

    def cast(self, x: Any) -> Any:
        return ll.astype(x > 0.1, self.dtype) * x


def bits(results: Any) -> list[Any]:
    return [(np.asarray(x).dtype, np.shape(x), np.asarray(x).tobytes()) for x in results]


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # each program is another function
@pytest.mark.filterwarnings("ignore::limelight.errors.HostRandomnessWarning")  # which is drawn while it is traced
@pytest.mark.parametrize("part", range(4))
def test_layouts_are_followed(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch, "FEWEST", 1)
    instructions = 0
    for seed in range(part, N, 4):
        program = Drawn(seed)
        run = ll.function(program)
        tensors = [ll.constant(x) for x in program.arrays]
        run(*tensors)
        entry = run.trace_cache[0]
        graphs = [entry.graph, optimise(entry.graph).graph]
        for graph in graphs:
            stretched = loops.in_stretches(graph, lambda one: one).stretches
            instructions += sum(len(one.instructions) for one in stretched.values())
            wanted, found = (bits(build(graph)(*program.arrays)) for build in (plan.build, loops.build))
            assert found == wanted, f"program {seed}\n{graph}"
    assert instructions > 10 * N // 4
