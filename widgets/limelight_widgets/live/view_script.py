"""The hidden widgets that carry the views' scripts, so that no view's own model does: each once in a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anywidget
import traitlets

STATIC: Final = Path(__file__).parents[1] / "static"
"""Where the JavaScript bundle lies: a script for each view, named as the view is."""


def script(name: str) -> Path:
    """The built script of the view called `name`.

    Raises:
        FileNotFoundError: it has not been built from `widgets/js/src/views`.
    """
    path = STATIC / f"{name}.js"
    if not path.is_file():
        raise FileNotFoundError(
            f"the script of the view {name!r} is not built: run `make js` (needs Node), then import"
        )
    return path


class ViewScript(anywidget.AnyWidget):
    """Has no view. Its front end holds the style sheet, and exports `view()`: what draws a model of that view."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = STATIC / "views.css"


_shared: dict[Path, ViewScript] = {}


def shared_script(path: Path) -> ViewScript:
    """The widget of this kernel that carries the script at `path`; a new one where the last was closed."""
    carrier = _shared.get(path)
    if carrier is None or carrier.comm is None:
        carrier = _shared[path] = ViewScript(_esm=path.read_text(encoding="utf-8"))
    return carrier
