"""Special functions: those that CuPy has, on arrays of the device alone."""

from __future__ import annotations

import scipy.special
from cupy import broadcast_arrays, work
from cupy._array import SCALARS, ndarray
from cupy._hardware import words

NAMES = words(
    "bdtr bdtrc bdtri beta betainc betaincinv betaln boxcox boxcox1p cbrt chdtr chdtrc chdtri cosm1 digamma ellipk "
    "ellipkm1 entr erf erfc erfcinv erfcx erfinv exp1 exp10 exp2 expi expit expm1 expn exprel fdtr fdtrc gamma "
    "gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn gdtr gdtrc huber i0 i0e i1 i1e j0 j1 k0 k0e k1 "
    "k1e kl_div log1p log_expit log_ndtr loggamma logit lpmv ndtr ndtri poch pseudo_huber psi rel_entr rgamma "
    "xlog1py xlogy y0 y1 yn zeta zetac"
)


def _function(name):
    function = getattr(scipy.special, name)

    def run(*args):
        for x in args:
            if not isinstance(x, (ndarray, *SCALARS)):
                raise TypeError(f"Unsupported type {type(x)}")
        return work(function, *args)

    return run


for _name in NAMES:
    globals()[_name] = _function(_name)


def polygamma(n, x):
    if not isinstance(n, ndarray):
        raise AttributeError("'bool' object has no attribute 'astype'")  # what it says of a number
    n, x = broadcast_arrays(n, x)
    return work(scipy.special.polygamma, n, x)
