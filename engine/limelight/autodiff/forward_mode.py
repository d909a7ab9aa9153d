"""Forward-mode differentiation: tangents travel with the values they belong to (Baydin et al. 2018, section 3.1).

An accumulator is an interpreter that knows tangents by uid, each with a weak reference to its tensor, so that a tangent
goes with its value. It runs an op and the computation of its tangent under the interpreters below itself: outer
accumulators and tapes see the tangents, inner ones do not, so perturbations cannot be confused.
"""

from __future__ import annotations

import functools
import weakref
from sys import _getframe
from typing import Any, Self

from limelight.autodiff.backward import deliver, uid_of
from limelight.autodiff.gradient_cuts import GradientCut, cut_of, departure
from limelight.autodiff.jvp_rules import push
from limelight.autodiff.tape import INEXACT
from limelight.autodiff.tape_scopes import Makers, check_known, makers_below
from limelight.core import dispatch, nest, shapes
from limelight.core.op import Op
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.tensor import Tensor, as_tensor, constant, new_uid
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, DTypeError, ShapeError, TapeError
from limelight.user_code import source_line


class Tangents(dict[int, tuple[Any, Any]]):
    """Tangents by uid, each with a weak reference to its tensor, with which it goes."""

    __slots__ = ("__weakref__",)

    def enter(self, x: Any, tangent: Any) -> None:
        if not x._uid:
            x._uid = new_uid()
        self[x._uid] = (tangent, weakref.ref(x, functools.partial(_forget, weakref.ref(self), x._uid)))


def _forget(tangents: weakref.ref[Tangents], uid: int, _: Any) -> None:
    known = tangents()
    if known is not None:
        known.pop(uid, None)


