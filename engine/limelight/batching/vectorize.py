"""`vectorize`: a function of one example, applied to many at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

import numpy as np

from limelight.batching.batched_tensor import batched, batched_resource
from limelight.batching.interpreter import Batcher
from limelight.batching.rule_table import front, repeated
from limelight.core import nest, shapes
from limelight.core.autograph_hook import maybe_converted
from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.spec import GENERATOR
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, ShapeError
from limelight.user_code.given_functions import call_user_function

P = ParamSpec("P")
R = TypeVar("R")
_NUMBERS: Final = (bool, int, float, complex)
_GETS: Final = "what the vectorized function is called with"


def vectorize(
    fn: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, *, chunk_size: int | None = None
) -> Vectorized[P, R]:
    """A vectorising map: applies `fn`, which is written for one example, to all examples at once, without a loop.

    Inside, tensors have the shape of one example. Ops go by batching rules; one without is run example by example, as
    the result's `looped` tells. From a generator that all share, each random op draws independent numbers for all
    examples at once, in their order: `normal((3,))` is a row of `normal((examples, 3))`. From a generator of its own,
    each example draws what it would draw alone. Other effects that depend on no example (a print, an assignment of a
    shared value) happen once. Works inside and around `ll.function`, tapes,
    accumulators and itself. Where examples decide differently, both branches of a `cond` run for all, and each takes
    its own: a branch may still raise for an example of the other one, and where it is infinite for one, a gradient
    taken outside of `vectorize` is NaN (one taken inside is not). Guard its operands, as with `ll.where`.

    Args:
        fn: a function of one example.
        in_axes: the axis of the arguments along which the examples lie: an int (0 by default), None for what all share,
            or a list with one of these, or a nest of them, for each argument. Tensors in keyword arguments lie along
            axis 0. A list of numbers is a nest of scalars, which have no axis: a batch is `ll.constant([1.0, 2.0])`.
            Strings, None and other objects that are no numbers are handed on. A list of generators, as
            `ll.random.split` gives it, is a batch with one for each example, unless its axis is None.
        out_axes: the same for the results; None for one that is the same for all examples.
        chunk_size: how many examples are taken at once, which bounds memory and changes no value; by default all.

    Returns:
        A function with the arguments of `fn`, whose results have an axis of examples more.

    Raises:
        ArgumentError: `fn` cannot be called, axes do not fit the arguments or results, there is no argument with
            examples, or a value that is different for each example is assigned to a variable.
        ShapeError: a tensor has no such axis, or the numbers of examples differ.
        SymbolicValueError: Python code asks for one example's value, as `if` and `float` do.

    >>> import limelight as ll
    >>> rows, v = ll.constant([[1.0, 2.0], [3.0, 4.0]]), ll.constant([1.0, 10.0])
    >>> ll.vectorize(lambda row, v: ll.sum(row * v), in_axes=(0, None))(rows, v).tolist()
    [21.0, 43.0]
    """
    return Vectorized(fn, in_axes, out_axes, chunk_size)


class Vectorized(Generic[P, R]):
    """What `vectorize` returns. `looped` counts the ops of the last call that were run example by example, by name."""

    __limelight_leaf__ = True

    def __init__(self, fn: Callable[P, R], in_axes: Any, out_axes: Any, chunk_size: int | None) -> None:
        if not callable(fn):
            raise ArgumentError(f"vectorize: needs a function, got {type(fn).__name__}")
        if chunk_size is not None and (not hasattr(chunk_size, "__index__") or chunk_size < 1):
            raise ArgumentError(f"vectorize: chunk_size must be a number from 1 on, or None, got {chunk_size!r}")
        for axis in nest.leaves_of([in_axes, out_axes]):
            if axis is not None and not hasattr(axis, "__index__"):
                raise ArgumentError(f"vectorize: axes are ints, None, or nests of them, got {axis!r}")
        self._fn = fn
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._chunk_size = chunk_size
        self.looped: dict[str, int] = {}
        functools.update_wrapper(self, fn, updated=())
        del self.__dict__["__wrapped__"]  # defaults are no arguments with examples: who binds calls shall not give them

    def __call__(self, *given: P.args, **named: P.kwargs) -> R:
        return cast("R", self._call(given, named))

    def _call(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        args, kwargs = self._with_generator_batches(given, named)
        leaves, structure = nest.flatten((args, kwargs))
        axes = [*_axes_of(args, self._in_axes), *[0] * (len(leaves) - len(nest.leaves_of(args)))]
        paths = functools.partial(self._paths, structure)
        values = [_examples_first(x, axis, paths, i) for i, (x, axis) in enumerate(zip(leaves, axes, strict=True))]
        size = _common_size(values, paths)
        self.looped = {}
        if self._chunk_size is None or not isinstance(size, int) or size <= self._chunk_size:
            return self._run(leaves, values, structure, size)
        results = []
        for start in range(0, size, self._chunk_size):
            part = slice(start, min(start + self._chunk_size, size))
            cut = [None if v is None else v[part] for v in values]
            results.append(self._run(leaves, cut, structure, part.stop - start))
        return self._joined(results)

    def _paths(self, structure: nest.Structure) -> list[str]:
        """How messages call each leaf of the arguments: by the names of the parameters, where they are known."""
        try:
            parameters = inspect.signature(self._fn).parameters.values()
        except (TypeError, ValueError):  # some functions written in C do not say
            parameters = {}.values()
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        positional, named = structure.children
        paths = []
        for i, child in enumerate(positional.children):
            paths += nest.paths(child, names[i] if i < len(names) else f"argument {i}")
        for key, child in zip(named.keys, named.children, strict=True):
            paths += nest.paths(child, str(key))
        return paths

    def _with_generator_batches(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The arguments, each list of generators that has examples as one leaf."""
        axes = self._in_axes if isinstance(self._in_axes, (tuple, list)) else [self._in_axes] * len(args)
        whole = [hasattr(axis, "__index__") and _are_generators(x) for axis, x in zip(axes, args, strict=False)]
        if len(whole) < len(args) or not (any(whole) or any(map(_are_generators, kwargs.values()))):
            return args, kwargs  # the numbers of arguments and axes differ: an error of its own
        given = tuple([GeneratorBatch(x) if w else x for x, w in zip(args, whole, strict=True)])
        return given, {name: GeneratorBatch(x) if _are_generators(x) else x for name, x in kwargs.items()}

    def _run(self, leaves: Sequence[Any], values: Sequence[Any], structure: nest.Structure, size: Any) -> Any:
        name = f"vectorize({getattr(self._fn, '__name__', type(self._fn).__name__)})"
        with Batcher(size, name) as batcher:
            arguments = [x if v is None else _handle(v, batcher) for x, v in zip(leaves, values, strict=True)]
            args, kwargs = nest.unflatten(structure, arguments)
            results, shape = nest.flatten(
                call_user_function("vectorize", "fn", _GETS, maybe_converted(self._fn), *args, **kwargs)
            )
            results = [x.__as_tensor__() if hasattr(x, "__as_tensor__") else x for x in results]
        for op, times in batcher.looped.items():
            self.looped[op] = self.looped.get(op, 0) + times
        axes = _axes_like(self._out_axes, nest.unflatten(shape, results), "out_axes")
        return nest.unflatten(
            shape, [_result_along(x, axis, batcher, size) for x, axis in zip(results, axes, strict=True)]
        )

    def _joined(self, results: Sequence[Any]) -> Any:
        columns = [nest.leaves_of(result) for result in results]
        axes = _axes_like(self._out_axes, results[0], "out_axes")
        joined = [
            parts[0] if axis is None or not isinstance(parts[0], Tensor) else _concat(parts, axis)
            for axis, *parts in zip(axes, *columns, strict=True)
        ]
        return nest.unflatten(nest.flatten(results[0])[1], joined)

    def __repr__(self) -> str:
        return f"<vectorized {getattr(self._fn, '__name__', self._fn)!s}>"


