"""The one hook from staging to whoever explains it: told of each trace, and asked about calls.

Staging knows no explanation and imports none. `limelight.explain` registers itself when limelight is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from limelight.user_code.source_line import Source


class Reason(Protocol):
    """Why a call traced; `str()` is a sentence."""

    def with_cost(self, seconds: float, created: int = 0) -> Reason:
        """This reason, with what tracing took and how many variables the function created."""


class Prediction(Protocol):
    """What a call would do; true for a hit. See `limelight.explain`, which makes it."""

    hit: Any
    entry: Any
    miss: Any
    error: Any
    notes: Any

    def __bool__(self) -> bool: ...


class Explainer(Protocol):
    """What explains traces. A module with these functions is one."""

    @property
    def diagnose(self) -> Callable[[Any, Any, Sequence[Source]], Any]:
        """(function, key, stack): why `function` has no trace for `key`, as a `Reason`. Asked before tracing."""

    @property
    def warn_if_retracing(self) -> Callable[[Any], None]:
        """(function): called once after each call that traced; warns where most calls do."""

    @property
    def predict(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        """(function, args, kwargs): what this call would do, as a `Prediction`. Traces and runs nothing."""

    @property
    def take(self) -> Callable[[Any, Sequence[str], Sequence[Any]], Any]:
        """(python_function, paths, key parts): a snapshot of what its code reads of the world, kept with the trace."""

    @property
    def renamed(self) -> Callable[[Any, Any, int], str]:
        """(python_function, entry, uid): the name that stood for a captured variable, where it names another now."""


_registered: list[Explainer] = []


def register(explainer: Explainer) -> None:
    """Has `explainer` hear of every trace from now on."""
    _registered[:] = [explainer]


def current() -> Explainer:
    """The explainer that is registered; importing limelight registers one."""
    return _registered[0]
