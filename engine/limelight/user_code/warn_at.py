"""A warning at a line of the user's code, wherever it is raised."""

from __future__ import annotations

import inspect
import sys
import warnings
from types import FrameType
from typing import Any, Final

from limelight.user_code.source_line import Source, user_line

_heard: Final[dict[str, dict[Any, Any]]] = {}
"""By file, the registry of warnings whose code is not running; as the registry of a module has, an entry each."""


def warn_at(line: Source, message: str, category: type[Warning]) -> None:
    """Warns at `line`, as the user's module would: filters know it by that name, and it is heard once a line.

    The warning is marked as the library's (`is_ours`), for who shows such in another way.
    Code from no file, as of a terminal or of `exec`, has no module's name: given None for one, Python drops a warning.
    """
    warning = category(message)
    warning.__limelight__ = True  # type: ignore[attr-defined]  # exceptions take attributes
    module = inspect.getmodulename(line.file)
    registry = _registry(line.file)
    if module is None:
        warnings.warn_explicit(warning, None, line.file, line.line, registry=registry)
    else:
        warnings.warn_explicit(warning, None, line.file, line.line, module=module, registry=registry)


def warn_here(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line that is being executed, if there is one, however much lies between."""
    warn_at(user_line() or Source("<unknown>", 1, ""), message, category)


def is_ours(warning: Any) -> bool:
    """Whether the library has warned so."""
    return hasattr(warning, "__limelight__")


def _registry(file: str) -> dict[Any, Any]:
    """Where Python notes what a module has been warned of: its own, so that what clears that is followed."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    if frame is None:
        return _heard.setdefault(file, {})
    registry: dict[Any, Any] = frame.f_globals.setdefault("__warningregistry__", {})
    return registry
