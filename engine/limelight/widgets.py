"""The views by the name `limelight.widgets`, so that it can be imported: what `limelight_widgets` has.

It is a module, not a package: the views' own modules have one name only, so that none is loaded twice.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

_views: Final = importlib.import_module("limelight_widgets")


def __getattr__(name: str) -> Any:
    if name == "__path__":  # with one it would be a package
        raise AttributeError(name)
    try:
        return getattr(_views, name)
    except AttributeError:
        raise AttributeError(f"module 'limelight.widgets' has no attribute {name!r}", name=name, obj=_views) from None


def __dir__() -> list[str]:
    return dir(_views)
