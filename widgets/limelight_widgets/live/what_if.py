"""Who answers "what if?" that a reader types into a view: the notebook extension, which knows the notebook's names.

Views lie below it, so that it says so (`answered_by`) when it is loaded; without it there is nothing to type into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from limelight.explain.story import Story


class Answer(NamedTuple):
    """What a call would do: `stories` say it; `trace` is the function's id and the index of the trace it would run."""

    hit: bool
    stories: tuple[Story, ...]
    trace: tuple[int, int] | None = None


Ask = Callable[[str, Any], Answer]
"""The answer for a call as it was typed, and the function that it must be of, if any; raises what it cannot answer."""

_answerers: list[Ask] = []


def answered_by(ask: Ask) -> None:
    """From now on `ask` answers, until it is taken away by `no_longer`."""
    _answerers.append(ask)


def no_longer(ask: Ask) -> None:
    """`ask` answers no more."""
    if ask in _answerers:
        _answerers.remove(ask)


def is_answered() -> bool:
    """Whether anybody answers."""
    return bool(_answerers)


def answer(call: str, function: Any = None) -> dict[str, Any]:
    """The answer for a view, ready for JSON; what went wrong in words, under "error".

    >>> sorted(answer("f("))  # no call
    ['call', 'error']
    """
    if not _answerers:
        return {"call": call, "error": "Run `%load_ext limelight` first: it knows the names in the notebook."}
    try:
        said = _answerers[-1](call, function)
    except Exception as error:  # noqa: BLE001  # whatever the expression raises is the reader's to read
        return {"call": call, "error": str(error) or type(error).__name__}
    stories = [story.to_dict() for story in said.stories]
    return {"call": call, "hit": said.hit, "stories": stories, "trace": list(said.trace) if said.trace else None}
