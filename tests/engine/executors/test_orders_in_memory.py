"""Staged numbers are the eager ones to the bit however operands, captures, variables and loop values lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.executors.plan import blocked_groups

Arrays = tuple[Any, Any]


def _strided(a: Any) -> Any:
    wide = np.zeros([2 * n for n in a.shape], a.dtype)
    view = wide[tuple([slice(None, None, 2)] * a.ndim)]
    view[...] = a
    return view


ORDERS: dict[str, Callable[[Any], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "reversed Fortran": lambda a: np.asfortranarray(a[..., ::-1])[..., ::-1],
    "strided": _strided,
}
PROGRAMS: dict[str, Callable[..., Any]] = {
    "rows": lambda x, y: ll.sum(ll.exp(x) * y, 1),
    "mean": lambda x, y: ll.mean(ll.tanh(x) * y - x),
    "both": lambda x, y: ll.sum(ll.exp(x) * ll.exp(y)),
    "product": lambda x, y: ll.sum((x * 2.0) @ ll.transpose(y + 1.0), 0),
    "repeated": lambda x, y: ll.sum(ll.broadcast_to(x[:5, :9], (3, *x[:5, :9].shape)), -1),
    "a row, and cast": lambda x, y: ll.sum(
        ll.broadcast_to(x.reshape((1, -1))[:, :9], (700, min(9, x.size))).astype(ll.float64) / 3.0
    ),
    "a column, and cast": lambda x, y: ll.sum(
        ll.broadcast_to(x.reshape((-1, 1))[:9], (min(9, x.size), 700)).astype(ll.float64) / 3.0
    ),
    "repeated and cast": lambda x, y: ll.sum(ll.broadcast_to(x[:1, :9], (2, *x[:1, :9].shape)).astype(ll.float64), -1),
    "carried": lambda x, y: ll.sum(
        ll.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, ll.tanh(a) * y), (ll.constant(0), x))[1]
    ),
}


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")  # each pair is staged anew on purpose
@pytest.mark.parametrize("executor", ["plan", "auto"])
@pytest.mark.parametrize("shape", [(40, 130), (0, 5)])
def test_numbers_do_not_depend_on_who_runs_it(executor: str, shape: tuple[int, ...]) -> None:
    draws = np.random.default_rng(0)
    whole = [draws.normal(size=shape).astype(np.float32) for _ in range(2)]
    pairs = [("Fortran", "C"), ("Fortran", "Fortran"), ("reversed", "reversed Fortran")]
    pairs += [("reversed Fortran", "strided"), ("strided", "reversed")]
    wrong = []
    for orders in pairs:
        x, y = (ll.constant(ORDERS[order](a)) for order, a in zip(orders, whole, strict=True))
        v, w = ll.Variable(x), ll.Variable(y)
        for name, program in PROGRAMS.items():
            wanted = np.asarray(program(x, y)).tobytes()
            with ll.config.executor(executor):
                made = {
                    "operand": ll.function(program)(x, y),
                    "capture": ll.function(lambda program=program, x=x, y=y: program(x, y))(),
                    "variable": ll.function(lambda program=program, v=v, w=w: program(v, w))(),
                }
            wrong += [(*orders, name, how) for how, r in made.items() if np.asarray(r).tobytes() != wanted]
    assert not wrong


def test_a_large_group_of_operands_in_fortran_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block its result would lie in C order, where NumPy has it as its operands."""
    monkeypatch.setattr(blocked_groups, "SMALLEST", 1000)
    draws = np.random.default_rng(1)
    x, y = (ll.constant(np.asfortranarray(draws.normal(size=(70, 90)).astype(np.float32))) for _ in range(2))

    def program(x: Any, y: Any) -> Any:
        return ll.sum(ll.tanh(ll.exp(x) * y + x), 1)

    with ll.config.executor("plan"):
        staged = ll.function(program)(x, y)
    assert np.asarray(staged).tobytes() == np.asarray(program(x, y)).tobytes()
