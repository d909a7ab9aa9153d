"""Checks of what optimisers, schedules and clipping are told."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, Final

from limelight.errors import ArgumentError, CallError

_ELSEWHERE: Final = {
    "lr": "learning_rate",
    "rate": "learning_rate",
    "learn_rate": "learning_rate",
    "beta_1": "beta1",
    "beta_2": "beta2",
    "betas": "beta1",
    "eps": "epsilon",
    "decay": "weight_decay",
    "wd": "weight_decay",
}
"""What settings are called in other libraries."""


def refuse_unknown(owner: type, name: str, known: Sequence[str]) -> None:
    """Raises ArgumentError for a new attribute that looks like one of the `known` settings misspelt."""
    if name in inspect.signature(owner.__init__).parameters:  # type: ignore[misc]  # of the class it is called on
        return
    meant = _ELSEWHERE.get(name)
    close = [meant] if meant in known else get_close_matches(name, known, n=1, cutoff=0.85)
    if close:
        raise ArgumentError(
            f"{owner.__name__} has no setting {name!r}, which would do nothing; did you mean {close[0]!r}? It has "
            f"{', '.join(known)}"
        )


def check_names(owner: type, names: Collection[str]) -> None:
    """Raises CallError for a name that `owner(...)` does not take, with the one that was meant."""
    parameters = inspect.signature(owner.__init__).parameters  # type: ignore[misc]  # of the class it is called on
    known = [name for name, p in parameters.items() if name != "self" and p.kind is not p.VAR_KEYWORD]
    unknown = [name for name in names if name not in known]
    if not unknown or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    meant = _ELSEWHERE.get(unknown[0])
    close = [meant] if meant in known else get_close_matches(unknown[0], known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise CallError(f"{owner.__name__} has no setting {unknown[0]!r}{hint} It has {', '.join(known)}")


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


def flag(owner: str, name: str, value: bool) -> bool:
    """`value`, which must be True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{owner}: {name} must be True or False, got {value!r} ({type(value).__name__})")
    return value


def _number(owner: str, name: str, value: Any) -> Any:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or getattr(value, "ndim", None):
        raise ArgumentError(f"{owner}: {name} must be a number, got {value!r} ({type(value).__name__})")
    return value
