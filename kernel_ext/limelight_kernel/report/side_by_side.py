"""An annotated cell and live graph views, one above the other, in one widget where a front end can show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets

import limelight_widgets as views
from limelight_widgets.live.front_end import has_front_end
from limelight_widgets.live.static_outputs import widget_forms


def widget_bundle(html: str, graphs: Sequence[views.GraphView]) -> dict[str, Any]:
    """The widget's part of a MIME bundle: `html` above the live graphs; empty where no widget can run."""
    if not has_front_end():
        return {}
    # Else each row is as tall as a button, and the keys of JupyterLab take those that unfold a line.
    text = f'<div style="line-height: 1.4" data-lm-suppress-shortcuts="true">{html}</div>'
    listing = ipywidgets.HTML(text, layout=ipywidgets.Layout())
    shown = [graph.shown_widget() for graph in graphs]
    box = ipywidgets.VBox([listing, *shown], layout=listing.layout)

    def close(change: Any) -> None:
        if change["new"] is None:  # the view has closed its widget: nobody looks any more
            for part in (box, listing, listing.style, listing.layout):
                part.close()

    shown[0].observe(close, "comm")
    return widget_forms(box.model_id)
