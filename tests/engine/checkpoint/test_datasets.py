"""Checkpoints of datasets: the `for` loops of a resumed run have the orders that were to come."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ArgumentError


def _run(folder, until, *, seed=None):
    """The orders of the epochs that a run, begun or resumed, goes through."""
    ll.random.seed(5)
    data = ll.data.from_sequence(range(12)).shuffle(seed=seed).batch(5)
    progress, orders = ll.State(epoch=0), []
    manager = ll.CheckpointManager({"data": data, "progress": progress}, folder)
    manager.restore()
    while progress.epoch < until:
        orders.append([x.tolist() for x in data])
        progress.epoch += 1
        manager.save()
    return orders


@pytest.mark.parametrize("seed", [None, 1])
def test_the_natural_loop_resumes_with_the_orders_of_a_run_without_a_break(tmp_path, seed):
    whole = _run(tmp_path / "whole", 4, seed=seed)
    assert len({str(order) for order in whole}) == 4
    assert _run(tmp_path / "cut", 2, seed=seed) + _run(tmp_path / "cut", 4, seed=seed) == whole


def test_a_dataset_and_its_iterator_may_both_be_saved(tmp_path):
    data = ll.data.from_sequence(range(9)).shuffle(seed=1)
    iterator = iter(data)
    next(iterator)
    written = ll.Checkpoint(iterator=iterator, data=data).write(tmp_path / "both")
    rest, following = [x.item() for x in iterator], [x.item() for x in data]
    again = ll.data.from_sequence(range(9)).shuffle(seed=1)
    other = iter(again)
    ll.Checkpoint(iterator=other, data=again).restore(written).assert_consumed()
    assert [x.item() for x in other] == rest
    assert [x.item() for x in again] == following


def test_states_of_other_pipelines_and_of_iterators_are_refused():
    data = ll.data.from_sequence(range(9)).shuffle(seed=1)
    with pytest.raises(ArgumentError, match=r"the passes are those of .*seed=1.*, this dataset is"):
        ll.data.from_sequence(range(9)).set_state(data.get_state())
    with pytest.raises(ArgumentError, match="what get_state of a dataset has returned; there is no 'passes' in it"):
        data.set_state(iter(data).get_state())


def test_in_staged_code_they_would_be_told_once():
    data = ll.data.from_sequence([1.0])
    with pytest.raises(ArgumentError, match="get_state of a dataset in staged code would be done once"):
        ll.function(data.get_state)()
    with pytest.raises(ArgumentError, match="set_state of a dataset in staged code would be done once"):
        ll.function(lambda: data.set_state({}))()
