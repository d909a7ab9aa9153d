"""`ll.TensorArray`: filled eagerly, in functions, in loops of all kinds; what it refuses."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import (
    ArgumentError,
    ControlFlowError,
    DTypeError,
    LostChangeWarning,
    OutOfBoundsError,
    ShapeError,
)

X = ll.constant([1.0, 2.0])
WANTED = [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]]


def row(i, x):
    return x * ll.astype(i, ll.float32)


def unrolled(x, n):
    ta = ll.TensorArray(ll.float32, 3)
    for i in range(3):
        ta = ta.write(i, x * float(i))
    return ta


def in_while_loop(x, n):
    start = (ll.constant(0), ll.TensorArray(ll.float32, n, (2,)))
    return ll.while_loop(lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, row(i, x))), start)[1]


def in_scan(x, n):
    start = ll.TensorArray(ll.float32, n, (2,))
    return ll.scan(lambda ta, i: (ta.write(i, row(i, x)), None), start, ll.arange(3))[0]


@ll.function(autograph=True)
def in_for(x, n):
    ta = ll.TensorArray(ll.float32, n)
    for i in range(n):
        ta = ta.write(i, row(i, x))
    return ta


@ll.function(autograph=True)
def in_while(x, n):
    ta = ll.TensorArray(ll.float32, size=n)
    i = ll.constant(0)
    while i < n:
        ta = ta.write(i, row(i, x))
        i = i + 1
    return ta


FILLED = [unrolled, in_while_loop, in_scan, in_for, in_while]


@pytest.mark.parametrize("staged", [False, True], ids=["as it is", "staged"])
@pytest.mark.parametrize("fill", FILLED, ids=lambda f: getattr(f, "__name__", None) or f.name)
def test_every_loop_fills_it_and_leads_gradients_through(fill, staged):
    run = ll.function(fill) if staged else fill
    n = ll.constant(3)
    assert run(X, n).stack().tolist() == WANTED
    assert ll.grad(lambda x: ll.sum(run(x, n).stack() ** 2))(X).tolist() == [10.0, 20.0]
    batch = ll.vectorize(lambda x: run(x, n).stack())(ll.stack([X, X * 2.0]))
    assert batch[1].tolist() == (2 * np.array(WANTED)).tolist()


def test_it_is_an_argument_and_a_result_of_staged_functions():
    F = ll.function(lambda ta, x: (ta.write(1, x), {"read": ta.read(0)}))
    ta, read = F(ll.TensorArray(ll.float32, 2, (2,)).write(0, X), X * 3.0)
    assert ta.stack().tolist() == [[1.0, 2.0], [3.0, 6.0]]
    assert read["read"].tolist() == [1.0, 2.0]
    F(ta, X)
    assert F.trace_count == 1


def test_what_one_method_takes_apart_another_puts_together():
    x = ll.reshape(ll.arange(6.0), (3, 2))
    ta = ll.TensorArray(ll.float32, 3).unstack(x)
    assert ta.stack().tolist() == x.tolist()
    assert ta.gather([2, 0]).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert ta.concat().tolist() == x.reshape((-1,)).tolist()
    assert ll.TensorArray(ll.float32, 3).split(ta.concat(), [2, 2, 2]).stack().tolist() == x.tolist()
    assert ll.TensorArray(ll.float32, 3).scatter([2, 0, 1], x).gather([2, 0, 1]).tolist() == x.tolist()
    assert (ta.size().item(), ta.dtype, ta.element_shape) == (3, ll.float32, (2,))


def test_writing_leaves_the_array_as_it_was_and_the_last_write_stays():
    before = ll.TensorArray(ll.int32, 2, ())
    after = before.write(0, 1).write(0, 2)
    assert (before.stack().tolist(), after.stack().tolist()) == ([0, 0], [2, 0])
    with pytest.raises(AttributeError, match=r"immutable; write ta = ta\.write"):
        before.rows = after.rows


def test_an_array_of_dynamic_size_grows():
    ta = ll.TensorArray(ll.float32, dynamic_size=True)
    for i in range(3):
        ta = ta.write(i, float(i))
    assert ta.stack().tolist() == [0.0, 1.0, 2.0]
    assert ta.scatter([4], [7.0]).stack().tolist() == [0.0, 1.0, 2.0, 0.0, 7.0]
    assert ta.unstack([5.0]).stack().tolist() == [5.0]
    unrolled_in_a_trace = ll.function(lambda x: ta.write(3, x).stack())
    assert unrolled_in_a_trace(ll.constant(9.0)).tolist() == [0.0, 1.0, 2.0, 9.0]
    with pytest.raises(
        ArgumentError, match=r"cannot grow to an index that is known only at run time; .*TensorArray\(dtype, n\)"
    ):
        ll.function(lambda i: ta.write(i, 1.0))(ll.constant(3))


HUGE = np.array([2**64 - 1], np.uint64)


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("method", ["gather", "scatter", "read", "write"])
def test_an_index_of_any_dtype_is_taken_as_it_is(method, staged):
    ta = ll.TensorArray(ll.float32, 300).unstack(ll.arange(300.0))
    arguments = [] if method in ("gather", "read") else [[7.0]] if method == "scatter" else [7.0]

    def call(indices):
        result = getattr(ta, method)(indices if method in ("gather", "scatter") else indices[0], *arguments)
        return result.stack() if arguments else result

    f = ll.function(call) if staged else call
    for dtype in ("uint8", "int8", "uint64"):  # of which the first two do not hold the size
        assert f(np.array([100], dtype)).numpy().ravel()[100 if arguments else 0] == (7.0 if arguments else 100.0)
    with pytest.raises(OutOfBoundsError, match="no index 18446744073709551615 in"):
        f(HUGE)


def test_an_array_of_dynamic_size_does_not_grow_to_a_size_beyond_int32():
    ta = ll.TensorArray(ll.float32, dynamic_size=True, element_shape=())
    for grow in (lambda: ta.scatter(HUGE, [1.0]), lambda: ta.write(2**31 - 1, 1.0)):
        with pytest.raises(OutOfBoundsError, match="is too large; the last is 2147483646"):
            grow()


TWO = ll.TensorArray(ll.float32, 2, (2,))
REFUSED = {
    "an index beyond the end": (lambda: TWO.write(2, X), OutOfBoundsError, "there is no index 2 in <TensorArray of 2"),
    "an index from the end": (lambda: TWO.read(-1), OutOfBoundsError, "no index -1"),
    "a tensor beyond the end": (lambda: TWO.read(ll.constant(5)), OutOfBoundsError, "no index 5"),
    "staged, beyond the end": (lambda: ll.function(TWO.read)(ll.constant(5)), OutOfBoundsError,
     "no index 5 in a TensorArray of 2"),
    "staged, from the end": (lambda: ll.function(TWO.read)(ll.constant(-1)), OutOfBoundsError,
     r"no index -1 .*write array.size\(\) - 1"),
    "a number as an index": (lambda: TWO.read(0.5), ArgumentError, "an integer scalar"),
    "another shape": (lambda: TWO.write(0, 1.0), ShapeError, r"have shape \(2,\), got one of \(\)"),
    "another dtype": (lambda: TWO.write(0, ll.constant([1, 2])), DTypeError, "write ll.astype"),
    "reading nothing": (lambda: ll.TensorArray(ll.float32, 2).stack(), ArgumentError, "give element_shape"),
    "too many": (lambda: TWO.unstack(ll.zeros((3, 2))), ShapeError, "has 3 elements, the array 2"),
    "unequal pieces": (lambda: TWO.split(ll.zeros(3), [1, 2]), ShapeError, "must be equal"),
    "joined scalars": (lambda: ll.TensorArray(ll.float32, 2, ()).concat(), ShapeError, "use stack"),
    "a negative size": (lambda: ll.TensorArray(ll.float32, -1), ArgumentError, "must not be negative"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    run, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        run()


def test_gradients_go_to_the_write_that_stayed():
    def f(x, y):
        return ll.sum(ll.TensorArray(ll.float32, 2).write(0, x).write(0, y).write(1, x).stack())

    dx, dy = ll.grad(f, argnums=(0, 1))(ll.constant(1.0), ll.constant(2.0))
    assert (dx.item(), dy.item()) == (1.0, 1.0)


UNSHAPED = ll.TensorArray(ll.float32, 3)


@pytest.mark.parametrize(
    ("op", "loop"),
    [
        ("fori_loop", lambda: ll.fori_loop(0, 3, lambda i, a: a.write(i, 1.0), UNSHAPED)),
        ("fori_loop", lambda: ll.fori_loop(0, ll.constant(3), lambda i, a: a.write(i, 1.0), UNSHAPED)),
        ("scan", lambda: ll.scan(lambda a, i: (a.write(i, 1.0), None), UNSHAPED, ll.arange(3))),
        (
            "while_loop",
            lambda: ll.while_loop(
                lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, 1.0)), (ll.constant(0), UNSHAPED)
            ),
        ),
    ],
)
@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_a_loop_needs_the_shape_of_elements_and_says_so_by_its_name(op, loop, stage):
    with pytest.raises(ControlFlowError, match=rf"^{op}: .* unwritten TensorArray\(.*element_shape=") as caught:
        stage(loop)()
    assert "Unshaped" not in str(caught.value)


def test_loops_of_numbers_name_themselves_in_other_errors_too():
    for upper in (2, ll.constant(2)):
        with pytest.raises(ControlFlowError, match=r"^fori_loop: `carry` is .* on entry"):
            ll.fori_loop(0, upper, lambda i, c: ll.concat([c, c]), ll.ones(2))


@pytest.mark.parametrize(
    "drop",
    [
        lambda a: (a.write(0, X), None)[1],
        lambda a: [a.write(0, X)],
    ],
)
def test_a_result_that_is_used_is_no_mistake(drop):
    drop(ll.TensorArray(ll.float32, 2))


def _dropped(array, method):
    if method == "write":
        array.write(0, X)
    elif method == "unstack":
        array.unstack(ll.stack([X, X]))
    elif method == "scatter":
        array.scatter([0], X.expand_dims(0))
    else:
        array.split(ll.concat([X, X]), [X.shape[0]] * 2)


@pytest.mark.parametrize("method", ["write", "unstack", "scatter", "split"])
@pytest.mark.parametrize("stage", [lambda f: f, ll.function, lambda f: ll.function(f, autograph=True)])
def test_a_dropped_result_is_warned_of_at_the_line(method, stage):
    with pytest.warns(LostChangeWarning, match=rf"TensorArray.{method} returns .*write array = array.{method}") as got:
        stage(lambda: _dropped(ll.TensorArray(X.dtype, 2), method))()
    line = _dropped.__code__.co_firstlineno
    assert [line < w.lineno < line + 10 and w.filename == __file__ for w in got] == [True]


@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("stage", [lambda f: f, ll.function])
def test_an_update_of_a_variable_that_changes_a_copy_is_warned_of_where_that_is_dropped(how, stage):
    v = ll.Variable([1.0, 2.0])

    def dropped():
        getattr(v.at[0], how)(5.0)

    def used():
        return getattr(v.at[0], how)(5.0)

    with pytest.warns(LostChangeWarning, match=rf"v.at\[i\].{how}\(x\) returns a tensor.*write v"):
        stage(dropped)()
    assert stage(used)().shape == (2,)
    v.at[0].assign(3.0)
    assert v.tolist() == [3.0, 2.0]


@pytest.mark.parametrize("seed", range(3))
def test_each_of_many_arrays_keeps_what_was_written_to_it(seed):
    draw = np.random.default_rng(seed)
    arrays = [(ll.TensorArray(ll.float32, 4, element_shape=(2,)), np.zeros((4, 2), "float32"))]
    for _ in range(150):
        array, rows = arrays[draw.integers(len(arrays))]
        i, value = int(draw.integers(4)), draw.random(2, "float32")
        action = draw.integers(4)
        if action == 0:
            np.testing.assert_array_equal(array.read(i).numpy(), rows[i])
        elif action == 1 and draw.random() < 0.2:
            np.testing.assert_array_equal(array.stack().numpy(), rows)
        else:
            rows = rows.copy()
            rows[i] = value
            arrays.append((array.write(i, value), rows))
            value[:] = -1.0  # the array that was given is the caller's
    for array, rows in arrays:
        np.testing.assert_array_equal(array.stack().numpy(), rows)


def test_a_loop_of_writes_copies_the_elements_once():
    array = first = ll.TensorArray(ll.float32, 1000, element_shape=())
    for i in range(1000):
        array = array.write(i, float(i)) if i == 0 else array.write(i, array.read(i - 1) + 1.0)
        assert array._rows is first._rows
    assert array.stack().tolist() == list(range(1000))
    for _ in range(10_000):  # the same place again and again keeps no more than twice as many
        array = array.write(0, 1.0)
        assert array._unwritten is None or array._unwritten.length <= 2100


def test_a_write_loses_none_that_another_thread_makes_meanwhile(monkeypatch: pytest.MonkeyPatch):
    """At each read of the elements in turn another thread asks for them, and so makes the writes put down so far."""
    slot: Any = ll.TensorArray._rows
    countdown = 0

    def rows(array: Any) -> Any:
        nonlocal countdown
        countdown -= 1
        value = slot.__get__(array)
        if countdown == 0:
            array.rows  # noqa: B018  # as the other thread does
        return value

    monkeypatch.setattr(ll.TensorArray, "_rows", property(rows, slot.__set__))
    for place in range(1, 20):
        array = ll.TensorArray(ll.float32, 3).write(0, 1.0)
        countdown = place
        assert array.write(1, 2.0).stack().tolist() == [1.0, 2.0, 0.0], place


def test_writes_that_were_put_down_are_there_for_tapes_and_traces():
    array = ll.TensorArray(ll.float32, 2).write(0, 3.0)
    with ll.GradientTape() as tape:
        x = ll.constant(2.0)
        tape.watch(x)
        y = ll.sum(array.write(1, x).stack() ** 2)
    assert (y.item(), tape.gradient(y, x).item()) == (13.0, 4.0)
    assert ll.function(lambda a: a.write(1, 1.0).stack())(array).tolist() == [3.0, 1.0]
    assert copy.deepcopy(array).stack().tolist() == [3.0, 0.0]
