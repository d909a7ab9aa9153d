"""Normalisations with scales and offsets that are learned: `BatchNorm`, `LayerNorm`, `RMSNorm`, `GroupNorm`.

A `BatchNorm` that is called without `training` under a tape does not warn: fine-tuning with frozen averages looks the
same.
"""

from __future__ import annotations

from limelight.core import dtypes
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ShapeError
from limelight.nn import initializers
from limelight.nn.functional.normalisation import batch_norm, batch_norm_training, group_norm, layer_norm, rms_norm
from limelight.nn.layers.constructor_checks import checked_dtype, checked_flag, checked_number, checked_size
from limelight.nn.layers.layer import Layer, check_training


class _KeepsShortFloats(Layer):
    """A layer whose result has the dtype of its input where that is narrower than the layer's own."""

    def in_own_dtype(self, x: Tensor) -> Tensor:
        return super().in_own_dtype(x) if x.dtype.itemsize > dtypes.dtype(self.dtype).itemsize else x


class _Normalisation(_KeepsShortFloats):
    """What all share: a scale and an offset for each channel (the last axis), either of which can be left out."""

    def __init__(
        self, *, epsilon: float = 1e-5, use_scale: bool = True, use_offset: bool = True, dtype: DTypeLike = "float32"
    ) -> None:
        name = type(self).__name__
        self.epsilon = checked_number(name, "epsilon", epsilon)
        self.use_scale = checked_flag(name, "use_scale", use_scale)
        self.use_offset = checked_flag(name, "use_offset", use_offset)
        self.dtype = checked_dtype(name, dtype)
        self.scale: Variable | None = None
        self.offset: Variable | None = None

    def build(self, features: int) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (features,), initializers.ones)
        if self.use_offset:
            self.offset = self.weight("offset", (features,), initializers.zeros)


