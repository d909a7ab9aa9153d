"""Why is this gradient None?

Answered from what the tape noted of the ops that it did not record, or, where there is one, from a `History`, which
takes down every op: it alone can tell what was watched too late, or computed outside the tape's block.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from limelight.autodiff import INEXACT, GradientTape
from limelight.autodiff.cut_provenance import MAX_VALUES, ancestors
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource
from limelight.errors import ArgumentError
from limelight.explain.fix import Fix
from limelight.explain.none_gradients import fixes, op_history
from limelight.explain.none_gradients.gradient_paths import (
    Ancestry,
    Cut,
    Reach,
    backwards,
    edges_of,
    forwards,
    knows,
    picks,
)
from limelight.explain.story import Place, Story
from limelight.user_code.source_line import Source, at, locals_of

CAUSES: Final = (
    "connected",
    "never watched",
    "watched too late",
    "read outside the tape",
    "recording paused",
    "left through NumPy",
    "integer or boolean dtype",
    "stop_gradient",
    "assign",
    "no rule",
    "not reachable",
    "tape already used",
)


@dataclass(frozen=True)
class WhyNone:
    """The first place where the way from a source to a target breaks.

    `cause` is one of `CAUSES`; `op` the op that breaks it, and `line` the user's line, where there are such; `fix` code
    that mends it, to stand before or instead of that line, or nothing where that is not for code to say. `str()` is the
    whole as a sentence.

    >>> import limelight as ll
    >>> x = ll.constant(2.0)
    >>> with ll.GradientTape() as tape:
    ...     y = x * x
    >>> ll.explain.why_none(tape, y, x).fix
    'tape.watch(x)'
    """

    cause: str
    sentence: str
    op: str = ""
    line: Source | None = None
    fix: str = ""

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        title, _, said = self.sentence.partition(": ")
        causes = tuple(filter(None, dict.fromkeys((self.cause, self.op))))
        fixes = Fix.of_line(self.fix, self.line)
        return Story(
            "gradient" if self.cause == "connected" else "None gradient",
            title,
            causes,
            (said,) if said else (),
            places=Place.of("line", self.line),
            fixes=fixes,
        )

    __repr__ = __str__


def why_none(tape: GradientTape, target: Any, source: Any, *, scope: Mapping[str, Any] | None = None) -> WhyNone:
    """Why `tape.gradient(target, source)` is None: the first break on the way, the op, the line, and the fix.

    Ask before `gradient`, or with a persistent tape, which still has what it recorded; one that has answered knows
    less. A tape does not see what depends on nothing that it watches. So where a source may have been watched too late,
    or a target computed outside the block, run the block again within `ll.explain.History()`. The answer uses the names
    that `scope` has for things, by default the calling code. Raises ArgumentError for anything but a tape and two
    tensors or variables.

    >>> import limelight as ll
    >>> x = ll.constant(2.0)
    >>> with ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    ...     z = ll.stop_gradient(y) * 3.0
    >>> reason = ll.explain.why_none(tape, z, x)
    >>> reason.cause, reason.op
    ('stop_gradient', 'stop_gradient')
    """
    if not isinstance(tape, GradientTape):
        raise ArgumentError(f"explain.why_none needs a gradient tape, got {type(tape).__name__}")
    for what, x in (("target", target), ("source", source)):
        if not isinstance(x, (Tensor, Resource)):
            raise ArgumentError(f"explain.why_none: the {what} must be a tensor or a variable, got {type(x).__name__}")
    frame = sys._getframe(1)
    scopes = (locals_of(frame), frame.f_globals) if scope is None else (scope,)
    return _Question(tape, target, source, scopes).answer()


class _Question:
    """One tape, target and source, with the names that the asking code has for them.

    Args:
        tape: that was asked for the gradient.
        target: what was to be differentiated.
        source: by what.
        scopes: names and what they stand for, the nearest first.
    """

    def __init__(self, tape: GradientTape, target: Any, source: Any, scopes: Sequence[Mapping[str, Any]]) -> None:
        self.tape = tape
        self.target = target
        self.source = source
        self.scopes = scopes
        self.target_name = fixes.name_of(target, scopes, "target")
        self.source_name = fixes.name_of(source, scopes, "source")
        self.tape_name = fixes.name_of(tape, scopes, "tape")

    def answer(self) -> WhyNone:
        if self.source.dtype not in INEXACT:
            cast = f"ll.astype({self.source_name}, ll.float32)"
            if isinstance(self.source, Resource):  # what a cast gives is a tensor, which no tape watches by itself
                cast = f"ll.Variable({cast})"
            cast = f"{self.source_name} = {cast}"
            said = (
                f"`{self.source_name}` is {self.source.dtype.name}; an index or a condition has none: ask for what "
                "it picks from; a number that is computed with has one where it is floating"
            )
            return self._say("integer or boolean dtype", said, fix="" if picks(edges_of(self.tape)) else cast)
        if (other := self._other_tape()) is not None:
            said = f"`{self.target_name}` was computed on `{other}`, not on `{self.tape_name}`: ask that tape"
            return self._say("read outside the tape", said)
        self.tape._watch_variables([self.target])
        if self.target is self.source and self.source._uid in self.tape._watched:
            return self._say("connected", f"`{self.target_name}` is `{self.source_name}`, so the gradient is 1")
        steps = op_history.of(self.tape)
        if self.source._uid not in self.tape._watched and not steps:
            return self._unwatched()
        reach = forwards(self.tape, self.source._uid)
        if self.target._uid and self.target._uid in reach.uids:
            return self._connected(reach)
        if steps:
            return self._by_history(backwards(steps, self.target._uid, self.source._uid), reach)
        if self.tape._used and not self.tape.persistent and self.tape._edges_left is None:
            return self._by_used_tape(reach)
        return self._by_cuts(reach)

    def _other_tape(self) -> str | None:
        """The name of the tape that the target is of, where it is of another one alone."""
        if self.target is self.source or knows(self.tape, self.target):
            return None
        named = [(name, one) for names in self.scopes for name, one in names.items() if isinstance(one, GradientTape)]
        return next((name for name, one in named if one is not self.tape and knows(one, self.target)), None)

    def _connected(self, reach: Reach) -> WhyNone:
        own = [edge for edge in reach.edges if edge.op.name in ("custom_gradient", "custom_forward")]
        said = f"every op from `{self.source_name}` to `{self.target_name}` was recorded, and differentiates"
        if own:
            said += "; if the gradient is None all the same, the gradient function of a custom_gradient returns None"
        lines = dict.fromkeys(cut.source for cut in reach.cuts if cut.op is None and cut.source is not None)
        if lines:
            places = ", ".join(map(str, lines))
            said += f"; but values were read as numbers at {places}: what was computed from those has no gradient"
        cuts = [cut for cut in self._cuts_on_the_way(reach) if cut.op is not None and _is_flow(cut)]
        if cuts:
            ends = dict.fromkeys(_in_words(cut) + at(cut.source) for cut in cuts)
            said += f"; but not on every path: {'; '.join(ends)}"
        return self._say("connected", said, line=own[0].source if own else None)

    def _unwatched(self) -> WhyNone:
        """The source is not watched, and nobody knows what happened outside the tape's sight."""
        watch = f"{self.tape_name}.watch({self.source_name})"
        if not isinstance(self.source, Resource):
            said = f"`{self.source_name}` was never watched: a tape follows variables by itself, tensors when told to"
            return self._say("never watched", said, fix=watch)
        if not self.source.trainable:
            return self._say(
                "never watched", f"`{self.source_name}` is not trainable, so the tape does not watch it", fix=watch
            )
        if not self.tape._watches_variables:
            said = f"the tape watches no variables by itself, and `{self.source_name}` was never watched"
            return self._say("never watched", said, fix=watch)
        said = f"`{self.source_name}` was not read while the tape was recording: read it within the tape's block"
        return self._say("read outside the tape", said)

    def _by_used_tape(self, reach: Reach) -> WhyNone:
        hint = f"; before that, {_in_words(reach.cuts[0])}" if reach.cuts else ""
        said = f"the tape has answered already and let go of what it recorded{hint}"
        line = reach.cuts[0].source if reach.cuts else None
        return self._say("tape already used", said, line=line, fix="ll.GradientTape(persistent=True)")

    def _by_cuts(self, reach: Reach) -> WhyNone:
        """From what the tape itself noted."""
        cuts = self._cuts_before_target(reach)
        if cuts:  # what decides a branch is an integer, and hardly what was meant
            return self._cut(next((cut for cut in cuts if not cut.integer), cuts[0]))
        if reach.edges:
            last = next((edge for edge in reversed(reach.edges) if _is_public(edge.op.name)), None)
            ends = f"; what the tape recorded of it ends with {last.op}" if last is not None else ""
            said = f"`{self.source_name}` is not used by `{self.target_name}`, as far as the tape recorded{ends}"
            line = reach.edges[-1].source if last is None else last.source
            return self._say("not reachable", said, op="" if last is None else last.op.name, line=line)
        said = (
            f"the tape recorded nothing that uses `{self.source_name}`: `{self.target_name}` does not depend on it, "
            f"was computed outside the block, or `{self.source_name}` was watched too late; run the block within "
            "ll.explain.History() to know which"
        )
        return self._say("not reachable", said, fix="with ll.explain.History():")

    def _cuts_on_the_way(self, reach: Reach) -> list[Cut]:
        """The cuts of whose results the target came, by ops alone."""
        uid = self.target._uid
        before = ancestors(uid, self.tape._cut_descendants, edges_of(self.tape), self.tape._cuts) if uid else set()
        return [cut for cut in reach.cuts if not before.isdisjoint(cut.outputs)]

    def _cuts_before_target(self, reach: Reach) -> list[Cut]:
        """The cuts that the target came of; else those whose results went where no tape looks: to Python, to NumPy."""
        if on_the_way := self._cuts_on_the_way(reach):
            return on_the_way
        uid = self.target._uid
        forgotten = len(self.tape._cut_descendants) >= MAX_VALUES
        left = [cut for cut in reach.cuts if cut.op is None or 0 in cut.outputs or forgotten]
        left = [cut for cut in left if not uid or uid not in cut.beside]
        own = [cut for cut in left if cut.source is not None and self.target_name in fixes.assigned(cut.source.text)]
        return own or left

    def _cut(self, cut: Cut) -> WhyNone:
        cause = _cause(cut)
        name = cut.op.name if cut.op is not None else ""
        return self._say(cause, _in_words(cut), op=name, line=cut.source, fix=fixes.of_cut(cause, cut.source, name))

    def _by_history(self, ancestry: Ancestry, reach: Reach) -> WhyNone:
        """From a history: the first step of the way that the tape did not take down."""
        for step in ancestry.path:
            assert step.op is not None, "a constant leads from nothing"
            recording, watched = step.tapes.get(self.tape.id), step.watched.get(self.tape.id, ())
            if recording is None:
                way = f"on the way from `{self.source_name}` to `{self.target_name}`"
                said = f"{step.op}, {way}, ran outside the tape's block"
                return self._say("read outside the tape", said, op=step.op.name, line=step.source)
            if not recording:
                said = f"{step.op} ran while the recording was paused"
                return self._say("recording paused", said, op=step.op.name, line=step.source)
            if step is ancestry.path[0] and not any(watched):
                return self._watched_too_late(step.op.name, step.source)
            if step.op.vjp is None or not any(uid in reach.uids for uid in step.outputs):
                cuts = [cut for cut in reach.cuts if set(cut.outputs).intersection(step.outputs)]
                return self._cut(cuts[0] if cuts else Cut(step.op, step.source, step.op.vjp is not None, "", ()))
        return self._without_path(ancestry, reach)

    def _watched_too_late(self, op: str, line: Source | None) -> WhyNone:
        watch = f"{self.tape_name}.watch({self.source_name})"
        if self.source._uid in self.tape._watched:
            return self._say(
                "watched too late", f"`{self.source_name}` was watched only after {op}", op=op, line=line, fix=watch
            )
        return self._unwatched()

    def _without_path(self, ancestry: Ancestry, reach: Reach) -> WhyNone:
        if self.source._uid not in self.tape._watched:
            return self._unwatched()
        left = [cut for cut in reach.cuts if cut.op is None]
        if left and (ancestry.constants or not ancestry.is_recorded):
            return self._cut(left[0])
        if not ancestry.is_recorded:
            return self._say("read outside the tape", f"`{self.target_name}` was computed outside the tape's block")
        return self._say("not reachable", f"`{self.target_name}` does not depend on `{self.source_name}`")

    def _say(self, cause: str, said: str, op: str = "", line: Source | None = None, fix: str = "") -> WhyNone:
        """The answer.

        Args:
            cause: one of `CAUSES`.
            said: the sentence, from what is the matter on.
            op: that breaks the way.
            line: of the user's, at which it does.
            fix: code.
        """
        head = "" if cause == "connected" else f"`{self.target_name}` has no gradient for `{self.source_name}`: "
        if cause == "tape already used":  # there may have been one
            head = f"of `{self.target_name}` and `{self.source_name}` nothing is known any more: "
        return WhyNone(cause, head + said, op, line, fix)


