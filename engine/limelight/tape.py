"""Reverse-mode differentiation by recording (paper section 4.2).

A tape is an interpreter: it lets the one below do the op, then notes which rule to pull back through and what that
rule needs. It knows tensors by their `_uid`, so it keeps alive only what rules asked for.
"""

from __future__ import annotations

import itertools
import sys
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight import dispatch, dtypes, events, nest, shapes, source
from limelight.errors import ArgumentError, DTypeError, ShapeError, TapeError
from limelight.registry import Op, Recipe
from limelight.source import Position, Source
from limelight.tensor import Tensor, as_tensor, constant, new_uid
from limelight.variables import Resource

_getframe: Final = sys._getframe
_is_library: Final = source.library_files
INEXACT: Final = frozenset(d for d in dtypes.ALL if dtypes.is_inexact(d))
_ids = itertools.count(1)
_observers: list[bool] = []  # not empty while somebody listens to Recorded
events.on_interest(events.Recorded, lambda wanted: _observers.append(True) if wanted else _observers.clear())


class Entry(NamedTuple):
    """One recorded op: its rule, the uids of what went in and came out, and what the rule needs."""

    op: Op
    mask: int
    inputs: Sequence[int]
    outputs: tuple[int, ...]
    saved: tuple[Any, ...]
    recipe: Recipe
    shapes: Sequence[Any]
    dtypes: Sequence[Any]
    position: Position | None

    @staticmethod
    def of(raw: tuple[Any, ...]) -> Entry:
        """From the raw form: flat, since each nested tuple costs; an op with one output has its uid, shape and dtype bare."""
        op, mask, outputs, saved, recipe, shape, dtype, code, instruction, *inputs = raw
        position = None if code is None else Position(code, instruction)
        if isinstance(outputs, int):
            return Entry(op, mask, inputs, (outputs,), saved, recipe, (shape,), (dtype,), position)
        return Entry(op, mask, inputs, outputs, saved, recipe, shape, dtype, position)


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """A tape entry as shown to people. `inputs` and `outputs` are spec texts, `saved_bytes` counts what it keeps alive."""

    index: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    saved: tuple[str, ...]
    saved_bytes: int
    rule: str
    source: Source | None


