"""`Dataset`, a pipeline as users write it, and the functions that make one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, ParamSpec, TypeVar

from limelight.core import dispatch, nest
from limelight.core.nest import Structure
from limelight.data import foreign
from limelight.data.batch import Batch
from limelight.data.cache import Cache
from limelight.data.combinators import Enumerate, Part, Repeat, Zip
from limelight.data.element import structure_of
from limelight.data.fork_safe_locks import lock_of
from limelight.data.iterator import Iterator, refuse_in_trace
from limelight.data.map import Filter, Map
from limelight.data.prefetch import Prefetch
from limelight.data.shuffle import Shuffle
from limelight.data.sources import Arrays, Foreign, Generator, Sequence
from limelight.data.specs import Declared
from limelight.data.split_warning import warn_of_new_split
from limelight.data.stage import Stage
from limelight.data.staged_iteration import Pass, Rounds, begin_pass
from limelight.errors import ArgumentError, CallError
from limelight.random import default_generator
from limelight.staging.trace_branch import tracing
from limelight.user_code import equivalents, hints
from limelight.user_code.tracebacks import in_place_of_python

_MOST_UNROLLED: Final = 256
_FORMAT: Final = 1
P = ParamSpec("P")
R = TypeVar("R")


def _given_by_name(shuffle: Callable[P, R]) -> Callable[P, R]:
    """Refuses a number without a name: it is the size of a window elsewhere, and would be taken for the seed."""

    @functools.wraps(shuffle)
    @in_place_of_python  # a setting that there is not is the caller's mistake
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > 1:
            number, seed = args[1], kwargs.get("seed", 1)
            raise CallError(
                f"shuffle: seed and window are given by name, got {number!r} without one; to permute all elements "
                f"write shuffle(), or shuffle(seed={seed!r}) for an order that can be had again; to draw them from a "
                f"window of {number!r} shuffle(window={number!r})"
            )
        return shuffle(*args, **kwargs)

    return checked


class _Class(type):
    """Of `Dataset`: says what to write for what other libraries' classes of that name have."""

    @in_place_of_python
    def __getattr__(cls, name: str) -> Any:
        hint = "" if name.startswith("_") else hints.suggested(name, "data")
        raise AttributeError(f"the class {cls.__name__} has no attribute {name!r}{hint}", name=name, obj=cls)


