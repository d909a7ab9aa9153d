"""The reference in Markdown, made of the docstrings and of what the ops say about themselves.

Pages of `docs/reference` list public names between `<!-- names -->` and `<!-- end of names -->`, each in a line that
`python scripts/reference.py` writes: its signature, and the first sentence of its docstring. To list a name, write
"- `ll.name`" there, and run that. As the site is built, `expanded` puts a whole entry in the place of each line.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_overloads

import numpy as np

import limelight as ll
import ops_of_example
from limelight.core.dispatch import Interpreter

ROOT: Final = Path(__file__).resolve().parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
PARTS: Final = (
    "config",
    "data",
    "debug",
    "errors",
    "events",
    "explain",
    "export",
    "fft",
    "linalg",
    "lookup",
    "nn",
    "nn.initializers",
    "optim",
    "optim.schedules",
    "random",
    "tree",
    "widgets",
)
HIDDEN: Final = {"__version__", "__array_api_version__", "__array_namespace_info__"}
_BLOCK: Final = re.compile(r"^<!-- names -->\n(.*?)^<!-- end of names -->$", re.DOTALL | re.MULTILINE)
_LISTED: Final = re.compile(r"^- `((?:ll|limelight)\.[\w.]+)", re.MULTILINE)
_END: Final = re.compile(r"(?<!et al)[.](?=\s|$)")
_SPACES: Final = re.compile(r"\s+")
_PROMPT: Final = re.compile(r"(?:^|(?<=\n))((?:(?:>>>|\.\.\.)[^\n]*(?:\n(?!\n)[^\n]*)*\n?)+)")


# What is public, and where it is listed


@functools.cache
def public_names() -> dict[str, Any]:
    """Every public name, `ll.nn.Dense`, and what it stands for; modules and aliases of theirs aside."""
    found: dict[str, Any] = {}
    for part in ("", *PARTS):
        module = functools.reduce(getattr, part.split("."), ll) if part else ll
        names = getattr(module, "__all__", None) if part else dir(ll)
        for name in names if names is not None else dir(module):
            value = getattr(module, name)
            if name in HIDDEN or name[0] == "_" or isinstance(value, ModuleType) or _is_of_the_engine(part, value):
                continue
            found[".".join(filter(None, ("ll", part, name)))] = value
    return found


def _is_of_the_engine(part: str, value: Any) -> bool:
    """Whether a name of a module without `__all__` is for the engine alone: functions beside the classes of errors."""
    return part == "errors" and not isinstance(value, type)


def names_on(text: str) -> list[str]:
    """The names that a page lists, in its order."""
    return [name for block in _BLOCK.findall(text) for name in _LISTED.findall(block)]


def pages() -> dict[str, str]:
    """The pages of the reference by name, as they are written."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.md"))}


def resolved(name: str) -> Any:
    """What a name on a page stands for: a public one, or `limelight.staging.function.Function`."""
    if name in public_names():
        return public_names()[name]
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


# Markdown


def expanded(text: str) -> str:
    """A page with an entry in the place of each name."""
    return _BLOCK.sub(lambda block: "\n".join(entry(name) for name in _LISTED.findall(block[1])), text)


def listed(text: str) -> str:
    """A page with the lines of its names as they should be."""
    return _BLOCK.sub(
        lambda block: "<!-- names -->\n" + "".join(map(line, _LISTED.findall(block[1]))) + "<!-- end of names -->", text
    )


def line(name: str) -> str:
    """What a page in the source tree says of a name: how it is called, and what it is."""
    value = resolved(name)
    if not callable(value):
        return f"- `{name}`: {_constant(value)}"
    is_error = isinstance(value, type) and issubclass(value, BaseException)
    called = name if is_error else signatures(name, value, types=False)[-1]
    home = _first_home().get(id(value), name)
    told = _first_sentence(value) if home == name else f"The same as `{home}`."
    return f"- `{called}`: {told}\n" if told else f"- `{called}`\n"


