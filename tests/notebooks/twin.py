"""A notebook run twice, with its `%%stage` lines and without them, and everything that it binds compared.

A twin is a text file in `twins/`. Its first lines are comments: what it is about, then, where the two runs may differ,

    # says: a part of the refusal or the warning that the staged run must give, at the first run of that cell
    # order: 1 2 3 2 3
    # known: why the two runs differ unsaid: a defect that is to be mended

`order` replaces the usual order of execution. Cells are separated by lines of four dashes. In the plain run the line
`%%stage` of a cell is left out; in the staged one it gets `-q`, so that what is said is what is said to everybody.
"""

from __future__ import annotations

import gc
import re
import types
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import limelight as ll
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.staging.symbolic import SymbolicTensor

TWINS = sorted((Path(__file__).parent / "twins").glob("*.txt"))
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType, type)
STAGE = re.compile(r"^%%stage\b.*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Twin:
    """The cells of a notebook; `says` is what the staged run must say where it differs, `orders` how they are run."""

    about: str
    cells: tuple[str, ...]
    says: tuple[str, ...]
    orders: tuple[tuple[int, ...], ...]
    known: str = ""

    @property
    def brief_order(self) -> tuple[int, ...]:
        """The order for further ways of running it: the whole first order, or the beginning of it."""
        beginning = each_twice(self.cells)
        return beginning if self.orders[0][: len(beginning)] == beginning else self.orders[0]


def read(path: Path) -> Twin:
    """The twin in that file."""
    return parse(path.read_text())


def parse(text: str) -> Twin:
    """The twin with that text."""
    head, *cells = [part.strip("\n") for part in re.split(r"^----\n", text, flags=re.MULTILINE)]
    notes = [line.removeprefix("#").strip() for line in head.splitlines()]
    says = tuple(note.removeprefix("says:").strip() for note in notes if note.startswith("says:"))
    orders = tuple(tuple(map(int, note.removeprefix("order:").split())) for note in notes if note.startswith("order:"))
    known = "".join(note.removeprefix("known:").strip() for note in notes if note.startswith("known:"))
    return Twin(notes[0], tuple(cells), says, orders or (usual_order(cells),), known)


def each_twice(cells: Sequence[str]) -> tuple[int, ...]:
    """From top to bottom, each staged cell twice."""
    return tuple(number for number, cell in enumerate(cells, 1) for _ in range(2 if STAGE.match(cell) else 1))


def usual_order(cells: Sequence[str]) -> tuple[int, ...]:
    """From top to bottom, each staged cell twice; then all once more; then the staged cells alone, again."""
    all_cells = range(1, len(cells) + 1)
    return (*each_twice(cells), *all_cells, *[number for number in all_cells if STAGE.match(cells[number - 1])])


@dataclass
class Step:
    """What one run of a cell left behind."""

    error: str
    said: str
    result: Any
    names: dict[str, Any]
    printed: str = ""
    warned: tuple[tuple[str, int], ...] = ()  # texts and lines of warnings


@dataclass
class Visit:
    """One walk through objects: each mutable one gets the number of its first visit, so that sharing shows."""

    numbers: dict[int, int] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def portrait(self, value: Any) -> Any:
        """`value` as plain data: types, contents, and which objects are one and the same."""
        if isinstance(value, SymbolicTensor):
            return "a symbolic tensor"
        if isinstance(value, PLAIN):
            return type(value).__name__, value
        if isinstance(value, Tensor):
            return "Tensor", _array(value.numpy())
        if isinstance(value, CODE):
            return type(value).__name__, getattr(value, "__name__", "")
        if type(value).__module__.startswith("limelight") and not isinstance(value, ll.Module | Resource):
            return type(value).__name__  # a tape, a generator: what is inside is no business of the notebook's
        if id(value) in self.numbers:
            return "again", self.numbers[id(value)]
        self.numbers[id(value)] = len(self.numbers)
        self.kept.append(value)
        return f"{type(value).__name__} {self.numbers[id(value)]}", self._inside(value)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, ll.Variable):
            return _array(value.numpy())
        if isinstance(value, Resource):
            return "a resource"
        if isinstance(value, np.ndarray | np.generic):
            return _array(np.asarray(value))
        if isinstance(value, Mapping):
            return [(self.portrait(key), self.portrait(item)) for key, item in value.items()]
        if isinstance(value, set | frozenset):
            return sorted(map(repr, value))
        if isinstance(value, weakref.WeakSet):
            return sorted([self.portrait(x) for x in value], key=str)
        if hasattr(value, "__iter__") and hasattr(value, "__len__"):
            inside: Any = [self.portrait(item) for item in value]
            return (inside, self._attributes(value)) if getattr(value, "__dict__", None) else inside
        return self._attributes(value)

    def _attributes(self, value: Any) -> Any:
        own = getattr(value, "__dict__", {})
        hidden = "_" if isinstance(value, ll.Module) else "__"  # what a layer notes for itself is no business of theirs
        return [(name, self.portrait(item)) for name, item in sorted(own.items()) if not name.startswith(hidden)]


