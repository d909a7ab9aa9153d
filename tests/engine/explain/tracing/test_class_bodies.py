"""Classes that are defined while tracing: what their bodies do to names of their own is no side effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import limelight as ll

LOG: list[Any] = []


def test_annotations_and_names_of_the_body_are_its_own() -> None:
    def f(x: Any) -> Any:
        @dataclass
        class Point:
            at: Any
            size: int = 2

        class Kinds:
            table: ClassVar[dict[str, int]] = {}
            table["a"] = 1

        return Point(x * 2.0).at + Kinds.table["a"]

    F = ll.function(f)
    F(ll.constant(1.0))
    assert ll.explain.side_effects(F).records == ()


def test_what_a_body_does_to_other_things_is_one() -> None:
    def f(x: Any) -> Any:
        class Noisy:
            LOG.append(1)

        return x if Noisy else -x

    F = ll.function(f)
    F(ll.constant(1.0))
    assert [one.what for one in ll.explain.side_effects(F).records] == ["LOG.append(...)"]
    LOG.clear()