def _cause(cut: Cut) -> str:
    if cut.op is None:
        return "left through NumPy"
    if cut.op == "stop_gradient":
        return "stop_gradient"
    if cut.op.effect == "write":
        return "assign"
    return "integer or boolean dtype" if cut.integer else "no rule"


def _is_flow(cut: Cut) -> bool:
    """Whether a number is computed with beyond the cut: what gives conditions and indices is hardly a path."""
    return not cut.integer or cut.op == "astype"


def _reason(cut: Cut) -> str:
    """What the op itself declares, and what to do about it."""
    assert cut.op is not None
    declared = f": {cut.op.why_no_gradient}" if cut.op.why_no_gradient else ""
    return declared + fixes.advice(cut.op.name)


def _in_words(cut: Cut) -> str:
    """A cut in words."""
    inside = f" in {cut.inside}" if cut.inside else ""
    match _cause(cut):
        case "left through NumPy":
            return "its value left through NumPy, where nothing is recorded"
        case "assign":
            return f"connection cut by assign{inside}: a variable remembers a value, not where it came from"
        case "integer or boolean dtype":
            return f"{cut.op}{inside} gives integers or booleans, which have no gradient{_reason(cut)}"
        case _:
            assert cut.op is not None
            return f"it ends at {cut.op}{inside}: {cut.op.why_no_gradient or 'its rule gives nothing for this input'}"


def _is_public(op: str) -> bool:
    """Whether readers know the op by that name: not how staged functions are called, and such."""
    library = sys.modules["limelight"]
    return any(hasattr(home, op) for home in (library, library.nn, library.linalg, library.fft, library.random))
