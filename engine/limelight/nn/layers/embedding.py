"""`Embedding`: a table of vectors to look integers up in.

The layer refuses negative indices, since labels of -1 for "none" are a frequent mistake. The function `ll.nn.embedding`
takes them from the end, as indexing does, and `one_hot` gives zeros, as in JAX and TensorFlow.
"""

from __future__ import annotations

from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike
from limelight.nn import initializers
from limelight.nn.initializers import Initializer
from limelight.nn.layers.constructor_checks import checked_dtype, checked_flag, checked_size
from limelight.nn.layers.layer import Layer
from limelight.ops.nn.embedding import embedding


class Embedding(Layer):
    """An embedding: looks up a learned vector for each of the integers 0 to `count` - 1.

    The table is `table`, of shape (count, units); its gradient is an `ll.SparseGradient`, for which optimisers update
    the rows that were looked up, and no other: their averages and decay rest as well.

    Args:
        count: how many integers there are.
        units: the size of the vectors.
        dtype: the dtype of the table, floating; float32.
        table_initializer: a function of a shape and a dtype, or the name of one in `ll.nn.initializers`; "normal".
        sparse: whether the gradient is sparse; a dense one updates all rows alike. True.

    Raises:
        ArgumentError: a setting is not as above.

    >>> import limelight as ll
    >>> layer = ll.nn.Embedding(10, 4)
    >>> layer(ll.constant([[1, 2, 1]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        count: int,
        units: int,
        *,
        dtype: DTypeLike = "float32",
        table_initializer: str | Initializer = "normal",
        sparse: bool = True,
    ) -> None:
        self.count = checked_size("Embedding", "count", count)
        self.units = checked_size("Embedding", "units", units)
        self.dtype = checked_dtype("Embedding", dtype)
        self.table_initializer = initializers.get(table_initializer)
        self.sparse = checked_flag("Embedding", "sparse", sparse)
        self.table = self.weight("table", (self.count, self.units), self.table_initializer)

    def call(self, x: TensorLike) -> Tensor:
        """The vectors of integers.

        Args:
            x: integers of any shape (...).

        Returns:
            (..., units), of the table's dtype.

        Raises:
            DTypeError: `x` is not of integers.
            OutOfBoundsError: an integer is negative or not below `count`.
        """
        return embedding(self.table, x, sparse=self.sparse, negative=False)
