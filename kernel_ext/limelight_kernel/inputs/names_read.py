"""The names that a cell reads and writes, as the notebook stands now."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from limelight.core.tensor import Tensor
from limelight.core.variable import Resource, Variable
from limelight_kernel.cell.compiled_cell import Cell
from limelight_kernel.inputs.cell_names import Names, analyse
from limelight_kernel.inputs.helper_reads import EVALUATE, reads_of

_DATA = (Tensor, Resource, np.ndarray, np.generic)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_SURE = frozenset([Tensor, Variable, np.ndarray, *_PLAIN])  # the commonest types of plain data
_CONTAINERS = (list, tuple, dict, set, frozenset)


class NamesRead:
    """What a cell reads and writes, through the notebook's helper functions as they are now.

    Asking again is cheap: the analysis holds as long as the names that it met stand for the same helpers, or for the
    same containers of these. What is put into one leads to another trace, and each trace to another analysis.
    """

    def __init__(self, shell: InteractiveShell, cell: Cell) -> None:
        self._shell = shell
        self._tree = cell.tree
        self._met: dict[str, tuple[object, frozenset[str]]] = {}
        self._names: Names | None = None
        self._by_helpers: frozenset[str] = frozenset()
        self._evaluates = any(map(_looks_names_up, ast.walk(cell.tree)))

    def __call__(self) -> Names:
        if self._names is None or not self._still_holds():
            self._met.clear()
            self._names = analyse(self._tree, self._indirect)
            if self._evaluates:  # strings that are written in the cell
                texts = [x.value for x in ast.walk(self._tree) if isinstance(x, ast.Constant)]
                mentioned = frozenset[str]().union(*[_names_in(x) for x in texts if isinstance(x, str)])
                self._names.reads.update({x: x for x in mentioned - {*self._names.reads, *self._names.writes}})
            self._by_helpers = frozenset(name for _, reads in self._met.values() for name in reads)
            if not self._evaluates and not EVALUATE.isdisjoint(self._by_helpers):
                self._evaluates, self._names = True, None
                return self()
        return self._names

    def look_again(self) -> None:
        """Has the cell analysed anew when it is asked next."""
        self._names = None

    @property
    def by_helpers(self) -> frozenset[str]:
        """The names that helpers read, whether or not the cell mentions them itself; as of the last time asked."""
        return self._by_helpers

    def _indirect(self, name: str) -> Iterable[str]:
        self._met[name] = met = self._look(name)
        return met[1]

    def _look(self, name: str) -> tuple[object, frozenset[str]]:
        """What `name` stands for, and the names that it reads; of plain data only the type, so that it is not kept."""
        space = self._shell.user_ns
        if name not in space or name in self._shell.user_ns_hidden:
            return None, frozenset()
        value = space[name]
        kind = type(value)
        if self._evaluates and kind is str:
            return value, _names_in(value)
        if isinstance(value, _DATA) or kind in _PLAIN:
            return kind, frozenset()
        return _stands_for(value), reads_of(value, space)

    def _still_holds(self) -> bool:
        space = self._shell.user_ns
        for name, (stood_for, reads) in self._met.items():
            value = space.get(name)
            kind = type(value)
            if value is stood_for or (kind is stood_for and kind in _SURE):
                continue
            if kind not in _CONTAINERS or _stands_for(value) != stood_for:
                now = self._look(name)
                if now[1] != reads:
                    return False
                self._met[name] = now
        return True


def _looks_names_up(node: ast.AST) -> bool:
    """Whether it is code by which text leads to names: `eval(text)`, `globals()[text]`, `text.format(**locals())`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id in EVALUATE or (node.func.id in ("globals", "locals", "vars") and not node.args)


def _names_in(text: str) -> frozenset[str]:
    """The words in a text that may be names."""
    return frozenset(re.findall(r"[^\W\d]\w*", text))


def _stands_for(value: object) -> object:
    """`value`, or what tells a container from others without keeping it alive."""
    return (type(value), id(value), len(value)) if isinstance(value, _CONTAINERS) else value
