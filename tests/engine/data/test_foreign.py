"""Iterators of other libraries: their positions are saved with ours, and they may be used in staged code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_pipelines import through_a_file

import limelight as ll
from limelight.data.foreign import from_plain, to_plain
from limelight.errors import ArgumentError


class LikeGrain:
    """An iterator with `get_state` and `set_state`; its state is bytes, or a dictionary."""

    def __init__(self, n: int, as_bytes: bool) -> None:
        self.n, self.at, self.as_bytes = n, 0, as_bytes

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self.at == self.n:
            raise StopIteration
        self.at += 1
        return {"x": np.float32(self.at), "name": f"row {self.at}"}

    def get_state(self) -> Any:
        return bytes([self.at]) if self.as_bytes else {"next_index": self.at, "rng": (1, None)}

    def set_state(self, state: Any) -> None:
        self.at = state[0] if self.as_bytes else state["next_index"]
        assert self.as_bytes or state["rng"] == (1, None)


class LikeTorchdata:
    """A loader with `state_dict` and `load_state_dict`, which makes iterators; its state holds an array."""

    def __init__(self, n: int) -> None:
        self.n, self.at, self._begin = n, 0, 0

    def __iter__(self) -> Any:
        start, self._begin = self._begin, 0
        for at in range(start + 1, self.n + 1):
            self.at = at
            yield np.full((2,), at, np.float32)

    def state_dict(self) -> Any:
        return {"_num_yielded": self.at, 0: "main", "generator": np.arange(3, dtype=np.uint8)}

    def load_state_dict(self, state: Any) -> None:
        assert state[0] == "main"
        assert state["generator"].dtype == np.uint8
        self._begin = self.at = state["_num_yielded"]


@pytest.mark.parametrize("make", [lambda: LikeGrain(5, True), lambda: LikeGrain(5, False), lambda: LikeTorchdata(5)])
@pytest.mark.parametrize("staged", [False, True])
def test_a_position_is_saved_and_resumed(make: Any, staged: bool) -> None:
    iterator = ll.data.iterate(make())

    def take(iterator: Any) -> Any:
        element = next(iterator)
        return element["x"] if isinstance(element, dict) else element[0]

    if staged and isinstance(make(), LikeGrain):
        with pytest.raises(ArgumentError, match="name"):  # it is text
            ll.function(take)(iterator)
        return
    step = ll.function(take) if staged else take
    assert [step(iterator).item(), step(iterator).item()] == [1.0, 2.0]
    state = through_a_file(iterator.get_state())
    assert [step(iterator).item() for _ in range(3)] == [3.0, 4.0, 5.0]
    with pytest.raises(StopIteration):
        step(iterator)
    again = ll.data.iterate(make())
    again.set_state(state)
    assert [step(again).item() for _ in range(3)] == [3.0, 4.0, 5.0]
    iterator.set_state(state)
    assert step(iterator).item() == 3.0


def test_states_are_made_plain_and_back() -> None:
    state = {"a": (1, [b"\x00\xff", None]), 3: {"x": True}, ("k", 1): np.float32(2.5), "big": 2**100, "nan": "NaN"}
    assert from_plain(through_a_file(to_plain(state))) == state
    assert from_plain(to_plain({})) == {}
    with pytest.raises(ArgumentError, match=r"state\['a'\]\[1\] is a object"):
        to_plain({"a": [1, object()]})


def test_what_does_not_know_its_place_is_refused() -> None:
    with pytest.raises(ArgumentError, match="does not know where it is"):
        ll.data.iterate(iter([1, 2]))
    iterator = iter(ll.data.from_sequence([1]))
    assert ll.data.iterate(iterator) is iterator
