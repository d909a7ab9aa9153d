"""Where elements come from: arrays, sequences, functions that make iterators, and iterators of other libraries."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.array_conversion import as_array
from limelight.core.nest import Structure, paths
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.data import foreign
from limelight.data.columns import stacked_items
from limelight.data.element import Element, element_of, structure_of, texts_in
from limelight.data.epoch import Epoch
from limelight.data.stage import END, Cursor, End, Stage, State, View
from limelight.errors import ArgumentError, DTypeError, ShapeError, SymbolicValueError, mark_user_error
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import source_line


class Arrays(Stage):
    """The rows of arrays of one length; the arrays are not copied, rows are when they are taken."""

    name = "from_arrays"

    def __init__(self, arrays: Any) -> None:
        super().__init__()
        leaves: list[Any] = []
        self.structure = structure_of(arrays, leaves)
        self.arrays = [_column(x, path) for x, path in zip(leaves, paths(self.structure, "arrays"), strict=True)]
        self.settings = f"{len(self.arrays)} array{'s' * (len(self.arrays) != 1)} of {self._length()}"
        self.identity = str(self._length())

    def _length(self) -> int:
        lengths = {path: len(x) for path, x in zip(paths(self.structure, "arrays"), self.arrays, strict=True)}
        if not lengths:
            raise ArgumentError("from_arrays: there is no array; give one, or a tuple or dictionary of some")
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{path} has {n}" for path, n in lengths.items())
            raise ShapeError(f"from_arrays: the first axes must have one size, but {shown}")
        return len(self.arrays[0])

    @property
    def size(self) -> int:
        return len(self.arrays[0])

    def view(self, epoch: Epoch) -> View:
        return _Rows(self.structure, self.arrays)


def _column(x: Any, path: str) -> np.ndarray[Any, Any]:
    if isinstance(x, SymbolicTensor):
        raise SymbolicValueError(
            f"from_arrays: {path} is a tensor of staged code, {x.spec}, which has no value before the graph runs, and "
            f"a dataset holds values{source_line.here()}: make the dataset outside, and go over it here"
        )
    if isinstance(x, (Tensor, Variable)):
        x = x.numpy()
    if isinstance(x, (str, bytes)):
        raise ShapeError(f"from_arrays: {path} has no axis: a text is one value; write [text]")
    texts = texts_in(x) if isinstance(x, list) else None
    if texts is not None:
        return texts
    try:
        array = x if isinstance(x, np.ndarray) else np.asarray(x) if hasattr(x, "__array__") else as_array(x)
    except (DTypeError, ShapeError) as error:
        hint = "; arrays side by side are a tuple: from_arrays((x, y))" if isinstance(x, list) else ""
        raise type(error)(f"from_arrays: {path}: {error.bare}{hint}") from None
    if array.ndim == 0:
        raise ShapeError(f"from_arrays: {path} has no axis: a {type(x).__name__}")
    if array.dtype.kind == "O" and texts_in(array) is None:
        raise DTypeError(f"from_arrays: {path} is an array of objects; write ll.data.from_sequence for these")
    if array.dtype.kind not in "OUS":
        try:
            dtypes.dtype(array.dtype)
        except DTypeError as error:
            raise DTypeError(f"from_arrays: {path}: {error.bare}") from None
    return array


class _Rows(View):
    def __init__(self, structure: Structure, arrays: list[np.ndarray[Any, Any]]) -> None:
        super().__init__(len(arrays[0]))
        self._structure, self._arrays = structure, arrays

    def item(self, i: int) -> Element:
        rows = [x[i] for x in self._arrays]
        return Element(self._structure, [_row(x) for x in rows])

    def rows(self, places: np.ndarray[Any, Any] | slice) -> Element:
        return Element(self._structure, [_own(x[places]) for x in self._arrays])


def _row(x: Any) -> Any:
    if isinstance(x, (str, bytes)):
        return x.item() if isinstance(x, np.generic) else x
    return _own(np.asarray(x))


def _own(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in memory, of a dtype of ours."""
    if x.dtype.kind in "USO":
        return x.astype(object)
    return as_array(x) if not x.dtype.isnative else np.array(x)


class Sequence(Stage):
    """The items of an object with a length, which has them by number."""

    name = "from_sequence"

    def __init__(self, items: Any) -> None:
        super().__init__()
        if not hasattr(items, "__len__") or not hasattr(items, "__getitem__") or isinstance(items, dict):
            raise ArgumentError(
                f"from_sequence: needs an object with a length and items by number, as a list, got "
                f"{type(items).__name__}; {_instead(items)}"
            )
        self.items = items
        self.settings = f"{type(items).__name__} of {len(items)}"
        self.identity = str(len(items))

    @property
    def size(self) -> int:
        return len(self.items)

    def view(self, epoch: Epoch) -> View:
        return _Items(self.items)


