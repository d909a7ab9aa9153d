"""A miss in words: the record of why a staged function was traced again, and the sentences that it prints.

Made by `diagnosis`. Such a record holds words, numbers and the types of tensors; it keeps nothing of the user's alive.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from limelight.explain.fix import Fix
from limelight.explain.retracing.causes import ADVICE, Cause
from limelight.explain.retracing.key_diff import Change, show
from limelight.explain.story import MOST, SPELLED, Place, Story, differences, retrace_clauses
from limelight.user_code.source_line import Source


class Difference(NamedTuple):
    """One part of the arguments that differs from those of the closest trace; `fix` is code, empty where none helps."""

    path: str
    before: str
    after: str
    cause: str
    detail: str
    fix: str


class Closest(NamedTuple):
    """The trace that a call came closest to: its number (from 1), where it was made, how many calls used it."""

    number: int
    where: str
    uses: int

    @classmethod
    def of(cls, trace: Any) -> Closest:
        """A trace of a cache, in words that outlive it."""
        return cls(trace.index + 1, trace.where, trace.hits + 1)

    def __str__(self) -> str:
        return f"trace #{self.number} ({self.where}, used {times(self.uses)})"


@dataclass(frozen=True, slots=True)
class Miss:
    """Why one call traced. `str()` is the whole story in a few sentences.

    Args:
        function: its name.
        where: the line of the call, in words.
        cause: the greatest of the causes of all `changes`, or what concerns the call as a whole.
        number: that of the new trace, from 1.
        changes: what differs from the closest trace, in the order of the arguments.
        closest: that trace; None where there was none to compare with.
        fixes: what to write instead.
        note: words about the call as a whole.
        advice: words about what else could be done.
        inside: the function that was being traced around the call; empty for a call of its own.
        seconds: what tracing took; None for a prediction.
        created: how many variables the function created while it was traced.
        line: of the call, if that is the user's.
        made_at: `time.perf_counter()` at the call, in seconds.
        undecided: makes the record that takes this one's place once the trace is there, where only that can tell more.
    """

    function: str
    where: str
    cause: Cause
    number: int
    changes: tuple[Change, ...] = ()
    closest: Closest | None = None
    fixes: tuple[Fix, ...] = ()
    note: str = ""
    advice: str = ""
    inside: str = ""
    seconds: float | None = None
    created: int = 0
    line: Source | None = field(default=None, compare=False)
    made_at: float = field(default_factory=time.perf_counter, compare=False)
    undecided: Callable[[Any], Miss] | None = field(default=None, compare=False, repr=False)

    def with_trace(self, trace: Any, seconds: float, created: int = 0) -> Miss:
        """What is to be said of a trace that took so long and in which the function created so many variables."""
        record = self if self.undecided is None else self.undecided(trace)
        known = dataclasses.replace(record, inside=self.inside, line=self.line, made_at=self.made_at)
        return dataclasses.replace(known, seconds=seconds, created=created, undecided=None)

    def settled(self) -> Miss:
        """This record where no trace will be made: it has no hold on the call any more."""
        return dataclasses.replace(self, undecided=None)

    @property
    def first(self) -> bool:
        """Whether it was the first trace of a function, rather than one that might have been spared."""
        return self.cause in (Cause.FIRST, Cause.REMADE, Cause.RERUN, Cause.EDITED)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Every differing part, in the order of the arguments."""
        code = {path: fix.code for fix in reversed(self.fixes) for path in fix.paths}
        return tuple([
            Difference(c.path, show(c.before), show(c.after), str(c.cause), c.detail, code.get(c.path, ""))
            for c in self.changes
        ])  # fmt: skip

    @property
    def fix(self) -> str:
        """Code, one line or more; empty where there is no other way than to trace."""
        return "\n".join([fix.code for fix in self.fixes])

    @property
    def reason(self) -> str:
        """What has changed, without the rest of the story."""
        return differences(self.to_story())

    def __str__(self) -> str:
        return str(self.to_story())

    @property
    def story(self) -> str:
        """What `str()` says, but for which function traced where."""
        return retrace_clauses(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        inside = f" while tracing `{self.inside}`" if self.inside else ""
        closest = () if self.closest is None else (Place("closest", str(self.closest)),)
        plural = "s" if self.created > 1 else ""
        created = f"Its Python code ran twice, since it created {self.created} variable{plural}."
        return Story(
            "trace" if self.first else "retrace",
            f"`{self.function}` traced{'' if self.first else ' again'}",
            tuple(dict.fromkeys([str(self.cause), *[str(change.cause) for change in self.changes[:MOST]]])),
            () if self.changes else (self.note,),
            tuple([change.contrast for change in self.changes[:MOST]]),
            max(len(self.changes) - MOST, 0),
            "" if self.seconds is None else duration(self.seconds),
            self.seconds or 0.0,
            places=(Place("call", f"{self.where}{inside}"), *closest),
            hints=tuple(self._hints()),
            fixes=self.fixes,
            more=(created,) if self.created else (),
        )

    def _hints(self) -> list[str]:
        said = [self.advice] if self.advice else []
        if self.fixes:
            return said + self._unmended()
        path = next((change.path for change in self.changes if change.cause is self.cause), "n")
        return said or ([ADVICE[self.cause].replace("{path}", path)] if self.cause in ADVICE else [])

    def _unmended(self) -> list[str]:
        """A sentence if the fixes leave something that differs, which makes a trace by itself."""
        mended = {path for fix in self.fixes for path in fix.paths}
        left = [f"`{change.path}`" for change in self.changes if change.path not in mended]
        if not left:
            return []
        more = [f"{len(left) - SPELLED} more"] if len(left) > SPELLED else []
        names = " and ".join([*left[:SPELLED], *more])
        return [f"The fix leaves {names}: another value there traces again."]


def times(count: int) -> str:
    """How often, as people say it: "once", "1,200 times"."""
    return "once" if count == 1 else f"{count:,} times"


def duration(seconds: float) -> str:
    """Seconds as people say them: "38 ms"."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.1f} ms"
