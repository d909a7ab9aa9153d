"""Section 4.2, differentiation through `switch` and `scan`: behaviours 60 to 62."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from behaving import both

import limelight as ll

# 60 to 62 for a switch and a scan


@both
def test_060_a_switch_pulls_back_through_the_branch_taken(stage: Callable[..., Any]) -> None:
    v, unused = ll.Variable(3.0), ll.Variable(5.0)
    f = stage(lambda k, x: ll.switch(k, [lambda: x * v, lambda: x * x * unused, lambda: ll.constant(1.0)]))
    x = ll.constant(2.0)
    for k, wanted in enumerate([[3.0, 2.0, 0.0], [20.0, 0.0, 4.0], [0.0, 0.0, 0.0]]):
        with ll.GradientTape() as outer:
            outer.watch(x)
            with ll.GradientTape() as tape:
                tape.watch(x)
                y = f(ll.constant(k), x)
            found = tape.gradient(y, [x, v, unused], unconnected_gradients="zero")
        assert [g.item() for g in found] == wanted
        second = outer.gradient(found[0], x, unconnected_gradients="zero")
        assert second.item() == (10.0 if k == 1 else 0.0)


@both
def test_061_captured_variables_add_up_over_a_scan_inside_a_loop(stage: Callable[..., Any]) -> None:
    w = ll.Variable(2.0)

    @stage
    def f(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, ll.scan(lambda c, r: (c * w + r, None), y, x)[0]

        return ll.while_loop(lambda i, _: i < 2, body, (0, ll.constant(1.0)))[1]

    x = ll.constant([1.0, 10.0])
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    # w⁴ + (w³ + w) x₀ + (w² + 1) x₁
    assert y.item() == 16.0 + 10.0 + 50.0
    assert tape.gradient(y, w).item() == 4 * 8 + (3 * 4 + 1) * 1.0 + 2 * 2 * 10.0
    assert tape.gradient(y, x).tolist() == [10.0, 5.0]


def test_062_a_scan_keeps_of_each_step_what_its_backward_needs() -> None:
    f = ll.function(lambda x, n: ll.scan(lambda y, _: (ll.tanh(y) + x, None), x * 1.0, length=n)[0])
    x = ll.ones((100,))
    sizes = []
    for n in (0, 10, 20):
        with ll.GradientTape() as tape:
            tape.watch(x)
            f(x, ll.constant(n))
        sizes.append(tape.saved_bytes)
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] == 10 * 100 * 4
