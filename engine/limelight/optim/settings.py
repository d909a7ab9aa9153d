"""Checks of what optimisers, schedules and clipping are told."""

from __future__ import annotations

from typing import Any

from limelight.errors import ArgumentError


def fraction(owner: str, name: str, value: float) -> float:
    """`value`, which must lie in [0, 1)."""
    if not 0.0 <= _number(owner, name, value) < 1.0:
        raise ArgumentError(f"{owner}: {name} must be at least 0 and below 1, got {value}")
    return float(value)


def positive(owner: str, name: str, value: float) -> float:
    """`value`, which must be above 0."""
    if not _number(owner, name, value) > 0.0:
        raise ArgumentError(f"{owner}: {name} must be above 0, got {value}")
    return value


def not_negative(owner: str, name: str, value: float) -> float:
    """`value`, which must be at least 0."""
    if not _number(owner, name, value) >= 0.0:
        raise ArgumentError(f"{owner}: {name} must be at least 0, got {value}")
    return value


def _number(owner: str, name: str, value: Any) -> Any:
    if not hasattr(value, "__float__"):
        raise ArgumentError(f"{owner}: {name} must be a number, got {value!r} ({type(value).__name__})")
    return value
