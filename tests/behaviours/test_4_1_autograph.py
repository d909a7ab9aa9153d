"""Section 4.1 with autograph=True: behaviours 10 to 13, 15 to 17, 22, 24 and 159, of rewritten Python statements."""

# ruff: noqa: SIM108  # the statements are what is tested

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.core import recursion_limit
from limelight.errors import ControlFlowError, OutOfBoundsError, SymbolicValueError


def ops(f: ll.function, index: int = 0) -> list[str]:
    return [node.op.name for node in f.trace_cache[index].graph.nodes]


def test_010_side_effects_happen_per_trace() -> None:
    seen: list[str] = []

    @ll.function(autograph=True)
    def f(x: Any) -> Any:
        seen.append("f")
        if x > 0:
            x = x + 1
        return x

    for value in (1.0, -1.0, 2.0):
        f(ll.constant(value))
    assert seen == ["f"]
    assert f.python_function(-1.0) == -1.0
    assert seen == ["f", "f"]


def test_011_python_loops_unroll_and_loops_over_tensors_do_not() -> None:
    @ll.function(autograph=True)
    def f(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x * 2
        return x

    assert f(ll.constant(1.0), 20).item() == 2.0**20
    assert ops(f).count("multiply") == 20
    assert f(ll.constant(1.0), ll.constant(20)).item() == 2.0**20
    assert ops(f, 1).count("while_loop") == 1
    assert "multiply" not in ops(f, 1)


def test_012_python_conditions_are_baked_in() -> None:
    @ll.function(autograph=True)
    def f(x: Any, up: bool) -> Any:
        if up:
            y = x + 1
        else:
            y = x * 2
        return y

    assert (f(ll.constant(1.0), True).item(), f(ll.constant(3.0), False).item()) == (2.0, 6.0)
    assert ("add" in ops(f, 0), "multiply" in ops(f, 0)) == (True, False)
    assert ("add" in ops(f, 1), "multiply" in ops(f, 1)) == (False, True)


def test_013_without_it_a_decision_is_refused_with_guidance() -> None:
    @ll.function
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(SymbolicValueError, match=r"ll\.cond.*ll\.while_loop.*autograph=True.*ll\.py_func"):
        f(ll.constant(1.0))
    assert ll.function(f.python_function, autograph=True)(ll.constant(-1.0)).item() == 1.0


@pytest.mark.parametrize("expression", ["x or default", "x and default", "1 < x < 3", "min(x, default)", "not x"])
def test_013_implicit_decisions(expression: str, tmp_path: Any) -> None:
    import importlib.util

    file = tmp_path / "module_of_this_test.py"
    file.write_text(f"def f(x, default):\n    return {expression}\n")
    spec = importlib.util.spec_from_file_location("module_of_this_test", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    g = ll.function(module.f, autograph=True)
    for value in (0.0, 2.0, 5.0):
        assert g(ll.constant(value), ll.constant(4.0)).item() == module.f(value, 4.0)
    assert g.trace_count == 1


def test_015_exactly_one_branch_runs() -> None:
    v = ll.Variable(0)
    xs = ll.constant([1.0, 2.0])

    @ll.function(autograph=True)
    def f(i: Any) -> Any:
        if i < 2:
            y = xs[i]
        else:
            v.assign_add(1)
            y = ll.constant(0.0)
        return y

    assert [f(ll.constant(i)).item() for i in (0, 1, 9)] == [1.0, 2.0, 0.0]
    assert v.numpy() == 1


def test_016_zero_iterations_return_the_initial_values() -> None:
    @ll.function(autograph=True)
    def f(x: Any, n: Any) -> Any:
        i = 0
        while i < n:
            x = x * 2
            i = i + 1
        return x, i

    assert [y.item() for y in f(ll.constant(3.0), ll.constant(0))] == [3.0, 0]
    assert [y.item() for y in f(ll.constant(3.0), ll.constant(2))] == [12.0, 2]


def test_017_invariants_name_the_users_variable() -> None:
    @ll.function(autograph=True)
    def f(x: Any) -> Any:
        history = x
        while ll.sum(history) < 10:
            history = ll.stack([history, history])
        return history

    message = (
        r"`history` is f32\[1\] on entry .* and f32\[2,1\] after one iteration \(test_4_1_autograph.py line \d+: hi"
    )
    with pytest.raises(ControlFlowError, match=message):
        f(ll.ones((1,)))


def test_017_sizes_that_change_are_relaxed_by_themselves() -> None:
    @ll.function(autograph=True)
    def f(x: Any) -> Any:
        history = x
        while ll.sum(history) < 10:
            history = ll.concat([history, x])
        return history

    assert f(ll.ones((1,))).shape == (10,)


def test_022_an_error_leaves_a_clean_state() -> None:
    @ll.function(autograph=True)
    def f(x: Any, bad: bool) -> Any:
        for row in x:
            if row > 0:
                y = ll.ones((2,)) @ ll.ones((3,)) if bad else row
            else:
                y = row
        return y

    with pytest.raises(ll.errors.ShapeError):
        f(ll.ones((2,)), True)
    assert len(f.trace_cache) == 0
    assert f(ll.ones((2,)), False).item() == 1.0
    assert (ll.constant(1.0) + 1).item() == 2.0


def test_024_run_time_errors_show_the_chain_of_lines() -> None:
    def pick(xs: Any, i: Any) -> Any:
        while i < 3:
            i = i + 1
        return xs[i]

    @ll.function(autograph=True)
    def f(xs: Any, i: Any) -> Any:
        if i > 0:
            return pick(xs, i)
        return xs[0]

    assert f(ll.constant([1.0, 2.0, 3.0]), ll.constant(0)).item() == 1.0
    with pytest.raises(OutOfBoundsError, match=r"line \d+: return xs\[i\]") as caught:
        f(ll.constant([1.0, 2.0, 3.0]), ll.constant(1))
    assert "malt" not in str(caught.value)


@pytest.mark.slow  # a deep recursion
def test_159_recursion_on_python_numbers_ends_and_on_tensors_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion_limit, "MAX_RAISE", 600)  # the work grows with the square of the stack

    @ll.function(autograph=True)
    def power(x: Any, n: Any) -> Any:
        if n == 0:
            return x * 0 + 1
        return x * power(x, n - 1)

    assert power(ll.constant(2.0), 5).item() == 32.0

    def down(x: Any, n: Any) -> Any:
        return x if n == 0 else down(x, n - 1)

    for endless in (power, ll.function(down, autograph=True)):
        with pytest.raises(RecursionError, match=r"calls itself .*Where a tensor's value decides, (use|write)"):
            endless(ll.constant(2.0), ll.constant(5))
    assert (ll.constant(1.0) + 1).item() == 2.0
