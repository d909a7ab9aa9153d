"""Specs: what is known of a value before it exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, cast

from limelight.core import dtypes, shapes
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.shapes import Shape
from limelight.errors import DTypeError, ShapeError


class TensorSpec:
    """The shape and dtype of a tensor; sizes that are unknown until run time are None.

    Args:
        shape: the sizes, a number or several, None for one that is unknown; () for a scalar. None in place of all where
            not even their number is known: for an `input_signature`, which then has a trace for each rank, and for
            results of `py_func`.
        dtype: the dtype; float32.
        name: what a signature calls the argument; by default the parameter's name.

    Raises:
        ShapeError: a size is negative or no integer.
        DTypeError: there is no such dtype.

    >>> import limelight as ll
    >>> ll.TensorSpec([None, 784], "float32", name="images")
    TensorSpec((None, 784), float32, name='images')
    >>> str(ll.TensorSpec((3,), "int32")), str(ll.TensorSpec(None))
    ('i32[3]', 'f32[...]')
    """

    __slots__ = ("dtype", "name", "shape")
    shape: Shape
    dtype: DType
    name: str | None
    content: Shape | None = None
    """Of a small vector of integers what is known of its elements (`Sizes`)."""

    def __init__(
        self, shape: int | Iterable[int | None] | None, dtype: DTypeLike = dtypes.float32, name: str | None = None
    ) -> None:
        # None for an unknown rank, which is no Shape: no spec of a graph has it, so that shape rules need not ask
        self.shape = cast(Shape, None) if shape is None else shapes.as_shape(shape)
        second: object = dtype
        if type(second) is int:  # np.dtype would say less
            raise DTypeError(
                f"TensorSpec: {dtype} is no dtype; sizes are one argument: ll.TensorSpec(({shape}, {dtype}))"
            )
        self.dtype = dtypes.dtype(dtype)
        self.name = name

    @property
    def rank(self) -> int:
        """The number of axes. Raises ShapeError where it is not known."""
        return len(self.ranked("rank").shape)

    @property
    def size(self) -> int | None:
        """The number of elements, None when unknown."""
        return shapes.size(self.shape) if self.has_rank else None

    @property
    def has_rank(self) -> bool:
        """Whether the number of axes is known."""
        return self.shape is not None

    def ranked(self, what: str) -> TensorSpec:
        """This spec, for `what` needs to know the number of axes. Raises ShapeError where that is unknown."""
        if self.shape is None:
            raise ShapeError(
                f"{what}: shape None: the number of axes must be known here; write () for a scalar, and None for each "
                "size that is not known, as in (None,) or (None, 3). An input_signature or py_func may leave it open"
            )
        return self

    @property
    def nbytes(self) -> int | None:
        """Bytes of the elements, None when unknown."""
        size = self.size
        return None if size is None else size * self.dtype.itemsize

    def with_shape(self, shape: Shape) -> TensorSpec:
        return known(shape, self.dtype)

    def accepts(self, other: TensorSpec) -> bool:
        """Whether a tensor of spec `other` may stand where this spec was promised."""
        fits = not self.has_rank or (other.has_rank and shapes.compatible(other.shape, self.shape))
        return self.dtype == other.dtype and fits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __str__(self) -> str:
        sizes = ",".join("?" if n is None else str(n) for n in self.shape) if self.has_rank else "..."
        return f"{dtypes.short(self.dtype)}[{sizes}]"

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec({shapes.show(self.shape) if self.has_rank else None}, {self.dtype.name}{name})"


def known(shape: Shape, dtype: DType) -> TensorSpec:
    """A spec from parts that are already canonical: what shape rules use, without the checks."""
    spec: TensorSpec = _blank(TensorSpec)
    spec.shape = shape
    spec.dtype = dtype
    spec.name = None
    return spec


_blank: Final[Any] = object.__new__


class Sizes(TensorSpec):
    """The spec of a vector of sizes, or of one size, of which some are known while tracing. Equal to one without."""

    __slots__ = ("content",)

    def __init__(self, shape: Shape, dtype: DType, content: Shape) -> None:
        self.shape = shape
        self.dtype = dtype
        self.name = None
        self.content = content


Constraint: TypeAlias = Callable[[Any], Any]
"""From a variable's value to the nearest one that is allowed."""


class VariableSpec:
    """The type of a variable: what a graph must know of one that it reads or writes."""

    __slots__ = ("_constraint_id", "constraint", "dtype", "shape", "trainable")
    anywhere = False
    """Whether it has no place: then ops that use it run where their other operands are."""

    def __init__(
        self, shape: Shape, dtype: DType, trainable: bool = True, constraint: Constraint | None = None
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.trainable = trainable
        self.constraint = constraint
        """What an optimiser applies to the value after each update; part of the type, since a trace runs it."""
        self._constraint_id = 0 if constraint is None else id(constraint)  # it may have no hash

    @property
    def value(self) -> TensorSpec:
        """The spec of what a read returns."""
        return known(self.shape, self.dtype)

    def _key(self) -> tuple[object, ...]:
        return (self.shape, self.dtype, self.trainable, self._constraint_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return f"{'' if self.trainable else 'frozen '}var {self.value}"

    __repr__ = __str__


class GeneratorSpec(VariableSpec):
    """The type of a generator of random numbers, a variable whose value is its state."""

    __slots__ = ()
    anywhere = True

    def __init__(self) -> None:
        super().__init__((14,), dtypes.uint64, trainable=False)

    def _key(self) -> tuple[object, ...]:
        return ("generator",)

    def __str__(self) -> str:
        return "generator"

    __repr__ = __str__


class ObjectSpec:
    """An opaque Python value that travels through a graph between ops that understand it."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectSpec) and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(("object", self.kind))

    def __str__(self) -> str:
        return f"object {self.kind}"

    __repr__ = __str__


Spec: TypeAlias = TensorSpec | VariableSpec | ObjectSpec
GENERATOR: Final = GeneratorSpec()