class Dataset(metaclass=_Class):
    """Elements that can be gone over again and again: a source and the steps that prepare its elements.

    Made by `ll.data.from_arrays`, `from_sequence`, `from_generator` and `zip`; each method returns a new dataset. What
    an element is decides the source: a tensor, a string or bytes, or a tuple or dictionary of these (lists are values,
    as in `ll.constant`). `iter(dataset)` is an `Iterator`, which knows where it is.

    Each `iter` of one dataset is another pass: `shuffle` has another order in each. How many passes have begun is its
    state, so that the `for` loops of a run that a `CheckpointManager` has resumed have the orders that were to come.
    Nothing is computed before an element is asked for. Calling the class raises ArgumentError.

    >>> import limelight as ll
    >>> images, labels = ll.zeros((5, 8)), ll.constant([0, 1, 2, 3, 4])
    >>> batches = ll.data.from_arrays((images, labels)).shuffle(seed=1).batch(2)
    >>> batches
    <ll.data: from_arrays(2 arrays of 5).shuffle(seed=1).batch(2), 3 elements>
    >>> [(x.shape, y.shape) for x, y in batches]
    [((2, 8), (2,)), ((2, 8), (2,)), ((1, 8), (1,))]
    """

    __limelight_leaf__ = True

    def __init_subclass__(cls) -> None:
        raise ArgumentError(
            f"ll.data.Dataset is no base class: what has __len__ and __getitem__ needs none: `class {cls.__name__}:`, "
            f"and is made a dataset by ll.data.from_sequence({cls.__name__}(...))"
        )

    def __dir__(self) -> list[str]:
        return hints.without_internals(type(self), object.__dir__(self), ())

    def __init__(self, stage: Stage) -> None:
        if not isinstance(stage, Stage):
            raise ArgumentError("datasets are made by ll.data.from_arrays and its like, not by calling ll.data.Dataset")
        self._stage = stage
        self._passes = 0  # begun so far
        self._lock = lock_of(self, "_lock")
        self._key: int | None = None

    # Going over it

    def __iter__(self) -> Any:
        if dispatch.active and tracing() is not None:
            return self._unrolled()
        return self._iterator()

    def _iterator(self) -> Iterator:
        key = self._own_key()
        with self._lock:
            number, self._passes = self._passes, self._passes + 1
        return Iterator(self._stage, key, number, self._restored)

    def _own_key(self) -> int:
        """What stages without a seed draw from: split off the default generator when it is first needed."""
        with self._lock:
            if self._key is None:
                words = default_generator()._data.split(1)[0]
                self._key = int(words[4]) >> 1  # of 63 bits, which any format holds
            return self._key

    def _restored(self, epoch: Any) -> None:
        """A pass was resumed: the next one is the one after it."""
        with self._lock:
            self._key = epoch.key
            self._passes = max(self._passes, epoch.numbers[0] + 1)

    def get_state(self) -> dict[str, Any]:
        """How many passes have begun, and what orders without a seed follow from, in plain Python: for checkpoints.

        A pass that has begun counts as a whole one: where in it a loop is says its iterator, `iter(dataset)`, alone.

        >>> import limelight as ll
        >>> data = ll.data.from_sequence(range(9)).shuffle(seed=1)
        >>> first, state = [x.item() for x in data], data.get_state()
        >>> second = [x.item() for x in data]
        >>> data.set_state(state)
        >>> [x.item() for x in data] == second
        True

        Raises ArgumentError in staged code, where it would be told while tracing, before any run has begun a pass.
        """
        refuse_in_trace("get_state of a dataset")
        with self._lock:
            return {"format": _FORMAT, "pipeline": self._stage.signature(), "key": self._key, "passes": self._passes}

    def set_state(self, state: dict[str, Any]) -> None:
        """Has the next pass be the one that followed when `state` was taken; iterators stay where they are.

        Args:
            state: what `get_state` has returned, of this dataset or of one with the same stages.

        Raises:
            ArgumentError: it is no such state, or that of another pipeline; or the code is staged, and would set it
                while it is traced.
        """
        refuse_in_trace("set_state of a dataset")
        lacking = {"format", "pipeline", "key", "passes"} - set(state or ())
        if lacking or state["format"] != _FORMAT:
            what = f"there is no {min(lacking)!r} in it" if lacking else f"format {state['format']} is not known"
            raise ArgumentError(f"set_state: needs what get_state of a dataset has returned; {what}")
        if state["pipeline"] != self._stage.signature():
            raise ArgumentError(
                f"set_state: the passes are those of {state['pipeline']}, this dataset is {self._stage.signature()}; "
                "make the dataset as it was"
            )
        with self._lock:
            self._key = None if state["key"] is None else int(state["key"])
            self._passes = int(state["passes"])

    def _unrolled(self) -> Any:
        """All elements as ops of the trace at hand, one after the other."""
        size = self._stage.size
        if size is None or size > _MOST_UNROLLED:
            many = "an unknown number of" if size is None else "endlessly many" if size == math.inf else str(size)
            raise ArgumentError(
                f"a `for` over a dataset of {many} elements in a staged function would be unrolled while tracing: "
                "stage with autograph=True, which makes the loop a part of the graph (over dataset.enumerate() and "
                "ll.data.zip(...) instead of Python's enumerate and zip), or write the loop outside"
            )
        rounds = self.__limelight_rounds__()
        return (rounds.next() for _ in range(int(size)))

    def __limelight_rounds__(self) -> Rounds:
        """What autograph stages a `for` over it as: a pass of its own in each run."""
        beginning = begin_pass(Pass(self._iterator, lambda: Iterator(self._stage, self._key or 0, 0), repr(self)))
        return Rounds(beginning, run_always=bool(self._stage.size))

    def __copy__(self) -> Dataset:
        clone = Dataset(self._stage)
        clone._key = self._key
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Dataset:
        """A dataset with passes of its own; nothing of a pipeline changes, so it is shared."""
        return self.__copy__()

    def __reduce__(self) -> Any:
        return (Dataset, (self._stage,))

    @in_place_of_python
    def __len__(self) -> int:
        size = self._stage.size
        if size is None or size == math.inf:
            why = "has no end" if size else "is known only when it has been gone through"
            error = TypeError(f"the length of {self!r} {why}")
            raise error
        return int(size)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        size = self._stage.size
        many = "" if size is None else ", endless" if size == math.inf else f", {size} element{'s' * (size != 1)}"
        return f"<ll.data: {self._stage}{many}>"

    # Steps

    def map(self, function: Callable[..., Any], *, seed: int | None = None) -> Dataset:
        """The results of `function`, which gets the parts of an element that is a tuple, and any other as it is.

        It runs eagerly, whatever surrounds it, and may return numbers, arrays and tensors, tuples and dictionaries of
        them, and texts. With a seed its last argument is a `ll.random.Generator`, which depends on the seed, the pass
        and the number of the element alone: so what it draws does not depend on where a run was resumed. Raises
        ArgumentError for what cannot be called.

        >>> import limelight as ll
        >>> noisy = ll.data.from_arrays([1.0, 2.0]).map(lambda x, draws: x + draws.normal(()), seed=1)
        >>> len([x.shape for x in noisy])
        2
        """
        return Dataset(Map(self._stage, function, seed))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements of which `predicate` is true; it is called as the function of `map` is.

        >>> import limelight as ll
        >>> [x.item() for x in ll.data.from_sequence(range(6)).filter(lambda x: x % 3 == 0)]
        [0, 3]
        """
        return Dataset(Filter(self._stage, predicate))

    def batch(self, size: int, last: str = "keep", padding: Any = 0) -> Dataset:
        """Batches of `size` elements, stacked along a new first axis; texts become NumPy arrays of objects.

        A last batch that is smaller is another shape, and so another trace of each staged function that takes it: drop
        or pad it, or give the function an `input_signature`. Which rows were padded says an array of ones in the
        elements: it is filled up with zeros.

        Args:
            size: how many elements make a batch.
            last: what becomes of a last batch with fewer: "keep", "drop", or "pad" to fill it up.
            padding: the number to fill up with; texts are filled up with empty ones.

        Raises:
            ArgumentError: `size` is less than 1, or `last` none of the three.
            ShapeError: elements have different shapes; DTypeError, where they have different dtypes. Both when the
                batch is made.

        >>> import limelight as ll
        >>> rows = ll.data.from_arrays((ll.constant([1.0, 2.0, 3.0]), ll.ones((3,))))
        >>> [(x.tolist(), weights.tolist()) for x, weights in rows.batch(2, last="pad")]
        [([1.0, 2.0], [1.0, 1.0]), ([3.0, 0.0], [1.0, 0.0])]
        """
        return Dataset(Batch(self._stage, size, last, padding))

    @_given_by_name
    def shuffle(self, *, seed: int | None = None, window: int | None = None, reshuffle: bool = True) -> Dataset:
        """The elements in random order, another one in each pass, which follows from the seed.

        Elements that can be had by number (of arrays and sequences, with `map`, `zip`, `batch`, `take`, `skip`,
        `enumerate` or `cache` behind) are all permuted, for 8 bytes each. Others go through a window, which holds so
        many elements. Each order of a whole dataset is as likely as any other; through a window an element comes at
        most so many places early.

        Args:
            seed: what the orders follow from; None for one that follows from `ll.random.seed`.
            window: the number of elements held at a time; None to permute all.
            reshuffle: whether each pass has an order of its own. True.

        Raises:
            ArgumentError: there is no window, and the elements come one after the other.
            CallError: a number has no name, which elsewhere is the size of a window: `shuffle(2000)`.

        >>> import limelight as ll
        >>> numbers = ll.data.from_sequence(range(5)).shuffle(seed=1)
        >>> first, second = [x.item() for x in numbers], [x.item() for x in numbers]
        >>> sorted(first) == sorted(second), first == second
        (True, False)
        """
        return Dataset(Shuffle(self._stage, seed, window, reshuffle))

    def repeat(self, times: int | None = None) -> Dataset:
        """The elements `times` times, or without end; what stands before is another pass each time.

        >>> import limelight as ll
        >>> [x.item() for x in ll.data.from_sequence([1, 2]).repeat(2)]
        [1, 2, 1, 2]
        """
        return Dataset(Repeat(self._stage, times))

    def take(self, n: int) -> Dataset:
        """The first `n` elements, or all where there are fewer.

        >>> import limelight as ll
        >>> [x.item() for x in ll.data.from_sequence([1, 2]).repeat().take(3)]
        [1, 2, 1]
        """
        return Dataset(Part.taking(self._stage, n))

    def skip(self, n: int) -> Dataset:
        """The elements after the first `n`.

        Behind a `shuffle` that draws another order for each pass it warns: these are others in each pass, and no split
        from those of `take(n)`. There write `shuffle(seed=..., reshuffle=False)`.

        >>> import limelight as ll
        >>> [x.item() for x in ll.data.from_sequence([1, 2, 3]).skip(1)]
        [2, 3]
        """
        part = Part.skipping(self._stage, n)
        warn_of_new_split(part)
        return Dataset(part)

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of a number, an int64 tensor from `start` on, and the element.

        >>> import limelight as ll
        >>> [(i.item(), x.item()) for i, x in ll.data.from_sequence([5, 6]).enumerate()]
        [(0, 5), (1, 6)]
        """
        return Dataset(Enumerate(self._stage, start))

    def zip(self, *others: Dataset) -> Dataset:
        """Tuples of an element of this dataset and one of each other, to the end of the shortest.

        >>> import limelight as ll
        >>> a, b = ll.data.from_sequence([1, 2]), ll.data.from_sequence(["x", "y", "z"])
        >>> [(x.item(), y) for x, y in a.zip(b)]
        [(1, 'x'), (2, 'y')]
        """
        return zip((self, *others))

    def cache(self) -> Dataset:
        """The elements of the first pass, kept in memory for all others: what stands before is computed once.

        >>> import limelight as ll
        >>> calls = []
        >>> cached = ll.data.from_sequence([1, 2]).map(lambda x: calls.append(1) or x).cache()
        >>> [len(list(cached)) for _ in range(3)], len(calls)
        ([2, 2, 2], 2)
        """
        return Dataset(Cache(self._stage))

    def prefetch(self, ahead: int = 2) -> Dataset:
        """The same elements, of which a thread makes the next `ahead` while the last one is used.

        What is raised there is raised where the element is asked for. The thread ends with the iterator.

        >>> import limelight as ll
        >>> [x.item() for x in ll.data.from_sequence([1, 2, 3]).prefetch()]
        [1, 2, 3]
        """
        return Dataset(Prefetch(self._stage, ahead))

    def with_spec(self, spec: Any) -> Dataset:
        """The same elements, with declared types for staged code: a nest of `ll.TensorSpec`, None for sizes that vary.

        Without it they are those of the first element; only that batches may be smaller at the end is known. Raises
        ArgumentError for anything else.

        >>> import limelight as ll
        >>> words = ll.data.from_generator(lambda: iter([[1, 2], [3]])).with_spec(ll.TensorSpec((None,), "int32"))
        >>> iterator = iter(words)
        >>> length = ll.function(lambda: ll.sum(next(iterator)))
        >>> length().item(), length().item(), length.trace_count
        (3, 3, 1)
        """
        return Dataset(Declared(self._stage, spec))


