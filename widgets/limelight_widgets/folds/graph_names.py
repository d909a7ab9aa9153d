"""What users call the values of a graph: tensors that a function captures, and the parts of its result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Names:
    """Names for all outputs of a graph, or none; and for some of its captures, by their places."""

    outputs: Sequence[str] = ()
    captures: Mapping[int, str] = field(default_factory=dict)


NO_NAMES = Names()
_KEY: Final = re.compile(r"""\[((["'])(?:\\.|(?!\2).)*\2)\]""")
"""A string in brackets, as Python writes it."""


def capture_names(function: Any, entry: Any) -> dict[int, str]:
    """The names, by their places among a trace's captures, of tensors that a variable of the function's holds.

    These are looked for where the function would find them: in its closure, its module, and the object whose method it
    is. Variables and generators have names of their own.
    """
    captures = getattr(entry, "captures", ())
    scopes = list(_scopes(getattr(function, "python_function", None))) if captures else []
    found: dict[int, str] = {}
    for scope in reversed(scopes):
        known = {id(value): name for name, value in scope.items() if not name.startswith("_")}
        found |= {k: known[id(x)] for k, x in enumerate(captures) if x is not None and id(x) in known}
    return found


def output_names(paths: Sequence[str]) -> list[str]:
    """What the parts of a result are called, from the ends of the expressions that reach them; none without keys.

    >>> output_names(['["loss"]', '["parts"][0]', ".mean"]), output_names(["[0]", "[1]"])
    (['loss', 'parts[0]', 'mean'], [])
    """
    names = [_name(path) for path in paths]
    return [] if all(name.startswith("[") for name in names) else names


def _name(path: str) -> str:
    r"""The same without quotes around a first key.

    >>> _name('["a b"]["c"]'), _name("[0].x"), _name("['it']"), _name(r'["a\"]b"]')
    ('a b["c"]', '[0].x', 'it', 'a"]b')
    """
    first = _KEY.match(path)
    if first is None:
        return path.removeprefix(".")
    key: str = ast.literal_eval(first[1])
    return (key if key.isprintable() else first[1][1:-1]) + path[first.end() :]


def _scopes(called: Any) -> Iterator[Mapping[str, Any]]:
    """The nearest first."""
    owner, code = getattr(called, "__self__", None), getattr(called, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(called, "__closure__", None) or (), strict=False):
        try:
            yield {name: cell.cell_contents}
        except ValueError:  # of a variable that has no value yet
            continue
    yield getattr(owner, "__dict__", {})
    yield getattr(called, "__globals__", {})
