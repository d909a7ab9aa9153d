"""A story: the answer to one "why?", in parts, from which its sentence is written and its card is drawn.

Each record of `explain` tells its own (`to_story`). The parts hold words and numbers and keep nothing of the user's
alive; `str()` puts them together, and says each fact once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

from limelight.explain.fix import Fix
from limelight.user_code.source_line import Source, at

SPELLED: Final = 3
"""How many differences a sentence tells one by one."""
MOST: Final = 40
"""How many a story has."""


class Place(NamedTuple):
    """Where something of a story is: `role` says what ("call", "closest", "line"); `line` the user's line, if known.

    `label` is how readers call it: "In[3] line 2", "trace #2 (In[2] line 4, used 3 times)".
    """

    role: str
    label: str
    line: Source | None = None

    @classmethod
    def of(cls, role: str, line: Source | None) -> tuple[Place, ...]:
        """The place of a line of code; none where it is not known."""
        return () if line is None else (cls(role, str(line), line),)


class Contrast(NamedTuple):
    """What differs, before and after; `detail` says where exactly, if that is not plain."""

    what: str
    before: str
    after: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Story:
    """One answer, in parts. `str()` is the sentence, in the order that its kind has (`FORMS`).

    Args:
        kind: one of `FORMS`: "trace" is a first one, "what if" a prediction.
        title: what happened, in a clause.
        causes: in a word or two each.
        said: sentences that go on from the title.
        contrasts: what was before and what is after.
        unlisted: how many more of them there are.
        cost: in words with a unit; empty where it is not known.
        seconds: what it took, or 0; stories are sorted by it.
        count: how often it happened.
        total: a sentence about all of these times together.
        places: the first is where it happened.
        hints: sentences about what else could be done.
        fixes: code that mends it.
        remedy: the fix in prose, for the sentence, where it is more than the code; empty otherwise.
        more: what only some readers want to know.

    >>> import limelight as ll
    >>> double = ll.function(lambda x: x + x, name="double")
    >>> y = double(ll.ones(3)), double(ll.ones(4))
    >>> story = ll.explain.retrace(double).records[-1].to_story()
    >>> story.title, story.contrasts[0].after
    ('`double` traced again', 'f32[4]')
    """

    kind: str
    title: str
    causes: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    unlisted: int = 0
    cost: str = ""
    seconds: float = 0.0
    count: int = 1
    total: str = ""
    places: tuple[Place, ...] = ()
    hints: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    remedy: str = ""
    more: tuple[str, ...] = ()

    @property
    def before(self) -> tuple[str, ...]:
        """The left side of the contrasts."""
        return tuple([one.before for one in self.contrasts])

    @property
    def after(self) -> tuple[str, ...]:
        """The right side of the contrasts."""
        return tuple([one.after for one in self.contrasts])

    @property
    def where(self) -> Source | None:
        """The user's line at which it happened."""
        return self.places[0].line if self.places else None

    def reworded(self, change: Callable[[str], str]) -> Story:
        """The story with `change` applied to every sentence of it, and the code of the remedy read anew."""
        said: dict[str, Any] = {
            name: change(old) if isinstance(old, str) else tuple([change(one) for one in old])
            for name, old in ((name, getattr(self, name)) for name in ("title", "remedy", "said", "hints", "more"))
        }
        changed = replace(self, **said)
        return replace(changed, fixes=fixes_in(changed.remedy)) if self.remedy else changed

    def to_dict(self) -> dict[str, Any]:
        """All parts, ready for JSON."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        parts["contrasts"] = [one._asdict() for one in self.contrasts]
        parts["places"] = [{"role": one.role, "label": one.label, **_code(one.line)} for one in self.places]
        parts["advice"] = advice_in(self.remedy)
        parts["fixes"] = [{"place": one.place, "code": one.code, "cell": one.as_cell} for one in self.fixes]
        return {name: list(part) if isinstance(part, tuple) else part for name, part in parts.items()}

    def __str__(self) -> str:
        return "\n".join(filter(None, (FORMS[self.kind](self), self.total)))


def by_cost(stories: Iterable[Story]) -> tuple[Story, ...]:
    """The costliest first; what costs alike in the order given."""
    return tuple(sorted(stories, key=lambda story: -story.seconds))


def merged(stories: Sequence[Story]) -> tuple[Story, ...]:
    """Each story once: those that say the same, but for the place, are one with a count."""
    alike: dict[tuple[Any, ...], list[Story]] = {}
    for one in stories:
        alike.setdefault((one.kind, one.title, one.causes, one.said, one.contrasts, one.remedy), []).append(one)
    return tuple([replace(group[-1], count=sum(one.count for one in group)) for group in alike.values()])


# The code in a remedy

_CALL: Final = re.compile(r"(?<=pass it as an argument, )([\w.]+\(.*?\))(?= \(|;|:|$)")
_SPAN: Final = re.compile(r"`([^`]+)`")
_IS_CODE: Final = re.compile(r"[(=]")


def fixes_in(remedy: str) -> tuple[Fix, ...]:
    """The code that a remedy in prose has, each with the words around it as its place.

    >>> fixes_in("pass it as an argument, f(x, n); or make it a variable, `n = ll.Variable(1)`, and assign to that")
    (Fix(code='f(x, n)', place='pass it as an argument', paths=(), cell='', is_inside=True), \
Fix(code='n = ll.Variable(1)', place='or make it a variable, and assign to that', paths=(), cell='', is_inside=False))
    """
    return tuple([fix for part in _parts(remedy) if (fix := _fix_in(part)) is not None])


def advice_in(remedy: str) -> tuple[str, ...]:
    """The parts of a remedy that have no code to copy.

    >>> advice_in("pass the time as an argument; or `ll.py_func(clock, [], ll.float64)` at each call")
    ('pass the time as an argument',)
    """
    return tuple([part for part in _parts(remedy) if _fix_in(part) is None])


def _parts(remedy: str) -> list[str]:
    return re.split(r"; (?=or )", remedy) if remedy else []


def _fix_in(part: str) -> Fix | None:
    code = _CALL.search(part) or next((one for one in _SPAN.finditer(part) if _IS_CODE.search(one[1])), None)
    if code is None or "..." in code[1]:
        return None
    is_assignment = bool(re.match(r"[\w.\[\]]+ = ", code[1]))
    around = part[: code.start()].rstrip(" ,") + re.sub("^(?=\\w)", " ", part[code.end() :])
    return Fix(code[1], around.strip(" ,"), (), is_inside=not is_assignment)


# The sentences


def _retrace(story: Story) -> str:
    return f"{story.title} at {story.places[0].label}: {retrace_clauses(story)}"


def retrace_clauses(story: Story) -> str:
    """What a retrace's sentence says but for which function traced where."""
    closest = [f"Closest: {place.label}." for place in story.places if place.role == "closest"]
    cost = [f"Cost {story.cost}."] if story.cost else []
    fixes = [f"Fix: {'; '.join(map(str, story.fixes))}"] if story.fixes else []
    return " ".join([f"{differences(story)}.", *closest, *story.more, *cost, *story.hints, *fixes])


