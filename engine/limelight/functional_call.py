"""Modules as functions of the values of their variables: `functional_call`, and values of several, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from limelight.control_flow.variables_as_values import can_be_value, with_values
from limelight.core import dispatch, shapes
from limelight.core.op import Op, get
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Resource, Variable
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError
from limelight.graph.ir import with_functions
from limelight.module import Module

__all__ = ["functional_call", "stack_modules"]

_SHOWN: Final = 4
"""Of how many variables a message has the paths."""


def functional_call(module: Module, values: Mapping[str, Any] | Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a module with other values of its variables, which stay as they are.

    The result is a function of these values: it can be differentiated by them, staged, and vectorised over them.
    Variables that have no value here are used as they are.

    Args:
        module: a module, whose variables have been made.
        values: values by path, as in `module.named_variables()`, or a list with one for each of `module.variables`.
        *args: the arguments of the call.
        **kwargs: keyword arguments of the call.

    Returns:
        What the call returns.

    Raises:
        ArgumentError: the values are left out, there is no such variable, a list has another length, or the call
            assigns to a variable that has a value here.
        CallError: the arguments are one tuple, as PyTorch has it; a module that takes one is given it by name.
        ShapeError, DTypeError: a value does not fit its variable.

    >>> import limelight as ll
    >>> layer = ll.nn.Dense(1, use_bias=False)
    >>> x = ll.constant([[1.0, 2.0]])
    >>> y = layer(x)  # makes the variables
    >>> of_kernel = lambda kernel: ll.sum(ll.functional_call(layer, {"kernel": kernel}, x))
    >>> ll.grad(of_kernel)(ll.zeros((2, 1))).tolist()
    [[1.0], [2.0]]
    """
    if not isinstance(module, Module):
        raise ArgumentError(f"functional_call: needs a module, got {type(module).__name__}")
    _check_order(args)
    _check_values(module, values)
    with _Values(_by_uid(module, values)):
        return module(*args, **kwargs)


def _check_order(args: tuple[Any, ...]) -> None:
    """Raises CallError for functional_call(module, values, (x, y), {"training": True}), as PyTorch has it."""
    if args and type(args[0]) is tuple and (len(args) == 1 or (len(args) == 2 and type(args[1]) is dict)):
        shown = ", ".join([f"x{i}" if len(args[0]) > 1 else "x" for i in range(len(args[0]))])
        named = ", " + ", ".join([f"{name}=..." for name in args[1]]) if len(args) == 2 and args[1] else ""
        raise CallError(
            f"functional_call: the arguments of the call follow as they are, not in a tuple: write functional_call("
            f"module, values, {shown}{named}); a module that takes one tuple is given it by name"
        )


def _check_values(module: Module, values: Any) -> None:
    """Raises ArgumentError where the values are left out, and an argument of the call stands in their place."""
    if hasattr(values, "__len__") and not hasattr(values, "shape") and not isinstance(values, str):
        return
    paths = list(dict(module.named_variables()))
    kind = type(module).__name__
    if paths:
        shown = ", ".join([f'"{path}": ...' for path in paths[:_SHOWN]] + ["..."] * (len(paths) > _SHOWN))
        own = "dict(module.named_variables()) has those that it has"
        write = f"write functional_call(module, {{{shown}}}, x); {own}"
    else:
        write = (
            f"this {kind} makes its variables at its first call: call it once, then functional_call(module, values, x)"
        )
    given = f"a {type(values).__name__}" + (f" {shapes.show(values.shape)}" if hasattr(values, "shape") else "")
    raise ArgumentError(
        "functional_call: the second argument is the values of the variables, by path or in a list, got "
        f"{given}; {write}"
    )


