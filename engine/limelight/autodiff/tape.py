"""The gradient tape.

It is an interpreter that lets the one below run the op, then notes which rule to pull back through and what that rule
needs. It knows tensors by their `_uid`, so it keeps alive only what rules asked for.

An op may be recorded in four ways: `observe` for one or two plain tensors, told by an entry point; `observe_many` for
any inputs, told likewise; `process` where other interpreters are on the stack; `_record_many` for several outputs, and
for variants of ops. They repeat a few lines, since a method that `process` and `observe_many` shared took 90 to 200 ns
of the 3.9 us that a recorded `where` takes (2 to 5 %), and would take more of the 1.5 us of a recorded addition.
"""

from __future__ import annotations

import itertools
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import CodeType, TracebackType
from typing import Any, Final

from limelight import events
from limelight.autodiff import backward, missing_gradients
from limelight.autodiff.backward import uid_of
from limelight.autodiff.cut_provenance import CutDescendants, note_cut, note_descendants
from limelight.autodiff.gradient_cuts import MAX_CUTS, Edge, GradientCut, cut_of, edge_of, ensure_uid
from limelight.autodiff.op_devices import OpDevices
from limelight.autodiff.recording_pause import RecordingPause
from limelight.autodiff.reentrant_tape import call_to_rerun, hidden_outputs, rerun
from limelight.autodiff.tape_entries import (
    EntryRecord,
    SavedTensor,
    entry_records,
    fields_of,
    input_text,
    mask_of,
    placed,
    saved_bytes,
    saved_tensors,
    specs_of,
)
from limelight.autodiff.tape_jacobians import Jacobians, Pull
from limelight.autodiff.tape_members import INTERNAL, Listed
from limelight.autodiff.tape_scopes import Makers, check_known, makers_below
from limelight.core import devices, dispatch, dtypes, name_scopes, nest, shapes
from limelight.core.dtypes import float32
from limelight.core.op import Op, TapeEntry, VjpRecipe
from limelight.core.tensor import Tensor, array_stand_ins, new_uid, own
from limelight.core.variable import Resource, read
from limelight.errors import ArgumentError, LostGradientWarning, TapeError
from limelight.user_code import hints, source_line
from limelight.user_code.warn_at import warn_here

_getframe: Final = sys._getframe
_tuple: Final[Any] = tuple.__new__  # a third of what calling a NamedTuple's class takes
_NAME: Final = "GradientTape"
INEXACT: Final = frozenset(d for d in dtypes.ALL if dtypes.is_inexact(d))
_ids = itertools.count(1)
_alive: Final[set[weakref.ref[GradientTape]]] = set()