class ForwardAccumulator(dispatch.BlockInterpreter):
    """A forward-mode accumulator: Jacobian-vector products along with its block (Baydin et al. 2018, section 3.1).

    One pass costs two to three times the block itself, however many results there are, and keeps nothing for later: a
    tangent goes with its tensor. Accumulators nest, for higher orders, and each has its own tangents; tapes may be
    inside (forward-over-reverse, for products with a Hessian) or outside. `stop_recording()` of a tape pauses that tape
    alone, not an accumulator. Every read of a variable that is a primal has its tangent, also after an assignment.

    Args:
        primals: a tensor, a variable, or a nest of them: what the block computes from.
        tangents: their directions, in the same structure, shapes and dtypes; None for one of zeros.

    Raises:
        ArgumentError: a primal is given twice or is no tensor or variable, or the structures differ.
        DTypeError: a primal is not floating or complex, or a tangent has another dtype.
        ShapeError: a tangent has another shape than its primal.
        TapeError: the block is entered while the accumulator is active already.

    >>> import limelight as ll
    >>> x = ll.constant(3.0)
    >>> with ll.ForwardAccumulator(x, ll.constant(1.0)) as forward:
    ...     y = x * x
    >>> forward.jvp(y).item()
    6.0
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        leaves, structure = nest.flatten(primals)
        tangent_leaves = nest.flatten_like(structure, tangents, "tangents")
        self._tangents = Tangents()
        self._entered_eagerly = False
        self._makers: Makers | None = None  # the traces and batched calls in which it was entered
        self._left: GradientCut | None = None  # the latest place where something that moves left for Python or NumPy
        seen: set[int] = set()
        for x, t, path in zip(leaves, tangent_leaves, nest.paths(structure, "primals"), strict=True):
            _check_primal(x, path)
            if id(x) in seen:
                raise ArgumentError(
                    f"ForwardAccumulator: `{path}` is given twice; add up its tangents and give it once"
                )
            seen.add(id(x))
            if t is not None:
                self._tangents.enter(x, fitting(x, t, path))

    def __enter__(self) -> Self:
        if self.below is not None:
            dispatch.heal()
        if self.below is not None:
            raise TapeError("this accumulator is active already; use another one for another direction")
        dispatch.push(self, _getframe(1))
        makers = makers_below(self.below)
        self._makers, self._entered_eagerly = makers or self._makers, self._entered_eagerly or makers is None
        return self

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        known = self._tangents
        tangents = [known[uid][0] if (uid := uid_of(x)) in known else None for x in inputs]
        if op.vjp is None or tangents.count(None) == len(tangents):
            return self.below.process(op, inputs, attrs)
        with dispatch.stack_below(self):
            out, out_tangents = push(op, inputs, tangents, attrs)
        for y, t in zip(out if op.multiple else (out,), out_tangents, strict=True):
            if t is not None:
                known.enter(y, t)
        return out

    def watches(self, x: Any) -> bool:
        return x._uid in self._tangents or super().watches(x)

    def value_left(self, x: Any) -> None:
        if x._uid in self._tangents:
            self._left = cut_of(None, (), (x,), (), source_line.place(_getframe(1)))
        super().value_left(x)

    @property
    def departure(self) -> source_line.Source | None:
        """The latest line at which something that moves left for Python or NumPy, where tangents end."""
        return departure([self._left] if self._left else [])

    def jvp(self, target: Any, unconnected_gradients: str = "none") -> Any:
        """The tangents of `target`: products of its Jacobian with the tangents of the primals.

        Args:
            target: a tensor, a variable, or a nest of them, computed in the block.
            unconnected_gradients: what a target gets that depends on no primal, or was computed before or after the
                block: "none" (None, the default) or "zero" (zeros).

        Returns:
            The tangents, in the structure of `target`, each in its shape and dtype.

        Raises:
            ArgumentError: a target is no tensor or variable, or there is no such option.
            TapeError: the block was never entered, or outside of the trace or batched call that a target belongs to.

        >>> import limelight as ll
        >>> x = ll.constant([3.0, 4.0])
        >>> with ll.ForwardAccumulator(x, ll.constant([1.0, 0.0])) as forward:
        ...     y = [x * x, ll.ones(2)]
        >>> [t if t is None else t.tolist() for t in forward.jvp(y)]
        [[6.0, 0.0], None]
        """
        if unconnected_gradients not in ("none", "zero"):
            raise ArgumentError(f'unconnected_gradients must be "none" or "zero", got {unconnected_gradients!r}')
        leaves, structure = nest.flatten(target)
        return nest.unflatten(structure, [self._tangent_of(x, unconnected_gradients) for x in leaves])

    def _tangent_of(self, x: Any, unconnected: str) -> Any:
        if isinstance(x, SparseGradient):
            return self._sparse_tangent(x, unconnected)
        if not isinstance(x, (Tensor, Resource)):
            raise ArgumentError(f"jvp: a target must be a tensor or a variable, got {type(x).__name__}")
        entry = self._tangents.get(x._uid)
        if entry is not None:
            return entry[0]
        check_known(self, "jvp", self._tangents, (x,), ())
        return deliver(None, x, unconnected)

    def _sparse_tangent(self, x: SparseGradient, unconnected: str) -> Any:
        moving = [(i, t) for i, v in x.parts if (t := self._tangent_of(v, "none")) is not None]
        if moving:
            return SparseGradient(moving, x._sizes)
        return x * 0 if unconnected == "zero" else None

    def __repr__(self) -> str:
        state = "active" if self.below is not None else "idle"
        return f"<ForwardAccumulator: {state}, {len(self._tangents)} tangents>"


def _check_primal(x: Any, path: str) -> None:
    if not isinstance(x, (Tensor, Resource)):
        raise ArgumentError(
            f"ForwardAccumulator: `{path}` must be a tensor or a variable, got {type(x).__name__}; "
            "make it one with ll.constant(...)"
        )
    if x.dtype not in INEXACT:
        raise DTypeError(
            f"ForwardAccumulator: `{path}` is {x.dtype.name} and cannot move; write ll.astype(x, ll.float32)"
        )


def fitting(x: Any, tangent: Any, path: str = "primal") -> Any:
    """`tangent` as a tensor, which must have the dtype and shape of `x`; Python numbers take on the dtype."""
    t = as_tensor(tangent) if hasattr(tangent, "dtype") else constant(tangent, x.dtype)
    if t.dtype != x.dtype:
        raise DTypeError(f"a tangent of dtype {t.dtype.name} for `{path}` of {x.dtype.name}; write ll.astype(t, dtype)")
    if t.ndim != len(x.shape) or any(None not in (m, n) and m != n for m, n in zip(t.shape, x.shape, strict=True)):
        raise ShapeError(
            f"a tangent of shape {shapes.show(t.shape)} for `{path}` of shape {shapes.show(x.shape)}; "
            "it must have the primal's own shape"
        )
    return t
