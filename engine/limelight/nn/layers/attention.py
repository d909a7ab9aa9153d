"""`MultiHeadAttention`: attention with several heads."""

from __future__ import annotations

from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.errors import ShapeError
from limelight.nn import initializers
from limelight.nn.functional.attention import dot_product_attention
from limelight.nn.initializers import Initializer
from limelight.nn.layers.constructor_checks import checked_dtype, checked_flag, checked_size
from limelight.nn.layers.dense import Dense
from limelight.nn.layers.layer import Layer
from limelight.ops.shape.concat import concat, split, stack, unstack


class MultiHeadAttention(Layer):
    """Multi-head attention: scaled dot-product attention in `heads` subspaces side by side (Vaswani et al. 2017).

    The four projections are Dense layers: `query`, `key`, `value`, `output`, made on the first call. See
    `ll.nn.dot_product_attention`.

    Args:
        heads: how many heads.
        depth: the size of each head's subspace; by default features / heads.
        use_bias: whether the projections add a bias. True.
        dtype: the dtype of the weights, floating; float32.
        kernel_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> layer = ll.nn.MultiHeadAttention(heads=2)
    >>> layer(ll.ones((3, 5, 8)), causal=True).shape
    (3, 5, 8)
    >>> layer(ll.ones((3, 5, 8)), ll.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    form = "(batch, queries, features)"
    rank = 3

    def __init__(
        self,
        heads: int,
        *,
        depth: int | None = None,
        use_bias: bool = True,
        dtype: DTypeLike = "float32",
        kernel_initializer: str | Initializer = "glorot_uniform",
    ) -> None:
        self.heads = checked_size("MultiHeadAttention", "heads", heads)
        self.depth = depth if depth is None else checked_size("MultiHeadAttention", "depth", depth)
        self.use_bias = checked_flag("MultiHeadAttention", "use_bias", use_bias)
        self.dtype = checked_dtype("MultiHeadAttention", dtype)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.query: Dense | None = None
        self.key: Dense | None = None
        self.value: Dense | None = None
        self.output: Dense | None = None

    def build(self, features: int) -> None:
        if self.depth is None and features % self.heads:
            raise ShapeError(f"{self!r}: the {features} features do not divide into {self.heads} heads; give `depth`")
        depth = self.depth or features // self.heads
        self.query, self.key, self.value = (self._projection(self.heads * depth) for _ in range(3))
        self.output = self._projection(features)
        self.output.build(self.heads * depth)

    def call(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        value: TensorLike | None = None,
        mask: TensorLike | None = None,
        causal: bool = False,
        bias: TensorLike | None = None,
    ) -> Tensor:
        """What the queries see, as weighted means of projected values.

        Args:
            query: (batch, queries, features), floating.
            key: (batch, keys, any features); by default the queries, which then attend to themselves.
            value: (batch, keys, any features); by default the keys.
            mask: broadcasts to (batch, heads, queries, keys): booleans, true where a query may see a key. By default
                every query sees all keys. (batch, queries, keys) is written mask[:, None], (batch, keys)
                mask[:, None, None].
            causal: whether a query sees no later keys. False.
            bias: floating numbers that are added to the scores, of a shape by the same rules.

        Returns:
            (batch, queries, features), of the layer's dtype.

        Raises:
            ShapeError: an input has another rank, sizes do not fit each other or the first call, a mask or bias of
                three axes may be meant in two ways, or the heads do not divide the features and there is no `depth`.
            DTypeError: an input or a bias is not floating, or a mask not boolean.
        """
        query = self.ready(query)
        bias = None if bias is None else self.in_own_dtype(as_tensor(bias))
        key = query if key is None else self._sequence("key", key)
        value = key if value is None else self._sequence("value", value)
        assert self.query is not None
        assert self.key is not None
        assert self.value is not None
        assert self.output is not None
        q, k, v = (
            self._split_heads(self.query(query)),
            self._split_heads(self.key(key)),
            self._split_heads(self.value(value)),
        )
        seen = dot_product_attention(q, k, v, mask, causal, bias=bias)
        merged: Tensor = self.output(_merge_heads(seen))
        return merged

    def _projection(self, units: int) -> Dense:
        return Dense(units, use_bias=self.use_bias, dtype=self.dtype, kernel_initializer=self.kernel_initializer)

    def _sequence(self, what: str, x: TensorLike) -> Tensor:
        x = as_tensor(x)
        if x.ndim != 3:
            raise ShapeError(f"{self!r} needs a {what} of shape (batch, keys, features), got {x.spec}")
        return x

    def _split_heads(self, x: Tensor) -> Tensor:
        """(batch, time, heads * depth) to (batch, heads, time, depth)."""
        batch, time, width = x.shape
        assert width is not None
        if batch is not None and time is not None:
            return x.reshape((batch, time, self.heads, width // self.heads)).transpose((0, 2, 1, 3))
        return stack(split(x, self.heads, axis=-1), axis=1)  # a reshape to unknown sizes would forget the known ones


def _merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, time, depth) to (batch, time, heads * depth)."""
    batch, heads, time, depth = x.shape
    if batch is not None and time is not None and heads is not None and depth is not None:
        return x.transpose((0, 2, 1, 3)).reshape((batch, time, heads * depth))
    return concat(unstack(x, axis=1), axis=-1)
