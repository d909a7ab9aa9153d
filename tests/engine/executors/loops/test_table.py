"""The compiled tables by themselves: what they take, refuse and return."""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

from limelight.executors.loops.native_loops import copy_loop, native, ufunc_loop

FLOAT = np.dtype("f4").num
ROW = (FLOAT, (10, 10), (40, 4))
N = (100,)


def loop(ufunc: np.ufunc) -> Any:
    return ufunc_loop(ufunc, bytes([FLOAT] * ufunc.nargs))


def table(items: list[Any], inputs: Any = (ROW, ROW), results: Any = (ROW,), arena: int = 400, **more: Any) -> Any:
    given = {"constants": (), "otherwise": lambda *arrays: "refused"} | more
    return native().Table(inputs, given["constants"], results, arena, items, given["otherwise"])


def arrays(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return tuple(random.standard_normal((2, *shape)).astype("f4"))


ADD = (0, 0, 1, 0)
"""The operands of an addition of the two inputs; where its result goes follows."""


def test_loops_follow_one_another() -> None:
    t = table(
        [
            (loop(np.add), (*ADD, 3, 0), N, (4, 4, 4), ()),
            (loop(np.tanh), (3, 0, 3, 0), N, (4, 4), ()),
            (loop(np.matmul), (3, 0, 1, 0, 2, 0), (1, 10, 10, 10), (0, 0, 0, 40, 4, 40, 4, 40, 4), ()),
        ]
    )
    x, y = arrays(10, 10)
    (found,) = t(x, y)
    assert found.tobytes() == (np.tanh(x + y) @ y).tobytes()
    assert found.flags.owndata
    assert t.instructions == 3


def test_outer_axes_and_single_numbers() -> None:
    axes = (10, 40, 0, 40)
    t = table([(loop(np.multiply), (*ADD, 2, 0), (10,), (4, 4, 4), axes)], (ROW, (FLOAT, (10,), (4,))))
    x, y = arrays(10, 10)
    assert t(x, y[0])[0].tobytes() == (x * y[0]).tobytes()
    number = (FLOAT, (), ())
    t = table([(loop(np.add), (*ADD, 2, 0), (1,), (0, 0, 4), ())], (number, number), (number,))
    (found,) = t(np.float32(2), np.array(3, "f4"))
    assert type(found) is np.float32
    assert found == 5


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x.T,
        lambda x: x.astype("f8"),
        lambda x: x[:9],
        lambda x: x.astype(">f4"),
        lambda x: np.frombuffer(b"." + x.tobytes(), "f4", offset=1, count=100).reshape(10, 10),
        lambda x: x.tolist(),
        lambda x: np.float32(1),
    ],
    ids=["strides", "dtype", "shape", "byte order", "alignment", "a list", "a number"],
)
def test_other_arrays_go_elsewhere(wrong: Any) -> None:
    t = table([(loop(np.add), (*ADD, 2, 0), N, (4, 4, 4), ())])
    x, y = arrays(10, 10)
    assert t(x, wrong(y)) == "refused"
    assert t.refused == 1
    with pytest.raises(TypeError, match="2 arrays"):
        t(x)


@pytest.mark.parametrize(
    "instruction",
    [
        (np.add, (*ADD, 2, 4), N, (4, 4, 4), ()),
        (np.add, (*ADD, 2, -4), N, (4, 4, 4), ()),
        (np.add, (*ADD, 4, 0), N, (4, 4, 4), ()),
        (np.add, (*ADD, 2, 0), (101,), (4, 4, 4), ()),
        (np.add, (*ADD, 2, 0), N, (4, 4, 8), ()),
        (np.add, (*ADD, 2, 0), (10,), (4, 4, 4), (11, 40, 40, 40)),
        (np.matmul, (*ADD, 2, 0), (1, 10, 10, 11), (0, 0, 0, 40, 4, 40, 4, 40, 4), ()),
        (np.add, (*ADD, 2, 0), (0,), (4, 4, 4), ()),
        (np.add, ADD, N, (4, 4, 4), ()),
        (np.add, (*ADD, 2, 0), (2**62 + 1,), (4, 4, 4), ()),  # whose product with a stride wraps to 0
        (np.add, (*ADD, 2, 0), (1,), (4, 4, 4), (2**60 + 1, 16, 16, 16)),
        (np.add, (*ADD, 2, 2**63 - 4), N, (4, 4, 4), ()),
        (np.matmul, (*ADD, 2, 0), (1, 2**61 + 1, 1, 1), (0, 0, 0, 8, 4, 40, 4, 8, 4), ()),
    ],
)
def test_no_instruction_leaves_its_memory(instruction: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="instruction"):
        table([(loop(instruction[0]), *instruction[1:])])


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"results": ((FLOAT, (10,), (4096,)),)}, "gaps between its elements"),
        ({"results": (None,)}, "no type"),
        ({"inputs": ((FLOAT, (2**62, 5), (2**62, 4)), ROW)}, "larger than memory"),
        ({"arena": 2**63 - 1}, "more memory than there is"),
        ({"counters": 2**61}, "more counters than instructions"),
        ({"rows": (2**63 - 1,)}, "more than there are"),
    ],
)
def test_memory_that_is_not_there_is_refused(more: dict[str, Any], error: str) -> None:
    given = {"inputs": (ROW, ROW), "results": (ROW,), "arena": 0, "rows": (), "counters": 0} | more
    with pytest.raises(ValueError, match=error):
        native().Table(
            given["inputs"],
            (),
            given["results"],
            given["arena"],
            [],
            lambda *xs: "refused",
            given["rows"],
            given["counters"],
        )


