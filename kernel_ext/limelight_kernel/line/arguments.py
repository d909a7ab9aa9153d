"""Arguments of the magics: reusable groups, checked values, one-line errors that suggest what was meant."""

from __future__ import annotations

import difflib
import keyword
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, parse_argstring

from limelight.core import devices
from limelight.errors import DeviceError
from limelight_kernel.line.call_aside import STAND_IN, set_aside
from limelight_kernel.line.options import PARTS, USUAL

FORMS = ("output", "text", "static", "json", "save", "quiet")
"""What `keep_argument` and `form_arguments` add, by the names of the arguments: it goes with every other flag."""
F = TypeVar("F", bound=Callable[..., Any])


def keep_argument(magic: F) -> F:
    """`-o NAME`: keep what the magic made."""
    argument("-o", "--output", metavar="NAME", help="keep the object shown, under this name")(magic)
    return magic


def form_arguments(magic: F) -> F:
    """Which form of a view to show, or none, and whether to write it to a file, too."""
    argument("-q", "--quiet", action="store_true", help="show nothing but a cell's result; for -o and --save")(magic)
    argument("--save", metavar="FILE", help="write it, too, by the ending: .svg, .png, .html, .json, .txt")(magic)
    argument("--json", action="store_true", help="all that it knows, as JSON")(magic)
    argument("--text", action="store_true", help="plain text only")(magic)
    argument("--static", action="store_true", help="a picture and a table instead of the live view")(magic)
    return magic


def parse(magic: Callable[..., Any], line: str, cell: str | None = None) -> Namespace:
    """The arguments in `line`, for a method decorated with `magic_arguments`; above a `cell` it is a cell magic.

    Where any number of words may stand for a call, a call among them is one, as it was typed.

    Raises UsageError, one sentence, for what does not fit; an unknown flag comes with the closest known one.
    """
    name = getattr(magic, "__name__", "magic")
    called = f"%{'' if cell is None else '%'}{name}"
    line = line.strip().removesuffix(";")
    words = [one.dest for one in magic.parser._actions if one.nargs == "*"]  # type: ignore[attr-defined]
    line, call = set_aside(line, partial(takes_value, magic)) if words else (line, "")
    try:
        given: Namespace = parse_argstring(magic, line)
    except ValueError as error:  # an unclosed quote
        typed = line.replace(STAND_IN, call)
        raise UsageError(f"{called}: {str(error).lower()} in {typed!r}; see %{name}?") from None
    except UsageError as error:
        wrong = str(error).replace(STAND_IN, call)
        raise UsageError(f"{called}: {wrong}{_suggestion(magic, line) or _one(magic, error)}; see %{name}?") from None
    for one in words:
        setattr(given, one, [word.replace(STAND_IN, call) for word in getattr(given, one)])
    output = getattr(given, "output", None)
    if output is not None:
        identifier(output, f"{called} -o")
    return given


def flags(magic: Callable[..., Any]) -> dict[str, str]:
    """The flags of `magic`, each with its help."""
    parser = magic.parser  # type: ignore[attr-defined]  # set by magic_arguments
    return {flag: action.help or "" for action in parser._actions for flag in action.option_strings}


def choices(magic: Callable[..., Any], flag: str) -> tuple[str, ...]:
    """The values that `flag` takes, where they are listed; empty otherwise."""
    action = magic.parser._option_string_actions.get(flag)  # type: ignore[attr-defined]
    return tuple(map(str, action.choices)) if action is not None and action.choices else ()


def takes_value(magic: Callable[..., Any], flag: str) -> bool:
    """Whether a value follows `flag`."""
    action = magic.parser._option_string_actions.get(flag)  # type: ignore[attr-defined]
    return action is not None and action.nargs != 0


