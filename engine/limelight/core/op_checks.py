"""Checks of the ops that users define, as these run: kernels against `infer`, gradient rules against the inputs.

The ops of limelight itself are checked by its tests instead, and pay nothing here. Rules of an op that saves by `save`
are not checked: they get what that has returned, not the inputs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from limelight.core import dtypes, shapes
from limelight.core.spec import Spec, TensorSpec, known
from limelight.errors import DTypeError, GradientError, ShapeError


def checked_kernel(op: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel`, whose results must be what `op.infer` says; raises ShapeError or DTypeError where they are not."""

    @functools.wraps(kernel)
    def checked(*arguments: Any) -> Any:
        result = kernel(*arguments)
        n = len(arguments) - len(op.attrs)
        specs = _specs(arguments[:n])
        if specs is not None:
            inferred = op.infer(*specs, *arguments[n:])
            pairs = zip(inferred, result, strict=True) if op.multiple else [(inferred, result)]
            for spec, part in pairs:
                _check_result(op, spec, part)
        return result

    return checked


def _specs(payloads: tuple[Any, ...]) -> list[Spec] | None:
    """The specs of a kernel's operands; None where one is neither an array nor a number beside arrays."""
    kinds = [x.dtype for x in payloads if hasattr(x, "dtype") and hasattr(x, "shape")]
    specs: list[Spec] = []
    for x in payloads:
        if hasattr(x, "dtype") and hasattr(x, "shape"):
            specs.append(known(tuple(x.shape), dtypes.dtype(x.dtype)))
        elif type(x) in (bool, int, float, complex):
            specs.append(known((), dtypes.dtype(kinds[0]) if kinds else dtypes.default_for(x)))
        else:
            return None
    return specs


def _check_result(op: Any, spec: Spec, result: Any) -> None:
    if not isinstance(spec, TensorSpec):
        return
    if not hasattr(result, "dtype") or not hasattr(result, "shape"):
        raise DTypeError(
            f"op {op.name}: its kernel returned a {type(result).__name__}, and `infer` says {spec}; "
            f"return an array: xp.asarray(result, dtype=xp.{spec.dtype.name})"
        )
    shape, dtype = tuple(result.shape), dtypes.dtype(result.dtype)
    if not shapes.compatible(shape, spec.shape):
        raise ShapeError(
            f"op {op.name}: its kernel returned {known(shape, dtype)}, and `infer` says {spec}; "
            f"return ll.TensorSpec({shapes.show(shape)}, ...) from `infer`, computed from the operands' shapes, or "
            "another shape from the kernel"
        )
    if dtype != spec.dtype:
        raise DTypeError(
            f"op {op.name}: its kernel returned {known(shape, dtype)}, and `infer` says {spec}; write "
            f"result.astype(xp.{spec.dtype.name}) in the kernel, or say {dtype.name} in `infer`"
        )


def checked_rule(op: Any, target: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient rule, whose result must have the shape and dtype of the input; raises GradientError where not."""
    names = list(inspect.signature(rule).parameters)
    facts = [] if target in names else [name for name in (f"{target}_shape", f"{target}_dtype") if name not in names]
    asked = [*names, *facts]  # the least: what a tape saves for the rule is shown

    @functools.wraps(rule)
    def checked(*arguments: Any) -> Any:
        result = rule(*arguments[: len(names)])
        known_here = dict(zip(asked, arguments, strict=True))
        if op.variadic:
            sizes, kinds = _facts(known_here, target, lambda x: tuple([_sizes(part) for part in x]), _dtypes)
            for part, one, kind in zip(result, sizes, kinds, strict=True):
                _check_gradient(op, target, part, one, kind)
        else:
            _check_gradient(op, target, result, *_facts(known_here, target, _sizes, _dtype))
        return result

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in asked]
    checked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what `inspect` reads
    return checked


def _facts(
    given: dict[str, Any], target: str, sizes_of: Callable[[Any], Any], dtype_of: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """The sizes and the dtype of the input: as the rule got them (in forward mode another shape), or the input's."""
    sizes, dtype = (given.get(f"{target}_{fact}") for fact in ("shape", "dtype"))
    x = given.get(target)
    return (sizes_of(x) if sizes is None else sizes), (dtype_of(x) if dtype is None else dtype)


def _sizes(x: Any) -> Any:
    """A symbolic vector would leave an op in the graph: None stands for sizes that are unknown."""
    return tuple(x.shape) if hasattr(x, "shape") else ()


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else dtypes.default_for(x)


def _dtypes(xs: Any) -> Any:
    return tuple([_dtype(x) for x in xs])


def _check_gradient(op: Any, target: str, result: Any, sizes: Any, dtype: Any) -> None:
    """None (no gradient) always does; so does any size where one is unknown while tracing."""
    if result is None:
        return
    about = f"op {op.name}: the gradient rule for {target!r} returned"
    if not hasattr(result, "shape") or not hasattr(result, "dtype"):
        raise GradientError(
            f"{about} a {type(result).__name__}, where a tensor like {target} is needed (or None for no gradient); "
            f"write g * {result!r}, or another expression of tensors"
        )
    needed = sizes if isinstance(sizes, tuple) else (None,) * sizes.shape[0]
    given, like = f"{dtypes.short(result.dtype)}[{_listed(result.shape)}]", f"{dtypes.short(dtype)}[{_listed(needed)}]"
    if len(result.shape) != len(needed) or not all(
        n == m or n is None or m is None for n, m in zip(result.shape, needed, strict=True)
    ):
        raise GradientError(
            f"{about} {given}, where {target} is {like}: a gradient has its input's shape; write "
            f"(...).sum_to({target}_shape) where {target} was broadcast, (...).broadcast_to({target}_shape) where it "
            f"was reduced, and ask for `{target}_shape` among the rule's parameters"
        )
    if result.dtype != dtype:
        raise GradientError(
            f"{about} {given}, where {target} is {like}: a gradient has its input's dtype; write "
            f"(...).astype({target}_dtype), and ask for `{target}_dtype` among the rule's parameters"
        )


def _listed(shape: Any) -> str:
    return ",".join(["?" if n is None else str(n) for n in shape])
