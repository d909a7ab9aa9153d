"""Batches of lists: many items at once are what they are one by one, also where that is an error."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import limelight as ll
from limelight.data import columns

Pair = namedtuple("Pair", "a b")  # as users write it


class Items:
    """A sequence of the user's, whose items are taken one by one."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


AT_ONCE = {
    "floats": [0.1, -0.0, float("nan"), float("inf"), 1e-46],
    "integers": [1, -(2**31), 2**31 - 1],
    "flags": [True, False],
    "texts": ["a", "bc", ""],
    "bytes": [b"a", b"\0"],
    "arrays": [np.ones((2, 3)), np.zeros((2, 3))],
    "bfloat16": [np.ones(2, ll.bfloat16.type) if hasattr(ll.bfloat16, "type") else np.ones(2, "float16")] * 2,
    "empty arrays": [np.ones((0, 3), "int8")] * 3,
    "pairs": [(1.0, "a"), (2.0, "b")],
    "nested": [({"y": 1, "x": (True, 2.0)}, np.arange(3))] * 3,
    "lists": [[1, 2], [3, 4]],
    "lists of lists": [([[1.0], [2.0]], 1), ([[3.0], [4.0]], 2)],
    "lists of texts": [["a", "b"], ["c", ""]],
    "NumPy's numbers": [np.float32(1.0), np.float32(2.0)],
    "NumPy's doubles": [np.float64(1e300), np.float64(2.0)],
    "NumPy's flags": [(np.bool_(True), np.int8(1)), (np.bool_(False), np.int8(2))],
    "another order": [{"a": 1, "b": 2.0}, {"b": 3.0, "a": 4}],
}
ONE_BY_ONE = {
    "mixed numbers": [1.0, 2],
    "flags and integers": [True, 2],
    "large floats": [1e300, 1.0],
    "large integers": [2**31, 1],
    "larger integers": [2**70, 1],
    "lists of two lengths": [[1, 2], [3]],
    "lists of mixed numbers": [[1, 2], [3.0, 4.0]],
    "lists of large integers": [[1, 2], [2**31, 1]],
    "empty lists": [[], []],
    "lists of arrays": [[np.ones(2)], [np.ones(2)]],
    "NumPy's mixed numbers": [np.float32(1.0), np.float64(1.0)],
    "NumPy's texts": [np.str_("a"), np.str_("b")],
    "long numbers": [np.longdouble(1)] * 2,
    "named tuples": [Pair(1, 2), Pair(3, 4)],
    "lengths": [(1, 2), (1, 2, 3)],
    "keys": [{"a": 1}, {"b": 1}],
    "number keys": [{1: 1.0}, {True: 2.0}],
    "ordered": [OrderedDict(a=1), OrderedDict(a=2)],
    "shapes": [np.ones(2), np.ones(3)],
    "dtypes": [np.ones(2), np.ones(2, "float32")],
    "byte order": [np.ones(2, ">f4")] * 2,
    "objects": [np.array([None])] * 2,
    "texts in arrays": [np.array(["a", "b"])] * 2,
    "nothing": [(), ()],
    "None": [None, None],
    "tensors": [ll.constant(1.0), ll.constant(2.0)],
}


def outcome(items, shuffled):
    """All batches as words, or the error."""
    dataset = ll.data.from_sequence(items)
    try:
        batches = list((dataset.shuffle(seed=1) if shuffled else dataset).batch(2))
    except ll.errors.LimelightError as error:
        return f"{type(error).__name__} {error}".partition(" (test_columns.py")[0]
    return repr([ll.tree.map(lambda x: (x.tolist(), str(x.dtype), x.shape), batch) for batch in batches])


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", [*AT_ONCE, *ONE_BY_ONE])
def test_a_list_gives_what_its_items_give(name, shuffled):
    items = {**AT_ONCE, **ONE_BY_ONE}[name]
    assert outcome(items, shuffled) == outcome(Items(items), shuffled)


@pytest.mark.parametrize(
    "items", [range(2, 7), (1.0, 2.0, 3.0), np.arange(5), np.ones((3, 2), "float16"), np.array(["a"])]
)
def test_other_plain_sequences_give_what_their_items_give(items):
    for shuffled in (False, True):
        assert outcome(items, shuffled) == outcome(Items(items), shuffled)


@pytest.mark.parametrize("name", AT_ONCE)
def test_items_of_plain_types_are_taken_at_once(name, monkeypatch):
    assert columns.stacked_items(AT_ONCE[name]) is not None


def test_batches_share_no_memory_with_the_list():
    items = [np.zeros(2), np.zeros(2)]
    [batch] = list(ll.data.from_sequence(items).batch(2))
    items[0][:] = 7.0
    assert batch.tolist() == [[0.0, 0.0], [0.0, 0.0]]
