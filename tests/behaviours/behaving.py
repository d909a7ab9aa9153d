"""Small helpers that the tests of behaviours share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll

Here = Callable[..., str]
"""The fixture `here`: "test_x.py line N", for the line so many lines below the one that asks."""

both = pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
scalar = ll.TensorSpec((), "float32")


def gradient(f: Callable[..., Any], *xs: Any, **options: Any) -> Any:
    """The gradients of f(*xs) for all of `xs`."""
    with ll.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs, **options)


def slope_of(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """The derivative of a function of one tensor."""
    return lambda x: gradient(f, x)[0]


def item(x: Any) -> Any:
    return None if x is None else x.item()


def ops_of(function: Any, index: int = 0) -> list[str]:
    """The ops of a trace but for its literals."""
    return [node.op.name for node in function.trace_cache[index].graph.nodes if node.op != "constant"]


def where(tree: Any) -> Any:
    """The devices of tensors, in short."""
    return ll.nest.map_structure(lambda t: t.device.short, tree)
