"""Logic of booleans, and of the bits of integers."""

from __future__ import annotations

from limelight.core.eager import entry_point, operators
from limelight.core.op import defop
from limelight.core.tensor import Tensor, TensorLike, method
from limelight.ops._shape_rules import broadcast, same

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]

# logical_and

_logical_and = entry_point(defop(
    "logical_and",
    inputs="x y",
    infer=broadcast("logical_and"),
    kernel="logical_and",
    accepts="bool",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def logical_and(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether both are true, element by element, broadcasting; booleans.

    >>> import limelight as ll
    >>> ll.logical_and(ll.constant([True, False]), ll.constant([True, True])).tolist()
    [True, False]
    """
    return _logical_and(x, y)


# logical_or

_logical_or = entry_point(defop(
    "logical_or",
    inputs="x y",
    infer=broadcast("logical_or"),
    kernel="logical_or",
    accepts="bool",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def logical_or(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether at least one is true, element by element, broadcasting; booleans.

    >>> import limelight as ll
    >>> ll.logical_or(ll.constant([True, False]), ll.constant([True, True])).tolist()
    [True, True]
    """
    return _logical_or(x, y)


# logical_xor

_logical_xor = entry_point(defop(
    "logical_xor",
    inputs="x y",
    infer=broadcast("logical_xor"),
    kernel="logical_xor",
    accepts="bool",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def logical_xor(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether exactly one is true, element by element, broadcasting; booleans.

    >>> import limelight as ll
    >>> ll.logical_xor(ll.constant([True, False]), ll.constant([True, True])).tolist()
    [False, True]
    """
    return _logical_xor(x, y)


# logical_not

_logical_not = entry_point(defop(
    "logical_not",
    inputs="x",
    infer=same,
    kernel="logical_not",
    accepts="bool",
    why_no_gradient="its result is boolean",
))  # fmt: skip


def logical_not(x: TensorLike, /) -> Tensor:
    """The opposite of each element; booleans.

    >>> import limelight as ll
    >>> ll.logical_not(ll.constant([True, False])).tolist()
    [False, True]
    """
    return _logical_not(x)


# bitwise_and

_bitwise_and = entry_point(defop(
    "bitwise_and",
    inputs="x y",
    infer=broadcast("bitwise_and"),
    kernel="bitwise_and",
    accepts="bits",
    why_no_gradient="its result is not a floating dtype",
))  # fmt: skip


def bitwise_and(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The bits that both have, broadcasting; integers or booleans. Also the operator `&`.

    >>> import limelight as ll
    >>> ll.bitwise_and(ll.constant([6]), 3).tolist()
    [2]
    """
    return _bitwise_and(x, y)


operators(_bitwise_and, "and")


# bitwise_or

_bitwise_or = entry_point(defop(
    "bitwise_or",
    inputs="x y",
    infer=broadcast("bitwise_or"),
    kernel="bitwise_or",
    accepts="bits",
    why_no_gradient="its result is not a floating dtype",
))  # fmt: skip


def bitwise_or(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The bits that at least one has, broadcasting; integers or booleans. Also the operator `|`.

    >>> import limelight as ll
    >>> ll.bitwise_or(ll.constant([6]), 3).tolist()
    [7]
    """
    return _bitwise_or(x, y)


operators(_bitwise_or, "or")


# bitwise_xor

_bitwise_xor = entry_point(defop(
    "bitwise_xor",
    inputs="x y",
    infer=broadcast("bitwise_xor"),
    kernel="bitwise_xor",
    accepts="bits",
    why_no_gradient="its result is not a floating dtype",
))  # fmt: skip


def bitwise_xor(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The bits that exactly one has, broadcasting; integers or booleans. Also the operator `^`.

    >>> import limelight as ll
    >>> ll.bitwise_xor(ll.constant([6]), 3).tolist()
    [5]
    """
    return _bitwise_xor(x, y)


operators(_bitwise_xor, "xor")


# bitwise_invert

_bitwise_invert = entry_point(defop(
    "bitwise_invert",
    inputs="x",
    infer=same,
    kernel="invert",
    accepts="bits",
    why_no_gradient="its result is not a floating dtype",
))  # fmt: skip


@method("__invert__")
def bitwise_invert(x: TensorLike, /) -> Tensor:
    """All bits flipped (`not` for booleans); integers or booleans. Also the operator `~`.

    >>> import limelight as ll
    >>> ll.bitwise_invert(ll.constant([0, 5])).tolist()
    [-1, -6]
    """
    return _bitwise_invert(x)


# bitwise_left_shift

_bitwise_left_shift = entry_point(defop(
    "bitwise_left_shift",
    inputs="x y",
    infer=broadcast("bitwise_left_shift"),
    kernel="left_shift",
    accepts="integer",
    why_no_gradient="its result is not a floating dtype",
))  # fmt: skip


def bitwise_left_shift(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x` times 2 to the power of `y`, by moving bits, broadcasting; integers. Also the operator `<<`.

    >>> import limelight as ll
    >>> ll.bitwise_left_shift(ll.constant([1, 3]), 2).tolist()
    [4, 12]
    """
    return _bitwise_left_shift(x, y)


operators(_bitwise_left_shift, "lshift")


# bitwise_right_shift

_bitwise_right_shift = entry_point(defop(
    "bitwise_right_shift",
    inputs="x y",
    infer=broadcast("bitwise_right_shift"),
    kernel="right_shift",
    accepts="integer",
    why_no_gradient="its result is not a floating dtype",
))  # fmt: skip


def bitwise_right_shift(x: TensorLike, y: TensorLike, /) -> Tensor:
    """`x` divided by 2 to the power of `y`, rounded down, by moving bits, broadcasting; integers. Also `>>`.

    >>> import limelight as ll
    >>> ll.bitwise_right_shift(ll.constant([4, -3]), 1).tolist()
    [2, -2]
    """
    return _bitwise_right_shift(x, y)


operators(_bitwise_right_shift, "rshift")
