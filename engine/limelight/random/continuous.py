"""Distributions on the real line, with gradients to their parameters (reparameterisation).

`normal(shape, 1.0, 2.0)` is one op with the numbers as static parameters; where a parameter is a tensor, the standard
draw is moved and scaled by ops of their own, through which gradients flow. Beta and Dirichlet variates are made of the
logarithms of gamma variates, which do not underflow. Uniform numbers of 16 bits are cut off rather than rounded, so
that they stay below 1.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from limelight.core.dispatch import active
from limelight.core.dtypes import DTypeLike, float32
from limelight.core.tensor import Tensor, TensorLike, wrap
from limelight.ops.elementwise.extremes import maximum
from limelight.ops.nn.softmax import softmax
from limelight.ops.random import distributions, standard_draws
from limelight.ops.random._draws import floating
from limelight.ops.special.error_function import truncated_normal_quantile
from limelight.random.parameters import (
    ShapeLike,
    as_parameters,
    broadcast_parameter,
    check_domain,
    check_not_larger,
    check_one_shape,
    drawn_shape,
    is_number,
    refuse_generator,
)
from limelight.random.stream import Stream

_FINEST = 2.0**-25
"""In place of a uniform 0, of which an unbounded distribution would make infinity: half of what float32 can draw."""


class Continuous(Stream):
    """The methods that draw floating numbers.

    The shape comes first where the parameters have defaults. Scales that are Python numbers must not be negative.
    """

    __slots__ = ()

    def normal(
        self,
        shape: ShapeLike = None,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Normally distributed numbers; gradients flow to `mean` and `stddev`.

        Args:
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            mean: their mean, a number or tensor; 0.
            stddev: their standard deviation, a number or tensor; 1.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ArgumentError: `stddev` is a negative number.
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> ll.random.normal((2, 3)).shape
        (2, 3)
        """
        check_domain("normal", stddev=stddev)
        return self._placed("normal", standard_draws.normal, shape, mean, stddev, dtype)

    def uniform(
        self, shape: ShapeLike = None, low: TensorLike = 0.0, high: TensorLike = 1.0, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Uniformly distributed numbers in [low, high); gradients flow to the bounds.

        Args:
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            low: the lower bound, a number or tensor; 0.
            high: the upper bound, a number or tensor; 1.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> bool((ll.random.uniform((100,), 2.0, 3.0) >= 2.0).all())
        True
        """
        check_one_shape("uniform", shape, low, high)
        start: Any = low
        end: Any = high
        if is_number(start) and is_number(end):
            return self._placed("uniform", standard_draws.uniform, shape, start, end - start, dtype)
        drawn_dtype, (low, high) = as_parameters("uniform", dtype, start, end)
        span = high - low
        return self._placed(
            "uniform", standard_draws.uniform, drawn_shape("uniform", shape, (low, high)), low, span, drawn_dtype
        )

    def exponential(
        self, shape: ShapeLike = None, scale: TensorLike = 1.0, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Waiting times of mean `scale`, which may be a tensor, to which gradients flow.

        >>> import limelight as ll
        >>> bool((ll.random.exponential((100,)) >= 0.0).all())
        True
        """
        check_one_shape("exponential", shape, scale)
        check_domain("exponential", scale=scale)
        return self._placed("exponential", standard_draws.exponential, shape, 0.0, scale, dtype)

    def laplace(
        self,
        shape: ShapeLike = None,
        mean: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Numbers of the Laplace distribution; gradients flow to `mean` and `scale`.

        Their distance from `mean` is exponential of mean `scale`.

        Args:
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            mean: their mean, a number or tensor; 0.
            scale: the mean distance, a number or tensor; 1.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ArgumentError: `scale` is a negative number.
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> ll.random.laplace((2,), ll.constant([0.0, 5.0])).shape
        (2,)
        """
        check_domain("laplace", scale=scale)
        return self._placed("laplace", standard_draws.laplace, shape, mean, scale, dtype)

    def gumbel(
        self,
        shape: ShapeLike = None,
        mode: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Numbers of the Gumbel distribution, mode - scale log(exponential); gradients flow to `mode` and `scale`.

        Extreme values; added to logits they draw classes.

        Args:
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            mode: the likeliest value, a number or tensor; 0.
            scale: the spread, a number or tensor; 1.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ArgumentError: `scale` is a negative number.
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> ll.random.gumbel((2, 3)).shape
        (2, 3)
        """
        check_domain("gumbel", scale=scale)
        return self._placed("gumbel", standard_draws.gumbel, shape, mode, scale, dtype)

    def cauchy(
        self,
        shape: ShapeLike = None,
        median: TensorLike = 0.0,
        scale: TensorLike = 1.0,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Numbers of the Cauchy distribution; gradients flow to `median` and `scale`.

        Its tails are so heavy that it has no mean; half of the numbers lie within `scale` of `median`.

        Args:
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            median: a number or tensor; 0.
            scale: the spread, a number or tensor; 1.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ArgumentError: `scale` is a negative number.
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> ll.random.cauchy((2, 3)).shape
        (2, 3)
        """
        check_domain("cauchy", scale=scale)
        return self._placed("cauchy", standard_draws.cauchy, shape, median, scale, dtype)

    def _placed(
        self,
        name: str,
        draw: Callable[..., Tensor],
        shape: ShapeLike,
        location: Any,
        scale: Any,
        dtype: DTypeLike | None,
    ) -> Tensor:
        """`location` + `scale` times what `draw` gives: one op for numbers, two more for tensors."""
        if type(location) is float and type(scale) is float and dtype is None and type(shape) is tuple:
            return draw(self, shape, location, scale, float32)
        refuse_generator(name, shape)
        if is_number(location) and is_number(scale):
            check_one_shape(name, shape, location, scale)
            drawn_dtype = float32 if dtype is None else floating(name, dtype)
            return draw(self, drawn_shape(name, shape, ()), float(location), float(scale), drawn_dtype)
        drawn_dtype, (location, scale) = as_parameters(name, dtype, location, scale)
        drawn = draw(self, drawn_shape(name, shape, (location, scale)), 0.0, 1.0, drawn_dtype)
        scaled = drawn if is_number(scale) and scale == 1 else drawn * scale
        return check_not_larger(name, drawn, scaled if is_number(location) and location == 0 else scaled + location)

    def truncated_normal(
        self,
        shape: ShapeLike = None,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        low: TensorLike | None = None,
        high: TensorLike | None = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Numbers of the truncated normal distribution; gradients flow to all four parameters.

        Drawn by their quantile function, so that any interval is quick and accurate.

        Args:
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            mean: the mean before truncation, a number or tensor; 0.
            stddev: the standard deviation before truncation, a number or tensor; 1.
            low: the least number that counts, which may be infinite; by default mean - 2 stddev.
            high: the largest one; by default mean + 2 stddev.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype. NaN where high < low.

        Raises:
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> bool((ll.abs(ll.random.truncated_normal((100,))) <= 2.0).all())
        True
        """
        check_one_shape("truncated_normal", shape, mean, stddev)
        check_domain("truncated_normal", stddev=stddev)
        parameters: list[Any] = [mean, stddev, -2.0 if low is None else low, 2.0 if high is None else high]
        drawn_dtype, (mean, stddev, below, above) = as_parameters("truncated_normal", dtype, *parameters)
        below = below if low is None else (below - mean) / stddev
        above = above if high is None else (above - mean) / stddev
        drawn = standard_draws.uniform(
            self, drawn_shape("truncated_normal", shape, (mean, stddev, below, above)), 0.0, 1.0, drawn_dtype
        )
        standard = truncated_normal_quantile(maximum(drawn, _FINEST), below, above)
        return check_not_larger("truncated_normal", drawn, standard * stddev + mean)

    def gamma(
        self,
        concentration: TensorLike,
        scale: TensorLike = 1.0,
        shape: ShapeLike = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Gamma variates of mean `concentration` * `scale`; gradients flow to both (to the first implicitly).

        Args:
            concentration: a number or tensor, at least 0.
            scale: a number or tensor, at least 0; 1.
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            A tensor of that shape and dtype. NaN where a parameter is a tensor and negative.

        Raises:
            ArgumentError: a parameter is a negative number.
            ShapeError: parameters do not broadcast to `shape`.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> ll.random.gamma(ll.constant([0.5, 2.0])).shape
        (2,)
        """
        check_domain("gamma", concentration=concentration, scale=scale)
        if type(concentration) is float and is_number(scale) and dtype is None:  # prepared already
            draw_dtype = float32
        else:
            draw_dtype, (concentration, scale) = as_parameters("gamma", dtype, concentration, scale)
        wanted = drawn_shape("gamma", shape, (concentration, scale))
        if is_number(concentration) and 0 < concentration < inf and type(wanted) is tuple and not active:
            drawn = wrap(distributions.gamma_of_number(self._data, concentration, wanted, draw_dtype))
            return drawn if is_number(scale) and scale == 1 else check_not_larger("gamma", drawn, drawn * scale)
        drawn = distributions.gamma(self, broadcast_parameter(concentration, draw_dtype, wanted))
        return check_not_larger("gamma", drawn, drawn if is_number(scale) and scale == 1 else drawn * scale)

    def beta(self, a: TensorLike, b: TensorLike, shape: ShapeLike = None, *, dtype: DTypeLike | None = None) -> Tensor:
        """Beta variates, of density in proportion to x^(a-1) (1-x)^(b-1); gradients flow to both concentrations.

        By the logarithms of two gamma variates, which do not underflow where concentrations are small.

        Args:
            a: the first concentration, a number or tensor, at least 0.
            b: the second concentration, a number or tensor, at least 0.
            shape: sizes, or an integer vector (see `shape_of`); by default that of the parameters.
            dtype: floating; by default that of the parameters, else float32.

        Returns:
            Numbers in [0, 1], of that shape and dtype.

        Raises:
            ArgumentError: a parameter is a negative number.
            DTypeError: the `dtype` is not floating.

        >>> import limelight as ll
        >>> ll.random.beta(0.5, 2.0, (3,)).shape
        (3,)
        """
        check_domain("beta", a=a, b=b)
        drawn_dtype, (a, b) = as_parameters("beta", dtype, a, b)
        wanted = drawn_shape("beta", shape, (a, b))
        one = distributions.log_gamma(self, broadcast_parameter(a, drawn_dtype, wanted))
        other = distributions.log_gamma(self, broadcast_parameter(b, drawn_dtype, wanted))
        return (one - other).sigmoid()

    def dirichlet(
        self, concentration: TensorLike, shape: ShapeLike = None, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Probabilities that sum to 1 along the last axis; gradients flow to `concentration`.

        `shape`: that of the whole, its last size that of `concentration`; by default the same.

        >>> import limelight as ll
        >>> round(ll.random.dirichlet(ll.constant([1.0, 2.0, 3.0])).sum().item(), 5)
        1.0
        """
        drawn_dtype, (concentration,) = as_parameters("dirichlet", dtype, concentration)
        distributions.check_classes("dirichlet", concentration.spec)
        wanted = drawn_shape("dirichlet", shape, (concentration,))
        return softmax(distributions.log_gamma(self, broadcast_parameter(concentration, drawn_dtype, wanted)))