def identifier(name: str, where: str) -> str:
    """`name`, if Python can bind it; raises UsageError otherwise."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"{where}: {name!r} is not a name that Python can bind; write letters, digits and _")
    return name


def device(name: str | None, where: str) -> str | None:
    """`name`, if it is a device that exists; raises UsageError otherwise."""
    if name is not None:
        try:
            devices.find(name)
        except DeviceError as error:
            raise UsageError(f"{where}: {error.bare}") from None
    return name


def positive(number: int | None, where: str, least: int = 1) -> int | None:
    """`number`, if it is at least `least`; raises UsageError otherwise."""
    if number is not None and number < least:
        raise UsageError(f"{where}: {number} is too few; write {least} or more")
    return number


def names(text: str | None, where: str) -> tuple[str, ...] | None:
    """The names in "a, b,c"."""
    if text is None:
        return None
    return tuple(identifier(part.strip(), where) for part in unquoted(text).split(",") if part.strip())


def parts(given: Iterable[str], name: str | None) -> tuple[str | None, tuple[str, ...]]:
    """NAME, and the parts that `-a` asks for, in the order of `PARTS`, each once.

    argparse takes the word after `-a` for its list: one that is no part, nor close to one, is the NAME of `%%stage -a
    NAME`. Raises UsageError for any other.
    """
    words = [word.strip() for text in given for word in unquoted(text).split(",")]
    if any(text.endswith(",") for text in given) and name in PARTS:  # -a trace, opt
        words, name = [*words, name], None
    unknown = [word for word in words if word and word not in PARTS]
    near = [word for word in unknown if difflib.get_close_matches(word, PARTS, cutoff=0.75) or word != unknown[0]]
    is_name = bool(unknown) and unknown[0] in given and unknown[0].isidentifier() and name is None
    wrong = unknown if not is_name else near
    if wrong:
        are = f"{', '.join(map(repr, wrong))} {'is' if len(wrong) == 1 else 'are'}"
        known = did_you_mean(wrong[0], PARTS) if len(wrong) == 1 else ""
        raise UsageError(f"%%stage -a: {are} none of {', '.join(PARTS)}{known}; NAME goes first")
    return (unknown[0] if unknown else name), tuple(
        part for part in PARTS if part in words or (unknown and part in USUAL)
    )


def sources(given: bool | str, name: str | None) -> tuple[bool, str | None, tuple[str, ...]]:
    """Whether `-g` was given, NAME, and the names that `-g` differentiates by, none for all.

    argparse takes the word after `-g` for its list, and the next one for NAME.
    """
    if isinstance(given, bool):
        return given, name, ()
    if given.endswith(",") and name is not None:  # -g x, w
        given, name = f"{given}{name}", None
    return True, name, tuple(part.strip() for part in unquoted(given).split(",") if part.strip())


def unquoted(text: str) -> str:
    """`text` without one pair of quotes around it: IPython splits a line but leaves the quotes on."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A clause that offers the closest known name, or nothing when none is close."""
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _one(magic: Callable[..., Any], error: UsageError) -> str:
    """A clause for a second NAME: what is too much is no flag."""
    extra = str(error).partition("unrecognized arguments: ")[2]
    if not extra or extra.startswith("-"):
        return ""
    named = any(action.dest == "name" for action in magic.parser._actions)  # type: ignore[attr-defined]
    return "; one NAME at a time" if named else "; it takes no NAME"


def only(
    given: Namespace, allowed: Iterable[str], magic: Callable[..., Any], where: str, for_cell: bool = False
) -> None:
    """Raises UsageError where a flag was given that is for a cell magic alone, or for a line magic alone.

    Args:
        given: the parsed line.
        allowed: what may be given, by the names of the arguments.
        magic: the method whose arguments these are.
        where: its name, for the message.
        for_cell: whether the line stands above a cell.
    """
    for action in magic.parser._actions:  # type: ignore[attr-defined]
        default = [] if action.default is None and action.nargs == "?" else action.default
        if action.option_strings and action.dest not in allowed and getattr(given, action.dest, default) != default:
            flag = action.option_strings[0]
            if for_cell:
                raise UsageError(f"%%{where}: {flag} is for no cell; write %{where} {flag} on a line of its own")
            raise UsageError(f"%{where}: {flag} is for a cell; write %%{where} {flag} on the first line of one")


def _suggestion(magic: Callable[..., Any], line: str) -> str:
    known = flags(magic)
    for word in line.split():
        flag = word.partition("=")[0]
        if flag in ("-h", "--help") and flag not in known:
            return ""  # where help is, the error says anyway
        if flag.startswith("-") and flag not in known:
            return did_you_mean(flag, known) or f"; its flags are {', '.join(sorted(known))}"
    return ""
