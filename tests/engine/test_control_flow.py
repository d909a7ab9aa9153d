"""Control flow: what does not add up."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import limelight as ll
from limelight.errors import (
    ArgumentError,
    ControlFlowError,
    LimelightError,
)

Clean = Any  # the fixture of conftest.py

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

v3 = ll.ones((3,))
one = ll.constant(1.0)


def line_of(f: Callable[..., Any], offset: int = 0) -> str:
    """How errors name a line of a function of this file: by default its first."""
    return f"test_control_flow.py line {f.__code__.co_firstlineno + offset}"


class Mistake(NamedTuple):
    """A function that makes a mistake, the tensors to call it with, and what it should raise."""

    make: Callable[..., Any]
    given: tuple[Any, ...]
    error: type[LimelightError]
    message: str


# --- Control flow


FLOW = [
    Mistake(
        lambda a: ll.cond(a > 0, lambda: a, lambda: ll.astype(a, "int32")),
        (one,),
        ControlFlowError,
        "output 0 is f32.*i32",
    ),
    Mistake(lambda a: ll.cond(a > 0, lambda: (a, a), lambda: a), (one,), ControlFlowError, "different structures"),
    Mistake(lambda a: ll.cond(a > 0, lambda: None, lambda: a), (one,), ControlFlowError, "different structures"),
    Mistake(
        lambda a: ll.cond(a > 0, lambda: a, lambda: ll.ones((2,))),
        (one,),
        ControlFlowError,
        "dtypes and ranks must agree",
    ),
]
FLOW_ALSO_EAGERLY = [
    Mistake(
        lambda a: ll.cond(a, lambda: a, lambda: a), (one,), ControlFlowError, r"a boolean with one element, got f32\[\]"
    ),
    Mistake(lambda a: ll.cond(a > 0, lambda: a, lambda: a), (v3,), ControlFlowError, r"one element, got bool\[3\]"),
    Mistake(lambda a: ll.cond(a > 0, a, a), (one,), ArgumentError, "true_fn must be a function, got"),
    Mistake(lambda a: ll.while_loop(lambda i: i < 3, a, (a,)), (one,), ArgumentError, "body must be a function"),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i, a), (one,), ControlFlowError, "must be a tuple or list"
    ),
    Mistake(lambda a: ll.while_loop(lambda i: i, lambda i: i, (a,)), (one,), ControlFlowError, "one boolean, got f32"),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: (i, i), (a,)),
        (one,),
        ControlFlowError,
        r"structure \(\*,\) on entry and \(\(\*, \*\),\)",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, j: i < 3, lambda i, j: None, (a, a)), (one,), ControlFlowError, "got NoneType"
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i["x"] < 3, lambda i: {"y": i["x"]}, ({"x": a},)),
        (one,),
        ControlFlowError,
        r"structure \(\{x: \*\},\) on entry and",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: ll.astype(i, "float64"), (a,)),
        (one,),
        ControlFlowError,
        r"`loop_vars\[0\]` is f32\[\] on entry and f64\[\] after one iteration",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, ll.stack([j, j])), (a, a)),
        (one,),
        ControlFlowError,
        r"`loop_vars\[1\]` is f32\[\] on entry and f32\[2\] after one iteration",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i + 1, (a,), maximum_iterations=-1),
        (one,),
        ArgumentError,
        "maximum_iterations must be a number from 0 on, or None, got -1",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i + 1, (a,), shape_invariants=[(), ()]),
        (one,),
        ControlFlowError,
        "2 shape_invariants for 1 loop variables",
    ),
]


@pytest.mark.parametrize("mistake", FLOW + FLOW_ALSO_EAGERLY, ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_control_flow_that_does_not_add_up(mistake: Mistake, clean: Clean) -> None:
    f = ll.function(mistake.make)
    for run in (f, mistake.make) if mistake in FLOW_ALSO_EAGERLY else (f,):
        with clean(f), pytest.raises(mistake.error, match=mistake.message) as caught:
            run(*mistake.given)
        assert line_of(mistake.make) in str(caught.value)
