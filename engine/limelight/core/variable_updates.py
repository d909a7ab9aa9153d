"""Writing to a part of a variable: ops whose input 0 is a variable's storage, and which return its new value.

The storage is replaced, never written into, so what was read before stays as it was. See `ll.Variable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from limelight.core import shapes
from limelight.core.index_expression import Key, basic_shape, native
from limelight.core.op import Op, defop
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.errors import ArgumentError, DTypeError, ShapeError

__all__: list[str] = []  # public as methods of ll.Variable

CUT: Final = (
    "assignment is not differentiable: the connection is cut here (keep the assigned value and differentiate that)"
)


def _fits(name: str, variable: VariableSpec, value: TensorSpec, place: shapes.Shape) -> TensorSpec:
    """The variable's spec, if `value` can stand at a place of shape `place` in it."""
    if value.dtype != variable.dtype:
        raise DTypeError(
            f"{name}: a {value.dtype.name} value does not fit a {variable.dtype.name} variable; "
            f"write ll.astype(value, ll.{variable.dtype.name})"
        )
    common = shapes.broadcast(name, place, value.shape)
    if not shapes.compatible(common, place):
        raise ShapeError(
            f"{name}: a value of shape {shapes.show(value.shape)} does not broadcast to the part that it is for, "
            f"of shape {shapes.show(place)}"
        )
    return variable.value


# assign_scatter and its kind: rows given by integers


def _scatter_infer(name: str) -> Callable[..., TensorSpec]:
    def infer(variable: VariableSpec, indices: TensorSpec, values: TensorSpec) -> TensorSpec:
        if not variable.shape:
            raise ShapeError(f"{name}: the variable is a scalar and has no rows; use assign")
        return _fits(name, variable, values, (*indices.shape, *variable.shape[1:]))

    return infer


def _scatter_kernel(change: str) -> Callable[..., Any]:
    """The kernel that changes rows by a ufunc, or by "set"."""

    def changed(xp: Any, array: Any, indices: Any, values: Any) -> Any:
        new = xp.array(array)  # a copy: reads are snapshots
        if hasattr(new, "at"):
            place = new.at[indices]
            return place.add(-values if change == "subtract" else values) if change != "set" else place.set(values)
        if change == "set":
            new[indices] = values
        else:
            getattr(xp, change).at(new, indices, values)
        return new

    return lambda xp, storage, indices, values: storage.update(lambda array: changed(xp, array, indices, values))


def _scatter(name: str, method: str, change: str) -> Op:
    return defop(
        name,
        inputs="variable:var indices:integer values:any",
        infer=_scatter_infer(method),
        kernel=_scatter_kernel(change),
        effect="write",
        why_no_gradient=CUT,
    )


assign_scatter: Final = _scatter("assign_scatter", "scatter_update", "set")
assign_scatter_add: Final = _scatter("assign_scatter_add", "scatter_add", "add")
assign_scatter_sub: Final = _scatter("assign_scatter_sub", "scatter_sub", "subtract")

# assign_slice: a part given by ints and slices


def _slice_infer(variable: VariableSpec, value: TensorSpec, key: Key) -> TensorSpec:
    name = "v[...] = value"
    return _fits(name, variable, value, basic_shape(name, variable.shape, key))


def _slice_kernel(xp: Any, storage: Any, value: Any, key: Key) -> Any:
    def changed(array: Any) -> Any:
        new = xp.array(array)
        if hasattr(new, "at"):
            return new.at[native(key)].set(value)
        new[native(key)] = value
        return new

    return storage.update(changed)


assign_slice: Final = defop(
    "assign_slice",
    inputs="variable:var value:any",
    attrs="key",
    infer=_slice_infer,
    kernel=_slice_kernel,
    effect="write",
    why_no_gradient=CUT,
)  # fmt: skip


def static_key(key: Any, rank: int) -> Key:
    """`v[key] = ...` as data, for a key of ints and slices of ints. Raises ArgumentError for any other."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [part for part in parts if part is Ellipsis]:
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * max(0, rank - len(parts) + 1)
    return tuple(map(_static_part, parts))


def _static_part(part: Any) -> Any:
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        if all(bound is None or _is_int(bound) for bound in bounds):
            return tuple([bound if bound is None else bound.__index__() for bound in bounds])
    elif _is_int(part):
        return part.__index__()
    raise ArgumentError(
        f"v[...] = value takes ints, slices of ints and `...`, got {part!r}; for rows given by integers write "
        "v.scatter_update(indices, values), for a mask v.assign(ll.where(mask, value, v))"
    )


def _is_int(x: Any) -> bool:
    return (
        not isinstance(x, bool)
        and type(x).__module__ in ("builtins", "numpy")
        and hasattr(x, "__index__")
        and not getattr(x, "shape", ())
    )