class GradientTape(Jacobians, dispatch.Interpreter, metaclass=Listed):
    """A gradient tape: records the ops of its block for reverse-mode differentiation (Baydin et al. 2018, section 3.2).

    Ops that depend on something watched are recorded: trainable variables are watched when read, tensors by `watch`. A
    tape answers one question (`gradient`, `jacobian`, `batch_jacobian`), and then lets go of everything it saved,
    unless it is `persistent`. Tapes nest: an outer tape records what an inner one computes, which gives higher orders.
    The gradient by a complex number is the direction of steepest ascent, as in PyTorch and TensorFlow: the conjugate of
    JAX's.

    Args:
        persistent: whether the tape may be asked more than once; it then keeps what it saved until it is deleted.
            False.
        watch_accessed_variables: whether trainable variables are watched when they are read. True.

    Raises:
        TapeError: the block is entered while the tape is recording already.

    >>> import limelight as ll
    >>> x = ll.constant(3.0)
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

    observes = True

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self.id = next(_ids)
        self.persistent = persistent
        if type(persistent) is not bool:
            self.persistent = shapes.flag(_NAME, "persistent", persistent)
        self._watches_variables = watch_accessed_variables
        if type(watch_accessed_variables) is not bool:
            self._watches_variables = shapes.flag(_NAME, "watch_accessed_variables", watch_accessed_variables)
        self._watched: set[int] = set()
        self._roots: set[int] = set()  # those watched to begin with, not for being computed from others
        self._variables: dict[int, Any] = {}
        self._entries: list[TapeEntry] = []
        self._devices = OpDevices()
        self._reads: dict[Any, Tensor] = {}  # the values of variables that were operands, by storage
        self._cuts: deque[GradientCut] = deque(maxlen=MAX_CUTS)
        self._cut_descendants: CutDescendants = {}  # what comes of the results of cuts
        self._edges_left: list[Edge] | None = None  # what is left of the entries where a gradient may be None
        self._code: CodeType | None = None  # the user's code that ran the latest op: the next one is likely its, too
        self._recording = True
        self._pauses: list[RecordingPause] = []
        self._entered_eagerly = False
        self._makers: Makers | None = None  # the traces and batched calls in which it was entered
        self._used = False
        self._warned = False
        _alive.add(weakref.ref(self, _alive.discard))

    # The recording scope

    @property
    def active(self) -> bool:
        """Whether the tape's block is being executed (on this thread)."""
        return self.below is not None and self in dispatch.stack()

    def __enter__(self) -> GradientTape:
        if self.below is not None:
            dispatch.heal()
        if self.below is not None:
            raise TapeError("this tape is recording already; use another tape, or tape.stop_recording() around a part")
        dispatch.push(self, _getframe(1))
        makers = makers_below(self) if len(dispatch.local.stack) > 2 else None
        if makers is None:
            self._entered_eagerly = True
        else:
            self._makers = makers | self._makers if self._makers else makers
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if self.below is not None and (self in dispatch.local.stack or dispatch.is_put_away(self)):
                dispatch.remove(self)
            self._reads.clear()
        except KeyboardInterrupt:
            dispatch.remove(self)
            raise

    def abandon(self) -> None:
        self._reads.clear()
        super().abandon()

    def stop_recording(self) -> AbstractContextManager[None]:
        """A context manager that leaves the ops of its block unrecorded by this tape; other tapes go on.

        >>> import limelight as ll
        >>> x = ll.constant(3.0)
        >>> with ll.GradientTape() as tape:
        ...     tape.watch(x)
        ...     with tape.stop_recording():
        ...         factor = x * 2.0
        ...     y = x * factor
        >>> tape.gradient(y, x).item()  # `factor` is a constant to the tape
        6.0
        """
        return RecordingPause([self])

    def _is_paused(self, but: RecordingPause | None = None) -> bool:
        """Whether a pause, other than `but`, is not over."""
        self._pauses = [pause for pause in self._pauses if pause is not but and not pause.block.is_over]
        self._recording = not self._pauses
        return not self._recording

    def reset(self) -> None:
        """Discards everything recorded and watched so far; what follows in the block is recorded as by a new tape.

        >>> import limelight as ll
        >>> v = ll.Variable(3.0)
        >>> with ll.GradientTape() as tape:
        ...     y = v * v
        ...     tape.reset()
        ...     z = 2.0 * v
        >>> tape.gradient([y, z], v).item()
        2.0
        """
        self._release_entries()
        self._devices.clear()
        self._watched.clear()
        self._roots.clear()
        self._variables.clear()
        self._reads.clear()
        self._cuts.clear()
        self._cut_descendants.clear()
        self._edges_left = None
        self._used = False

    def watch(self, tensors: Any) -> None:
        """Watches tensors: the ops that follow are recorded where they depend on them.

        Watching integers or booleans warns: they have no gradient.

        Args:
            tensors: a tensor, a variable, or a nest of them.

        Raises:
            ArgumentError: something else is given.

        >>> import limelight as ll
        >>> x, y = ll.constant(3.0), ll.constant(4.0)
        >>> with ll.GradientTape() as tape:
        ...     tape.watch([x, y])
        ...     z = x * y
        >>> [g.item() for g in tape.gradient(z, [x, y])]
        [4.0, 3.0]
        """
        for x in nest.leaves_of(tensors):
            if type(x) is not Tensor and not isinstance(x, (Tensor, Resource)):
                raise ArgumentError(
                    f"tape.watch needs tensors or variables, got {type(x).__name__}; make it one with ll.constant(...)"
                )
            if x.dtype not in INEXACT:
                kind = "variable" if isinstance(x, Resource) else "tensor"
                article = "an" if x.dtype.name.startswith("i") else "a"
                said = f"watching {article} {x.dtype.name} {kind} has no effect: gradients need a floating dtype"
                warn_here(said, LostGradientWarning)
                continue
            self._note_root(ensure_uid(x))
            if isinstance(x, Resource):
                self._note_variable(x)
                self._reads.pop(x._data, None)  # what was read before does not lead to it

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables watched so far, in the order in which they were first seen."""
        variables = [ref() for ref in self._variables.values()]
        return tuple(v for v in variables if v is not None)

    # Recording

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        below = self.below
        assert below is not None, "an interpreter is asked only while it is on the stack"
        if not self._recording and self._is_paused():
            if op.effect == "write":
                self._reads.pop(getattr(inputs[0], "_data", None), None)
            return note_descendants(self._cut_descendants, op, inputs, below.process(op, inputs, attrs))
        uids, mask, bit = [], 0, 1
        for x in inputs:
            uid = x._uid if isinstance(x, Tensor) else self._uid_of_input(op, x)
            uids.append(uid)
            if uid in self._watched:
                mask |= bit
            bit <<= 1
        if not mask:
            out = below.process(op, inputs, attrs)
            return note_descendants(self._cut_descendants, op, inputs, out) if self._cut_descendants else out
        inputs = own(inputs) if array_stand_ins and array_stand_ins[0] in map(type, inputs) else inputs
        if op.vjp is None:
            return self._cut(op, attrs, inputs, below.process(op, inputs, attrs))
        if op.taped is not None or op.multiple:
            return self._record_many(below, op, inputs, attrs, mask)
        out = below.process(op, inputs, attrs)
        data = out._data if type(out) is Tensor else out.spec  # they answer faster than the handle
        dtype = data.dtype
        if dtype is float32 or dtype in INEXACT:  # an integer output ends the path
            names: Sequence[int] = uids
            recipe: Any = None if op.variadic else op.recipes[mask]
            if recipe is None:
                recipe, names = self._recipe(op, mask, uids)
            saved = recipe.save(inputs, out, attrs)
            out._uid = uid = out._uid or new_uid()
            self._watched.add(uid)
            if below.scope is None or name_scopes.named_scopes:
                place = placed(_getframe(1))
            else:  # a trace has just looked for the line
                stack = below.nodes[-1].stack
                place = (stack[0] if stack else None), 0
            self._entries.append((recipe, uid, data.shape, dtype, *place, *saved, *names))
            if dispatch.tapes_told or devices.in_use():
                self._note(op, inputs, out)
            return out
        return self._cut(op, attrs, inputs, out)

    def observe(self, recipes: Any, x: Any, y: Any, first: int, second: int, out: Tensor) -> None:
        """`process` without the detour, for ops of one or two inputs."""
        watched = self._watched
        mask = (first in watched) + 2 * (second in watched)
        if not mask or (not self._recording and self._is_paused()):
            if self._cut_descendants:
                note_descendants(self._cut_descendants, recipes.op, (x, y), out)
            return
        dtype = out._data.dtype
        recipe = recipes[mask]
        out._uid = uid = new_uid()
        frame = _getframe(2)
        if frame.f_code is self._code:
            at = frame.f_lasti
        else:
            self._code, at = source_line.position(frame, self._code)
        if recipe is not None and (dtype is float32 or dtype in INEXACT):
            watched.add(uid)
            self._entries.append(recipe.make_entry(x, y, out, uid, dtype, self._code, at, first, second))
        else:
            self._cuts.append(_tuple(GradientCut, (recipes.op, (), (first, second), (uid,), (dtype,), self._code, at)))
            note_cut(self._cut_descendants, (uid,))

    def observe_many(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Tensor) -> None:
        """The same for any inputs and parameters."""
        uids = tuple([x._uid if type(x) is Tensor else 0 for x in inputs])
        mask = mask_of(uids, self._watched)
        data = out._data
        dtype = data.dtype
        if mask and self._recording and op.vjp is not None and dtype in INEXACT:
            recipe, names = self._recipe(op, mask, uids)
            saved = recipe.save(inputs, out, attrs)
            out._uid = uid = new_uid()
            self._watched.add(uid)
            self._code, at = source_line.position(_getframe(2), self._code)
            self._entries.append((recipe, uid, data.shape, dtype, self._code, at, *saved, *names))
        elif mask and self._recording:
            self._cut(op, attrs, inputs, out)
        elif self._cut_descendants:
            note_descendants(self._cut_descendants, op, inputs, out)

    def observe_read(self, variable: Resource) -> Tensor:
        """`read_operand` where no interpreter below needs to be asked."""
        storage = variable._data
        value = self._reads.get(storage)
        if value is None or value._data is not storage.array or not self._recording:
            value = self.read_operand(variable)
        return value

    def read_operand(self, variable: Resource) -> Tensor:
        """The value of a variable that is an operand: until it is assigned to, one read serves all."""
        storage = variable._data
        value = self._reads.get(storage)
        if value is None or not self.has_read(storage, value) or value._data is not storage.array:
            value = dispatch.apply(read, (variable,))
            tape: Any = self if type(value) is Tensor else None  # in a trace it has no array to compare
            while isinstance(tape, GradientTape) and tape._recording:
                tape._reads[storage] = value
                tape = tape.below
        return value

    def has_read(self, storage: Any, value: Tensor) -> bool:
        below = self.below
        known = self._recording and self._reads.get(storage) is value
        return known and below is not None and below.has_read(storage, value)

    def _recipe(self, op: Op, mask: int, uids: Sequence[int]) -> tuple[VjpRecipe, Sequence[int]]:
        """The recipe, and the inputs' uids; an op with any number of inputs has one recipe for all patterns of them."""
        if op.variadic:
            return op.recipe(1), [uid if uid in self._watched else 0 for uid in uids]
        return op.recipe(mask), uids

    def _uid_of_input(self, op: Op, x: Any) -> int:
        """The uid of an input that is not a plain tensor; 0 for a scalar or a variable that is only written."""
        if isinstance(x, Resource):
            return x._uid if self._accesses(op, x) else 0
        return uid_of(x)

    def _accesses(self, op: Op, variable: Resource) -> bool:
        """Whether `op` reads a variable that is watched, or that is to be watched from now on."""
        if op.effect == "write":
            self._reads.pop(variable._data, None)  # which would keep the old value alive
            return False
        if self._watches_variables and variable.trainable and variable.dtype in INEXACT:
            self._note_root(variable._uid)
            self._note_variable(variable)
        return variable._uid in self._watched

    def _watch_variables(self, targets: Sequence[Any]) -> None:
        """Watches the variables among the targets where reading them would: to be asked for is to be read."""
        for x in targets:
            if type(x) is not Tensor and isinstance(x, Resource):
                self._accesses(read, x)

    def _record_many(self, below: Any, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int) -> Any:
        """Records an op with several outputs, or the variant of an op that also returns what its gradient needs."""
        swap = op.taped(inputs, attrs, mask) if op.taped is not None else None
        if swap is not None:
            op, attrs = swap.op, swap.attrs
        elif op.taped is not None:  # nothing that is watched influences its outputs
            return self._cut(op, attrs, inputs, below.process(op, inputs, attrs))
        out = below.process(op, inputs, attrs)
        outs = out if op.multiple else (out,)
        recipe, uids = self._recipe(op, mask, [uid_of(x) for x in inputs])
        saved = recipe.save(inputs, out, attrs)
        shapes, kinds = [y.shape for y in outs], [y.dtype for y in outs]
        visible: Sequence[int] = range(len(outs))
        if swap is not None:
            visible = swap.result(tuple(visible))
        names = [0] * len(outs)
        for i in range(len(outs)) if self.persistent else visible:  # the rest is for the rule; none asks once more
            if kinds[i] in INEXACT:
                names[i] = ensure_uid(outs[i])
        self._watched.update([uid for uid in names if uid])
        place = placed(_getframe(2))
        if devices.in_use():
            self._devices.note(next(filter(None, names), 0), op, outs[0] if outs else None)
        if op.multiple:
            self._entries.append((recipe, names, shapes, kinds, *place, *saved, *uids))
        else:
            self._entries.append((recipe, names[0], shapes[0], kinds[0], *place, *saved, *uids))
        if swap is not None and self.persistent:  # asked before the entry above, when going back
            hidden = hidden_outputs(names, visible)
            if any(hidden):
                kept = call_to_rerun(self, op, attrs, inputs)
                self._entries.append((rerun.recipe(1), hidden, shapes, kinds, *place, kept, *uids))
        if events.wanted(events.Recorded):
            self._emit(inputs)
        return out if swap is None else swap.result(out)

    def _cut(self, op: Op, attrs: tuple[Any, ...], inputs: Sequence[Any], out: Any) -> Any:
        """Notes where a path ends, for explanations; returns `out`."""
        self._cuts.append(cut_of(op, attrs, inputs, out, source_line.place(_getframe(2))))
        note_cut(self._cut_descendants, self._cuts[-1].outputs)
        return out

    def watches(self, x: Any) -> bool:
        return (x._uid in self._watched and self._recording) or super().watches(x)

    def value_left(self, x: Tensor) -> None:
        if x._uid in self._watched and self._recording:
            self._cuts.append(cut_of(None, (), (x,), (), source_line.place(_getframe(1))))
        super().value_left(x)

    def _note_root(self, uid: int) -> None:
        self._watched.add(uid)
        self._roots.add(uid)

    def _note_variable(self, variable: Any) -> None:
        if variable._uid not in self._variables:
            self._variables[variable._uid] = weakref.ref(variable)

    # Going back

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: str = "none"
    ) -> Any:
        """The gradient of the sum of `target` with respect to `sources`: a vector-Jacobian product.

        Complex gradients follow the conjugate convention: the direction of steepest ascent of the real part. An op
        without a gradient ends a path, as a constant does; `ll.explain.why_none` says where.

        Args:
            target: a tensor, a variable, or a nest of them.
            sources: tensors or variables, or a nest of them; a module stands for the list of its trainable variables.
                None and strings, which may stand among them, get None.
            output_gradients: weights of the elements of `target`, in its structure, shapes and dtypes; None, as a whole
                or for a leaf, is ones.
            unconnected_gradients: what a source without influence gets: "none" (None) or "zero" (zeros).

        Returns:
            The gradients, in the structure of `sources`, each in its shape and dtype; of a table that is looked up in
            by `ll.nn.embedding`, an `ll.SparseGradient`.

        Raises:
            TapeError: a tape that is not persistent is asked a second time; or its block was never entered, or outside
                of the trace or batched call to which a target or a source belongs.
            ArgumentError: a target or source is no tensor or variable, or an option is not as above.
            ShapeError, DTypeError: an output gradient has another shape or dtype than its target.
            GradientError: an op defined by `ll.defop` lacks a rule for one input, or a rule returns what does not fit.

        >>> import limelight as ll
        >>> x = ll.constant([1.0, 2.0])
        >>> with ll.GradientTape(persistent=True) as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.gradient(y, x).tolist(), tape.gradient(y, x, ll.constant([1.0, 10.0])).tolist()
        ([2.0, 4.0], [2.0, 40.0])
        """
        backward.check_unconnected(unconnected_gradients)
        targets, structure = nest.flatten(target)
        backward.check("target", targets)
        wanted, source_structure = backward.flatten_sources(sources)
        self._start_answer("gradient", targets, wanted)
        names = [uid_of(x) for x in wanted]
        try:
            weights = backward.weights(output_gradients, structure, len(targets))
            grads = backward.seed_gradients(targets, weights, self._watched)
            if not self.persistent and (
                not grads or missing_gradients.listeners or not self._watched.issuperset(names)
            ):
                self._edges_left = [edge_of(entry, keep=False) for entry in self._entries]
            entries = self._entries if self.persistent else self._release_entries()
            backward.pull(entries, grads, set(names), self._roots, self.persistent, self._devices)
            gradients = [
                backward.deliver(grads.get(uid) if uid else None, x, unconnected_gradients)
                for uid, x in zip(names, wanted, strict=True)
            ]
        finally:
            if not self.persistent:
                self._entries.clear()
        if any(map(operator.is_, gradients, itertools.repeat(None))):
            missing_gradients.tell(self, targets, wanted, gradients)
        return nest.unflatten(source_structure, gradients)

    def _with_pull(self, targets: list[Any], sources: list[Any], unconnected: str, use: Callable[[Pull], Any]) -> Any:
        backward.check_unconnected(unconnected)
        backward.check("target", targets)
        backward.check("source", sources)
        self._start_answer("jacobian", targets, sources)
        names = [uid_of(x) for x in sources]
        entries = self._entries if self.persistent else self._release_entries()

        def pull(target: Any, g: Any) -> list[Any]:
            grads = backward.seed_gradients([target], [g], self._watched)
            backward.pull(entries, grads, set(names), self._roots, True, self._devices)
            return [
                backward.deliver(grads.get(uid) if uid else None, x, "none")
                for uid, x in zip(names, sources, strict=True)
            ]

        try:
            return use(pull)
        finally:
            if not self.persistent:
                entries.clear()
                self._devices.clear()

    def _start_answer(self, asked: str, targets: Sequence[Any], sources: Sequence[Any]) -> None:
        self._watch_variables(targets)
        if not self._entered_eagerly or not self._watched.issuperset(
            [getattr(x, "_uid", 0) for x in (*targets, *sources)]
        ):
            check_known(self, f"tape.{asked}", self._watched, targets, sources)
        if self._used and not self.persistent:
            raise TapeError(
                "this tape has answered already and let go of what it saved; "
                "make it with ll.GradientTape(persistent=True) to ask more than once"
            )
        self._used = True
        if not self.active:
            return
        if not self.persistent:
            dispatch.remove(self)
        elif self._recording and not self._warned:
            self._warned = True
            warn_here(
                "gradient() of a persistent tape inside its own block records the gradient computation as well; "
                "leave the block first unless you want higher orders from this tape"
            )

    def _release_entries(self) -> list[TapeEntry]:
        """The entries, which the tape itself forgets."""
        if events.wanted(events.TapeReleased):
            events.emit(events.TapeReleased(self.id, len(self._entries), self.saved_bytes))
        entries, self._entries = self._entries, []
        self._reads.clear()
        return entries

    # For people

    @property
    def entries(self) -> tuple[EntryRecord, ...]:
        """What the tape holds, as records of texts and numbers."""
        return entry_records(self._entries, self.watched_variables())

    @property
    def saved_tensors(self) -> tuple[SavedTensor, ...]:
        """What the tape keeps alive, each tensor once, with the entries whose rules need it; the largest first."""
        return saved_tensors(self._entries)

    @property
    def saved_bytes(self) -> int:
        """Bytes that the tape keeps alive."""
        return sum(record.saved_bytes for record in self.entries)

    def __dir__(self) -> list[str]:
        return hints.without_internals(type(self), object.__dir__(self), INTERNAL)

    def __repr__(self) -> str:
        state = "recording" if self.active else "used" if self._used and not self.persistent else "idle"
        return f"<GradientTape {self.id}: {state}, {len(self._entries)} entries>"

    def _note(self, op: Op, inputs: tuple[Any, ...], out: Any) -> None:
        """What few want to know of an entry: where its op ran, and that there is one."""
        if devices.in_use():
            self._devices.note(out._uid, op, out)
        if dispatch.tapes_told and events.wanted(events.Recorded):
            self._emit(inputs)

    def _emit(self, inputs: tuple[Any, ...]) -> None:
        entry = fields_of(self._entries[-1])
        input_texts = tuple(map(input_text, inputs))
        index, op = len(self._entries) - 1, entry.recipe.op
        record = (self.id, index, op.name, input_texts, specs_of(entry), saved_bytes(entry), op.rule, entry.source)
        events.emit(events.Recorded(*record))


def alive() -> list[GradientTape]:
    """The tapes that exist, oldest first."""
    tapes = [tape for ref in _alive.copy() if (tape := ref()) is not None]  # a copy: tapes may die while we look
    return sorted(tapes, key=lambda tape: tape.id)


def unrecorded() -> RecordingPause:
    """Keeps the ops of its block from all tapes on this thread's stack."""
    return RecordingPause([interpreter for interpreter in dispatch.stack() if isinstance(interpreter, GradientTape)])
