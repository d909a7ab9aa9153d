"""What shows a tensor's memory never lets anybody write into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll

DOORS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda t: t.numpy(),
    "asarray": np.asarray,
    "array without copy": lambda t: t.__array__(copy=False),
    "memoryview": lambda t: np.asarray(memoryview(t.numpy())),
    "view of a view": lambda t: t.numpy()[:1].reshape(-1).view(),
}

MADE: dict[str, Callable[[], Any]] = {
    "constant": lambda: ll.constant([[1.0, 2.0], [3.0, 4.0]]),
    "result": lambda: ll.ones((2, 2)) * 3.0,
    "reshaped": lambda: (ll.ones((4,)) * 3.0).reshape((2, 2)),
    "sliced": lambda: (ll.ones((4, 4)) * 3.0)[1:3, ::2],
    "transposed": lambda: (ll.ones((2, 2)) * 3.0).T,
    "broadcast": lambda: ll.broadcast_to(ll.ones((2,)) * 3.0, (2, 2)),
    "staged": lambda: ll.function(lambda a: (a * 2.0 + 1.0).reshape((2, 2)))(ll.ones((4,))),
    "variable": lambda: ll.Variable(np.ones((2, 2))).read_value(),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_no_array_leads_back_to_writable_memory(door: Callable[[Any], Any], made: Callable[[], Any]) -> None:
    t = made()
    seen = door(t)
    while isinstance(seen, np.ndarray):
        assert not seen.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            seen[...] = 77
        if seen.base is not None:  # only who owns memory may unlock it
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                seen.flags.writeable = True
        seen = seen.base


def test_the_array_that_a_tensor_or_variable_was_made_of_stays_writable() -> None:
    given = np.ones(3)
    t, v = ll.constant(given), ll.Variable(given)
    t.numpy(), v.numpy()
    given[0] = 77
    assert (t.tolist(), v.numpy().tolist()) == ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])


def test_copies_are_their_owners_to_write() -> None:
    t = ll.constant([1.0, 2.0])
    t.numpy()
    for copy in (np.array(t), t.__array__(copy=True), np.from_dlpack(t), np.asarray(t, dtype="float64")):
        if copy.flags.writeable:  # NumPy imports what comes through DLPack as read-only in some versions
            copy[0] = 77
    assert t.tolist() == [1.0, 2.0]
    assert np.array(t).flags.writeable


def test_a_plan_never_writes_into_what_a_python_function_has_seen() -> None:
    seen: list[np.ndarray[Any, Any]] = []

    def look(t: Any) -> Any:
        seen.append(t.numpy())
        return t

    @ll.function
    def f(a: Any) -> Any:
        b = a * 2.0
        c = ll.py_func(look, [b], ll.TensorSpec((3,), "float32"))
        return ll.exp(b + 1.0) + ll.sqrt(c * 2.0)

    x = ll.constant([1.0, 2.0, 3.0])
    first, second = f(x), f(x + 1.0)
    assert [array.tolist() for array in seen] == [[2.0, 4.0, 6.0], [4.0, 6.0, 8.0]]
    assert first.tolist() == f(x).tolist()
    assert second.tolist() != first.tolist()


def test_variables_are_assigned_after_their_value_has_been_seen() -> None:
    v = ll.Variable([1.0, 2.0])
    step = ll.function(lambda: v.assign_add([1.0, 1.0]))
    before = v.numpy()
    step()
    v.assign_sub([3.0, 3.0])
    assert (before.tolist(), v.numpy().tolist()) == ([1.0, 2.0], [-1.0, 0.0])
