"""A portrait tells whether an object holds what it held, by type and value."""

from __future__ import annotations

import copy
from collections import OrderedDict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight_kernel.inputs.portraits import portrait

PLAIN = st.one_of(st.integers(-3, 3), st.booleans(), st.floats(), st.text(max_size=2), st.none())
HOLDERS: list[Any] = [list, deque, lambda x: {str(i): y for i, y in enumerate(x)}, lambda x: SimpleNamespace(a=list(x))]


@given(items=st.lists(PLAIN, max_size=5), holder=st.sampled_from(HOLDERS))
def test_what_is_left_alone_is_still_the_same(items: list[Any], holder: Any) -> None:
    value = holder([holder(items), *items])
    assert portrait(value).still(value)


@given(items=st.lists(PLAIN, min_size=1, max_size=5), new=PLAIN, data=st.data())
def test_another_item_is_seen(items: list[Any], new: Any, data: st.DataObject) -> None:
    value = [[list(items)], 1]
    before = portrait(value)
    at = data.draw(st.integers(0, len(items) - 1))
    value[0][0][at] = new
    alike = type(new) is type(items[at]) and repr(new) == repr(items[at])
    assert before.still(value) == (alike or new is items[at])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], [True]),
        ([0.0], [-0.0]),
        ([1], [1.0]),
        (deque([1]), [1]),
        ({"a": 1}, OrderedDict(a=1)),
        (np.array([1.0]), np.array([2.0])),
        (np.array(["a"]), np.array(["b"])),
        (np.array([1, None], object), np.array([2, None], object)),
        (bytearray(b"a"), bytearray(b"b")),
        ({"a"}, {"b"}),
    ],
)
def test_types_and_contents_count(one: Any, other: Any) -> None:
    assert portrait(one).still(copy.copy(one))
    assert not portrait(one).still(other)


def test_what_holds_itself_has_a_portrait() -> None:
    value: list[Any] = [1]
    value.append(value)
    before = portrait(value)
    assert before.still(value)
    value[0] = 2
    assert not before.still(value)
