"""What names of other libraries are called here: of NumPy, JAX, PyTorch, TensorFlow and Keras.

Each line of `equivalents.txt` has names as others spell them, then what to write, and after a bar a remark. A line with
a remark alone is for what has no counterpart by one name; one with "-" for names that do not exist here, and that some
name of ours looks like. Names that differ from ours in capitals and underscores alone need no line, nor does one that
another namespace of ours has. `tests/engine/user_code/library_names.txt` has the libraries' public names, by namespace.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class Equivalent(NamedTuple):
    """What to write instead of a name: `ours`, by what comes after `ll.`, or "" for none; and a remark."""

    ours: str
    remark: str

    def __bool__(self) -> bool:
        return bool(self.ours or self.remark)


@functools.cache
def functions() -> Mapping[str, Equivalent]:
    """By what others have in any namespace."""
    return _parsed("functions")


@functools.cache
def of_tensors() -> Mapping[str, str]:
    """Methods and attributes of other libraries' tensors."""
    hints = {name: entry.remark for name, entry in _parsed("tensors").items()}
    for pair in " ".join(_sections()["functions as methods of tensors"]).split():
        name, _, ours = pair.partition("=")
        hints.setdefault(name, f"write ll.{ours or name}(x)")
    return hints


@functools.cache
def of_modules() -> Mapping[str, str]:
    """Methods and attributes of other libraries' modules."""
    return {name: entry.remark for name, entry in _parsed("modules").items() if entry}


@functools.cache
def of_variables() -> Mapping[str, str]:
    """Methods that change PyTorch's parameters in place."""
    return {name: entry.remark for name, entry in _parsed("variables").items()}


@functools.cache
def of_optimizers() -> Mapping[str, str]:
    """The same of optimisers."""
    hints = {**of_modules(), **{name: entry.remark for name, entry in _parsed("optimisers").items()}}
    return {name: hint for name, hint in hints.items() if hint}


@functools.cache
def of_generators() -> Mapping[str, str]:
    """The same of generators, whose methods are the functions of `ll.random`."""
    return {name: entry.remark for name, entry in _parsed("generators").items()}


@functools.cache
def of_places() -> Mapping[str, str]:
    """The same of `x.at[i]`."""
    return {name: entry.remark for name, entry in _parsed("places").items()}


@functools.cache
def of_datasets() -> Mapping[str, str]:
    """The same of datasets."""
    return {name: entry.remark for name, entry in _parsed("datasets").items()}


@functools.cache
def of_staged_functions() -> Mapping[str, str]:
    """The same of what `jax.jit` and `tf.function` return."""
    return {name: entry.remark for name, entry in _parsed("staged functions").items()}


@functools.cache
def layer_settings() -> Mapping[str, Equivalent]:
    """What the constructors of layers call their settings."""
    return _parsed("settings of layers")


@functools.cache
def optimizer_settings() -> Mapping[str, Equivalent]:
    """What the constructors of optimisers call their settings."""
    return _parsed("settings of optimisers")


@functools.cache
def function_options() -> Mapping[str, Equivalent]:
    """Options of other libraries' functions that stage."""
    return _parsed("options of function")


def setting_hint(name: str, known: Iterable[str], table: Mapping[str, Equivalent]) -> str:
    """What to write instead of the setting `name`, where `known` are those there are; "" where nothing does its job."""
    entry, known = table.get(name), list(known)
    if entry is None:
        import difflib  # noqa: PLC0415  # only a mistake needs it: importing limelight is to be quick

        close = difflib.get_close_matches(name, known, 1)
        return f"; did you mean {close[0]!r}?" if close else "."
    ours = next((name for name in entry.ours.split() if name in known), None)
    if ours is not None:
        return f"; did you mean {ours!r}?"
    return f": {entry.remark}." if entry.remark else "."


@functools.cache
def keywords() -> Mapping[str, Equivalent]:
    """What keywords are called here: by name, and "function.name" where it is of one function; several words each."""
    return {**_parsed("keywords"), **_parsed("keywords of functions")}


def keyword_hint(function: str, keyword: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """What to write instead of a keyword that a function does not have; "" where nothing does its job."""
    for entry in (keywords().get(f"{function}.{keyword}"), keywords().get(keyword)):
        ours = next((name for name in entry.ours.split() if name in parameters), None) if entry else None
        if ours is not None and parameters[ours].kind is inspect.Parameter.POSITIONAL_ONLY:
            return f"it is called {ours}, and given by place, without a name"
        if ours is not None:
            return f"it is called {ours}: write {ours}=..." + (f" ({entry.remark})" if entry and entry.remark else "")
        if entry and entry.remark:
            return entry.remark
    return ""


@functools.cache
def _sections() -> dict[str, list[str]]:
    """The lines of each section of the table."""
    sections: dict[str, list[str]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections[line.strip("[]")] = []
        elif line:
            lines.append(line)
    return sections


def _parsed(section: str) -> dict[str, Equivalent]:
    rows: dict[str, Equivalent] = {}
    for line in _sections()[section]:
        names, _, answer = line.partition(" -> ")
        ours, _, remark = answer.partition("|")
        row = Equivalent(ours.strip().removesuffix("-"), remark.strip())
        rows |= dict.fromkeys(names.split(), row)
    return rows
