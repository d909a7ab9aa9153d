"""Weights that users set: which of them a layer takes, and what is refused since nothing would come of it.

A variable that an unbuilt layer is given stays when the layer makes its weights, so two layers can share one (Press and
Wolf 2017, section 2, tie the two embeddings of a language model).
"""

from __future__ import annotations

import inspect
from typing import Any

from limelight.core import shapes
from limelight.core.variable import Variable
from limelight.errors import ShapeError, mark_user_error

_METHOD = "weight"
_LIBRARY = "limelight."


def refuse_for_nothing(layer: Any, name: str, value: Any) -> None:
    """Raises AttributeError where what is set on one of the library's layers could only be a mistake.

    That is: anything over the method that makes weights, by which PyTorch calls the variable; and None for a weight
    that is not made yet, since that is what the unmade weight of another layer is.
    """
    if not type(layer).__module__.startswith(_LIBRARY):
        return
    kind, held = type(layer).__name__, vars(layer)
    if name == _METHOD:
        names = [key for key, x in held.items() if isinstance(x, Variable) or (x is None and key in ("kernel", "bias"))]
        said = f"; its variables are {' and '.join(names)}" if names else ""
        write = f": write .{names[0]} = variable" if names else ""
        error = AttributeError(
            f"{kind}.{_METHOD} is the method that makes a layer's variables, and cannot be set{said}{write}", name=name
        )
    elif (
        value is None
        and held.get(name, layer) is None
        and layer._lacks_weights()
        and name not in inspect.signature(type(layer)).parameters  # an activation, or another setting
    ):
        error = AttributeError(
            f"{kind}.{name} is None, and would be set to None: weights are made on the first call, or by build. To "
            "share one, build the layer that has it first, or use one layer in both places; with the table of an "
            "Embedding, which there is at once, write x @ embedding.table.T",
            name=name,
        )
    else:
        return
    mark_user_error(error)
    raise error


def weights_given(layer: Any) -> bool:
    """Whether an unbuilt layer of the library has a weight: it was given that, and makes the others later."""
    return type(layer).__module__.startswith(_LIBRARY) and any(isinstance(x, Variable) for x in vars(layer).values())


def kept_if_given(layer: Any, name: str, made: Variable) -> Variable:
    """The variable that a layer was given before for a weight which it has now made, or else that one.

    Raises ShapeError where the two do not agree in shape and dtype.
    """
    given = vars(layer).get(name)
    if not isinstance(given, Variable) or given is made or layer._features is not None:
        return made
    if given.shape == made.shape and given.dtype == made.dtype:
        return given
    hint = ""
    if given.shape == made.shape[::-1]:
        hint = "; it is the transpose: compute with it instead of the layer, as in x @ embedding.table.T"
    raise ShapeError(
        f"{layer!r} was given a variable for {name!r} of shape {shapes.show(given.shape)} and dtype "
        f"{given.dtype.name}, and needs {shapes.show(made.shape)} of {made.dtype.name}{hint}"
    )
