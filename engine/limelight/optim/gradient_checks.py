"""Checks of the gradients and variables that an optimiser is handed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from limelight.core import dtypes, shapes
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError
from limelight.variable_paths import path_of

Gradient: TypeAlias = Tensor | SparseGradient


def variables_of(given: Any) -> Any:
    """The variables of a list, or those that a module trains."""
    return getattr(given, "trainable_variables", given)  # also of what `ll.load` gives, which is no module


def check_lists(name: str, gradients: Any, variables: Any) -> None:
    """Raises ArgumentError unless these are a list of gradients and one of as many different variables."""
    if type(variables) is tuple and not variables and (isinstance(gradients, zip) or _are_pairs(gradients)):
        raise CallError(
            f"{name}.apply takes two lists, not one of pairs: write optimizer.apply(gradients, variables), or "
            "optimizer.apply(*zip(*pairs))"
        )
    if not isinstance(gradients, (list, tuple)) or not isinstance(variables, (list, tuple)):
        raise ArgumentError(
            f"{name}.apply needs a list of gradients and a list of variables, got {type(gradients).__name__} and "
            f"{type(variables).__name__}; {_instead_of(gradients, variables)}"
        )
    if len(gradients) != len(variables):
        raise ArgumentError(
            f"{name}.apply: {len(gradients)} gradients for {len(variables)} variables{_hint_for(variables)}"
        )
    if not variables:
        raise ArgumentError(
            f"{name}.apply: no variables. Layers create theirs on the first call: ask for trainable_variables "
            "after the model has been called"
        )
    _check_order(name, gradients, variables)
    seen = set()
    for v in variables:
        if not isinstance(v, Variable):
            given = "a tensor, which never changes" if isinstance(v, Tensor) else type(v).__name__
            hint = _of_modules(": write") if hasattr(v, "trainable_variables") else ""
            raise ArgumentError(f"{name}.apply changes variables, got {given}{hint}")
        if v._uid in seen:
            raise ArgumentError(f"{name}.apply: variable {path_of(v)!r} occurs twice and would be updated twice")
        seen.add(v._uid)


def _instead_of(gradients: Any, variables: Any) -> str:
    """What to write for arguments that are not both lists."""
    if isinstance(gradients, dict) and isinstance(variables, dict):
        return "write apply(ll.tree.leaves(gradients), ll.tree.leaves(variables))"
    if hasattr(gradients, "trainable_variables"):
        return "gradients come first: write apply(gradients, module)"
    if isinstance(variables, (list, tuple)) and len(variables) != 1 and isinstance(gradients, Tensor):
        return "gradients are what a tape answers: write apply(tape.gradient(loss, variables), variables)"
    if isinstance(variables, Iterator):
        return "write list(...) of it, without names: [v for name, v in module.named_variables(trainable=True)]"
    return "write apply([g], [v])"


def _hint_for(variables: Any) -> str:
    """What to write for lists of different lengths."""
    if not variables:
        return ": write apply(gradients, variables), or a module in place of its variables"
    if any(hasattr(x, "trainable_variables") for x in variables):
        return _of_modules(", among them modules: give")
    return ": ask for the gradients of the same list, apply(tape.gradient(loss, variables), variables)"


def _of_modules(begin: str) -> str:
    return f"{begin} one module, or sum([m.trainable_variables for m in modules], [])"


def _are_pairs(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and any(isinstance(x, tuple) and len(x) == 2 for x in given)


def _check_order(name: str, gradients: Any, variables: Any) -> None:
    """Raises ArgumentError for variables handed over first, where gradients belong."""
    if any(isinstance(x, Variable) for x in gradients) and not any(isinstance(x, Variable) for x in variables):
        raise ArgumentError(
            f"{name}.apply takes gradients first, then variables, and got variables first; write "
            "apply(gradients, variables)"
        )


def checked_gradient(name: str, given: Any, variable: Variable) -> Gradient:
    """The gradient of `variable`. Raises DTypeError or ShapeError where it does not fit."""
    gradient: Gradient = given if isinstance(given, SparseGradient) else as_tensor(given)
    if not dtypes.is_floating(variable.dtype) or not dtypes.is_floating(gradient.dtype):
        raise DTypeError(
            f"{name}.apply: variable {path_of(variable)!r} is {variable.dtype.name}, its gradient "
            f"{gradient.dtype.name}; both must be floating (keep a complex parameter as its real and imaginary parts)"
        )
    if None not in gradient.shape and not shapes.compatible(gradient.shape, variable.shape):
        raise ShapeError(
            f"{name}.apply: the gradient of variable {path_of(variable)!r} has shape "
            f"{shapes.show(gradient.shape)}, the variable {shapes.show(variable.shape)}; "
            "are gradients and variables in the same order?"
        )
    return gradient
