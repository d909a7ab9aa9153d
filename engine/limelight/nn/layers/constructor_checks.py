"""What layers are told when they are made: checks, and words for calls that do not fit the constructor."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np

from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError
from limelight.nn.functional import activations
from limelight.ops.elementwise.exponential import sigmoid
from limelight.ops.elementwise.hyperbolic import tanh
from limelight.ops.nn._windows import NAMES, as_padding
from limelight.ops.nn.activations import relu, softplus
from limelight.ops.nn.softmax import log_softmax, softmax
from limelight.user_code import equivalents

Activation: TypeAlias = Callable[[Tensor], Any]
_OTHERS = (relu, softplus, sigmoid, softmax, log_softmax, tanh)
_NOT_ALONE = ("glu", "prelu")  # one halves the features, the other has weights of its own


@functools.cache
def activations_by_name() -> dict[str, Activation]:
    """The activations that a layer can be told by name."""
    by_name = {name: getattr(activations, name) for name in activations.__all__ if name not in _NOT_ALONE}
    by_name |= {function.__name__: function for function in _OTHERS}
    return dict(sorted(by_name.items()))


def checked_activation(owner: str, given: Any) -> Activation | None:
    """`given`, a function or None, or the function of that name in `ll.nn`."""
    if given is None or (callable(given) and not isinstance(given, type)):
        activation: Activation | None = given
        return activation
    known = activations_by_name()
    if isinstance(given, str) and given in known:
        return known[given]
    close = get_close_matches(given.lower(), known, n=1) if isinstance(given, str) else []
    hint = f"; did you mean {close[0]!r}?" if close else ""
    if isinstance(given, str) and given in ("linear", "identity", "none"):
        hint = "; leave it out for none"
    if isinstance(given, int):
        hint = " (sizes of inputs are not given: the first call finds them)"
    raise ArgumentError(
        f"{owner}: activation must be a function such as ll.nn.relu, or one of {', '.join(map(repr, known))}; "
        f"got {given!r}{hint}"
    )


def checked_size(owner: str, name: str, given: Any) -> int:
    """`given`, which must be a positive int."""
    if isinstance(given, Tensor) and given.ndim:
        raise ArgumentError(f"{owner}: {name} must be a positive int, got {given.spec}{_made_first(owner)}")
    if isinstance(given, bool) or not hasattr(given, "__index__") or given.__index__() < 1:
        raise ArgumentError(f"{owner}: {name} must be a positive int, got {given!r}")
    return int(given)


def _made_first(owner: str) -> str:
    """What to write where a layer's class was given the input of the layer."""
    return f". A layer is made once, and the layer is called: layer = {owner}(...), layer(x)"


def checked_sizes(owner: str, name: str, given: Any) -> Any:
    """`given`, which must be a positive int, or several as a tuple."""
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        return tuple([checked_size(owner, name, n) for n in given])
    if isinstance(given, Sequence):
        raise ArgumentError(f"{owner}: {name} must be a positive int, or one for each spatial axis; got {given!r}")
    return checked_size(owner, name, given)


def checked_window(owner: str, given: Any) -> Any:
    """`given`, a positive int, which is for two spatial axes, or one for each of one to three as a tuple."""
    window = checked_sizes(owner, "window", given)
    if isinstance(window, tuple) and len(window) > 3:
        raise ArgumentError(f"{owner}: the window must have one to three sizes, got {window}")
    return window


def spatial_axes(window: Any) -> int:
    """How many axes a window is for.

    One number is for two, whatever comes in: three axes may be lines with channels, images without channels, or one
    image without a batch, and a window of any rank would go through.
    """
    return len(window) if isinstance(window, tuple) else 2


def check_windows(owner: str, n: int, stride: Any, padding: Any, dilation: Any = 1) -> None:
    """Raises ArgumentError unless the settings are for `n` spatial axes."""
    for name, given in (("stride", stride), ("dilation", dilation)):
        if isinstance(given, tuple) and len(given) != n:
            raise ArgumentError(
                f"{owner}: {name} must be a number, or one for each of the {n} spatial axes of the window; got {given}"
            )
    as_padding(owner, padding, n)


