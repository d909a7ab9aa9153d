"""Distributions of integers, classes and permutations. They jump, so no gradient goes through them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from limelight.core import dtypes, shapes
from limelight.core.dispatch import active
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor, wrap
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.ops.index.sort import argsort
from limelight.ops.random import distributions, standard_draws
from limelight.ops.shape.concat import concat
from limelight.random.parameters import (
    ShapeLike,
    as_parameters,
    broadcast_parameter,
    check_domain,
    drawn_shape,
    refuse_generator,
    whole,
)
from limelight.random.stream import Stream


def _whole(name: str, dtype: DTypeLike) -> DType:
    drawn_dtype = dtypes.dtype(dtype)
    if dtypes.kind(drawn_dtype) != "integer":
        raise DTypeError(f"random.{name} draws integers, not {drawn_dtype.name}; see random.uniform")
    return drawn_dtype


class Discrete(Stream):
    """The methods that draw integers and booleans."""

    __slots__ = ()

    def integers(
        self, low: int, high: int | None = None, shape: ShapeLike = None, *, dtype: DTypeLike = dtypes.int32
    ) -> Tensor:
        """Integers in [low, high), all equally likely.

        Args:
            low: the least integer, or, when only one bound is given, `high`, and the least is 0.
            high: the bound that is not reached.
            shape: sizes, or an integer vector (see `shape_of`); by default a scalar.
            dtype: an integer dtype; int32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ArgumentError: a bound is no int, or the range is empty or more than `dtype` can hold.
            DTypeError: the `dtype` is not one of integers.

        >>> import limelight as ll
        >>> bool((ll.random.integers(6, shape=(100,)) < 6).all())
        True
        """
        low, high = [whole("integers", "a bound", n) for n in ((0, low) if high is None else (low, high))]
        drawn_dtype = _whole("integers", dtype)
        limits = np.iinfo(drawn_dtype)
        if not limits.min <= low < high <= limits.max + 1:
            raise ArgumentError(f"random.integers: [{low}, {high}) is empty, or more than {drawn_dtype.name} can hold")
        return standard_draws.integers(self, drawn_shape("integers", shape, ()), low, high, drawn_dtype)

    def bernoulli(self, p: TensorLike = 0.5, shape: ShapeLike = None) -> Tensor:
        """Booleans, each true with probability `p`, which may be a tensor; `shape` is by default that of `p`.

        Not differentiable: use the score function, or a relaxation (Gumbel-softmax).

        >>> import limelight as ll
        >>> ll.random.bernoulli(1.0, (3,)).tolist()
        [True, True, True]
        """
        check_domain("bernoulli", 1, p=p)
        p_dtype, (p,) = as_parameters("bernoulli", None, p)
        return distributions.bernoulli(self, broadcast_parameter(p, p_dtype, drawn_shape("bernoulli", shape, (p,))))

    def poisson(self, rate: TensorLike, shape: ShapeLike = None, *, dtype: DTypeLike = dtypes.int32) -> Tensor:
        """Counts of mean `rate`, a floating number or tensor; `shape` is by default that of `rate`.

        Not differentiable: use the score function. Raises ArgumentError for negative rates, or too large for `dtype`.

        >>> import limelight as ll
        >>> ll.random.poisson(0.0, (3,)).tolist()
        [0, 0, 0]
        """
        rate_dtype, (rate,) = as_parameters("poisson", None, rate)
        wanted = broadcast_parameter(rate, rate_dtype, drawn_shape("poisson", shape, (rate,)))
        return distributions.poisson(self, wanted, _whole("poisson", dtype))

    def categorical(self, logits: TensorLike, shape: ShapeLike = None) -> Tensor:
        """Classes, int32: each with a probability in proportion to the exponential of its logit along the last axis.

        `shape`: that of the result; by default that of `logits` without the last axis. Several draws of each row are
        several rows: (n, rows), or n as an axis of its own among the logits. Not differentiable: use the score
        function, or a relaxation (Gumbel-softmax). Raises ShapeError where the logits do not broadcast to `shape`, or
        `shape` is a number, as if of draws, and the logits have rows.

        >>> import limelight as ll
        >>> ll.random.categorical(ll.constant([0.0, float("-inf")]), (3,)).tolist()
        [0, 0, 0]
        """
        _, (given,) = as_parameters("categorical", None, logits)
        distributions.check_classes("categorical", given.spec)
        if shape is not None:
            if isinstance(shape, (int, np.integer)) and given.ndim > 1:
                rows = shapes.show(given.shape[:-1])
                raise ShapeError(
                    f"random.categorical: the logits have rows, {rows}, and {shape!r} is no shape of theirs; for "
                    f"{shape!r} draws of each row write categorical(logits, ({shape!r}, *logits.shape[:-1])), one row "
                    f"of draws after another, or categorical(logits[..., None, :], (*logits.shape[:-1], {shape!r}))"
                )
            given = broadcast_parameter(given, given.dtype, self._with_classes(shape, given))
        return distributions.categorical(self, given)

    def _with_classes(self, shape: ShapeLike, logits: Tensor) -> Any:
        wanted, classes = drawn_shape("categorical", shape, ()), logits.sizes()[-1]
        if type(wanted) is tuple and type(classes) is int:
            return (*wanted, classes)
        sizes_of = [as_tensor(wanted).astype(dtypes.int64), as_tensor(classes).astype(dtypes.int64).reshape((1,))]
        return concat(sizes_of)

    def multinomial(self, n: int, p: TensorLike, shape: ShapeLike = None, *, dtype: DTypeLike = dtypes.int32) -> Tensor:
        """Multinomial counts: how often each class comes up in `n` draws.

        Not differentiable: use the score function.

        Args:
            n: the number of draws, at least 0.
            p: (..., classes), floating: the probabilities, which are scaled to a sum of 1.
            shape: that of the whole, (..., classes); by default that of `p`.
            dtype: an integer dtype; int32.

        Returns:
            A tensor of that shape and dtype.

        Raises:
            ArgumentError: a probability or `n` is negative, or all of a row are 0.
            ShapeError: `p` does not broadcast to `shape`.
            DTypeError: `p` is not floating, or the `dtype` not one of integers.

        >>> import limelight as ll
        >>> ll.random.multinomial(10, ll.constant([0.2, 0.8])).sum().item()
        10
        """
        n = whole("multinomial", "the number of draws", n)
        if n < 0:
            raise ArgumentError(f"random.multinomial: the number of draws must be at least 0, got {n}")
        p_dtype, (p,) = as_parameters("multinomial", None, p)
        wanted = broadcast_parameter(p, p_dtype, drawn_shape("multinomial", shape, (p,)))
        distributions.check_classes("multinomial", wanted.spec)
        return distributions.multinomial(self, wanted, n, _whole("multinomial", dtype))

    def permutation(self, x: int | TensorLike, /) -> Tensor:
        """The integers 0 to `x` - 1 in random order, int32; or the slices of a tensor `x` along its first axis.

        Raises ArgumentError for a negative number, DTypeError for a scalar that is no integer.

        >>> import limelight as ll
        >>> sorted(ll.random.permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if type(x) is int and x >= 0 and not active:
            return wrap(standard_draws.permuted(self._data, x))
        if not hasattr(x, "__index__") or getattr(x, "ndim", False):
            x = as_tensor(x)
        if not isinstance(x, Tensor):
            return self._permuted(shapes.whole("random.permutation", "a number of integers", x))
        if x.ndim:
            size = x.shape[0]
            return x[self.permutation(size if size is not None else x.sizes()[0])]
        if dtypes.kind(x.dtype) != "integer":
            raise DTypeError(f"random.permutation: needs an int, or a tensor with an axis at least; got {x.spec}")
        return standard_draws.permutation(self, x)

    def _permuted(self, n: int) -> Tensor:
        if n < 0:
            raise ArgumentError(f"random.permutation: the number of integers must be at least 0, got {n}")
        return standard_draws.permutation(self, as_tensor(n)).reshape((n,))

    def choice(
        self, x: int | TensorLike, shape: ShapeLike = (), *, replace: bool = True, p: TensorLike | None = None
    ) -> Tensor:
        """Random choices: integers from 0 to `x` - 1, or slices of a tensor `x` along its first axis.

        Not differentiable in `p`.

        Args:
            x: a positive int, or a tensor with a first axis.
            shape: that of the choices; () by default, which is one.
            replace: whether one may be chosen again. True.
            p: a probability for each, of which a sum other than 1 is divided out; by default all are equally likely.

        Returns:
            int32, or slices of `x`: (*shape, *x.shape[1:]).

        Raises:
            ArgumentError: there is nothing to choose from, or not enough; or a probability is negative or NaN.
            ShapeError: `p` has another size.

        >>> import limelight as ll
        >>> ll.random.choice(ll.constant([10.0, 20.0]), (3,), p=[0.0, 1.0]).tolist()
        [20.0, 20.0, 20.0]
        """
        refuse_generator("choice", x)
        whole_number = hasattr(x, "__index__") and not getattr(x, "ndim", 0)
        among = None if whole_number else as_tensor(x)
        count = whole("choice", "how many there are", x) if among is None else among.shape[0] if among.ndim else 0
        if not count or count < 0:
            raise ArgumentError(f"random.choice: needs a positive int or a tensor with a first axis, got {x!r}")
        replace = shapes.flag("random.choice", "replace", replace)
        places = self._places(count, drawn_shape("choice", shape, ()), replace, p)
        return places if among is None else among[places]

    def _places(self, count: int, shape: Any, replace: bool, p: TensorLike | None) -> Tensor:
        weights = None if p is None else as_tensor(p)
        if weights is not None and weights.shape != (count,):
            raise ShapeError(f"random.choice: p must have a probability for each of {count}, got {weights.spec}")
        if type(weights) is Tensor:  # one that is traced is looked at when it is drawn from, where that is possible
            _check_probabilities(weights, 1 if replace else prod(shape) if isinstance(shape, tuple) else 1)
        if replace:
            return self.integers(0, count, shape) if weights is None else self.categorical(weights.log(), shape)
        if not isinstance(shape, tuple) or (wanted := prod(shape)) > count:
            raise ArgumentError(f"random.choice: {shape} is more than the {count} there are, and replace=False")
        if weights is None:
            return self.permutation(count)[:wanted].reshape(shape)
        keys = weights.log() + standard_draws.gumbel(
            self, (count,), 0.0, 1.0, weights.dtype
        )  # the largest are a draw without replacement (Vieira 2014)
        return argsort(keys, descending=True)[:wanted].reshape(shape).astype(dtypes.int32)

    def dropout_mask(self, x: TensorLike, rate: TensorLike, /) -> Tensor:
        """For each element of `x` 0 with probability `rate`, else 1 / (1 - rate), so that x * mask is x on average.

        `x` is floating, `rate` a number or a scalar tensor: gradients flow to it by the scale of what is kept,
        not by what is dropped. Raises ArgumentError unless 0 <= rate < 1.

        >>> import limelight as ll
        >>> ll.random.dropout_mask(ll.ones(3), 0.0).tolist()
        [1.0, 1.0, 1.0]
        """
        x, given = as_tensor(x), isinstance(rate, Tensor) or hasattr(rate, "__as_tensor__")
        number: Any = as_tensor(rate) if given else rate
        value = number if not given else number.item() if type(number) is Tensor and not number.ndim else 0.0
        if not 0.0 <= value < 1.0:
            raise ArgumentError(f"dropout: the rate must be at least 0 and less than 1, got {value}")
        return self._mask_of_tensor(x, number) if given else standard_draws.dropout_mask(self, x, float(value))

    def _mask_of_tensor(self, x: Tensor, rate: Tensor) -> Tensor:
        """`dropout_mask` of a rate that is differentiated, traced or batched: of the same draws."""
        if rate.ndim or not dtypes.is_floating(x.dtype):
            raise DTypeError(
                f"dropout: needs a floating operand, and one number as the rate; got {x.spec} and {rate.spec}"
            )
        drawn = standard_draws.uniform(self, x.sizes(), 0.0, 1.0, dtypes.float32)
        rate = rate.astype(dtypes.float32 if x.dtype.itemsize < 4 else x.dtype)
        kept: Tensor = (drawn >= rate.astype(dtypes.float32)).astype(rate.dtype) / (1.0 - rate)
        return kept.astype(x.dtype)


def _check_probabilities(weights: Tensor, wanted: int) -> None:
    """Raises ArgumentError unless the probabilities of `choice` are some, and enough of them above 0."""
    host = weights.numpy().astype(np.float64)
    if not (np.isfinite(host).all() and (host >= 0).all()):
        raise ArgumentError(f"random.choice: probabilities must be numbers of at least 0, got {host.tolist()}")
    if (host > 0).sum() < wanted:
        raise ArgumentError(f"random.choice: {(host > 0).sum()} of the probabilities are above 0, {wanted} are needed")
