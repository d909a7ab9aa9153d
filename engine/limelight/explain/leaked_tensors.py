"""Which symbolic tensors have outlived their trace, and what keeps them?

A holder is searched for from the user's own names (`user_code.holders`), not backwards from the tensor: asking the
garbage collector for referrers walks the whole heap at each step.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from limelight.core import heap
from limelight.explain.story import Place, Story
from limelight.explain.subject import staged_functions
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code.holders import Holder, first_holder
from limelight.user_code.source_line import Source

_MOST: Final = 20
_ADVICE: Final = "A trace's tensors have no value once it has ended. Return them, or keep values in an ll.Variable."
_SECONDS: Final = 2.0
_IN_ALL: Final = 6.0
"""How long one tensor is looked for, and all of them."""


class Leak(NamedTuple):
    """A symbolic tensor without a trace: what it is, where it was made, and a place that keeps it (None: not found).

    >>> import limelight as ll
    >>> import types
    >>> shelf = types.SimpleNamespace(kept=[])
    >>> keep = ll.function(lambda x: shelf.kept.append(x + 1.0) or x)
    >>> y = keep(ll.constant(1.0))
    >>> ll.explain.leaks(keep).records[0].spec
    'f32[]'
    """

    what: str
    spec: str
    function: str
    line: Source | None
    holder: Holder | None

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        kept = "nothing with a name keeps it" if self.holder is None else f"kept as {self.holder}"
        title = f"{self.what}, {self.spec}, of the trace of `{self.function}`"
        return Story("leaked tensor", title, ("outlived its trace",), (kept,), places=Place.of("made", self.line))


@dataclass(frozen=True)
class Leaks:
    """The symbolic tensors that are still there although their trace has ended; `str()` has a line for each.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x + x)
    >>> y = double(ll.constant(1.0))
    >>> ll.explain.leaks(double).records
    ()
    """

    records: tuple[Leak, ...]

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each tensor."""
        return tuple([replace(record.to_story(), hints=(_ADVICE,)) for record in self.records])

    def __str__(self) -> str:
        if not self.records:
            return "no symbolic tensor has outlived its trace"
        lines = [f"  {record}" for record in self.records]
        count = len(self.records)
        said = "1 symbolic tensor has outlived its trace" if count == 1 else f"{count} symbolic tensors outlived theirs"
        return "\n".join([f"{said}:", *lines, _ADVICE])

    __repr__ = __str__


def leaks(F: Any = None) -> Leaks:
    """The symbolic tensors that outlived a trace of `F` (None: of any function), each with a chain that keeps it.

    Lists up to twenty. Tensors that a trace of another function has captured are not listed: that trace is made anew
    when it is needed. Raises ArgumentError for an `F` that is no staged function.

    >>> import limelight as ll
    >>> import types
    >>> shelf = types.SimpleNamespace(kept=[])
    >>> @ll.function
    ... def f(x):
    ...     shelf.kept.append(x + 1.0)
    ...     return x
    >>> y = f(ll.constant(1.0))
    >>> [(leak.what, leak.holder.path) for leak in ll.explain.leaks(f).records]
    [('the result of add', 'shelf.kept[0]')]
    """
    owners = None if F is None else {one.id for one in staged_functions("leaks", F)}
    end = time.perf_counter() + _IN_ALL
    gc.collect()
    alive = [x for x in heap.living({SymbolicTensor: "_tracer"}) if x._tracer.finished]
    leaked = [x for x in alive if owners is None or x._tracer.owner in owners]
    del alive  # this list and the next would be holders
    leaked.sort(key=lambda x: (x._tracer.name, x.name))
    captured = {id(y) for x in leaked for y in x._tracer.captures}
    records: list[Leak] = []
    while leaked and len(records) < _MOST:
        x = leaked.pop(0)
        leak = _leak(x, min(_SECONDS, max(0.1, end - time.perf_counter())))
        by_right = id(x) in captured if leak.holder is None else "._captures[" in leak.holder.path
        if not by_right:
            records.append(leak)
    return Leaks(tuple(records))


def _leak(x: SymbolicTensor, seconds: float) -> Leak:
    return Leak(x.name, str(x.spec), x._tracer.name, x.line, first_holder(x, seconds))