def check_spatial(owner: str, window: Any, x: Tensor) -> None:
    """Raises ShapeError unless `x` has a batch, the axes of the window, and channels."""
    n = spatial_axes(window)
    if x.ndim == n + 2:
        return
    message = f"{owner} needs an input of shape ({NAMES[n - 1]}), got {x.spec}"
    if isinstance(window, int) and x.ndim in (3, 5):
        axes, own = ("one", f"({window},)") if x.ndim == 3 else ("three", f"({window}, {window}, {window})")
        message += f": one number is for two spatial axes. For {axes} write the window {own}"
        if x.ndim == 3:
            message += "; for images without channels x.expand_dims(-1), for a single one x.expand_dims(0)"
    elif x.ndim == n + 1:
        message += "; write x.expand_dims(-1) if it has no channels, x.expand_dims(0) for a single example"
    raise ShapeError(message)


def checked_flag(owner: str, name: str, given: Any) -> bool:
    """`given`, which must be True or False: any other value is most likely meant for another argument."""
    if not isinstance(given, (bool, np.bool_)):
        raise ArgumentError(f"{owner}: {name} must be True or False, got {given!r} ({type(given).__name__})")
    return bool(given)


def checked_number(owner: str, name: str, given: Any) -> float:
    """`given`, which must be a number of at least 0."""
    if isinstance(given, (bool, str)) or not hasattr(given, "__float__") or not given >= 0:
        raise ArgumentError(f"{owner}: {name} must be a number of at least 0, got {given!r}")
    return float(given)


def checked_dtype(owner: str, given: Any) -> DType:
    """The floating dtype that `given` names."""
    try:
        dtype = dtypes.dtype(given)
    except DTypeError:
        dtype = None
    if dtype is None or not dtypes.is_floating(dtype):
        raise ArgumentError(f"{owner}: dtype must be a floating one, as 'float32' or ll.float64; got {given!r}")
    return dtype


def with_call_errors(init: Callable[..., None], owner: str) -> Callable[..., None]:
    """The constructor `init`, which says in the words of `owner` what is wrong with a call that does not fit it."""

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError:
            parameters = dict(list(inspect.signature(init).parameters.items())[1:])
            name = type(self).__name__ if type(self).__init__ is checked_init else owner.lstrip("_")
            message = call_mismatch(name, parameters, args, kwargs)
            if message is None:
                raise
            raise CallError(message) from None

    return checked_init


def call_mismatch(
    name: str, parameters: Mapping[str, inspect.Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """What does not fit in a call of a constructor.

    Args:
        name: the class's.
        parameters: those of its constructor, without `self`.
        args: what was given by place.
        kwargs: what was given by name.

    Returns:
        A sentence, or None where the call fits.
    """
    kinds = {parameter.kind for parameter in parameters.values()}
    first = [k for k, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    settings = [k for k, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    takes = f"{name} takes {_listed(first)}" if first else f"{name} takes no positional arguments"
    by_name = f"; by name also {', '.join(settings)}" if first else f", only settings by name: {', '.join(settings)}"
    takes += by_name if settings else ""
    if len(args) > len(first) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown = ", ".join([str(x.spec) if isinstance(x, Tensor) else repr(x) for x in args])
        if any(isinstance(x, Tensor) and x.ndim for x in args):
            return f"{takes}. Got {name}({shown}){_made_first(name)}"
        sizes = ": sizes of the inputs are not given, the first call finds them" if first or settings else ""
        return f"{takes}. Got {name}({shown}){sizes}{_by_name(parameters, settings, args[len(first)])}"
    unknown = [k for k in kwargs if k not in parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        hint = equivalents.setting_hint(unknown[0], parameters, equivalents.layer_settings())
        return f"{name} has no setting {unknown[0]!r}{hint} {takes}"
    twice = [k for k in first[: len(args)] if k in kwargs]
    if twice:
        return f"{name}: {twice[0]} was given twice, by place and by name"
    needed = [k for k in first[len(args) :] if parameters[k].default is parameters[k].empty and k not in kwargs]
    return f"{name} needs {' and '.join(needed)}; {takes}" if needed else None


def _by_name(parameters: Mapping[str, inspect.Parameter], settings: Sequence[str], given: Any) -> str:
    """How a number by place would be given by name, where the first setting is a size that may be left out."""
    is_size = bool(settings) and parameters[settings[0]].default is None and type(given) is int
    return f"; settings are given by name, as {settings[0]}={given!r}" if is_size else ""


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} positional argument{'s' * (len(names) > 1)}, {' and '.join(names)}"