class GradientTape(dispatch.Interpreter):
    """Records the ops of its block that depend on something watched, to differentiate them afterwards.

    Trainable variables are watched when read (unless `watch_accessed_variables=False`); tensors by `watch`. A tape
    answers `gradient` once, and then lets go of everything it saved, unless it is `persistent`. Tapes nest: an outer
    tape records what an inner one computes, which gives higher orders. The algorithm is reverse accumulation over
    recorded operations (Baydin et al. 2018, section 3.2).

    >>> import limelight as ll
    >>> x = ll.constant(3.0)
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self.id = next(_ids)
        self.persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._watched: set[int] = set()
        self._variables: dict[int, Any] = {}
        self._entries: list[tuple[Any, ...]] = []  # see Entry.of: made once for every op
        self._recording = True
        self._used = False
        self._warned = False
        _alive.add(self)

    # The recording scope

    @property
    def active(self) -> bool:
        """Whether the tape's block is being executed (on this thread)."""
        return self in dispatch.stack()

    def __enter__(self) -> GradientTape:
        if self.below is not None:
            raise TapeError("this tape is recording already; use another tape, or tape.stop_recording() around a part")
        dispatch.push(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.active:
            dispatch.remove(self)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leaves the ops of its block unrecorded by this tape; other tapes go on."""
        before, self._recording = self._recording, False
        try:
            yield
        finally:
            self._recording = before

    def reset(self) -> None:
        """Forgets everything recorded and watched so far."""
        self._release()
        self._watched.clear()
        self._variables.clear()
        self._used = False

    def watch(self, tensors: Any) -> None:
        """Makes the ops that follow record what depends on `tensors`: a tensor, a variable, or a nest of them.

        Raises ArgumentError for anything else. Watching integers or booleans warns: they have no gradient.
        """
        for x in nest.leaves_of(tensors):
            if not isinstance(x, (Tensor, Resource)):
                raise ArgumentError(
                    f"tape.watch needs tensors or variables, got {type(x).__name__}; make it one with ll.constant(...)"
                )
            if x.dtype not in INEXACT:
                warnings.warn(
                    f"watching a {x.dtype.name} tensor has no effect: gradients need a floating dtype", stacklevel=2
                )
            else:
                self._watched.add(_uid(x))
                if isinstance(x, Resource):
                    self._note_variable(x)

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables watched so far, in the order in which they were first seen."""
        found = [ref() for ref in self._variables.values()]
        return tuple(v for v in found if v is not None)

    # Recording

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        below = self.below
        assert below is not None, "an interpreter is asked only while it is on the stack"
        if not self._recording:
            return below.process(op, inputs, attrs)
        watched = self._watched
        given = []
        mask, bit = 0, 1
        for x in inputs:
            uid = x._uid if type(x) is Tensor else self._look(op, x)
            given.append(uid)
            if uid in watched:
                mask |= bit
            bit <<= 1
        if not mask or op.vjp is None:
            return below.process(op, inputs, attrs)
        if op.taped is not None or op.multiple or op.variadic:
            return self._record_many(below, op, inputs, attrs, mask)
        out = below.process(op, inputs, attrs)
        data = out._data if type(out) is Tensor else out  # the payload answers faster than the handle
        dtype = data.dtype
        if dtype in INEXACT:  # an integer output ends the path
            recipe = op.recipes.get(mask) or op.recipe(mask)
            saved = recipe.save(inputs, out, attrs)
            uid = out._uid = out._uid or new_uid()
            watched.add(uid)
            position = source.position(_getframe(1))
            self._entries.append((op, mask, uid, saved, recipe, data.shape, dtype, *position, *given))
            if _observers:
                self._emit(inputs)
        return out

    def observe(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Tensor) -> None:  # type: ignore[override]  # a method
        """Takes note of a simple op on plain tensors that has just run: `process` without the detour."""
        watched = self._watched
        given: tuple[int, ...]
        if len(inputs) == 2:
            x, y = inputs
            first, second = given = (getattr(x,"_uid",0), getattr(y,"_uid",0))
            if first in watched:
                mask = 3 if second in watched else 1
            elif second in watched:
                mask = 2
            else:
                return
        else:
            given = (inputs[0]._uid,)
            if given[0] not in watched:
                return
            mask = 1
        if op.vjp is None or not self._recording:
            return
        data = out._data
        dtype = data.dtype
        if dtype in INEXACT:
            recipe = op.recipes.get(mask) or op.recipe(mask)
            out._uid = uid = new_uid()
            watched.add(uid)
            saved = recipe[1](inputs, out, attrs)
            frame = _getframe(2)
            code = frame.f_code
            if _is_library.get(code.co_filename) is False:
                self._entries.append((op, mask, uid, saved, recipe, data.shape, dtype, code, frame.f_lasti, *given))
            else:
                position = source.position(frame)
                self._entries.append((op, mask, uid, saved, recipe, data.shape, dtype, *position, *given))
            if _observers:
                self._emit(inputs)

    def observe_two(self, op: Op, x: Any, y: Any, out: Tensor) -> None:  # type: ignore[override]  # a method
        self.observe(op, (x, y), (), out)

    def _look(self, op: Op, x: Any) -> int:
        """The uid of an input that is not a plain tensor; 0 for a scalar or a variable that is only written."""
        if isinstance(x, Resource):
            return x._uid if self._accesses(op, x) else 0
        return _uid_of(x)

    def _accesses(self, op: Op, variable: Resource) -> bool:
        """Whether `op` reads a variable that is watched, or that is to be watched from now on."""
        if op.effect == "write":
            return False
        if self._watches_variables and variable.trainable and variable.dtype in INEXACT:
            self._watched.add(variable._uid)
            self._note_variable(variable)
        return variable._uid in self._watched

    def _record_many(self, below: Any, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int) -> Any:
        """Records an op with several outputs, or the variant of an op that also returns what its gradient needs."""
        swap = op.taped(inputs, attrs) if op.taped is not None else None
        if swap is not None:
            op, attrs = swap.op, swap.attrs
        elif op.taped is not None:  # nothing that is watched influences its outputs
            return below.process(op, inputs, attrs)
        out = below.process(op, inputs, attrs)
        outs = out if op.multiple else (out,)
        recipe = op.recipe(1 if op.variadic else mask)
        saved = recipe.save(inputs, out, attrs)
        names = tuple([_uid(y) if y.dtype in INEXACT else 0 for y in outs])
        self._watched.update(uid for uid in names if uid)
        given = [_uid_of(x) for x in inputs]
        shapes_, dtypes_ = [y.shape for y in outs], [y.dtype for y in outs]
        position = source.position(_getframe(1))
        self._entries.append((op, mask, names, saved, recipe, shapes_, dtypes_, *position, *given))
        if events.wanted(events.Recorded):
            self._emit(inputs)
        return out if swap is None else swap.result(out)

    def _note_variable(self, variable: Any) -> None:
        if variable._uid not in self._variables:
            self._variables[variable._uid] = weakref.ref(variable)

    # Going back

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: str = "none"
    ) -> Any:
        """The gradient of the sum of `target` with respect to `sources`, in the structure of `sources`.

        `output_gradients`, in the structure of `target`, are weights instead of ones (None means ones). Where a source
        does not influence the target the result is None, or zeros with `unconnected_gradients="zero"`. Complex
        gradients follow the conjugate convention: the steepest ascent of the real part.

        Raises TapeError on the second call of a tape that is not persistent, GradientError when an op on the way has
        no rule, ShapeError or DTypeError when an output gradient does not fit its target.
        """
        if unconnected_gradients not in ("none", "zero"):
            raise ArgumentError(f'unconnected_gradients must be "none" or "zero", got {unconnected_gradients!r}')
        self._begin()
        targets, structure = nest.flatten(target)
        wanted, source_structure = nest.flatten(sources)
        try:
            grads = self._seed(targets, _weights(output_gradients, structure, len(targets)))
            self._pull(grads, {_uid_of(x) for x in wanted})
            found = [_finish(grads.get(_uid_of(x)) if _uid_of(x) else None, x, unconnected_gradients) for x in wanted]
        finally:
            if not self.persistent:
                self._release()
        return nest.unflatten(source_structure, found)

    def _begin(self) -> None:
        if self._used and not self.persistent:
            raise TapeError(
                "this tape has answered already and let go of what it saved; "
                "make it with ll.GradientTape(persistent=True) to ask more than once"
            )
        self._used = True
        if self.active and not self.persistent:
            dispatch.remove(self)
        elif self.active and self._recording and not self._warned:
            self._warned = True
            warnings.warn(
                "gradient() of a persistent tape inside its own block records the gradient computation as well; "
                "leave the block first unless you want higher orders from this tape",
                stacklevel=3,
            )

    def _seed(self, targets: Sequence[Any], weights: Sequence[Any]) -> dict[int, Tensor]:
        grads: dict[int, Tensor] = {}
        for target, weight in zip(targets, weights, strict=True):
            uid = _uid_of(target)
            if uid in self._watched and uid:
                _accumulate(grads, uid, _output_gradient(target, weight))
        return grads

    def _pull(self, grads: dict[int, Tensor], wanted: set[int]) -> None:
        """Walks the entries backwards, turning gradients of outputs into gradients of inputs."""
        entries = [Entry.of(raw) for raw in self._entries]
        caller = source.user_stack() if dispatch.active else ()
        reached = self._reached(entries, wanted)
        for index in range(len(entries) - 1, -1, -1):
            entry = entries[index]
            if reached[index] and any(uid in grads for uid in entry.outputs):
                pulled = _pull_at_its_line(entry, grads, reached[index], wanted, caller)
                for uid, g in zip(entry.inputs, pulled, strict=True):
                    if g is not None and uid:
                        _accumulate(grads, uid, g)
            if not self.persistent and index < len(self._entries):
                del self._entries[index:]

    @staticmethod
    def _reached(entries: list[Entry], wanted: set[int]) -> list[int]:
        """For each entry the mask of the inputs that lead back to a wanted source."""
        connected = set(wanted)
        masks = []
        for entry in entries:
            mask = 0
            for i, uid in enumerate(entry.inputs):
                if uid in connected and entry.mask >> i & 1:
                    mask |= 1 << i
            if mask:
                connected.update(entry.outputs)
                connected.discard(0)
            masks.append(mask)
        return masks

    # For people

    @property
    def entries(self) -> tuple[EntryRecord, ...]:
        """What the tape holds, as records of texts and numbers."""
        specs: dict[int, str] = {}
        seen: set[int] = set()
        records = []
        for i, entry in enumerate(map(Entry.of, self._entries)):
            outputs = tuple(map(_spec_text, entry.shapes, entry.dtypes))
            inputs = tuple(specs.get(uid, "?" if uid else "-") for uid in entry.inputs)
            saved = {id(x): x for x in _tensors(entry.saved)}
            specs |= {x._uid: str(x.spec) for x in saved.values() if x._uid}
            nbytes = sum(_nbytes(x) for x in saved.values() if id(x) not in seen)
            seen |= saved.keys()
            specs |= dict(zip(entry.outputs, outputs, strict=True))
            records.append(
                EntryRecord(
                    i, entry.op.name, inputs, outputs, entry.recipe.names, nbytes, entry.op.rule, _source_of(entry)
                )
            )
        return tuple(records)

    @property
    def saved_bytes(self) -> int:
        """Bytes that the tape keeps alive."""
        return sum(record.saved_bytes for record in self.entries)

    def __repr__(self) -> str:
        state = "recording" if self.active else "used" if self._used and not self.persistent else "idle"
        return f"<GradientTape {self.id}: {state}, {len(self._entries)} entries>"

    def _emit(self, inputs: tuple[Any, ...]) -> None:
        entry = Entry.of(self._entries[-1])
        outputs = tuple(map(_spec_text, entry.shapes, entry.dtypes))
        saved = sum(_nbytes(x) for x in {id(x): x for x in _tensors(entry.saved)}.values())
        given = tuple(str(x.spec) if hasattr(x, "spec") else repr(x) for x in inputs)
        index, rule = len(self._entries) - 1, entry.op.rule
        events.emit(events.Recorded(self.id, index, entry.op.name, given, outputs, saved, rule, _source_of(entry)))

    def _release(self) -> None:
        if events.wanted(events.TapeReleased):
            events.emit(events.TapeReleased(self.id, len(self._entries), self.saved_bytes))
        self._entries.clear()


