"""Rules of arithmetic that hold bit for bit, for NaN, infinities and zeros of either sign, too.

What does not hold for floating-point numbers is not here: `x * 0` is NaN for an infinite x, `x - x` as well, and
`x + 0.0` is 0.0 where x is -0.0 (but `x - 0.0` and `x + -0.0` are x).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.graph.ir import Node, Value
from limelight.optimise.rewriter import Replacement, RewriteContext, Rule, all_equal, repeats_nothing, tensor

_NEVER_MINUS_ZERO: Final = ("exp", "abs", "square", "cosh", "sigmoid", "softmax")
"""Ops of which no real result is -0.0, so that 0.0 may be added for nothing. A complex one may have parts -0.0."""


def _same_spec(node: Node, value: Value) -> bool:
    """Whether the result has the spec of this operand, and so its shape, if the other operand is a literal.

    Two unknown sizes need not be equal: what else has unknown sizes may repeat `value`, where its size is 1.
    """
    return value.spec == node.outputs[0].spec


def _is_neutral(context: RewriteContext, value: Value, number: Any, zero_is_neutral: Callable[[Any], bool]) -> bool:
    """Whether `number`, added to or taken from `value`, leaves it as it is."""
    if number != 0:
        return False
    if not dtypes.is_inexact(number.dtype) or zero_is_neutral(number):
        return True
    return number.dtype.kind != "c" and context.producer(value, *_NEVER_MINUS_ZERO) is not None


def _is_minus_zero(number: Any) -> bool:
    return number.dtype.kind not in "c" and bool(np.signbit(number))


def _is_plus_zero(number: Any) -> bool:
    return number.dtype.kind not in "c" and not np.signbit(number)


def _add_zero(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    for value, other in (inputs, inputs[::-1]):
        number = all_equal(other)
        if number is not None and _same_spec(node, value) and _is_neutral(context, value, number, _is_minus_zero):
            return Replacement("x + 0", "adding zero changes nothing", value)
    return None


def _subtract_zero(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    number = all_equal(inputs[1])
    if number is None or not _same_spec(node, inputs[0]) or not _is_neutral(context, inputs[0], number, _is_plus_zero):
        return None
    return Replacement("x - 0", "taking zero away changes nothing", inputs[0])


def _multiply_by_one(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    for value, other in (inputs, inputs[::-1]):
        number = all_equal(other)
        if number is None or number.dtype.kind == "c":
            continue
        if number == 1 and _same_spec(node, value):
            return Replacement("x * 1", "multiplying by one changes nothing", value)
        if number == -1 and number.dtype.kind in "if" and _same_spec(node, value):
            return Replacement("x * -1", "a change of sign is no product", context.add("negative", value))
    return None


def _divide_by_one(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    number = all_equal(inputs[1])
    if number is None or number != 1 or number.dtype.kind != "f" or not _same_spec(node, inputs[0]):
        return None
    return Replacement("x / 1", "dividing by one changes nothing", inputs[0])


def _divide_by_power_of_two(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    number = all_equal(inputs[1])
    if number is None or number.dtype not in (dtypes.float32, dtypes.float64) or number == 1:
        return None
    mantissa, exponent = np.frexp(number)
    if abs(mantissa) != 0.5 or abs(exponent) > 60:
        return None
    inverse = context.literal(np.full(tensor(inputs[1]).shape, 1 / number), number.dtype)
    return Replacement(
        "x / 2**n", "the inverse of a power of two is exact", context.add("multiply", inputs[0], inverse)
    )


def _double_negation(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    inner = context.producer(inputs[0], "negative")
    return None if inner is None else Replacement("-(-x)", "two changes of sign undo each other", inner.inputs[0])


def _add_negation(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    inner = context.producer(inputs[1], "negative")
    if inner is None:
        return None
    return Replacement(
        "x + -y", "adding a negative is a subtraction", context.add("subtract", inputs[0], inner.inputs[0])
    )


def _subtract_negation(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    inner = context.producer(inputs[1], "negative")
    if inner is None:
        return None
    return Replacement(
        "x - -y", "taking a negative away is an addition", context.add("add", inputs[0], inner.inputs[0])
    )


def _multiply_negations(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """-x * -y; -x * c."""
    left, right = (context.producer(value, "negative") for value in inputs)
    if left is not None and right is not None:
        value = context.add(node.op, left.inputs[0], right.inputs[0])
        return Replacement("-x * -y", "signs cancel", value)
    for inner, other, swap in ((left, inputs[1], False), (right, inputs[0], True)):
        number = all_equal(other)
        if inner is None or number is None or number.dtype.kind != "f" or not context.used_once(inner.outputs[0]):
            continue
        negated = context.literal(np.full(tensor(other).shape, -number), number.dtype)
        operands = (negated, inner.inputs[0]) if swap else (inner.inputs[0], negated)
        return Replacement("-x * c", "the sign goes into the constant", context.add(node.op, *operands))
    return None


def _negate_product(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    inner = context.producer(inputs[0], "multiply")
    if inner is None or not context.used_once(inputs[0]):
        return None
    for i, other in enumerate(inner.inputs):
        number = all_equal(other)
        if number is not None and number.dtype.kind == "f":
            operands = list(inner.inputs)
            operands[i] = context.literal(np.full(tensor(other).shape, -number), number.dtype)
            return Replacement("-(x * c)", "the sign goes into the constant", context.add("multiply", *operands))
    return None


def _idempotent(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """abs(abs(x)), relu(relu(x)), floor(floor(x)), ..."""
    inner = context.producer(inputs[0], node.op.name)
    return None if inner is None else Replacement(f"{node.op} twice", "once is enough", inputs[0])


def _even_function(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    """abs(-x), square(-x)."""
    inner = context.producer(inputs[0], "negative")
    if inner is None or tensor(inputs[0]).dtype.kind not in "f":
        return None
    return Replacement(f"{node.op} of -x", "the sign does not matter", context.add(node.op, inner.inputs[0]))


def _alias(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    if inputs[0].spec != node.outputs[0].spec:
        return None
    return Replacement(str(node.op), "the same tensor under another name", inputs[0])


def _cast(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    operand, result = tensor(inputs[0]), tensor(node.outputs[0])
    if operand == result:
        return Replacement("cast to its own dtype", "a cast that does nothing", inputs[0])
    inner = context.producer(inputs[0], "astype")
    if inner is None:
        return None
    start = tensor(inner.inputs[0])
    if not _casts_join(start.dtype, operand.dtype, result.dtype):
        return None
    if start == result:
        return Replacement("cast there and back", "the wider dtype holds every value", inner.inputs[0])
    value = context.add("astype", inner.inputs[0], params=node.params)
    return Replacement("cast of a cast", "the first cast loses nothing, so the second one does for both", value)


def _casts_join(start: DType, between: DType, end: DType) -> bool:
    """Whether a cast from `start` to `end` gives what two casts give, by way of `between`, for every value.

    The first one must lose nothing. Beyond its range a cast of a float to an integer is whatever the processor makes of
    it, where that of an integer wraps: so all values must fit where integers become integers by way of floats.
    """
    if not _is_lossless(start, between):
        return False
    if end.kind not in "iub":
        return True
    if start.kind == "f":
        return False
    return end.kind == "b" or between.kind != "f" or bool(np.can_cast(start, end, "safe"))


def _is_lossless(start: DType, between: DType) -> bool:
    if any(dtype.kind not in "biuf" for dtype in (start, between)) or not np.can_cast(start, between, "safe"):
        return False
    if start.kind in "iu" and between.kind == "f":  # NumPy calls int64 to float64 safe, too
        return bool(np.iinfo(start).bits <= np.finfo(between).nmant + 1)
    return True


def _choose_between_equals(context: RewriteContext, node: Node, inputs: tuple[Value, ...]) -> Replacement | None:
    if inputs[1] is not inputs[2] or not _same_spec(node, inputs[1]) or not repeats_nothing(inputs[0], inputs[1]):
        return None
    return Replacement("where(c, x, x)", "both choices are the same", inputs[1])


EXACT: Final[Mapping[str, Sequence[Rule]]] = {
    "abs": (_idempotent, _even_function),
    "add": (_add_zero, _add_negation),
    "astype": (_cast,),
    "ceil": (_idempotent,),
    "divide": (_divide_by_one, _divide_by_power_of_two),
    "floor": (_idempotent,),
    "identity": (_alias,),
    "multiply": (_multiply_by_one, _multiply_negations),
    "negative": (_double_negation, _negate_product),
    "positive": (_alias,),
    "relu": (_idempotent,),
    "square": (_even_function,),
    "stop_gradient": (_alias,),
    "subtract": (_subtract_zero, _subtract_negation),
    "trunc": (_idempotent,),
    "where": (_choose_between_equals,),
}
