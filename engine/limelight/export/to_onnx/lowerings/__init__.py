"""How ops are written in ops of ONNX, by kind, as in `limelight.ops`."""

from __future__ import annotations

import importlib
from typing import Final

_FILES: Final = (
    "elementwise", "special", "shape", "reduce", "index", "linalg", "decompositions", "nn", "control_flow", "spectra",
)  # fmt: skip


def load() -> None:
    """Fills the table of lowerings."""
    for name in _FILES:
        importlib.import_module(f"{__name__}.{name}")
