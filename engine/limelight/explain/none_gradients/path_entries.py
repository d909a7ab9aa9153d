"""Which entries of a tape lie between a target and its sources: what its gradient will run, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from limelight.autodiff import GradientTape
from limelight.autodiff.tape_entries import EntryRecord
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError
from limelight.explain.none_gradients.gradient_paths import edges_of, forwards
from limelight.user_code import source_line


@dataclass(frozen=True)
class GradientPath:
    """The entries of a tape on a way from a source to the target, in the order in which they ran.

    `entries` are records of those on the way, `recorded` is how many the tape holds; `str()` has a line for each.

    >>> import limelight as ll
    >>> v = ll.Variable(2.0)
    >>> with ll.GradientTape() as tape:
    ...     y = ll.exp(v * v)
    >>> path = ll.explain.gradient_path(tape, y, v)
    >>> len(path.entries), path.recorded
    (3, 3)
    """

    entries: tuple[EntryRecord, ...]
    recorded: int

    @property
    def nbytes(self) -> int:
        """Bytes that these entries keep alive."""
        return sum(entry.saved_bytes for entry in self.entries)

    def __str__(self) -> str:
        if not self.entries:
            return f"none of {self.recorded} entries leads from the sources to the target"
        head = f"{len(self.entries)} of {self.recorded} entries lead to the target, and keep {self.nbytes:,} bytes"
        return "\n".join([head, *map(_line, self.entries)])

    __repr__ = __str__


def _line(entry: EntryRecord) -> str:
    types = f"{', '.join(entry.inputs)} → {', '.join(entry.outputs)}"
    return f"{entry.index:>5}  {entry.op:16} {types}{source_line.at(entry.source)}"


def gradient_path(tape: GradientTape, target: Any, sources: Any = None) -> GradientPath:
    """The entries of `tape` that `tape.gradient(target, sources)` would go back through; nothing is run.

    Ask before `gradient`, or with a persistent tape: one that has answered holds no entries any more.

    Args:
        tape: that recorded.
        target: a tensor or a variable.
        sources: one, or a list of them; None for whatever the tape watches.

    Raises:
        ArgumentError: for anything else, and for a tape that has let go of its entries.

    >>> import limelight as ll
    >>> x = ll.constant(2.0)
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    ...     z = ll.sin(x)
    ...     loss = ll.exp(y)
    >>> [entry.op for entry in ll.explain.gradient_path(tape, loss, x).entries]
    ['multiply', 'exp']
    """
    if not isinstance(tape, GradientTape):
        raise ArgumentError(f"explain.gradient_path needs a gradient tape, got {type(tape).__name__}")
    asked = list(sources) if isinstance(sources, (list, tuple)) else [] if sources is None else [sources]
    for what, x in (("target", target), *(("source", one) for one in asked)):
        if not isinstance(x, (Tensor, Resource)):
            raise ArgumentError(
                f"explain.gradient_path: the {what} must be a tensor or a variable, got {type(x).__name__}"
            )
    if tape._used and not tape._entries:
        raise ArgumentError("this tape has answered, and let go of its entries: ask before gradient(), or make it with "
                            "GradientTape(persistent=True)")  # fmt: skip
    return _between(tape, target, asked, sources is None)


def _between(tape: GradientTape, target: Any, asked: Sequence[Any], all_watched: bool) -> GradientPath:
    """What can be got to from the sources, and from there to the target."""
    edges, records = edges_of(tape), tape.entries
    reached: set[int] = set()
    for uid in tape._watched if all_watched else [one._uid for one in asked]:
        reached |= {uid} if all_watched else forwards(tape, uid).uids
    needed, places = {target._uid}, []
    for place in reversed(range(len(edges))):
        edge = edges[place]
        if needed.intersection(edge.outputs) and reached.intersection(edge.inputs):
            places.append(place)
            needed.update(edge.inputs)
    return GradientPath(tuple([records[place] for place in reversed(places)]), len(records))