def from_arrays(arrays: Any) -> Dataset:
    """The rows of arrays: of one, or side by side of a tuple or dictionary of arrays of one length.

    The arrays are not copied (a memory-mapped one stays on disk), only rows are, when they are taken; they keep their
    dtypes, as in `ll.constant`: NumPy's float64 stays float64. Raises ShapeError for arrays of different lengths or
    without axes, DTypeError for arrays of objects that are no texts.

    >>> import limelight as ll
    >>> data = ll.data.from_arrays({"x": ll.ones((2, 3)), "name": ["a", "b"]})
    >>> [(row["x"].shape, row["name"]) for row in data]
    [((3,), 'a'), ((3,), 'b')]
    """
    return Dataset(Arrays(arrays))


def from_sequence(items: Any) -> Dataset:
    """The items of an object that has a length and items by number: a list, a `range`, a PyTorch dataset of that kind.

    Raises ArgumentError for anything else.

    >>> import limelight as ll
    >>> [x.item() for x in ll.data.from_sequence(range(3))]
    [0, 1, 2]
    """
    return Dataset(Sequence(items))


def from_generator(function: Callable[[], Iterable[Any]]) -> Dataset:
    """What a function without arguments yields, or the iterator that it returns gives; each pass calls it anew.

    A saved position is the number of elements that were taken: who goes there calls the function and takes as many. So
    it must yield the same each time, and a long way takes as long as before. Raises ArgumentError for a generator:
    it can be gone through only once.

    >>> import limelight as ll
    >>> def squares():
    ...     for i in range(4):
    ...         yield i * i
    >>> [x.item() for x in ll.data.from_generator(squares)]
    [0, 1, 4, 9]
    """
    return Dataset(Generator(function))


