"""What a call looks like to the trace cache: canonical arguments, their abstract types, and names for each part.

A key is a tuple of parts, one for each leaf of the arguments, and the structure around them. Parts are tuples whose
first item says how the leaf was keyed, so that a 1, a 1.0 and a True differ although Python finds them equal:

    ("tensor", dtype, shape[, device])      a tensor or array: any values
    ("variable", VariableSpec, n[, device]) the n-th distinct variable among the arguments; with an Identity at the end
                                            where the function closes over that variable as well
    ("value", type, words or value)         a plain Python value, by type and value, or by what it says (`plain`)
    ("object", Identity)                    anything else, by weak identity
"""

from __future__ import annotations

import enum
import inspect
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from types import GeneratorType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import device_scopes, dispatch, dtypes, nest
from limelight.core.devices import CPU0, Device
from limelight.core.nest import Structure
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.spec import TensorSpec, VariableSpec
from limelight.core.tensor import Tensor, wrap
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, DTypeError, SignatureError, mark_user_error
from limelight.staging.value_keys import BY_REPR, is_words, words_for
from limelight.staging.weak_identity import Bound, Identity
from limelight.user_code import call_errors

_BY_VALUE: Final = frozenset([bool, int, str, bytes, type(None), type(Ellipsis), range, type])
LONG: Final = 60
_PLAIN_DEFAULTS: Final = _BY_VALUE | {float, complex}
"""Types of defaults that are the same at each call (no default is the type `type`: `inspect.Parameter.empty`)."""
_UNKEYABLE: Final = (set, frozenset, weakref.ref, memoryview, bytearray)


class Key(NamedTuple):
    """What a trace is found by."""

    parts: tuple[tuple[Any, ...], ...]
    structure: Structure | None  # None: flat positional arguments
    device: Device | None


class Call(NamedTuple):
    """The arguments of a call, canonical: `leaves` in order, and the key."""

    leaves: list[Any]
    key: Key


