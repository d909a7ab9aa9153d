"""Elements of datasets inside a pipeline: a structure, and NumPy arrays or texts at its leaves.

Tuples, named tuples, dictionaries and dataclasses are structure; a list is a value, as for `ll.constant`. Numbers,
arrays and tensors become arrays of the dtype that `ll.constant` gives them. Strings and bytes stay what they are, since
no tensor holds them; many together are a NumPy array of objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import device_copies, device_scopes, dispatch, dtypes, nest, shapes
from limelight.core.array_conversion import as_array
from limelight.core.devices import CPU0
from limelight.core.nest import LEAF, Structure
from limelight.core.tensor import Tensor, as_tensor, wrap
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, DTypeError, LimelightError, ShapeError

TEXT: Final = (str, bytes)


class Element(NamedTuple):
    """One element: its leaves are arrays, which nobody else writes to, or strings and bytes."""

    structure: Structure
    leaves: list[Any]

    def path(self, leaf: int) -> str:
        """What messages call a leaf: `element["image"]`."""
        return nest.paths(self.structure, "element")[leaf]


def element_of(value: Any, what: str) -> Element:
    """What a user's code has made, as an element; `what` says who, for errors."""
    leaves: list[Any] = []
    structure = structure_of(value, leaves)
    for i, leaf in enumerate(leaves):
        try:
            leaves[i] = _leaf(leaf)
        except LimelightError as error:
            where = nest.paths(structure, "element")[i]
            raise type(error)(f"{what}: {where} is a {type(leaf).__name__}: {error.bare}") from None
    return Element(structure, leaves)


def structure_of(value: Any, leaves: list[Any]) -> Structure:
    """The structure of `value`, whose leaves are appended to `leaves`; lists are leaves."""
    opened = None if isinstance(value, list) else nest.opened(value)
    if opened is None:
        leaves.append(value)
        return LEAF
    kind, keys, children = opened
    return Structure(kind, keys, tuple([structure_of(child, leaves) for child in children]))


def _leaf(x: Any) -> Any:
    if isinstance(x, (Tensor, Variable)):
        tensor = as_tensor(x)
        return device_copies.on_host(tensor._data, tensor._device, "element of a dataset")
    if isinstance(x, np.ndarray) and id(x.dtype) in dtypes.BY_ID:
        return np.array(x)  # a copy: a generator may fill the same buffer again
    if isinstance(x, TEXT):
        return x.item() if isinstance(x, np.generic) else x
    if x is None:
        raise DTypeError("None is no value; leave the place out, or give a number that stands for a missing one")
    texts = texts_in(x)
    return as_array(x) if texts is None else texts


def texts_in(x: Any) -> np.ndarray[Any, Any] | None:
    """A list or array of strings or bytes, as an array of objects; None for anything else."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "US":
        return x.astype(object)
    array = x if isinstance(x, np.ndarray) and x.dtype == object else None
    if array is None and isinstance(x, list) and x and _holds_text(x):
        array = np.array(x, object)
    if array is not None and array.size and all(isinstance(item, TEXT) for item in array.flat):
        return np.array(array)
    return None


def _holds_text(x: Any) -> bool:
    while isinstance(x, list) and x:
        x = x[0]
    return isinstance(x, TEXT)


def value_of(element: Element) -> Any:
    """The element as users see it: tensors on the device of the scope around, texts as they are."""
    if dispatch.active:
        leaves = [_tensor(x) for x in element.leaves]
    else:
        leaves = [x if is_text(x) else wrap(x) for x in element.leaves]
    return leaves[0] if element.structure is LEAF else nest.unflatten(element.structure, leaves)


def _tensor(x: Any) -> Any:
    if is_text(x):
        return x
    return wrap(x, CPU0) if not dispatch.active else dispatch.current().constant(x, device_scopes.requested_device())


def is_text(x: Any) -> bool:
    """Whether a leaf is a string, bytes, or an array of these."""
    return isinstance(x, TEXT) or x.dtype == object


def stacked(elements: Sequence[Element]) -> Element:
    """Several elements as one, with a new first axis. Raises ShapeError or DTypeError where they do not fit."""
    first = elements[0]
    for other in elements:
        if other.structure != first.structure:
            raise ArgumentError(
                f"batch: elements of different structures, {first.structure} and {other.structure}; make them alike "
                "with map"
            )
    columns = zip(*[x.leaves for x in elements], strict=True)
    return Element(first.structure, [_column(first, i, column) for i, column in enumerate(columns)])


def _column(first: Element, i: int, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    if isinstance(values[0], TEXT):
        other = next((x for x in values if not isinstance(x, TEXT)), None)
        if other is not None:
            raise DTypeError(f"batch: {first.path(i)} is text in one element and {other.dtype} in another")
        column = np.empty(len(values), object)
        column[:] = values
        return column
    shape, dtype = values[0].shape, values[0].dtype
    for x in values:
        if isinstance(x, TEXT) or x.dtype != dtype:
            other = "text" if isinstance(x, TEXT) else x.dtype
            raise DTypeError(f"batch: {first.path(i)} is {dtype} in one element and {other} in another")
        if x.shape != shape:
            raise ShapeError(
                f"batch: {first.path(i)} is {shapes.show(shape)} in one element and {shapes.show(x.shape)} in another; "
                "give all one shape before, as in .map(lambda x: ll.pad(x, (0, n - len(x)))), or write batch(1)"
            )
    column = np.empty((len(values), *shape), dtype)
    for row, x in enumerate(values):
        column[row] = x
    return column


def padded(element: Element, size: int, padding: Any) -> Element:
    """A batch filled up to `size` rows: with `padding`, empty strings where there are texts."""
    leaves = []
    for i, x in enumerate(element.leaves):
        rows = np.empty((size - len(x), *x.shape[1:]), x.dtype)
        try:
            rows[...] = type(x.flat[0])() if x.dtype == object else padding
            if x.dtype.kind in "biu" and np.any(rows != padding):
                raise ValueError("it would be rounded")
        except (OverflowError, ValueError, TypeError) as error:
            raise DTypeError(f"batch: padding={padding!r} does not fit {element.path(i)}, {x.dtype}: {error}") from None
        leaves.append(np.concatenate([x, rows]))
    return Element(element.structure, leaves)
