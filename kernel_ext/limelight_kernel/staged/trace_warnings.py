"""What a staged cell warns of once it has been traced: where its runs do something else than the plain cell's."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from limelight.explain import SideEffect
from limelight_kernel.cell.cell_warnings import CellWarnings
from limelight_kernel.cell.statements import line_of_binding, line_of_mention, line_of_step
from limelight_kernel.inputs.kind_questions import KindQuestions
from limelight_kernel.staged.cell_body import OutputTemplate
from limelight_kernel.staged.type_questions import unanswered

VARIABLES_MADE: Final = (
    "the first run of this cell has made the weights of a model, or other variables",
    "make these in a cell above, a model's by calling it once",
)
VALUE_NEEDED: Final = (
    "the first run of this cell needed the value of a tensor that an object holds",
    "read that value in a cell above",
)
"""Why a cell was traced twice, and what to write."""


class TraceWarnings:
    """The warnings of one cell's traces.

    Args:
        tree: the cell's code.
        warnings: gives each once.
    """

    def __init__(self, tree: ast.Module, warnings: CellWarnings) -> None:
        self._tree = tree
        self._warnings = warnings
        self._changed: Counter[str] = Counter()  # how many traces have changed an attribute that is a number

    def tell(
        self, template: OutputTemplate, inputs: Mapping[str, Any], compared: Collection[str], kinds: KindQuestions
    ) -> None:
        """Warns of what a trace has made; `inputs`, what is `compared` at each call and asked for are the cell's."""
        self._tell_of_counters(template, inputs, compared)
        self._tell_of_lost_names(template)
        self._tell_of_numbers(template)
        self._tell_of_kinds(inputs, kinds)

    def tell_of_forgotten(self, paths: Iterable[str], through: Mapping[str, str]) -> None:
        """Warns of functions that remember tensors in a plain cell, and not in this one; `through` has helpers."""
        for path in paths:
            name = re.split(r"\W", path)[0]
            self._warnings.warn_once(
                ("forgotten", path),
                f"`{path}` remembers tensors by functools.lru_cache; a staged cell has it forget those of a trace, so "
                "that the next trace computes them anew, with what its code reads or draws then. Instead: call it in a "
                "cell above, and read the result here",
                line_of_mention(self._tree, through.get(name, name)),
            )

    def tell_of_assigned(self, paths: Iterable[str], through: Mapping[str, str]) -> None:
        """Warns of variables that were assigned past the trace: by a thread of the cell's, or under `ll.init_scope`."""
        for path in paths:
            name = re.split(r"\W", path)[0]
            self._warnings.warn_once(
                ("assigned", path),
                f"`{path}` was assigned while this cell was traced, by another thread or under ll.init_scope: runs of "
                "its graph do not assign it. Instead: assign it in this cell's own code, or in a cell without %%stage",
                line_of_mention(self._tree, through.get(name, name)),
            )

    def tell_of_repeated(self, paths: Iterable[str], effects: Iterable[SideEffect], why: str, instead: str) -> None:
        """Warns of what a cell has done twice, as it was traced twice; `why` says why, and `instead` what to write."""
        done = {path: f"what it does to `{path}`" for path in [re.split(r"[#\[]", path)[0] for path in paths]}
        for what, said in {**done, **{one.what: f"`{one.what}`" for one in effects}}.items():
            self._warnings.warn_once(
                ("repeated", what),
                f"{why}, for which its Python code ran twice: {said} was done twice. Instead: {instead}",
                line_of_mention(self._tree, re.split(r"\W", what)[0]),
            )

    def _tell_of_counters(self, template: OutputTemplate, inputs: Mapping[str, Any], compared: Collection[str]) -> None:
        """Attributes that each run compares and changes: it will not find its trace."""
        for path, value in template.counters(inputs):
            line = line_of_step(self._tree, path)
            self._changed[path] += 1
            if path not in compared or not (line or self._changed[path] > 1):  # it may be set once and for all
                continue
            self._warnings.warn_once(
                path,
                f"`{path}` is a plain number that each run reads and changes, so each run traces again. Instead: make "
                f"it a variable, `{path} = ll.Variable({value!r})` in a cell above, and here write "
                f"`{path}.assign_add(...)`",
                line,
            )

    def _tell_of_numbers(self, template: OutputTemplate) -> None:
        """Python numbers that a tensor decides, where a graph's numbers differ from Python's."""
        for path, kind in template.unsure.items():
            name = re.split(r"\W", path)[0]
            line = line_of_binding(self._tree, name) or self._tree.body[-1].lineno
            limits = (
                "as an int32, which wraps around beyond 2147483647, where Python's integers go on"
                if kind is int
                else "in float32, which has 7 digits, where Python's floats have 16"
            )
            self._warnings.warn_once(
                ("number", path),
                f"`{path}` is a Python number that a tensor decides; the graph computes it {limits}. Instead: begin "
                "with a tensor of the dtype that it needs, as ll.constant(...), which both cells compute alike",
                line,
            )

    def _tell_of_kinds(self, inputs: Mapping[str, Any], kinds: KindQuestions) -> None:
        """Questions for the class of what a symbolic tensor stands for."""
        for asks, where, line in unanswered(self._tree, inputs, kinds.patterns):
            self._warnings.warn_once(
                ("kind", asks),
                f"`{asks}` asks for the class of what may be an array{where}, for which a symbolic tensor stands while "
                "this cell is traced. Instead: ask isinstance(x, np.ndarray) or type(x), which tell them apart",
                line or line_of_mention(self._tree, asks.partition("(")[0]),
            )

    def _tell_of_lost_names(self, template: OutputTemplate) -> None:
        """Names that the plain cell may bind, and this one never does; tapes and the like are over."""
        for name, why in template.lost.items():
            if line := line_of_binding(self._tree, name):
                self._warnings.warn(f"`{name}` is not bound after this cell: {why}", line)
