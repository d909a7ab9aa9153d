"""Cases of the special functions, against SciPy."""

from __future__ import annotations

import numpy as np
from opcase import Case, Input, raw
from scipy import special

import limelight as ll
from limelight.core import dtypes

WIDE = frozenset([dtypes.float32, dtypes.float64])
"""For functions whose rounding in 16 bits is the same story as for the others."""


def _slope_of_i1e(x):
    return 0.5 * (special.i0e(x) + special.ive(2, x)) - np.sign(x) * special.i1e(x)


def _one(op, call, reference, values="any", shapes=((2, 3), (), (0, 2)), **more):
    return [Case(op, call, reference, (Input(shape, values),), **more) for shape in shapes]


def _two(op, call, reference, kinds, **more):
    """Broadcasting both ways, a scalar beside a tensor, nothing at all."""
    shapes = (((2, 1), (3,)), ((), (2,)), ((0, 2), (2,)))
    found = [Case(op, call, reference, (Input(a, kinds[0]), Input(b, kinds[1])), **more) for a, b in shapes]
    of_number = Case(
        op,
        lambda x: call(x, 0.75),
        lambda x: reference(x, 0.75),
        (Input((3,), kinds[0]),),
        **{**more, "note": "and 0.75"},
    )
    return [*found, of_number]


NORMAL = [
    *_one("erf", ll.erf, special.erf),
    *_one("erfc", ll.erfc, special.erfc),
    *_one("erfcx", ll.erfcx, special.erfcx),
    *_one("erfinv", ll.erfinv, special.erfinv, "unit"),
    *_one("ndtr", ll.ndtr, special.ndtr),
    *_one("ndtri", lambda x: ll.ndtri(x * 0.25), lambda x: special.ndtri(x * 0.25), "positive"),
    *_one("log_ndtr", ll.log_ndtr, special.log_ndtr),
]


def _quantile(u, low, width):
    high = low + width
    return special.ndtri(special.ndtr(low) + u * (special.ndtr(high) - special.ndtr(low)))


QUANTILE = [
    Case(
        "truncated_normal_quantile",
        lambda u, low, width: raw("truncated_normal_quantile")(u * 0.25, low, low + width),
        lambda u, low, width: _quantile(u * 0.25, low, width),
        (Input(a, "positive"), Input(b, "unit"), Input(c, "positive")),
        dtypes=WIDE,
    )
    for a, b, c in (((3,), (2, 1), ()), ((0, 2), (), (2,)))
]

GAMMA = [
    *_one("lgamma", ll.lgamma, special.gammaln, "positive"),
    *_one("lgamma", ll.lgamma, special.gammaln, "distinct", note="of negatives", dtypes=WIDE),
    *_one("digamma", ll.digamma, special.digamma, "positive"),
    *_one("polygamma", lambda x: ll.polygamma(1, x), lambda x: special.polygamma(1, x), "positive"),
    *_one("polygamma", lambda x: ll.polygamma(2, x), lambda x: special.polygamma(2, x), "positive", shapes=((3,),)),
    *_two("betaln", ll.betaln, special.betaln, ("positive", "positive")),
    *_two("gammainc", ll.gammainc, special.gammainc, ("positive", "positive")),
    *_two("gammaincc", ll.gammaincc, special.gammaincc, ("positive", "positive")),
]


def _density(a, x):
    return np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))


def _gamma_tail(a, t):
    """By differences of SciPy's function, as far as they reach."""
    step = 1e-6
    slope = (special.gammainc(a + step, np.exp(t)) - special.gammainc(a - step, np.exp(t))) / (2 * step)
    return slope / (_density(a, np.exp(t)) * np.exp(t))


def _beta_density(a, b, x):
    return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))


def _beta_tail(a, b, x):
    step = 1e-6
    slope = (special.betainc(a + step, b, x) - special.betainc(a - step, b, x)) / (2 * step)
    return slope / (_beta_density(a, b, x) * x * (1 - x))


def _three(op, call, reference, **more):
    shapes = (((2, 1), (3,), ()), ((0, 2), (), (2,)))
    return [
        Case(
            op,
            lambda a, b, x: call(a, b, x * 0.4),
            lambda a, b, x: reference(a, b, x * 0.4),
            tuple(Input(shape, "positive") for shape in each),
            **more,
        )
        for each in shapes
    ]


SINGLE = frozenset([dtypes.float32])
BY_DIFFERENCES = [
    *_two("gamma_tail", raw("gamma_tail", 1), _gamma_tail, ("positive", "unit"), dtypes=SINGLE)[:3],
    *_three("beta_tail", raw("beta_tail", 1, 0), _beta_tail, dtypes=SINGLE),
]
"""The reference is only good for 32 bits; the gradients of what follows check 64, and test_special.py all digits."""


def _checked(found, inputs):
    assert np.isfinite(np.asarray(found)).all()


TAILS = [
    Case("gamma_tail", raw("gamma_tail", 1), None, (Input((2, 1), "positive"), Input((3,), "unit")), check=_checked),
    Case("gamma_tail", raw("gamma_tail", 2), None, (Input((2,), "positive"), Input((2,), "unit")), check=_checked),
    Case(
        "beta_tail",
        lambda a, b, x: raw("beta_tail", 1, 1)(a, b, x * 0.4),
        None,
        (Input((2, 1), "positive"), Input((3,), "positive"), Input((), "positive")),
        check=_checked,
        note="mixed",
    ),
]

INCOMPLETE = [
    *_two("gamma_density", raw("gamma_density"), _density, ("positive", "positive"))[:3],
    *_three("beta_density", raw("beta_density"), _beta_density),
    *_three("betainc", ll.betainc, special.betainc),
    *BY_DIFFERENCES,
    *TAILS,
]

LOGS = [
    *_one("logit", lambda x: ll.logit(x * 0.4), lambda x: special.logit(x * 0.4), "positive"),
    *_one("entr", ll.entr, special.entr, "positive"),
    *_two("xlogy", ll.xlogy, special.xlogy, ("zeros", "positive")),
    *_two("xlog1py", ll.xlog1py, special.xlog1py, ("zeros", "positive")),
    *_two("zero_times", raw("zero_times"), np.multiply, ("zeros", "any"))[:3],
    *_two("zero_over", raw("zero_over"), np.divide, ("zeros", "positive"))[:3],
]


def _slope_of_sinc(x):
    z = np.pi * np.asarray(x)
    return np.where(x == 0, 0.0, np.pi * (z * np.cos(z) - np.sin(z)) / np.where(z == 0, 1, z) ** 2)


BESSEL = [
    *_one("bessel_i", ll.i0, special.i0),
    *_one("bessel_i", ll.i1, special.i1, shapes=((3,),), note="1"),
    *_one("bessel_i", raw("bessel_i", 3), lambda x: special.iv(3, x), shapes=((3,),), note="3"),
    *_one("bessel_ie", ll.i0e, special.i0e, "nonzero"),
    *_one("bessel_ie", ll.i1e, special.i1e, "nonzero", shapes=((3,),), note="1"),
    *_one("bessel_ie_slope", raw("bessel_ie_slope", 1), _slope_of_i1e, "nonzero", shapes=((3,),), note="1"),
    *_one("sinc", ll.sinc, np.sinc),
    *_one("sinc", ll.sinc, np.sinc, "zeros", shapes=((4,),), note="at 0"),
    *_one("sinc", raw("sinc", 1), _slope_of_sinc, "zeros", shapes=((4,),), note="once"),
]

CASES: list[Case] = [*NORMAL, *QUANTILE, *GAMMA, *INCOMPLETE, *LOGS, *BESSEL]
