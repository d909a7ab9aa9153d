"""A staged cell: a callable that takes its inputs from the notebook."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight import dispatch
from limelight.errors import SignatureError
from limelight.spec import TensorSpec
from limelight.staging.function import Function
from limelight.tensor import Tensor, as_tensor
from limelight_kernel.advice import advise
from limelight_kernel.analysis import Names
from limelight_kernel.cell import Cell, cell_number
from limelight_kernel.execution import Made
from limelight_kernel.inputs import Pins, by_type, check_known, keyed, names_read, travels
from limelight_kernel.options import Options
from limelight_kernel.traced import Body, Mould


@dataclass(frozen=True, slots=True)
class Run:
    """A call of a staged cell.

    `made` is what it made (None when it was only traced), `entry` the trace it used, `hit` whether the cache had it.
    """

    made: Made | None
    entry: Any
    hit: bool
    seconds: float


class StagedCell:
    """A cell as a function: called with new values for some of its inputs, it takes the rest from the notebook.

    It returns the names that the cell assigns, as a dictionary, and the value of its last expression; the notebook's
    own names stay as they are. `function` is the staged function behind it, whose attributes can be had here too.

        outputs, result = step(x=batch)
    """

    __limelight_leaf__ = True

    def __init__(self, shell: InteractiveShell, cell: Cell, options: Options) -> None:
        self.cell = cell
        self.options = options
        self.name = options.name or f"cell_{cell_number(shell)}"
        self.helpers: dict[str, str] = {}
        self._shell = shell
        self._body = Body(shell, cell)
        self._pins = Pins()
        self._withheld: frozenset[str] | None = None  # names that the cell assigns, and that did not exist at first
        self._wanted: frozenset[str] = frozenset()  # names that it read, although it was expected to assign them first
        self._moulds: weakref.WeakKeyDictionary[Any, Mould] = weakref.WeakKeyDictionary()
        self.function = Function(self._body, name=self.name)

    def __call__(self, /, **inputs: Any) -> tuple[dict[str, Any], Any]:
        """Runs the cell's graph; raises NameError for an input that neither the call nor the notebook gives."""
        made = self.call(inputs).made
        assert made is not None, "it ran"
        return made.assigned, made.result

    def call(self, overrides: Mapping[str, Any], run: bool = True) -> Run:
        """Traces if need be, and runs unless told otherwise."""
        __tracebackhide__ = True
        while True:
            names = names_read(self._shell, self.cell)
            values = self._values(names, overrides)
            self._body.writes, self._body.deletes = names.writes, names.deletes
            try:
                return self._run(values, run)
            except NameError as error:
                if not self._may_read_after_all(error.name, values):
                    raise

    def _may_read_after_all(self, name: str | None, values: Mapping[str, Any]) -> bool:
        """Whether the code read a name of the notebook that it was expected to assign first: then it is an input."""
        if name is None or name in values or name not in self._body.writes or name not in self._shell.user_ns:
            return False
        self._wanted |= {name}
        return True

    def _values(self, names: Names, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """What each input means: as the call says, else as the notebook does."""
        space = self._shell.user_ns
        if self._withheld is None:
            self._withheld = frozenset(name for name in names.writes if name not in space)
        passed_over = (self._withheld | self._shell.user_ns_hidden.keys()) - self._wanted
        values = {
            name: overrides[name] if name in overrides else space[name]
            for name in dict.fromkeys([*names.reads, *sorted(self._wanted)])
            if name in overrides or (name in space and name not in passed_over)
        }
        unknown = [name for name in overrides if name not in values]
        if unknown:
            known = ", ".join(sorted(values)) or "none"
            raise TypeError(f"{self.name}() got an unexpected input {unknown[0]!r}; its inputs are {known}")
        self.helpers = {name: through for name, through in names.reads.items() if name in values and through != name}
        check_known(self.options.inputs or (), values, "--inputs")
        check_known(dict(self.options.specs), values, "--spec")
        return values

    def _run(self, values: dict[str, Any], run: bool) -> Run:
        __tracebackhide__ = True
        self._body.originals = values
        sent = {name: self._sent(name, value) for name, value in values.items()}
        start = time.perf_counter()
        with dispatch.device(self.options.device) if self.options.device else contextlib.nullcontext():
            entry, hit, tensors = self._call(sent, run)
        made = self._moulds[entry].filled(tensors) if run else None
        return Run(made, entry, hit, time.perf_counter() - start)

    def _call(self, sent: dict[str, Any], run: bool) -> tuple[Any, bool, tuple[Tensor, ...]]:
        """The entry used, whether it was there before, and the graph's results."""
        __tracebackhide__ = True
        function, traced = self.function, self.function.trace_count
        try:
            if self.options.specs or not run:
                entry = function.get_concrete_function(**{**sent, **dict(self.options.specs)})
                if not run:
                    return entry, function.trace_count == traced, ()
            hits = [(entry, entry.hits) for entry in function.trace_cache]
            tensors = function(**sent)
        finally:
            self._note()  # a trace is kept even when its first run fails or is interrupted
        used = next((entry for entry, before in hits if entry.hits != before), function.trace_cache[-1])
        return used, function.trace_count == traced, tensors

    def _note(self) -> None:
        """Keeps the mould of the trace that was just made, if one was."""
        made, self._body.last = self._body.last, None
        cache = self.function.trace_cache
        if made is not None and len(cache) and cache[-1] not in self._moulds:
            self._moulds[cache[-1]] = made
            advise(cache[-1], self.options)

    def _sent(self, name: str, value: Any) -> Any:
        """The argument that stands for an input."""
        spec = dict(self.options.specs).get(name)
        if spec is not None:
            return self._fitted(name, value, spec)
        if self.options.inputs is not None:
            if name in self.options.inputs:
                return by_type(value, None)
            if travels(value):
                return self._pins.pin(name, value)
        return keyed(name, value, self._pins)

    def _fitted(self, name: str, value: Any, spec: TensorSpec) -> Any:
        value = by_type(value, spec)
        found = as_tensor(value)
        if not spec.accepts(found.spec):
            raise SignatureError(f"{self.name}: {name} is {found.spec}, but --spec promises {spec}; change one of them")
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return f"<staged cell {self.name}: {len(self.cell.lines)} lines, {len(self.function.trace_cache)} traces>"
