"""What the extension knows of one shell: its staged cells, and how to find functions and tapes by name."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from limelight.autodiff import GradientTape
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.explain.none_gradients.gradient_paths import knows
from limelight.export import LoadedFunction, call_of
from limelight.memory import DeviceWatch
from limelight.staging import partial_trace
from limelight_kernel.cell.cell_source import lines_above, renumber, show_as_typed
from limelight_kernel.cell.compiled_cell import compile_cell
from limelight_kernel.line.arguments import did_you_mean
from limelight_kernel.line.options import Options
from limelight_kernel.line.preferences import Preferences
from limelight_kernel.staged.staged_cell import StagedCell

_PATH = (
    ast.Expression,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Load,
    ast.UnaryOp,
    ast.USub,
    ast.Tuple,
)
_MOST = 4  # functions that a message names
MOST_CELLS = 64  # staged cells kept for a re-run; the least recently run one is let go


class Session:
    """The staged cells of a shell, the most recently run last."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self._cells: dict[tuple[str, Options], StagedCell] = {}
        self.preferences = Preferences()
        self._watch: DeviceWatch | None = None
        self.failed: StagedCell | None = None
        """The cell that has failed while it was traced, until another one runs."""
        self._failures: dict[str, StagedCell] = {}  # the last ones, by name: their graphs can be asked for
        self.raised: StagedCell | None = None
        """The cell that has raised an error, traced or not, until another one runs."""

    def drop(self, staged: StagedCell) -> None:
        """Forgets a staged cell, its traces, and the name that it was bound to."""
        for key in [key for key, one in self._cells.items() if one is staged]:
            del self._cells[key]
        for name in [
            name for name, value in self.shell.user_ns.items() if value is staged and not name.startswith("_")
        ]:
            del self.shell.user_ns[name]
        staged.clear_cache()

    def watch_devices(self, on: bool = True) -> None:
        """Counts what devices hold, from now on or no longer."""
        if on:
            self._watch = self._watch or DeviceWatch()
        elif self._watch is not None:
            watch, self._watch = self._watch, None
            watch.close()

    @property
    def device_watch(self) -> DeviceWatch | None:
        """What counts since `watch_devices`, if anything does."""
        return self._watch

    @property
    def cells(self) -> tuple[StagedCell, ...]:
        return tuple(self._cells.values())

    @property
    def last(self) -> StagedCell | None:
        return next(reversed(self._cells.values()), None)

    def cell(self, text: str, line: str, options: Options) -> tuple[StagedCell, bool]:
        """The staged cell of this text and these options, and whether it was known.

        Raises StagedSyntaxError for a text that cannot be staged.
        """
        show_as_typed(self.shell)
        self.failed = self.raised = None
        known = self._cells.get((text, options))
        if known is not None:
            renumber(self.shell, known.cell.filename)
            return known, True
        above = lines_above(self.shell, line, text)
        return StagedCell(self.shell, compile_cell(self.shell, text, above), options), False

    def keep(self, text: str, options: Options, staged: StagedCell) -> None:
        """Remembers a staged cell that has run."""
        self._cells.pop((text, options), None)
        self._cells[text, options] = staged
        while len(self._cells) > MOST_CELLS:
            del self._cells[next(iter(self._cells))]

    def note_failure(self, staged: StagedCell) -> None:
        """Remembers a cell that has failed while it was traced, for as long as its trace is kept."""
        self.failed = staged
        self._failures.pop(staged.name, None)
        self._failures[staged.name] = staged
        while len(self._failures) > partial_trace.MOST_KEPT:
            del self._failures[next(iter(self._failures))]

    def forget(self) -> None:
        """Lets go of all staged cells: the next run of each is its first."""
        self._cells.clear()
        self._failures.clear()
        self.failed = self.raised = None

    def value(self, path: str, there: str = "") -> Any:
        """The object that a name of the notebook means, dotted or with indices: "nets[0].step".

        Raises UsageError with the closest name, or with `there`, what could be meant, where none is close.
        """
        if "[" in path:
            return self._indexed(path)
        first, *rest = path.split(".")
        if first not in self.shell.user_ns:
            raise UsageError(f"nothing is called {first!r} here{did_you_mean(first, self._visible()) or there}")
        value = self.shell.user_ns[first]
        for name in rest:
            if not hasattr(value, name):
                raise UsageError(f"{path!r}: a {type(value).__name__} has no {name!r}{did_you_mean(name, dir(value))}")
            value = getattr(value, name)
        return value

    def _indexed(self, path: str) -> Any:
        try:
            tree = ast.parse(path, mode="eval")
        except SyntaxError:
            tree = None
        if tree is None or not all(isinstance(node, _PATH) for node in ast.walk(tree)):
            raise UsageError(f"{path!r} is no name; write one, such as step, net.step or nets[0].step")
        try:
            return eval(compile(tree, "<name>", "eval"), self.shell.user_global_ns, self.shell.user_ns)
        except Exception as error:  # noqa: BLE001  # whatever indexing raises is the user's to read
            raise UsageError(f"{path!r}: {type(error).__name__}: {error}".partition("\n")[0]) from None

    def function(self, path: str | None, of_call: str = "") -> Any:
        """The staged function of that name; without a name the last staged cell, else the only one alive, else None.

        A cell that failed while it was traced is the last one until another runs, and can be had by its name as long as
        its trace is kept. `of_call` is the magic that asks, if it takes a call, too: of what is not staged, a call can
        be shown.

        Raises UsageError where the name means something else, or several functions could be meant.
        """
        if path in self.failed_names():
            return self._failures[str(path)]  # the name stands in no namespace, as nothing could be called by it
        if path is not None:
            names = self.function_names()
            there = f"; staged are {', '.join(names)}" if names else "; nothing is staged yet"
            function = call_of(self.value(path, there))
            if not is_function(function):
                inside = [f"{path}.{name}" for name in staged_members(function)]
                kind = f"{'Python ' * isinstance(function, ModuleType)}{type(function).__name__}"
                raise UsageError(
                    f"{path!r} is a {kind}, not a staged function: "
                    + (f"write {' or '.join(inside)}" if inside else _instead(path, function, of_call))
                )
            return function
        if self.failed is not None or self.last is not None:
            return self.failed or self.last
        alive = self.function_names()
        if len(alive) > 1:
            raise UsageError(f"which function? write one of {', '.join(alive)}")
        return self.shell.user_ns[alive[0]] if alive else None

    def tape(self, path: str | None, target: str | None = None) -> Any:
        """The tape of that name; without one the newest that saw the value of `target` computed, else the newest."""
        if path is not None:
            names = self.tape_names()
            value = self.value(path, f"; tapes are {', '.join(names)}" if names else "; no tape is here yet")
            if not isinstance(value, GradientTape):
                raise UsageError(
                    f"{path!r} is a {type(value).__name__}, not a tape: with ll.GradientTape() as tape: ..."
                )
            return value
        tapes = [value for value in self.shell.user_ns.values() if issubclass(type(value), GradientTape)]
        computed = self.value(target) if tapes and target is not None else None
        of_target = [tape for tape in tapes if isinstance(computed, Tensor | Resource) and knows(tape, computed)]
        return max(of_target or tapes, key=lambda tape: tape.id, default=None)

    def function_names(self) -> list[str]:
        """The notebook's names for staged functions."""
        return [name for name in self._visible() if is_function(self.shell.user_ns[name])]

    def failed_names(self) -> list[str]:
        """The names of cells that failed while they were traced, where these mean nothing else."""
        taken = set(self._visible())
        return [
            name for name, one in self._failures.items()
            if name not in taken and partial_trace.of(one.id) is not None
        ]  # fmt: skip

    def tape_names(self) -> list[str]:
        return [name for name in self._visible() if isinstance(self.shell.user_ns[name], GradientTape)]

    def _visible(self) -> Iterable[str]:
        hidden = self.shell.user_ns_hidden
        return [name for name in self.shell.user_ns if name not in hidden and not name.startswith("_")]


