"""Ufuncs over large arrays on all cores: each computes some of the rows, or of the elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core.cores import WORTH, for_each, threads
from limelight.core.shapes import is_static
from limelight.core.spec import TensorSpec
from limelight.executors.plan.array_rows import PIECE, in_rows
from limelight.executors.plan.kernel_calls import KernelCall
from limelight.executors.plan.shared_reductions import reduced_on_all_cores
from limelight.graph.ir import Node


def on_all_cores(call: KernelCall, node: Node) -> KernelCall:
    """The call of a ufunc that makes or reduces a large array, as one that all cores share; any other call as it is.

    Complex numbers are left out: how NumPy rounds their products depends on where in an array they are.
    """
    if not (call.elementwise and isinstance(call.kernel, np.ufunc)):
        return reduced_on_all_cores(call, node)
    spec = node.outputs[0].spec
    if not isinstance(spec, TensorSpec) or not is_static(spec.shape) or (spec.size or 0) < WORTH or threads() == 1:
        return call
    if any(not isinstance(x.spec, TensorSpec) or x.spec.dtype.kind == "c" for x in node.inputs):
        return call
    return call._replace(kernel=SharedUfunc(call.kernel, spec))


class SharedUfunc:
    """A ufunc for operands that broadcast to a large shape; it is called as the ufunc is."""

    def __init__(self, ufunc: np.ufunc, made: TensorSpec) -> None:
        self._ufunc = ufunc
        self._shape: tuple[int, ...] = tuple([n or 0 for n in made.shape])
        self._dtype = made.dtype

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        operands = arrays[: self._ufunc.nin]
        into = arrays[-1] if len(arrays) > len(operands) else out
        rows = in_rows(operands, self._shape) if into is None or into.flags.c_contiguous else None
        if rows is None:  # the result then lies as NumPy has it for operands in other orders of memory
            return self._ufunc(*operands, out=into)
        made = np.empty(self._shape, self._dtype) if into is None else into
        result = made.reshape(rows.shape)
        for_each(lambda piece: self._ufunc(*rows.of(piece), out=result[piece]), rows.pieces(PIECE), made.size)
        return made
