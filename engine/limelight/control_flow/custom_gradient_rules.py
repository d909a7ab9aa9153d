"""What `custom_gradient` and `recompute_grad` share: arguments with their tensors, and checked rules of users.

A rule works on lists: from the gradients of the outputs to those of the tensors among the arguments and of the
variables that the body read.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from limelight.autodiff import INEXACT, zeros
from limelight.control_flow.python_state_scope import python_state_scope
from limelight.core import nest, shapes
from limelight.core.nest import Structure
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, beside
from limelight.core.variable import Resource
from limelight.errors import ArgumentError, DTypeError, GradientError, ShapeError, SignatureError
from limelight.user_code.given_functions import call_user_function
from limelight.user_code.python_state import names_of


class Arguments(NamedTuple):
    """The arguments of one call, flattened."""

    leaves: list[Any]
    structure: Structure  # of (args, kwargs)
    places: list[int]  # the leaves that are tensors or variables

    @property
    def tensors(self) -> list[Any]:
        return [self.leaves[i] for i in self.places]

    @property
    def given(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments, to call the function with."""
        args, kwargs = nest.unflatten(self.structure, self.leaves)
        return args, kwargs

    def replaced(self, tensors: Sequence[Any]) -> Arguments:
        """The arguments with other tensors in their places."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, tensors, strict=True):
            leaves[i] = x
        return self._replace(leaves=leaves)

    def gradients(self, name: str, returned: Any) -> list[Any]:
        """What a rule returned for the arguments, as one gradient for each tensor; GradientError for a wrong number."""
        arguments, holders = self.structure.children[0].children, self._holders()
        if not holders:
            return []
        listed = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(holders) == 1 and (len(arguments) == 1 or len(listed) != len(arguments)):
            nested = arguments[holders[0]].kind in (tuple, list)
            if nested and not (len(listed) == 1 and isinstance(listed[0], (tuple, list, type(None)))):
                listed = [returned]  # the gradients of the one argument that has any, and no tuple around them
        if len(listed) == len(arguments):
            by_argument = dict(enumerate(listed))
        elif len(listed) == len(holders):
            by_argument = dict(zip(holders, listed, strict=True))
        else:
            raise GradientError(_miscounted(name, len(arguments), len(holders), len(listed)))
        return self._spread(name, by_argument)

    def _holders(self) -> list[int]:
        """The arguments with tensors in them."""
        ends, total = [], 0
        for child in self.structure.children[0].children:
            total += child.n_leaves
            ends.append(total)
        return sorted({next(k for k, end in enumerate(ends) if i < end) for i in self.places})

    def _spread(self, name: str, by_argument: dict[int, Any]) -> list[Any]:
        """One gradient for each tensor, from the gradients of arguments, which may be nests."""
        flat: list[Any] = []
        for k, structure in enumerate(self.structure.children[0].children):
            g = by_argument.get(k)
            if g is None:
                flat += [None] * structure.n_leaves
            else:
                flat += nest.flatten_like(structure, g, f"the gradient that {name} returned for argument {k}")
        return [flat[i] for i in self.places]


def _miscounted(name: str, arguments: int, holders: int, returned: int) -> str:
    wanted = str(arguments) if arguments == holders else f"{arguments} (or {holders}, for those that hold tensors)"
    return (
        f"custom_gradient: {name} has {arguments} argument{'s' * (arguments != 1)}, so its gradient function must "
        f"return {wanted} gradient{'s' * (arguments != 1)}, got {returned}; return None for an argument that has none"
    )


def bind(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """The arguments in the order of the parameters. Raises ArgumentError for tensors that have no place there.

    Args:
        name: the name of the user's function, for errors.
        signature: its signature.
        args: the positional arguments of the call.
        kwargs: its keyword arguments.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    for keyword, value in bound.kwargs.items():
        if any(is_tensor(x) for x in nest.leaves_of(value)):
            raise ArgumentError(
                f"custom_gradient: {name} got a tensor by the keyword `{keyword}`, which can only be given by name and "
                f"so has no place among its gradients; write it as an ordinary parameter: def {name}(..., {keyword})"
            )
    return flattened(bound.args, bound.kwargs)


def flattened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    leaves, structure = nest.flatten((args, kwargs))
    return Arguments(leaves, structure, [i for i, x in enumerate(leaves) if is_tensor(x)])


def is_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, Resource))


class Packing(NamedTuple):
    """How a rule takes the gradients of the outputs: f(*parts) for a tuple or list, f(whole) for anything else."""

    structure: Structure
    specs: tuple[TensorSpec | None, ...]  # of the leaves, None for those that are None

    def given(self, gradients: Sequence[Any], sizes: Sequence[Any]) -> list[Any]:
        """The arguments of the rule: zeros where an output has no gradient, None for integers."""
        feed = iter(zip(gradients, sizes, strict=True))
        leaves = [None if spec is None else self._one(*next(feed), spec) for spec in self.specs]
        whole = nest.unflatten(self.structure, leaves)
        return list(whole) if self.structure.kind in (tuple, list) else [whole]

    @staticmethod
    def _one(g: Any, sizes: Any, spec: TensorSpec) -> Any:
        if spec.dtype not in INEXACT:
            return None
        return zeros(sizes, spec.dtype) if g is None else g