@pytest.mark.parametrize("stride", [2**61, 2**62, -(2**62)])
def test_no_row_of_a_loop_leaves_its_memory_by_wrapping(stride: int) -> None:
    steps = 2**64 // abs(stride) + 1
    with pytest.raises(ValueError, match="leaves the memory"):
        rows_added(ZERO, ("begin", 0, ROW_OF, 0, 0, stride), added(), ("again", 0, steps, 2, ROW_OF, 0, 0, stride))


def test_runs_go_block_by_block() -> None:
    n, block = 10_000, 4096
    row = (FLOAT, (n,), (4,))
    members = (
        ((loop(np.add), (*ADD, 3, 0), (block,), (4, 4, 4), ()), (4, 4, 0)),
        ((loop(np.tanh), (3, 0, 2, 0), (block,), (4, 4), ()), (0, 4)),
    )
    t = table([(block, n, members)], (row, row), (row,), 4 * block)
    x, y = arrays(n)
    assert t(x, y)[0].tobytes() == np.tanh(x + y).tobytes()
    for wrong in ((4, 4, 4), (4, 4, 8)):  # the scratch memory has one block only
        with pytest.raises(ValueError, match="memory of its place"):
            table([(block, n, ((members[0][0], wrong), members[1]))], (row, row), (row,), 4 * block)


def test_a_guard_ends_the_run() -> None:
    number = (np.dtype("?").num, (), ())
    add = (loop(np.add), (*ADD, 3, 0), N, (4, 4, 4), ())
    t = table([add, ("guard", 2, 0)], (ROW, ROW, number))
    x, y = arrays(10, 10)
    assert t(x, y, np.True_)[0].tobytes() == (x + y).tobytes()
    assert t(x, y, np.False_) == "refused"
    with pytest.raises(ValueError, match="outside of its place"):
        table([add, ("guard", 2, 1)], (ROW, ROW, number))


def test_objects_have_no_loops() -> None:
    assert ufunc_loop(np.add, bytes([17] * 3)) is None
    assert copy_loop(np.dtype("f4").num, np.dtype("i4").num) is None


def test_results_and_runs_share_nothing() -> None:
    t = table([(loop(np.add), (*ADD, 2, 0), N, (4, 4, 4), ())])
    x, y = arrays(10, 10)
    (first,), (second,) = t(x, y), t(x, x)
    assert not np.shares_memory(first, second)
    assert first.tobytes() == (x + y).tobytes()


def long_table(steps: int, **more: Any) -> Any:
    n = 1 << 20
    row = (FLOAT, (n,), (4,))
    sines = [(loop(np.sin), (0, 0, 2, 0), (n,), (4, 4), ())] * steps
    return table(sines, (row,), (row,), 4 * n, constants=(np.zeros(1, "f4"),), **more)


def test_an_interrupt_ends_a_long_run() -> None:
    t = long_table(4000)
    x = np.ones(1 << 20, "f4")
    pressed = []

    def press() -> None:
        pressed.append(time.process_time())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.2, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        t(x)
    assert time.process_time() - pressed[0] < 1.0  # of this process, of which all steps would take many
    timer.join()


