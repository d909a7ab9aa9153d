"""What the line of `%%stage` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from limelight.core.spec import TensorSpec

PARTS = ("source", "trace", "opt", "plan")
"""What `-a` may ask for: a line of the cell, its ops as traced, as optimised, and the code that runs them."""
USUAL = ("source", "trace", "opt")


@dataclass(frozen=True, slots=True)
class Options:
    """With the cell's text, the key under which a staged cell is kept.

    Args:
        name: the name to bind, None for none.
        inputs: the graph's arguments; None for every tensor that the cell reads.
        specs: the specs that inputs are traced for.
        device: the device to run on.
        relax: whether to trace for unknown sizes once a second size comes.
        max_traces: more traces than so many are an error; None for no bound.
        autograph: whether Python's `if`, `while` and `for` on tensors are staged.
        strict: whether a second trace is an error, and whatever Python does at trace time alone.
        level: of the optimiser; None for that of the notebook.
        without: passes of the optimiser that do not run.
    """

    name: str | None = None
    inputs: tuple[str, ...] | None = None
    specs: tuple[tuple[str, TensorSpec], ...] = ()
    device: str | None = None
    relax: bool = False
    max_traces: int | None = None
    autograph: bool = False
    strict: bool = False
    level: int | None = None
    without: tuple[str, ...] = ()

    @property
    def traces(self) -> int | None:
        """How many traces there may be: `--strict` allows one, unless it is told otherwise."""
        return 1 if self.strict and self.max_traces is None else self.max_traces

    def line(self, specs: Mapping[str, str]) -> str:
        """The line that asks for these options, with these specs, as code, instead of its own."""
        words = ["%%stage"]
        words += [] if self.name is None else [self.name]
        words += [] if self.inputs is None else ["-i", ",".join(self.inputs)]
        words += [word for name, spec in specs.items() for word in ("-s", f'"{name}={spec}"')]
        words += [] if self.device is None else ["-d", self.device]
        words += [] if self.max_traces is None else ["--max-traces", str(self.max_traces)]
        words += [f"--{flag}" for flag in ("relax", "autograph", "strict") if getattr(self, flag)]
        words += [] if self.level is None else ["-O", str(self.level)]
        words += ["--without", ",".join(self.without)] if self.without else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Shown:
    """What `%%stage` shows besides the cell: which parts of the annotation (of `PARTS`), the gradient, the times.

    `wrt` are the inputs and variables by which is differentiated; none: by all of them. `force` is no matter of showing
    but of the run: what was traced before is forgotten.
    """

    annotate: tuple[str, ...] = ()
    grad: bool = False
    wrt: tuple[str, ...] = ()
    time: bool = False
    force: bool = False
