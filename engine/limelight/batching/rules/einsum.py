"""Batching rules of einsum, whose examples are one more label, and of updates at an index."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

from limelight.batching.rule_table import Shared, Site, batch_shape, kind
from limelight.batching.rules.indexing import _ALL, _together
from limelight.core import shapes
from limelight.core.index_expression import array_shape, basic_shape


def _with_label(site: Site, equation: str) -> str | None:
    """The equation with a label for the examples, first in the operands that have them and in the output."""
    label = next((letter for letter in ascii_letters if letter not in equation), None)
    if label is None:
        return None
    left, output = equation.split("->")
    terms = [label + term if many else term for term, many in zip(left.split(","), site.mask, strict=False)]
    return f"{','.join(terms)}->{label}{output}"


@kind("einsum")
def einsum(site: Site) -> Any:
    equation, *shape = site.attrs
    wider = _with_label(site, equation)
    if wider is None or (shape and not isinstance(site.size, int)):
        return NotImplemented
    return site.run(site.inputs, wider, *[(site.size, *sizes) for sizes in shape])


@kind("einsum_dynamic")
def einsum_dynamic(site: Site) -> Any:
    equation, rank = site.attrs
    wider = _with_label(site, equation)
    if wider is None or site.mask[-1]:
        return NotImplemented
    return site.run((*site.inputs[:-1], batch_shape(site.size, site.inputs[-1])), wider, rank + 1)


@kind("index_update")
def index_update(site: Site) -> Any:
    """At places that are the same for all examples, where NumPy keeps the places' axes after the examples'."""
    _, updates, indices = site.inputs
    (key,) = site.attrs
    if site.mask[2] or ("i" in key and not _together(key)):
        return NotImplemented
    if site.mask[1]:
        updates = site.wider(1, len(_part(site, key)))
    return site.run((site.lead(0), updates, indices), (_ALL, *key))


def _part(site: Site, key: Any) -> shapes.Shape:
    """The shape of what one example is updated at."""
    x, _, indices = site.specs()
    if "i" not in key:
        return basic_shape(site.op.name, x.shape, key)
    return array_shape(site.op.name, x.shape, key, indices.shape if key.count("i") == 1 else indices.shape[1:])


@kind("index_places")
def index_places(site: Site) -> Any:
    """They depend on the shape of `x` alone, and on places."""
    x, indices = site.inputs
    return NotImplemented if site.mask[1] else Shared(site.run((x[0], indices), *site.attrs))
