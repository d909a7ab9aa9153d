"""Instructions of a table under construction: what NumPy does for a function of it, written down instead of done.

Each method appends the calls of loops that NumPy would make, in its order, and returns the view that holds the result.
What would give other numbers than NumPy's own function is refused (`NotLowered`), with the reason.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from limelight.executors.loops import layout, native_loops
from limelight.executors.loops.layout import Buffer, GivenBuffer, Sizes, View

_LARGEST_TYPE: Final = 16  # of NumPy's numbers: those above are objects, texts, dates, and types of other libraries
_HALF: Final = 23
_PRODUCTS: Final = frozenset("fd")
MOST_AXES: Final = 16
_FEWEST_PAIRED: Final = 8
"""Numbers from which on NumPy's sum along an axis adds in pairs."""
_LONG_ROW: Final = 64
_MANY_PRODUCTS: Final = 1 << 19
"""Products of a column and a row, from which on the loop of `multiply` is quicker than BLAS, as in main memory."""
_SHORT: Final = 16
"""Elements for which the call of a loop takes longer than its work."""
_EXACT: Final = frozenset(
    [
        *[np.add, np.subtract, np.multiply, np.divide, np.negative, np.square],
        *[np.logical_and, np.logical_or, np.logical_not],
        *[np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal],
    ]
)
"""Functions whose result is the one nearest to the true one, or a truth: the same by any loop, with or without SIMD."""
_BYTE: Final = np.dtype(np.bool_)


class NotLowered(Exception):  # noqa: N818  # no error: the plan's kernel runs the node instead
    """Why a node is not in a table."""


@final
class Instruction(NamedTuple):
    """A call of a loop, or as many as `axes` has positions: see the README of limelight-native.

    Args:
        loop: the native loop.
        operands: where they are, results last.
        dims: the count, then core dimensions.
        steps: in bytes, for each operand, then for core dimensions.
        axes: for each outer axis its length, and a stride for each operand, all in one tuple.
    """

    loop: Any
    operands: tuple[View, ...]
    dims: Sizes
    steps: Sizes
    axes: Sizes

    @property
    def written(self) -> tuple[View, ...]:
        """What it writes."""
        return self.operands[-1:]


@final
class Guard(NamedTuple):
    """The table is left, and the plan runs its nodes, if the condition, a boolean, is false."""

    condition: View

    @property
    def operands(self) -> tuple[View, ...]:
        return (self.condition,)

    @property
    def written(self) -> tuple[View, ...]:
        return ()


@final
class Choice(NamedTuple):
    """One of two lists of instructions.

    Args:
        condition: a boolean.
        branches: the instructions if it is true, and if not.
        written: what both write.
    """

    condition: View
    branches: tuple[list[AnyInstruction], list[AnyInstruction]]
    written: tuple[View, ...]

    @property
    def operands(self) -> tuple[View, ...]:
        inner = [x for branch in self.branches for one in branch for x in one.operands]
        return (self.condition, *inner, *self.written)


@final
class Repetition(NamedTuple):
    """Instructions that run again and again.

    Args:
        steps: how often, or at most.
        check: instructions before each step.
        holds: a boolean that these write: the step is not made where it is false. None without.
        body: the instructions of a step.
        rows: buffers that are another row in each step.
        written: the carried values, and the stacks of rows.
    """

    steps: int
    check: list[AnyInstruction]
    holds: View | None
    body: list[AnyInstruction]
    rows: tuple[Buffer, ...]
    written: tuple[View, ...]

    @property
    def operands(self) -> tuple[View, ...]:
        inner = [x for one in (*self.check, *self.body) for x in one.operands]
        holds = () if self.holds is None else (self.holds,)
        return (*inner, *holds, *self.whole_arrays(), *self.written)

    def whole_arrays(self) -> tuple[View, ...]:
        """What the rows are rows of."""
        return tuple([View(x.row.buffer, x.row.offset, (), (), _BYTE) for x in self.rows if x.row is not None])


AnyInstruction: TypeAlias = Instruction | Guard | Choice | Repetition


