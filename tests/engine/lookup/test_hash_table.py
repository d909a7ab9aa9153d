"""Hash tables: a dictionary of tensors, in eager and staged code, whose contents are saved."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ArgumentError, DeadVariableError, DTypeError, MissingKeyError, ShapeError

KEYS = st.lists(st.integers(-3, 3), max_size=5)
ACTIONS = st.lists(st.tuples(st.sampled_from(["insert", "remove", "lookup", "contains"]), KEYS), max_size=12)


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # each step is staged anew: it is meant
@settings(max_examples=15)
@given(ACTIONS, st.booleans(), st.booleans())
def test_it_is_a_dictionary(actions: Any, text: bool, staged: bool) -> None:
    """Whatever is done to it, a dictionary would hold the same."""
    table = ll.lookup.HashTable("string" if text else "int64", "int32", default_value=-1)
    mirror: dict[Any, int] = {}
    for number, (action, integers) in enumerate(actions):
        keys = [f"k{i}" for i in integers] if text else np.array(integers, np.int64)
        plain = list(keys) if text else [int(key) for key in integers]
        values = np.arange(len(plain), dtype=np.int32) + 100 * number
        run = {
            "insert": lambda keys=keys, values=values: table.insert(keys, values),
            "remove": lambda keys=keys: table.remove(keys),
            "lookup": lambda keys=keys: table.lookup(keys),
            "contains": lambda keys=keys: table.contains(keys),
        }[action]
        result = ll.function(run)() if staged else run()
        if action == "insert":
            mirror.update(zip(plain, values.tolist(), strict=True))
        elif action == "remove":
            for key in plain:
                mirror.pop(key, None)
        elif action == "lookup":
            assert result.tolist() == [mirror.get(key, -1) for key in plain]
        else:
            assert result.tolist() == [key in mirror for key in plain]
    exported = table.export()
    assert dict(zip(exported[0].tolist(), exported[1].tolist(), strict=True)) == mirror
    assert len(table) == table.size().item() == len(mirror)
    again = ll.lookup.HashTable("string" if text else "int64", "int32", default_value=-1)
    again.set_state(table.get_state())
    assert [x.tolist() for x in again.export()] == [x.tolist() for x in exported]


def test_rows_as_values_and_keys_of_any_shape() -> None:
    table = ll.lookup.HashTable("int64", shape=(2,))
    table.insert([[1, 2], [3, 4]], np.arange(8, dtype="float32").reshape(2, 2, 2))
    assert table.lookup([[4], [1]]).tolist() == [[[6.0, 7.0]], [[0.0, 1.0]]]
    assert table[2].tolist() == [2.0, 3.0]
    assert 3 in table
    assert 9 not in table
    with pytest.raises(MissingKeyError, match=r"1 of 2 keys are not in the table 'table': 9; insert them"):
        table.lookup([1, 9])
    with pytest.raises(KeyError):
        table.lookup(9)
    assert table.lookup([9], default=[5.0, 6.0]).tolist() == [[5.0, 6.0]]


def test_staged_code_acts_on_the_table_as_it_is() -> None:
    counts = ll.lookup.HashTable("int64", "int32", default_value=0)

    @ll.function
    def count(keys: Any) -> Any:
        before = counts.lookup(keys)
        counts.insert(keys, before + 1)
        return before, counts.lookup(keys), counts.size()

    keys = ll.constant([3, 5])
    assert [x.tolist() for x in count(keys)] == [[0, 0], [1, 1], 2]
    counts.remove(5)
    counts.insert(3, 40)
    assert [x.tolist() for x in count(keys)] == [[40, 0], [41, 1], 2]
    assert count.trace_count == 1
    counts.set_state({"keys": np.array([5]), "values": np.array([7], np.int32)})
    assert [x.tolist() for x in count(keys)] == [[0, 7], [1, 8], 2]
    assert count.trace_count == 1


def test_only_the_branch_that_runs_inserts() -> None:
    table = ll.lookup.HashTable("int64", default_value=0.0)

    @ll.function(autograph=True)
    def visit(i: Any) -> Any:
        if i > 0:
            table.insert(i, 1.0)
        else:
            table.insert(-1, 2.0)
        return table.size()

    assert [visit(ll.constant(i)).item() for i in (3, 4, 0, 0)] == [1, 2, 3, 3]
    assert sorted(table.export()[0].tolist()) == [-1, 3, 4]


def test_each_call_is_atomic() -> None:
    """Two keys always have the same value, although threads write them all the time."""
    table = ll.lookup.HashTable("int64", "int32", default_value=0)
    apart: list[Any] = []

    def work(number: int) -> None:
        for i in range(50):
            value = number * 1000 + i
            table.insert([1, 2], [value, value])
            a, b = table.lookup([1, 2]).tolist()
            if a != b:
                apart.append((a, b))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not apart


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ll.lookup.HashTable("float32"), DTypeError, "integers or"),
        (lambda: ll.lookup.HashTable("int64", "int32", default_value=1.5), DTypeError, "default_value"),
        (lambda: ll.lookup.HashTable("int64", shape=(2,), default_value=1.5), ShapeError, "default_value"),
        (lambda: ll.lookup.HashTable().insert([1.5], [1.0]), DTypeError, "keys are integers"),
        (lambda: ll.lookup.HashTable().insert(["a"], [1.0]), DTypeError, "str|<U1"),
        (lambda: ll.lookup.HashTable().insert([1, 2], [1.0]), ShapeError, r"\(2,\) keys need values of shape \(2,\)"),
        (lambda: ll.lookup.HashTable().insert([1], np.array([1])), DTypeError, "are float32"),
        (lambda: ll.lookup.HashTable("string").insert([1], [1.0]), DTypeError, "keys are strings, got 1"),
        (lambda: ll.lookup.HashTable("string").lookup(ll.constant(1)), DTypeError, "keys are strings"),
        (lambda: ll.lookup.HashTable("string").set_state({}), ArgumentError, "get_state"),
        (
            lambda: ll.lookup.HashTable("string").set_state(ll.lookup.HashTable("int64", "int32").get_state()),
            ArgumentError,
            "saved values are int32",
        ),
    ],
)
def test_what_does_not_fit_is_said(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_states_are_plain_and_copies_are_apart() -> None:
    table = ll.lookup.HashTable("string", "int32", default_value=0)
    table.insert(["é", b"\xff\0"], [1, 2])
    state = table.get_state()
    assert state["values"].tolist() == [1, 2]
    again = ll.lookup.HashTable("string", "int32", default_value=0)
    again.set_state(json.loads(json.dumps({**state, "values": [1, 2]})) | {"values": state["values"]})
    assert again.lookup(["é", b"\xff\0", "\xff\0"]).tolist() == [1, 2, 0]
    for clone in (copy.deepcopy(table), copy.copy(table), pickle.loads(pickle.dumps(table))):
        clone.insert("z", 3)
        assert (len(table), len(clone)) == (2, 3)
        assert clone.lookup(["q", "é"]).tolist() == [0, 1]


def test_a_graph_keeps_no_table_alive() -> None:
    held = [ll.lookup.HashTable("int64", default_value=0.0, name="visits")]
    size = ll.function(lambda: held[0].size() + 0)
    assert size().item() == 0
    concrete = size.trace_cache[0]
    held.clear()
    gc.collect()
    with pytest.raises(DeadVariableError, match="'visits'"):
        concrete()


def test_removed_rows_are_used_again() -> None:
    table = ll.lookup.HashTable("int64", default_value=0.0)
    for key in range(100):
        table.insert(key, float(key))
        table.remove(key - 3)
    assert len(table) == 3
    assert len(table._rows._array) == 8


class Unwalked(dict):
    """A table's places, of which nobody may go through all."""

    def refused(self, *_):
        raise AssertionError("all keys were gone through")

    keys = values = items = __iter__ = copy = refused


