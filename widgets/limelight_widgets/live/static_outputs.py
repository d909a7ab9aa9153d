"""The static forms that a notebook keeps of what an output shows: shown anew when a cell has changed it.

What JupyterLab saves of an output is the bundle that was displayed, whatever its widget shows by then. So after each
cell, what is open is asked whether its forms are still true. In a page they travel through the widget
(`js/src/labextension`), which is left alone; where no widget can run but a program keeps the outputs (nbclient), they
are displayed again under the same id.
"""

from __future__ import annotations

from typing import Any, Final

from limelight_widgets.live import front_end

WIDGET_MIME: Final = "application/vnd.jupyter.widget-view+json"
VIEW_MIME: Final = "application/vnd.limelight.view+json"
"""Drawn by our extension of JupyterLab: as the widget, or as the static forms where the widget is no more."""


def widget_forms(model_id: str) -> dict[str, Any]:
    """The part of a bundle that shows a widget."""
    return {
        VIEW_MIME: {"model_id": model_id},
        WIDGET_MIME: {"version_major": 2, "version_minor": 0, "model_id": model_id},
    }


def are_kept() -> bool:
    """Whether outputs go to a program that can show them anew."""
    return getattr(front_end.shell(), "kernel", None) is not None


def display(forms: dict[str, str], display_id: str, *, update: bool = False) -> None:
    """Displays the forms under an id, or in the place of those that were displayed under it."""
    shell: Any = front_end.shell()
    shell.display_pub.publish(forms, {}, transient={"display_id": display_id}, update=update)
