"""Iterators of other libraries that know where they are, and their states as plain Python and arrays.

Grain's iterators have `get_state` and `set_state`, torchdata's loaders `state_dict` and `load_state_dict`. What such a
state holds beyond JSON and arrays (bytes, tuples, keys that are no strings, PyTorch's tensors) is written as a
dictionary with one key that says what it was.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from limelight.errors import ArgumentError

_MARK: Final = "limelight:"


class Stateful:
    """An iterator, or a loader that makes them, with one pair of names for its state.

    Args:
        of: what the user has given.
    """

    def __init__(self, of: Any) -> None:
        self.of = of
        self._by_dict = not hasattr(of, "get_state")
        self._iterator: Any = of if isinstance(of, Iterator) else None

    def next(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self.of)
        return next(self._iterator)

    def state(self) -> Any:
        return to_plain(self.of.state_dict() if self._by_dict else self.of.get_state())

    def restore(self, state: Any) -> None:
        given = from_plain(state)
        if self._by_dict:
            self.of.load_state_dict(given)
        else:
            self.of.set_state(given)
        if self._iterator is not self.of:  # a loader goes on from its state with the next iterator
            self._iterator = None


def knows_its_place(x: Any) -> bool:
    """Whether `x` can be iterated, and has one of the pairs of methods."""
    pairs = (("get_state", "set_state"), ("state_dict", "load_state_dict"))
    return hasattr(x, "__iter__") and any(hasattr(x, a) and hasattr(x, b) for a, b in pairs)


def to_plain(state: Any, path: str = "state") -> Any:
    """A state as dictionaries with string keys, lists, numbers, strings, None and NumPy arrays.

    Raises ArgumentError for anything that cannot be written so, naming its place.
    """
    if state is None or type(state) in (bool, int, float, str):
        return state
    if isinstance(state, (np.ndarray, np.generic)):
        return np.array(state)
    if isinstance(state, bytes):
        return {f"{_MARK}bytes": base64.b64encode(state).decode()}
    if isinstance(state, (list, tuple)):
        items = [to_plain(x, f"{path}[{i}]") for i, x in enumerate(state)]
        return items if type(state) is list else {f"{_MARK}tuple": items}
    if isinstance(state, dict):
        return _plain_dict(state, path)
    if type(state).__module__.partition(".")[0] == "torch" and hasattr(state, "numpy"):
        return {f"{_MARK}torch": np.array(state.detach().cpu().numpy())}
    raise ArgumentError(
        f"iterate: the iterator's {path} is a {type(state).__name__}, which is neither plain Python nor an array, and "
        "so is not saved"
    )


def _plain_dict(state: dict[Any, Any], path: str) -> Any:
    if all(type(key) is str and not key.startswith(_MARK) for key in state):
        return {key: to_plain(x, f"{path}[{key!r}]") for key, x in state.items()}
    pairs = [[to_plain(key, path), to_plain(x, f"{path}[{key!r}]")] for key, x in state.items()]
    return {f"{_MARK}dict": pairs}


def from_plain(state: Any) -> Any:
    """The inverse of `to_plain`."""
    if isinstance(state, list):
        return [from_plain(x) for x in state]
    if not isinstance(state, dict):
        return state
    kind = next(iter(state), "")
    if len(state) != 1 or not kind.startswith(_MARK):
        return {key: from_plain(x) for key, x in state.items()}
    kind, inside = kind.removeprefix(_MARK), state[kind]
    if kind == "bytes":
        return base64.b64decode(inside)
    if kind == "tuple":
        return tuple(from_plain(inside))
    if kind == "dict":
        return {from_plain(key): from_plain(x) for key, x in inside}
    return sys.modules["torch"].from_numpy(np.array(inside))  # whose loader is to take it, so it is imported
