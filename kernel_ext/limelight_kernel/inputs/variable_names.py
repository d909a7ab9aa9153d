"""What the notebook calls a variable: `w`, `weights[0]`, `net.layers/0/kernel`; several may have the same own name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from limelight.core import nest
from limelight.core.variable import Resource

_IPYTHON = frozenset(["In", "Out"])  # its lists hold what the notebook has names for


def name_variables(variables: Iterable[Any], values: Mapping[str, Any], taken: Iterable[str] = ()) -> dict[str, Any]:
    """A name for each of `variables`: the one by which `values`, of the notebook, lead to it, else its own.

    Names that are `taken`, or that two of them share, are told apart by a number: `v`, `v (2)`.
    """
    known: dict[int, str] = {}
    for path, variable in _paths(values):
        known.setdefault(id(variable), path)
    used, variable_of = set(taken), {}
    for variable in variables:
        name = unused = known.get(id(variable), variable.name)
        number = 1
        while unused in used:
            number += 1
            unused = f"{name} ({number})"
        used.add(unused)
        variable_of[unused] = variable
    return variable_of


def path_to(x: Any, values: Mapping[str, Any]) -> str | None:
    """How `values` lead to `x`, a tensor or a variable: `w`, `weights[0]`, `net.layers/0/kernel`; None where not."""
    visible = {name: value for name, value in values.items() if not name.startswith("_") and name not in _IPYTHON}
    for name, value in visible.items():
        for path, leaf in _leaves(name, value):
            if leaf is x:
                return path
    return (
        next((path for path, variable in _paths(visible) if variable is x), None) if isinstance(x, Resource) else None
    )


def _paths(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables in the notebook's values, those with a name of their own before those in modules and objects."""
    holders: list[tuple[str, Any]] = []
    for name, value in values.items():
        for path, leaf in _leaves(name, value):
            if isinstance(leaf, Resource):
                yield path, leaf
            else:
                holders.append((path, leaf))
    for path, holder in holders:
        inside = holder.named_variables() if hasattr(type(holder), "named_variables") else _attributes(holder)
        yield from ((f"{path}.{part}", variable) for part, variable in inside)


def _attributes(holder: object) -> list[tuple[str, Any]]:
    attributes = getattr(holder, "__dict__", None)
    if isinstance(holder, type) or not isinstance(attributes, dict):
        return []
    return [
        (path, leaf)
        for name, value in attributes.items()
        if isinstance(value, Resource | list | tuple | dict)
        for path, leaf in _leaves(name, value)
        if isinstance(leaf, Resource)
    ]


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    leaves, structure = nest.flatten(value)
    return list(zip(nest.paths(structure, name), leaves, strict=True))