def differences(story: Story) -> str:
    """What differs, the first of it one by one; what is said instead where there is nothing to compare with."""
    if not story.contrasts:
        return " ".join(story.said)
    spelled = [str(one) for one in story.contrasts[:SPELLED]]
    more = len(story.contrasts) + story.unlisted - len(spelled)
    return " and ".join(spelled) + (f", and {more} more" if more else "")


def _what_if(story: Story) -> str:
    if any(place.role == "call" for place in story.places):
        return "\n".join([f"{story.title}: {retrace_clauses(replace(story, more=()))}", *story.more])
    return "\n".join([": ".join([story.title, *story.said]), *story.more])


def _none_gradient(story: Story) -> str:
    fix = f"\nFix: {story.fixes[0].code}" if story.fixes else ""
    return f"{': '.join([story.title, *story.said])}{at(story.where)}.{fix}"


def _nan(story: Story) -> str:
    result = [one.after for one in story.contrasts]
    lines = [": ".join([f"{story.title}{at(story.where)}", *result])]
    lines += [f"  operands: {one.before}" for one in story.contrasts if one.before]
    lines += [f"  {one}" for one in (*story.more, *story.hints)]
    lines += ["Fix: " + fix.code.replace("\n", "\n     ") for fix in story.fixes]
    return "\n".join(lines)


def _baked(story: Story) -> str:
    (value,) = story.contrasts
    if not story.remedy:  # it has not changed
        return f"{value.what} is {value.before}{at(story.where)}"
    said = f"{value.what} was {value.before} when {value.detail} was made and is {value.after} now"
    return f"{said}, which the trace does not see{at(story.where)}. Fix: {story.remedy}"


def _side_effect(story: Story) -> str:
    return f"{story.title}{at(story.where)}. Instead: {story.remedy}"


def _leak(story: Story) -> str:
    return " ".join([": ".join([f"{story.title}{at(story.where)}", *story.said]), *story.hints])


def _difference(story: Story) -> str:
    return "\n".join([story.title, *map(str, story.contrasts)])


def _copy(story: Story) -> str:
    remedy = f". Instead: {story.remedy}" if story.remedy else ""
    return f"{story.title}, for: {', '.join(story.causes)}{at(story.where)}{remedy}"


def _impurity(story: Story) -> str:
    (both,) = story.contrasts
    return f"{', '.join(story.causes)}: {both.before}, then {both.after}{at(story.where)}"


FORMS: Final[Mapping[str, Callable[[Story], str]]] = {
    "trace": _retrace,
    "retrace": _retrace,
    "what if": _what_if,
    "None gradient": _none_gradient,
    "gradient": _none_gradient,  # there is one after all
    "NaN": _nan,
    "baked value": _baked,
    "leaked tensor": _leak,
    "side effect": _side_effect,
    "lost change": _side_effect,
    "copy": _copy,
    "difference": _difference,
    "impurity": _impurity,
}
"""How the parts of each kind become a sentence."""


def _code(line: Source | None) -> dict[str, Any]:
    return {} if line is None else {"file": line.label, "line": line.line, "code": line.text}
