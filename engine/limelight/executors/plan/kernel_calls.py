"""What a plan calls for each op: its kernel, or something cheaper that does the same (see `specialised_kernels`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight.core.op import Op
from limelight.graph.ir import Node


class KernelCall(NamedTuple):
    """What a plan calls for a node, and what may be done with the result.

    It is written `kernel(*first, *operands, *extra, *params)`, or without a kernel `operand infix others, params
    suffix`, as in "v0.dot(v1)".

    Args:
        kernel: the function that is called.
        first: arguments before the operands: the array namespace of a kernel that takes one.
        infix: what stands behind the first operand, where no kernel is called.
        suffix: what stands at the end then.
        params: static parameters instead of the node's.
        elementwise: it is a ufunc, whose result may go into an operand's buffer, which is then its last argument.
        out: the word before that argument, where one is needed.
        fresh: the result is a new array that shares nothing with the operands, which are not kept either.
        scalar: literals are wanted as NumPy scalars rather than as 0-d arrays.
        packed: operands go in as one tuple.
        extra: arguments behind the operands.
    """

    kernel: Callable[..., Any] | None = None
    first: tuple[Any, ...] = ()
    infix: str = ""
    suffix: str = ""
    params: tuple[Any, ...] | None = None
    elementwise: bool = False
    out: str = ""
    fresh: bool = False
    scalar: bool = False
    packed: bool = False
    extra: tuple[Any, ...] = ()


Specialisation: TypeAlias = Callable[[Node], KernelCall | None]
"""The cheaper call that does for a node; None where the op's kernel must do."""

_RETURN_NEW: Final = frozenset([np.where, np.concatenate, np.stack, np.take, np.dot, np.matmul])
"""Functions of NumPy, besides its ufuncs, that return new arrays. Kernels of ours that do so: `Op.fresh`."""

_NAMED_OUT: Final = (np.maximum, np.minimum)
"""Ufuncs whose third operand must be named, lest it be mistaken for another number. For the others it costs 15 ns."""


class KernelCalls:
    """The calls for nodes; what does not depend on the node is remembered for each op."""

    def __init__(self, specialised: Callable[[Op, Callable[..., Any]], Specialisation | None]) -> None:
        self._specialised = specialised
        self._known: dict[tuple[int, str], tuple[KernelCall, Specialisation | None]] = {}

    def of(self, node: Node, backend: str) -> KernelCall:
        """What to call for `node` on a backend."""
        key = (id(node.op), backend)
        known = self._known.get(key)
        if known is None:
            kernel = node.op.kernel_on(backend)
            specialise = self._specialised(node.op, kernel) if backend == "numpy" else None
            call = kernel_call(kernel)
            if backend == "numpy" and node.op.fresh:
                call = call._replace(fresh=True)
            known = self._known[key] = (call, specialise)
        call, specialise = known
        return call if specialise is None else specialise(node) or call


def kernel_call(kernel: Callable[..., Any]) -> KernelCall:
    """The call of a kernel as it is."""
    if type(kernel) is functools.partial and not kernel.keywords:  # xp goes in as an argument: one call less
        return KernelCall(kernel.func, first=kernel.args)
    if isinstance(kernel, np.ufunc):
        elementwise = kernel.signature is None and kernel.nout == 1
        return KernelCall(kernel, elementwise=elementwise, out="out=" if kernel in _NAMED_OUT else "", fresh=True)
    return KernelCall(kernel, fresh=kernel in _RETURN_NEW)
