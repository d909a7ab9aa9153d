"""Plans write into buffers of their own: whatever somebody else can see keeps its numbers.

Held here: what a py_func was given, gave back or looks at through NumPy, what variables were and are, what is shared
by DLPack, saved for gradients, returned by several names, and all this with errors in the middle, calls within calls
and threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core.op import all_ops

F3 = ll.TensorSpec((3,), "float32")
X = np.array([0.1, 0.2, 0.3], np.float32)


def hungry(x: Any) -> Any:
    """A chain that writes into whatever buffers it may."""
    return ll.sin(ll.exp(x) * 2.0 + 1.0)


class Kept:
    """Tensors and arrays with copies of how they were."""

    def __init__(self, *things: Any) -> None:
        self.pairs = [(thing, np.array(thing)) for thing in things]

    def check(self) -> None:
        for thing, before in self.pairs:
            np.testing.assert_array_equal(thing, before)


HOLDING: dict[str, Callable[[list[Any], Any], Any]] = {
    "the tensor": lambda held, x: held.append(x) or x,
    "its array": lambda held, x: held.append(x.numpy()) or x,
    "through DLPack": lambda held, x: held.append(np.from_dlpack(x)) or x,
    "a view that it returns": lambda held, x: held.append(x[::-1]) or held[-1],
    "a view of a copy that it returns": lambda held, x: held.append(ll.constant(np.array(x))) or held[-1][::-1],
}


@pytest.mark.parametrize("way", HOLDING)
def test_what_a_py_func_was_given_and_gave_back(way: str) -> None:
    held: list[Any] = []

    @ll.function
    def f(x: Any) -> Any:
        h = ll.tanh(x)
        y = ll.py_func(lambda t: HOLDING[way](held, t), [h], F3)
        return hungry(h), hungry(y), ll.exp(y) - y

    f(ll.constant(X))
    kept = Kept(*held)
    assert sorted(kept.pairs[0][1]) == pytest.approx(np.tanh(X))
    f(ll.constant(X * 3))
    kept.check()


def test_an_array_that_a_py_func_returns_each_time() -> None:
    ones = ll.constant(np.ones(3, np.float32))

    @ll.function
    def f(x: Any) -> Any:
        y = ll.py_func(lambda t: ones, [x], F3)
        return hungry(y) + y

    first = f(ll.constant(X))
    np.testing.assert_array_equal(f(ll.constant(X)), first)
    assert ones.tolist() == [1, 1, 1]


def test_what_is_shared_with_another_library() -> None:
    array = np.ones(3, np.float32)
    shared = ll.from_dlpack(array)

    @ll.function
    def f(x: Any) -> Any:
        return hungry(shared - 0.0), hungry(shared.reshape((3, 1))), shared * 1.0, hungry(x)

    f(shared)
    assert array.tolist() == [1, 1, 1]


def test_what_variables_were_and_are() -> None:
    v = ll.Variable(np.array([1.0, 2.0, 3.0], np.float32))
    captured = ll.constant(np.ones(3, np.float32))

    @ll.function
    def f(x: Any) -> Any:
        before = v.read_value()
        h = ll.tanh(x)
        v.assign(h)
        middle = v.read_value()
        d = hungry(h) + middle
        v.assign_add(d)
        after = v.read_value()
        v.assign(captured)
        v.assign_sub(x)
        v.assign(x)
        return before, middle, after, hungry(d), h, hungry(v.read_value())

    x = ll.constant(X)
    results = f(x)
    kept = Kept(*results, x, captured)
    np.testing.assert_array_equal(results[0], [1, 2, 3])
    np.testing.assert_allclose(results[1], np.tanh(X))
    f(x * 2.0)
    v.assign_add([1.0, 1.0, 1.0])
    kept.check()


def test_what_gradients_need() -> None:
    @ll.function
    def f(x: Any) -> Any:
        y = ll.exp(ll.tanh(x * 2.0) * 3.0)
        z = ll.sqrt(y + 1.0)
        return z * z * y, z

    x = ll.constant(X)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        one, other = f(x)
    first = Kept(tape.gradient(one, x), one, other)
    f(x * 5.0)
    tape.gradient((one, other), x)
    np.testing.assert_array_equal(tape.gradient(one, x), first.pairs[0][1])
    first.check()


def test_several_names_of_one_buffer() -> None:
    inner = ll.function(lambda q: (q, q.reshape((3, 1)), ll.tanh(q)))

    @ll.function
    def f(x: Any) -> Any:
        h = ll.tanh(x)
        same, view, other = inner(h)
        chosen = ll.cond(ll.sum(x) > 0, lambda: h, lambda: ll.exp(h))
        picked = ll.switch(ll.constant(1) * 1, [lambda: x, lambda: same])
        return same, view, other, chosen, picked, hungry(h), hungry(same), hungry(chosen), hungry(picked), x

    x = ll.constant(X)
    results = f(x)
    for one in (results[0], results[3], results[4], results[1][:, 0]):
        np.testing.assert_allclose(one, np.tanh(X))
    kept = Kept(*results, x)
    f(results[9])
    f(results[0])
    kept.check()


def test_what_loops_hand_on() -> None:
    def step(c: Any, row: Any) -> Any:
        return ll.tanh(c) * 2.0 + row, c

    x, rows = ll.constant(X), ll.constant(np.ones((4, 3), np.float32))
    kept = Kept(x, rows)
    scanned = ll.function(lambda x, rows: ll.scan(step, x, rows))
    for mine, eager in zip(scanned(x, rows), ll.scan(step, x, rows), strict=True):
        np.testing.assert_allclose(mine, eager, rtol=1e-6)
    swap = lambda a, b: ll.while_loop(lambda i, *_: i < 5, lambda i, a, b: (i + 1, hungry(a) + b, a), (0, a, b))  # noqa: E731
    for mine, eager in zip(ll.function(swap)(x, x), swap(x, x), strict=True):
        np.testing.assert_allclose(mine, eager, rtol=1e-6)
    kept.check()


def test_an_error_in_the_middle_and_the_calls_after_it() -> None:
    v, failing = ll.Variable(X), [False]

    def may_fail(x: Any) -> Any:
        if failing[0]:
            raise ValueError("in the middle")
        return x

    @ll.function
    def f(x: Any) -> Any:
        a = ll.exp(x) * 2.0
        v.assign(a)
        c = hungry(ll.py_func(may_fail, [a * 1.0], F3)) - a
        v.assign(c)
        return c, hungry(a)

    kept = Kept(*f(ll.constant(X)))
    failing[0] = True
    for _ in range(3):
        with pytest.raises(ValueError, match="in the middle"):
            f(ll.constant(X * 3))
        np.testing.assert_allclose(v.numpy(), np.exp(X * 3) * 2, rtol=1e-6)
    failing[0] = False
    for again, (_, before) in zip(f(ll.constant(X)), kept.pairs, strict=True):
        np.testing.assert_array_equal(again, before)
    kept.check()


def test_a_function_that_calls_itself_through_a_py_func() -> None:
    depth = threading.local()

    def deeper(x: Any) -> Any:
        depth.n = getattr(depth, "n", 0) + 1
        try:
            return f(x * 0.5)[0] if depth.n < 4 else x
        finally:
            depth.n -= 1

    @ll.function
    def f(x: Any) -> Any:
        a = ll.tanh(x) * 2.0
        b = ll.py_func(deeper, [a + 1.0], F3)
        return hungry(a) + b, a

    def plain(x: np.ndarray, n: int = 1) -> np.ndarray:
        a = np.tanh(x) * 2
        b = plain((a + 1) * np.float32(0.5), n + 1) if n < 4 else a + 1
        return np.sin(np.exp(a) * 2 + 1) + b

    wrong: list[int] = []

    def work(i: int) -> None:
        x = X * (i + 1)
        for _ in range(20):
            total, a = f(ll.constant(x))
            good = np.allclose(total, plain(x), rtol=1e-5) and np.allclose(a, np.tanh(x) * 2)
            wrong.extend([] if good else [i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_ops_say_of_their_results_whose_memory_they_are() -> None:
    """A list that moves with nothing: an op that loses its word makes plans slower, or their estimates wrong."""
    ops = all_ops().values()
    assert {op.name for op in ops if op.fresh} == {
        *("batch_norm_gradient", "batch_norm_training", "conv", "conv_filter_gradient", "conv_filter_gradient_dynamic"),
        *(
            "conv_transpose",
            "conv_transpose_dynamic",
            "log_softmax",
            "logsumexp",
            "logsumexp_shares",
            "matmul",
            "mean",
            "one_hot",
        ),
        *("pow", "sigmoid", "softmax", "softplus", "tile", "var"),
    }
    assert {op.name for op in ops if op.view} == {
        *(
            "check_numerics",
            "ensure_shape",
            "expand_dims",
            "flip",
            "identity",
            "matrix_transpose",
            "reshape",
            "reshape_dynamic",
        ),
        *("slice", "squeeze", "stop_gradient", "transpose"),
    }
