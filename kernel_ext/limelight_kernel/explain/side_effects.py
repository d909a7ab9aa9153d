"""What a staged cell does while it is traced alone, with what to write instead in a cell; and which lines ran then."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from limelight import explain
from limelight.user_code import source_line
from limelight_kernel.cell.cell_warnings import CellWarnings


def side_effects(function: Any, namespace: Mapping[str, Any] | None) -> explain.SideEffects:
    """Those of a staged function; `namespace` is the notebook's where the function is a staged cell, else None."""
    effects = explain.side_effects(function)
    if namespace is None:
        return effects
    return dataclasses.replace(effects, records=tuple([_for_cell(one, namespace) for one in effects.records]))


def _for_cell(effect: explain.SideEffect, namespace: Mapping[str, Any]) -> explain.SideEffect:
    """A list or dictionary is an input of the cell, which gets a copy once it holds tensors: no `ll.py_func` helps."""
    name = base_name(effect.what)
    if effect.kind != "mutation" or not isinstance(namespace.get(name), list | dict):
        return effect
    instead = f"change `{name}` in a cell below, by the values that this one leaves in the notebook at each run"
    return effect._replace(instead=instead)


_WARNED = frozenset(["print", "host randomness", "time", "file", "debugger", "iterator"])


def warned_of(effects: explain.SideEffects) -> list[explain.SideEffect]:
    """Those that the plain cell would have at each run, and that nothing makes up for."""
    return [one for one in effects.records if one.kind in _WARNED]


def warn_of(effects: explain.SideEffects, warnings: CellWarnings, filename: str, ran: Collection[int] | None) -> None:
    """Warns of the effects that a trace alone had; `ran` are the lines of the cell that did, None if not known."""
    for one in warned_of(effects):
        line = one.line.line if one.line.file == filename else 0
        if not line or ran is None or line in ran:
            warnings.warn(str(one).replace(source_line.at(one.line), "") if line else str(one), line)


def base_name(path: str) -> str:
    """The name that a path starts with: "history" of "history[0]" and of "history.append(...)"."""
    match = re.match(r"(?:del )?(\w+)", path)
    return "" if match is None else match[1]


@contextmanager
def lines_run(filename: str) -> Iterator[set[int] | None]:
    """Within its block, the lines of a file that this thread runs are noted; None where a debugger watches them."""
    if sys.gettrace() is not None:
        yield None
        return
    lines: set[int] = set()

    def local(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return local

    def called(frame: Any, _event: str, _: Any) -> Any:
        return local if frame.f_code.co_filename == filename else None

    sys.settrace(called)
    try:
        yield lines
    finally:
        sys.settrace(None)
