"""`input_signature`: the types of all arguments declared once, so that one graph serves every call.

A spec of unknown rank, `ll.TensorSpec(None)`, has a graph for each rank: shape rules always know how many axes there
are, and only sizes may be unknown to them.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, beside
from limelight.errors import ArgumentError, DTypeError, SignatureError
from limelight.staging.key import Call
from limelight.staging.signature import Signature, refuse_spec
from limelight.user_code import source_line

_MANY: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check(given: Sequence[Any] | None, signature: Signature) -> tuple[Any, ...] | None:
    """The declared specs, one nest for each leading argument. Raises SignatureError for anything else."""
    if given is None:
        return None
    if not isinstance(given, (list, tuple)):
        raise SignatureError(
            f"{signature.name}: input_signature must be a list or tuple with one ll.TensorSpec (or nest of them) "
            f"for each argument, got {type(given).__name__}"
        )
    for leaf in nest.leaves_of(list(given)):
        if not isinstance(leaf, TensorSpec):
            raise SignatureError(
                f"{signature.name}: input_signature holds a {type(leaf).__name__}; it may hold ll.TensorSpec only"
                f"{_spec_for_shape(given)}"
            )
    if len(given) > len(signature.positional) and not signature.rest_name:
        raise SignatureError(
            f"{signature.name}: input_signature has {len(given)} specs for {len(signature.positional)} arguments"
        )
    return tuple(given)


def _spec_for_shape(given: Sequence[Any]) -> str:
    """What to write for the first shape that stands where a spec belongs; "" where none does."""
    shapes = [x for x in given if isinstance(x, (tuple, list)) and all(n is None or type(n) is int for n in x)]
    return f": write ll.TensorSpec({tuple(shapes[0])}) for {shapes[0]}" if shapes else ""


def call(
    declared: tuple[Any, ...],
    signature: Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    abstract: bool = False,
) -> Call:
    """A call of a function with an input_signature: arguments are checked and cast, the key is that of the specs.

    Args:
        declared: the specs, as `check` returns them.
        signature: that of the Python function.
        args: the positional arguments.
        kwargs: those by name.
        abstract: whether the call will not be run: then specs may stand for tensors.
    """
    try:
        positional, keywords = signature.bind(args, kwargs)
    except TypeError:
        _check_complete(signature, len(declared), [*args, *kwargs.values()])
        raise
    leading, rest = positional[: len(declared)], positional[len(declared) :]
    _check_rest(signature, len(declared), rest, keywords)
    given: list[tuple[Any, Any]] = []
    for i, (value, specs) in enumerate(zip(leading, declared, strict=False)):
        given += _fit_nest(signature.name, value, specs, signature.root(i))
    fitted = [x for _, x in given]
    for leaf in fitted:
        if not abstract:
            refuse_spec(leaf)
    keyed = signature.call((*_of_known_rank(declared[: len(leading)], fitted), *rest), keywords, abstract=True)
    leaves = [*fitted, *keyed.leaves[len(fitted) :]]
    arrays = [isinstance(x, np.ndarray) for x, _ in given]
    return Call(leaves, keyed.lookup, were_arrays=(*arrays, *[False] * (len(leaves) - len(arrays))))


def _of_known_rank(declared: tuple[Any, ...], fitted: list[Any]) -> tuple[Any, ...]:
    """The specs, those of unknown rank with that of the arguments that fit them."""
    leaves, structure = nest.flatten(declared)
    if all(spec.has_rank for spec in leaves):
        return declared
    ranked = [s if s.has_rank else s.with_shape((None,) * len(x.shape)) for s, x in zip(leaves, fitted, strict=True)]
    known: tuple[Any, ...] = nest.unflatten(structure, ranked)
    return known


def _check_complete(signature: Signature, declared: int, given: Sequence[Any]) -> None:
    """An argument with neither a spec nor a default can never be given, and never be left out."""
    if len(given) > declared:
        return
    for parameter in list(signature.inspected.parameters.values())[declared:]:
        if parameter.default is parameter.empty and parameter.kind not in _MANY:
            raise SignatureError(_incomplete(signature.name, parameter.name))


def _incomplete(name: str, argument: str) -> str:
    return (
        f"{name}: argument `{argument}` has neither a spec in the input_signature nor a default; add an ll.TensorSpec "
        f"for it, or give it a default{source_line.here()}"
    )


def _check_rest(signature: Signature, declared: int, rest: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Arguments without a spec must be left at their defaults: another value would need another graph.

    Args:
        signature: that of the Python function.
        declared: how many leading arguments have specs.
        rest: the positional arguments after those.
        keywords: the arguments by name.
    """
    unspecified = {signature.root(declared + i): value for i, value in enumerate(rest)} | keywords
    for name, value in unspecified.items():
        parameter = signature.inspected.parameters.get(name)
        if parameter is not None and parameter.default is parameter.empty and parameter.kind not in _MANY:
            raise SignatureError(_incomplete(signature.name, name))
        if parameter is None or parameter.kind in _MANY or not _is_default(value, parameter.default):
            raise SignatureError(
                f"{signature.name}: argument `{name}` has no spec in the input_signature, so it must be left at its "
                f"default; add a spec for it, or take it out of the arguments{source_line.here()}"
            )


