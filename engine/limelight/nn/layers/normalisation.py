"""Normalisations with scales and offsets that are learned."""

from __future__ import annotations

from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ShapeError
from limelight.nn import initializers
from limelight.nn.functional.normalisation import batch_norm, batch_norm_training, group_norm, layer_norm, rms_norm
from limelight.nn.layers.layer import Layer
from limelight.nn.layers.settings import checked_flag, checked_number, checked_size


class _Normalisation(Layer):
    """What all share: a scale and an offset for each channel (the last axis), either of which can be left out."""

    def __init__(
        self, *, epsilon: float = 1e-5, use_scale: bool = True, use_offset: bool = True, dtype: DTypeLike = "float32"
    ) -> None:
        name = type(self).__name__
        self.epsilon = checked_number(name, "epsilon", epsilon)
        self.use_scale = checked_flag(name, "use_scale", use_scale)
        self.use_offset = checked_flag(name, "use_offset", use_offset)
        self.dtype = dtype
        self.scale: Variable | None = None
        self.offset: Variable | None = None

    def build(self, features: int) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (features,), initializers.ones)
        if self.use_offset:
            self.offset = self.weight("offset", (features,), initializers.zeros)


class BatchNorm(_Normalisation):
    """Each channel with mean 0 and variance 1 over batch and space (Ioffe and Szegedy 2015): (batch, ..., channels).

    While training, mean and variance are those of the batch, and the variables `mean` and `variance`, not trainable,
    move towards them: mean = momentum mean + (1 - momentum) of the batch's. Otherwise these averages are used. The
    variance is that of the batch itself (divided by n, not n - 1). Raises ShapeError for an empty batch while training.

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
        x = self.ready(x)
        assert self.mean is not None
        assert self.variance is not None
        if not training:
            return batch_norm(x, self.mean, self.variance, self.scale, self.offset, self.epsilon)
        if x.ndim < 2 or x.size == 0:
            raise ShapeError(f"{self!r} needs a batch to train on, of shape {self.form}, got {x.spec}")
        y, mean, variance = batch_norm_training(x, self.scale, self.offset, self.epsilon)
        self._move(self.mean, mean)
        self._move(self.variance, variance)
        return y

    def _move(self, average: Variable, now: Tensor) -> None:
        average.assign(self.momentum * average + (1.0 - self.momentum) * now.astype(average.dtype))


class LayerNorm(_Normalisation):
    """The last axis of each example with mean 0 and variance 1 (Ba et al. 2016): (..., features).

    >>> import limelight as ll
    >>> ll.nn.LayerNorm(epsilon=0.0)(ll.constant([[1.0, 3.0], [0.0, 10.0]])).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def call(self, x: TensorLike) -> Tensor:
        x = self.ready(x)
        return layer_norm(x, self.scale, self.offset, axis=-1, epsilon=self.epsilon)


class RMSNorm(Layer):
    """The last axis of each example over the root of the mean of its squares (Zhang and Sennrich 2019).

    Inputs and results are (..., features). There is a scale for each feature, unless `use_scale` is false, and no
    offset. Raises ArgumentError for a negative epsilon.

    >>> import limelight as ll
    >>> ll.nn.RMSNorm(epsilon=0.0)(ll.constant([[3.0, -3.0]])).tolist()
    [[1.0, -1.0]]
    """

    def __init__(self, *, epsilon: float = 1e-6, use_scale: bool = True, dtype: DTypeLike = "float32") -> None:
        self.epsilon = checked_number("RMSNorm", "epsilon", epsilon)
        self.use_scale = checked_flag("RMSNorm", "use_scale", use_scale)
        self.dtype = dtype
        self.scale: Variable | None = None

    def build(self, features: int) -> None:
        if self.use_scale:
            self.scale = self.weight("scale", (features,), initializers.ones)

    def call(self, x: TensorLike) -> Tensor:
        x = self.ready(x)
        return rms_norm(x, self.scale, axis=-1, epsilon=self.epsilon)


class GroupNorm(_Normalisation):
    """Channels in `groups`, each with mean 0 and variance 1 over its channels and the space (Wu and He 2018).

    Inputs and results are (batch, ..., channels). Raises ShapeError when the groups do not divide the channels.

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
        x = self.ready(x)
        return group_norm(x, self.groups, self.scale, self.offset, self.epsilon)
