"""Rules of arithmetic that hold bit for bit, for NaN, infinities and zeros of either sign, too.

What does not hold for floating-point numbers is not here: `x * 0` is NaN for an infinite x, `x - x` as well, and
`x + 0.0` is 0.0 where x is -0.0 (but `x - 0.0` and `x + -0.0` are x).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.spec import TensorSpec
from limelight.graph.ir import Node, Value
from limelight.optimise.rewriter import Found, Rule, Scene, all_equal, tensor

_NEVER_MINUS_ZERO: Final = ("exp", "abs", "square", "cosh", "sigmoid", "softmax")
"""Ops of which no result is -0.0, so that 0.0 may be added to it for nothing."""


def _same(node: Node, value: Value) -> bool:
    return value.spec == node.outputs[0].spec


def _neutral(scene: Scene, value: Value, number: Any, zero_is_neutral: Callable[[Any], bool]) -> bool:
    """Whether `number`, added to or taken from `value`, leaves it as it is."""
    if number != 0:
        return False
    exact = not dtypes.is_inexact(number.dtype)
    return bool(exact or zero_is_neutral(number)) or scene.maker(value, *_NEVER_MINUS_ZERO) is not None


def _minus_zero(number: Any) -> bool:
    return number.dtype.kind not in "c" and bool(np.signbit(number))


def _plus_zero(number: Any) -> bool:
    return number.dtype.kind not in "c" and not np.signbit(number)


def _add_nothing(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    for value, other in (inputs, inputs[::-1]):
        number = all_equal(other)
        if number is not None and _same(node, value) and _neutral(scene, value, number, _minus_zero):
            return Found("x + 0", "adding zero changes nothing", value)
    return None


def _subtract_nothing(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    number = all_equal(inputs[1])
    if number is None or not _same(node, inputs[0]) or not _neutral(scene, inputs[0], number, _plus_zero):
        return None
    return Found("x - 0", "taking zero away changes nothing", inputs[0])


def _times_one(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    for value, other in (inputs, inputs[::-1]):
        number = all_equal(other)
        if number is None or number.dtype.kind == "c":
            continue
        if number == 1 and _same(node, value):
            return Found("x * 1", "multiplying by one changes nothing", value)
        if number == -1 and number.dtype.kind in "if" and _same(node, value):
            return Found("x * -1", "a change of sign is no product", scene.add("negative", value))
    return None


def _over_one(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    number = all_equal(inputs[1])
    if number is None or number != 1 or number.dtype.kind != "f" or not _same(node, inputs[0]):
        return None
    return Found("x / 1", "dividing by one changes nothing", inputs[0])


def _over_power_of_two(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    number = all_equal(inputs[1])
    if number is None or number.dtype not in (dtypes.float32, dtypes.float64) or number == 1:
        return None
    mantissa, exponent = np.frexp(number)
    if abs(mantissa) != 0.5 or abs(exponent) > 60:
        return None
    inverse = scene.literal(np.full(tensor(inputs[1]).shape, 1 / number), number.dtype)
    return Found("x / 2**n", "the inverse of a power of two is exact", scene.add("multiply", inputs[0], inverse))


def _twice_negative(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    inner = scene.maker(inputs[0], "negative")
    return None if inner is None else Found("-(-x)", "two changes of sign undo each other", inner.inputs[0])


def _plus_negative(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    inner = scene.maker(inputs[1], "negative")
    if inner is None:
        return None
    return Found("x + -y", "adding a negative is a subtraction", scene.add("subtract", inputs[0], inner.inputs[0]))


def _minus_negative(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    inner = scene.maker(inputs[1], "negative")
    if inner is None:
        return None
    return Found("x - -y", "taking a negative away is an addition", scene.add("add", inputs[0], inner.inputs[0]))


def _two_negatives(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    """-x * -y; -x * c."""
    left, right = (scene.maker(value, "negative") for value in inputs)
    if left is not None and right is not None:
        value = scene.add(node.op, left.inputs[0], right.inputs[0])
        return Found("-x * -y", "signs cancel", value)
    for inner, other, swap in ((left, inputs[1], False), (right, inputs[0], True)):
        number = all_equal(other)
        if inner is None or number is None or number.dtype.kind != "f" or not scene.alone(inner.outputs[0]):
            continue
        negated = scene.literal(np.full(tensor(other).shape, -number), number.dtype)
        operands = (negated, inner.inputs[0]) if swap else (inner.inputs[0], negated)
        return Found("-x * c", "the sign goes into the constant", scene.add(node.op, *operands))
    return None


def _negative_product(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    inner = scene.maker(inputs[0], "multiply")
    if inner is None or not scene.alone(inputs[0]):
        return None
    for i, other in enumerate(inner.inputs):
        number = all_equal(other)
        if number is not None and number.dtype.kind == "f":
            operands = list(inner.inputs)
            operands[i] = scene.literal(np.full(tensor(other).shape, -number), number.dtype)
            return Found("-(x * c)", "the sign goes into the constant", scene.add("multiply", *operands))
    return None


def _idempotent(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    """abs(abs(x)), relu(relu(x)), floor(floor(x)), ..."""
    inner = scene.maker(inputs[0], node.op.name)
    return None if inner is None else Found(f"{node.op} twice", "once is enough", inputs[0])


def _even(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    """abs(-x), square(-x)."""
    inner = scene.maker(inputs[0], "negative")
    if inner is None or tensor(inputs[0]).dtype.kind not in "f":
        return None
    return Found(f"{node.op} of -x", "the sign does not matter", scene.add(node.op, inner.inputs[0]))


def _another_name(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    if inputs[0].spec != node.outputs[0].spec:
        return None
    return Found(str(node.op), "the same tensor under another name", inputs[0])


def _cast(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    given, made = tensor(inputs[0]), tensor(node.outputs[0])
    if given == made:
        return Found("cast to its own dtype", "a cast that does nothing", inputs[0])
    inner = scene.maker(inputs[0], "astype")
    if inner is None:
        return None
    start = tensor(inner.inputs[0])
    if not _lossless(start, given) or (dtypes.is_inexact(start.dtype) and made.dtype.kind in "iub"):
        return None
    if start == made:
        return Found("cast there and back", "the wider dtype holds every value", inner.inputs[0])
    value = scene.add("astype", inner.inputs[0], params=node.params)
    return Found("cast of a cast", "the first cast loses nothing, so the second one does for both", value)


def _lossless(start: TensorSpec, between: TensorSpec) -> bool:
    plain = all(spec.dtype.kind in "biuf" for spec in (start, between))
    return plain and bool(np.can_cast(start.dtype, between.dtype, "safe"))


def _same_choice(scene: Scene, node: Node, inputs: tuple[Value, ...]) -> Found | None:
    if inputs[1] is not inputs[2] or not _same(node, inputs[1]):
        return None
    return Found("where(c, x, x)", "both choices are the same", inputs[1])


EXACT: Final[Mapping[str, Sequence[Rule]]] = {
    "abs": (_idempotent, _even),
    "add": (_add_nothing, _plus_negative),
    "astype": (_cast,),
    "ceil": (_idempotent,),
    "divide": (_over_one, _over_power_of_two),
    "floor": (_idempotent,),
    "identity": (_another_name,),
    "multiply": (_times_one, _two_negatives),
    "negative": (_twice_negative, _negative_product),
    "positive": (_another_name,),
    "relu": (_idempotent,),
    "square": (_even,),
    "stop_gradient": (_another_name,),
    "subtract": (_subtract_nothing, _minus_negative),
    "trunc": (_idempotent,),
    "where": (_same_choice,),
}