def _first_sentence(value: Any) -> str:
    """The first sentence of a docstring, in one line of Markdown."""
    words = _line((inspect.getdoc(value) or "").split("\n\n")[0])
    ends = (end.end() for end in _END.finditer(words))  # in brackets ends nothing: "(Ba et al. 2016)"
    parts = words[: next((end for end in ends if words.count("(", 0, end) <= words.count(")", 0, end)), None)].split(
        "`"
    )
    parts[::2] = [part.replace("*", "\\*").replace("<", "&lt;") for part in parts[::2]]  # code stays as it is
    return "`".join(parts)


@functools.cache
def _first_home() -> dict[int, str]:
    """The name of each function and class that has the entry: its own or the first one; the others lead to it."""
    homes: dict[int, str] = {}
    named = public_names().items()
    for name, value in sorted(named, key=lambda one: one[0].rpartition(".")[2] != getattr(one[1], "__name__", "")):
        homes.setdefault(id(value), name)
    return homes


def entry(name: str) -> str:
    """The entry of a name: its signature, its docstring, what is known of its ops, its members."""
    value = resolved(name)
    shown = name.removeprefix("limelight.") if name.startswith("ll.") else name.rpartition(".")[2]
    home = _first_home().get(id(value), name)
    if not callable(value) and not isinstance(value, type):
        return _directive("data", shown, _constant(value), 5)
    if home != name:
        return _directive("function", "\n".join(signatures(shown, value)), f"The same as `{home}`.\n", 5)
    kind = "class" if isinstance(value, type) else "function"
    body = _body(value, name)
    if kind == "class":
        body += "\n" + "\n".join(_member(value, member) for member in members_of(value))
    return _directive(kind, "\n".join(signatures(shown, value)), body, 5)


def _directive(kind: str, heading: str, body: str, ticks: int) -> str:
    """An entry below the last of its calls; the others stand above, as a heading of MyST's is one line."""
    fence = "`" * ticks
    *others, last = heading.split("\n")
    above = "".join(f"{fence}{{py:{kind}}} {call}\n:no-index:\n{fence}\n\n" for call in others)
    return f"{above}{fence}{{py:{kind}}} {last}\n\n{body}\n{fence}\n"


def _constant(value: Any) -> str:
    """What a name that is no function stands for."""
    if isinstance(value, float):
        return f"The number {value!r}.\n"
    return (
        "None, in an index a new axis of size 1.\n" if value is None else f"The dtype `{value.name}`, one of NumPy's.\n"
    )


def signatures(shown: str, value: Any, types: bool = True) -> list[str]:
    """The calls that something takes, as they are written; without annotations where `types` is false."""
    forms = get_overloads(value) if inspect.isfunction(value) and _takes_options(value) else []
    written = []
    for form in forms or [value]:
        try:
            called = inspect.signature(form)
            if not types:
                given = [p.replace(annotation=p.empty) for p in called.parameters.values()]
                called = called.replace(parameters=given, return_annotation=called.empty)
            written.append(f"{shown}{_written(called, returns=not isinstance(value, type))}")
        except (TypeError, ValueError):  # of a class that is written in C underneath
            written.append(shown)
    return list(dict.fromkeys(written))


def _takes_options(function: Any) -> bool:
    """Whether the overloads of a function alone say what it takes."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def _written(signature: inspect.Signature, *, returns: bool) -> str:
    """A signature without what has no text of its own, such as a sentinel, and without what each method has."""
    given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    given = [p.replace(default=_Text("...")) if _is_unreadable(p.default) else p for p in given]
    given = [p.replace(default=_Text(f"ll.{p.default.name}")) if _is_dtype(p.default) else p for p in given]
    given = [p.replace(annotation=_unquoted(p.annotation)) for p in given]
    ending = _unquoted(signature.return_annotation) if returns else inspect.Signature.empty
    return str(inspect.Signature(given, return_annotation=ending))


def _is_dtype(default: Any) -> bool:
    return isinstance(default, np.dtype)


def _unquoted(annotation: Any) -> Any:
    """An annotation without the quotes that a text has."""
    return _Text(annotation.replace("'", "")) if isinstance(annotation, str) else annotation


class _Text(str):
    """A default that is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _is_unreadable(default: Any) -> bool:
    return default is not inspect.Parameter.empty and "<" in repr(default)


