"""Cases of the ops that work element by element."""

from __future__ import annotations

import numpy as np
from opcase import UNARY, Case, Input, binary, raw, unary

import limelight as ll
from limelight.core import dtypes
from limelight.core.op import accepted

FLOATING, REAL, INTEGER, INEXACT = (accepted(word) for word in ("floating", "real", "integer", "inexact"))
NUMERIC = accepted("numeric")
B = dtypes.bool_


ARITHMETIC = [
    *binary("add", ll.add, np.add, scalars=(2,)),
    *binary("subtract", ll.subtract, np.subtract, scalars=(2,)),
    *binary("multiply", ll.multiply, np.multiply, scalars=(2,)),
    *binary("divide", ll.divide, np.divide, "nonzero", scalars=(2,)),
    *binary("floor_divide", ll.floor_divide, np.floor_divide, ("distinct", "positive"), scalars=(3,)),
    *binary("remainder", ll.remainder, np.remainder, ("distinct", "positive"), scalars=(3,), smooth=False),
    *binary("pow", ll.pow, np.power, "positive", scalars=(2, 3)),
    Case("pow", lambda x: x**0, lambda x: x**0, (Input((3,), "zeros"),), note="to 0"),
    Case("pow", lambda x: x**1, lambda x: x**1, (Input((3,), "zeros"),), note="to 1"),
    Case("pow", lambda x: x**2.5, lambda x: x**2.5, (Input((3,), "positive"),), note="fractional", dtypes=INEXACT),
    Case("add", lambda x: x + 0.5, lambda x: x + 0.5, (Input((3,)),), note="fractional", dtypes=INEXACT),
    Case("subtract", lambda x: 0.5 - x, lambda x: 0.5 - x, (Input((3,)),), note="fractional", dtypes=INEXACT),
    *unary("square", ll.square, np.square),
    *unary("negative", ll.negative, np.negative),
    *unary("positive", ll.positive, np.positive),
    *unary("abs", ll.abs, np.abs, "nonzero", out="real"),
    *unary("sign", ll.sign, np.sign, "nonzero", smooth=False, differentiable=False),
    *unary("complex_sign", ll.sign, np.sign, "zeros", note="complex", dtypes=accepted("complex"), differentiable=False),
    *unary("complex_sign", ll.sign, np.sign, "nonzero", note="complex", dtypes=accepted("complex")),
    *unary("conj", ll.conj, np.conj),
    *unary("real", ll.real, np.real, out="real"),
    *unary("imag", ll.imag, np.imag, out="real"),
]