class Instructions:
    """The instructions so far, in order."""

    def __init__(self) -> None:
        self.list: list[AnyInstruction] = []
        self.looked_at = 0  # constants whose numbers kernels have asked for
        self.inner_nodes = 0  # of functions that nodes call: see `lowering`

    @contextmanager
    def nested(self) -> Iterator[list[AnyInstruction]]:
        """Instructions of the block are put into a list of their own."""
        outer, self.list = self.list, []
        try:
            yield self.list
        finally:
            self.list = outer

    def constant(self, array: Any) -> View:
        """A view of an array that does not change."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        check_dtype(array.dtype)
        if not array.size:
            raise NotLowered("it has no elements")
        return View(GivenBuffer(array.nbytes, array=array), 0, array.shape, array.strides, array.dtype)

    def elementwise(
        self, ufunc: np.ufunc, operands: Sequence[View], loop_dtypes: tuple[np.dtype[Any], ...], out: View | None
    ) -> View:
        """A ufunc, broadcasting. `loop_dtypes` are those of its loop, the result's last; operands have these."""
        loop = native_loops.ufunc_loop(ufunc, bytes([dtype.num for dtype in loop_dtypes]))
        if loop is None:
            raise NotLowered(f"NumPy has no loop of `{ufunc.__name__}` for it")
        exact = ufunc in _EXACT and all(dtype.kind != "c" for dtype in loop_dtypes)
        return self._over_elements(loop, operands, loop_dtypes[-1], out, exact)

    def where(self, condition: View, x: View, y: View) -> View:
        """`numpy.where` of operands of one dtype."""
        loop = native_loops.where_loop(x.dtype.num)
        if loop is None or condition.dtype != np.bool_ or x.dtype != y.dtype:
            raise NotLowered("`where` would have to convert")
        return self._over_elements(loop, (condition, x, y), x.dtype, None)

    def astype(self, x: View, dtype: np.dtype[Any]) -> View:
        """A copy in another dtype, in the order of memory that x has."""
        x = _low_bytes(x, dtype)
        out = None
        if any(n > 1 and not stride for n, stride in zip(x.shape, x.strides, strict=True)):
            out = new_array(x.shape, dtype, layout.copy_order(x.strides))
        return self._over_elements(_copy_loop(x.dtype, dtype), (x,), dtype, out)

    def copied(self, x: View) -> View:
        """A copy in C order."""
        out = new_array(x.shape, x.dtype)
        self.copy(x, out)
        return out

    def copy(self, x: View, to: View) -> None:
        """Writes the elements of `x` to a view, whose shape they are broadcast to."""
        x = _low_bytes(x, to.dtype)
        there = x._replace(shape=to.shape, strides=layout.broadcast_strides(x.shape, x.strides, to.shape))
        self._over_elements(_copy_loop(x.dtype, to.dtype), (there,), to.dtype, to)

    def _over_elements(
        self, loop: Any, operands: Sequence[View], dtype: np.dtype[Any], out: View | None, exact: bool = True
    ) -> View:
        if out is not None:
            _check_out(out, operands, layout.broadcast_shape(*[x.shape for x in operands]), dtype)
        operand_layouts = tuple([(x.shape, x.strides, x.dtype.itemsize) for x in operands])
        walk = _walk(operand_layouts, None if out is None else out.strides, dtype.itemsize, exact)
        if out is None:
            check_dtype(dtype)
            out = View(Buffer(walk.nbytes), 0, walk.shape, walk.strides, dtype)
        self.list.append(Instruction(loop, (*operands, out), walk.dims, walk.steps, walk.axes))
        return out

    def reduction(self, ufunc: np.ufunc, x: View, axis: Any, keepdims: bool, initial: Any) -> View:
        """`ufunc.reduce` of a contiguous array over axes that lie together, in its own dtype.

        It begins with `initial`, or where that is None with the first elements.
        """
        rank = len(x.shape)
        over = set(range(rank)) if axis is None else {i % rank for i in (axis if isinstance(axis, tuple) else (axis,))}
        shape = tuple([1 if i in over else n for i, n in enumerate(x.shape) if keepdims or i not in over])
        sizes = _groups(x, over)
        loop = native_loops.ufunc_loop(ufunc, bytes([x.dtype.num] * 3))
        if loop is None or sizes is None:
            raise NotLowered("NumPy would add in another order" if loop else f"no loop of `{ufunc.__name__}` for it")
        out = new_array(shape, x.dtype)
        first, n, last = sizes
        start = 0
        if initial is None:
            start = 1
            here = View(x.buffer, x.offset, (first, last), (n * last * x.dtype.itemsize, x.dtype.itemsize), x.dtype)
            self.copy(
                here, View(out.buffer, 0, (first, last), layout.contiguous((first, last), x.dtype.itemsize), x.dtype)
            )
        else:
            self.copy(self.constant(np.array(initial, x.dtype)), out)
        if n > start:
            self._accumulate(loop, x, out, (first, n, last), start)
        return out

    def _accumulate(self, loop: Any, x: View, out: View, sizes: tuple[int, int, int], start: int) -> None:
        """`out = loop(out, x)` for each element along the middle axis from `start` on, in NumPy's order.

        Which sum is first taken further makes no difference to any: the longest axis is the loop's own.
        """
        first, n, last = sizes
        item = x.dtype.itemsize
        exact = loop is native_loops.ufunc_loop(np.add, bytes([x.dtype.num] * 3)) and x.dtype.kind != "c"
        x = x._replace(offset=x.offset + start * last * item)
        if last == 1 and exact and n - start < _FEWEST_PAIRED and first > n:  # no pairs: see below
            dims, steps = (first,), (item, n * item, item)
            axes: Sizes = (n - start, 0, item, 0)
        elif last == 1:  # the loop sees that its result stands still, and adds in pairs
            dims, steps = (n - start,), (0, item, 0)
            axes = (first, item, n * item, item) if first > 1 else ()
        else:
            dims, steps = (last,), (item, item, item)
            axes = (first, last * item, n * last * item, last * item) if first > 1 else ()
            axes += (n - start, 0, last * item, 0)
            if exact and last < first:
                dims, steps = (first,), (last * item, n * last * item, last * item)
                axes = (n - start, 0, last * item, 0, last, item, item, item)
        self.list.append(Instruction(loop, (out, x, out), dims, steps, axes))

    def dot(self, x: View, y: View) -> View:
        """`x.dot(y)` of vectors and matrices, by the loop of `matmul`: both call the same functions of BLAS."""
        _check_product(x, y)
        left = _as_matrix(x, row=True) or self._matrix_copied(x)
        right = _as_matrix(y, row=False) or self._matrix_copied(y)
        (m, n), (_, p) = left.shape, right.shape
        out = new_array(x.shape[:-1] + y.shape[1:], x.dtype)
        item = x.dtype.itemsize
        if n == 1 and p >= _LONG_ROW and m * p >= _MANY_PRODUCTS:
            self._outer(left, right, out)
            return out
        steps = (0, 0, 0, *left.strides, *right.strides, p * item, item)
        self.list.append(Instruction(_matmul_loop(x.dtype), (left, right, out), (1, m, n, p), steps, ()))
        return out

    def _outer(self, column: View, row: View, out: View) -> None:
        """The product of a column and a row, to the bit of BLAS, which adds it to 0: no zero keeps its sign.

        BLAS goes over the result twice, in 2.5 times the time where that lies in main memory.
        """
        (m, p), item = out.shape, out.dtype.itemsize
        multiply = native_loops.ufunc_loop(np.multiply, bytes([out.dtype.num] * 3))
        along, down = (0, row.strides[1], item), (column.strides[0], 0, p * item)
        self.list.append(Instruction(multiply, (column, row, out), (p,), along, (m, *down)))
        self.elementwise(np.add, [out, self.constant(np.zeros((), out.dtype))], (out.dtype,) * 3, out)

    def _matrix_copied(self, x: View) -> View:
        """The copy of a matrix that `dot` gives to BLAS (`cblas_matrixproduct` in NumPy's cblasfuncs.c)."""
        if min(x.shape) == 1 or len(x.shape) == 1:
            raise NotLowered("BLAS would be given a vector that is not in C order")
        return self.copied(x)

    def matmul(self, x: View, y: View) -> View:
        """`numpy.matmul` of stacks of matrices."""
        _check_product(x, y)
        if min(len(x.shape), len(y.shape)) < 2:
            raise NotLowered("a vector meets a stack of matrices")
        stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        (m, n), p = x.shape[-2:], y.shape[-1]
        xs, ys = (_stack_strides(view, stack) for view in (x, y))
        if layout.iteration_order([xs, ys], len(stack)) != tuple(range(len(stack))):
            raise NotLowered("its stack is not in C order")
        out = new_array((*stack, m, p), x.dtype)
        sizes, rows = layout.collapsed(stack, tuple(range(len(stack))), [xs, ys, out.strides[:-2]], x.dtype.itemsize)
        steps = (*rows[-1], *x.strides[-2:], *y.strides[-2:], *out.strides[-2:])
        axes = [word for size, row in zip(sizes[:-1], rows[:-1], strict=True) for word in (size, *row)]
        loop = _matmul_loop(x.dtype)
        self.list.append(Instruction(loop, (x, y, out), (sizes[-1], m, n, p), steps, tuple(axes)))
        return out

    def concatenated(self, views: Sequence[View], axis: int) -> View:
        """`numpy.concatenate` of arrays of one dtype."""
        if not all(x.dtype == views[0].dtype for x in views):
            raise NotLowered("its operands differ in dtype")
        rank = len(views[0].shape)
        plain = all(x.is_contiguous for x in views)
        order = None if plain else layout.joined_order([(x.shape, x.strides) for x in views])
        axis %= rank
        total = sum(x.shape[axis] for x in views)
        shape = tuple([total if i == axis else n for i, n in enumerate(views[0].shape)])
        out = new_array(shape, views[0].dtype, order)
        offset = 0
        for x in views:
            self.copy(x, View(out.buffer, offset, x.shape, out.strides, x.dtype))
            offset += x.shape[axis] * out.strides[axis]
        return out

    def guard(self, condition: View) -> None:
        """Ends the run here where the number is false: the plan then runs all nodes of the table."""
        self.list.append(Guard(condition))


