"""State that functions in a table have: variables by their values so far, and generators by numbers drawn beforehand.

A variable's value goes through branches and loops like a carried value. What a step of a loop draws is a row of what
was drawn before the table began, in program order: so a table draws nothing, and the stream is what it would be.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from limelight.core.index_expression import native
from limelight.core.spec import TensorSpec
from limelight.executors.loops.instructions import Instructions, NotLowered, check_dtype
from limelight.executors.loops.layout import Buffer, GivenBuffer, Sizes, View, contiguous, row_of
from limelight.executors.loops.traced_array import TracedArray
from limelight.graph.effects import effects_of
from limelight.graph.ir import Node
from limelight.ops.random._draws import moved_and_scaled
from limelight.ops.random.standard_draws import mask_of


@final
class Cell:
    """A variable; `now` is the value that it has at this place of the program."""

    __slots__ = ("now",)

    def __init__(self, now: TracedArray) -> None:
        self.now = now


@final
class Generator(NamedTuple):
    """A generator.

    Args:
        number: which one of the table's.
        draws: what is drawn before the table runs.
    """

    number: int
    draws: Draws


class Draw(NamedTuple):
    """A draw of each step.

    Args:
        input: the number of the tensor that it is a row of.
        generator: the number of the generator.
        kernel: called with the generator's payload and `arguments`.
        arguments: what else it takes.
        method: of NumPy's generator, which draws the same into a row, or into many at once; None where it is another.
        finish: makes of what `method` has drawn what the kernel returns, in all rows at once.
    """

    input: int
    generator: int
    kernel: Any
    arguments: tuple[Any, ...]
    method: str | None
    finish: Any


class Repeated(NamedTuple):
    """What a loop inside of a step draws."""

    steps: int
    draws: list[AnyDraw]


AnyDraw: TypeAlias = Draw | Repeated
_METHODS: Final = {
    "random_normal": "standard_normal",
    "random_uniform": "random",
    "random_exponential": "standard_exponential",
    "random_bernoulli": "random",
    "dropout_mask": "random",
}
"""What these draw first: numbers of float32 or float64, each from the next bits, whether by one call or by many."""


class Draws:
    """The draws of a table that makes up to `room` steps: `items` in program order, `tensors` for all steps."""

    def __init__(self, room: int) -> None:
        self.items: list[AnyDraw] = []
        self.tensors: list[View] = []
        self._room = room
        self._loops: list[tuple[int, list[AnyDraw], list[Buffer]] | None] = []

    @contextmanager
    def repeated(self, steps: int | None) -> Iterator[list[Buffer]]:
        """A loop, or where `steps` is None what is run as often as only the run knows.

        Its value is the list to which the rows are appended that move on with its steps.
        """
        items: list[AnyDraw] = [] if self._loops else self.items
        rows: list[Buffer] = []
        self._loops.append(None if steps is None else (steps, items, rows))
        try:
            yield rows
        finally:
            self._loops.pop()
        outer = self._loops[-1] if self._loops else None
        if items and steps is not None and outer is not None:
            outer[1].append(Repeated(steps, items))

    def drawn(self, node: Node, generator: int, operands: Sequence[View]) -> View:
        """The row for a node that draws. Raises NotLowered where its number of draws depends on what is computed."""
        if not hasattr(np.random.Philox(0).lock, "_is_owned"):
            raise NotLowered("it draws, and a generator of this NumPy cannot be held by one thread")
        loops = [loop for loop in self._loops if loop is not None]
        if len(loops) < len(self._loops):
            raise NotLowered("it draws in a branch, or in a loop of unknown length")
        spec = node.outputs[0].spec
        assert isinstance(spec, TensorSpec)
        known: Any = spec.shape
        draw, dtype = _draw_of(node, operands, known, spec.dtype)
        check_dtype(dtype)
        view = new_input((*[steps for steps, _, _ in loops], *known), dtype)
        loops[-1][1].append(draw._replace(input=len(self.tensors), generator=generator))
        self.tensors.append(view)
        for _, _, rows in loops:
            view = row_of(view, False)
            rows.append(view.buffer)
        return view

    def make(self, generators: Sequence[Any], steps: int) -> list[Any]:
        """Draws what so many steps do; the tensors, each of the full size, are anything behind that."""
        arrays: list[Any] = [np.empty(x.shape, x.dtype) for x in self.tensors]
        if not arrays or not steps:
            return arrays
        drawn = [x[:steps] for x in arrays]
        draws = [item for item in self.items if isinstance(item, Draw)]
        if len(draws) == len(self.items):
            _make_flat(draws, generators, drawn)
        else:
            for step in range(steps):
                _draw(self.items, generators, [x[step, ...] for x in drawn])
        return arrays


def _make_flat(draws: Sequence[Draw], generators: Sequence[Any], drawn: Sequence[Any]) -> None:
    """Makes draws, each once a step, into these tensors."""
    calls = [_into_row(draw, generators[draw.generator], drawn[draw.input]) for draw in draws]
    if len(draws) == 1 and draws[0].method is not None:
        calls[0](out=drawn[draws[0].input])
    else:
        rows = [iter(_with_rows(drawn[draw.input])) for draw in draws]
        for step in zip(*rows, strict=True):
            for call, row in zip(calls, step, strict=True):
                call(out=row)
    for draw in draws:
        if draw.method is not None:
            draw.finish(drawn[draw.input])


def _with_rows(drawn: Any) -> Any:
    return drawn.reshape(len(drawn), 1) if drawn.ndim == 1 else drawn


def _into_row(draw: Draw, generator: Any, drawn: Any) -> Any:
    """A function that draws into a row, `out`; rows of single numbers have an axis."""
    if draw.method is None:
        return functools.partial(_kernel_into, draw, generator)
    method = getattr(generator.generator, draw.method)
    return method if drawn.dtype == np.float64 else functools.partial(method, dtype=np.float32)


def _kernel_into(draw: Draw, generator: Any, out: Any) -> None:
    out[...] = draw.kernel(generator, *draw.arguments)


def _draw(items: Sequence[AnyDraw], generators: Sequence[Any], rows: Sequence[Any]) -> None:
    """Makes the draws of a step into its rows."""
    for item in items:
        if isinstance(item, Draw):
            rows[item.input][...] = item.kernel(generators[item.generator], *item.arguments)
            continue
        inputs = _inputs(item)
        for step in range(item.steps):
            _draw(item.draws, generators, [x[step, ...] if i in inputs else x for i, x in enumerate(rows)])


def _inputs(item: AnyDraw) -> set[int]:
    return {item.input} if isinstance(item, Draw) else {i for one in item.draws for i in _inputs(one)}


def _uniform(source: Any, shape: Sizes) -> Any:
    """What a bernoulli draw compares with its probabilities."""
    return source.generator.random(shape)


def _draw_of(node: Node, operands: Sequence[View], shape: Sizes, dtype: Any) -> tuple[Draw, Any]:
    """The draw of a node, and the dtype of its rows."""
    name, params, kernel = node.op.name, tuple(node.params), node.op.kernel_on("numpy")
    method = _METHODS.get(name) if dtype in (np.float32, np.float64) else None
    if name == "random_bernoulli":
        return Draw(0, 0, _uniform, (shape,), "random", _as_drawn), np.dtype(np.float64)
    if name == "dropout_mask":  # of the operand it asks for shape and dtype alone
        finish = functools.partial(_mask, rate=params[0]) if dtype == np.float32 else None
        like = np.broadcast_to(np.zeros((), dtype), shape)
        return Draw(0, 0, kernel, (like, *params), method if finish else None, finish), dtype
    if operands:
        if any(x.buffer.array is None for x in operands):
            raise NotLowered("it draws by parameters that are computed")
        return Draw(0, 0, kernel, (*map(_array, operands), *params), None, None), dtype
    finish = None if method is None else functools.partial(_placed, location=params[0], scale=params[1], dtype=dtype)
    return Draw(0, 0, kernel, params, method, finish), dtype


def _as_drawn(drawn: Any) -> None:
    pass


def _placed(drawn: Any, location: float, scale: float, dtype: Any) -> None:
    moved_and_scaled(drawn, location, scale, dtype)


def _mask(drawn: Any, rate: float) -> None:
    drawn[...] = mask_of(drawn, rate)


def _array(x: View) -> Any:
    """The numbers of a constant."""
    whole = x.buffer.array.reshape(-1).view(np.uint8)
    return np.ndarray(x.shape, x.dtype, whole.data, x.offset, x.strides)


def new_input(shape: Any, dtype: Any) -> View:
    """A view of an array in C order that a table takes."""
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return View(GivenBuffer(nbytes, value=shape), 0, shape, contiguous(shape, dtype.itemsize), dtype)


# Nodes


def changed_cells(node: Node, operands: Sequence[Any]) -> list[Cell]:
    """The variables among the operands that the functions of a node assign."""
    if not any(type(x) is Cell for x in operands):
        return []
    writes = effects_of(node).writes
    pairs = zip(node.inputs, operands, strict=True)
    return list(dict.fromkeys([x for value, x in pairs if value in writes and type(x) is Cell]))


@contextmanager
def repeated(operands: Sequence[Any], steps: int | None) -> Iterator[list[Buffer]]:
    """`Draws.repeated` for the generators among the operands of a loop or branch."""
    generator = next((x for x in operands if type(x) is Generator), None)
    if generator is None:
        yield []
        return
    with generator.draws.repeated(steps) as rows:
        yield rows


def with_effect(node: Node, operands: Sequence[Any], to: Instructions) -> View:
    """The result of a node of a called function that reads, assigns or draws.

    Raises:
        NotLowered: tables cannot do it.
    """
    state, *others = operands or (None,)
    name = node.op.name
    if type(state) is Generator and node.op.effect == "random" and len(node.outputs) == 1:
        if not isinstance(node.outputs[0].spec, TensorSpec) or None in node.outputs[0].spec.shape:
            raise NotLowered("it draws what is no array of known sizes")
        if 0 in node.outputs[0].spec.shape:
            raise NotLowered("it has no elements")
        drawn = state.draws.drawn(node, state.number, others)
        if name != "random_bernoulli":
            return drawn
        less: Any = np.less(TracedArray(drawn, to), TracedArray(others[0], to))
        return less.view  # type: ignore[no-any-return]  # a View
    if type(state) is not Cell:
        raise NotLowered("it has an effect")
    if name != "read_variable":
        before = state.now
        new = _assigned(node, before, [TracedArray(x, to) for x in others], to)
        if new.shape != before.shape or new.dtype != before.dtype:
            raise NotLowered("it changes its type")
        state.now = new
    return state.now.view


def _assigned(node: Node, old: Any, values: Sequence[Any], to: Instructions) -> Any:
    """What a variable has after an assignment."""
    name = node.op.name
    if name == "assign":
        return values[0]
    if name == "assign_add":
        return old + values[0]
    if name == "assign_sub":
        return old - values[0]
    if not old.view.is_contiguous:
        raise NotLowered("a part of it is assigned, and it is not in C order")
    new: Any = TracedArray(to.copied(old.view), to)
    if name == "assign_scatter":
        new[values[0]] = values[1]
    elif name == "assign_scatter_add":
        np.add.at(new, values[0], values[1])
    elif name in _PARTS:
        key = native(node.params[0])
        new[key] = values[0] if name == "assign_slice" else _PARTS[name](new[key], values[0])
    else:
        raise NotLowered("it has an effect")
    return new


_PARTS: Final[dict[str, Any]] = {"assign_slice": None, "assign_slice_add": np.add, "assign_slice_sub": np.subtract}