class BatchNorm(_Normalisation):
    """Batch normalisation (Ioffe and Szegedy 2015): each channel with mean 0 and variance 1 over batch and space.

    While training, mean and variance are those of the batch, and the variables `mean` and `variance`, not trainable,
    move towards them: mean = momentum mean + (1 - momentum) of the batch's. Otherwise these averages are used. The
    variance is that of the batch itself (divided by n, not n - 1).

    Args:
        momentum: how much of the averages is kept in a step, from 0 to 1; 0.9.
        epsilon: added to the variance, at least 0; 1e-5.
        use_scale: whether the result is multiplied by a learned scale for each channel. True.
        use_offset: whether a learned offset for each channel is added. True.
        dtype: the dtype of scale, offset and averages, floating; float32.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> layer = ll.nn.BatchNorm(momentum=0.5)
    >>> layer(ll.constant([[1.0], [3.0]]), training=True).numpy().round(3).tolist()
    [[-1.0], [1.0]]
    >>> layer.mean.numpy().tolist(), layer.variance.numpy().tolist()
    ([1.0], [1.0])
    """

    form = "(batch, ..., channels)"

    def __init__(
        self,
        *,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        use_scale: bool = True,
        use_offset: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        if not 0.0 <= checked_number("BatchNorm", "momentum", momentum) <= 1.0:
            raise ArgumentError(f"BatchNorm: momentum must lie between 0 and 1, got {momentum}")
        self.momentum = momentum
        super().__init__(epsilon=epsilon, use_scale=use_scale, use_offset=use_offset, dtype=dtype)
        self.mean: Variable | None = None
        self.variance: Variable | None = None

    def build(self, features: int) -> None:
        super().build(features)
        self.mean = self.weight("mean", (features,), initializers.zeros, trainable=False)
        self.variance = self.weight("variance", (features,), initializers.ones, trainable=False)

    def call(self, x: TensorLike, training: bool = False) -> Tensor:
        """The normalised input; while training, the averages are updated.

        Args:
            x: (batch, ..., channels), floating.
            training: whether the moments are those of the batch, or the averages. False.

        Returns:
            A tensor of the shape of `x`, and of its dtype, or the layer's where that is narrower.

        Raises:
            ShapeError: `x` does not have the channels of the first call, or, while training, is empty or has no batch.
            DTypeError: `x` is not floating.
        """
        x = self.ready(x)
        assert self.mean is not None
        assert self.variance is not None
        if training is not False and training is not True:
            check_training(self, training)
        if not training:
            return batch_norm(x, self.mean, self.variance, self.scale, self.offset, self.epsilon)
        if x.ndim < 2 or x.size == 0:
            raise ShapeError(f"{self!r} needs a batch to train on, of shape {self._wanted_form()}, got {x.spec}")
        y, mean, variance = batch_norm_training(x, self.scale, self.offset, self.epsilon)
        self._move(self.mean, mean)
        self._move(self.variance, variance)
        return y

    def _move(self, average: Variable, now: Tensor) -> None:
        average.assign(self.momentum * average + (1.0 - self.momentum) * now.astype(average.dtype))


class LayerNorm(_Normalisation):
    """Layer normalisation (Ba et al. 2016): the last axis of each example with mean 0 and variance 1.

    Args:
        epsilon: added to the variance, at least 0; 1e-5.
        use_scale: whether the result is multiplied by a learned scale for each feature. True.
        use_offset: whether a learned offset for each feature is added. True.
        dtype: the dtype of scale and offset, floating; float32.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.LayerNorm(epsilon=0.0)(ll.constant([[1.0, 3.0], [0.0, 10.0]])).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def call(self, x: TensorLike) -> Tensor:
        """The normalised input.

        Args:
            x: (..., features), floating.

        Returns:
            A tensor of the shape of `x`, and of its dtype, or the layer's where that is narrower.

        Raises:
            ShapeError: `x` does not have the features of the first call.
            DTypeError: `x` is not floating.
        """
        x = self.ready(x)
        return layer_norm(x, self.scale, self.offset, axis=-1, epsilon=self.epsilon)


class RMSNorm(_KeepsShortFloats):
    """Root mean square normalisation (Zhang and Sennrich 2019): the last axis over the root of the mean of its squares.

    Args:
        epsilon: added to the mean of the squares, at least 0; 1e-6.
        use_scale: whether the result is multiplied by a learned scale for each feature; there is no offset. True.
        dtype: the dtype of the scale, floating; float32.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.RMSNorm(epsilon=0.0)(ll.constant([[3.0, -3.0]])).tolist()
    [[1.0, -1.0]]
    """

    def __init__(self, *, epsilon: float = 1e-6, use_scale: bool = True, dtype: DTypeLike = "float32") -> None:
        self.epsilon = checked_number("RMSNorm", "epsilon", epsilon)
        self.use_scale = checked_flag("RMSNorm", "use_scale", use_scale)
        self.dtype = checked_dtype("RMSNorm", dtype)
        self.scale: Variable | None = None

    def build(self, features: int) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (features,), initializers.ones)

    def call(self, x: TensorLike) -> Tensor:
        """The normalised input.

        Args:
            x: (..., features), floating.

        Returns:
            A tensor of the shape of `x`, and of its dtype, or the layer's where that is narrower.

        Raises:
            ShapeError: `x` does not have the features of the first call.
            DTypeError: `x` is not floating.
        """
        x = self.ready(x)
        return rms_norm(x, self.scale, axis=-1, epsilon=self.epsilon)


class GroupNorm(_Normalisation):
    """Group normalisation (Wu and He 2018): each group of channels with mean 0 and variance 1 over channels and space.

    Args:
        groups: how many groups the channels are cut into, which it must divide.
        epsilon: added to the variance, at least 0; 1e-5.
        use_scale: whether the result is multiplied by a learned scale for each channel. True.
        use_offset: whether a learned offset for each channel is added. True.
        dtype: the dtype of scale and offset, floating; float32.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> ll.nn.GroupNorm(2, epsilon=0.0)(ll.constant([[1.0, 3.0, 0.0, 10.0]])).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    form = "(batch, ..., channels)"

    def __init__(
        self,
        groups: int,
        *,
        epsilon: float = 1e-5,
        use_scale: bool = True,
        use_offset: bool = True,
        dtype: DTypeLike = "float32",
    ) -> None:
        self.groups = checked_size("GroupNorm", "groups", groups)
        super().__init__(epsilon=epsilon, use_scale=use_scale, use_offset=use_offset, dtype=dtype)

    def build(self, features: int) -> None:
        if features % self.groups:
            raise ShapeError(f"{self!r}: the {features} channels do not divide into {self.groups} groups")
        super().build(features)

    def call(self, x: TensorLike) -> Tensor:
        """The normalised input.

        Args:
            x: (batch, ..., channels), floating.

        Returns:
            A tensor of the shape of `x`, and of its dtype, or the layer's where that is narrower.

        Raises:
            ShapeError: the groups do not divide the channels, or these are not those of the first call.
            DTypeError: `x` is not floating.
        """
        x = self.ready(x)
        return group_norm(x, self.groups, self.scale, self.offset, self.epsilon)