_alive: weakref.WeakSet[GradientTape] = weakref.WeakSet()


def alive() -> list[GradientTape]:
    """The tapes that exist, oldest first."""
    return sorted(_alive, key=lambda tape: tape.id)


def _uid(x: Any) -> int:
    if not x._uid:
        x._uid = new_uid()
    found: int = x._uid
    return found


def _uid_of(x: Any) -> int:
    found: int = getattr(x, "_uid", 0)
    return found


def _weights(given: Any, structure: nest.Structure, count: int) -> list[Any]:
    if given is None:
        return [None] * count
    leaves, its_structure = nest.flatten(given)
    if its_structure != structure:
        raise ArgumentError(f"output_gradients has structure {its_structure}, the target has {structure}")
    return leaves


def _output_gradient(target: Any, weight: Any) -> Tensor:
    if weight is None:
        return filled(1, target)
    given = as_tensor(weight)
    if not isinstance(weight, (Tensor, Resource)) and given.dtype != target.dtype:
        given = given.astype(target.dtype)
    if given.dtype != target.dtype:
        raise DTypeError(f"an output gradient of dtype {given.dtype.name} for a target of {target.dtype.name}")
    if not shapes.compatible(given.shape, target.shape) and shapes.is_static(given.shape):
        raise ShapeError(
            f"an output gradient of shape {shapes.show(given.shape)} for a target of shape {shapes.show(target.shape)}; "
            "it must have the target's own shape"
        )
    return given