def _array(array: np.ndarray[Any, Any]) -> tuple[str, tuple[int, ...], Any]:
    return array.dtype.name, array.shape, array.copy()


def run(
    cells: Sequence[str], order: Sequence[int], shell: InteractiveShell, staged: bool, flags: str = "-q"
) -> list[Step]:
    """Runs the cells by their numbers, from 1, in a notebook that is new; staged ones with these flags."""
    new_notebook(shell)
    shell.run_cell("import numpy as np\nimport limelight as ll\nll.random.seed(0)\nnp.random.seed(0)")
    line = f"%%stage {flags}" if staged else ""
    return [_step(shell, cells[number - 1], line) for number in order]


def new_notebook(shell: InteractiveShell) -> None:
    """Empties the shell: names, history, staged cells. A new shell, or the extension loaded anew, would cost a run."""
    from limelight_kernel.extension import session_of  # needs the extension

    with mock.patch.object(gc, "collect"):  # which IPython calls here, and which takes longer than most runs
        shell.reset(new_session=True)
    session_of(shell).forget()


def _step(shell: InteractiveShell, cell: str, line: str) -> Step:
    text = re.sub(r"^%%stage\b", line, cell, flags=re.MULTILINE) if line else STAGE.sub("", cell)
    with capture_output() as captured, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ran = shell.run_cell(text, store_history=True)
    error = ran.error_before_exec or ran.error_in_exec
    said = "\n".join([captured.stdout, captured.stderr, *[str(one.message) for one in caught], str(error or "")])
    visit = Visit()
    modules_last = sorted(visible(shell), key=lambda name: (isinstance(shell.user_ns[name], ll.Module), name))
    names = {name: visit.portrait(shell.user_ns[name]) for name in modules_last}  # weights made lazily move no numbers
    result = visit.portrait(ran.result)
    warned = tuple([(str(one.message), one.lineno if one.filename.startswith("In[") else 0) for one in caught])
    return Step("" if error is None else type(error).__name__, said, result, names, captured.stdout, warned)


def visible(shell: InteractiveShell) -> set[str]:
    """The names that the notebook's cells have bound, but for those of staged cells."""
    own = {name for name in shell.user_ns if not name.startswith("_") and name not in shell.user_ns_hidden}
    from limelight_kernel.staged.staged_cell import StagedCell  # needs the extension

    return {name for name in own if not isinstance(shell.user_ns[name], StagedCell)} - {"In", "Out"}


def differences(
    plain: Sequence[Step],
    staged: Sequence[Step],
    order: Sequence[int],
    covered: Callable[[int, Step, Step], Collection[str]] = lambda number, one, other: (),
) -> Iterator[str]:
    """A sentence for each thing that the two runs have left different.

    Args:
        plain: the steps without `%%stage`.
        staged: those with it.
        order: the numbers of the cells.
        covered: says after each run, by the cell's number and the steps, which names may differ; "_" is the result.
    """
    for place, (one, other) in enumerate(zip(plain, staged, strict=True)):
        may_differ = covered(order[place], one, other)
        where = f"run {place + 1} (cell {order[place]})"
        if bool(one.error) != bool(other.error):
            raised = f"plain raises {one.error or 'nothing'}, staged {other.error or 'nothing'}"
            yield f"{where}: {raised}: {other.said[-300:]}"
            return  # what follows follows from it
        if (
            one.error
        ):  # a plain cell keeps what it assigned before the error, a staged one leaves the notebook as it was
            if one.error != other.error:
                yield f"{where}: plain raises {one.error}, staged {other.error}"
            return
        if "_" not in may_differ and not same(one.result, other.result):
            yield f"{where}: the result is {one.result}, staged {other.result}"
        for name in sorted({*one.names, *other.names}.difference(may_differ)):
            if name not in one.names or name not in other.names or not same(one.names[name], other.names[name]):
                bound, staged_bound = one.names.get(name, "not bound"), other.names.get(name, "not bound")
                yield f"{where}: {name} is {bound}, staged {staged_bound}"


def same(one: Any, other: Any) -> bool:
    """Whether two portraits agree; floating numbers may be rounded otherwise, as the default level of passes allows."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.kind in "fc" or one.dtype.name == "bfloat16":
            return np.allclose(one.astype(complex), other.astype(complex), rtol=1e-4, atol=1e-6, equal_nan=True)
        return np.array_equal(one, other)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or bool(np.isclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))
    return bool(type(one) is type(other) and one == other)


def first_said(staged: Sequence[Step], order: Sequence[int]) -> str:
    """All that the first run of each cell has said."""
    return "\n".join([step.said for place, step in enumerate(staged) if order[place] not in order[:place]])
