"""The signature of a Python function: binds its calls canonically, with a name for each part of the arguments.

`Signature.call` is where the look-up key of a call is made. A miss is explained by comparing keys part by part, and
each part carries its path in the user's code: 'batch["x"]'. A call that does not fit is refused in Python's own words:
`call_errors` calls a function with the same parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from limelight.core import device_scopes, dispatch, dtypes, nest
from limelight.core.devices import CPU0
from limelight.core.nest import Structure
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.core.tensor import Tensor, wrap
from limelight.errors import ArgumentError, DTypeError, ShapeError, SignatureError, mark_user_error
from limelight.staging.key import Call, LookupKey
from limelight.staging.key_parts import BY_VALUE, BarePart, bare_part
from limelight.user_code import call_errors

_PLAIN_DEFAULTS: Final = BY_VALUE | {float, complex}
"""Types of defaults that are the same at each call (no default is the type `type`: `inspect.Parameter.empty`)."""


class Signature:
    """Binds calls of one Python function canonically: f(1, 2), f(a=1, b=2) and omitted defaults are one."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self.inspected = _signature_of(function)
        self._called = call_errors.called(function, name)  # for errors: the name and kind of what is called
        parameters = list(self.inspected.parameters.values())
        simple = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = {p.kind: p.name for p in parameters}
        self._flat = all(p.kind in simple for p in parameters)
        self._count = len(parameters)
        self.positional = [p.name for p in parameters if p.kind in simple]
        self.parameter_names = tuple(self.inspected.parameters)
        self.rest_name = names.get(inspect.Parameter.VAR_POSITIONAL, "")
        self.keywords_name = names.get(inspect.Parameter.VAR_KEYWORD, "")
        self.takes_keywords = bool(self.keywords_name) or inspect.Parameter.KEYWORD_ONLY in names
        self.defaults_are_plain = all(type(p.default) in _PLAIN_DEFAULTS for p in parameters)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments in canonical form, defaults filled in. Raises TypeError as Python would."""
        if not kwargs and len(args) == self._count and self._flat:
            return args, {}
        try:
            bound = self.inspected.bind(*args, **kwargs)
        except TypeError as error:
            words = call_errors.words(self._called, self.inspected, args, kwargs)
            user_error = TypeError(words or f"{self.name}() {error}")
            mark_user_error(user_error)
            raise user_error from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], abstract: bool = False) -> Call:
        """The canonical call; raises SignatureError for an argument that cannot be keyed.

        Specs may stand for tensors in an `abstract` call, which will not be run.
        """
        flat = self._flat_call(args) if not kwargs and len(args) == self._count and self._flat else None
        return flat or self._general_call(*self.bind(args, kwargs), abstract)

    @staticmethod
    def _flat_call(args: tuple[Any, ...]) -> Call | None:
        """The common case, fast: tensors on CPU:0 and plain values, positionally."""
        parts = []
        for x in args:
            if type(x) is Tensor and x._device is CPU0:
                data = x._data
                parts.append(("tensor", data.dtype, data.shape))
            elif type(x) in BY_VALUE:
                parts.append(("value", type(x), x))
            else:
                return None
        device = device_scopes.requested_device() if dispatch.scopes else None
        return Call(list(args), LookupKey(tuple(parts), None, device), args)

    def _general_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], abstract: bool) -> Call:
        # The form depends on the parameters alone: f((1,), {"x": 2}) must not look like f(1, x=2).
        leaves, structure = nest.flatten((args, kwargs) if self.takes_keywords else args)
        leaves = [x.dense() if type(x) is SparseGradient else x for x in leaves]
        flat = not self.takes_keywords and all(child.kind is None for child in structure.children)
        seen: dict[int, int] = {}
        parts = tuple([self._part(x, i, structure, seen, abstract) for i, x in enumerate(leaves)])
        leaves = [_copied(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in leaves]
        lookup = LookupKey(parts, None if flat else structure, device_scopes.requested_device())
        return Call(leaves, lookup, args, kwargs)

    def _part(self, x: Any, index: int, structure: Structure, seen: dict[int, int], abstract: bool) -> BarePart:
        try:
            if not abstract:
                refuse_spec(x)
            return bare_part(x, seen)
        except (SignatureError, DTypeError, ShapeError) as error:
            path = self.paths(structure, structure.n_leaves)[index]
            raise type(error)(f"{self.name}: argument `{path}`: {error.bare}") from None

    def paths(self, structure: Structure | None, count: int) -> list[str]:
        """The Python expression for each leaf: "x", 'batch["x"]', "args[1]"."""
        if structure is None:
            return [self.root(i) for i in range(count)]
        if not self.takes_keywords:
            return self.positional_paths(structure)
        positional, keywords = structure.children
        named = zip(keywords.keys, keywords.children, strict=True)
        return self.positional_paths(positional) + [p for name, child in named for p in nest.paths(child, str(name))]

    def positional_paths(self, structure: Structure) -> list[str]:
        """The same for positional arguments alone."""
        return [path for i, child in enumerate(structure.children) for path in nest.paths(child, self.root(i))]

    def root(self, index: int) -> str:
        """The name of a positional argument: its parameter, or "args[1]"."""
        if index < len(self.positional):
            return self.positional[index]
        return f"{self.rest_name}[{index - len(self.positional)}]"

    def unbind(self, leaves: list[Any], structure: Structure | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to call the Python function with, from leaves in the order of a key."""
        if structure is None:
            return tuple(leaves), {}
        tree = nest.unflatten(structure, leaves)
        return tree if self.takes_keywords else (tree, {})


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    if isinstance(function, np.ufunc):  # which also has options, of which tensors take none
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(f"x{i + 1}", kind) for i in range(function.nin)])
    own = getattr(type(function), "__limelight_signature__", None)  # of its class: a proxy answers for another's call
    try:
        return inspect.signature(function) if own is None else own(function)
    except ValueError:  # of some that are built in nobody knows it
        name = getattr(function, "__name__", type(function).__name__)
        raise ArgumentError(
            f"ll.function: the parameters of {name}, which is built in, cannot be found out; stage a function of your "
            f"own that calls it, lambda x: {name}(x)"
        ) from None


def _copied(x: Any) -> Any:
    """An array or number of NumPy's as a tensor; its strings are plain values."""
    return x if isinstance(x, (np.str_, np.bytes_)) else wrap(np.array(x, dtypes.dtype(x.dtype)))


def refuse_spec(x: Any) -> None:
    """Raises SignatureError for a spec where a value is needed to run on."""
    if isinstance(x, (TensorSpec, VariableSpec)):
        raise SignatureError(
            f"a {type(x).__name__} has no value to run on: give a tensor, or ask get_concrete_function"
        )
