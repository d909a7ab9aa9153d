"""Runs the body of a cell in the notebook's namespace, and leaves the namespace as it was."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from IPython.core.interactiveshell import InteractiveShell

from limelight.autograph.undefined_variables import AssignedIfRun, Doubtful
from limelight.core import dispatch
from limelight.staging.symbolic import SymbolicTensor
from limelight_kernel.cell.compiled_cell import Cell

_ABSENT = object()
Converted: TypeAlias = "Callable[[dict[str, Any]], Any]"
"""Runs a cell in a namespace, with control flow on tensors staged; returns the value of its last expression."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a run of a body made: the names it assigned, those it deleted, the value of its last expression.

    `sometimes` has, of names that only some runs of the graph assign, the tensors that say whether one has; `lost` has
    those of which nothing can say so, with the reason. `deletable`: the names that it has a `del` for.
    """

    assigned: dict[str, Any]
    deleted: frozenset[str]
    result: Any
    sometimes: Mapping[str, Any] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    deletable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Run:
    """A call of a staged cell.

    `made` is what it made (None when it was only traced), `entry` the trace it used, `hit` whether the cache had it.
    """

    made: Made | None
    entry: Any
    hit: bool
    seconds: float


def converted(cell: Cell) -> Converted:
    """What runs a cell with control flow on tensors staged."""
    from limelight.autograph import converted_cell  # noqa: PLC0415  # it brings a library that few cells need

    return converted_cell(cell.tree, cell.filename)


def execute(
    shell: InteractiveShell,
    cell: Cell,
    inputs: Mapping[str, Any],
    writes: Collection[str],
    deletes: Collection[str],
    converted: Converted | None = None,
    answers: Mapping[str, Any] = types.MappingProxyType({}),
) -> Made:
    """Runs `cell` with `inputs` under their names, as if they stood in the notebook.

    Helper functions see them as well, as they would if the cell ran unstaged. Afterwards, and after an exception, every
    name means again what it meant; inputs that a helper has set, by its `global`, are among those assigned. Tensors of
    these are computed at each run; plain values change the key, so the cell traces again, and the reason says who
    changed them. The engine lets one thread trace at a time, so no two share the notebook.

    Args:
        shell: whose namespace the code runs in.
        cell: the compiled cell.
        inputs: values by name.
        writes: the names that the cell may assign; those that are no inputs do not exist before it does, whatever they
            meant in the notebook.
        deletes: the names that it may delete.
        converted: runs in place of the cell's code, with control flow on tensors staged.
        answers: what stands for builtins meanwhile.
    """
    __tracebackhide__ = True
    namespace = shell.user_ns
    answers = {name: x for name, x in answers.items() if name not in namespace and name not in writes}
    borrowed = _Borrowed(namespace, {*inputs, *writes, *answers})
    with borrowed:
        for name in writes:
            namespace.pop(name, None)
        namespace.update({**inputs, **answers})
        before = dict(namespace)
        result = _run(shell, cell) if converted is None else converted(namespace)
        hidden = borrowed.bound_unseen(before)
        assigned = {
            name: namespace[name]
            for name in dict.fromkeys([*writes, *inputs, *hidden])
            if name in namespace and namespace[name] is not inputs.get(name, _ABSENT)
        }
        deleted = frozenset(name for name in deletes if name not in namespace)
    doubtful = {name: assigned.pop(name) for name, x in list(assigned.items()) if isinstance(x, Doubtful)}
    sometimes = {name: x for name, x in doubtful.items() if isinstance(x, AssignedIfRun)}
    assigned.update((name, x.value) for name, x in sometimes.items())
    lost = {name: x.why for name, x in doubtful.items() if name not in sometimes}
    flags = {name: x.assigned for name, x in sometimes.items()}
    return Made(assigned, deleted, result, flags, lost, frozenset(deletes))


def is_busy() -> bool:
    """Whether an interpreter, a scope or a listener is active that wants more than a count of what has run."""
    return len(dispatch.active) != len(dispatch.kept) + len(dispatch.tapes_told)


@contextlib.contextmanager
def standing_in(modules: Iterable[dict[str, Any]], answers: Mapping[str, Any]) -> Iterator[None]:
    """A block in which these stand for builtins in the globals of modules, too, but for names of their own."""
    with contextlib.ExitStack() as stack:
        for names in modules:
            put = {name: x for name, x in answers.items() if name not in names}
            stack.enter_context(_Borrowed(names, put))
            names.update(put)
        yield


def _run(shell: InteractiveShell, cell: Cell) -> Any:
    __tracebackhide__ = True
    exec(cell.body, shell.user_global_ns, shell.user_ns)
    return None if cell.result is None else eval(cell.result, shell.user_global_ns, shell.user_ns)


class _Borrowed(dispatch.Guard):
    """Puts `names` back to what they mean now; after an interrupt, at the latest before the next cell."""

    def __init__(self, namespace: dict[str, Any], names: Collection[str]) -> None:
        super().__init__()
        self._namespace = namespace
        self._saved = {name: namespace.get(name, _ABSENT) for name in names}

    def bound_unseen(self, before: Mapping[str, Any]) -> list[str]:
        """Other names that mean tensors of the trace now, by `exec` or `globals()[...]`; they are put back as well."""
        found = [
            name
            for name, x in list(self._namespace.items())
            if isinstance(x, SymbolicTensor) and name not in self._saved and before.get(name, _ABSENT) is not x
        ]
        self._saved.update({name: before.get(name, _ABSENT) for name in found})
        return found

    def end(self, abandoned: bool) -> None:
        for name, value in self._saved.items():
            if value is _ABSENT:
                self._namespace.pop(name, None)
            else:
                self._namespace[name] = value
