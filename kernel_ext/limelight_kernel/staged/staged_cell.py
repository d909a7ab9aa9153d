"""A staged cell: a staged function that takes its inputs from the notebook."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight.autodiff import INEXACT
from limelight.core import device_scopes
from limelight.core.dispatch import active
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import CallError, LeakedTensorError, SignatureError, SymbolicValueError, TraceBudgetError
from limelight.explain import SideEffects
from limelight.optimise.setting import checked
from limelight.optimise.setting import setting as optimiser
from limelight.staging.function import Function
from limelight.staging.key import Key
from limelight.user_code import tracebacks
from limelight_kernel.cell.cell_source import cell_number
from limelight_kernel.cell.cell_warnings import CellWarnings
from limelight_kernel.cell.compiled_cell import Cell
from limelight_kernel.explain.none_gradients import NoneGradient
from limelight_kernel.explain.retrace_fixes import budget_error, put_fix, with_fix
from limelight_kernel.explain.side_effects import side_effects, warn_of, warned_of
from limelight_kernel.inputs.cell_names import Names, history_names
from limelight_kernel.inputs.contents import lead_to
from limelight_kernel.inputs.dictionary_reads import keys_read, parts_read
from limelight_kernel.inputs.input_keys import as_argument, goes_into_graph, numbers_as_tensors, variables_in
from limelight_kernel.inputs.key_orders import KEY as ORDER
from limelight_kernel.inputs.key_orders import key_orders
from limelight_kernel.inputs.line_inputs import check_known, nameable
from limelight_kernel.inputs.lru_caches import LruCaches
from limelight_kernel.inputs.names_read import NamesRead
from limelight_kernel.inputs.object_reads import BY_IDENTITY, ObjectReads, refuse_consumed
from limelight_kernel.inputs.pins import Pins
from limelight_kernel.inputs.sharing import KEY as SHARING
from limelight_kernel.inputs.sharing import sharing
from limelight_kernel.inputs.written_only import OnlyWritten, only_written, written_only
from limelight_kernel.line.options import Options
from limelight_kernel.staged import calling, notebook_lock
from limelight_kernel.staged.array_stand_ins import is_refusal_of_out
from limelight_kernel.staged.calling import CellOutputs, by_position, documentation, kind_of_recipe, named, signature
from limelight_kernel.staged.cell_body import RESULT, Body, OutputTemplate
from limelight_kernel.staged.cell_guards import HITS, CellGuards, Found, Surroundings
from limelight_kernel.staged.execution import Made, Run, converted, is_busy
from limelight_kernel.staged.identities import identities, ids
from limelight_kernel.staged.trace_effects import TraceEffects
from limelight_kernel.staged.trace_warnings import VALUE_NEEDED, VARIABLES_MADE, TraceWarnings
from limelight_widgets.format import counted


class _LookedAgainError(Exception):
    """What the code reads through objects has been found anew: the call is to be looked up again."""


class StagedCell(Function):
    """A cell as a staged function: called with new values for some of its inputs, it takes the rest from the notebook.

    Tensors, arrays and plain values may be given by position, in the order in which the cell reads them first; others
    by name. It returns the names that the cell assigns, as a dictionary, and the value of its last expression; the
    notebook's own names stay as they are. Copies are staged cells with traces of their own.

        outputs, result = step(images, labels)
        loss = step(images, labels).result
    """

    _counts_hits_only = False
    follows_sharing = False  # by itself: by names of the notebook, and it writes back what the cell changes

    def __init__(self, shell: InteractiveShell, cell: Cell, options: Options) -> None:
        self.cell = cell
        self.options = options
        self.through: dict[str, str] = {}  # inputs that the cell does not read itself, with the helpers that do
        self.warnings = CellWarnings(cell.filename)
        self._shell = shell
        lru_caches = LruCaches()
        self._body = Body(shell, cell, converted(cell) if options.autograph else None, lru_caches)
        self._names_read = NamesRead(shell, cell)
        self._written_only = written_only(cell.tree)
        self._keys_read = keys_read(cell.tree)
        self._object_reads = ObjectReads(self._body, shell.user_ns, lru_caches)
        self._pins = Pins()
        self._guards = CellGuards()
        self._history = history_names(cell.tree)
        self._withheld: frozenset[str] | None = None  # names that the cell assigns, and that did not exist at first
        self._wanted: frozenset[str] = frozenset()  # names that it read, although it was expected to assign them first
        self._asks_ids = False  # whether a trace has asked for the `id` of what is an input
        self._asked = False
        self._asked_about: Mapping[str, Any] = {}
        self._trace_warnings = TraceWarnings(cell.tree, self.warnings)
        self._besides = TraceEffects(cell.filename, self._pins, self._object_reads)
        self.uncounted: Any = None  # a trace whose next use is its first: it was made to be looked at before
        self._templates: weakref.WeakKeyDictionary[Any, OutputTemplate] = weakref.WeakKeyDictionary()
        self._may_look_again = False  # whether a trace that is to be made begins with finding what the code reads
        self._changes_arrays = False  # whether a trace does, so that hits ask whether these share memory
        super().__init__(
            self._body,
            name=options.name or f"cell_{cell_number(shell)}",
            reduce_retracing=options.relax,
            max_traces=options.traces,
        )
        self.__doc__ = f"The staged cell {self.name}.\n\n{type(self).__doc__}"

    def __call__(self, *args: Any, **inputs: Any) -> CellOutputs:
        """Runs the cell's graph; raises CallError for what is no input of the cell."""
        __tracebackhide__ = True
        made = (self._guarded(args, inputs) or self._found(args, inputs)).made
        assert made is not None, "it ran"
        return CellOutputs(made.assigned, made.result)

    def explain(self, *args: Any, **inputs: Any) -> Any:
        """Whether such a call would hit or miss, and why, without tracing or running anything."""
        sent = self._sent(self._values(self._names(), self._named(args, inputs)))
        answer: Any = super().explain(**sent)
        if answer.miss is None:
            return answer
        miss = with_fix(answer.miss, self._call((), sent, abstract=True).key.parts, self.options, self.all_effects)
        return dataclasses.replace(answer, miss=miss)

    def call(self, overrides: Mapping[str, Any], run: bool = True, changed: Mapping[str, Any] | None = None) -> Run:
        """Traces if need be, and runs unless told otherwise.

        Changes in place are made to the inputs, or to what `changed` has in their place.
        """
        __tracebackhide__ = True
        known = self._guarded((), overrides) if run and changed is None else None
        return known or self._found((), overrides, run, changed)

    def _guarded(self, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> Run | None:
        """A call that is like an earlier one, and so finds the same trace; None for all others."""
        __tracebackhide__ = True
        cache = self._cache
        guards = self._guards.of(args, inputs, cache.guards)
        if not guards or (active and is_busy()):
            return None
        start = time.perf_counter()
        taken = notebook_lock.take(timeout=notebook_lock.LONGEST)
        try:
            names = self._names_read()
            for guard in guards:
                if guard.names is names and (recognised := guard.inputs(args, inputs)) is not None:
                    break
            else:
                return None
        finally:
            if taken:
                notebook_lock.give_back()
        entry, (payloads, values) = guard.entry, recognised
        try:
            self.through = guard.through
            self._note_hit(entry)
            tensors = entry.run_counted(payloads) if active else entry.run_payloads(payloads)
        except (Exception, KeyboardInterrupt) as error:
            tracebacks.trim(error)
            raise
        return Run(self._filled(entry, tensors, values), entry, True, time.perf_counter() - start)

    def _found(
        self,
        args: tuple[Any, ...],
        inputs: Mapping[str, Any],
        run: bool = True,
        changed: Mapping[str, Any] | None = None,
    ) -> Run:
        """A call that is looked up by its key, and traced if need be."""
        __tracebackhide__ = True
        overrides, looked_again = self._named(args, inputs) if args else inputs, False
        while True:
            since = len(notebook_lock.tracers)
            taken = notebook_lock.take(timeout=notebook_lock.LONGEST)
            try:
                names = self._names()
                values = self._values(names, overrides)
                sent = self._sent(values)
            finally:
                if taken:
                    notebook_lock.give_back()
            try:
                self._may_look_again = not looked_again
                done = self._run(values, sent, run, values if changed is None else {**values, **changed})
                if done.hit and run and changed is None and done.entry.hits >= HITS:
                    self._guard(args, inputs, names, values, sent, done.entry)
                return done
            except _LookedAgainError:
                looked_again = True
            except NameError as error:
                if not self._may_read_after_all(error.name, values):
                    raise
            except (SymbolicValueError, LeakedTensorError) as error:
                if notebook_lock.another_has_traced(since):  # a list that was read here had been lent in the meantime
                    continue
                if isinstance(error, LeakedTensorError) or not self._object_reads.lent:
                    raise
                self._tell_of_repeated(VALUE_NEEDED)
                self._object_reads.stop_lending()
            except Exception as error:
                if not is_refusal_of_out(error) or self._has_effects() or not self._object_reads.lend_arrays():
                    raise

    def _named(self, args: tuple[Any, ...], inputs: Mapping[str, Any]) -> dict[str, Any]:
        values = self._values(self._names(), inputs)
        return named(self.name, args, inputs, by_position(values, self.through))

    def __copy__(self) -> StagedCell:
        """The same cell, without traces."""
        return StagedCell(self._shell, self.cell, self.options)

    def __deepcopy__(self, _memo: dict[int, Any]) -> StagedCell:
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise calling.pickle_error(self.name)

    @property
    def reads(self) -> frozenset[str]:
        """The names of the notebook that a call reads, and so whatever calls this cell reads."""
        if self._asked:  # by itself: a cell may call the one whose name it takes
            return frozenset()
        self._asked = True
        try:
            return frozenset(self._values(self._names(), {}))
        finally:
            self._asked = False

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The names of the notebook that it belongs to."""
        names: dict[str, Any] = self._shell.user_ns
        return names

    @property
    def writes(self) -> frozenset[str]:
        """The names of the notebook that running the cell assigns."""
        return frozenset(self._names().writes)

    def output_names(self, entry: Any) -> list[str]:
        """For each output of a trace's graph the name that the cell gives it; empty where that is not known."""
        template = self._templates.get(entry)
        return [] if template is None else template.names

    def summed_outputs(self, entry: Any) -> Sequence[int]:
        """The cell's result, as for `%%stage --grad`; of a cell without one that is floating its names, each once."""
        template = self._templates.get(entry) or self._body.last  # of a trace on the side that of the last one
        outputs, names = entry.graph.outputs, [] if template is None else template.names
        results = [i for i, name in enumerate(names) if name == "result" or name.startswith(("result[", "result."))]
        if any(getattr(outputs[i].spec, "dtype", None) in INEXACT for i in results):
            return results
        return list({id(value): i for i, value in reversed(list(enumerate(outputs)))}.values())

    def written_back(self, entry: Any) -> tuple[str, ...]:
        """What each run with a trace changes in place, as code: `history`, `d['w']`, `box.t`."""
        template = self._templates.get(entry)
        return () if template is None else tuple(dict.fromkeys(x for write in template.writes for x in write.paths))

    @property
    def compared(self) -> tuple[str, ...]:
        """What is read through objects, and compared at each run, as code: `cfg.rate`."""
        return self._object_reads.paths

    def unconnected(self, entry: Any) -> tuple[NoneGradient, ...]:
        """The gradients that were None when a trace was made."""
        template = self._templates.get(entry)
        return () if template is None else template.unconnected

    # For measurements and gradients

    def inputs(self) -> dict[str, Any]:
        """What each input means in the notebook now."""
        return self._values(self._names(), {})

    def tensors(self, overrides: Mapping[str, Any]) -> list[Any]:
        """What a call hands to its graph besides captures: tensors, arrays, variables, in the order of the graph."""
        call = self._call((), self._sent(self._values(self._names(), overrides)))
        return [x for x, part in zip(call.leaves, call.key.parts, strict=True) if part.is_input]

    def sent(self, inputs: Mapping[str, Any], args: tuple[Any, ...] = ()) -> dict[str, Any]:
        """The arguments that stand for all inputs, for whoever calls or traces the cell as an ordinary function."""
        inputs = self._named(args, inputs) if args else inputs
        self._body.originals = self._asked_about = values = self._values(self._names(), inputs)
        return self._sent(values)

    def let_go(self) -> None:
        """Keeps no longer what the inputs meant when `sent` was asked last, unless a call has put others there."""
        if self._body.originals is self._asked_about:
            self._body.originals = self._asked_about = {}

    def cached(self) -> Callable[[], Any]:
        """A function that calls the engine as a cached call does, and is counted nowhere."""
        sent = self.sent({})

        def run() -> Any:
            call = self._call((), sent)
            return self._find(call.lookup).call_leaves(call.leaves)

        return run

    def eagerly(self) -> Callable[[], Any]:
        """A function that runs the cell's code by Python, op by op; the notebook's names stay as they are."""
        sent = self.sent({})
        return lambda: self._body(**sent)

    # Inputs

    def _names(self) -> Names:
        names = self._names_read()
        self._body.writes, self._body.deletes = names.writes, names.deletes
        return names

    def _values(self, names: Names, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """What each input means: as the call says, else as the notebook does."""
        space = self._shell.user_ns
        if self._withheld is None:
            self._withheld = frozenset(name for name in names.writes if name not in space)
        passed_over = (self._withheld | (self._shell.user_ns_hidden.keys() - self._history)) - self._wanted
        values = {
            name: overrides[name] if name in overrides else space[name]
            for name in dict.fromkeys([*names.reads, *sorted(self._wanted)])
            if name in overrides or (name in space and name not in passed_over)
        }
        unknown = [name for name in overrides if name not in values]
        if unknown:
            known = ", ".join(sorted(nameable(values))) or "none"
            raise CallError(f"{self.name}() got an unexpected input {unknown[0]!r}; its inputs are {known}")
        self.through = {name: helper for name, helper in names.reads.items() if name in values and helper != name}
        check_known(self.options.inputs or (), values, "--inputs")
        check_known(dict(self.options.specs), values, "--spec")
        return values

    def _may_read_after_all(self, name: str | None, values: Mapping[str, Any]) -> bool:
        """Whether the code read a name of the notebook that it was expected to assign first: then it is an input."""
        if name is None or name in values or name not in self._body.writes or name not in self._shell.user_ns:
            return False
        self._wanted |= {name}
        return True

    def _sent(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that stand for the inputs."""
        specs = dict(self.options.specs)
        closed_over = variables_in(values[name] for name in self.through)
        through_objects = self._object_reads(values, self._body.writes)
        self._body.lent, self._body.kinds = self._object_reads.lent, self._object_reads.kinds
        refuse_consumed(self._object_reads.consumed)
        parts = self._parts_read(values)
        same, shared = sharing(values, parts)
        if self._body.questions or self._asks_ids:
            one_each = identities(self._body.questions, values, self._body.writes)
            self._body.one_each = one_each is not None
            same = ", ".join([x for x in (same, one_each, self._asks_ids and ids(values)) if x])
        sent = {
            name: self._fitted(name, value, specs[name])
            if name in specs
            else self._added_to(name, value, shared) or self._argument(name, parts.get(name, value), closed_over)
            for name, value in values.items()
        }
        words = {SHARING: same, ORDER: key_orders({**sent, **through_objects})}
        return {**sent, **through_objects, **{name: said for name, said in words.items() if said}}

    def _parts_read(self, values: Mapping[str, Any]) -> dict[str, dict[Any, Any]]:
        """What stands for large dictionaries of which the cell reads single keys, and no helper reads any."""
        if not self._keys_read or self.options.inputs is not None:
            return {}
        return parts_read(values, self._keys_read, self._names_read.by_helpers)

    def _added_to(self, name: str, value: Any, shared: frozenset[int]) -> OnlyWritten | None:
        """What stands for a container that the cell does no more than add to, and no helper reads; None for others."""
        if name not in self._written_only or name in (self.options.inputs or ()) or name in self._names_read.by_helpers:
            return None
        return only_written(value, self._written_only[name], shared)

    def _argument(self, name: str, value: Any, closed_over: Collection[int]) -> Any:
        if self.options.inputs is not None:
            if name in self.options.inputs:
                return numbers_as_tensors(value, None)
            if goes_into_graph(value):
                return self._pins.pin(name, value)
        if name in BY_IDENTITY:
            return self._pins.pin(name, value, contents=False)
        return as_argument(name, value, self._pins, closed_over)

    def _fitted(self, name: str, value: Any, spec: TensorSpec) -> Any:
        tensor = as_tensor(numbers_as_tensors(value, spec))
        if not spec.accepts(tensor.spec):
            raise SignatureError(
                f"{self.name}: {name} is {tensor.spec}, but --spec promises {spec}; change one of them"
            )
        return tensor

    # Tracing and running

    def _run(self, values: dict[str, Any], sent: dict[str, Any], run: bool, changed: Mapping[str, Any]) -> Run:
        __tracebackhide__ = True
        around = self._body.originals  # of a call that this one is made in
        self._body.originals, self._body.lent = values, self._object_reads.lent
        start = time.perf_counter()
        try:
            with device_scopes.device(self.options.device) if self.options.device else contextlib.nullcontext():
                entry, hit, tensors = self._use_optimised(sent, run)
        except TraceBudgetError as error:
            parts = self._call((), sent, abstract=True).key.parts
            raise budget_error(error, self.name, parts, self.options, self.all_effects) from None
        finally:
            self._body.originals, self._body.lent = around, {}  # tensors, it may be, of a trace that calls this cell
        made = self._filled(entry, tensors, changed) if run else None
        return Run(made, entry, hit, time.perf_counter() - start)

    def _filled(self, entry: Any, tensors: tuple[Tensor, ...], inputs: Mapping[str, Any]) -> Made:
        """What a run has made; changes the inputs as the cell does."""
        taken = notebook_lock.take(timeout=notebook_lock.LONGEST)
        try:
            return self._templates[entry].filled(tensors, inputs)
        finally:
            if taken:
                notebook_lock.give_back()

    def _guard(
        self,
        args: tuple[Any, ...],
        inputs: Mapping[str, Any],
        names: Names,
        values: Mapping[str, Any],
        sent: dict[str, Any],
        entry: Any,
    ) -> None:
        """Writes a guard for calls like this one, which has found `entry`, where these cannot mean anything else."""
        form = (len(args), *inputs)
        if (active and is_busy()) or not self._guards.wanted(form, self._cache.guards):
            return
        through, found = self.through, None
        if self._names_read() is names and self._may_be_guarded(values, names):
            call = self._call((), sent)
            # where the cell has changed what it reads, the next such call is for another trace
            if self._find(call.lookup) is entry and entry.runs_payloads(entry.n_inputs):
                positional = by_position(self._values(names, inputs), self.through)[: len(args)] if args else ()
                found = Found(names, values, sent, entry, call, tuple(positional), frozenset(inputs))
        self._guards.add(found, self._surroundings(names), through, form)

    def _may_be_guarded(self, values: Mapping[str, Any], names: Names) -> bool:
        """Whether nothing but the inputs decides what a call with inputs of these types does."""
        options, body = self.options, self._body
        if options.device or options.level is not None or options.without or options.inputs is not None:
            return False
        if self.run_eagerly or self._object_reads.consumed is not None or self._changes_arrays:
            return False
        return identities(body.questions, values, names.writes) is None

    def _surroundings(self, names: Names) -> Surroundings:
        return Surroundings(
            space=self._shell.user_ns,
            hidden=self._shell.user_ns_hidden,
            candidates={*names.reads, *self._wanted},
            history=self._history | self._wanted,
            assigned_first=(self._withheld or frozenset()) - self._wanted,
            specs=dict(self.options.specs),
            pins=self._pins,
            object_reads=self._object_reads,
            writes=names.writes,
        )

    def _use_optimised(self, sent: dict[str, Any], run: bool) -> tuple[Any, bool, tuple[Tensor, ...]]:
        """`_use`, with the level and the passes that the line asks for."""
        __tracebackhide__ = True
        level, without = self.options.level, self.options.without
        if level is None and not without:
            return self._use(sent, run)
        now = optimiser.get()
        with optimiser.override(checked(now.level if level is None else level, without or tuple(now.without))):
            used = self._use(sent, run)
            used[0].function.optimised  # noqa: B018  # made when first asked for, and kept
            return used

    def _use(self, sent: dict[str, Any], run: bool) -> tuple[Any, bool, tuple[Tensor, ...]]:
        """The entry used, whether it was there before, and the graph's results."""
        __tracebackhide__ = True
        traced = self.trace_count
        if self.options.specs or not run:
            entry = self.get_concrete_function(**{**sent, **dict(self.options.specs)})
            if not run:
                return entry, self.trace_count == traced, ()
            self.uncounted = entry if self.trace_count != traced else self.uncounted
        hits = [(entry, entry.hits) for entry in self.trace_cache]
        self._body.used = None
        tensors = super().__call__(**sent)
        used = self._body.used or next((entry for entry, before in hits if entry.hits != before), None)
        return used or self.trace_cache[-1], self.trace_count == traced, tensors

    def _trace(self, call: Any, asked: Key, run: bool) -> Any:
        """A new trace; its key tells what the code reads through the objects that there are now."""
        __tracebackhide__ = True
        if self._may_look_again:
            self._may_look_again = False
            if self._object_reads.look_again(self._body.originals, self._body.writes):
                raise _LookedAgainError
        return super()._trace(call, asked, run)

    def _trace_body(self, call: Any, creation: Any) -> Any:
        """A trace; of a cell that may have effects besides, the lines that run are noted."""
        __tracebackhide__ = True
        before = self._key_now()
        if creation.again:  # since the first one has made variables
            self._tell_of_repeated(VARIABLES_MADE)
        notes_lines = not self.options.strict and bool(warned_of(self.effects()))
        with self._besides.noted(self._body.originals, notes_lines):
            entry = super()._trace_body(call, creation)
        self._asks_ids |= self._body.asked_ids
        if not creation.variables and self._key_now() != before:
            entry.serves_once = "changed what it reads, as no run of its graph does,"
        return entry

    def _key_now(self) -> Key:
        """The key of a call with the inputs of the one that is traced, as they are now."""
        return self._call((), self._sent(self._body.originals), abstract=True).key

    def _serves_once(self, created: Sequence[Any]) -> str:
        """Where the notebook keeps them, and the code has had effects or counted: a second trace makes none."""
        counts = self._body.last is not None and self._body.last.counters(self._body.originals)
        if (counts or self._has_effects()) and lead_to(self._body.originals.values(), created):
            return "created variables beside effects of Python's, such as print or a count,"
        return ""

    def _has_effects(self) -> bool:
        """Whether the latest trace has had effects that no run of its graph makes again."""
        return bool(self._besides.changed or self._besides.of(self.effects()))

    def _tell_of_repeated(self, why: tuple[str, str]) -> None:
        """Warns of what the latest trace has done besides, as another one is about to do it again."""
        self._trace_warnings.tell_of_repeated(self._besides.changed, self._besides.of(self.effects()), *why)

    def _may_create(self, key: Key) -> bool:
        """In any trace: a cell that runs again may have been given another model, which makes its weights then."""
        return True

    def _reads_objects(self, key: Key) -> bool:
        """Always: a cell reads what stands in the notebook, where a variable may be made again."""
        return True

    def _note_hit(self, entry: Any) -> None:
        if self._changes_arrays and (template := self._templates.get(entry)) is not None:
            template.refuse_shared(self._body.originals)
        self._body.used = entry
        if entry is not self.uncounted:
            super()._note_hit(entry)
        self.uncounted = None

    def _note_trace(self, entry: Any) -> None:
        """A new trace is in the cache: its template is kept (even if its first run fails), its fix is for a cell."""
        self._body.used = entry
        self._names_read.look_again()  # a function may have been put into a container, which reads other names
        if self._body.last is not None:
            self._templates[entry] = self._body.last
            self._changes_arrays |= bool(self._body.last.array_writes)
            self._describe(entry)
        put_fix(entry, self.options, self.trace_cache.history.misses, self.all_effects)
        super()._note_trace(entry)
        if not self.options.strict:  # which refuses them
            if not self._object_reads.changed_by_runs:  # else what tracing does, each run does
                warn_of(self.effects(), self.warnings, self.cell.filename, self._besides.ran)
            if (template := self._templates.get(entry)) is not None:
                self._trace_warnings.tell(template, self._body.originals, self.compared, self._body.kinds)
            self._trace_warnings.tell_of_forgotten(self._body.forgotten, self.through)
            self._trace_warnings.tell_of_assigned(self._body.assigned_elsewhere, self.through)

    def _describe(self, entry: Any) -> None:
        """What `help` shows: the inputs and outputs of the newest trace."""
        values, template = self._body.originals, self._templates[entry]
        positional = by_position(values, self.through)
        specs = [x.spec for x in entry.graph.outputs]
        kinds = {name: kind_of_recipe(recipe, specs, values) for name, recipe in template.recipes.items()}
        result = kinds.pop(RESULT)
        self.__signature__ = signature(values, positional)
        self.__doc__ = documentation(self.name, positional, values, kinds, result)

    def effects(self) -> SideEffects:
        """What the cell does while it is traced alone."""
        found = self.all_effects()
        return dataclasses.replace(found, records=tuple([one for one in found.records if not self._makes_again(one)]))

    def all_effects(self) -> SideEffects:
        """What the cell does besides computing, at each run as well: its changes in place."""
        return side_effects(self, self.namespace)

    def _makes_again(self, effect: Any) -> bool:
        """Whether an effect of tracing is one of each run as well: a change in place of what the inputs lead to."""
        if effect.kind not in ("mutation", "attribute write", "closure write"):
            return False
        words = set(re.findall(r"\w+", effect.what))
        return any(not words.isdisjoint(template.changed) for template in self._templates.values())

    def __repr__(self) -> str:
        lines, traces = counted(len(self.cell.lines), "line"), counted(len(self.trace_cache), "trace")
        return f"<staged cell {self.name}: {lines}, {traces}>"
