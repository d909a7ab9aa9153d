"""Ops of users keep what they declare, or say so: kernels what `infer` says, rules the shape and dtype of inputs."""

from __future__ import annotations

from typing import Any

import pytest

import limelight as ll
from limelight.core.op import _homes, all_ops
from limelight.errors import DTypeError, GradientError, LimelightError, ShapeError

x = ll.ones(3)


def op(name: str, **fields: Any) -> Any:
    whole: dict[str, Any] = {"inputs": "x", "infer": lambda x: x, "kernel": lambda xp, x: x + x}
    whole |= {"vjp": {"x": lambda g: g + g}} | fields
    return ll.defop(f"promised_{name}", **whole)


KERNELS: list[tuple[str, Any, type[LimelightError], str]] = [
    ("shape", lambda xp, x: x[:2], ShapeError, r"promised_shape: its kernel returned f32\[2\].*says f32\[3\]"),
    ("dtype", lambda xp, x: x.astype("float64"), DTypeError, r"f64\[3\].*result.astype\(xp.float32\)"),
    ("list", lambda xp, x: [1.0, 2.0, 3.0], DTypeError, r"returned a list.*xp.asarray"),
]


@pytest.mark.parametrize(("name", "kernel", "error", "words"), KERNELS, ids=[case[0] for case in KERNELS])
@pytest.mark.parametrize("staged", [False, True])
def test_kernels_return_what_infer_says(
    name: str, kernel: Any, error: type[LimelightError], words: str, staged: bool
) -> None:
    bad = op(name, kernel=kernel)
    with pytest.raises(error, match=words):
        (ll.function(bad) if staged else bad)(x)


RULES: list[tuple[str, Any, str]] = [
    ("summed", lambda g, x: ll.sum(g), r"promised_summed: .*'x' returned f32\[\], where x is f32\[3\].*x_shape"),
    ("wide", lambda g: g.astype(ll.float64), r"returned f64\[3\].*\.astype\(x_dtype\)"),
    ("number", lambda: 2.0, r"returned a float.*g \* 2.0"),
    ("asks", lambda x_dtype, g: ll.sum(g), r"returned f32\[\]"),
]


@pytest.mark.parametrize(("name", "rule", "words"), RULES, ids=[case[0] for case in RULES])
@pytest.mark.parametrize("staged", [False, True])
def test_rules_return_what_is_like_the_input(name: str, rule: Any, words: str, staged: bool) -> None:
    bad = op(name, vjp={"x": rule})
    gradient = ll.grad(lambda x: ll.sum(bad(x)))
    with pytest.raises(GradientError, match=words):
        (ll.function(gradient) if staged else gradient)(x)


def test_rules_under_unknown_sizes_are_held_to_the_rank() -> None:
    bad = op("rank", vjp={"x": lambda g: ll.sum(g * 2.0)})
    staged = ll.function(input_signature=[ll.TensorSpec((None,), "float32")])(ll.grad(lambda x: ll.sum(bad(x))))
    with pytest.raises(GradientError, match=r"returned f32\[\], where x is f32\[\?\]"):
        staged(x)


def test_rules_of_any_number_of_inputs_are_held_to_each() -> None:
    fields: dict[str, Any] = {"inputs": "*xs", "infer": lambda *xs: xs[0], "kernel": lambda xp, *xs: sum(xs)}
    good = op("many", **fields, vjp={"xs": lambda g, xs: tuple([g for _ in xs])})
    assert ll.grad(lambda x: ll.sum(good(x, x)))(x).tolist() == [2.0, 2.0, 2.0]
    bad = op("many_bad", **fields, vjp={"xs": lambda g, xs: tuple([ll.sum(g) for _ in xs])})
    with pytest.raises(GradientError, match="promised_many_bad"):
        ll.grad(lambda x: ll.sum(bad(x, x)))(x)


def test_what_keeps_its_promises_runs_everywhere() -> None:
    good = op("kept")
    f = lambda x: ll.sum(good(x) * good(x))  # noqa: E731  # one expression
    assert ll.gradcheck(f, x, order=2).ok
    staged = ll.function(input_signature=[ll.TensorSpec((None,), "float32")])(ll.grad(f))
    assert staged(x).tolist() == ll.grad(f)(x).tolist() == [8.0, 8.0, 8.0]
    assert ll.vectorize(good)(ll.ones((2, 3))).shape == (2, 3)
    none = op("none", vjp={"x": lambda: None})
    assert ll.grad(lambda x: ll.sum(none(x)))(x).tolist() == [0.0, 0.0, 0.0]


def test_forward_mode_asks_rules_for_the_shape_of_the_result() -> None:
    rules = {"x": lambda g, x, x_shape: (g * 2.0 * x).sum_to(x_shape), "y": lambda g, y_shape: g.sum_to(y_shape)}
    infer = lambda x, y: ll.TensorSpec(y.shape, y.dtype)  # noqa: E731  # one expression
    both = op("both", inputs="x y", infer=infer, kernel=lambda xp, x, y: x * x + y, vjp=rules, elementwise=True)
    y = ll.ones((2, 3))
    assert ll.gradcheck(both, x, y).ok
    assert ll.jvp(lambda x: both(x, y), (x,), (x,))[1].tolist() == [[2.0] * 3] * 2


def test_ops_of_limelight_are_not_checked() -> None:
    own = [op for name, op in all_ops().items() if _homes[name].startswith("limelight")]
    assert len(own) > 300
    assert not any(op.foreign for op in own)
