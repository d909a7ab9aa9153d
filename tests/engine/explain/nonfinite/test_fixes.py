"""What to write where a number is not finite: each fix is put in the place of its line, and then all is finite."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.core.op import Domain, all_ops

_numbers = itertools.count()


def function_of(body: str) -> Callable[..., Any]:
    """A function of x that has these lines."""
    file = f"<remedy {next(_numbers)}>"
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"ll": ll}
    exec(compile(text, file, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


def mended(body: str, found: Any) -> str:
    """The lines with the fix in the place of that which it is for."""
    lines = body.splitlines()
    lines[found.line.line - 2] = found.fix
    return "\n".join(lines)


ZERO = ll.constant([0.0, 1.0, 4.0])
CASES = [
    ("sqrt", "return ll.sum(ll.where(x > 0, ll.sqrt(x), 0.0))", ZERO),
    ("sqrt", "y = x.sqrt()\nreturn ll.sum(ll.where(x > 0, y * 2, 0.0))", ZERO),
    ("sqrt", "return ll.sum(ll.where(x <= 0, 0.0, ll.sqrt(x)))", ZERO),
    ("sqrt", "return ll.sqrt(ll.sum(x * x))", ll.zeros([3])),
    ("log", "return ll.sum(ll.where(x > 0, ll.log(x), 0.0))", ZERO),
    ("log", "return -ll.sum(x * ll.log(x))", ZERO),
    ("log2", "t = 2.0\nreturn ll.sum(ll.log2(t * x + 0.0))", ZERO),
    ("divide", "return ll.sum(ll.where(x != 0, 1 / x, 0.0))", ZERO),
    ("divide", "return ll.sum(x / ll.sum(x))", ll.zeros([2])),
    ("pow", "return ll.sum(x ** 0.5)", ZERO),
    ("pow", "return ll.sum(ll.where(x > 0, ll.pow(x, -0.5), 0.0))", ZERO),
    ("acos", "return ll.sum(ll.acos(x))", ll.constant([1.0, 0.5])),
    ("acosh", "return ll.sum(ll.acosh(x))", ll.constant([1.0, 2.0])),
    ("rsqrt", "return ll.sum(ll.rsqrt(x))", ZERO),
]


@pytest.mark.parametrize(("op", "body", "x"), CASES, ids=[f"{op}: {body}" for op, body, _ in CASES])
def test_with_the_fix_values_and_gradients_are_finite(op: str, body: str, x: Any) -> None:
    found = ll.explain.nan(function_of(body), x, gradient_of=True)
    assert (found.of or found.op) == op
    assert found.line is not None
    assert found.fix, found
    again = function_of(mended(body, found))
    assert not ll.explain.nan(again, x, gradient_of=True)
    ordinary = ll.constant([0.25, 0.5, 0.75]) + (1.0 if op == "acosh" else 0.0)
    assert ll.allclose(again(ordinary), function_of(body)(ordinary)), "elsewhere nothing is different"


def test_the_op_whose_gradient_it_is_is_named() -> None:
    found = ll.explain.nan(function_of(CASES[0][1]), ZERO, gradient_of=True)
    assert (found.op, found.of, found.backward) == ("divide", "sqrt", True)
    text = str(found)
    assert "comes from divide, in the gradient of sqrt (" in text
    assert "where() masks the result alone, and 0 times infinity is NaN: mask the operand of sqrt as well" in text
    assert text.endswith("\nFix: return ll.sum(ll.where(x > 0, ll.sqrt(ll.where(x > 0, x, 1)), 0.0))")


def test_a_tape_inside_and_a_function_that_is_called() -> None:
    root = ll.function(function_of("return ll.where(x > 0, ll.sqrt(x), 0.0)"))

    @ll.function
    def slope(x: Any) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = ll.sum(root(x))
        return tape.gradient(y, x)

    found = ll.explain.nan(slope, ZERO)
    assert found.of == "sqrt"
    assert found.fix == "return ll.where(x > 0, ll.sqrt(ll.where(x > 0, x, 1)), 0.0)"


def test_large_exponents_have_an_advice_and_no_fix() -> None:
    found = ll.explain.nan(function_of("return ll.exp(x) / ll.sum(ll.exp(x))"), ll.constant([1000.0]))
    assert (found.op, found.fix) == ("exp", "")
    assert "ll.nn.softmax" in str(found)


def test_a_line_with_two_such_ops_has_a_hint_alone() -> None:
    found = ll.explain.nan(function_of("return ll.sum(ll.sqrt(x) + ll.sqrt(x + 1))"), ZERO, gradient_of=True)
    assert (found.of, found.fix) == ("sqrt", "")
    assert "its slope at 0 infinite" in found.hint


def test_a_mask_of_another_shape_is_not_used() -> None:
    body = "r = ll.sqrt(ll.sum(x))\nreturn ll.sum(ll.where(x > 0, x * r, 0.0))"
    found = ll.explain.nan(function_of(body), ll.zeros([2]), gradient_of=True)
    assert found.fix == "t = ll.sum(x)\nr = ll.where(t > 0, ll.sqrt(ll.where(t > 0, t, 1)), 0)"


def test_the_same_in_second_derivatives() -> None:
    @ll.function
    def curvature(x: Any) -> Any:
        with ll.GradientTape() as outer:
            outer.watch(x)
            with ll.GradientTape() as inner:
                inner.watch(x)
                y = ll.sum(x**1.5)
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    found = ll.explain.nan(curvature, ZERO)
    assert (found.backward, found.of) == (True, "pow")


def test_an_op_of_ones_own_states_its_domain() -> None:
    run = ll.defop(
        "log_of_a_probability",
        inputs="x",
        accepts="floating",
        infer=lambda x: x,
        kernel="log",
        vjp={"x": lambda g, x: g / x},
        maths={"x": "x̄ = ȳ / x"},
        domain=Domain(0, "{x} > 0.01", "0.5", "a probability of 0 has no logarithm"),
    )
    found = ll.explain.nan(lambda x: ll.sum(run(x)), ll.constant([0.0, 1.0]))
    assert found.op == "log_of_a_probability"
    assert "a probability of 0 has no logarithm" in str(found)


def test_the_domains_of_ops_hold_the_number_inside() -> None:
    """The number that a remedy puts in the operand's place lies in the domain; value and slope are finite there."""
    for op in all_ops().values():
        if op.domain is not None:
            x = ll.constant(float(op.domain.inside))
            assert eval(op.domain.condition.format(x="x", ll="ll"), {"x": x, "ll": ll})
            given = [x if i == op.domain.operand else ll.constant(0.5) for i in range(len(op.operands))]
            value, slope = ll.value_and_grad(op, op.domain.operand)(*given)
            assert bool(ll.isfinite(value))
            assert bool(ll.isfinite(slope))
