"""What the line of `%%stage` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from limelight.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Options:
    """With the cell's text, the key under which a staged cell is kept.

    Args:
        name: the name to bind, None for none.
        inputs: the graph's arguments; None for every tensor that the cell reads.
        specs: the specs that inputs are traced for.
        device: the device to run on.
    """

    name: str | None = None
    inputs: tuple[str, ...] | None = None
    specs: tuple[tuple[str, TensorSpec], ...] = ()
    device: str | None = None

    def line(self, specs: Mapping[str, str]) -> str:
        """The line that asks for these options, with these specs, as code, instead of its own."""
        words = ["%%stage"]
        words += [] if self.name is None else [self.name]
        words += [] if self.inputs is None else ["-i", ",".join(self.inputs)]
        words += [word for name, spec in specs.items() for word in ("-s", f'"{name}={spec}"')]
        words += [] if self.device is None else ["-d", self.device]
        return " ".join(words)
