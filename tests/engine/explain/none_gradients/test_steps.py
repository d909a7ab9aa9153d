"""Why a gradient is None behind draws, casts, steps and numbers that left: the op's own reason, and what to do."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll
from limelight_widgets.folds import tape as fold


def asked(body: str) -> Any:
    """What `why_none` says of y, made by one line of code from a watched x; with the gradient after the fix."""
    text = f"y = {body}\n"
    linecache.cache["<steps>"] = (len(text), None, [text], "<steps>")
    scope: dict[str, Any] = {"ll": ll, "x": ll.constant([0.25, 0.5])}
    with ll.GradientTape() as tape:
        tape.watch(scope["x"])
        exec(compile(text, "<steps>", "exec"), scope)
    return ll.explain.why_none(tape, scope["y"], scope["x"], scope=scope)


@pytest.mark.parametrize(
    ("body", "op", "words"),
    [
        (
            "ll.astype(ll.random.bernoulli(x), ll.float32) * 2.0",
            "random_bernoulli",
            ["score function", "Gumbel-softmax"],
        ),
        ("ll.random.poisson(x)", "random_poisson", ["score function"]),
        ("ll.random.categorical(x) * 2", "random_categorical", ["score function", "Gumbel-softmax"]),
        ("ll.astype(x, ll.int32) * 2", "astype", ["before the cast"]),
        ("ll.argmax(x) * 2", "argmax", ["an index", "ll.max"]),
        ("ll.astype(x > 0.3, ll.float32)", "greater", ["ll.sigmoid", "ll.where"]),
    ],
)
def test_the_op_is_named_with_its_reason_and_a_remedy(body: str, op: str, words: list[str]) -> None:
    why = asked(body)
    assert (why.cause, why.op) == ("integer or boolean dtype", op)
    assert [word for word in words if word not in str(why)] == []


def test_draws_of_a_staged_function_are_named_too() -> None:
    x = ll.constant([0.25, 0.5])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.function(lambda x: ll.random.poisson(x))(x)  # noqa: PLW0108  # a function of Python's
    assert "score function" in str(ll.explain.why_none(tape, y, x))


@pytest.mark.parametrize(
    ("body", "slope"),
    [
        ("ll.floor(x) * 2.0", 2.0),
        ("ll.round(x)", 1.0),
        ("ll.constant(float(x[0])) * 3.0", None),
        ("ll.constant(x[0].item()) * 3.0", None),
    ],
)
def test_the_fix_gives_a_gradient(body: str, slope: float | None) -> None:
    fix = asked(body).fix
    assert fix.startswith("y = ")
    f: Callable[[Any], Any] = eval(f"lambda x: ll.sum({fix.removeprefix('y = ')})", {"ll": ll})
    expected = [3.0, 0.0] if slope is None else [slope, slope]
    assert ll.grad(f)(ll.constant([0.25, 0.5])).tolist() == expected


def test_an_empty_tape_points_to_what_says_why() -> None:
    assert "explain.why_none(tape, target, source)" in fold.EMPTY


LOSSES = {
    "round": ("no rule", "metric = ll.sum(ll.round(v))"),
    "steps": ("integer or boolean dtype", "loss = ll.sum(ll.astype(v * 2.0, ll.int32) * 2)"),
    "stopped": ("stop_gradient", "loss = ll.sum(ll.stop_gradient(v) * 2.0)"),
    "shown": ("left through NumPy", "loss = ll.constant(v.numpy().sum())"),
    "above": ("integer or boolean dtype", "loss = ll.sum(ll.where(v > 0.0, 1.0, 2.0))"),
}


def test_of_several_cuts_that_of_the_target_is_to_blame() -> None:
    lines = [line.replace("loss", name).replace("metric", name) for name, (_, line) in LOSSES.items()]
    text = "with ll.GradientTape(persistent=True) as tape:\n" + "".join(f"    {line}\n" for line in lines)
    linecache.cache["<losses>"] = (len(text), None, text.splitlines(True), "<losses>")
    scope: dict[str, Any] = {"ll": ll, "v": ll.Variable([1.0, 2.0]), "x": ll.constant(1.0)}
    exec(compile(text, "<losses>", "exec"), scope)
    for name, (cause, _) in LOSSES.items():
        why = ll.explain.why_none(scope["tape"], scope[name], scope["v"], scope=scope)
        assert why.cause == cause, name
        assert f"{name} =" in str(why.line and why.line.text), name


def test_a_cut_of_something_else_is_not_blamed() -> None:
    v, x = ll.Variable([1.0, 2.0]), ll.constant(1.0)
    with ll.GradientTape() as tape:
        ll.sum(ll.round(v))
        loss = ll.sum(x * 2.0)
    assert ll.explain.why_none(tape, loss, v).cause == "not reachable"
