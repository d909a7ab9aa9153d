"""The parameters of a saved function: their names, kinds and defaults, as JSON and as a signature again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from limelight.core import dtypes
from limelight.core.tensor import Tensor, constant
from limelight.errors import ExportError, LimelightError
from limelight.export.nest_json import decode, encode


def described(name: str, parameters: Sequence[inspect.Parameter], keep: Callable[[str, Any], str]) -> list[Any]:
    """What a file says of parameters.

    Args:
        name: the function's, for messages.
        parameters: the parameters.
        keep: takes an array by a name into the file, and returns the name that it has there.

    Raises:
        ExportError: a default cannot be kept, and one that can is behind it: Python has no such signature.
    """
    lost = ""
    all_of_them = []
    for parameter in parameters:
        data = _described(parameter, keep)
        by_place = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if parameter.default is not parameter.empty and "default" not in data and "array" not in data:
            lost = lost or (f"`{parameter.name}`, a {type(parameter.default).__name__}" if by_place else "")
        elif lost and by_place:
            raise ExportError(
                f"{name} cannot be saved: a file cannot hold the default of {lost}, and `{parameter.name}` comes "
                "behind it with one that it can hold; move that parameter to the front, or behind a *"
            )
        all_of_them.append(data)
    try:
        signature(all_of_them, None)
    except ValueError as error:
        raise ExportError(f"{name} cannot be saved: its parameters are no signature of Python's: {error}") from None
    return all_of_them


def _described(parameter: inspect.Parameter, keep: Callable[[str, Any], str]) -> dict[str, Any]:
    data: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind.name}
    default = parameter.default
    if default is parameter.empty:
        return data
    if isinstance(default, Tensor) or (isinstance(default, np.ndarray) and default.dtype in dtypes.ALL):
        array = default.numpy() if isinstance(default, Tensor) else default
        data |= {"array": keep(f"defaults/{parameter.name}", array), "tensor": isinstance(default, Tensor)}
        return data
    try:
        data["default"] = encode(default, parameter.name)
    except LimelightError:  # calls of the loaded function have to give it then
        return data
    return data


def signature(data: Sequence[Mapping[str, Any]], arrays: Mapping[str, Any] | None) -> inspect.Signature:
    """The inverse of `described`; without `arrays` it is only tried whether there is such a signature.

    Raises ValueError where there is none.
    """
    return inspect.Signature([
        inspect.Parameter(p["name"], inspect._ParameterKind[p["kind"]], default=_default(p, arrays)) for p in data
    ])  # fmt: skip


def _default(data: Mapping[str, Any], arrays: Mapping[str, Any] | None) -> Any:
    if "array" in data:
        if arrays is None:
            return None
        array = arrays[data["array"]]
        return constant(array) if data.get("tensor") else array
    return decode(data["default"]) if "default" in data else inspect.Parameter.empty