def _instead(path: str, value: object, of_call: str) -> str:
    """What to write where `value` is not staged."""
    if isinstance(value, type) or not callable(value):
        return "give one, or name a cell with %%stage NAME"
    call = f"write a call of it, as in {of_call} {path}(x), or " if of_call else ""
    return f"{call}stage it with ll.function({path}), or name a cell with %%stage NAME"


def staged_members(value: object) -> list[str]:
    """The names under which an object or its class has staged functions, the first few."""
    names = [*vars(type(value)), *getattr(value, "__dict__", ())]
    return [name for name in dict.fromkeys(names) if is_function(inspect.getattr_static(value, name, None))][:_MOST]


def is_function(value: object) -> bool:
    """Whether `value` is a staged function, as staged cells are."""
    return hasattr(type(value), "trace_cache")


def refuse_loaded(function: object, question: str) -> None:
    """Raises UsageError where a question about tracing is put to a function from a file, which is never traced."""
    if isinstance(function, LoadedFunction):
        raise UsageError(
            f"{question}: {function.name} was loaded from a file, with traces and without Python code: it is never "
            "traced; %graph and %trace_cache NAME show the traces, %steps and %explain --nan take a call of it"
        )


def position(function: Any, number: int, flag: str = "%graph --trace") -> int:
    """Where trace #`number` stands in the function's cache; a negative number counts from the end.

    Raises UsageError when it is not there (any more).
    """
    numbers = [entry.index + 1 for entry in function.trace_cache]
    if -len(numbers) <= number < 0:
        return number + len(numbers)
    if number not in numbers:
        there = ", ".join(f"#{known}" for known in numbers) or "none yet, so call it first"
        raise UsageError(f"{flag} {number}: {function.name} has no trace #{number}; its traces: {there}")
    return numbers.index(number)