class GeneratorBatch(list[Any]):
    """A generator for each example: a leaf among the arguments."""

    __limelight_leaf__ = True

    @property
    def shape(self) -> shapes.Shape:
        return (len(self),)

    def __getitem__(self, part: Any) -> Any:
        chosen = super().__getitem__(part)
        return GeneratorBatch(chosen) if isinstance(part, slice) else chosen


def _are_generators(x: Any) -> bool:
    return type(x) in (list, tuple) and bool(x) and all(getattr(g, "spec", None) is GENERATOR for g in x)


def _handle(value: Any, batcher: Batcher) -> Any:
    """The handle for one example of an argument."""
    return batched_resource(list(value), batcher) if isinstance(value, GeneratorBatch) else batched(value, batcher)


def _concat(parts: Sequence[Tensor], axis: int) -> Any:
    return apply(get("concat"), tuple(parts), (axis % parts[0].ndim,))


def _axes_of(args: tuple[Any, ...], in_axes: Any) -> list[Any]:
    """The axis of each leaf of the arguments."""
    if in_axes is None or hasattr(in_axes, "__index__"):
        return [in_axes] * len(nest.leaves_of(args))
    if not isinstance(in_axes, (tuple, list)) or len(in_axes) != len(args):
        raise ArgumentError(
            f"vectorize: in_axes={in_axes!r} for {len(args)} arguments; give an int, None, or a list with one for "
            "each positional argument"
        )
    return [axis for prefix, arg in zip(in_axes, args, strict=True) for axis in _axes_like(prefix, arg, "in_axes")]


