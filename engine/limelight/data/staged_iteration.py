"""Iterators in graphs: taking an element, asking whether there is one, and beginning a pass are ops with an effect.

They stand in one chain with all input and output, so they happen in the order of the program. A graph refers to an
iterator weakly, as it does to variables; a pass that a staged `for` begins is the graph's own, one for each thread.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

from limelight.core import dispatch, dtypes, nest
from limelight.core.nest import Structure
from limelight.core.op import Op, defop
from limelight.core.spec import TensorSpec, known
from limelight.data.element import Element, is_text
from limelight.data.stage import End
from limelight.errors import ArgumentError, DeadVariableError, ShapeError, mark_user_error

_DATA: Final = "it is data"


class Source:
    """An iterator as the parameter of a node."""

    __limelight_leaf__ = True

    def __init__(self, iterator: Any) -> None:
        self._iterator = weakref.ref(iterator)
        self._words = repr(iterator)

    @property
    def iterator(self) -> Any:
        """The iterator. Raises DeadVariableError once it has been deleted."""
        iterator = self._iterator()
        if iterator is None:
            raise DeadVariableError(
                f"{self._words[1:-1]} is used by a graph, but has been deleted; keep a reference to it as long as the "
                "function is called"
            )
        return iterator

    def specs(self) -> tuple[Structure, tuple[TensorSpec | None, ...]]:
        """The types of the elements. Raises StopIteration where there is none left."""
        specs: tuple[Structure, tuple[TensorSpec | None, ...]] = self.iterator.specs()
        return specs

    def __repr__(self) -> str:
        return self._words


class Pass(Source):
    """The pass over a dataset that a `for` of a graph is in; another one in each thread.

    Args:
        begin: makes the iterator of a new pass.
        look: makes one that is no pass: for the types of elements, while a graph is written.
        words: what messages call it.
    """

    def __init__(self, begin: Callable[[], Any], look: Callable[[], Any], words: str) -> None:
        self._begin = begin
        self._look = look
        self._words = words
        self._here = threading.local()
        self._specs: tuple[Structure, tuple[TensorSpec | None, ...]] | None = None

    def specs(self) -> tuple[Structure, tuple[TensorSpec | None, ...]]:
        """The types of the elements; asking begins no pass, since one that is shuffled would be another one then."""
        if self._specs is None:
            self._specs = self._look().specs()
        return self._specs

    def begin(self) -> None:
        """Starts a new pass."""
        self._here.iterator = self._begin()

    @property
    def iterator(self) -> Any:
        if not hasattr(self._here, "iterator"):  # a graph whose beginning has run in another thread
            self.begin()
        return self._here.iterator


class Taken:
    """What a `next_element` node gives: of which source, and elements of which types."""

    __limelight_leaf__ = True

    def __init__(self, source: Source, structure: Structure, specs: tuple[TensorSpec, ...]) -> None:
        self.source = source
        self.structure = structure
        self.specs = specs

    def checked(self, element: Element) -> list[Any]:
        """The leaves of an element, which must have these types."""
        if element.structure != self.structure:
            raise ShapeError(
                f"next: an element of structure {element.structure}, where the trace has {self.structure}: elements "
                "must be alike in staged code"
            )
        for i, (x, spec) in enumerate(zip(element.leaves, self.specs, strict=True)):
            if is_text(x) or not spec.accepts(known(x.shape, x.dtype)):
                given = "text" if is_text(x) else known(x.shape, x.dtype)
                raise ShapeError(
                    f"next: {element.path(i)} is {given}, where the trace has {spec}, as in the first element. Give "
                    "all elements one shape, or say what changes: dataset.with_spec(ll.TensorSpec((None, ...), dtype))"
                )
        return element.leaves

    def __repr__(self) -> str:
        return repr(self.source)


def next_element(source: Source) -> Any:
    """The next element of a source, in a trace."""
    try:
        structure, specs = source.specs()
    except StopIteration:  # which next(iterator, default) would take for the end of each run
        raise ArgumentError(
            f"next: {source} is at its end while the function is traced, so the types of its elements are not known: "
            "call the function before, or declare them by dataset.with_spec(...)"
        ) from None
    for i, spec in enumerate(specs):
        if spec is None:
            raise ArgumentError(
                f"next: {nest.paths(structure, 'element')[i]} is text, which no tensor of a graph holds; make numbers "
                "of it before, as in dataset.map(lambda text: table.lookup(text)) with an ll.lookup.HashTable"
            )
    known_specs = tuple([spec for spec in specs if spec is not None])
    leaves = dispatch.apply(next_op, (), (Taken(source, structure, known_specs),))
    return nest.unflatten(structure, list(leaves))


class Rounds:
    """The rounds of a staged `for` over a source: whether there is another, and what it goes over.

    `run_always` says that there is one at least.
    """

    def __init__(self, source: Source, run_always: bool = False) -> None:
        self._source = source
        self.run_always = run_always

    def more(self) -> Any:
        return dispatch.apply(has_next_op, (), (self._source,))

    def next(self) -> Any:
        return next_element(self._source)


def begin_pass(source: Pass) -> Pass:
    """Writes that a pass begins, wherever the graph runs."""
    dispatch.apply(begin_op, (), (source,))
    return source


def _take(xp: Any, taken: Taken) -> tuple[Any, ...]:
    with dispatch.fresh_stack():
        element = taken.source.iterator.take()
    if isinstance(element, End):
        stop = StopIteration()
        mark_user_error(stop)
        raise stop
    return tuple([xp.asarray(x) for x in taken.checked(element)])


def _has_next(xp: Any, source: Source) -> Any:
    with dispatch.fresh_stack():
        return xp.asarray(not isinstance(source.iterator.peek(), End))


def _begin(xp: Any, source: Pass) -> tuple[()]:
    source.begin()
    return ()


next_op: Final[Op] = defop(
    "next_element",
    inputs="*xs",
    attrs="taken",
    infer=lambda *arguments: arguments[-1].specs,
    kernel=lambda xp, *arguments: _take(xp, arguments[-1]),
    multiple=True,
    effect="io",
    why_no_gradient=_DATA,
    batching="loop",
)


def _source_op(name: str, kernel: Callable[[Any, Any], Any], specs: Any) -> Op:
    """An op over a source, in the chain of all input and output."""
    return defop(
        name,
        inputs="*xs",
        attrs="source",
        infer=lambda *arguments: specs,
        kernel=lambda xp, *arguments: kernel(xp, arguments[-1]),
        multiple=isinstance(specs, tuple),
        effect="io",
        why_no_gradient=_DATA,
        batching="loop",
    )


has_next_op: Final[Op] = _source_op("has_next_element", _has_next, known((), dtypes.bool_))
begin_op: Final[Op] = _source_op("begin_pass", _begin, ())
