"""Completion on the line of a limelight magic: its flags, their choices, and the names that are alive.

IPython has no completion of its own for a magic's flags, so this matcher answers for our lines alone, and silences the
others there: Python names would drown the flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from limelight_kernel.line import arguments

Names = Callable[[], Iterable[str]]
_LINE = re.compile(r"^\s*(?:[\w., ]+=\s*)?(%{1,2})(\w+)\s(.*)$")


class Completed(NamedTuple):
    """A magic's line: its method, what may stand as its NAME, and the values of flags that take one, by the flag."""

    magic: Callable[..., Any]
    names: Names
    values: Mapping[str, Names]


def matcher(lines: Mapping[str, Completed]) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """A matcher for IPython's `Completer.custom_matchers`, by the names of our magics."""

    def limelight_matcher(context: CompletionContext) -> SimpleMatcherResult:
        line = _LINE.match(context.text_until_cursor)
        known = lines.get(line.group(2)) if line else None
        if line is None or known is None or (line.group(1) == "%%" and context.cursor_line and _body(context)):
            return SimpleMatcherResult(completions=[], suppress=False)  # a new one: IPython writes into it
        word = re.split(r"\s", line.group(3))[-1]
        before = line.group(3)[: len(line.group(3)) - len(word)].split()
        candidates = _candidates(known, before, word)
        completions = [SimpleCompletion(text, type=kind) for text, kind in candidates if text.startswith(word)]
        return SimpleMatcherResult(
            completions=completions, matched_fragment=word, suppress=bool(completions), ordered=True
        )

    context_matcher(identifier="limelight.magics", priority=100)(limelight_matcher)
    return limelight_matcher


def _body(context: CompletionContext) -> bool:
    """Whether the cursor stands in the body of a cell magic: a "%%" line there is no magic line."""
    above = context.full_text.split("\n")[: context.cursor_line]
    return any(line.strip() and not line.lstrip().startswith("%%") for line in above)


def _candidates(line: Completed, before: list[str], word: str) -> list[tuple[str, str]]:
    magic, names, values = line
    flag = before[-1] if before else ""
    if flag.startswith("-") and arguments.takes_value(magic, flag):
        listed = arguments.choices(magic, flag) or tuple(values.get(flag, tuple)())
        if listed:
            return [(text, "value") for text in listed]
    known = [(text, "param") for text in sorted(arguments.flags(magic), key=lambda text: (text.lstrip("-"), text))]
    if word.startswith("-"):
        return known
    return [(text, "instance") for text in sorted(names())] + known