FUNCTIONS = [
    *unary("sqrt", ll.sqrt, np.sqrt, "positive"),
    *unary("rsqrt", ll.rsqrt, lambda x: 1 / np.sqrt(x), "positive"),
    *unary("reciprocal", ll.reciprocal, lambda x: 1 / x, "nonzero"),
    *unary("exp", ll.exp, np.exp),
    *unary("exp2", ll.exp2, np.exp2),
    *unary("expm1", ll.expm1, np.expm1),
    *unary("log", ll.log, np.log, "positive"),
    *unary("log1p", ll.log1p, np.log1p, "positive"),
    *unary("sigmoid", ll.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    *unary("sin", ll.sin, np.sin),
    *unary("cos", ll.cos, np.cos),
    *unary("tan", ll.tan, np.tan, "unit"),
    *unary("asin", ll.asin, np.arcsin, "unit"),
    *unary("acos", ll.acos, np.arccos, "unit"),
    *unary("atan", ll.atan, np.arctan, "unit"),
    *unary("sinh", ll.sinh, np.sinh),
    *unary("cosh", ll.cosh, np.cosh),
    *unary("tanh", ll.tanh, np.tanh, "unit"),
    *binary("atan2", ll.atan2, np.arctan2, "nonzero"),
]


def _half_at_ties(x, y):
    return (x > y) + 0.5 * (x == y)


LIMITS = [
    *binary("maximum", ll.maximum, np.maximum, "distinct", smooth=False, scalars=(1,)),
    *binary("minimum", ll.minimum, np.minimum, "distinct", smooth=False, scalars=(1,)),
    *binary("ahead", raw("ahead"), _half_at_ties, "distinct"),
    *unary("clip", lambda x: ll.clip(x, 0, 2), lambda x: np.clip(x, 0, 2), "distinct", smooth=False),
    Case(
        "clip",
        lambda x: ll.clip(x, max=1),
        lambda x: np.minimum(x, 1),
        (Input((5,), "distinct"),),
        note="above",
        smooth=False,
    ),
    Case(
        "clip",
        lambda x: ll.clip(x, 1),
        lambda x: np.maximum(x, 1),
        (Input((5,), "distinct"),),
        note="below",
        smooth=False,
    ),
    Case(
        "clip",
        lambda x: ll.clip(x, -0.5, 0.5),
        lambda x: np.clip(x, -0.5, 0.5),
        (Input((5,), "distinct"),),
        note="fractional",
        smooth=False,
        dtypes=FLOATING,
    ),
    *unary("floor", ll.floor, np.floor, "distinct"),
    *unary("ceil", ll.ceil, np.ceil, "distinct"),
    *unary("round", ll.round, np.round, "distinct"),
    *unary("trunc", ll.trunc, np.trunc, "distinct"),
    *unary("isnan", ll.isnan, np.isnan, "special", out=B),
    *unary("isinf", ll.isinf, np.isinf, "special", out=B),
    *unary("isfinite", ll.isfinite, np.isfinite, "special", out=B),
]

COMPARISONS = [
    case
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    for case in binary(name, getattr(ll, name), getattr(np, name), "any", out=B)
] + [
    *binary("less", lambda x, y: x < y, np.less, "special", out=B, note="special"),
    *binary("equal", lambda x, y: x == y, np.equal, "special", out=B, note="special"),
    Case("greater", lambda x: x > 1, lambda x: x > 1, (Input((4,)),), note="than a scalar", out=B),
    Case("less", lambda x: 1 > x, lambda x: x < 1, (Input((4,)),), note="than a scalar", out=B),
]

LOGIC = [
    case
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
    for case in binary(name, getattr(ll, name), getattr(np, name), "any")
] + [
    *unary("logical_not", ll.logical_not, np.logical_not),
    *unary("bitwise_invert", ll.bitwise_invert, np.invert),
    *binary("bitwise_left_shift", ll.bitwise_left_shift, np.left_shift, "positive"),
    *binary("bitwise_right_shift", ll.bitwise_right_shift, np.right_shift, "positive"),
]

_MASKS = [((3,), (3,), (3,)), ((2, 1), (3,), (1, 3)), ((), (2, 2), ()), ((2, 2), (), (1, 2)), ((0, 1), (1, 2), (2,))]

WHERE = [Case("where", ll.where, np.where, (Input(c, dtype=B), Input(x), Input(y))) for c, x, y in _MASKS] + [
    Case(
        "where",
        lambda c, x: ll.where(c, x, x),
        lambda c, x: np.where(c, x, x),
        (Input((3,), dtype=B), Input((3,))),
        note="itself",
    ),
    Case(
        "where",
        lambda c, x: ll.where(c, x, 0),
        lambda c, x: np.where(c, x, x.dtype.type(0)),
        (Input((3,), dtype=B), Input((3,))),
        note="else a scalar",
        dtypes=NUMERIC,
    ),
]


def _cast(target, **more):
    def reference(x):
        return x.astype(target)

    return [
        Case(
            "astype",
            lambda x: ll.astype(x, target),
            reference,
            (Input(shape),),
            note=f"to {target.name}",
            out=target,
            **more,
        )
        for shape in UNARY[:4]
    ]


CASTS = [
    *unary("identity", ll.identity, lambda x: x),
    *unary("stop_gradient", ll.stop_gradient, lambda x: x),
    *_cast(dtypes.float32, dtypes=FLOATING | INTEGER | {B}, differentiable=False),
    *_cast(dtypes.float64, dtypes=FLOATING | INTEGER | {B}),
    *_cast(dtypes.bfloat16, dtypes=frozenset([B, dtypes.int8, dtypes.float32]), differentiable=False),
    *_cast(dtypes.complex128, dtypes=NUMERIC),
    *_cast(dtypes.int64, dtypes=INTEGER | {B, dtypes.float32}, differentiable=False),
    *_cast(B, differentiable=False),
    *unary("to_device", lambda x: ll.to(x, "CPU:0"), lambda x: x),
]

CASES = [*ARITHMETIC, *FUNCTIONS, *LIMITS, *COMPARISONS, *LOGIC, *WHERE, *CASTS]
