"""The Python function behind a staged cell, and what its traces make besides graphs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight.core import nest
from limelight.core.tensor import Tensor
from limelight.explain.may_be_tensor import Written
from limelight_kernel.cell.cell_function import as_function
from limelight_kernel.cell.compiled_cell import Cell
from limelight_kernel.explain.none_gradients import NoneGradient, recording_none_gradients
from limelight_kernel.inputs.input_keys import goes_into_graph, without_pins
from limelight_kernel.inputs.pins import Pinned
from limelight_kernel.staged.execution import Converted, Made, execute

_HOLE = object()  # where a tensor of the graph goes
_RESULT = "the result"  # no identifier, so no name of the cell's


@dataclass(frozen=True, slots=True, weakref_slot=True)
class OutputTemplate:
    """What one trace made: for each name (and the result) a structure, and its leaves with holes for tensors.

    A graph returns tensors alone. Functions, strings and numbers that a cell assigns exist from the trace on.
    """

    structures: dict[str, nest.Structure]
    leaves: dict[str, list[Any]]
    deleted: frozenset[str]
    unconnected: tuple[NoneGradient, ...] = ()  # the gradients that are None

    def filled(self, tensors: tuple[Tensor, ...]) -> Made:
        """What the body made, with these tensors in the holes."""
        feed = iter(tensors)
        values = {
            name: nest.unflatten(structure, [next(feed) if leaf is _HOLE else leaf for leaf in self.leaves[name]])
            for name, structure in self.structures.items()
        }
        result = values.pop(_RESULT)
        return Made(values, self.deleted, result)

    @property
    def names(self) -> list[str]:
        """What the notebook calls each tensor of the graph: `loss`, `gradients[0]`, and `result`."""
        return [
            path
            for name, structure in self.structures.items()
            for path, leaf in zip(nest.paths(structure, _said(name)), self.leaves[name], strict=True)
            if leaf is _HOLE
        ]


def _said(name: str) -> str:
    return "result" if name == _RESULT else name


def split_outputs(made: Made, unconnected: tuple[NoneGradient, ...] = ()) -> tuple[OutputTemplate, tuple[Tensor, ...]]:
    """Splits what a body made into what only the trace knows, and the tensors that the graph computes."""
    structures: dict[str, nest.Structure] = {}
    leaves: dict[str, list[Any]] = {}
    tensors: list[Tensor] = []
    for name, value in {**made.assigned, _RESULT: made.result}.items():
        flat, structure = nest.flatten(value)
        if not any(isinstance(leaf, Tensor) for leaf in flat):
            flat, structure = [value], nest.LEAF  # a container without tensors stays the object that it is
        structures[name] = structure
        leaves[name] = [_HOLE if isinstance(leaf, Tensor) else leaf for leaf in flat]
        tensors += [leaf for leaf in flat if isinstance(leaf, Tensor)]
    return OutputTemplate(structures, leaves, made.deleted, unconnected), tuple(tensors)


class Body(threading.local):
    """Runs a cell's Python code for the tracer; each thread that calls the cell has attributes of its own.

    Before a call, `originals` says what each input means in the notebook: what does not travel into the graph reaches
    the code as it is. After a trace, `last` is its template. `converted` runs in place of the code as written.
    """

    def __init__(self, shell: InteractiveShell, cell: Cell, converted: Converted | None = None) -> None:
        self._shell = shell
        self._cell = cell
        self._converted = converted
        self.python_function = as_function(cell, shell.user_ns)  # what explanations read
        self.__limelight_written__ = Written(
            cell.tree.body, cell.filename, "cell", shell.user_ns, converted is not None
        )
        self.writes: tuple[str, ...] = ()
        self.deletes: frozenset[str] = frozenset()
        self.originals: Mapping[str, Any] = {}
        self.last: OutputTemplate | None = None

    def __call__(self, **inputs: Any) -> tuple[Tensor, ...]:
        """The cell's tensors, from its inputs as the tracer passes them."""
        __tracebackhide__ = True
        values = {
            name: without_pins(value)
            if goes_into_graph(value) and not isinstance(value, Pinned)
            else self.originals[name]
            for name, value in inputs.items()
            if name in self.originals
        }
        with recording_none_gradients(self._cell.filename, self.originals.values()) as unconnected:
            made = execute(self._shell, self._cell, values, self.writes, self.deletes, self._converted)
        self.last, tensors = split_outputs(made, tuple(unconnected))
        return tensors