class _Walk(NamedTuple):
    """How an elementwise loop goes through memory: the result's shape, strides and bytes; dims, steps and axes."""

    shape: Sizes
    strides: Sizes
    nbytes: int
    dims: Sizes
    steps: Sizes
    axes: Sizes


@functools.lru_cache(maxsize=4096)
def _walk(operands: tuple[tuple[Sizes, Sizes, int], ...], out: Sizes | None, itemsize: int, exact: bool) -> _Walk:
    """The walk over operands, each given by shape, strides and bytes of an element.

    Args:
        operands: the operands.
        out: the strides of the result, where it is there.
        itemsize: the bytes of its elements.
        exact: whether its numbers are the same by any loop.
    """
    shape = layout.broadcast_shape(*[own for own, _, _ in operands])
    if len(shape) > MOST_AXES:
        raise NotLowered("it has too many axes")
    strides = [steps if own == shape else layout.broadcast_strides(own, steps, shape) for own, steps, _ in operands]
    order = tuple(range(len(shape)))
    if not all(layout.is_contiguous(*one) for one in operands):
        if any(stride < 0 for own in strides for stride in own):
            raise NotLowered("an operand runs backwards")
        order = layout.iteration_order(strides, len(shape))
    if out is None:
        out = layout.strides_in_order(shape, order, itemsize)
    nbytes = itemsize * math.prod(shape)
    if not nbytes:
        raise NotLowered("it has no elements")
    sizes, steps = layout.collapsed(shape, order, [*strides, out], itemsize)
    if exact:
        _put_longest_last(sizes, steps)
    axes = [word for n, row in zip(sizes[:-1], steps[:-1], strict=True) for word in (n, *row)]
    return _Walk(shape, out, nbytes, (sizes[-1],), tuple(steps[-1]), tuple(axes))


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raises NotLowered for a dtype whose numbers are not NumPy's own, in this machine's byte order."""
    if (dtype.num > _LARGEST_TYPE and dtype.num != _HALF) or not dtype.isnative:
        raise NotLowered(f"its dtype is {dtype}")


def new_array(shape: Sizes, dtype: np.dtype[Any], order: Sizes | None = None) -> View:
    """A view of a new buffer, its axes in memory in C order or another one."""
    check_dtype(dtype)
    strides = (
        layout.contiguous(shape, dtype.itemsize)
        if order is None
        else layout.strides_in_order(shape, order, dtype.itemsize)
    )
    nbytes = dtype.itemsize * math.prod(shape)
    if not nbytes:
        raise NotLowered("it has no elements")
    return View(Buffer(nbytes), 0, shape, strides, dtype)


def _low_bytes(x: View, dtype: np.dtype[Any]) -> View:
    """Integers as shorter ones: their low bytes, which come first."""
    is_shorter = x.dtype.kind in "iu" and dtype.kind in "iu" and dtype.itemsize < x.dtype.itemsize
    return x._replace(dtype=dtype) if is_shorter and sys.byteorder == "little" else x


def _copy_loop(source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    loop = native_loops.copy_loop(source.num, target.num)
    if loop is None:
        raise NotLowered(f"there is no loop that casts {source} to {target}")
    return loop


def _put_longest_last(sizes: list[int], steps: list[list[int]]) -> None:
    """Has a loop run along the longest axis rather than along a short one."""
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    if sizes[-1] < _SHORT and sizes[longest] >= 2 * sizes[-1]:
        sizes.append(sizes.pop(longest))
        steps.append(steps.pop(longest))


def _check_out(out: View, operands: Sequence[View], shape: Sizes, dtype: np.dtype[Any]) -> None:
    """Refuses a result that NumPy would not write straight into the memory that it is given."""
    if out.shape != shape or out.dtype != dtype:
        raise NotLowered("its result is converted")
    for x in operands:
        if x.buffer is out.buffer and (x[1:] != out[1:] or dtype.kind == "c"):
            raise NotLowered("its result lies across an operand")


def _groups(x: View, over: set[int]) -> tuple[int, int, int] | None:
    """The sizes of a contiguous array as (kept, reduced, kept); None where it is not, or axes are not together."""
    if not x.is_contiguous:
        return None
    sizes: list[int] = []
    kinds: list[bool] = []
    for i, n in enumerate(x.shape):
        if n == 1:
            continue
        if kinds and kinds[-1] == (i in over):
            sizes[-1] *= n
        else:
            sizes.append(n)
            kinds.append(i in over)
    if True not in kinds:
        kinds, sizes = [*kinds, True], [*sizes, 1]
    if kinds.count(True) > 1:
        return None
    at = kinds.index(True)
    first, last = sizes[:at], sizes[at + 1 :]
    return (first[0] if first else 1, sizes[at], last[0] if last else 1)


def _check_product(x: View, y: View) -> None:
    if x.dtype != y.dtype or x.dtype.char not in _PRODUCTS:
        raise NotLowered(f"it is a product of {x.dtype} and {y.dtype}")


@functools.cache
def _matmul_loop(dtype: np.dtype[Any]) -> Any:
    return native_loops.ufunc_loop(np.matmul, bytes([dtype.num] * 3))


def _as_matrix(x: View, row: bool) -> View | None:
    """A vector as a row or column, a matrix as it is; None where its memory is not that of one or of its transpose."""
    item = x.dtype.itemsize
    if len(x.shape) == 1:
        shape = (1, x.shape[0]) if row else (x.shape[0], 1)
        return x._replace(shape=shape, strides=layout.contiguous(shape, item)) if x.is_contiguous else None
    if len(x.shape) != 2:
        raise NotLowered("`dot` of more than two axes")
    m, n = x.shape
    if x.is_contiguous:
        return x._replace(strides=layout.contiguous(x.shape, item))
    if layout.is_contiguous((n, m), x.strides[::-1], item):
        return x._replace(strides=(item, m * item))
    return None


def _stack_strides(x: View, stack: Sizes) -> Sizes:
    return layout.broadcast_strides(x.shape[:-2], x.strides[:-2], stack)
