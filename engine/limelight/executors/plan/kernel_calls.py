"""How a plan writes each op: a call of its kernel, or something cheaper that does the same (see `cheaper`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from limelight.core.op import Op
from limelight.graph.ir import Node


class Formula(NamedTuple):
    """`kernel(*first, *operands, *besides, *params)`, or without a kernel `operand middle others, params end`.

    `params` stand instead of the node's. `elementwise`: a ufunc, whose result may go into an operand's buffer, which
    is its last argument, after the word `out`.
    `fresh`: the result is a new array that shares nothing with the operands, which are not kept either.
    `scalar`: literals are wanted as NumPy scalars rather than as 0-d arrays. `packed`: operands go in as one tuple.
    """

    kernel: Callable[..., Any] | None = None
    first: tuple[Any, ...] = ()
    middle: str = ""
    end: str = ""
    params: tuple[Any, ...] | None = None
    elementwise: bool = False
    out: str = ""
    fresh: bool = False
    scalar: bool = False
    packed: bool = False
    besides: tuple[Any, ...] = ()


Choice: TypeAlias = Callable[[Node], Formula | None]
"""Whether something cheaper than the op's kernel does for a node."""

_NEW: Final = frozenset([np.where, np.concatenate, np.stack, np.take, np.dot, np.matmul])
"""Functions of NumPy, besides its ufuncs, that return new arrays. Kernels of ours that do so: `Op.fresh`."""

_NAMED: Final = (np.maximum, np.minimum)
"""Ufuncs whose third operand must be named, lest it be mistaken for another number. For the others it costs 15 ns."""


class Formulas:
    """Finds formulas, and remembers for each op what does not depend on the node."""

    def __init__(self, cheaper: Callable[[Op, Callable[..., Any]], Choice | None]) -> None:
        self._cheaper = cheaper
        self._known: dict[tuple[int, str], tuple[Formula, Choice | None]] = {}

    def of(self, node: Node, backend: str) -> Formula:
        """How to write `node` on a backend."""
        key = (id(node.op), backend)
        known = self._known.get(key)
        if known is None:
            kernel = node.op.kernel_on(backend)
            choice = self._cheaper(node.op, kernel) if backend == "numpy" else None
            formula = plain(kernel)
            if backend == "numpy" and node.op.fresh:
                formula = formula._replace(fresh=True)
            known = self._known[key] = (formula, choice)
        formula, choice = known
        return formula if choice is None else choice(node) or formula


def plain(kernel: Callable[..., Any]) -> Formula:
    """The call of a kernel."""
    if type(kernel) is functools.partial and not kernel.keywords:  # xp goes in as an argument: one call less
        return Formula(kernel.func, first=kernel.args)
    if isinstance(kernel, np.ufunc):
        elementwise = kernel.signature is None and kernel.nout == 1
        return Formula(kernel, elementwise=elementwise, out="out=" if kernel in _NAMED else "", fresh=True)
    return Formula(kernel, fresh=kernel in _NEW)
