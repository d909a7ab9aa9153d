"""Reductions of large arrays on all cores: each computes some of the rows of which a number is left.

Every number of the result is computed as NumPy computes it from the whole array, and so has the same bits. The others
run on one core: a sum of everything would have other bits in parts, and for columns two threads took no less time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limelight.core.cores import WORTH, for_each, threads
from limelight.core.shapes import is_static
from limelight.core.spec import TensorSpec
from limelight.executors.plan.array_rows import PIECE
from limelight.executors.plan.kernel_calls import KernelCall
from limelight.graph.ir import Node


def reduced_on_all_cores(call: KernelCall, node: Node) -> KernelCall:
    """The call of `ufunc.reduce` on a large array, as one that all cores share; any other call as it is."""
    ufunc = getattr(call.kernel, "__self__", None)
    if not isinstance(ufunc, np.ufunc) or call.kernel != ufunc.reduce or threads() == 1:
        return call
    spec = node.inputs[0].spec
    if not isinstance(spec, TensorSpec) or not is_static(spec.shape) or (spec.size or 0) < WORTH:
        return call
    return call._replace(kernel=SharedReduction(ufunc))


class SharedReduction:
    """A reduction of a large array; it is called as `ufunc.reduce` is, as far as plans do."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc: Any = ufunc  # whose stub knows no positional arguments

    def __call__(self, x: Any, axis: Any, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        over = {i % x.ndim for i in axes}
        lead = min(over, default=0)
        rows = math.prod(x.shape[:lead])
        if rows < 2 or not x.flags.c_contiguous:
            return self._ufunc.reduce(x, axis, dtype, out, keepdims)
        made = self._of_rows(x.reshape((rows, *x.shape[lead:])), tuple([i - lead + 1 for i in sorted(over)]), dtype)
        return made.reshape([1 if i in over else n for i, n in enumerate(x.shape) if keepdims or i not in over])

    def _of_rows(self, x: Any, inner: tuple[int, ...], dtype: Any) -> Any:
        as_chosen = self._ufunc.reduce(x[(slice(0, 1),) * x.ndim], inner, dtype).dtype
        made = np.empty([n for i, n in enumerate(x.shape) if i not in inner], as_chosen)
        step = max(1, PIECE // max(1, math.prod(x.shape[1:])))

        def compute(start: int) -> None:
            self._ufunc.reduce(x[start : start + step], inner, dtype, made[start : start + step])

        for_each(compute, range(0, len(x), step), x.size)
        return made