def zip(datasets: Any, *others: Any) -> Dataset:  # the module's name for it, as in ll.data.zip
    """Datasets side by side, to the end of the shortest: a tuple or dictionary of datasets gives elements like it.

    Several arguments are taken for the tuple of them.

    Raises ArgumentError where there is anything but datasets, or none.

    >>> import limelight as ll
    >>> pairs = ll.data.zip({"x": ll.data.from_sequence([1, 2]), "y": ll.data.from_sequence(["a", "b"])})
    >>> [(row["x"].item(), row["y"]) for row in pairs]
    [(1, 'a'), (2, 'b')]
    """
    leaves: list[Any] = []
    if others:
        datasets = (datasets, *others)
    if isinstance(datasets, list):
        datasets = tuple(datasets)
    structure: Structure = structure_of(datasets, leaves)
    for path, x in [*map(lambda *pair: pair, nest.paths(structure, "datasets"), leaves)]:
        if not isinstance(x, Dataset):
            raise ArgumentError(f"zip: {path} is a {type(x).__name__}, no dataset; write ll.data.from_arrays(...)")
    if not leaves:
        raise ArgumentError("zip: needs one dataset at least")
    return Dataset(Zip([x._stage for x in leaves], structure))


def iterate(source: Any) -> Iterator:
    """An iterator over a dataset, or over an iterator or loader of another library that knows where it is.

    These have `get_state` and `set_state`, as Grain's iterators, or `state_dict` and `load_state_dict`, as torchdata's
    loaders. Their state is saved with the rest, and `next` of the result may be used in staged functions. What they
    give becomes tensors.

    Raises:
        ArgumentError: it cannot be iterated, or has neither pair of methods.

    >>> import limelight as ll
    >>> next(ll.data.iterate(ll.data.from_sequence([5]))).item()
    5
    """
    if isinstance(source, Dataset):
        return source._iterator()
    if isinstance(source, Iterator):
        return source
    if not foreign.knows_its_place(source):
        raise ArgumentError(
            f"iterate: a {type(source).__name__} does not know where it is: it needs get_state and set_state, or "
            "state_dict and load_state_dict; write ll.data.from_generator(f) for a function that makes an iterator"
        )
    return Iterator(Foreign(foreign.Stateful(source)), 0, 0)


for _name, _hint in equivalents.of_datasets().items():
    setattr(Dataset, _name, hints.Elsewhere(_name, _hint, "a dataset"))
