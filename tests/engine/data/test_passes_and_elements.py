"""Passes that give nothing, padding that does not fit, iterators that are used up, and dtypes that tensors lack."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError


def some_passes_are_empty():
    return ll.data.from_sequence(range(3)).shuffle(seed=0).take(1).filter(lambda x: int(x) == 0)


def test_a_counted_repeat_goes_through_all_passes():
    dataset = some_passes_are_empty()
    alone = [len(list(dataset)) for _ in range(30)]
    assert 0 in alone
    assert sum(alone) > 0
    assert 0 < len(list(dataset.repeat(30))) < 30


def test_a_repeat_is_resumed_where_its_first_pass_was_empty():
    dataset = some_passes_are_empty().repeat(9)
    iterator = iter(dataset)
    state = iterator.get_state()
    whole = [x.item() for x in iterator]
    again = iter(dataset)
    again.set_state(state)
    assert [x.item() for x in again] == whole


@pytest.mark.parametrize("nothing", [ll.data.from_sequence([]), ll.data.from_sequence([1]).filter(lambda x: False)])
def test_an_endless_repeat_of_nothing_ends(nothing):
    assert list(nothing.repeat()) == []


@pytest.mark.parametrize(("values", "padding"), [([1, 2, 3], 0.5), ([True, False, True], 7)])
def test_padding_is_not_rounded(values, padding):
    with pytest.raises(DTypeError, match=f"padding={padding} does not fit"):
        list(ll.data.from_sequence(values).batch(2, last="pad", padding=padding))


def test_texts_and_numbers_are_no_batch():
    with pytest.raises(DTypeError, match="text in one element and int32 in another"):
        list(ll.data.from_sequence(["x", 3]).batch(2))


def test_an_iterator_that_is_used_up_is_refused():
    made = (i for i in range(4))
    dataset = ll.data.from_generator(lambda: made)
    assert len(list(dataset)) == 4
    with pytest.raises(ArgumentError, match="the iterator that it had returned before"):
        list(dataset)


@pytest.mark.parametrize("array", [np.array(["2020-01-01"], "M8[D]"), np.zeros(2, [("a", "i4")])])
def test_arrays_of_other_dtypes_are_refused(array):
    with pytest.raises(DTypeError, match="from_arrays: arrays"):
        ll.data.from_arrays(array)


def test_an_end_while_tracing_is_no_default():
    iterator = iter(ll.data.from_sequence([]))
    with pytest.raises(ArgumentError, match="is at its end while the function is traced"):
        ll.function(lambda: next(iterator, ll.constant(-1.0)))()


class Counting:
    """An iterator of another library that knows its place."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        return self.at

    def get_state(self):
        return {"at": self.at}

    def set_state(self, state):
        self.at = state["at"]


def test_a_copy_of_a_foreign_iterator_is_apart():
    iterator = iter(ll.data.iterate(Counting()))
    assert next(iterator).item() == 1
    other = copy.deepcopy(iterator)
    assert [next(iterator).item(), next(iterator).item(), next(other).item()] == [2, 3, 2]


def test_keys_of_tables_are_of_their_dtype():
    large = 2**63 + 5
    table = ll.lookup.HashTable("uint64", "int32", 0)
    table.insert(np.array([large], "u8"), [1])
    assert table.export()[0].tolist() == [large]
    assert table.get_state()["keys"].dtype == np.uint64
    small = ll.lookup.HashTable("int8", "int32", 0)
    with pytest.raises(DTypeError, match="insert: 1000 is no int8"):
        small.insert([1000], [1])


def test_values_of_unknown_sizes_must_fit_their_keys():
    table = ll.lookup.HashTable("int64", "float32", shape=(3,))
    specs = [ll.TensorSpec((None,), "int64"), ll.TensorSpec((None, None), "float32")]
    insert = ll.function(table.insert, input_signature=specs)
    insert(ll.constant([1, 2], "int64"), ll.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"need values of shape \(2, 3\), got \(3, 2\)"):
        insert(ll.constant([3, 4], "int64"), ll.ones((3, 2)))
    assert len(table) == 2


def test_sizes_may_be_numpys():
    layer = ll.nn.Dense(2)
    layer.build((None, np.int64(3)))
    assert layer.kernel.shape == (3, 2)
