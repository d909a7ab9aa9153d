"""Tensors as tiles where a cell shows one: HTML beside the text, which stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight_widgets.figures.tensor_tile import tile_html

TYPES: Final = (Tensor, Variable)
Formatters = dict[type, Callable[..., Any] | None]


def show_tiles(shell: InteractiveShell) -> Formatters:
    """From now on the shell displays tensors as tiles; returns the formatters that were there, for `as_before`."""
    formatter: Any = shell.display_formatter.formatters["text/html"]  # type: ignore[union-attr]
    return {kind: formatter.for_type(kind, tile_html) for kind in TYPES}


def as_before(shell: InteractiveShell, formatters: Formatters) -> None:
    """Takes the tiles away again, but not what somebody else has put in their place."""
    formatter: Any = shell.display_formatter.formatters["text/html"]  # type: ignore[union-attr]
    for kind, before in formatters.items():
        if formatter.type_printers.get(kind) is tile_html:
            formatter.pop(kind)
            if before is not None:
                formatter.for_type(kind, before)