def members_of(owner: type) -> list[str]:
    """The methods and properties that a class has for users and has not from a public class above it."""
    above = {n for base in owner.__mro__[1:] if id(base) in _first_home() or base is object for n in dir(base)}
    names = [n for n in dir(owner) if n[0] != "_" and not hasattr(Interpreter, n)]
    own = [n for n in names if n not in above or n in vars(owner)]
    return [n for n in own if inspect.getdoc(inspect.getattr_static(owner, n)) and _is_a_member(owner, n)]


def _is_a_member(owner: type, name: str) -> bool:
    value = inspect.getattr_static(owner, name)
    if issubclass(owner, BaseException) and hasattr(Exception, name):
        return False
    return isinstance(value, property | staticmethod | classmethod | functools.cached_property) or callable(value)


def _member(owner: type, name: str) -> str:
    value = inspect.getattr_static(owner, name)
    if not callable(value) and not isinstance(value, staticmethod | classmethod):
        return _directive("attribute", name, _body(value, name), 4)
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    home = _first_home().get(id(function))
    body = f"As `{home}`.\n" if home else _body(function, name)
    return _directive("method", "\n".join(signatures(name, function)), body, 4)


def _body(value: Any, name: str) -> str:
    """A docstring as Markdown: text, examples, then lists of parameters, results, errors and facts."""
    griffe = importlib.import_module("griffe")
    text, fields = [], []
    for part in griffe.Docstring(inspect.getdoc(value) or "").parse("google", warnings=False):
        kind = part.kind.value
        if kind == "text":
            text.append(_with_examples(part.value))
        elif kind in ("parameters", "other parameters"):
            fields += [f":param {one.name}: {_line(one.description)}" for one in part.value]
        elif kind == "raises":
            fields += [f":raises {one.annotation}: {_line(one.description)}" for one in part.value]
        elif kind == "warns":
            fields += [f":warns {one.annotation}: {_line(one.description)}" for one in part.value]
        elif kind in ("returns", "yields"):
            fields.append(f":returns: {_line(_returned(part.value))}")
        elif kind == "attributes":
            fields += [f":ivar {one.name}: {_line(one.description)}" for one in part.value]
        else:
            raise ValueError(f"{name}: its docstring has a section {kind!r}, which the reference does not know")
    fields += [f":{title}: {said}" for title, said in ops_of_example.facts(value)]
    return "\n\n".join(text) + "\n\n" + "\n".join(fields) + "\n"


def _returned(parts: Any) -> str:
    """The text of a section of results, whose first word before a colon is no type with us."""
    return " ".join(f"{one.annotation}: {one.description}" if one.annotation else one.description for one in parts)


def _line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _with_examples(text: str) -> str:
    """Text whose examples are blocks of code."""
    return "\n\n".join(_paragraph(one) for one in re.split(r"\n\s*\n", text.strip("\n")))


def _paragraph(text: str) -> str:
    flat = textwrap.dedent(text)
    if flat.lstrip().startswith(">>>"):
        return f"```pycon\n{flat}\n```"
    return f"```text\n{flat}\n```" if text.startswith("    ") else text


def entries_of(text: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The names of a page with what they stand for."""
    return ((name, resolved(name)) for name in names_on(text))


if __name__ == "__main__":
    for page, text in pages().items():
        (REFERENCE / page).write_text(listed(text), encoding="utf-8")
