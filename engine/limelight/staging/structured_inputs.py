"""Calling a concrete function as its Python function is called: by parameters, or by the flat names of its tensors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from limelight.core import nest
from limelight.errors import SignatureError
from limelight.staging.key import Key
from limelight.staging.key_parts import ObjectPart, Part, ValuePart
from limelight.staging.signature import Signature


class _Missing:
    """Stands for what has not been given."""


_MISSING: Final = _Missing()
_BOUND: Final = _Missing()
"""Stands for a plain value that has not been given, so it is the one that the trace is bound to."""
_PLAIN: Final = frozenset([bool, int, float, complex, str, bytes, type(None)])
_KINDS: Final = {
    inspect.Parameter.POSITIONAL_ONLY: "positional only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.KEYWORD_ONLY: "keyword only",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def flat_names(paths: Sequence[str]) -> list[str]:
    """The paths of leaves as names that Python takes for keywords, each once: "pair[0]" is pair_0."""
    parameters = {path for path in paths if path.isidentifier()}
    names: list[str] = []
    for path in paths:
        name = re.sub(r"\W+", "_", path).strip("_")
        unique = name = name if name.isidentifier() else f"arg_{name}"
        count = 0
        while unique in names or (unique in parameters and unique != path):
            count += 1
            unique = f"{name}_{count}"
        names.append(unique)
    return names


def is_structured(signature: Signature | None, args: tuple[Any, ...], kwargs: Mapping[str, Any], wanted: int) -> bool:
    """Whether these are the arguments of the Python function, rather than just the tensors of a trace.

    Plain values and containers are arguments: a number stands for the parameter at its place, never for a tensor.

    Args:
        signature: that of the Python function; None where it is not known.
        args: the positional arguments.
        kwargs: those by name.
        wanted: how many tensors the trace takes.
    """
    if signature is None:
        return False
    if kwargs or not all(map(_may_be_tensor, args)):
        return True
    return len(args) != wanted and len(args) <= len(signature.positional) and _have_defaults(signature, len(args))


def _have_defaults(signature: Signature, start: int) -> bool:
    """Whether all positional parameters from `start` on may be left out."""
    parameters = signature.inspected.parameters
    return all(parameters[name].default is not inspect.Parameter.empty for name in signature.positional[start:])


def _may_be_tensor(x: Any) -> bool:
    return type(x) not in _PLAIN and nest.opened(x) is None


def tensors_of(
    signature: Signature, key: Key, paths: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """The tensors of a call by parameters. Plain values that the trace is bound to may be left out.

    Args:
        signature: that of the Python function.
        key: that of the trace.
        paths: how the user's code reaches each leaf of the arguments that were traced.
        args: the positional arguments.
        kwargs: those by name, of a parameter or of a leaf (`flat_names`).

    Raises:
        SignatureError: something is missing, unknown or not what is bound; names function and parameter.
    """
    name, parameters = signature.name, signature.inspected.parameters
    flat = dict(zip(flat_names(paths), range(len(paths)), strict=True))
    anything = bool(signature.keywords_name)
    named = {k: v for k, v in kwargs.items() if k in parameters or (anything and k not in flat)}
    by_leaf = {flat[k]: v for k, v in kwargs.items() if k in flat and k not in named}
    unknown = [k for k in kwargs if k not in named and k not in flat]
    if unknown:
        raise SignatureError(f"{name} has no parameter `{unknown[0]}`; it takes {', '.join(paths) or 'none'}")
    leaves, parts = _completed(signature, key, paths, args, named)
    if len(parts) != len(key.parts):
        raise SignatureError(f"{name} was traced for {len(key.parts)} values ({', '.join(paths)}), got {len(parts)}")
    for i, leaf in by_leaf.items():
        leaves[i] = leaf
        if isinstance(key.parts[i], ValuePart):
            parts[i] = signature.call((leaf,), {}).key.parts[0]
    for leaf, part, bound, path in zip(leaves, parts, key.parts, paths, strict=True):
        if leaf is _MISSING:
            raise SignatureError(f"{name}: argument `{path}` ({bound.describe()}) is missing")
        if not bound.is_input and part != bound and leaf is not _BOUND:
            raise SignatureError(
                f"{name}: argument `{path}`: expected {bound.describe()}, which this trace is bound to, got "
                f"{part.describe()}; leave it out, or call the staged function, which has a trace for each value"
            )
    return [leaf for leaf, bound in zip(leaves, key.parts, strict=True) if bound.is_input]


def _completed(
    signature: Signature, key: Key, paths: Sequence[str], args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[list[Any], list[Part]]:
    """Leaves and key parts of a call in which what is not given is what the trace is bound to.

    Args:
        signature: that of the Python function.
        key: that of the trace.
        paths: how the user's code reaches each leaf of the arguments that were traced.
        args: the positional arguments.
        named: those by the names of parameters.
    """
    positional, keywords = signature.unbind([_bound_value(part) for part in key.parts], key.structure)
    known = signature.inspected.bind(*positional, **keywords).arguments
    try:
        bindings = signature.inspected.bind_partial(*args, **named)
    except TypeError as error:
        needed = f"this trace is for ({key.describe(paths)}), given as to the function itself"
        raise SignatureError(f"{signature.name}() {error}: {needed}, or its tensors alone in that order") from None
    for parameter, bound in known.items():
        default = signature.inspected.parameters[parameter].default
        if bound is _MISSING and default is not inspect.Parameter.empty:
            bindings.arguments.setdefault(parameter, default)
        wanted, actual = nest.flatten(bound)[1], nest.flatten(bindings.arguments.setdefault(parameter, bound))[1]
        if wanted != actual:
            must = "be one value" if wanted == nest.LEAF else f"have the structure {wanted}"
            got = "one value" if actual == nest.LEAF else f"{actual}"
            raise SignatureError(f"{signature.name}: argument `{parameter}` must {must}, got {got}")
    ordered = {p: bindings.arguments[p] for p in signature.inspected.parameters if p in bindings.arguments}
    bindings.arguments.clear()
    bindings.arguments.update(ordered)
    call = signature.call(bindings.args, bindings.kwargs)
    return list(call.leaves), list(call.key.parts)


def _bound_value(part: Part) -> Any:
    """What stands for a leaf that is not given."""
    if isinstance(part, ObjectPart):
        return part.identity.target()
    if isinstance(part, ValuePart):
        return _BOUND if part.is_words else part.value
    return _MISSING


def _keyed_by(part: Part) -> str:
    """How a value or an object is keyed, where its description does not show that it is by value."""
    if isinstance(part, ObjectPart):
        return "by identity, kept alive" if part.identity.keeps_alive else "by identity"
    return "by its own key" if isinstance(part, ValuePart) and hasattr(part.kind, "__limelight_key__") else ""


def full_signature(entry: Any, signature: Signature) -> str:
    """A trace's signature on several lines: parameters with their kinds, values of the result, captures."""
    lines = [f"{entry.name}("]
    for path, part in zip(entry.paths, entry.key.parts, strict=True):
        root = re.split(r"[\[.]", path)[0]
        parameter = signature.inspected.parameters.get(root)
        kind = _KINDS[parameter.kind] if parameter is not None else ""
        bound = "" if part.is_input else "= "
        notes = ", ".join([word for word in (kind, _keyed_by(part)) if word])
        lines.append(f"  {path}: {bound}{part.describe()}" + (f"  ({notes})" if notes else ""))
    lines.append(f") -> {entry.returns}")
    names = entry.graph.input_names[len(entry.graph.arguments) :]
    lines += [f"  captures {name}: {v.spec}" for name, v in zip(names, entry.graph.captures, strict=True)]
    return "\n".join(lines)