def stack_modules(modules: Sequence[Module]) -> dict[str, Tensor]:
    """The values of the variables of several modules that are built alike, stacked: an ensemble for `vectorize`.

    Args:
        modules: modules whose variables have the same paths, shapes and dtypes.

    Returns:
        A tensor (len(modules), *variable.shape) for each path: what `functional_call` takes for one example. Gradients
        lead to the variables.

    Raises:
        ArgumentError: there is no module, or they have other variables.
        ShapeError, DTypeError: variables of one path differ.

    >>> import limelight as ll
    >>> layers = [ll.nn.Dense(1), ll.nn.Dense(1)]
    >>> x = ll.constant([[1.0, 2.0]])
    >>> each = ll.stack([layer(x) for layer in layers])
    >>> of_one = lambda values, x: ll.functional_call(layers[0], values, x)
    >>> together = ll.vectorize(of_one, in_axes=(0, None))(ll.stack_modules(layers), x)
    >>> together.shape, ll.max(ll.abs(together - each)).item() < 1e-6
    ((2, 1, 1), True)
    """
    columns = [dict(_module(m).named_variables()) for m in modules]
    if not columns:
        raise ArgumentError("stack_modules: needs one module at least")
    for i, column in enumerate(columns):
        if column.keys() != columns[0].keys():
            differing = ", ".join(sorted(column.keys() ^ columns[0].keys()))
            raise ArgumentError(f"stack_modules: module {i} has other variables than the first: {differing}")
        for path, variable in column.items():
            _check("stack_modules", f"`{path}` of module {i}", variable, columns[0][path])
    return {
        path: dispatch.apply(get("stack"), tuple([column[path].read_value() for column in columns]), (0,))
        for path in columns[0]
    }


def _module(x: Any) -> Module:
    if not isinstance(x, Module):
        raise ArgumentError(f"stack_modules: needs modules, got {type(x).__name__}")
    return x


def _by_uid(module: Module, values: Any) -> dict[int, Tensor]:
    """The values by the uid of their variable."""
    variables = dict(module.named_variables())
    known = ", ".join(variables) or "none: it makes them at its first call"
    if not isinstance(values, Mapping):
        if len(values) != len(variables):
            raise ArgumentError(f"functional_call: {len(values)} values for {len(variables)} variables ({known})")
        values = dict(zip(variables, values, strict=True))
    for path in values:
        if path not in variables:
            raise ArgumentError(f"functional_call: no variable {path!r} in {type(module).__name__} (it has {known})")
    given = {path: as_tensor(value) for path, value in values.items()}
    for path, value in given.items():
        _check("functional_call", f"the value of `{path}`", value, variables[path])
    return {variables[path]._uid: value for path, value in given.items()}


def _check(name: str, what: str, value: Any, variable: Variable) -> None:
    """Raises DTypeError or ShapeError for a value that `variable` cannot have."""
    if value.dtype != variable.dtype:
        raise DTypeError(f"{name}: {what} is {value.dtype.name}, the variable {variable.dtype.name}")
    if not shapes.compatible(value.shape, variable.shape) and shapes.is_static(value.shape):
        raise ShapeError(f"{name}: {what} is {shapes.show(value.shape)}, the variable {shapes.show(variable.shape)}")


class _Values(dispatch.BlockInterpreter):
    """Answers reads of variables with other values; functions that ops call get them as inputs."""

    def __init__(self, values: Mapping[int, Tensor]) -> None:
        self._values = values

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        below = self.below
        assert below is not None, "an interpreter is asked only while it is on the stack"
        places = [i for i, x in enumerate(inputs) if isinstance(x, Resource) and x._uid in self._values]
        if not places:
            return below.process(op, inputs, attrs)
        if op.name == "read_variable":
            return self._values[inputs[0]._uid]
        if not op.higher_order:
            raise ArgumentError(
                f"functional_call: {op} of a variable that has a value for this call, which stays as it is: leave it "
                "out of the values, or do not train in the call (training=False)"
            )

        def change(function: Any) -> Any:
            inside = [i - len(inputs) + len(function.graph.inputs) for i in places]
            inside = [i for i in inside if i >= 0]
            if not all(can_be_value(function, i) for i in inside):
                raise ArgumentError(
                    f"functional_call: {function.graph.name} assigns to a variable that has a value for this call, or "
                    "needs it for a custom gradient: leave it out of the values"
                )
            return with_values(function, inside)

        given = tuple([self._values[x._uid] if i in places else x for i, x in enumerate(inputs)])
        return below.process(op, given, with_functions(change, attrs))
