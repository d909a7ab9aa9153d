"""Whether a container holds what it held, by identity, and putting that back."""

import collections

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from limelight.autograph.container_snapshots import Snapshot

KINDS = [list, collections.deque, set, bytearray, np.array, dict.fromkeys, collections.OrderedDict.fromkeys]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__qualname__)
@hypothesis.given(st.lists(st.integers(0, 200), unique=True), st.lists(st.integers(0, 200), min_size=1, unique=True))
@hypothesis.settings(max_examples=15)
def test_changes_are_seen_and_undone(kind, before, after):
    container, expected = kind(before), kind(before)
    snapshot = Snapshot(container)
    assert Snapshot.fits(container)
    assert not snapshot.has_changed()
    if kind is np.array:
        container += 1
    elif isinstance(container, dict):
        container.update(dict.fromkeys(after, 1))
    else:
        container.update(after) if kind is set else container.extend(after)
    assert snapshot.has_changed() == (list(container) != list(expected) or isinstance(container, dict))
    snapshot.restore()
    assert set(container) == expected if kind is set else list(container) == list(expected)
    assert not snapshot.has_changed()


def test_an_equal_element_in_place_of_another_is_a_change():
    container = [float("1.5")]
    snapshot = Snapshot(container)
    container[0] = float("1.50")
    assert snapshot.has_changed()


def test_large_arrays_and_arrays_of_objects_are_not_copied():
    assert not Snapshot.fits(np.zeros(1 << 20))
    assert not Snapshot.fits(np.array([None]))
    assert not Snapshot.fits((1, 2))