def _axes_like(prefix: Any, tree: Any, name: str) -> list[Any]:
    """One axis for each leaf of `tree`, from a nest that may end above its leaves."""
    if prefix is None or hasattr(prefix, "__index__"):
        return [prefix] * len(nest.leaves_of(tree))
    axes, structure = nest.flatten(prefix)
    try:
        parts = nest.flatten_like(structure, tree, name)
    except ArgumentError:
        whole = f"the {'result' if name == 'out_axes' else 'argument'}, {nest.flatten(tree)[1]}"
        raise ArgumentError(
            f"vectorize: `{name}` must have the structure of {whole}, or end above its leaves with one axis (or None) "
            f"for a whole part, got {structure}"
        ) from None
    return [axis for axis, part in zip(axes, parts, strict=True) for _ in nest.leaves_of(part)]


def _examples_first(x: Any, axis: Any, paths: Callable[[], list[str]], i: int) -> Any:
    """All examples of an argument's leaf, along the first axis; None where all share it."""
    if isinstance(x, GeneratorBatch):
        if axis not in (0, -1):
            raise ShapeError(f"vectorize: `{paths()[i]}` is a list of generators and has no axis {axis}, only axis 0")
        return x
    if axis is None or not (isinstance(x, (*_NUMBERS, np.ndarray, np.generic, Tensor)) or hasattr(x, "__as_tensor__")):
        return None
    t = as_tensor(x)
    if not -t.ndim <= axis < t.ndim:
        raise ShapeError(
            f"vectorize: `{paths()[i]}` is {t.spec} and has no axis {axis} along which examples lie; give "
            "in_axes=None for what all examples share, (0, None) by place; by name write lambda x: f(x, s=2.0)"
        )
    return front(t, axis.__index__() % t.ndim)


def _common_size(of_leaves: Sequence[Any], paths: Callable[[], list[str]]) -> Any:
    """How many examples there are: an int, or a scalar tensor where no argument knows."""
    values = [v for v in of_leaves if v is not None]
    if not values:
        raise ArgumentError("vectorize: no argument has examples; in_axes must name an axis of one tensor at least")
    sizes = {x.shape[0] for x in values} - {None}
    if len(sizes) > 1:
        known = [(path, v) for path, v in zip(paths(), of_leaves, strict=True) if v is not None]
        told = ", ".join(f"{v.shape[0]} in `{path}`" for path, v in known if v.shape[0] is not None)
        raise ShapeError(f"vectorize: the arguments have different numbers of examples: {told}")
    return sizes.pop() if sizes else apply(get("shape_of"), (values[0],))[0]


def _result_along(x: Any, axis: Any, batcher: Batcher, size: Any) -> Any:
    value = batcher.value_of(x) if isinstance(x, Tensor) else None
    if axis is None:
        if value is not None:
            raise ArgumentError(
                f"vectorize: out_axes is None for a result that is different for each example, {value.spec}; give the "
                "axis along which the examples shall lie, such as 0"
            )
        return x
    if value is None:
        if isinstance(x, Resource) and batcher.owns(x):
            raise ArgumentError("vectorize: one example's generator is a result; the list that was given has them all")
        if not isinstance(x, (*_NUMBERS, np.ndarray, np.generic, Tensor)):
            return x
        value = repeated(as_tensor(x), size)
    return _with_examples_at(value, axis.__index__())


def _with_examples_at(x: Tensor, axis: int) -> Tensor:
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"vectorize: out_axes={axis} for a result of shape {shapes.show(x.shape)}, examples included")
    place = axis % x.ndim
    return x if place == 0 else x.transpose((*range(1, place + 1), 0, *range(place + 1, x.ndim)))
