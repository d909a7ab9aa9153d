"""Gathers and scatters in tables: places that only a run knows, checked as it runs; the plan's numbers to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from staged_on_loops import bits, in_tables, staged

import limelight as ll
from limelight.errors import LimelightError
from limelight.executors.loops.gathers import picked, put, take, take_along_axis
from limelight.executors.loops.instructions import Instructions, NotLowered
from limelight.executors.loops.layout import GivenBuffer, View, contiguous
from limelight.executors.loops.native_loops import native
from limelight.executors.loops.program import table

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((7, 5, 3)).astype("f4")
TABLE = RANDOM.standard_normal((7, 16)).astype("f4")
WORDS = RANDOM.integers(-7, 7, (4, 300))
LABELS = RANDOM.integers(0, 16, 7)
FRONT = np.abs(WORDS) % 7


def embedded(words: Any, rows: Any) -> Any:
    """A loss of looked-up rows, and its gradient."""
    with ll.GradientTape() as tape:
        tape.watch(rows)
        loss = ll.sum(ll.tanh(ll.nn.embedding(rows, words, sparse=False)) ** 2)
    return loss, tape.gradient(loss, rows)


def classified(labels: Any, scores: Any) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(scores)
        loss = ll.mean(ll.nn.softmax_cross_entropy(scores * 2.0, labels))
    return loss, tape.gradient(loss, scores)


def taken(words: Any, rows: Any) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(rows)
        y = ll.take(ll.transpose(rows) * 2.0, words, axis=1)
        loss = ll.sum(y * y)
    return y, tape.gradient(loss, rows)


def indexed(words: Any, rows: Any) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(rows)
        doubled = rows * 2.0
        y = doubled[words, 0] * doubled[words, 1] + doubled[words][..., 2]
        loss = ll.sum(y)
    return y, tape.gradient(loss, rows)


def along(words: Any, rows: Any) -> Any:
    with ll.GradientTape() as tape:
        tape.watch(rows)
        y = ll.take_along_axis(rows * 2.0, words, axis=0)
        loss = ll.sum(y**2)
    return y, tape.gradient(loss, rows)


def stepped(words: Any, rows: Any) -> Any:
    """A loop that reads the row of its counter, and its gradient."""
    with ll.GradientTape() as tape:
        tape.watch(rows)
        y = ll.scan(lambda c, i: (ll.tanh(c + rows[i]), ll.sum(c)), rows[0], words[0, :9])[0]
        loss = ll.sum(y)
    return y, tape.gradient(loss, rows)


def from_front(words: Any, rows: Any) -> Any:
    return ll.nn.embedding(rows, words, negative=False) * 2.0


CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "embedded": (embedded, WORDS),
    "embedded, few": (embedded, WORDS[:2, :3]),
    "classified": (classified, LABELS),
    "taken": (taken, WORDS[0]),
    "indexed": (indexed, WORDS[0]),
    "along": (along, WORDS[:, :16]),
    "stepped": (stepped, WORDS),
    "from_front": (from_front, FRONT),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_the_bits_of_the_plan_in_one_table(name: str, dtype: str) -> None:
    function, places = CASES[name]
    args = ll.constant(places.astype(dtype)), ll.constant(TABLE)
    run = staged(function, *args)
    tables, others = in_tables(run)
    assert (len(tables), others) == (1, set())
    assert bits(run(*args)) == bits(staged(function, *args, executor="plan")(*args))


@pytest.mark.parametrize("name", CASES)
def test_a_place_that_is_not_there_is_the_plans_error(name: str) -> None:
    function, places = CASES[name]
    wrong = np.array(places)
    wrong.reshape(-1)[-1 if name != "stepped" else 8] = 700
    said = []
    for executor in ("loops", "plan"):
        run = staged(function, ll.constant(places), ll.constant(TABLE), executor=executor)
        with pytest.raises(LimelightError) as error:
            run(ll.constant(wrong), ll.constant(TABLE))
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]


def test_a_negative_row_is_refused_where_it_is_not_wanted() -> None:
    run = staged(from_front, ll.constant(FRONT), ll.constant(TABLE))
    with pytest.raises(LimelightError, match="below 0"):
        run(ll.constant(FRONT - 1), ll.constant(TABLE))


# By themselves


def made(write: Callable[[list[View], Instructions], View], *arrays: np.ndarray) -> Any:
    """What a table of these instructions returns."""
    to = Instructions()
    views = [
        View(GivenBuffer(x.nbytes, value="given"), 0, x.shape, contiguous(x.shape, x.itemsize), x.dtype) for x in arrays
    ]
    result = write(views, to)
    return table(views, [result], to.list, lambda *_: ("refused",))(*arrays)[0]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (1,)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "c16"])
def test_take(axis: int, shape: tuple[int, ...], dtype: str) -> None:
    x, places = X.astype(dtype), RANDOM.integers(-3, 3, shape)
    found = made(lambda views, to: take(*views, axis, to), x, np.asarray(places))
    assert found.tobytes() == x.take(places, axis).tobytes()


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(7, 5, 3), (1, 5, 3), (7, 1, 1), (1, 1, 1)])
def test_take_along_axis(axis: int, shape: tuple[int, ...]) -> None:
    sizes = [4 if i == axis else n for i, n in enumerate(shape)]
    places = RANDOM.integers(-3, 3, sizes)
    found = made(lambda views, to: take_along_axis(*views, axis, to), X, places)
    wanted = np.take_along_axis(X, places, axis)
    assert (found.tobytes(), found.strides) == (wanted.tobytes(), wanted.strides)


ALL = slice(None)


@pytest.mark.parametrize("marks", ["i..", ".i.", "..i", "ii.", "iii"])
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_an_index_has_the_order_of_memory_that_numpy_gives_it(marks: str, shape: tuple[int, ...]) -> None:
    places = [RANDOM.integers(-3, 3, shape) for _ in range(marks.count("i"))]

    def key(arrays: list[Any]) -> list[Any]:
        feed = iter(arrays)
        return [next(feed) if mark == "i" else ALL for mark in marks]

    found = made(lambda views, to: picked(views[0], key(views[1:]), to), X, *places)
    wanted = X[tuple(key(places))]
    assert (found.tobytes(), found.strides) == (wanted.tobytes(), wanted.strides)


@pytest.mark.parametrize("marks", [".ii", "i.i"])
def test_other_indexes_are_refused(marks: str) -> None:
    x = View(GivenBuffer(X.nbytes, value="given"), 0, X.shape, X.strides, X.dtype)
    place = View(GivenBuffer(8, value="given"), 0, (1,), (8,), np.dtype("i8"))
    with pytest.raises(NotLowered, match="indexed by arrays"):
        picked(x, [place if mark == "i" else ALL for mark in marks], Instructions())


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "c8", "c16", "u1"])
@pytest.mark.parametrize("name", ["put", "add"])
@pytest.mark.parametrize("count", [1, 3])
def test_put_and_add_at_places_that_come_again(name: str, dtype: str, count: int) -> None:
    places = [RANDOM.integers(-3, 3, 40) for _ in range(count)]
    value = (RANDOM.standard_normal((40, *X.shape[count:])) * 30).astype(dtype)
    x = X.astype(dtype)

    def write(views: list[View], to: Instructions) -> View:
        out = to.copied(views[0])
        put(out, [*views[2:], *[ALL] * (3 - count)], views[1], to, name)
        return out

    wanted = x.copy()
    if name == "add":
        if dtype == "u1":
            with pytest.raises(NotLowered, match="added up at places"):
                made(write, x, value, *places)
            return
        np.add.at(wanted, tuple(places), value)
    else:
        wanted[tuple(places)] = value
    assert made(write, x, value, *places).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("place", [3, -4, 2**62, -(2**63)])
@pytest.mark.parametrize("name", ["gather", "put", "add"])
def test_no_place_leads_outside(name: str, place: int) -> None:
    x = np.zeros((3, 2), "f4")

    def write(views: list[View], to: Instructions) -> View:
        if name == "gather":
            return take(views[0], views[1], 0, to)
        out = to.copied(views[0])
        put(out, [views[1], ALL], views[0], to, name)
        return out

    assert made(write, x, np.array([0, place, 1])) == "refused"


def test_rows_outside_of_an_array_are_refused_when_the_table_is_made() -> None:
    loop = native().row_loop("gather", np.dtype("f4").num, 8)
    place = (np.dtype("i8").num, (3,), (8,))
    rows = (np.dtype("f4").num, (3, 2), (8, 4))
    flag = (np.dtype("?").num, (), ())

    def tried(size: int, stride: int) -> Any:
        call = (loop, (0, 0, 1, 0, 3, 0, 2, 0), (3, size), (0, 8, 0, 8, stride), ())
        return native().Table((rows, place), (), (rows, flag), 0, [call], lambda *_: "refused")

    tried(3, 8)
    for size, stride in ((4, 8), (3, 16), (2, -8)):
        with pytest.raises(ValueError, match="leaves the memory"):
            tried(size, stride)
    with pytest.raises(ValueError, match="positive number of bytes"):
        native().row_loop("gather", np.dtype("f4").num, 6)
    assert native().row_loop("multiply", np.dtype("f4").num, 8) is None