@pytest.mark.parametrize("use", ["insert", "lookup", "contains", "remove"])
def test_one_key_takes_no_look_at_the_others(use):
    table = ll.lookup.HashTable("int64", "float32", default_value=0.0)
    table.insert(range(100), np.arange(100, dtype="float32"))
    table._rows._places = Unwalked(zip(range(100), range(100), strict=True))
    arguments = ([7, 200, 200], [1.0, 2.0, 3.0]) if use == "insert" else ([7, 200],)
    getattr(table, use)(*arguments)
    assert table.lookup([7, 200]).tolist() == {"insert": [1.0, 3.0], "remove": [0.0, 0.0]}.get(use, [7.0, 0.0])
    assert len(table) == {"insert": 101, "remove": 99}.get(use, 100)


def test_places_that_were_removed_are_used_again():
    table, expected = ll.lookup.HashTable("int64", "float32", default_value=-1.0), {}
    draw = np.random.default_rng(3)
    for step in range(200):
        keys = draw.integers(0, 60, draw.integers(1, 20)).tolist()
        if step % 3 == 2:
            table.remove(keys)
            expected = {key: x for key, x in expected.items() if key not in keys}
        else:
            values = draw.normal(size=len(keys)).astype("float32")
            table.insert(keys, values)
            expected |= dict(zip(keys, values.tolist(), strict=True))
        found, values = table.export()
        assert dict(zip(found.tolist(), values.tolist(), strict=True)) == expected
        assert list(expected) == found.tolist()
    assert len(table._rows._array) <= 128