class Signature:
    """Binds calls of one Python function canonically: f(1, 2), f(a=1, b=2) and omitted defaults are one."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self.inspected = _signature_of(function)
        self._called = call_errors.called(function, name)
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
            said = call_errors.words(self._called, self.inspected, args, kwargs)
            mistake = TypeError(said or f"{self.name}() {error}")
            mark_user_error(mistake)
            raise mistake from None
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
            elif type(x) in _BY_VALUE:
                parts.append(("value", type(x), x))
            else:
                return None
        device = device_scopes.requested_device() if dispatch.scopes else None
        return Call(list(args), Key(tuple(parts), None, device))

    def _general_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], abstract: bool) -> Call:
        # The form depends on the parameters alone: f((1,), {"x": 2}) must not look like f(1, x=2).
        leaves, structure = nest.flatten((args, kwargs) if self.takes_keywords else args)
        leaves = [x.dense() if type(x) is SparseGradient else x for x in leaves]
        flat = not self.takes_keywords and all(child.kind is None for child in structure.children)
        seen: dict[int, int] = {}
        parts = tuple([self._part(x, i, structure, seen, abstract) for i, x in enumerate(leaves)])
        leaves = [_copied(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in leaves]
        return Call(leaves, Key(parts, None if flat else structure, device_scopes.requested_device()))

    def _part(self, x: Any, index: int, structure: Structure, seen: dict[int, int], abstract: bool) -> tuple[Any, ...]:
        try:
            if not abstract:
                refuse_spec(x)
            return part_of(x, seen)
        except (SignatureError, DTypeError) as error:
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
    try:
        return inspect.signature(function)
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


def plain_types(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]] | None:
    """The types of arguments that are tensors on CPU:0 or plain values, and the tensors' payloads; None for any others.

    While no interpreter, scope or listener is active they decide which trace a call without keywords finds: a key
    within the key, which takes a third of the time to make.
    """
    types: list[Any] = []
    payloads = []
    for x in args:
        if type(x) is Tensor and x._device is CPU0:
            data = x._data
            payloads.append(data)
            types.append(data.dtype)
            types.append(data.shape)
        elif type(x) in _BY_VALUE:
            types.append(type(x))
            types.append(x)
        else:
            return None
    return tuple(types), payloads


def settle(call: Call, closed_over: Collection[int]) -> Call:
    """`call` with the variables that the function closes over as well, given by uid, keyed by identity.

    A graph that reads such a variable and writes to the argument means one thing when both are the same variable, and
    another when they are not.
    """
    parts = [
        (*part, Identity(x)) if part[0] == "variable" and _uid(x) in closed_over and not _settled(part) else part
        for part, x in zip(call.key.parts, call.leaves, strict=True)
    ]
    return Call(call.leaves, call.key._replace(parts=tuple(parts)))


def _settled(part: tuple[Any, ...]) -> bool:
    return isinstance(part[-1], Identity)


def _uid(x: Any) -> int:
    found: int = getattr(x, "_uid", 0)
    return found


def part_of(x: Any, seen: dict[int, int]) -> tuple[Any, ...]:
    """The key part of one leaf. `seen` numbers the distinct variables so far, which is how aliasing is keyed."""
    if isinstance(x, Tensor):
        where = () if x._device is CPU0 else (x._device,)
        return ("tensor", x.dtype, x.shape, *where)
    if isinstance(x, TensorSpec):
        return ("tensor", x.dtype, x.shape)
    if isinstance(x, (np.str_, np.bytes_)):
        return ("value", type(x), x)
    if isinstance(x, (np.ndarray, np.generic)):
        return ("tensor", dtypes.dtype(x.dtype), x.shape)
    if isinstance(x, Variable):
        where = () if x._device is CPU0 else (x._device,)
        return ("variable", x.spec, seen.setdefault(x._uid, len(seen)), *where)
    if isinstance(x, VariableSpec):
        return ("variable", x, seen.setdefault(-1 - len(seen), len(seen)))
    kind = type(x)
    if kind in _BY_VALUE or isinstance(x, (enum.Enum, np.dtype, type)):
        return ("value", kind, x)
    if kind in BY_REPR:
        return ("value", kind, repr(x))  # repr tells 0.0 from -0.0 and finds NaN equal to itself
    words = words_for(x)
    return _by_identity(x) if words is None else ("value", kind, words)


def _by_identity(x: Any) -> tuple[Any, ...]:
    if isinstance(x, GeneratorType):
        raise SignatureError(
            "a generator cannot be part of a cache key: a trace uses it up, and each one is another object; pass a "
            "tuple or list of its elements"
        )
    if isinstance(x, _UNKEYABLE):
        raise SignatureError(
            f"a {type(x).__name__} cannot be part of a cache key: its contents may change or have no order; "
            "pass a tuple or list of its elements, or close over it"
        )
    if getattr(type(x), "__limelight_method__", False):  # made anew each time it is asked for
        x = x.__limelight_function__
    try:
        return ("object", Bound(x) if inspect.ismethod(x) else Identity(x))
    except TypeError:
        raise SignatureError(
            f"a value of type {type(x).__name__} can be keyed neither by value nor by weak reference; "
            "pass its contents as tensors or plain values, or close over it"
        ) from None


def describe_part(part: tuple[Any, ...]) -> str:
    """A key part as shown to people: "f32[32,784]", "3", "'relu'", "function loss"."""
    kind = part[0]
    if kind == "tensor":
        text = str(TensorSpec(part[2], part[1]))
        return text if len(part) == 3 else f"{text} on {part[3].short}"
    if kind == "variable":
        where = "".join([f" on {x.short}" for x in part[3:] if isinstance(x, Device)])
        return f"{part[1]} #{part[2]}{where}" + (" (this very one)" if isinstance(part[-1], Identity) else "")
    if kind == "value":
        return str(part[2]) if is_words(part) else _said(part[2])
    return repr(part[1])


def describe(paths: Sequence[str], key: Key) -> str:
    """The abstract arguments, whose leaves have these paths, on one line: "x: f32[32,784], training: True"."""
    return ", ".join([f"{path}: {describe_part(part)}" for path, part in zip(paths, key.parts, strict=True)])


def _said(value: Any) -> str:
    """`repr` of a plain value, short, and sure to return something."""
    if isinstance(value, (str, bytes)) and len(value) > LONG:
        return f"{value[:LONG]!r}..."
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # an enumeration's repr may be the user's, and an explanation must not raise
        return f"{type(value).__name__} value"
