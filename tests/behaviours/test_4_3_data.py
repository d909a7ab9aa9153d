"""Section 4.3, state: behaviours 96, 97 and 104, which are about iterators and tables."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import limelight as ll

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])


def dataset() -> Any:
    rows = ll.data.from_arrays((np.arange(20, dtype=np.float32), np.arange(20)))
    return rows.shuffle(seed=3).batch(3).prefetch(2)


# 96 The position of an iterator


@both
def test_096_an_iterator_saved_in_the_middle_resumes_at_the_next_element_in_its_order(stage: Any) -> None:
    iterator = iter(dataset())
    take = stage(lambda: next(iterator))
    before = [take()[1].tolist() for _ in range(3)]
    state = iterator.get_state()
    after = [take()[1].tolist() for _ in range(4)]
    assert sorted(i for batch in before + after for i in batch) == list(range(20))
    resumed = iter(dataset())  # as in another process
    resumed.set_state(state)
    go_on = stage(lambda: next(resumed))
    assert [go_on()[1].tolist() for _ in range(4)] == after
    with pytest.raises(StopIteration):
        go_on()


@both
def test_096_going_back_to_an_earlier_point(stage: Any) -> None:
    iterator = iter(dataset())
    take = stage(lambda: next(iterator)[1])
    states, elements = [], []
    for _ in range(5):
        states.append(iterator.get_state())
        elements.append(take().tolist())
    for i in (4, 0, 2):
        iterator.set_state(states[i])
        assert [take().tolist() for _ in range(5 - i)] == elements[i:]


def test_096_an_iterator_used_in_staged_code_and_outside_has_one_position() -> None:
    iterator = iter(ll.data.from_sequence(range(6)))
    take = ll.function(lambda: next(iterator))
    assert [f().item() for f in (take, lambda: next(iterator), take)] == [0, 1, 2]
    state = iterator.get_state()
    assert take().item() == 3
    iterator.set_state(state)
    assert take().item() == 3
    assert next(iterator).item() == 4


# 97 Hash tables


@both
def test_097_a_table_acts_at_once(stage: Any) -> None:
    table = ll.lookup.HashTable("int64", "float32", default_value=-1.0)

    def step(keys: Any, values: Any) -> Any:
        missed = table.lookup(keys)
        table.insert(keys, values)
        found = table.lookup(keys)
        table.remove(keys[:1])
        return missed, found, table.lookup(keys), table.size()

    step = stage(step)
    keys, values = ll.constant([5, 6]), ll.constant([0.5, 0.25])
    assert [x.tolist() for x in step(keys, values)] == [[-1.0, -1.0], [0.5, 0.25], [-1.0, 0.25], 1]
    table.insert(5, 9.0)  # the live table
    assert step(keys, values)[0].tolist() == [9.0, 0.25]


@both
def test_097_strings_and_the_state_of_a_table(stage: Any) -> None:
    words = ll.lookup.HashTable("string", "int32", default_value=0)
    read = stage(lambda: words.lookup(["the", "cat", "sat"]))
    words.insert(["the", "cat"], [1, 2])
    state = words.get_state()
    assert read().tolist() == [1, 2, 0]
    words.insert(["the", "sat"], [7, 8])
    assert read().tolist() == [7, 2, 8]
    words.set_state(state)
    assert read().tolist() == [1, 2, 0]
    assert len(words) == 2


# 104 Restoring does not retrace


def test_104_restoring_an_iterator_or_a_table_keeps_trace_counts() -> None:
    iterator, table = iter(dataset()), ll.lookup.HashTable("int64", "int32", default_value=0)

    @ll.function
    def step() -> Any:
        keys = next(iterator)[1]
        table.insert(keys, table.lookup(keys) + 1)
        return ll.sum(table.lookup(keys))

    states = iterator.get_state(), table.get_state()
    first = [step().item() for _ in range(7)]
    for _ in range(3):
        iterator.set_state(states[0])
        table.set_state(states[1])
        gc.collect()
        assert [step().item() for _ in range(7)] == first
    assert step.trace_count == 1
