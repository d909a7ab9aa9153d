"""Functions given to control flow that take too few arguments, or whose results are not what they began with."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight.errors import CallError, ControlFlowError, DTypeError, LimelightError

x = ll.constant([1.0, 2.0, 3.0])
loose: Any = ll  # the mistakes are no news to type checkers

TAKE_OTHERS: dict[str, Callable[[], Any]] = {
    "while_loop: cond gets 2 arguments, one for each loop variable, but .*takes 1": lambda: ll.while_loop(
        lambda i: i < 3, lambda i, y: (i + 1, y), (0, x)
    ),
    "while_loop: body gets 1 argument, one for each loop variable, but .*missing 1": lambda: ll.while_loop(
        lambda i: i < 3, lambda i, y: (i + 1, y), (0,)
    ),
    "scan: fn gets 2 arguments, the carry and a row of xs": lambda: loose.scan(lambda h: h, 0.0, x),
    "scan: fn gets 2 arguments, the carry and a": lambda: loose.scan(lambda h: h, 0.0, length=ll.constant(2)),
    "map_fn: fn gets 1 argument, a row of xs": lambda: loose.map_fn(lambda a, b: a, x),
    "cond: false_fn gets no argument, but .*missing 1": lambda: loose.cond(x[0] > 1.0, lambda: x, lambda y: y),
    r"switch: branches\[1\] gets no argument": lambda: loose.switch(
        ll.astype(x[0], ll.int32), [lambda: x, lambda y: y]
    ),
}


@pytest.mark.parametrize("words", TAKE_OTHERS)
@pytest.mark.parametrize("staged", [False, True])
def test_a_callback_that_takes_other_arguments_is_named(words: str, staged: bool) -> None:
    call = TAKE_OTHERS[words]
    with pytest.raises(CallError, match=words):
        (ll.function(call) if staged else call)()


def test_a_mistake_inside_of_a_callback_stays_pythons() -> None:
    def inner(y: Any) -> Any:
        return y

    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        loose.cond(x[0] > 0, lambda: inner(*[]), lambda: x)
    assert not isinstance(caught.value, CallError)


def test_a_carry_that_begins_as_an_integer() -> None:
    with pytest.raises(DTypeError, match=r"`carry` itself should be carried as float32, begin with 0\.0 instead of 0"):
        ll.scan(lambda h, r: (h + r, h), 0, x)
    with pytest.raises(ControlFlowError, match=r"`carry` is i32\[\] on entry .* Begin with 0\.0 instead of 0, or"):
        ll.scan(lambda h, r: (ll.astype(h, ll.float32) + r, h), 0, x)
    with pytest.raises(
        DTypeError, match=r"`loop_vars\[0\]` itself .* begin with 0\.0 .*test_user_functions\.py line \d+"
    ):
        ll.while_loop(lambda i: i < 3, lambda i: i + 1.0, (0,))
    with pytest.raises(DTypeError) as caught:
        ll.scan(lambda h, r: (h, ll.constant(1) + r), 0, x)
    assert "begin with" not in str(caught.value)
    assert ll.scan(lambda h, r: (h + r, h), 0.0, x)[0].item() == 6.0


def test_only_sizes_can_be_relaxed_and_the_invariants_named_are_right() -> None:
    with pytest.raises(ControlFlowError, match="number of axes cannot change: reshape in the body, to 1") as caught:
        ll.while_loop(lambda y: ll.sum(y) < 30, lambda y: y[None], (x,), shape_invariants=[(None,)])
    assert "shape_invariants" not in str(caught.value)
    grow = (lambda i, y: i < 2, lambda i, y: (i + 1, ll.concat([y, y])), (0, x))
    with pytest.raises(ControlFlowError) as caught:
        ll.while_loop(*grow)
    found = re.search(r"shape_invariants=(\[.*?\]) \(", str(caught.value))
    assert found
    assert ll.while_loop(*grow, shape_invariants=eval(found[1]))[1].shape == (12,)


CARRIED_NONE = [
    (lambda: ll.scan(lambda c, x: (None, x), None, ll.arange(3)), "scan: `carry` is None"),
    (lambda: ll.scan(lambda c, x: (c, x), {"a": 0.0, "b": None}, ll.arange(3)), r'scan: `carry\["b"\]` is None'),
    (lambda: ll.fori_loop(0, 3, lambda i, c: c, None), "fori_loop: `carry` is None"),
    (lambda: ll.fori_loop(0, ll.constant(3), lambda i, c: c, None), "fori_loop: `carry` is None"),
    (
        lambda: ll.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c), (0, None)),
        r"while_loop: `loop_vars\[1\]` is None",
    ),
]


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize(("loop", "words"), CARRIED_NONE, ids=[words[:30] for _, words in CARRIED_NONE])
def test_none_is_carried_by_no_loop(stage, loop, words):
    with pytest.raises(ControlFlowError, match=rf"{words}, and a loop carries tensors; write \(\)"):
        stage(loop)()


def test_nothing_is_carried_by_an_empty_tuple():
    carry, rows = ll.scan(lambda c, x: ((), 2 * x), (), ll.arange(3))
    assert carry == ()
    assert rows.tolist() == [0, 2, 4]


FORGOTTEN = [
    (lambda: ll.scan(lambda c, x: ({"a": None}, x), {"a": 0.0}, ll.arange(3)), r'`carry\["a"\]` is f32\[\] on entry'),
    (lambda: ll.fori_loop(0, 3, lambda i, c: None, 1.0), r"`carry` is f32\[\] on entry"),
    (
        lambda: ll.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, None), (0, 1)),
        r"`loop_vars\[1\]` is i32\[\] on entry",
    ),
]


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize(("loop", "words"), FORGOTTEN, ids=["scan", "fori_loop", "while_loop"])
def test_a_step_that_returns_nothing_is_named(stage, loop, words):
    with pytest.raises(ControlFlowError, match=rf"{words} and None after one step; the function must return it"):
        stage(loop)()


@ll.custom_gradient
def _without_argument(x):
    return x * 2.0, lambda: 1.0


WRONG_NUMBERS = [
    (lambda: ll.fori_loop(0, 3, lambda c: c, 0.0), "fori_loop: body gets 2 arguments, the number and the carry"),
    (lambda: ll.fori_loop(0, ll.constant(3), lambda c: c, 0.0), "fori_loop: body gets 2 arguments, the number and"),
    (lambda: ll.vectorize(lambda x: x)(ll.ones(3), ll.ones(3)), "vectorize: fn gets 2 arguments, what the vectorized"),
    (lambda: ll.grad(lambda x, y: x * y)(1.0), "grad: fn gets 1 argument, what its derivative is called with"),
    (lambda: ll.grad(lambda x: x)(1.0, z=1.0), "grad: fn gets 2 arguments, .* unexpected keyword argument 'z'"),
    (lambda: ll.grad(ll.grad(lambda x, y: x * y))(1.0), "^grad: fn gets 1 argument, [^:]* missing 1"),
    (lambda: ll.jacobian(lambda x, y: x * y)(1.0), "jacobian: fn gets 1 argument"),
    (lambda: ll.hessian(lambda x, y: x * y)(1.0), "hessian: fn gets 1 argument"),
    (lambda: ll.jvp(lambda x, y: x * y, (1.0,), (1.0,)), "jvp: fn gets 1 argument"),
    (lambda: ll.vjp(lambda x, y: x * y, 1.0), "vjp: fn gets 1 argument"),
    (
        lambda: ll.grad(_without_argument)(1.0),
        "the gradient function of _without_argument gets 1 argument",
    ),
]


@pytest.mark.parametrize(("call", "words"), WRONG_NUMBERS)
def test_a_function_of_another_number_of_arguments_is_told_what_it_gets(call, words):
    with pytest.raises(CallError, match=words) as refused:
        call()
    assert "test_user_functions.py line" in str(refused.value)


@pytest.mark.parametrize("upper", [3, ll.constant(3)], ids=["scan", "while_loop"])
@pytest.mark.parametrize("body", [lambda c, i: c * 1.0, lambda c, i: c], ids=["an op", "the carry"])
def test_a_body_that_takes_the_carry_first_is_told_of_the_order(upper, body):
    with pytest.raises(LimelightError, match=r"body gets the number first, then the carry: body\(i, carry\)"):
        ll.fori_loop(0, upper, body, ll.ones(3))
    with pytest.raises(LimelightError) as refused:
        ll.fori_loop(0, upper, lambda i, c: c[0], ll.ones(3))
    assert "body(i, carry)" not in str(refused.value)


def test_a_type_error_inside_a_function_stays_as_it_is():
    with pytest.raises(TypeError, match="can only concatenate str") as raised:
        ll.grad(lambda x: "a" + 1)(1.0)
    assert not isinstance(raised.value, LimelightError)
