"""Messages call operands what the user's line calls them, where that line is the op; else by a placeholder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import DTypeError

count = ll.constant([1, 2])
rate = ll.ones((2,))


def updated() -> Any:
    total = count
    total += rate
    return total


def in_a_loop() -> Any:
    total = ll.constant(0)
    for x in rate:
        total = total + x
    return total


def over_lines() -> Any:
    return (
        count  # a comment
        * rate
    )


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda: count + rate, "count"),
        (lambda: rate - count, "count"),
        (lambda: 0.5 * count, "count"),
        (lambda: (rate * 2)[0] * count[0] + rate, "count[0]"),
        (lambda: rate < count, "count"),
        (lambda: ll.add(count, rate), "count"),
        (lambda: rate / (count + 1), "count + 1"),
        (updated, "total"),
        (in_a_loop, "total"),
        (over_lines, "count"),
        (lambda: ll.stack([count, rate]), None),
        (lambda: ll.kron(count, rate), None),  # in which something else is multiplied
        (lambda: ll.nn.relu(count + rate) + (count * 1 + 0 * 1 + 0 * 1 + 0 * 1 + 0 * 1 + 0 * 1), "count"),
        (lambda: (count * 1 + 0 * 1 + 0 * 1 + 0 * 1 + 0 * 1 + 0 * 1 + 0 * 1 + 0 * 1) + rate, None),
    ],
)
def test_the_operand_that_should_change_is_named(f: Callable[[], Any], name: str | None) -> None:
    """Eagerly, staged, and in converted code."""
    for run in (f, ll.function(lambda: f()), ll.function(f, autograph=True)):  # noqa: PLW0108
        with pytest.raises(DTypeError, match="do not mix") as caught:
            run()
        assert f"ll.astype({name or 'x'}, ll.float32)" in str(caught.value)


def test_what_an_op_does_not_take_is_named_where_it_is_one_operand() -> None:
    with pytest.raises(DTypeError, match=r"got float32; write ll.astype\(rate, ll.int32\) first"):
        rate & 1
    with pytest.raises(DTypeError, match=r"got float32; write ll.astype\(x, ll.int32\) first"):
        rate & rate
    with pytest.raises(DTypeError, match=r"got int32; write ll.astype\(count, ll.float32\) first"):
        ll.sqrt(count)


def test_at_run_time_the_line_is_another() -> None:
    """An op of a graph does not take the operands of the line that calls it for its own."""
    f = ll.function(lambda a: ll.py_func(lambda t: t + count, [a], ll.float32))
    with pytest.raises(DTypeError, match=r"ll.astype\(count, ll.float32\)"):
        f(rate) + count


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_of_plain_values_that_do_not_fit_the_value_is_named(stage: Callable[[Any], Any]) -> None:
    flag = True
    for run, remedy in [
        (lambda: rate * flag, "write float(flag)"),
        (lambda: flag + count, "write int(flag)"),
        (lambda: count & 2.0, "write int(2.0)"),
        (lambda: ll.where(rate > 0, rate, flag), "write float(True)"),
    ]:
        with pytest.raises(DTypeError, match="do not mix") as caught:
            stage(run)()
        assert remedy in str(caught.value)