def _instead(items: Any) -> str:
    if isinstance(items, dict):
        return "write ll.data.from_arrays for a dictionary of arrays, list(d.items()) for its pairs"
    if isinstance(items, Iterator):
        return "write ll.data.from_generator(f), with the function f that makes the iterator"
    return "write list(...) around it" if hasattr(items, "__iter__") else "give a list"


_PLAIN = (list, tuple, range, np.ndarray)


class _Items(View):
    def __init__(self, items: Any) -> None:
        super().__init__(len(items))
        self._items = items

    def item(self, i: int) -> Element:
        return element_of(called(lambda: self._items[i]), "from_sequence")

    def rows(self, places: np.ndarray[Any, Any] | slice) -> Element | None:
        if type(self._items) not in _PLAIN:  # others run code of the user's, item by item
            return None
        if isinstance(places, slice):
            return stacked_items(list(self._items[places]))
        return stacked_items([self._items[i] for i in places.tolist()])


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs code of the user's: its errors are the user's, and a StopIteration is no end of the data."""
    try:
        return function(*arguments)
    except StopIteration as error:
        stopped = RuntimeError("a function of a dataset raised StopIteration, which would end the data without a word")
        mark_user_error(stopped)
        raise stopped from error
    except Exception as error:
        mark_user_error(error)
        raise


class Generator(Stage):
    """What the iterators of a function give; each pass calls it anew."""

    name = "from_generator"

    def __init__(self, function: Callable[[], Any]) -> None:
        super().__init__()
        if isinstance(function, Iterator):
            raise ArgumentError(
                f"from_generator: needs the function that makes the iterator, got a {type(function).__name__}, which "
                "can be gone through once only; write from_generator(f) for `def f(): ... yield ...`"
            )
        if not callable(function):
            hint = "; write from_sequence(...)" if hasattr(function, "__getitem__") else ""
            raise ArgumentError(
                f"from_generator: needs a function without arguments, got {type(function).__name__}{hint}"
            )
        self.function = function
        self.settings = getattr(function, "__name__", type(function).__name__)

    def cursor(self, epoch: Epoch) -> Cursor:
        return _Made(self.function)


_last_returned: weakref.WeakKeyDictionary[Callable[[], Any], weakref.ref[Any]] = weakref.WeakKeyDictionary()


class _Made(Cursor):
    """Its position is how many items were taken: a new one makes an iterator and goes through as many."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._iterator: Any = None
        self._at = 0

    def next(self) -> Element | End:
        item = self._item()
        return END if item is END else element_of(item, "from_generator")

    def _item(self) -> Any:
        if self._iterator is None:
            self._iterator = self._begin(self._at)
        try:
            item = next(self._iterator)
        except StopIteration:
            return END
        except Exception as error:
            mark_user_error(error)
            raise
        self._at += 1
        return item

    def _begin(self, skipped: int) -> Iterator[Any]:
        iterable = called(self._function)
        if not hasattr(iterable, "__iter__"):
            raise ArgumentError(
                f"from_generator: the function returned a {type(iterable).__name__}; it must return an iterator, or "
                "yield its elements"
            )
        iterator: Iterator[Any] = iter(iterable)
        if iterator is iterable:
            self._refuse_old(iterator)
        for _ in range(skipped):
            next(iterator, None)
        return iterator

    def _refuse_old(self, iterator: Iterator[Any]) -> None:
        """Raises ArgumentError for the iterator that the function has returned before: it is used up."""
        try:
            last = _last_returned.get(self._function)
            _last_returned[self._function] = weakref.ref(iterator)
        except TypeError:  # no weak reference to it can be had
            return
        if last is not None and last() is iterator:
            raise ArgumentError(
                "from_generator: the function returned the iterator that it had returned before, from which elements "
                "were taken: each pass needs a new one; write from_generator(f) for `def f(): ... yield ...`"
            )

    def skip(self, n: int) -> None:
        for _ in range(n):
            self._item()

    def state(self) -> State:
        return self._at

    def restore(self, state: State) -> None:
        self._at = int(state)


class Foreign(Stage):
    """An iterator of another library that knows where it is; there is one pass, of which all cursors are a part."""

    name = "iterate"

    def __init__(self, iterator: foreign.Stateful) -> None:
        super().__init__()
        self.iterator = iterator
        self.settings = self.identity = type(iterator.of).__name__

    def cursor(self, epoch: Epoch) -> Cursor:
        return _ForeignCursor(self.iterator)


class _ForeignCursor(Cursor):
    def __init__(self, iterator: foreign.Stateful) -> None:
        self._iterator = iterator

    def next(self) -> Element | End:
        try:
            item = self._iterator.next()
        except StopIteration:
            return END
        except Exception as error:
            mark_user_error(error)
            raise
        return element_of(item, "iterate")

    def state(self) -> State:
        return self._iterator.state()

    def restore(self, state: State) -> None:
        self._iterator.restore(state)