def _is_default(value: Any, default: Any) -> bool:
    plain = type(value) is type(default) and isinstance(value, (bool, int, float, complex, str, bytes))
    return value is default or (plain and repr(value) == repr(default))


def _fit_nest(name: str, value: Any, specs: Any, path: str) -> list[tuple[Any, Any]]:
    """The leaves of an argument, each as it is given and cast to the leaf of `specs`; below a spec, a list is a tensor.

    Args:
        name: that of the staged function.
        value: the argument.
        specs: a spec, or a nest of them.
        path: how the user's code reaches the argument.
    """
    if isinstance(specs, TensorSpec):
        return [(value, _fit(name, value, specs, path))]
    wanted = nest.flatten(specs)[1]
    try:
        leaves = nest.flatten_like(wanted, value, path)
    except ArgumentError as error:
        raise SignatureError(f"{name}: argument {error.bare}, by the input_signature") from None
    paths, declared = nest.paths(wanted, path), nest.leaves_of(specs)
    return [(leaf[0], _fit(name, *leaf)) for leaf in zip(leaves, declared, paths, strict=True)]


def _fit(name: str, x: Any, spec: TensorSpec, path: str) -> Any:
    """One leaf as a tensor that `spec` accepts. Python numbers and lists are cast within their kind.

    Args:
        name: that of the staged function.
        x: the leaf: a tensor, an array, a spec, a number or a list.
        spec: what it must be.
        path: how the user's code reaches it.
    """
    if isinstance(x, TensorSpec):
        fitted: Any = x
    elif isinstance(x, Tensor):
        fitted = x
    else:
        try:
            fitted = beside(x, spec.dtype)
        except (DTypeError, ArgumentError) as error:
            wanted = f"argument `{path}` must be {spec!r} by the input_signature"
            raise SignatureError(f"{name}: {wanted}, got {type(x).__name__}: {error}") from None
    actual = fitted if isinstance(fitted, TensorSpec) else fitted.spec
    if not actual.has_rank:
        raise SignatureError(
            f"{name}: argument `{path}` is of any rank by the input_signature, which has a trace for each: ask for "
            f"one of them, with a tensor or with a spec that has a None for each axis{source_line.here()}"
        )
    if not spec.accepts(actual):
        cast = ""
        if spec.dtype != actual.dtype and TensorSpec(spec.shape, actual.dtype).accepts(actual):
            cast = f"; write {path}.astype(ll.{spec.dtype.name})"
        elif len(spec.shape) == len(actual.shape):
            pairs = enumerate(zip(spec.shape, actual.shape, strict=True))
            cast = "".join([f"; axis {i} must have size {n}, has {m}" for i, (n, m) in pairs if n not in (None, m)][:1])
        wanted = f"argument `{path}` must be {spec!r} by the input_signature"
        raise SignatureError(f"{name}: {wanted}, got {actual!r}{cast}{source_line.here()}")
    return fitted
