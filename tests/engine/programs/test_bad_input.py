"""Bad input: what the message says, and that nothing is left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import limelight as ll
from limelight.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    LimelightError,
    RunError,
    ShapeError,
)

Clean = Any  # the fixture of conftest.py

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

m23, m45 = ll.ones((2, 3)), ll.ones((4, 5))
v3, i2 = ll.ones((3,)), ll.constant([1, 2])
one = ll.constant(1.0)


def line_of(f: Callable[..., Any], offset: int = 0) -> str:
    """How errors name a line of a function of this file: by default its first."""
    return f"test_bad_input.py line {f.__code__.co_firstlineno + offset}"


# --- Mistakes in single ops: the same error, in the same words, eager and staged


class Mistake(NamedTuple):
    """A function that makes a mistake, the tensors to call it with, and what it should raise."""

    make: Callable[..., Any]
    given: tuple[Any, ...]
    error: type[LimelightError]
    message: str


SHAPES = [
    Mistake(lambda a, b: a + b, (m23, m45), ShapeError, r"add: f32\[2,3\] and f32\[4,5\] .* axis -2 has sizes 2 and 4"),
    Mistake(lambda a, b: a @ b, (m23, m45), ShapeError, r"matmul: f32\[2,3\] @ f32\[4,5\]: .* size 3.* has 4"),
    Mistake(lambda a, b: ll.concat([a, b], axis=0), (m23, m45), ShapeError, r"concat: f32\[2,3\] and f32\[4,5\]"),
    Mistake(lambda a, b: ll.stack([a, b]), (m23, m45), ShapeError, r"stack: f32\[2,3\] and f32\[4,5\]"),
    Mistake(
        lambda a, b: ll.where(a > 0, a, b),
        (m23, m45),
        ShapeError,
        r"where: bool\[2,3\] and f32\[2,3\] and f32\[4,5\] do not",
    ),
    Mistake(lambda a: a.reshape((7,)), (m23,), ShapeError, r"reshape: f32\[2,3\] has 6 elements .*\(7,\)"),
    Mistake(lambda a: ll.broadcast_to(a, (2, 4)), (m23,), ShapeError, r"broadcast_to: shapes \(2, 3\) and \(2, 4\)"),
    Mistake(lambda a: ll.split(a, 4, axis=1), (m23,), ShapeError, r"split: axis 1 of f32\[2,3\] .* 4 equal parts"),
    Mistake(lambda a: ll.squeeze(a, 0), (m23,), ShapeError, r"squeeze: axis 0 of f32\[2,3\] has size 2"),
    Mistake(lambda a, b: ll.tensordot(a, b, axes=1), (m23, m45), ShapeError, r"tensordot: .*f32\[2,3\].*f32\[4,5\]"),
    Mistake(lambda a: ll.max(a[:0]), (v3,), ShapeError, r"max: f32\[0\] has no elements"),
    Mistake(lambda a: ll.zeros((-1,)) + a, (one,), ShapeError, r"sizes must not be negative, got \(-1,\)"),
    Mistake(lambda a: ll.add(a, [[1], [1, 2]]), (one,), ShapeError, "must be rectangular"),
    Mistake(lambda a: ll.sum(a, axis=5), (m23,), ArgumentError, "sum: axis 5 is out of range for a tensor of rank 2"),
    Mistake(lambda a: ll.expand_dims(a, 9), (m23,), ArgumentError, "expand_dims: axis 9 is out of range"),
    Mistake(lambda a: ll.transpose(a, (0, 0)), (m23,), ArgumentError, r"transpose: axes \(0, 0\).* f32\[2,3\]"),
    Mistake(lambda a: a[5], (m23,), ArgumentError, r"index 5 is out of bounds for axis 0 of shape \(2, 3\)"),
    Mistake(lambda a: a[0, 0, 0], (m23,), ArgumentError, r"too many indices for a tensor of shape \(2, 3\)"),
    Mistake(lambda a: ll.repeat(a, -1), (m23,), ArgumentError, "repeat: repeats must not be negative, got -1"),
]

DTYPES = [
    Mistake(
        lambda a, i: a + i,
        (v3[:2], i2),
        DTypeError,
        r"add: f32\[2\] and i32\[2\] do not mix.*ll\.astype\(i, ll\.float32\), as `i` is the i32\[2\]",
    ),
    Mistake(lambda i: i * 0.5, (i2,), DTypeError, r"multiply: i32\[2\] and 0\.5 do not mix"),
    Mistake(lambda i: (i > 0) + i, (i2,), DTypeError, r"add: bool\[2\] and i32\[2\] do not mix.*ll\.int32"),
    Mistake(
        lambda i: ll.sqrt(i + 1),
        (i2,),
        DTypeError,
        r"sqrt needs floating .* got int32; write ll\.astype\(i \+ 1, ll\.float32",
    ),
    Mistake(lambda i: ll.logical_and(i, i), (i2,), DTypeError, r"logical_and needs bool .* got int32"),
    Mistake(lambda a: ll.take(a, a, axis=0), (v3,), DTypeError, "take needs integer operands, got float32"),
    Mistake(lambda i: i + 2**40, (i2,), DTypeError, "add: 1099511627776 does not fit into int32"),
    Mistake(lambda a: a + "text", (one,), DTypeError, "cannot make a tensor of text"),
    Mistake(lambda a: a + None, (one,), DTypeError, "cannot make a tensor of None: it is no number"),
    Mistake(lambda a: a + object(), (one,), DTypeError, "cannot make a tensor of an object of type object"),
    Mistake(lambda a: a + 2**70, (ll.constant(1, dtype="int64"),), DTypeError, "does not fit into int64"),
    Mistake(
        lambda a: a.astype("float31"), (one,), DTypeError, "'float31' is not a dtype of limelight; write one of bool"
    ),
    Mistake(lambda a: ll.astype(ll.astype(a, "complex64"), "float32"), (one,), DTypeError, r"write ll\.real\(x\)"),
    Mistake(lambda a: {a: 1}, (one,), DTypeError, r"not hashable; use t\.ref\(\)"),
    Mistake(lambda a: a.to("gpu:7"), (one,), DeviceError, "'gpu:7' does not exist here; devices here: CPU:0"),
    Mistake(lambda a: a.to("cpu::0"), (one,), DeviceError, "'cpu::0' is not a device name"),
]


@pytest.mark.parametrize("mistake", SHAPES + DTYPES, ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_mistakes_read_the_same_eager_and_staged(mistake: Mistake, clean: Clean) -> None:
    staged = ll.function(mistake.make)
    outer = ll.function(lambda *given: (staged(*given),))
    messages = []
    for run in (mistake.make, staged, outer):
        with clean(staged, outer), pytest.raises(mistake.error, match=mistake.message) as caught:
            run(*mistake.given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == messages[2]
    assert line_of(mistake.make) in messages[0]


@pytest.mark.parametrize("mistake", SHAPES[:3] + SHAPES[5:7], ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_mismatches_of_unknown_sizes_are_found_at_run_time_in_the_same_words(mistake: Mistake, clean: Clean) -> None:
    specs = [ll.TensorSpec((None,) * t.ndim, t.dtype) for t in mistake.given]
    staged = ll.function(mistake.make, input_signature=specs)
    staged.get_concrete_function()
    with pytest.raises(mistake.error) as eager:
        mistake.make(*mistake.given)
    for _ in range(2):
        with clean(staged), pytest.raises(mistake.error, match=mistake.message) as caught:
            staged(*mistake.given)
    message = str(caught.value)
    assert message.startswith(eager.value.bare)
    assert "of <lambda>" in message
    assert line_of(mistake.make) in message


@pytest.mark.parametrize("under", ["tape", "device", "cond", "while_loop", "py_func", "init_scope"])
def test_mistakes_deep_inside_leave_nothing_behind(under: str, clean: Clean) -> None:
    def fails() -> Any:
        return m23 + m45

    def deep(a: Any) -> Any:
        if under == "tape":
            with ll.GradientTape() as tape:
                tape.watch(a)
                fails()
        elif under == "device":
            with ll.device("cpu:0"), ll.device(None):
                fails()
        elif under == "cond":
            ll.cond(a > 0, lambda: ll.cond(a > 0, fails, fails), fails)
        elif under == "while_loop":
            ll.while_loop(lambda i: i < 3, lambda i: (fails(), i)[1], (0,))
        elif under == "py_func":
            ll.py_func(lambda t: fails(), [a], ll.TensorSpec((2, 3)))
        else:
            with ll.init_scope():
                fails()

    staged = ll.function(deep)
    outer = ll.function(lambda a: (staged(a),))
    for run in (deep, staged, outer):
        functions = () if under == "py_func" else (staged, outer)  # that one fails when the graph runs
        with clean(*functions), pytest.raises(ShapeError, match=r"add: f32\[2,3\] and f32\[4,5\]") as caught:
            run(one)
        assert line_of(fails, 1) in str(caught.value)


@pytest.mark.parametrize("pick", [lambda a, k: a[k], lambda a, k: a[:, k], lambda a, k: a[None, 0:k, k]])
def test_a_position_too_far_is_told_alike_eager_and_staged(pick: Callable[..., Any]) -> None:
    with pytest.raises(ll.errors.LimelightError) as eager:
        pick(ll.constant(m23), ll.constant(5))
    with pytest.raises(type(eager.value)) as staged:
        ll.function(pick)(ll.constant(m23), ll.constant(5))
    words = eager.value.bare
    assert str(staged.value).startswith(f"{words}; in dynamic_slice(f32[2,3], i32[")


def test_runtime_failures_name_the_way_to_the_op(clean: Clean) -> None:
    @ll.function
    def inner(a: Any, i: Any) -> Any:
        return ll.take(a, i, axis=0)

    @ll.function
    def outer(a: Any, i: Any) -> Any:
        return ll.cond(ll.sum(a) > 0, lambda: inner(a, i), lambda: a)

    good = outer(v3, ll.constant([1, 2, 0]))
    assert good.tolist() == [1.0, 1.0, 1.0]
    with clean(inner, outer), pytest.raises(RunError, match="out of bounds") as caught:
        outer(v3, ll.constant([7, 8, 9]))
    message = str(caught.value)
    assert "take(f32[3], i32[3]) of inner failed: IndexError" in message
    assert line_of(inner.python_function, 2) in message
    assert line_of(outer.python_function, 2) in message
