"""The Python function behind a staged cell, and what its traces make besides graphs."""

from __future__ import annotations

import ast
import functools
import re
import threading
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from limelight.core.tensor import Tensor
from limelight.explain.may_be_tensor import Written
from limelight.user_code.source_line import Source
from limelight_kernel.cell.cell_function import as_function
from limelight_kernel.cell.compiled_cell import Cell, StagedSyntaxError
from limelight_kernel.cell.statements import line_of_mention, where_bound
from limelight_kernel.explain.none_gradients import NoneGradient, recording_none_gradients
from limelight_kernel.inputs.array_changes import (
    array_changes,
    changed_elsewhere,
    refuse_calls,
    refuse_casts,
    shared,
)
from limelight_kernel.inputs.input_keys import goes_into_graph
from limelight_kernel.inputs.kind_questions import KindQuestions
from limelight_kernel.inputs.lru_caches import LruCaches
from limelight_kernel.inputs.portraits import Lent
from limelight_kernel.inputs.written_only import OnlyWritten
from limelight_kernel.staged import array_memory, notebook_lock
from limelight_kernel.staged.array_aliases import ByMemory, Reached
from limelight_kernel.staged.borrowed_state import BorrowedState, Place
from limelight_kernel.staged.execution import Converted, Made, execute, standing_in
from limelight_kernel.staged.identities import questions
from limelight_kernel.staged.recipes import UNASSIGNED, ArrayResult, Recipe, RecipeBook, Result, Run
from limelight_kernel.staged.type_questions import answers
from limelight_kernel.staged.writes import ArrayWrite, Write, changed_values, write_of

RESULT = "the result"  # no identifier, so no name of the cell's


