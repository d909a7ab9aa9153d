"""A view's widget: it carries a state to the front end, and hears whether somebody looks at it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, get_args

import anywidget
import traitlets

from limelight.errors import ArgumentError
from limelight_widgets.live.view_script import STATIC, shared_script

Theme = Literal["auto", "light", "dark"]
THEMES: Final[tuple[Theme, ...]] = get_args(Theme)
AHEAD = 16  # updates that may be sent before the front end must have answered one


_theme: list[Theme] = ["auto"]
_living: Final[weakref.WeakSet[ViewWidget]] = weakref.WeakSet()


def set_theme(theme: Theme) -> None:
    """Draws all views, those that are open too, light or dark; "auto", the default: as the front end around them is.

    For front ends that do not tell a widget their theme, and for a projector. Pictures in saved notebooks stay light.

    >>> import limelight as ll
    >>> ll.widgets.set_theme("auto")

    Raises:
        ArgumentError: there is no such theme.
    """
    if theme not in THEMES:
        raise ArgumentError(f"theme={theme!r}: views are drawn {', '.join(THEMES)}")
    _theme[:] = [theme]
    for widget in list(_living):
        if widget.comm is not None:
            widget.theme = theme


class Responsive(anywidget.AnyWidget):
    """A widget whose messages are heard while a cell is running."""

    @traitlets.observe("comm")
    def _route(self, change: Any) -> None:
        """Keeps messages from the front end off the busy main shell.

        ipykernel 7.4 sends them to the shell that last used the comm, which is the one a cell is blocking, instead of
        to the subshell that JupyterLab asked for. There is no public switch; where the private one is gone, so is the
        problem, or messages wait for the end of the cell as they do on kernels without subshells.
        """
        comm = change["new"]
        if comm is not None and hasattr(comm, "_reply_subshell_for"):
            comm._reply_subshell_for = lambda data, default: default


class ViewWidget(Responsive):
    """Base of the views' widgets: each names its script, which a hidden widget carries for all of them (`script`).

    `snapshot` is the state when the widget was made (see `wire`); later states travel as messages, so that a front end
    which has just connected asks for one. The front end says `opened`, `closed` and `seen`.
    """

    _esm = STATIC / "view.js"
    script_path: ClassVar[Path]

    script = anywidget.WidgetTrait().tag(sync=True)
    snapshot = traitlets.List(traitlets.Bytes()).tag(sync=True)
    theme = traitlets.Unicode().tag(sync=True)

    def __init__(self, heard: Callable[[str, Any], None], snapshot: list[bytes]) -> None:
        super().__init__(snapshot=snapshot, theme=_theme[0])
        _living.add(self)
        self._heard = heard
        self.on_msg(self._on_message)

    @traitlets.default("script")
    def _default_script(self) -> Any:
        return shared_script(self.script_path)

    def close(self) -> None:
        """Takes it, and its layout, off the page, and says `gone`: ipywidgets closes widgets, too, without the view."""
        layout = self.layout
        if self.comm is not None:
            self._heard("gone", {})
        super().close()
        layout.close()

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and isinstance(content.get("type"), str):
            self._heard(content["type"], content)
