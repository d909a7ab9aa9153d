"""The staged cells of a twin as functions: each body takes what it reads and returns what it binds or changes.

Tensors, arrays, variables, numbers and containers that the cell reads are parameters; functions, classes and objects
stay globals. The function returns what a graph can return of its local names, and the notebook is given the results.
What Python does besides happens while tracing alone: that is for the function, or `ll.explain`, to say.
"""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from twin import STAGE, Step, Visit, new_notebook, visible  # beside this file

import limelight as ll
from limelight.core import nest
from limelight.core.variable import Resource
from limelight.staging.function import Function

PASSED = (ll.Tensor, Resource, np.ndarray, np.generic, bool, int, float, complex, str, list, dict, tuple)
NUMBERS = (bool, int, float, complex)


class CellFunction:
    """The body of a cell as a function, staged or not."""

    def __init__(self, text: str, shell: InteractiveShell, staged: bool) -> None:
        self.space = shell.user_ns
        tree = ast.parse(STAGE.sub("", text))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self.reads = [
            name
            for name in dict.fromkeys(node.id for node in names)
            if isinstance(self.space.get(name), PASSED) and type(self.space[name]) in (*PASSED, type(ll.ones(1)))
        ]
        body = "\n".join("    " + line for line in ast.unparse(tree).splitlines())
        code = f"def cell({', '.join(self.reads)}):\n{body}\n    return returned(locals())\n"
        file = f"<cell {abs(hash((text, tuple(self.reads))))}>"
        linecache.cache[file] = len(code), None, code.splitlines(True), file
        made: dict[str, Any] = {}
        exec(compile(code, file, "exec"), self.space, made)  # its globals are the notebook's
        self.space["returned"] = returned
        self.call: Any = ll.function(made["cell"]) if staged else made["cell"]

    def run(self) -> None:
        """Calls it with what the names mean, and binds what it returns."""
        results = self.call(*[self.space[name] for name in self.reads])
        for name, x in results.items():
            if name[0] == "_" or name == "Out":
                continue  # the shell's own, which it would take for the user's if they were other objects
            self.space[name] = _as_it_was(self.space.get(name), x)

    def said(self) -> str:
        """What the explanations say of what it does, or has read, while it was traced alone."""
        if not isinstance(self.call, Function):
            return ""
        effects, baked = ll.explain.side_effects(self.call), ll.explain.baked(self.call)
        return f"{effects}\n{baked}" if effects.records or baked.changed else ""


def returned(names: dict[str, Any]) -> dict[str, Any]:
    """What a graph can return of a function's names."""
    return {name: x for name, x in names.items() if _can_be_returned(x)}


def _as_it_was(old: Any, new: Any) -> Any:
    """A number, where the name meant a number before: graphs return tensors."""
    return new.item() if type(old) in NUMBERS and isinstance(new, ll.Tensor) and new.ndim == 0 else new


def _can_be_returned(x: Any) -> bool:
    leaves = nest.leaves_of(x)
    return all(
        isinstance(leaf, (ll.Tensor, np.ndarray, *NUMBERS)) and not isinstance(leaf, Resource) for leaf in leaves
    )


def run(cells: Sequence[str], order: Sequence[int], shell: InteractiveShell, staged: bool) -> list[Step]:
    """Runs the cells by their numbers, from 1, in a notebook that is new, with the staged ones as functions."""
    new_notebook(shell)
    shell.run_cell("import numpy as np\nimport limelight as ll\nll.random.seed(0)\nnp.random.seed(0)")
    functions: dict[tuple[str, frozenset[str]], CellFunction] = {}
    return [_step(shell, cells[number - 1], staged, functions) for number in order]


def _step(shell: InteractiveShell, text: str, staged: bool, functions: dict[Any, CellFunction]) -> Step:
    error: BaseException | None = None
    function = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if STAGE.match(text):
            key = text, frozenset(visible(shell))
            try:
                function = functions.get(key) or functions.setdefault(key, CellFunction(text, shell, staged))
                function.run()
            except Exception as raised:  # noqa: BLE001  # the cell's
                error = raised
        else:
            ran = shell.run_cell(text, store_history=True)
            error = ran.error_before_exec or ran.error_in_exec
    said = "\n".join([*[str(one.message) for one in caught], str(error or ""), function.said() if function else ""])
    names = {name: loosely(Visit().portrait(shell.user_ns[name])) for name in sorted(visible(shell) - {"returned"})}
    return Step("" if error is None else type(error).__name__, said.strip(), None, names)


def loosely(portrait: Any) -> Any:
    """A portrait without what a graph's results do not keep: kinds of numbers and containers, sharing, identity."""
    match portrait:
        case ("Tensor", (_, shape, array)):
            return "values", shape, np.asarray(array).astype(complex)
        case (str() as kind, (str(), tuple() as shape, np.ndarray() as array)) if kind.startswith("ndarray"):
            return "values", shape, np.asarray(array).astype(complex) if array.dtype.kind in "biufc" else str(array)
        case ("bool" | "int" | "float" | "complex", x):
            return "values", (), np.asarray(x, complex)
        case (str() as kind, list() as inside) if kind.split()[0] in ("defaultdict", "OrderedDict", "dict"):
            return "dict", [loosely(x) for x in inside]
        case (str() as kind, inside):
            return kind.split()[0], loosely(inside)
        case tuple() | list():
            return [loosely(x) for x in portrait]
    return portrait
