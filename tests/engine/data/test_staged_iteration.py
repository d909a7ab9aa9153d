"""Iterators in staged functions: taking an element is an op, whose order, end and errors are those of Python."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DeadVariableError, ShapeError

ROWS = np.arange(10, dtype=np.float32)


def batches(size: int = 3, **options: Any) -> Any:
    return ll.data.from_arrays(ROWS).batch(size, **options)


def test_each_run_takes_the_next_element() -> None:
    iterator = iter(batches())
    take = ll.function(lambda: next(iterator))
    assert [take().tolist() for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert take.trace_count == 1
    with pytest.raises(StopIteration):
        take()
    assert next(iterator, "end") == "end"


def test_what_stands_before_the_end_of_the_data_has_happened() -> None:
    iterator = iter(batches(10))
    count = ll.Variable(0)

    @ll.function
    def step() -> Any:
        count.assign_add(1)
        total = ll.sum(next(iterator))
        count.assign_add(10)
        return total

    step()
    with pytest.raises(StopIteration):
        step()
    assert count.numpy() == 12


def test_elements_are_taken_in_the_order_of_the_program() -> None:
    iterator = iter(ll.data.from_sequence(range(8)))

    @ll.function
    def two() -> Any:
        first = next(iterator)
        unused = next(iterator)  # taken all the same
        del unused
        return first, next(iterator)

    assert [x.item() for x in two()] == [0, 2]
    assert [x.item() for x in two()] == [3, 5]
    assert next(iterator).item() == 6


def test_an_iterator_as_an_argument() -> None:
    take = ll.function(lambda iterator: (next(iterator),)[0])
    a, b = iter(batches()), iter(batches())
    assert [take(a).tolist(), take(b).tolist(), take(a).tolist()] == [[0, 1, 2], [0, 1, 2], [3, 4, 5]]
    assert take.trace_count == 2


def test_restoring_does_not_retrace() -> None:
    iterator = iter(batches().shuffle(seed=1))
    take = ll.function(lambda: next(iterator))
    take()
    state = iterator.get_state()
    expected = [take().tolist() for _ in range(3)]
    iterator.set_state(state)
    assert [take().tolist() for _ in range(3)] == expected
    assert take.trace_count == 1


def test_both_branches_and_loops_take_when_they_run() -> None:
    iterator = iter(ll.data.from_sequence([1.0, 2.0, 3.0, 4.0, 5.0]))

    @ll.function
    def maybe(flag: Any) -> Any:
        return ll.cond(flag, lambda: next(iterator), lambda: ll.constant(0.0))

    assert [maybe(ll.constant(flag)).item() for flag in (True, False, True)] == [1.0, 0.0, 2.0]

    @ll.function
    def three() -> Any:
        return ll.fori_loop(0, 3, lambda i, total: total + next(iterator), 0.0)

    assert three().item() == 12.0


def test_a_for_over_a_dataset_begins_anew_in_each_run() -> None:
    data = batches()

    def total() -> Any:
        result = 0.0
        for batch in data:
            result = result + ll.sum(batch)
        return result

    unrolled, looped = ll.function(total), ll.function(total, autograph=True)
    for f in (total, unrolled, looped):
        assert [f().item(), f().item()] == [45.0, 45.0]
    assert unrolled.trace_count == looped.trace_count == 1
    assert "while_loop" in [node.op.name for node in looped.trace_cache[0].graph.nodes]


NUMBERS = ll.data.from_sequence([1.0, 2.0, 3.0, 4.0])


def with_break() -> Any:
    total = 0.0
    for x in NUMBERS:
        if x > 2.5:
            break
        total = total + x
    return total


def with_continue() -> Any:
    total = 0.0
    for x in NUMBERS:
        if x == 2.0:
            continue
        total = total + x
    return total


def with_return() -> Any:
    for x in NUMBERS:
        if x > 1.5:
            return x
    return ll.constant(-1.0)


def with_else() -> Any:
    total = 0.0
    for x in NUMBERS:
        if x > 9.0:
            break
        total = total + x
    else:
        total = total * 2.0
    return total


def with_enumerate() -> Any:
    total = 0.0
    for i, x in enumerate(NUMBERS):
        total = total + i * x
    return total


@pytest.mark.parametrize("function", [with_break, with_continue, with_return, with_else, with_enumerate])
def test_a_staged_for_does_what_python_does(function: Any) -> None:
    assert ll.function(function, autograph=True)().item() == function().item()


def test_a_staged_for_over_an_iterator_goes_on_where_it_is() -> None:
    iterator = iter(ll.data.from_sequence([1.0, 2.0, 3.0, 4.0]))

    @ll.function(autograph=True)
    def until(limit: Any) -> Any:
        total = 0.0
        for x in iterator:
            total = total + x
            if total >= limit:
                break
        return total

    assert [until(3.0).item(), until(100.0).item(), until(1.0).item()] == [3.0, 7.0, 0.0]


def test_gradients_of_a_staged_for() -> None:
    data, w = batches(), ll.Variable(2.0)

    @ll.function(autograph=True)
    def gradient() -> Any:
        with ll.GradientTape() as tape:
            total = 0.0
            for batch in data:
                total = total + ll.sum(batch * w) ** 2
        return tape.gradient(total, w)

    with ll.GradientTape() as tape:
        total = sum(ll.sum(batch * w) ** 2 for batch in data)
    assert gradient().item() == pytest.approx(tape.gradient(total, w).item(), rel=1e-6)


def test_loops_that_a_trace_cannot_unroll_say_what_to_write() -> None:
    for data in (ll.data.from_generator(lambda: iter(range(3))), batches(1).repeat(), batches(1).repeat(100)):

        def total(data: Any = data) -> Any:
            return sum(data)

        with pytest.raises(ArgumentError, match="autograph=True"):
            ll.function(lambda data=data: sum(data))()
    iterator = iter(batches())
    with pytest.raises(ArgumentError, match="next\\(iterator\\)"):
        ll.function(lambda: sum(iterator))()


def test_elements_must_be_what_the_trace_has() -> None:
    data = ll.data.from_sequence([[1.0, 2.0], [3.0]])
    iterator = iter(data)
    take = ll.function(lambda: ll.sum(next(iterator)))
    take()
    with pytest.raises(ShapeError, match=r"f32\[1\], where the trace has f32\[2\].*with_spec"):
        take()
    iterator = iter(data.with_spec(ll.TensorSpec((None,), "float32")))
    take = ll.function(lambda: ll.sum(next(iterator)))
    assert [take().item(), take().item()] == [3.0, 3.0]
    texts = iter(ll.data.from_sequence(["a"]))
    with pytest.raises(ArgumentError, match="HashTable"):
        ll.function(lambda: next(texts))()


def test_the_last_batch_keeps_one_trace() -> None:
    for last in ("keep", "drop", "pad"):
        iterator = iter(batches(4, last=last))
        take = ll.function(lambda iterator=iterator: next(iterator))
        shapes = []
        with pytest.raises(StopIteration):
            while True:
                shapes.append(take().shape)
        assert shapes == [(4,), (4,), *{"keep": [(2,)], "drop": [], "pad": [(4,)]}[last]]
        assert take.trace_count == 1


def test_a_graph_keeps_no_iterator_alive() -> None:
    held = [iter(batches())]
    take = ll.function(lambda: next(held[0]))
    take()
    gone = weakref.ref(held[0])
    concrete = take.trace_cache[0]
    held.clear()
    gc.collect()
    assert gone() is None
    with pytest.raises(DeadVariableError, match="keep a reference"):
        concrete()


def test_threads_share_an_iterator_and_no_element_comes_twice() -> None:
    iterator = iter(ll.data.from_sequence(range(400)).shuffle(seed=1, window=20))
    take = ll.function(lambda: next(iterator))
    taken: list[int] = []

    def work() -> None:
        while True:
            try:
                taken.append(take().item())
            except StopIteration:
                return

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == list(range(400))
    assert take.trace_count == 1


def test_the_explanations_know_that_it_is_an_op() -> None:
    iterator, plain = iter(batches()), iter([1.0, 2.0])
    take = ll.function(lambda: next(iterator))
    take()
    assert not ll.explain.side_effects(take).records
    once = ll.function(lambda: ll.constant(next(plain)))
    once()
    assert [effect.kind for effect in ll.explain.side_effects(once).records] == ["iterator"]


def test_a_hunt_for_nan_takes_no_element_and_fills_no_table() -> None:
    iterator = iter(ll.data.from_arrays([2.0, 0.5, 4.0]).shuffle(seed=1, reshuffle=False))
    table = ll.lookup.HashTable("int64", default_value=0.0)

    @ll.function
    def step() -> Any:
        table.insert(7, 1.0)
        return ll.log(next(iterator) - 1.0) * table.lookup(7)

    step()
    table.remove(7)
    before = iterator.get_state()
    for _ in range(2):
        ll.explain.nan(step)
    assert iterator.get_state() == before
    assert len(table) == 0
    ll.explain.steps(step)
    assert iterator.get_state() == before


@pytest.mark.parametrize("batches", [2, 5])
def test_an_iterator_restored_before_the_smaller_last_batch_has_the_types_of_before(batches):
    """5 rows in batches of 2: the third batch of each pass has one row."""

    def begun():
        rows = ll.data.from_arrays((np.arange(5.0), np.ones((5, 2))))
        return iter(rows.batch(2).map(lambda x, y: (x, y, ll.zeros(3))).repeat())

    iterator = begun()
    for _ in range(batches):
        next(iterator)
    again = begun()
    again.set_state(iterator.get_state())
    assert again.element_spec == iterator.element_spec == begun().element_spec
    step = ll.function(lambda: ll.sum(next(again)[0]))
    assert [step().item() for _ in range(4)] == [4.0, 1.0, 5.0, 4.0]
    assert step.trace_count == 1


def test_next_takes_an_element_of_an_iterator_of_ours_in_converted_loops_and_branches() -> None:
    def helper(iterator: Any) -> Any:
        return next(iterator)

    def total(n: Any) -> Any:
        s = ll.constant(0.0)
        for _ in ll.arange(n):
            s = s + helper(iterator)
        while n > 2:
            s, n = s + next(iterator), n - 1
        if n > 1:
            s = s + 100.0 * next(iterator)
        return s

    iterator = iter(ll.data.from_arrays(ll.arange(20).astype("float32")))
    staged = ll.function(total, autograph=True)
    found = [staged(ll.constant(n)).item() for n in (3, 1, 2)]
    iterator = iter(ll.data.from_arrays(ll.arange(20).astype("float32")))
    assert found == [total(n).item() for n in (3, 1, 2)]
    assert staged.trace_count == 1