def filled(value: int, like: Any) -> Tensor:
    """A tensor of `like`'s shape and dtype, sizes unknown while tracing included."""
    return _broadcast(value, like.shape if shapes.is_static(like.shape) else like.sizes(), like.dtype)


def zeros(sizes: Any, dtype: Any) -> Tensor:
    """Zeros of a shape as `Tensor.sizes` gives it."""
    return _broadcast(0, sizes, dtype)


def _broadcast(value: int, sizes: Any, dtype: Any) -> Tensor:
    scalar = constant(np.array(value, dtype))
    return scalar if type(sizes) is tuple and not sizes else scalar.broadcast_to(sizes)


def _accumulate(grads: dict[int, Tensor], uid: int, g: Tensor) -> None:
    present = grads.get(uid)
    grads[uid] = g if present is None else present + g


def _pull_at_its_line(
    entry: Entry, grads: dict[int, Tensor], needed: int, wanted: set[int], caller: tuple[Source, ...]
) -> Sequence[Any]:
    """Gradient ops belong to the line of their forward op, and to the one that asks; nobody looks when only kernels run."""
    if not dispatch.active:
        return _pull_entry(entry, grads, needed, wanted)
    with source.pretend((*_stack_of(entry), *caller)):
        return _pull_entry(entry, grads, needed, wanted)


