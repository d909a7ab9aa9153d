"""Checks of what optimisers, schedules and clipping are told."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from limelight.errors import ArgumentError, CallError
from limelight.user_code import equivalents


def refuse_unknown(owner: type, name: str, known: Sequence[str]) -> None:
    """Raises ArgumentError for a new attribute that looks like one of the `known` settings misspelt.

    Of our own optimisers also for a setting of another one: a subclass of the user's may keep what it likes.
    """
    if name in inspect.signature(owner.__init__).parameters:  # type: ignore[misc]  # of the class it is called on
        return
    entry = equivalents.optimizer_settings().get(name)
    close = [entry.ours] if entry and entry.ours in known else get_close_matches(name, known, n=1, cutoff=0.85)
    if close:
        raise ArgumentError(
            f"{owner.__name__} has no setting {name!r}, which would do nothing; did you mean {close[0]!r}? It has "
            f"{', '.join(known)}"
        )
    if entry and entry.remark and owner.__module__.startswith("limelight."):
        raise ArgumentError(
            f"{owner.__name__} has no setting {name!r}, which would do nothing: {entry.remark}. It has "
            f"{', '.join(known)}"
        )


def check_names(owner: type, names: Collection[str]) -> None:
    """Raises CallError for a name that `owner(...)` does not take, with the one that was meant."""
    parameters = inspect.signature(owner.__init__).parameters  # type: ignore[misc]  # of the class it is called on
    known = [name for name, p in parameters.items() if name != "self" and p.kind is not p.VAR_KEYWORD]
    unknown = [name for name in names if name not in known]
    if not unknown or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    hint = equivalents.setting_hint(unknown[0], known, equivalents.optimizer_settings())
    raise CallError(f"{owner.__name__} has no setting {unknown[0]!r}{hint} It has {', '.join(known)}")


def refuse_variables(owner: type, given: Any) -> None:
    """Raises CallError for variables where the learning rate belongs: Adam(model.variables, 1e-3), Adam(model).

    A module that is a schedule is given by name.
    """
    items = given.values() if isinstance(given, Mapping) else given if isinstance(given, (list, tuple)) else ()
    is_module = hasattr(type(given), "trainable_variables")
    if is_module or isinstance(given, Iterator) or any(hasattr(item, "trainable") for item in items):
        if_schedule = f"; a module that computes the rate is given as learning_rate={type(given).__name__}(...)"
        raise CallError(
            f"{owner.__name__} takes settings only, the learning rate first, got a {type(given).__name__}; variables "
            f"are given to apply: write optimizer = ll.optim.{owner.__name__}(learning_rate), then "
            f"optimizer.apply(gradients, variables){if_schedule if is_module else ''}"
        )


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
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{owner}: {name} must be True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def _number(owner: str, name: str, value: Any) -> Any:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__") or getattr(value, "ndim", None):
        raise ArgumentError(f"{owner}: {name} must be a number, got {value!r} ({type(value).__name__})")
    return value
