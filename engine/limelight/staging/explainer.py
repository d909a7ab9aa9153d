"""The one hook from staging to whoever explains it: told of each trace, and asked about calls.

Staging imports no explanation. `limelight/__init__.py` registers `limelight.explain.hook`, a module with the functions
of `Explainer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from limelight.user_code.source_line import Source


class Prediction(Protocol):
    """What a call would do; true for a hit. `limelight.explain` makes it."""

    hit: Any
    entry: Any
    miss: Any
    error: Any
    notes: Any

    def __bool__(self) -> bool: ...


class Explainer(Protocol):
    """What explains traces. A module with these functions is one.

    A `function` is a `Function`, an `entry` a `ConcreteFunction`, `parts` are those of a `Key`.
    """

    def diagnose(self, function: Any, key: Any, stack: Sequence[Source], /) -> Any:
        """Why `function` has no trace for `key`: a `Miss`, made before tracing from keys alone; `str` is a sentence."""

    def warn_if_retracing(self, function: Any, /) -> None:
        """Called once after each call that traced; warns where most calls do."""

    def predict(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any:
        """What this call would do, as a `Prediction`. Traces and runs nothing."""

    def take_snapshot(self, python_function: Any, paths: Sequence[str], parts: Sequence[Any], /) -> Any:
        """The values that the code of `python_function` reads besides its arguments. They are kept with the trace."""

    def warn_of_leaks(self, function: Any, tracer: Callable[[], Any], /) -> None:
        """Called after each trace, with a weak reference to its tracer: warns of symbolic tensors that were stored."""

    def host_draws(self, python_function: Any, paths: Sequence[str], parts: Sequence[Any], /) -> Callable[[], Any]:
        """Called before the code runs; the result, called after it, is what NumPy and Python drew in between."""

    def warn_of_draws(self, drawn: Any, /) -> None:
        """Warns of what `host_draws` has found for a trace that is kept."""

    def rebound_name(self, python_function: Any, entry: Any, uid: int, /) -> str:
        """The name that stood for a captured variable and is another's now; empty where there is none."""


_registered: list[Explainer] = []


def register(explainer: Explainer) -> None:
    """Has `explainer` hear of every trace from now on."""
    _registered[:] = [explainer]


def current() -> Explainer:
    """The explainer that is registered; importing limelight registers one."""
    return _registered[0]