@dataclass(frozen=True, slots=True, weakref_slot=True)
class OutputTemplate:
    """What one trace made: a recipe for each name and for the result, and the changes in place.

    A graph returns tensors alone, with these `names`. Strings and numbers that a cell assigns exist from the trace on.
    """

    recipes: dict[str, Recipe]
    writes: tuple[Write | ArrayWrite, ...]
    deleted: frozenset[str]  # those that each run deletes
    sometimes_deleted: frozenset[str]  # those that are deleted where the run does not assign them
    names: list[str]
    changed: frozenset[str]  # the names, attributes and keys that lead to what is changed in place
    unconnected: tuple[NoneGradient, ...] = ()  # the gradients that are None
    lost: Mapping[str, str] = field(default_factory=dict)  # names that some runs would assign, and no run does: why
    unsure: Mapping[str, type] = field(default_factory=dict)  # numbers, as code, that Python may have others for
    input_arrays: tuple[Place, ...] = ()  # where the arrays of NumPy's are that the graph takes

    def counters(self, inputs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Attributes that are numbers and become others at each run, as code, with what they are now."""
        return [
            (path, old)
            for write in self.writes
            if isinstance(write, Write) and write.attributes
            for path, old, new in write.constants(inputs)
            if type(old) in (int, float) and type(new) is type(old) and new != old
        ]

    @property
    def array_writes(self) -> list[ArrayWrite]:
        """The changes in place of arrays of NumPy's."""
        return [x for x in self.writes if isinstance(x, ArrayWrite)]

    def of_rebound_arrays(self, tensors: tuple[Tensor, ...]) -> dict[str, Any]:
        """The types of what arrays are to hold after a run, by name, where no line of the code has been asked."""
        return {x.place.name: tensors[x.recipe.index].spec for x in self.array_writes if x.rebound}

    def refuse_shared(self, inputs: Mapping[str, Any]) -> None:
        """Raises StagedSyntaxError where an array that is changed in place shares memory with another one by now."""
        changed = self.array_writes
        if not changed:
            return
        found = {str(place): place.found(inputs) for place in self.input_arrays}
        arrays = ByMemory([Reached(path, x) for path, x in found.items() if isinstance(x, np.ndarray)])
        for write in changed:
            path = str(write.place)
            if isinstance(array := found.get(path), np.ndarray):
                for other in arrays.sharing(path, array):
                    raise _refusal(write.line, other.path)

    def filled(self, tensors: tuple[Tensor, ...], inputs: Mapping[str, Any]) -> Made:
        """What the body made, with the tensors that a run has computed; changes the inputs as the body does."""
        run = Run(tensors, inputs)
        made = {  # most are results, for which a call each would be half the time
            name: tensors[recipe.index] if type(recipe) is Result else recipe.make(run)
            for name, recipe in self.recipes.items()
        }
        values = {name: x for name, x in made.items() if x is not UNASSIGNED}
        for apply in [write.prepared(run) for write in self.writes]:
            apply()
        result = values.pop(RESULT)
        gone = {name for name in self.sometimes_deleted if made.get(name, UNASSIGNED) is UNASSIGNED}
        return Made(values, self.deleted | gone, result)


def split_outputs(
    made: Made,
    state: BorrowedState,
    cell: Cell,
    unconnected: tuple[NoneGradient, ...] = (),
    arrays: Mapping[str, Source] = types.MappingProxyType({}),
) -> tuple[OutputTemplate, tuple[Tensor, ...]]:
    """Splits what a body made into what only the trace knows, and the tensors that the graph computes.

    Args:
        made: what it made.
        state: what it was lent.
        cell: where it is from.
        unconnected: the gradients that are None.
        arrays: the names that mean arrays of NumPy's, with the lines that change them in place.
    """
    where = functools.partial(where_bound, cell.tree, cell.filename)
    book, changes = RecipeBook(state, where, functools.partial(_is_made_in, cell)), state.changes()
    changed = {f"{change.place}[{key!r}]": x for change in changes for key, x in changed_values(change)}
    book.survey({**made.assigned, "result": made.result, **changed})
    recipes = {name: book.output(name, value) for name, value in made.assigned.items()}
    recipes.update({name: book.if_assigned(name, recipes[name], flag) for name, flag in made.sometimes.items()})
    recipes[RESULT] = book.output("result", made.result)
    computed = {name: recipe for name, recipe in recipes.items() if isinstance(recipe, Result | ArrayResult)}
    into_arrays = [
        ArrayWrite(place, book.array(str(place), x), array_memory.line_of_change(x))
        for place, x, _ in state.changed_arrays(made.assigned)
    ]
    into_arrays += [
        ArrayWrite(Place(name), recipe, arrays[name], rebound=True)
        for name, recipe in computed.items()
        if name in arrays
    ]
    recipes = {name: recipe for name, recipe in recipes.items() if name not in arrays or name not in computed}
    writes: list[Write | ArrayWrite] = [
        *[write_of(change, book) for change in [*changes, *book.left_in()]],
        *into_arrays,
    ]
    template = OutputTemplate(
        recipes,
        tuple(writes),
        made.deleted,
        made.deletable.intersection({*made.sometimes, *made.lost}),
        book.names,
        _words(changed),
        unconnected,
        made.lost,
        book.unsure,
        tuple([place for _, place, x in state.stand_ins.values() if isinstance(x, np.ndarray)]),
    )
    return template, tuple(book.tensors)


def _is_made_in(cell: Cell, x: Any) -> bool:
    """Whether a function or a class is written in the cell, so that each run makes it anew.

    A function of another cell's function counts, too: if it had been there before, it would have a place.
    """
    if isinstance(x, types.FunctionType):
        within = x.__module__ == "__main__" and "<locals>" in x.__qualname__
        return within or x.__code__.co_filename == cell.filename
    named = isinstance(x, type) and x.__module__ == "__main__"
    return named and any(isinstance(node, ast.ClassDef) and node.name == x.__name__ for node in ast.walk(cell.tree))


def _words(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(word for path in paths for word in re.findall(r"\w+", path))


class Body(threading.local):
    """Runs a cell's Python code for the tracer; each thread that calls the cell has attributes of its own.

    Before a call, `originals` says what each input means in the notebook: what does not travel into the graph reaches
    the code as it is. After a trace, `last` is its template.

    Args:
        shell: whose notebook it is.
        cell: the code.
        converted: runs in place of the code as written.
        lru_caches: what functions remember that the cell calls.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        cell: Cell,
        converted: Converted | None,
        lru_caches: LruCaches,
    ) -> None:
        self._shell = shell
        self._cell = cell
        self._arrays = array_changes(cell.tree)
        self._lru_caches = lru_caches
        self.assigned_elsewhere: list[str] = []  # variables that something else has assigned during the last trace
        self.forgotten: list[str] = []  # functions that had remembered tensors of the last trace
        self._text = (cell.filename, cell.lines, cell.header)
        self.questions = questions(cell.tree)
        self.asked_ids = False  # whether the last trace asked `id(x)` of what is an input
        self.one_each = False  # whether this call's tensors are to be one each, since the code compares identities
        self._converted = converted
        self.kinds = KindQuestions()  # what the code asks for the kind of what it is given
        self.python_function = as_function(cell, shell.user_ns)  # what explanations read
        self.__limelight_written__ = Written(
            cell.tree.body, cell.filename, "cell", shell.user_ns, converted is not None
        )
        self.writes: tuple[str, ...] = ()
        self.deletes: frozenset[str] = frozenset()
        self.originals: Mapping[str, Any] = {}
        self.lent: Mapping[str, Lent] = {}  # the tensors in objects that travel into the graph
        self.last: OutputTemplate | None = None
        self.used: Any = None  # the trace that this thread's call has found, or made

    def __call__(self, **inputs: Any) -> tuple[Tensor, ...]:
        """The cell's tensors, from its inputs as the tracer passes them."""
        __tracebackhide__ = True
        taken = notebook_lock.take(timeout=notebook_lock.LONGEST)
        try:
            notebook_lock.tracers.append(threading.get_ident())
            return self._run(inputs)
        finally:
            if taken:
                notebook_lock.give_back()

    def _run(self, inputs: Mapping[str, Any]) -> tuple[Tensor, ...]:
        __tracebackhide__ = True
        refuse_calls(self._arrays, self.originals, *self._text)
        state = BorrowedState(self.originals, self.one_each)
        self._lru_caches.begin(self.originals)
        try:
            values = {
                name: _meant(state, name, self.originals[name], value)
                for name, value in inputs.items()
                if name in self.originals
            }
            for path, lent in self.lent.items():
                state.lend_inside(lent.owner, lent.step, inputs[path])
            state.begin({path: x for path, x in inputs.items() if path not in self.originals})
            with recording_none_gradients(self._cell.filename) as unconnected, array_memory.refusing():
                asked = answers(self.kinds.of_type, state.id_of)
                of_cell = {} if self._converted else asked  # converted code asks functions of its own
                with standing_in(self.kinds.modules, asked):
                    made = execute(self._shell, self._cell, values, self.writes, self.deletes, self._converted, of_cell)
            template, tensors = split_outputs(made, state, self._cell, tuple(unconnected), self._changed_arrays())
            self._refuse_aliases(template, state)
            refuse_casts(self._arrays, template.of_rebound_arrays(tensors), self.originals, *self._text)
            self.last, self.asked_ids = template, state.asked_ids
            self.assigned_elsewhere = state.assigned_elsewhere()
        finally:
            _restore(state)
            self.forgotten = self._lru_caches.settle()
        return tensors

    def _refuse_aliases(self, template: OutputTemplate, state: BorrowedState) -> None:
        """Raises StagedSyntaxError for a change of an array in place whose memory the code reaches in another way."""
        for write in template.array_writes:
            if other := state.shown_by(write.place):
                raise _refusal(write.line, other)
        if (alias := state.changed_alias()) is not None:
            name = re.split(r"\W", alias.other.path)[0]
            line = line_of_mention(self._cell.tree, name) or self._cell.tree.body[0].lineno
            text = self._cell.lines[line - self._cell.header - 1]
            message = changed_elsewhere(alias.other.path, alias.own.path)
            raise StagedSyntaxError(message, (self._cell.filename, line, 1, text))

    def _changed_arrays(self) -> dict[str, Source]:
        return {
            name: Source(self._cell.filename, statement.lineno, "")
            for name, statement in self._arrays.augmented.items()
            if isinstance(self.originals.get(name), np.ndarray)
        }


def _refusal(line: Source, other: str) -> StagedSyntaxError:
    return StagedSyntaxError(shared(line.text, other), (line.file, line.line, 1, line.text))


def _restore(state: BorrowedState) -> None:
    try:
        state.restore()
    except KeyboardInterrupt:  # in the middle of it: once more
        state.restore()
        raise


def _meant(state: BorrowedState, name: str, original: Any, traced: Any) -> Any:
    """What the code finds under the name of an input."""
    if isinstance(traced, OnlyWritten):
        return state.lend_empty(name, original, traced.nested)
    return state.lend(name, original, traced) if goes_into_graph(traced) else original
