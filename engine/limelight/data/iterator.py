"""Iterators over datasets: they know where they are, and can be set there again.

An error, an interrupt or a fork leaves an iterator where it was. All that says where it is is one tuple, replaced at
once; a cursor that did not come back from giving an element is dropped, and the next one made from the last position
that is known, of which there is one every so many elements.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from limelight.core import dispatch, nest
from limelight.core.nest import Structure
from limelight.core.spec import TensorSpec, known
from limelight.core.variable import lift, on_create
from limelight.data.element import Element, is_text, value_of
from limelight.data.epoch import Epoch
from limelight.data.fork_safe_locks import lock_of
from limelight.data.sources import Foreign
from limelight.data.stage import END, Cursor, End, Stage, State
from limelight.data.staged_iteration import Rounds, Source, next_element
from limelight.errors import ArgumentError
from limelight.explain.without_effects import put_back
from limelight.staging.trace_branch import tracing
from limelight.user_code import source_line

_EVERY: Final = 64
"""After so many elements the position is noted: what is raised then costs going through so many again at most."""
_FORMAT: Final = 1


def _has_foreign(stage: Stage) -> bool:
    return isinstance(stage, Foreign) or any(map(_has_foreign, stage.sources))


def refuse_in_trace(name: str) -> None:
    """Raises ArgumentError where a function is being traced."""
    if dispatch.active and tracing() is not None:
        raise ArgumentError(
            f"{name} in staged code would be done once, while tracing, and not where the graph takes "
            f"elements{source_line.here()}: write it outside, before the call or after it"
        )


class _Place(NamedTuple):
    """Where an iterator is: `taken` elements behind `base`, a position (None: the start).

    `cursor` is there, or one further where `ahead` is the next element, or END; without a cursor one is made.
    """

    base: State = None
    taken: int = 0
    cursor: Cursor | None = None
    ahead: Element | End | None = None


@put_back(last_set="_specs")
class Iterator:
    """An iterator over a dataset, made by `iter(dataset)`; `next(iterator)` gives an element, of tensors and texts.

    `get_state` says where it is, `set_state` goes there: the elements that follow are the same, bit for bit, in the
    same order, in another process too (as long as the functions of the dataset give the same for the same). So a
    checkpoint that holds it resumes in the middle of a pass. In a staged function `next` is an op: each run takes the
    next element, in the order of the program, and raises StopIteration at the end as Python does, whatever the run has
    done before. An error in a function of the dataset leaves the iterator before the element that it was for.

    Args:
        stage: what it goes over.
        key: what stages without a seed draw from.
        number: that of the pass.
        on_restore: told of the pass that `set_state` has gone to.

    >>> import limelight as ll
    >>> iterator = iter(ll.data.from_arrays([1.0, 2.0, 3.0]))
    >>> next(iterator).item()
    1.0
    >>> state = iterator.get_state()
    >>> [x.item() for x in iterator]
    [2.0, 3.0]
    >>> iterator.set_state(state)
    >>> next(iterator).item()
    2.0
    """

    __limelight_leaf__ = True

    def __init__(self, stage: Stage, key: int, number: int, on_restore: Any = None) -> None:
        self._stage = stage
        self._epoch = Epoch(key, (number,))
        self._on_restore = on_restore  # told the number of a pass that was restored
        self._lock = lock_of(self, "_lock")
        self._place = _Place()
        self._specs: tuple[Structure, tuple[TensorSpec | None, ...]] | None = None

    def __iter__(self) -> Any:
        if dispatch.active and tracing() is not None:
            raise ArgumentError(
                "a `for` over an iterator of a dataset has as many rounds as there are elements left, which a trace "
                "cannot know: stage with autograph=True, which makes the loop a part of the graph (over the iterator "
                "itself, without Python's enumerate and zip), or write the loop outside and next(iterator), or an "
                "argument, inside"
            )
        return self

    def __next__(self) -> Any:
        if dispatch.active and tracing() is not None:
            return next_element(Source(self))
        value = self._taken(value_of)
        if value is END:
            raise StopIteration
        return value

    def take(self) -> Element | End:
        """The next element as the pipeline has it; END after the last one."""
        element: Element | End = self._taken(lambda element: element)
        return element

    def _taken(self, convert: Callable[[Element], Any]) -> Any:
        """The next element, converted, after which the iterator is one further; END after the last one."""
        with self._lock:
            if self._place.ahead is None:
                self._read()
            place = self._place
            if isinstance(place.ahead, End):
                return END
            assert place.ahead is not None
            value = convert(place.ahead)
            self._place = _Place(place.base, place.taken + 1, place.cursor)
            return value

    def peek(self) -> Element | End:
        """The element that `take` would give, which stays."""
        with self._lock:
            if self._place.ahead is None:
                self._note_position()
                self._read()
            assert self._place.ahead is not None
            return self._place.ahead

    def _read(self) -> None:
        """Has the cursor give the next element."""
        if self._place.cursor is None or self._place.taken >= _EVERY:
            self._note_position()
        base, taken, cursor, _ = self._place
        assert cursor is not None
        self._place = _Place(base, taken)
        element: Element | End = _outside(cursor.next)
        self._place = _Place(base, taken, cursor, element)

    def _note_position(self) -> None:
        """Makes the position that is known that of now, and has a cursor there."""
        base, taken, cursor, ahead = self._place
        if isinstance(ahead, Element) and not taken:
            return
        if cursor is None or isinstance(ahead, Element):
            cursor, ahead = self._cursor_at(self._epoch, base, taken), None
        self._place = _Place(_outside(cursor.state), 0, cursor, ahead)

    def _cursor_at(self, epoch: Epoch, position: State, further: int) -> Cursor:
        def made() -> Cursor:
            cursor = self._stage.cursor(epoch)
            if position is not None:
                cursor.restore(position)
            cursor.skip(further)
            return cursor

        cursor: Cursor = _outside(made)
        return cursor

    def get_state(self) -> dict[str, Any]:
        """Where it is: plain Python (dictionaries, lists, numbers, strings, None), and NumPy arrays.

        >>> import json, limelight as ll
        >>> iterator = iter(ll.data.from_arrays([1.0, 2.0]).shuffle(seed=1))
        >>> iterator.get_state()["position"]
        0

        Raises ArgumentError in staged code, where it would be told while tracing, before any run has taken an element.
        """
        refuse_in_trace("get_state of an iterator")
        return self._state()

    def _state(self) -> dict[str, Any]:
        with self._lock:
            self._note_position()
            return {
                "format": _FORMAT,
                "pipeline": self._stage.signature(),
                "key": self._epoch.key,
                "epoch": self._epoch.numbers[0],
                "position": self._place.base,
            }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where an iterator over such a dataset was.

        Args:
            state: what `get_state` has returned, of this iterator or of one over a dataset with the same stages.

        Raises:
            ArgumentError: it is no such state, or that of another pipeline; or the code is staged, and would go there
                while it is traced.
        """
        refuse_in_trace("set_state of an iterator")
        self._go_to(state)

    def _go_to(self, state: dict[str, Any]) -> None:
        missing = {"format", "pipeline", "key", "epoch", "position"} - set(state or ())
        if missing:
            raise ArgumentError(
                f"set_state: needs what get_state has returned; there is no {sorted(missing)[0]!r} in it"
            )
        if state["format"] != _FORMAT:
            raise ArgumentError(f"set_state: format {state['format']} is not known to this version, {_FORMAT} is")
        if state["pipeline"] != self._stage.signature():
            raise ArgumentError(
                f"set_state: the position is one in {state['pipeline']}, this iterator goes over "
                f"{self._stage.signature()}; make the dataset as it was"
            )
        epoch = Epoch(int(state["key"]), (int(state["epoch"]),))
        with self._lock:
            try:
                cursor = self._cursor_at(epoch, state["position"], 0)
            except (KeyError, TypeError, IndexError, ValueError) as error:
                raise ArgumentError(f"set_state: no position in {self._stage}: {state['position']!r}") from error
            self._epoch, self._place = epoch, _Place(state["position"], 0, cursor)
        if self._on_restore is not None:
            self._on_restore(epoch)

    @property
    def element_spec(self) -> Any:
        """The types of the elements, as staged code sees them: a nest of `ll.TensorSpec`, with None for texts.

        They are those of the first element that was asked for, but that the first size of batches is unknown where the
        last one may be smaller; or those that `Dataset.with_spec` has declared. Raises StopIteration where there is no
        element left.

        >>> import limelight as ll
        >>> iter(ll.data.from_arrays([1.0, 2.0, 3.0]).batch(2)).element_spec
        TensorSpec((None,), float32)
        """
        structure, specs = self.specs()
        return nest.unflatten(structure, list(specs))

    def specs(self) -> tuple[Structure, tuple[TensorSpec | None, ...]]:
        """`element_spec` as its structure and its leaves."""
        if self._specs is None:
            self._specs = self._stage.declared or self._specs_of_next()
        return self._specs

    def _specs_of_next(self) -> tuple[Structure, tuple[TensorSpec | None, ...]]:
        element = self.peek()
        if isinstance(element, End):
            raise StopIteration
        leaves = [None if is_text(x) else x for x in element.leaves]
        vary = _varying({x.shape[0] for x in leaves if x is not None and x.ndim}, self._stage.ragged)
        return element.structure, tuple([None if x is None else _spec(x, vary) for x in leaves])

    def __limelight_snapshot__(self) -> Callable[[], None]:
        """What takes it back to where it is, for runs of a graph that are to have no effect."""
        state = self._state()

        def give_back() -> None:
            if self._place.taken or self._place.base is not state["position"]:
                self._go_to(state)

        return give_back

    def __limelight_rounds__(self) -> Any:
        """What autograph stages a `for` over it as; see `staged_iteration`."""
        return Rounds(Source(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Iterator:
        # An iterator of another library is where it is: it is copied as well, and all else is shared.
        stage = copy.deepcopy(self._stage, memo) if _has_foreign(self._stage) else self._stage
        clone = Iterator(stage, self._epoch.key, self._epoch.numbers[0])
        clone._go_to(self._state())
        return clone

    def __copy__(self) -> Iterator:
        return self.__deepcopy__({})

    def __reduce__(self) -> Any:
        return (_restored, (self._stage, self._state()))

    def __repr__(self) -> str:
        return f"<iterator over {self._stage}, pass {self._epoch.numbers[0]}>"


def _varying(sizes: set[int], full: frozenset[int]) -> frozenset[int]:
    """Which sizes of first axes vary between elements: those of full batches.

    Where there is none of these, as at a position that was restored, it is the last batch, which is smaller.
    """
    return full if not full or sizes & full else frozenset([n for n in sizes if n < max(full)])


def _spec(x: Any, vary: frozenset[int]) -> TensorSpec:
    return known((None, *x.shape[1:]) if x.ndim and x.shape[0] in vary else x.shape, x.dtype)


def _restored(stage: Stage, state: dict[str, Any]) -> Iterator:
    iterator = Iterator(stage, 0, 0)
    iterator._go_to(state)
    return iterator


def _outside(run: Any) -> Any:
    """`run()`, outside of every trace and tape: what prepares data belongs to no graph."""
    if not dispatch.active:
        return run()
    with dispatch.fresh_stack(), on_create.override(None), lift.override(None):
        return run()