Rule: TypeAlias = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], list[Any]]
"""rule(output gradients, sizes of the outputs, variables): a gradient or None for each tensor argument and variable."""
MakeRule: TypeAlias = Callable[[Arguments, Packing, Sequence[Any]], Rule]
Body: TypeAlias = Callable[[Arguments], tuple[Any, MakeRule]]
"""Runs a function: its value, and what makes the rule out of the arguments and the variables that have been read."""


class UserRule:
    """A gradient function of a user's, for one call."""

    def __init__(
        self, name: str, fn: Callable[..., Any], arguments: Arguments, packing: Packing, variables: Sequence[Any]
    ) -> None:
        self.name = name
        self.fn = fn
        self.packing = packing
        self._arguments = arguments._replace(leaves=[])  # only what the function closes over is kept alive
        self._specs = [x.spec for x in arguments.tensors]
        self.keeps = _closed_over(fn)  # for counting bytes
        self._names = names_of(fn)
        _check_takes_variables(name, fn, len(variables))

    def __call__(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """One gradient, or None, for each tensor among the arguments and then for each variable.

        The rule sees names as they were when the function was called, as it does in a trace.
        """
        with python_state_scope(self._names, keeps_changes=True):
            return self._gradients(gradients, sizes, variables)

    def _called(self, *arguments: Any, **variables: Any) -> Any:
        gets = "the gradient of each result"
        return call_user_function(
            "custom_gradient", f"the gradient function of {self.name}", gets, self.fn, *arguments, **variables
        )

    def _gradients(self, gradients: Sequence[Any], sizes: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        arguments = self.packing.given(gradients, sizes)
        wants = _takes_variables(self.fn) and (variables or _requires_variables(self.fn))
        if not wants:
            return self._fitted(self._arguments.gradients(self.name, self._called(*arguments)))
        result = self._called(*arguments, variables=list(variables))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise GradientError(
                f"custom_gradient: the gradient function of {self.name} takes `variables` and must return "
                "(gradients of the arguments, gradients of the variables), two things"
            )
        of_variables = list(result[1]) if isinstance(result[1], (tuple, list)) else [result[1]]
        if len(of_variables) != len(variables):
            raise GradientError(
                f"custom_gradient: {self.name} reads {len(variables)} variable{'s' * (len(variables) != 1)}, so its "
                f"gradient function must return {len(variables)} for them, got {len(of_variables)}"
            )
        specs = [v.spec.value for v in variables]
        fitted = [_checked_gradient(self.name, g, spec) for g, spec in zip(of_variables, specs, strict=True)]
        return [*self._fitted(self._arguments.gradients(self.name, result[0])), *fitted]

    def _fitted(self, gradients: list[Any]) -> list[Any]:
        specs = [getattr(spec, "value", spec) for spec in self._specs]
        return [_checked_gradient(self.name, g, spec) for g, spec in zip(gradients, specs, strict=True)]


def _checked_gradient(name: str, g: Any, spec: TensorSpec) -> Any:
    """A gradient as a tensor of its source's shape and dtype; None where there is none, or its source is integers."""
    if g is None or spec.dtype not in INEXACT:
        return None
    if not isinstance(g, SparseGradient):
        g = beside(g, spec.dtype)
    if g.dtype != spec.dtype:
        raise DTypeError(
            f"custom_gradient: {name} returned a {g.dtype.name} gradient for a {spec.dtype.name} source; "
            f"write ll.astype(g, ll.{spec.dtype.name})"
        )
    if not shapes.compatible(g.shape, spec.shape):
        raise ShapeError(
            f"custom_gradient: {name} returned a gradient of shape {shapes.show(g.shape)} for a source of shape "
            f"{shapes.show(spec.shape)}; a gradient has its source's own shape"
        )
    return g


def split_result(name: str, result: Any) -> tuple[Any, Callable[..., Any]]:
    """What the body returned: its value, and the gradient function. Raises SignatureError for anything else."""
    if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
        got = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
        raise SignatureError(
            f"custom_gradient: {name} must return its value and a gradient function, `return y, grad`, got {got}"
        )
    return result


def _check_takes_variables(name: str, fn: Callable[..., Any], count: int) -> None:
    """Raises SignatureError, a TypeError, when the body read variables for which the rule cannot give gradients."""
    if count and not _takes_variables(fn):
        raise SignatureError(
            f"custom_gradient: {name} reads {count} trainable variable{'s' * (count != 1)}, whose gradients would be "
            "lost: give its gradient function a keyword argument `variables` and return both, as in "
            "def grad(dy, variables=None): return gradients_of_arguments, gradients_of_variables"
        )


def _closed_over(fn: Callable[..., Any]) -> tuple[Tensor, ...]:
    """The tensors that a function closes over, by themselves or in a list or tuple."""
    tensors = []
    for cell in getattr(fn, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # a cell that is still empty
            content = cell.cell_contents
            inside = content if isinstance(content, (tuple, list)) else (content,)
            tensors += [x for x in inside if isinstance(x, Tensor)]
    return tuple(tensors)


def _takes_variables(fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(fn).parameters
    return "variables" in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _requires_variables(fn: Callable[..., Any]) -> bool:
    parameter = inspect.signature(fn).parameters.get("variables")
    return parameter is not None and parameter.default is inspect.Parameter.empty
