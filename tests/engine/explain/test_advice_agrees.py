"""Advice that a reader can follow: it gives the right results, agrees with other advice, and counts as others count."""

from __future__ import annotations

import linecache
import re
import warnings
from typing import Any

import pytest

import limelight as ll


def test_keys_that_a_function_may_read_are_not_left_out() -> None:
    @ll.function
    def total(b: Any) -> Any:
        return b["x"] + ll.sum(b.get("y", 0.0))

    one = ll.constant(1.0)
    total({"x": one})
    assert total({"x": one, "y": ll.constant(5.0)}).item() == 6.0
    assert ll.explain.retrace(total).records[-1].fix == ""
    said = str(ll.explain.retrace(total))
    assert re.search(r'Give `b` its "y" in the call at .* line \d+ too, with what stands for no value\.$', said), said


def test_keys_that_a_function_does_not_read_are() -> None:
    first = ll.function(lambda b: b["x"] * 2.0)
    first({"x": ll.constant(1.0)})
    first({"x": ll.constant(1.0), "y": ll.constant(5.0)})
    assert 'for name in ["x"]' in ll.explain.retrace(first).records[-1].fix


def test_a_recursion_is_no_call_that_traces_too_often_and_tells_its_arguments() -> None:
    @ll.function
    def factorial(n: int) -> Any:
        return 1 if n <= 1 else n * factorial(n - 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert factorial(6).item() == 720
    reasons = [record.reason for record in ll.explain.retrace(factorial).records]
    assert reasons == ["first call", *[f"argument `n` {n} -> {n - 1}" for n in (6, 5, 4, 3, 2)]]
    with pytest.warns(ll.errors.RetracingWarning, match="traced in"):  # calls that could be spared still count
        [factorial(n) for n in range(7, 20)]


COUNTER = """class Counter:
    def __init__(self):
        self.n = 0

    @ll.function
    def step(self, x):
        self.n += 1
        return x * ll.astype(self.n, ll.float32)
"""


def made(text: str) -> Any:
    file = f"<counter {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"ll": ll}
    exec(compile(text, file, "exec"), space)
    return space["Counter"]()


def test_a_counter_gets_one_advice_and_it_counts() -> None:
    counter = made(COUNTER)
    for _ in range(2):
        counter.step(ll.constant(1.0))
    said = str(ll.explain.side_effects(counter.step))
    begin, write = re.findall(r"`(self\.n[^`]*)`", said)[-2:]
    (value,) = ll.explain.baked(counter.step).changed
    assert f"`{begin}` outside, and write `{write}`" in value.fix
    again = made(COUNTER.replace("self.n = 0", begin).replace("self.n += 1", write))
    assert [again.step(ll.constant(1.0)).item() for _ in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.slow  # looks through all objects of the process
def test_an_attribute_of_the_function_itself_is_found_as_what_keeps_a_tensor() -> None:
    @ll.function
    def keeps(x: Any) -> Any:
        keeps.kept = x * 3
        return x

    keeps(ll.constant(1.0))
    (leak,) = ll.explain.leaks(keeps).records
    assert leak.holder is not None
    assert leak.holder.path == "keeps.kept"


def test_trace_counts_of_a_method_are_those_of_its_instances() -> None:
    class Doubler:
        @ll.function
        def run(self, x: Any) -> Any:
            return x + x

    one, other = Doubler(), Doubler()
    one.run(ll.constant(1.0))
    other.run(ll.constant(1.0))
    other.run(ll.constant([1.0]))
    assert (one.run.trace_count, other.run.trace_count, Doubler.run.trace_count) == (1, 2, 3)