def _pull_entry(entry: Entry, grads: dict[int, Tensor], needed: int, wanted: set[int]) -> Sequence[Any]:
    gs = [grads.get(uid) if uid in wanted else grads.pop(uid, None) for uid in entry.outputs]
    recipe = entry.recipe
    g = tuple(gs) if entry.op.multiple else gs[0]
    if recipe.pull_all is not None:
        return recipe.pull_all(g, entry.saved, tuple([bool(needed >> i & 1) for i in range(len(entry.inputs))]))
    return [
        pull(g, entry.saved) if pull is not None and needed >> i & 1 else None for i, pull in enumerate(recipe.pulls)
    ]


def _finish(g: Tensor | None, wanted: Any, unconnected: str) -> Any:
    if g is not None:
        home = getattr(wanted, "_device", None)
        return g.to(home) if home is not None and type(g) is Tensor and g._device is not home else g
    if unconnected == "none" or not isinstance(wanted, (Tensor, Resource)):
        return None
    return filled(0, wanted)


def _source_of(entry: Entry) -> Source | None:
    return None if entry.position is None else entry.position.resolve()


def _stack_of(entry: Entry) -> tuple[Source, ...]:
    found = _source_of(entry)
    return (found,) if found is not None else ()


def _spec_text(shape: Any, dtype: Any) -> str:
    return f"{dtypes.short(dtype)}[{','.join('?' if n is None else str(n) for n in shape)}]"


def _tensors(saved: tuple[Any, ...]) -> Iterator[Tensor]:
    for x in saved:
        if isinstance(x, Tensor):
            yield x
        elif isinstance(x, tuple):
            yield from _tensors(x)


def _nbytes(x: Tensor) -> int:
    """Bytes of a saved tensor; a symbolic one counts what its spec says, 0 where sizes are unknown."""
    return x.spec.nbytes or 0
