"""Writing to a part of a variable: ops whose input 0 is a variable's storage, and which return its new value.

The storage is replaced, never written into, so what was read before stays as it was. See `ll.Variable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core import dtypes, repeated_places, shapes, value_checks
from limelight.core.index_expression import Key, basic_shape, native, outside, signed_places
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
            f"{name}: a value of {value.dtype.name} does not fit a variable of {variable.dtype.name}; "
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


_AT: Final = {"add": "add", "subtract": "subtract", "multiply": "mul", "maximum": "max", "minimum": "min"}
"""What libraries whose arrays are immutable call the ufuncs, as methods of `array.at[index]`."""


def _check_changes(name: str, variable: VariableSpec, change: str) -> None:
    """Raises DTypeError where a variable's dtype has no such change."""
    if variable.dtype == dtypes.bool_ and change != "set":
        raise DTypeError(f"{name}: a bool variable is no number; write v.assign(ll.where(places, value, v))")
    if dtypes.kind(variable.dtype) == "complex" and change in ("maximum", "minimum"):
        raise DTypeError(f"{name}: complex numbers have no order, and this is a {variable.dtype.name} variable")


def _scatter_infer(name: str, change: str) -> Callable[..., TensorSpec]:
    def infer(variable: VariableSpec, indices: TensorSpec, values: TensorSpec) -> TensorSpec:
        _check_changes(name, variable, change)
        if not variable.shape:
            raise ShapeError(f"{name}: the variable is a scalar and has no rows; use assign")
        return _fits(name, variable, values, (*indices.shape, *variable.shape[1:]))

    return infer


def _scatter_kernel(change: str) -> Callable[..., Any]:
    """The kernel that changes rows by a ufunc, or by "set"."""

    def changed(xp: Any, array: Any, indices: Any, values: Any) -> Any:
        new = xp.array(array)  # a copy: reads are snapshots
        if hasattr(new, "at"):
            _check_rows(indices, len(new))
            place = new.at[indices]
            return place.add(-values if change == "subtract" else values) if change != "set" else place.set(values)
        if repeated_places.is_parallel(new):
            _check_rows(indices, len(new))
        elif indices.dtype == np.uint64:
            if isinstance(indices, np.ndarray | np.generic):  # which says what was given; stand-ins for arrays are not
                _check_rows(indices, len(new))
            indices = signed_places(indices)
        repeated_places.change_at(xp, change, new, indices, values)
        return new

    return lambda xp, storage, indices, values: storage.update(lambda array: changed(xp, array, indices, values))


def _check_rows(indices: Any, n: int) -> None:
    """Raises IndexError for a row that is not there: JAX would leave it out, and CuPy count it from the end."""
    if value_checks.any_wrong(indices, lambda: outside(indices, -n, n)):
        raise IndexError(f"a row is out of bounds for axis 0 with size {n}")


def _scatter(name: str, method: str, change: str, **special: Any) -> Op:
    return defop(
        name,
        inputs="variable:var indices:integer values:any",
        infer=_scatter_infer(method, change),
        kernel=_scatter_kernel(change),
        special=special,
        effect="write",
        why_no_gradient=CUT,
    )


assign_scatter: Final = _scatter("assign_scatter", "scatter_update", "set")
assign_scatter_add: Final = _scatter("assign_scatter_add", "scatter_add", "add")
assign_scatter_sub: Final = _scatter("assign_scatter_sub", "scatter_sub", "subtract")


def _immutable_rows(change: str) -> Callable[..., Any]:
    """The same kernel for a library whose arrays are immutable."""
    method = _AT[change]

    def kernel(xp: Any, storage: Any, indices: Any, values: Any) -> Any:
        _check_rows(indices, len(storage.array))
        return storage.update(lambda array: getattr(array.at[indices], method)(values))

    return kernel


def _scatter_by(name: str, ufunc: str) -> Op:
    return _scatter(f"assign_{name}", name, ufunc, jax=_immutable_rows(ufunc))


assign_scatter_mul: Final = _scatter_by("scatter_mul", "multiply")
assign_scatter_max: Final = _scatter_by("scatter_max", "maximum")
assign_scatter_min: Final = _scatter_by("scatter_min", "minimum")

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


def _slice_change(method: str, change: str) -> Op:
    """The op that changes a part by a ufunc."""
    name = f"v.at[...].{method}"

    def infer(variable: VariableSpec, value: TensorSpec, key: Key) -> TensorSpec:
        _check_changes(name, variable, change)
        return _fits(name, variable, value, basic_shape(name, variable.shape, key))

    def kernel(xp: Any, storage: Any, value: Any, key: Key) -> Any:
        return storage.update(lambda array: _changed_part(xp, array, value, native(key), change))

    return defop(
        method.replace("assign", "assign_slice"),
        inputs="variable:var value:any",
        attrs="key",
        infer=infer,
        kernel=kernel,
        effect="write",
        why_no_gradient=CUT,
    )


def _changed_part(xp: Any, array: Any, value: Any, index: Any, change: str) -> Any:
    if hasattr(array, "at"):
        return getattr(array.at[index], _AT[change])(value)
    new = xp.array(array)
    new[index] = getattr(xp, change)(new[index], value)
    return new


assign_slice_add: Final = _slice_change("assign_add", "add")
assign_slice_sub: Final = _slice_change("assign_sub", "subtract")


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
