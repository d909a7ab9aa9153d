"""Datasets: what elements are, what each step does, and what is said where it cannot be done."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import dtypes
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError


def items(dataset: Any) -> list[Any]:
    return [x.item() for x in dataset]


# Sources


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_arrays_keep_their_dtypes(dtype: Any) -> None:
    array = np.arange(4).astype(dtype)
    for source in (array, ll.constant(array), array[::-1][::-1]):
        for data in (ll.data.from_arrays(source), ll.data.from_sequence(source), ll.data.from_arrays(source).batch(2)):
            element = next(iter(data))
            assert type(element) is ll.Tensor
            assert element.dtype == dtype
    assert next(iter(ll.data.from_arrays([1.0, 2.0]))).dtype == ll.float32


def test_arrays_in_files_stay_there(tmp_path: Path) -> None:
    path = tmp_path / "numbers.npy"
    np.save(path, np.arange(12.0).reshape(6, 2))
    mapped = np.load(path, mmap_mode="r")
    data = ll.data.from_arrays(mapped)
    assert data._stage.arrays[0] is mapped
    batch = next(iter(data.shuffle(seed=1).batch(4)))
    assert type(batch._data) is np.ndarray
    assert batch.shape == (4, 2)
    swapped = np.arange(3, dtype=">f8")
    assert [x.item() for x in ll.data.from_arrays(swapped)] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("step", [lambda d: d, lambda d: d.batch(2), lambda d: d.shuffle(seed=1).batch(2)])
def test_elements_do_not_change_with_the_array(step: Any) -> None:
    array = np.zeros(4, np.float32)
    element = next(iter(step(ll.data.from_arrays(array))))
    array[:] = 5.0
    assert not element.numpy().any()


def test_a_generator_may_fill_one_buffer_again_and_again() -> None:
    def frames() -> Any:
        buffer = np.zeros(2, np.float32)
        for i in range(3):
            buffer[:] = i
            yield buffer

    assert [x.tolist() for x in ll.data.from_generator(frames).prefetch(3)] == [[0, 0], [1, 1], [2, 2]]


def test_structures_of_elements() -> None:
    pair = namedtuple("pair", "x y")

    @dataclasses.dataclass
    class Row:
        x: Any
        y: Any

    for structure in (lambda x, y: (x, y), lambda x, y: {"y": y, "x": x}, pair, Row, lambda x, y: ((x,), {"y": (y,)})):
        for source in (
            ll.data.from_arrays(structure(np.arange(3), ["a", "b", "c"])),
            ll.data.from_sequence([structure(np.int64(i), text) for i, text in enumerate("abc")]),
        ):
            element = next(iter(source))
            assert type(element) is type(structure(0, 0))
            assert [x if isinstance(x, str) else x.item() for x in ll.tree.leaves(element)] in ([0, "a"], ["a", 0])
            batch = next(iter(source.batch(2)))
            texts = [x for x in ll.tree.leaves(batch) if isinstance(x, np.ndarray)]
            assert [x.tolist() for x in texts] == [["a", "b"]]


def test_texts() -> None:
    given = ["a", "bc\0", b"\xff\0"]
    assert list(ll.data.from_sequence(given)) == given
    assert list(ll.data.from_arrays(given)) == given
    (batch,) = ll.data.from_sequence(given).batch(3)
    assert batch.dtype == object
    assert batch.tolist() == given
    assert list(ll.data.from_arrays(np.array(["x", "yz"]))) == ["x", "yz"]
    assert next(iter(ll.data.from_arrays(np.array([["x"], ["y"]])))).tolist() == ["x"]
    (padded,) = ll.data.from_sequence(["a"]).batch(3, last="pad")
    assert padded.tolist() == ["a", "", ""]


def test_a_list_is_a_value() -> None:
    assert [x.tolist() for x in ll.data.from_sequence([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert [x.tolist() for x in ll.data.from_arrays([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ll.data.from_arrays((np.ones(3), np.ones(4))), ShapeError, r"arrays\[0\] has 3, arrays\[1\] has 4"),
        (lambda: ll.data.from_arrays(5.0), ShapeError, "no axis"),
        (lambda: ll.data.from_arrays("text"), ShapeError, r"write \[text\]"),
        (lambda: ll.data.from_arrays([np.ones((3, 2)), np.ones(3)]), ShapeError, r"from_arrays\(\(x, y\)\)"),
        (lambda: ll.data.from_arrays(()), ArgumentError, "there is no array"),
        (lambda: ll.data.from_arrays(np.array([{}, {}])), DTypeError, "from_sequence"),
        (lambda: ll.data.from_sequence({"a": 1}), ArgumentError, "from_arrays"),
        (lambda: ll.data.from_sequence(iter([1])), ArgumentError, "from_generator"),
        (lambda: ll.data.from_sequence({1, 2}), ArgumentError, "list"),
        (lambda: ll.data.from_generator(x for x in [1]), ArgumentError, "def f"),
        (lambda: ll.data.from_generator([1]), ArgumentError, "from_sequence"),
        (lambda: list(ll.data.from_generator(lambda: 5)), ArgumentError, "returned a int"),
        (lambda: list(ll.data.from_sequence([None])), DTypeError, "element is a NoneType"),
        (lambda: list(ll.data.from_sequence([{"a": object()}])), DTypeError, r'element\["a"\] is a object'),
        (lambda: ll.data.zip((ll.data.from_sequence([1]), [2])), ArgumentError, r"datasets\[1\] is a list"),
        (lambda: ll.data.zip(()), ArgumentError, "one dataset"),
        (lambda: ll.data.from_sequence([1]).batch(0), ArgumentError, "at least one"),
        (lambda: ll.data.from_sequence([1]).batch(2, last="remainder"), ArgumentError, '"keep", "drop" or "pad"'),
        (lambda: ll.data.from_sequence([1]).repeat(-1), ArgumentError, "at least 0"),
        (lambda: ll.data.from_sequence([1]).take(-1), ArgumentError, "at least 0"),
        (lambda: ll.data.from_sequence([1]).shuffle(seed=-1), ArgumentError, "seed"),
        (lambda: ll.data.from_sequence([1]).shuffle(seed=1.5), ArgumentError, "seed"),
        (lambda: ll.data.from_generator(lambda: iter([1])).shuffle(seed=1), ArgumentError, r"shuffle\(window=1000\)"),
        (lambda: ll.data.from_sequence([1]).map(5), ArgumentError, "function"),
        (lambda: ll.data.from_sequence([1]).prefetch(0), ArgumentError, "at least one"),
        (lambda: ll.data.Dataset([1]), ArgumentError, "from_arrays"),
        (lambda: ll.data.iterate([1]), ArgumentError, "get_state and set_state"),
        (lambda: ll.data.from_sequence([1]).with_spec(3), ArgumentError, "TensorSpec"),
    ],
)
def test_what_cannot_be_done_is_said(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_class_of_ones_own_is_no_dataset_but_a_sequence() -> None:
    class Squares:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int) -> Any:
            return i**2

    assert items(ll.data.from_sequence(Squares())) == [0, 1, 4]
    with pytest.raises(ArgumentError, match=r"no base class.*made a dataset by ll.data.from_sequence\(Cubes\("):

        class Cubes(ll.data.Dataset):  # as PyTorch's users write it
            pass


def test_elements_that_do_not_stack_are_named() -> None:
    rows = [{"x": np.ones(2)}, {"x": np.ones(3)}]
    with pytest.raises(ShapeError, match=r'element\["x"\] is \(2,\) in one element and \(3,\) in another'):
        list(ll.data.from_sequence(rows).batch(2))
    with pytest.raises(DTypeError, match="int32 in one element and float32 in another"):
        list(ll.data.from_sequence([1, 2.5]).batch(2))
    with pytest.raises(ArgumentError, match="different structures"):
        list(ll.data.from_sequence([1, (2, 3)]).batch(2))


# Steps


def test_the_function_of_map_gets_the_parts_of_a_tuple() -> None:
    data = ll.data.from_arrays((np.arange(3), np.arange(3)))
    assert items(data.map(lambda x, y: x + y)) == [0, 2, 4]
    assert items(data.map(lambda *pair: len(pair))) == [2, 2, 2]
    assert items(ll.data.from_arrays({"x": np.arange(2)}).map(lambda row: row["x"])) == [0, 1]
    with pytest.raises(CallError, match="the parts of each element, which is a tuple"):
        list(data.map(lambda pair: pair[0]))
    assert [x.tolist() for x in data.map(lambda x, y: np.array([x, y]))] == [[0, 0], [1, 1], [2, 2]]


def test_a_last_batch() -> None:
    for data in (ll.data.from_sequence(range(5)), ll.data.from_generator(lambda: iter(range(5)))):
        assert [x.tolist() for x in data.batch(2)] == [[0, 1], [2, 3], [4]]
        assert [x.tolist() for x in data.batch(2, last="drop")] == [[0, 1], [2, 3]]
        assert [x.tolist() for x in data.batch(2, last="pad", padding=-1)] == [[0, 1], [2, 3], [4, -1]]
        assert [x.tolist() for x in data.batch(5, last="drop")] == [[0, 1, 2, 3, 4]]
    with pytest.raises(DTypeError, match="padding=300 does not fit element, uint8"):
        list(ll.data.from_arrays(np.zeros(3, np.uint8)).batch(2, last="pad", padding=300))


def test_batches_of_batches_and_orders_of_batches() -> None:
    data = ll.data.from_sequence(range(8)).batch(2)
    assert [x.tolist() for x in data.batch(2)] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert sorted(x.tolist() for x in data.shuffle(seed=1)) == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("window", [None, 1, 3, 100])
def test_a_shuffle_is_a_permutation(window: int | None) -> None:
    data = ll.data.from_sequence(range(20)).shuffle(seed=1, window=window)
    assert sorted(items(data)) == list(range(20))
    if window == 3:  # an element comes at most so many places early
        assert all(x - place < 3 for place, x in enumerate(items(data)))
    fixed = ll.data.from_sequence(range(20)).shuffle(seed=1, window=window, reshuffle=False)
    assert items(fixed) == items(fixed)


def test_each_order_of_a_whole_dataset_is_as_likely_as_any_other() -> None:
    data = ll.data.from_sequence(range(3)).shuffle(seed=1)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(600):
        order = tuple(items(data))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert max(abs(n - 100) for n in counts.values()) < 40


def test_the_orders_of_a_seed_are_the_same_in_every_version() -> None:
    """Positions saved by one version are resumed by others: these orders must never change."""
    data = ll.data.from_sequence(range(8)).shuffle(seed=7)
    assert [items(data) for _ in range(2)] == FIRST_ORDERS
    assert items(ll.data.from_sequence(range(8)).shuffle(seed=7, window=3)) == WINDOW_ORDER


FIRST_ORDERS = [[2, 0, 6, 5, 1, 4, 7, 3], [6, 0, 4, 3, 5, 2, 7, 1]]
WINDOW_ORDER = [2, 3, 4, 5, 6, 1, 0, 7]


def test_repeat_take_skip_enumerate_filter() -> None:
    for data in (ll.data.from_sequence(range(5)), ll.data.from_generator(lambda: iter(range(5)))):
        assert items(data.take(2)) == [0, 1]
        assert items(data.skip(3)) == [3, 4]
        assert items(data.skip(9)) == []
        assert items(data.repeat(2)) == [*range(5), *range(5)]
        assert items(data.repeat().take(7)) == [0, 1, 2, 3, 4, 0, 1]
        assert items(data.repeat(0)) == []
        assert items(data.take(0).repeat()) == []
        assert [(i.item(), x.item()) for i, x in data.skip(1).enumerate(10)] == [(10, 1), (11, 2), (12, 3), (13, 4)]
        assert items(data.filter(lambda x: x > 2)) == [3, 4]
        assert items(data.filter(lambda x: False).repeat()) == []
        assert items(data.shuffle(seed=1, window=2, reshuffle=False).skip(1).take(3).repeat(2)) != []


def test_a_pass_that_is_empty_ends_no_repeat_of_others() -> None:
    calls = []

    def sometimes() -> Any:
        calls.append(1)
        return iter(range(len(calls) % 2))

    assert len(list(ll.data.from_generator(sometimes).repeat(5))) >= 1


def test_zip() -> None:
    a, b = ll.data.from_sequence(range(5)), ll.data.from_generator(lambda: iter("xyz"))
    assert [(x.item(), y) for x, y in a.zip(b)] == [(0, "x"), (1, "y"), (2, "z")]
    assert [row["b"] for row in ll.data.zip({"a": a, "b": b})] == ["x", "y", "z"]
    assert [(x.item(), y.item()) for x, (y, _) in ll.data.zip((a, ll.data.zip((a, a))))][-1] == (4, 4)
    batches = ll.data.zip((a, a.map(lambda x: x * 2))).batch(2)
    assert [(x.tolist(), y.tolist()) for x, y in batches] == [([0, 1], [0, 2]), ([2, 3], [4, 6]), ([4], [8])]


def test_a_cache_runs_what_is_before_it_once() -> None:
    for source in (ll.data.from_sequence(range(4)), ll.data.from_generator(lambda: iter(range(4)))):
        calls: list[int] = []
        data = source.map(lambda x, calls=calls: calls.append(1) or x).cache()
        assert [items(data) for _ in range(3)] == [[0, 1, 2, 3]] * 3
        assert len(calls) == 4
        assert items(data.repeat(2)) == [*range(4), *range(4)]
        assert len(calls) == 4


def test_pipelines_say_what_they_are_and_do_not_change() -> None:
    data = ll.data.from_sequence(range(10))
    longer = data.shuffle(seed=3, window=5).repeat().batch(4, last="drop")
    shown = '<ll.data: from_sequence(range of 10).shuffle(seed=3, window=5).repeat().batch(4, last="drop"), endless>'
    assert repr(longer) == shown
    assert repr(data) == "<ll.data: from_sequence(range of 10), 10 elements>"
    assert len(data) == 10
    assert (len(data.batch(3)), len(data.batch(3, last="drop")), len(data.repeat(3).skip(5))) == (4, 3, 25)
    for endless in (longer, data.filter(bool)):
        with pytest.raises(TypeError, match="length"):
            len(endless)
        assert endless
    assert list(map(len, [ll.data.zip((data, data.take(2))), data.repeat().take(3)])) == [2, 3]


def test_draws_of_a_seeded_map_depend_on_the_place_alone() -> None:
    def noisy(x: Any, draws: Any) -> Any:
        return x + draws.normal(())

    data = ll.data.from_sequence([0.0] * 6).map(noisy, seed=1)
    first = items(data)
    assert len(set(first)) == 6
    assert items(ll.data.from_sequence([0.0] * 6).map(noisy, seed=1).prefetch(2)) == first
    assert items(data) != first  # another pass
    before = ll.random.default_generator().state.tolist()
    items(data)
    assert ll.random.default_generator().state.tolist() == before


def test_functions_of_one_dataset_may_be_staged() -> None:
    scale = ll.function(lambda x: x * 2.0)
    assert items(ll.data.from_sequence([1.0, 2.0]).map(scale).prefetch()) == [2.0, 4.0]
    assert scale.trace_count == 1


@pytest.mark.parametrize("named", [{}, {"seed": 3}])
def test_a_number_without_a_name_is_no_seed(named):
    numbers = ll.data.from_sequence(range(10))
    seed = named.get("seed", 1)
    with pytest.raises(CallError, match=rf"shuffle\(seed={seed}\).* a window of 2000 shuffle\(window=2000\)"):
        numbers.shuffle(2000, **named)
    assert sorted(x.item() for x in numbers.shuffle(seed=1, window=4)) == list(range(10))
