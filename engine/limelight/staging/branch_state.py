"""Variables that are made while a branch or the body of a loop is traced, and so whether or not a run comes there.

Eager code makes them when the branch first runs. That is the same where each branch uses them, in the same order, as in
`ll.cond(p, lambda: net(x), lambda: -net(x))`: whichever runs makes them. Else a warning says so at their line. It waits
until all branches are traced (`settle`); within another branch what is used here for sure is that one's to settle.

A loop makes them in its first round, and most loops have one: so its first condition is worked out for the call that is
traced (`settle_loop`), and the warning comes where it does not hold. Where that cannot be known (is there a first
batch?) nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from limelight.core import dispatch
from limelight.core.module_calls import calls_around
from limelight.core.spec import VariableSpec
from limelight.core.variable import found_again, lift
from limelight.errors import LimelightError
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

_SAID: Final = (
    "{what} is made while a branch is traced, whether or not a run takes it: eager code makes it when the branch first "
    "runs{numbers}. For the same in both {how}"
)
_IN_LOOP: Final = (
    "{what} is made while the body of a loop is traced, which has no round in this call: eager code makes it in the "
    "first round{numbers}. For the same in both {how}"
)
_NUMBERS: Final = ", and until then the random numbers that follow are others"
_HOW: Final = {"layer": "call the layer once before, or write net.build(shape)"}


@dataclass(eq=False, slots=True)
class Made:
    """A variable that a branch has made: what made it, on which line, and whether its initial value was drawn."""

    variable: Any
    by: str
    line: source_line.Source | None
    drawn: bool = False


def note(variable: Any, by: str) -> Made | None:
    """Takes note of a new variable where a branch or a body is traced; returns the note, None elsewhere."""
    branch = _branch()
    if branch is None:
        return None
    made = Made(variable, by, source_line.user_line())
    branch.made.append(made)
    return made


def settle(branches: Sequence[Tracer], around: Tracer | None) -> None:
    """Warns of what only some of `branches` use, of which a run takes one (or, where it is but one, perhaps none).

    Args:
        branches: the branches, traced.
        around: the trace that they belong to, which learns what a run of it may not use.
    """
    used = [branch.captured.keys() - branch.perhaps for branch in branches]
    in_all = set.intersection(*map(set, used)) if len(branches) > 1 else set()
    met = {uid for branch in branches for uid in branch.captured}
    if around is not None:
        around.perhaps |= (met - in_all) - around.captured.keys()
    made = [one for branch in branches for one in branch.made]
    if not made:
        return
    alike = all(_orders(branch, made) == _orders(branches[0], made) for branch in branches)
    together = {one.line for one in made if one.variable._uid in in_all}  # a layer may make more than it uses here
    early = [
        one
        for one in made
        if not (one.variable._uid in in_all or (one.variable._uid not in met and one.line in together))
        or (one.drawn and not alike)
    ]
    outer = _branch()
    if outer is not None:
        outer.made += [one for one in made if one not in early]
    lines = {one.line: one for one in sorted(early, key=lambda one: one.drawn)}  # a sentence each, of draws if any
    for line, one in lines.items():
        if line is not None:
            warn_at(line, _sentence(one), UserWarning)


def settle_loop(body: Tracer, begins: Callable[[], Any]) -> None:
    """Warns of what the body of a loop has made, where the loop has no round in the call that is traced.

    Args:
        body: the body, traced.
        begins: gives what says whether there is a first round: a tensor of the trace around, or a bool.
    """
    if not body.made:
        return
    outer = _branch()
    if _known(begins) is not False:
        if outer is not None:
            outer.made += body.made
        return
    for line, one in {one.line: one for one in sorted(body.made, key=lambda one: one.drawn)}.items():
        if line is not None:
            warn_at(line, _sentence(one, _IN_LOOP), UserWarning)


def _known(begins: Callable[[], Any]) -> bool | None:
    """What `begins` says in the call that is traced; None where the arguments of that call do not tell."""
    lifter = lift.get()
    try:
        with Tracer("the first round", calls=calls_around()), found_again.override(True):  # it draws nothing
            answer = begins()
            return bool(answer if lifter is None or isinstance(answer, bool) else lifter(answer))
    except LimelightError:
        return None


def _branch() -> Tracer | None:
    """The innermost branch or body that is traced on this thread."""
    return next((x for x in reversed(dispatch.stack()) if isinstance(x, Tracer) and (x.optional or x.repeated)), None)


def _orders(branch: Tracer, made: Sequence[Made]) -> list[int]:
    """In which order a branch first uses what was drawn for it and, before the last of these, draws itself."""
    drawn = {one.variable._uid for one in made if one.drawn}
    order = [
        uid if uid in drawn else 0
        for uid, (_, value) in branch.captured.items()
        if uid in drawn or (isinstance(value.spec, VariableSpec) and value.spec.anywhere)
    ]
    while order and not order[-1]:
        order.pop()
    return order


def _sentence(made: Made, said: str = _SAID) -> str:
    what = f"a variable of {'an' if made.by[:1] == 'o' else 'a'} {made.by}" if made.by else "a variable"
    how = _HOW.get(made.by, "make it before, outside of the branch")
    return said.format(what=what, numbers=_NUMBERS if made.drawn else "", how=how)
