"""Ops that work element by element."""

from __future__ import annotations

import math
from typing import Any

from limelight.core import dtypes
from limelight.export.to_onnx.arrays import (
    BOOL,
    cast,
    equal,
    is_nan,
    like,
    maximum,
    minimum,
    unary,
    where,
    zeros_like,
)
from limelight.export.to_onnx.builder import Var
from limelight.export.to_onnx.registry import COMPLEX, Site, lowers, lowers_to, refuses

_MOST_SQUARED = 64
_WORD = 64  # bits

lowers_to(
    subtract="Sub", exp="Exp", log="Log", sqrt="Sqrt", sin="Sin", cos="Cos", sigmoid="Sigmoid",
    tanh="Tanh", asin="Asin", acos="Acos", atan="Atan", sign="Sign", negative="Neg", abs="Abs",
    logical_and="And", logical_or="Or", logical_xor="Xor", logical_not="Not",
    less="Less", less_equal="LessOrEqual", greater="Greater", greater_equal="GreaterOrEqual", equal="Equal",
)  # fmt: skip


@lowers("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
def _compare(site: Site, x: Var, y: Var) -> Var:
    op = {
        "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
        "equal": "Equal", "not_equal": "Equal",
    }[site.node.op.name]  # fmt: skip
    if x.dtype == BOOL and op != "Equal":
        x, y = cast(x, "int32"), cast(y, "int32")
    result = site.builder.compare(op, x, y)
    return ~result if site.node.op.name == "not_equal" else result


@lowers("identity", "stop_gradient", "positive", "to_device", "check_numerics", "conj", "real", "ensure_shape")
def _as_it_is(site: Site, x: Var, *params: Any) -> Var:
    return x


@lowers("imag")
def _imag(site: Site, x: Var) -> Var:
    return zeros_like(x)


@lowers("add")
def _add(site: Site, x: Var, y: Var) -> Var:
    return cast(cast(x, "int32") + cast(y, "int32"), BOOL) if x.dtype == BOOL else x + y


@lowers("multiply")
def _multiply(site: Site, x: Var, y: Var) -> Var:
    return x & y if x.dtype == BOOL else x * y


@lowers("divide")
def _divide(site: Site, x: Var, y: Var) -> Var:
    dtype = site.out.dtype
    return (x if x.floating else cast(x, dtype)) / (y if y.floating else cast(y, dtype))


@lowers("floor_divide")
def _floor_divide(site: Site, x: Var, y: Var) -> Var:
    if x.floating:
        rest = _python_mod(x, y)
        quotient = unary("Floor", (x - rest) / y + like(x, 0.5))
        return where(equal(y, 0) | is_infinite(x) | is_infinite(y), x / y, quotient)
    zero = equal(y, 0)
    if x.dtype.kind == "u":
        return where(zero, like(x, 0), x / where(zero, like(y, 1), y))
    turned = equal(y, -1)  # the least number divided by -1 ends the process of who runs the file
    safe = where(zero | turned, like(y, 1), y)
    quotient = x / safe
    rest = x - quotient * safe
    quotient = quotient - cast(~equal(rest, 0) & _differ(rest < 0, safe < 0), x.dtype)
    return where(zero, like(x, 0), where(turned, -x, quotient))


def _differ(x: Var, y: Var) -> Var:
    return x.builder.binary("Xor", x, y)


def _python_mod(x: Var, y: Var) -> Var:
    """The remainder with the sign of the divisor."""
    rest = x.builder.binary("Mod", x, y, fmod=1)
    return where(~equal(rest, 0) & _differ(rest < 0, y < 0), rest + y, rest)


@lowers("remainder")
def _remainder(site: Site, x: Var, y: Var) -> Var:
    if x.floating:
        return _python_mod(x, y)
    zero = equal(y, 0)
    return where(zero, like(x, 0), site.builder.binary("Mod", x, where(zero, like(y, 1), y)))


@lowers("astype")
def _astype(site: Site, x: Var, dtype: Any) -> Var:
    if dtype == BOOL:
        return ~equal(x, 0) if x.dtype != BOOL else x
    return cast(x, dtype)


# --- exponentials and logarithms


@lowers("exp2")
def _exp2(site: Site, x: Var) -> Var:
    return site.builder.binary("Pow", like(x, 2), x)


@lowers("expm1")
def _expm1(site: Site, x: Var) -> Var:
    return expm1(x)


def expm1(x: Var) -> Var:
    """Near 0 as 2 sinh(x/2) exp(x/2), with the series of sinh: the difference would cancel."""
    half = x * 0.5
    square = half * half
    series = like(x, 1 / math.factorial(15))
    for n in (13, 11, 9, 7, 5, 3, 1):
        series = series * square + like(x, 1 / math.factorial(n))
    near = half * series * unary("Exp", half) * 2.0
    return where(unary("Abs", x) < 1.0, near, unary("Exp", x) - 1.0)


@lowers("log1p")
def _log1p(site: Site, x: Var) -> Var:
    return log1p(x)


def log1p(x: Var) -> Var:
    """Near 0 the series of 2 atanh(x / (2 + x)), which cancels nothing."""
    ratio = x / (x + 2.0)
    square = ratio * ratio
    series = like(x, 1 / 31)
    for n in range(29, 0, -2):
        series = series * square + like(x, 1 / n)
    near = ratio * series * 2.0
    return where(unary("Abs", x) < 0.5, near, unary("Log", x + 1.0))


@lowers("log2")
def _log2(site: Site, x: Var) -> Var:
    return unary("Log", x) * (1 / math.log(2))


@lowers("log10")
def _log10(site: Site, x: Var) -> Var:
    return unary("Log", x) * (1 / math.log(10))


@lowers("logaddexp")
def _logaddexp(site: Site, x: Var, y: Var) -> Var:
    top = maximum(x, y)
    result = top + log1p(unary("Exp", -unary("Abs", x - y)))
    return where(equal(x, y), x + math.log(2), result)


@lowers("pow")
def _pow(site: Site, x: Var, y: Var) -> Var:
    if x.floating:
        return site.builder.binary("Pow", x, y)
    if y.value is not None and y.value.ndim == 0 and 0 < int(y.value) < _MOST_SQUARED:
        return _whole_power(x, int(y.value))
    if x.dtype.itemsize < 8:  # onnxruntime stops at the largest number, where limelight goes on with the lowest bits
        return cast(site.builder.binary("Pow", cast(x, "int64"), cast(y, "int64")), x.dtype)
    return site.builder.binary("Pow", x, y)


def _whole_power(x: Var, n: int) -> Var:
    """By squares: onnxruntime computes powers of whole numbers in float64."""
    if n == 1:
        return x
    half = _whole_power(x, n // 2)
    return half * half * x if n % 2 else half * half


@lowers("square")
def _square(site: Site, x: Var) -> Var:
    return x & x if x.dtype == BOOL else x * x


@lowers("rsqrt")
def _rsqrt(site: Site, x: Var) -> Var:
    return like(x, 1) / unary("Sqrt", x)


@lowers("reciprocal")
def _reciprocal(site: Site, x: Var) -> Var:
    return like(x, 1) / x


# --- trigonometry: onnxruntime has some of these in float32 only, so float64 is composed


@lowers("tan")
def _tan(site: Site, x: Var) -> Var:
    return unary("Sin", x) / unary("Cos", x)


@lowers("sinh")
def _sinh(site: Site, x: Var) -> Var:
    e = expm1(unary("Abs", x))
    result = (e + e / (e + 1.0)) * 0.5
    far = unary("Exp", unary("Abs", x) * 0.5)  # exp(x) / 2, which overflows later than exp(x)
    result = where(unary("Abs", x) > 30.0, far * (far * 0.5), result)
    return unary("Sign", x) * where(is_nan(x), x, result)


@lowers("cosh")
def _cosh(site: Site, x: Var) -> Var:
    half = unary("Exp", unary("Abs", x) * 0.5)
    return half * (half * 0.5) + like(x, 0.5) / half / half


@lowers("asinh")
def _asinh(site: Site, x: Var) -> Var:
    size = unary("Abs", x)
    near = log1p(size + size * size / (unary("Sqrt", size * size + 1.0) + 1.0))
    return unary("Sign", x) * where(size > 1e8, unary("Log", size) + math.log(2), near)


@lowers("acosh")
def _acosh(site: Site, x: Var) -> Var:
    above = x - 1.0
    near = log1p(above + unary("Sqrt", above * (x + 1.0)))
    return where(x > 1e8, unary("Log", x) + math.log(2), near)


@lowers("atanh")
def _atanh(site: Site, x: Var) -> Var:
    return (log1p(x) - log1p(-x)) * 0.5


@lowers("atan", "asin", "acos")
def _inverse(site: Site, x: Var) -> Var:
    """One op in float32. float64, for which there are no kernels, improves that by a step of Newton's."""
    name = site.node.op.name
    if x.dtype != dtypes.float64:
        return unary(name.capitalize(), x)
    if name == "atan":
        return atan64(x)
    root = unary("Sqrt", (like(x, 1) - x) * (x + 1.0))
    if name == "asin":
        return atan2_64(x, root)
    return atan2_64(root, x)


def atan64(x: Var) -> Var:
    """Atan in float64: its value in float32, and the angle that is still missing, by the addition theorem."""
    size = unary("Abs", x)
    inverted = size > 1.0
    t = where(inverted, like(x, 1) / size, size)
    rough = cast(unary("Atan", cast(t, "float32")), "float64")
    tangent = unary("Sin", rough) / unary("Cos", rough)
    missing = (t - tangent) / (t * tangent + 1.0)
    angle = rough + missing - missing * missing * missing * (1 / 3)
    angle = where(inverted, like(x, math.pi / 2) - angle, angle)
    return where(is_nan(x), x, unary("Sign", x) * angle)


def atan2_64(y: Var, x: Var) -> Var:
    """The angle of (x, y) for finite operands."""
    angle = atan64(y / x)
    turned = where(y < 0, angle - math.pi, angle + math.pi)
    right = where(x < 0, turned, angle)
    on_axis = unary("Sign", y) * (math.pi / 2)
    return where(is_nan(x) | is_nan(y), x + y, where(equal(x, 0), on_axis, right))


@lowers("atan2")
def _atan2(site: Site, y: Var, x: Var) -> Var:
    atan = atan64 if x.dtype == dtypes.float64 else lambda z: unary("Atan", z)
    y_far, x_far = is_infinite(y), is_infinite(x)
    y_unit, x_unit = where(y_far, unary("Sign", y), y * 1.0), where(x_far, unary("Sign", x), x * 1.0)
    both = y_far & x_far
    top = where(both | ~x_far, y_unit, zeros_like(y_unit * x_unit))
    bottom = where(both | ~y_far, x_unit, zeros_like(y_unit * x_unit))
    negative = sign_bit(y)
    angle = atan(top / bottom)
    turned = where(negative, angle - math.pi, angle + math.pi)
    right = where(sign_bit(x), turned, angle)
    on_axis = where(negative, like(x, -math.pi / 2), like(x, math.pi / 2))
    at_zero = where(sign_bit(x), where(negative, like(x, -math.pi), like(x, math.pi)), y * 1.0 + zeros_like(x))
    result = where(equal(bottom, 0), where(equal(top, 0), at_zero, on_axis), right)
    return where(is_nan(x) | is_nan(y), x + y, result)


@lowers("hypot")
def _hypot(site: Site, x: Var, y: Var) -> Var:
    x, y = unary("Abs", x), unary("Abs", y)
    top = maximum(x, y)
    scale = where(equal(top, 0) | is_infinite(top) | is_nan(top), like(x, 1), top)
    a, b = x / scale, y / scale
    result = scale * unary("Sqrt", a * a + b * b)
    return where(is_infinite(x) | is_infinite(y), like(x, math.inf), result)


# --- choices, signs, rounding


@lowers("maximum", "minimum")
def _extreme(site: Site, x: Var, y: Var) -> Var:
    if x.dtype == BOOL:
        return x | y if site.node.op.name == "maximum" else x & y
    return (maximum if site.node.op.name == "maximum" else minimum)(x, y)


@lowers("ahead")
def _ahead(site: Site, x: Var, y: Var) -> Var:
    return (cast(x > y, x.dtype) + cast(x >= y, x.dtype)) * 0.5


@lowers("clip")
def _clip(site: Site, x: Var, low: Any, high: Any) -> Var:
    if low is not None:
        x = maximum(x, like(x, low))
    return x if high is None else minimum(x, like(x, high))


@lowers("where")
def _where(site: Site, condition: Var, x: Var, y: Var) -> Var:
    return where(condition, x, y)


@lowers("sign")
def _sign(site: Site, x: Var) -> Var:
    return where(is_nan(x), x, unary("Sign", x)) if x.floating else unary("Sign", x)


@lowers("abs")
def _abs(site: Site, x: Var) -> Var:
    return x if x.dtype == BOOL else unary("Abs", x)


@lowers("ceil", "floor", "round", "trunc")
def _round(site: Site, x: Var) -> Var:
    if not x.floating:
        return x
    name = site.node.op.name
    if name != "trunc":
        return unary(name.capitalize(), x)
    return where(x < 0, unary("Ceil", x), unary("Floor", x))


@lowers("isnan")
def _isnan(site: Site, x: Var) -> Var:
    return is_nan(x) if x.floating else _never(x)


def _never(x: Var) -> Var:
    return cast(zeros_like(cast(x, "int32")), BOOL)


def is_infinite(x: Var) -> Var:
    return equal(unary("Abs", x), like(x, math.inf))


@lowers("isinf")
def _isinf(site: Site, x: Var) -> Var:
    return is_infinite(x) if x.floating else _never(x)


@lowers("isfinite")
def _isfinite(site: Site, x: Var) -> Var:
    return unary("Abs", x) < like(x, math.inf) if x.floating else ~_never(x)


def sign_bit(x: Var) -> Var:
    """Whether the sign is negative, that of -0 too."""
    return (x < 0) | (equal(x, 0) & (like(x, 1) / x < 0))


@lowers("signbit")
def _signbit(site: Site, x: Var) -> Var:
    return sign_bit(x)


@lowers("copysign")
def _copysign(site: Site, x: Var, y: Var) -> Var:
    size = unary("Abs", x)
    return where(sign_bit(y), -size, size)


# --- bits


@lowers("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert")
def _bitwise(site: Site, x: Var, *rest: Var) -> Var:
    word = site.node.op.name.removeprefix("bitwise_").capitalize()
    if word == "Invert":
        return ~x if x.dtype == BOOL else unary("BitwiseNot", x)
    return site.builder.binary(word if x.dtype == BOOL else f"Bitwise{word}", x, rest[0])


@lowers("bitwise_left_shift", "bitwise_right_shift")
def _shift(site: Site, x: Var, y: Var) -> Var:
    signed = x.dtype.kind == "i"
    far = (y < 0) | (y >= _WORD) if y.dtype.kind == "i" else y >= _WORD
    by = cast(where(far, like(y, _WORD - 1), y), "uint64")
    if site.node.op.name == "bitwise_left_shift":
        shifted = site.builder.binary("BitShift", cast(x, "uint64"), by, direction="LEFT")
        return cast(where(far, like(shifted, 0), shifted), x.dtype)
    below = x < 0 if signed else None
    bits = cast(x if below is None else where(below, unary("BitwiseNot", x), x), "uint64")  # zeros are shifted in
    shifted = site.builder.binary("BitShift", bits, by, direction="RIGHT")
    shifted = cast(where(far, like(shifted, 0), shifted), x.dtype)
    return shifted if below is None else where(below, unary("BitwiseNot", shifted), shifted)


refuses("ONNX has no access to the bits of a floating-point number", "nextafter")
refuses(COMPLEX, "expm1_of_complex", "tanh_of_complex")
