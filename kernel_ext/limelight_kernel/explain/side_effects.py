"""What a staged cell does while it is traced alone, with what to write instead in a cell; and which lines ran then."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Collection, Mapping
from typing import Any

from limelight import explain
from limelight.core import dispatch
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
        if has_run(one, filename, ran):
            line = _line_in(one, filename)
            warnings.warn(str(one).replace(source_line.at(one.line), "") if line else str(one), line)


def has_run(effect: explain.SideEffect, filename: str, ran: Collection[int] | None) -> bool:
    """Whether the line of an effect is among those of the cell that `ran`, as far as that is known."""
    line = _line_in(effect, filename)
    return not line or ran is None or line in ran


def _line_in(effect: explain.SideEffect, filename: str) -> int:
    """Its line in the cell; 0 in a helper."""
    return effect.line.line if effect.line.file == filename else 0


def base_name(path: str) -> str:
    """The name that a path starts with: "history" of "history[0]" and of "history.append(...)"."""
    match = re.match(r"(?:del )?(\w+)", path)
    return "" if match is None else match[1]


class lines_run(dispatch.Guard):  # noqa: N801  # used as a function
    """Within its block, the lines of a file that this thread runs are noted; None where a debugger watches them."""

    def __init__(self, filename: str) -> None:
        super().__init__()
        self._filename = filename
        self._lines: set[int] | None = None

    def __enter__(self) -> set[int] | None:  # type: ignore[override]  # the lines
        super().__enter__()
        return self._lines

    def begin(self) -> None:
        if sys.gettrace() is None:
            self._lines = set()
            sys.settrace(self._called)

    def end(self, abandoned: bool) -> None:
        if self._lines is not None:
            sys.settrace(None)

    def _called(self, frame: Any, _event: str, _: Any) -> Any:
        return self._local if frame.f_code.co_filename == self._filename else None

    def _local(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line" and self._lines is not None:
            self._lines.add(frame.f_lineno)
        return self._local
