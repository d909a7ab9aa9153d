"""The entries of a tape, one for each recorded op: their fields, and records of them for people.

An entry is one flat tuple (`core.op.TapeEntry`), made by a function that is generated for the op: what went in and came
out by uids, what the rules need (handles, so that an outer tape still knows them, numbers and shapes), and the code
object and instruction of the user's frame, which become a line only when somebody looks. For an op with several outputs
the fields of the output are sequences. A uid of 0 is an input or output that cannot carry a gradient; code and
instruction are the fields of a `source_line.Position`, or None and 0.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from limelight.core import dtypes, name_scopes
from limelight.core.op import SAVED, TapeEntry, VjpRecipe
from limelight.core.tensor import Tensor
from limelight.core.variable_names import paths_of
from limelight.user_code import source_line as source
from limelight.user_code.source_line import Position, Source


class EntryFields(NamedTuple):
    """An entry with its fields named and outputs always in sequences: for people, not for the way back."""

    recipe: VjpRecipe
    inputs: Sequence[int]
    outputs: Sequence[int]
    saved: tuple[Any, ...]
    shapes: Sequence[Any]
    dtypes: Sequence[Any]
    source: Source | None


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """A tape entry as shown to people: `inputs` and `outputs` are spec texts, `saved_bytes` is what it keeps alive."""

    index: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    saved: tuple[str, ...]
    saved_bytes: int
    rule: str
    source: Source | None


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor that a tape keeps alive for its rules.

    `made_by` is the entry it came from (None: from outside), `needed_by` those whose rules read it.
    """

    spec: str
    nbytes: int
    made_by: int | None
    needed_by: tuple[int, ...]


def saved_tensors(entries: Iterable[TapeEntry]) -> tuple[SavedTensor, ...]:
    """Each tensor that entries save, once, the largest first."""
    made: dict[int, int] = {}
    kept: dict[int, Any] = {}
    needed: dict[int, list[int]] = {}
    for i, entry in enumerate(map(fields_of, entries)):
        made |= dict.fromkeys((uid for uid in entry.outputs if uid), i)
        for x in {id(x): x for x in _tensors(entry.saved)}.values():
            kept[id(x)] = x
            needed.setdefault(id(x), []).append(i)
    records = [SavedTensor(input_text(x), _nbytes(x), made.get(x._uid), tuple(needed[key])) for key, x in kept.items()]
    return tuple(sorted(records, key=lambda record: -record.nbytes))


def saved_in(entries: Iterable[TapeEntry]) -> Iterator[Tensor]:
    """The tensors that entries save."""
    for entry in entries:
        yield from _tensors(fields_of(entry).saved)


def mask_of(uids: Iterable[int], watched: Container[int]) -> int:
    """Which of the inputs are watched, as bits."""
    mask, bit = 0, 1
    for uid in uids:
        if uid in watched:
            mask |= bit
        bit <<= 1
    return mask


def fields_of(raw: TapeEntry) -> EntryFields:
    """The fields of an entry."""
    recipe, outputs, shape, dtype = raw[:4]
    saved, inputs = raw[SAVED : recipe.first_input], raw[recipe.first_input :]
    if isinstance(outputs, int):
        return EntryFields(recipe, inputs, (outputs,), saved, (shape,), (dtype,), source_of(raw))
    return EntryFields(recipe, inputs, outputs, saved, shape, dtype, source_of(raw))


def source_of(raw: TapeEntry) -> Source | None:
    """The user's line that ran the op."""
    code, instruction = raw[4:SAVED]
    return None if code is None else Position(code, instruction).resolve()


def placed(frame: FrameType | None) -> tuple[Any, int]:
    """`source_line.place`; in a trace, a line with its name scope and module call, to which its gradient belongs."""
    code, instruction = source.place(frame)
    trace = name_scopes.graph_writer()
    if trace is None or code is None or isinstance(code, source.ScopedSource):
        return code, instruction
    call = None if trace.calls is None else trace.calls.now
    scope = name_scopes.current_name_scope() if name_scopes.named_scopes else ""
    if call is not None:
        return call.line_at(code, instruction, scope), 0
    if not scope:
        return code, instruction
    line = source.ScopedSource(*Position(code, instruction).resolve())
    line.scope = scope
    return (line, 0)


def entry_records(entries: Iterable[TapeEntry], variables: Iterable[Any] = ()) -> tuple[EntryRecord, ...]:
    """The entries as texts and numbers. What several of them save is counted once, with the first.

    `variables` are shown by their path in a module, or by name. Of another input only its number is kept, unless an
    entry has saved or made it: "?"; "-" is an input that the tape does not watch.
    """
    known = list(variables)
    paths = paths_of(known)
    specs: dict[int, str] = {variable._uid: input_text(variable, paths.get(variable._uid, "")) for variable in known}
    found = list(map(fields_of, entries))
    for entry in found:
        saved_specs = {x._uid: str(x.spec) for x in _tensors(entry.saved) if x._uid}
        for uid, spec in (saved_specs | dict(zip(entry.outputs, specs_of(entry), strict=True))).items():
            specs.setdefault(uid, spec)
    seen: set[int] = set()
    records = []
    for i, entry in enumerate(found):
        inputs = tuple(specs.get(uid, "?" if uid else "-") for uid in entry.inputs)
        saved = {id(x): x for x in _tensors(entry.saved)}
        nbytes = sum(_nbytes(x) for x in saved.values() if id(x) not in seen)
        seen |= saved.keys()
        op = entry.recipe.op
        records.append(
            EntryRecord(i, op.name, inputs, specs_of(entry), entry.recipe.names, nbytes, op.rule, entry.source)
        )
    return tuple(records)


def input_text(x: Any, path: str = "") -> str:
    """An input as a record shows it: "f32[10]", a variable with its path, or with its name."""
    if not hasattr(x, "spec"):
        return repr(x)
    value = getattr(x.spec, "value", None)
    if value is None:
        return str(x.spec)
    name = path or getattr(x, "name", "")  # what stands for a variable while a graph is rebuilt has none
    return f"{name} {value}" if name else f"variable {value}"


def specs_of(entry: EntryFields) -> tuple[str, ...]:
    """The types of the outputs: "f32[10]"."""
    return tuple(map(_spec_text, entry.shapes, entry.dtypes))


def saved_bytes(entry: EntryFields) -> int:
    """Bytes that one entry keeps alive."""
    return sum(_nbytes(x) for x in {id(x): x for x in _tensors(entry.saved)}.values())


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
