"""Draws whose parameters are tensors: `gamma`, `bernoulli`, `poisson`, `categorical`, `multinomial`.

A gamma variate moves with its concentration so that its probability stays (implicit reparameterisation, Figurnov et al.
2018). Counts and classes jump, and so have no such gradient. Outside of their domain continuous distributions give NaN;
those of counts raise an error, since integers have no NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.spec import TensorSpec, VariableSpec, known
from limelight.errors import ArgumentError, ShapeError
from limelight.ops.random._draws import Source, defop_draws_like, to_host

__all__: list[str] = []  # `limelight.random` has the public forms

_SCORE = "use the score function (the gradient of loss * log probability, the sample held fixed)"


def _same_infer(generator: VariableSpec, x: TensorSpec) -> TensorSpec:
    return known(x.shape, x.dtype)


# random_gamma


def _valid_concentrations(a: Any) -> tuple[Any, Any]:
    """In 64 bits, which of them are no concentrations, and the others, with ones for these."""
    wide = to_host(a).astype(np.float64)
    wrong = ~((wide >= 0) & (wide < np.inf))
    return wrong, np.where(wrong, 1.0, wide)


def gamma_of_number(source: Source, a: float, shape: tuple[int, ...], dtype: DType) -> Any:
    """The same numbers as the kernel draws for many equal concentrations, five times as fast for a few.

    Args:
        source: what to draw from.
        a: the concentration, above 0 and finite.
        shape: how many.
        dtype: that of the result.

    Returns:
        NumPy's array.
    """
    return np.asarray(source.generator.standard_gamma(a, shape)).astype(dtype)


def _gamma_kernel(xp: Any, source: Source, a: Any) -> Any:
    try:  # most are sound, which NumPy looks after
        return xp.asarray(np.asarray(source.generator.standard_gamma(to_host(a))).astype(a.dtype))
    except ValueError:
        wrong, concentration = _valid_concentrations(a)
    return xp.asarray(np.where(wrong, np.nan, source.generator.standard_gamma(concentration)).astype(a.dtype))


gamma = defop_draws_like(
    "random_gamma",
    inputs="generator:var concentration",
    infer=_same_infer,
    kernel=_gamma_kernel,
    accepts="floating",
    vjp={"concentration": lambda g, concentration, out: -g * out * concentration._gamma_tail(out.log())},
    maths={"concentration": "ā = -ȳ (∂P(a, y)/∂a) / (∂P(a, y)/∂y)"},
    batching="draw_like",
)

# random_log_gamma


def _log_gamma_kernel(xp: Any, source: Source, a: Any) -> Any:
    """By the variate of a + 1 and a power of a uniform one (Marsaglia and Tsang 2000, section 6), in logarithms."""
    wrong, concentration = _valid_concentrations(a)
    boosted = np.log(source.generator.standard_gamma(concentration + 1.0))
    drawn = boosted - source.generator.standard_exponential(concentration.shape) / concentration
    return xp.asarray(np.where(wrong, np.nan, drawn).astype(a.dtype))


log_gamma = defop_draws_like(
    "random_log_gamma",
    inputs="generator:var concentration",
    infer=_same_infer,
    kernel=_log_gamma_kernel,
    accepts="floating",
    vjp={"concentration": lambda g, concentration, out: -g * concentration._gamma_tail(out)},
    maths={"concentration": "ā = -ȳ (∂P(a, exp y)/∂a) / (∂P(a, exp y)/∂y)"},
    batching="draw_like",
)

# random_bernoulli


def _bernoulli_kernel(xp: Any, source: Source, p: Any) -> Any:
    return xp.asarray(source.generator.random(p.shape) < to_host(p))


bernoulli = defop_draws_like(
    "random_bernoulli",
    inputs="generator:var p",
    infer=lambda generator, p: known(p.shape, dtypes.bool_),
    kernel=_bernoulli_kernel,
    accepts="floating",
    why_no_gradient=f"yes or no does not move smoothly with its probability: {_SCORE}, or a Gumbel-softmax relaxation",
    batching="draw_like",
)

# random_poisson


def _poisson_kernel(xp: Any, source: Source, rate: Any, dtype: DType) -> Any:
    try:
        drawn = np.asarray(source.generator.poisson(to_host(rate)))
    except ValueError as error:
        raise ArgumentError(f"random.poisson: rates must be at least 0, and below 1e18 ({error})") from None
    if dtype.itemsize < drawn.itemsize and drawn.size and drawn.max() > np.iinfo(dtype).max:
        raise ArgumentError(f"random.poisson: {drawn.max()} was drawn, which does not fit in {dtype.name}")
    return xp.asarray(drawn.astype(dtype))


poisson = defop_draws_like(
    "random_poisson",
    inputs="generator:var rate",
    attrs="dtype",
    infer=lambda generator, rate, dtype: known(rate.shape, dtype),
    kernel=_poisson_kernel,
    accepts="floating",
    why_no_gradient=f"counts do not move smoothly with their rate: {_SCORE}",
    batching="draw_like",
)

# random_categorical


def check_classes(name: str, spec: TensorSpec) -> None:
    """Raises ShapeError where there is no last axis, or nothing along it."""
    if not spec.rank or spec.shape[-1] == 0:
        raise ShapeError(f"random.{name}: the last axis holds the classes, one at least; got {spec}")


def _categorical_infer(generator: VariableSpec, logits: TensorSpec) -> TensorSpec:
    check_classes("categorical", logits)
    return known(logits.shape[:-1], dtypes.int32)


def _categorical_kernel(xp: Any, source: Source, logits: Any) -> Any:
    """The class within whose share of the sum of all exponentials a uniform number falls.

    By the inverse of the distribution function: one uniform number for each draw, and a single pass over logits that
    all draws share. 100,000 such draws take 2 ms; with Gumbel noise for each class they took 18.
    """
    host = to_host(logits)
    drawn = source.generator.random(host.shape[:-1])
    one = host.size and not any(step for step, n in zip(host.strides[:-1], host.shape[:-1], strict=True) if n > 1)
    if one:  # the same logits for all, spread without a copy
        host = host[(0,) * (host.ndim - 1)]
    wide = host.astype(np.float64)
    most = wide.max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        ends = np.exp(np.where(wide == most, 0.0, wide - most)).cumsum(-1)
    total = ends[..., -1]
    if np.isnan(total).any():
        raise ArgumentError("random.categorical: a logit is NaN, as the logarithm of a negative probability is")
    last = (ends < total[..., None]).sum(-1)  # later classes have no share, whatever the rounding
    classes = np.searchsorted(ends, drawn * total, "right") if one else (ends <= (drawn * total)[..., None]).sum(-1)
    return xp.asarray(np.minimum(classes, last).astype(np.int32))


categorical = defop_draws_like(
    "random_categorical",
    inputs="generator:var logits",
    infer=_categorical_infer,
    kernel=_categorical_kernel,
    accepts="floating",
    why_no_gradient=f"a class does not move smoothly with its logits: {_SCORE}, or a Gumbel-softmax relaxation",
    batching="draw_like",
)

# random_multinomial


def _multinomial_infer(generator: VariableSpec, p: TensorSpec, n: int, dtype: DType) -> TensorSpec:
    check_classes("multinomial", p)
    return known(p.shape, dtype)


def _multinomial_kernel(xp: Any, source: Source, p: Any, n: int, dtype: DType) -> Any:
    wide = to_host(p).astype(np.float64)
    if not np.all(wide >= 0) or not np.all(wide.sum(-1) > 0):
        raise ArgumentError("random.multinomial: probabilities must be at least 0, and some of each row above it")
    return xp.asarray(source.generator.multinomial(n, wide / wide.sum(-1, keepdims=True)).astype(dtype))


multinomial = defop_draws_like(
    "random_multinomial",
    inputs="generator:var p",
    attrs="n dtype",
    infer=_multinomial_infer,
    kernel=_multinomial_kernel,
    accepts="floating",
    why_no_gradient=f"counts do not move smoothly with probabilities: {_SCORE}",
    batching="draw_like",
)
