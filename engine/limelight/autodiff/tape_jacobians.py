"""Jacobians from a tape: one vector-Jacobian product for each element of the target, all at once or a few at a time.

In reverse mode `ll.jacobian` asks a tape as well. Forward mode shares `unit_products` with what stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from limelight.autodiff import backward
from limelight.autodiff.unit_products import joined_sizes, size_of, unit_products
from limelight.core import nest, shapes
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, ShapeError, TapeError

Pull = Callable[[Any, Any], list[Any]]
"""From a target and its output gradient to the gradients of the sources, None where unconnected."""


class Jacobians:
    """What `GradientTape` can do besides gradients."""

    persistent: bool

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: str = "none",
        *,
        parallel_iterations: int | None = None,
        vectorized: bool = True,
    ) -> Any:
        """The Jacobian: the derivative of every element of `target` by every element of the sources.

        Row by row it is what `gradient` gives for one element (of complex tensors, by its convention). All rows are
        pulled back at once, by `ll.vectorize`, in blocks, or one by one. Sparse gradients are made dense.

        Args:
            target: a tensor, or a nest of them.
            sources: tensors or variables, or a nest of them.
            unconnected_gradients: what a source without influence gets: "none" (None, the default) or "zero" (zeros).
            parallel_iterations: how many elements of the target are pulled back at a time, which bounds memory and
                changes no value; by default all.
            vectorized: whether rows are pulled back together; False asks once for each element, and needs a persistent
                tape.

        Returns:
            Tensors of shape (*target.shape, *source.shape), in the structure of `sources`, and around that the
            structure of `target` where it is a nest.

        Raises:
            TapeError: the tape has answered already, was never entered or elsewhere (see `gradient`), or is to answer
                row by row and is not persistent.
            ArgumentError: a target, source or option is not as above.
            ShapeError: a trace that does not know the target's size is to pull back row by row or in blocks.

        >>> import limelight as ll
        >>> x = ll.constant([1.0, 2.0])
        >>> with ll.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.jacobian(y, x).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        if not vectorized and not self.persistent:
            raise TapeError(
                "the sequential strategy asks the tape once for each element of the target: make it with "
                "ll.GradientTape(persistent=True), or leave out vectorized=False"
            )
        chunk = _chunk(parallel_iterations)
        targets, structure = nest.flatten(target)
        leaves, source_structure = backward.flatten_sources(sources)

        def each(pull: Pull) -> list[Any]:
            return [_jacobian(pull, y, leaves, unconnected_gradients, chunk, vectorized) for y in targets]

        rows = self._with_pull(targets, leaves, unconnected_gradients, each)
        return nest.unflatten(structure, [nest.unflatten(source_structure, row) for row in rows])

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: str = "none",
        *,
        parallel_iterations: int | None = None,
        vectorized: bool = True,
    ) -> Any:
        """The Jacobian of each example, where row `i` of `target` depends on row `i` of `source` alone.

        Costs as many vector-Jacobian products as one example's target has elements.

        Args:
            target: a tensor (batch, *out).
            source: a tensor or variable (batch, *in).
            unconnected_gradients: what a source without influence gets: "none" (None, the default) or "zero" (zeros).
            parallel_iterations: how many elements of an example's target are pulled back at a time; by default all.
            vectorized: whether rows are pulled back together; False needs a persistent tape.

        Returns:
            A tensor (batch, *out, *in).

        Raises:
            ShapeError: `target` or `source` has fewer than two axes, or their first axes differ in size.
            TapeError: the tape has answered already, was never entered or elsewhere (see `gradient`), or is to answer
                row by row and is not persistent.
            ArgumentError: a target, source or option is not as above.

        >>> import limelight as ll
        >>> x = ll.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with ll.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        if not vectorized and not self.persistent:
            raise TapeError(
                "the sequential strategy asks the tape once for each element of an example's target: make it with "
                "ll.GradientTape(persistent=True), or leave out vectorized=False"
            )
        chunk = _chunk(parallel_iterations)
        backward.check("target", [target])
        backward.check("source", [source])
        _check_batch(target, source)

        def one(pull: Pull) -> Any:
            return _batch_jacobian(pull, target, source, unconnected_gradients, chunk, vectorized)

        return self._with_pull([target], [source], unconnected_gradients, one)

    def _with_pull(self, targets: list[Any], sources: list[Any], unconnected: str, use: Callable[[Pull], Any]) -> Any:
        """Calls `use` with a function that pulls back, any number of times."""
        raise NotImplementedError


def _chunk(chunk: int | None) -> int | None:
    if chunk is not None and (isinstance(chunk, bool) or not hasattr(chunk, "__index__") or chunk < 1):
        raise ArgumentError(f"parallel_iterations must be a number from 1 on, or None, got {chunk!r}")
    return chunk


def _check_batch(target: Any, source: Any) -> None:
    both = f"target {shapes.show(target.shape)} and source {shapes.show(source.shape)}"
    if len(target.shape) < 2 or len(source.shape) < 2:
        raise ShapeError(f"batch_jacobian: {both} need two axes at least, examples first; else use jacobian")
    m, n = target.shape[0], source.shape[0]
    if None not in (m, n) and m != n:
        raise ShapeError(f"batch_jacobian: {both} must have as many examples, {m} and {n} are along their first axes")


def _jacobian(pull: Pull, y: Any, sources: Sequence[Any], unconnected: str, chunk: int | None, at_once: bool) -> Any:
    """For each source the Jacobian of one target."""
    if not hasattr(y, "sizes"):
        return [None] * len(sources)
    sizes = y.sizes()
    if 0 in y.shape:
        rows = pull(y, backward.zeros(sizes, y.dtype))  # there are none, but to be connected or not
    else:
        rows = _rows(lambda g: pull(y, g.reshape(sizes)), y, size_of(sizes), chunk, at_once)
    return [
        _delivered(j, joined_sizes(sizes, _sizes_of(x)), x, unconnected) for j, x in zip(rows, sources, strict=True)
    ]


def _batch_jacobian(pull: Pull, y: Any, x: Any, unconnected: str, chunk: int | None, at_once: bool) -> Any:
    sizes, own = y.sizes(), x.sizes()
    shape = joined_sizes(sizes, own[1:])
    if 0 in (*y.shape, *x.shape):
        (gradient,) = pull(y, backward.zeros(sizes, y.dtype))
        return _delivered(None if gradient is None else backward.zeros(shape, x.dtype), shape, x, unconnected)

    def of_all_examples(g: Tensor) -> list[Any]:
        return pull(y, g.reshape(sizes[1:]).broadcast_to(sizes))

    (result,) = _rows(of_all_examples, y, size_of(sizes[1:]), chunk, at_once)
    if result is not None:
        result = result.transpose((1, 0, *range(2, result.ndim)))
    return _delivered(result, shape, x, unconnected)


def _delivered(result: Any, shape: Any, x: Any, unconnected: str) -> Any:
    """A Jacobian as it is handed out; one of no rows may come in any shape."""
    if result is None and not (unconnected == "zero" and hasattr(x, "sizes")):
        return None
    if result is None or (isinstance(shape, tuple) and 0 in shape):
        return backward.deliver(backward.zeros(shape, x.dtype), x, unconnected)
    return backward.deliver(result, x, unconnected).reshape(shape)


def _rows(pull: Callable[[Tensor], list[Any]], y: Any, size: Any, chunk: int | None, at_once: bool) -> list[Any]:
    """The gradients for each unit vector of length `size`, an int or a scalar tensor, stacked."""

    def dense(g: Tensor) -> list[Any]:
        return [x.dense() if isinstance(x, SparseGradient) else x for x in pull(g)]

    if not isinstance(size, int) and (chunk is not None or not at_once):
        raise ShapeError("jacobian: rows can only be counted out where the size of the target is known while tracing")
    return unit_products(dense, y, size, chunk, at_once)


def _sizes_of(x: Any) -> Any:
    return x.sizes() if hasattr(x, "sizes") else ()