def test_threads_run_one_table_at_once() -> None:
    t = table(
        [(loop(np.add), (*ADD, 3, 0), N, (4, 4, 4), ())]
        + [(loop(np.tanh), (3, 0, 3, 0), N, (4, 4), ())] * 50
        + [(loop(np.positive), (3, 0, 2, 0), N, (4, 4), ())]
    )
    x, y = arrays(10, 10)
    wrong: list[float] = []

    def work(scale: float) -> None:
        mine = (x * np.float32(scale)).astype("f4")
        (wanted,) = t(mine, y)
        wrong.extend(scale for _ in range(300) if t(mine, y)[0].tobytes() != wanted.tobytes())

    threads = [threading.Thread(target=work, args=(scale,)) for scale in (0.5, 1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_table_goes_with_what_it_calls() -> None:
    class Otherwise:
        def __call__(self, *arrays: Any) -> None: ...

    other = Otherwise()
    other.table = table([(loop(np.add), (*ADD, 2, 0), N, (4, 4, 4), ())], otherwise=other)
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None


def test_who_asks_numpy_for_errors_gets_them() -> None:
    t = table([(loop(np.divide), (*ADD, 2, 0), N, (4, 4, 4), ())])
    x, y = arrays(10, 10)
    zero = np.zeros_like(y)
    with np.errstate(all="warn"):
        assert np.isinf(t(x, zero)[0]).all()
    with np.errstate(all="raise"):
        assert t(x, zero) == "refused"
        assert t(x, y + 10)[0].tobytes() == (x / (y + 10)).tobytes()


# Control flow: rows of a matrix are added up, one after the other


ROW_OF = 4
"""The place of the row, behind two inputs, one result, and the arena."""
SUM = (FLOAT, (10,), (4,))


def rows_added(*items: Any, rows: Any = (40,), counters: int = 1) -> Any:
    inputs = (ROW, (np.dtype("?").num, (), ()))
    return native().Table(inputs, (), (SUM,), 64, list(items), lambda *xs: "refused", rows, counters)


def added(place: int = ROW_OF) -> Any:
    return (loop(np.add), (2, 0, place, 0, 2, 0), (10,), (4, 4, 4), ())


ZERO = (loop(np.subtract), (0, 0, 0, 0, 2, 0), (10,), (4, 4, 4), ())
BEGIN = ("begin", 0, ROW_OF, 0, 0, 40)


def test_a_loop_goes_through_rows() -> None:
    x, _ = arrays(10, 10)
    t = rows_added(ZERO, BEGIN, added(), ("again", 0, 10, 2, ROW_OF, 0, 0, 40))
    wanted = np.zeros(10, "f4")
    for row in x:
        wanted = wanted + row
    for _ in range(2):
        assert t(x, np.True_)[0].tobytes() == wanted.tobytes()
    back = ("begin", 0, ROW_OF, 0, 360, -40), added(), ("again", 0, 10, 2, ROW_OF, 0, 360, -40)
    wanted = np.zeros(10, "f4")
    for row in x[::-1]:
        wanted = wanted + row
    assert rows_added(ZERO, *back)(x, np.True_)[0].tobytes() == wanted.tobytes()


def test_branches_and_jumps() -> None:
    x, _ = arrays(10, 10)
    t = rows_added(
        ZERO, ("branch", 1, 0, 4), added(0), ("jump", 5), (*ZERO[:1], (0, 0, 0, 0, 2, 0), *ZERO[2:]), rows=()
    )
    assert t(x, np.True_)[0].tobytes() == (np.zeros(10, "f4") + x[0]).tobytes()
    assert t(x, np.False_)[0].tobytes() == np.zeros(10, "f4").tobytes()


@pytest.mark.parametrize(
    "items",
    [
        (("branch", 1, 1, 0),),
        (("branch", 9, 0, 0),),
        (("jump", 4),),
        (("jump", -1),),
        (("jump",),),
        (("leap", 0),),
        (("begin", 1),),
        (("begin", -1),),
        (("again", 0, 0, 0),),
        (("begin", 0, ROW_OF, 0, 364, 40),),
        (("begin", 0, ROW_OF, ROW_OF, 0, 40),),
        (("begin", 0, 0, 0, 0, 40),),
        (BEGIN, BEGIN),
        (BEGIN, ("again", 0, 11, 1, ROW_OF, 0, 0, 40)),
        (BEGIN, ("again", 0, 10, 1, ROW_OF, 0, 4, 40)),
        (BEGIN, ("again", 0, 10, 1, ROW_OF, 0, 0, 44)),
    ],
)
def test_no_control_leaves_its_memory(items: Any) -> None:
    with pytest.raises(ValueError, match="instruction"):
        rows_added(ZERO, *items, *([] if BEGIN in items else [BEGIN]))


def test_rows_must_begin_and_have_bytes() -> None:
    with pytest.raises(ValueError, match="is missing"):
        rows_added(ZERO, added())
    with pytest.raises(ValueError, match="no bytes"):
        rows_added(ZERO, BEGIN, rows=(0,))
    with pytest.raises(OverflowError):
        rows_added(ZERO, ("jump", 2**70), BEGIN)


def test_an_endless_loop_can_be_stopped() -> None:
    x, _ = arrays(10, 10)
    t = rows_added(ZERO, ("jump", 1), rows=())
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        t(x, np.True_)


@pytest.mark.parametrize("wrong", [{"inputs": (5,)}, {"results": (ROW, "f4")}, {"writes": (3,)}])
def test_what_is_no_tuple_is_refused(wrong: dict[str, Any]) -> None:
    given = {"inputs": (ROW,), "results": (ROW,), "storages": (), "writes": ()} | wrong
    with pytest.raises(TypeError):
        native().Table(given["inputs"], (), given["results"], 0, [], print, (), 0, given["storages"], given["writes"])
