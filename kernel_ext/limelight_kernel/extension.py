"""Loading and unloading: everything that loading adds to a shell, unloading takes away again."""

from __future__ import annotations

import importlib.util
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

import IPython
from IPython.core.interactiveshell import InteractiveShell

from limelight.core.devices import list_devices
from limelight.user_code import source_line
from limelight.user_code import tracebacks as frames
from limelight_kernel import completion, execution, grad, tracebacks
from limelight_kernel.magics import LimelightMagics
from limelight_kernel.options import PARTS
from limelight_kernel.session import Session

_MISSING = object()
_loaded: weakref.WeakKeyDictionary[InteractiveShell, _Loaded] = weakref.WeakKeyDictionary()
_machinery: list[str] = []


@dataclass
class _Loaded:
    """What was in the shell before, and what we put there."""

    magics: dict[str, dict[str, Any]]
    matcher: Callable[..., Any]
    exceptions: tuple[type[BaseException], ...]
    custom_tb: Any
    our_tb: Any
    namer: source_line.CellNamer | None
    our_namer: source_line.CellNamer


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Adds the magics, their completion, the cells' names and the short tracebacks. Prints nothing."""
    if shell in _loaded:
        return
    _mark_machinery()
    session = Session(shell)
    before = {kind: dict(known) for kind, known in shell.magics_manager.magics.items()}
    magics = LimelightMagics(shell, session)
    shell.register_magics(magics)
    matcher = _matcher(magics, session)
    shell.Completer.custom_matchers.append(matcher)
    exceptions, custom_tb = shell.custom_exceptions, vars(shell).get("CustomTB", _MISSING)
    shell.set_custom_exc(tracebacks.HANDLED, tracebacks.handler)
    frames.left_to(shell)
    namer = _namer(shell)
    _loaded[shell] = _Loaded(
        before, matcher, exceptions, custom_tb, vars(shell)["CustomTB"], source_line.set_cell_namer(namer), namer
    )


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Leaves the shell as it was before loading; names that staged cells have bound stay."""
    loaded = _loaded.pop(shell, None)
    if loaded is None:
        return
    frames.left_to(shell, on=False)
    _restore_magics(shell, loaded)
    if loaded.matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(loaded.matcher)
    if vars(shell).get("CustomTB") is loaded.our_tb:  # somebody who replaced our handler keeps his
        shell.custom_exceptions = loaded.exceptions
        if loaded.custom_tb is _MISSING:
            del shell.CustomTB
        else:
            shell.CustomTB = loaded.custom_tb
    current = source_line.set_cell_namer(loaded.namer)
    if current is not loaded.our_namer:
        source_line.set_cell_namer(current)


def session_of(shell: InteractiveShell) -> Session:
    """The session of a shell into which the extension is loaded."""
    magics: LimelightMagics = shell.magics_manager.registry[LimelightMagics.__name__]
    return magics.session


def _restore_magics(shell: InteractiveShell, loaded: _Loaded) -> None:
    manager = shell.magics_manager
    ours = manager.registry.pop(LimelightMagics.__name__, None)
    for kind, known in manager.magics.items():
        for name in LimelightMagics.magics[kind]:
            current = known.get(name)
            if not isinstance(current, MethodType) or current.__self__ is not ours:
                continue
            if name in loaded.magics[kind]:
                known[name] = loaded.magics[kind][name]
            else:
                del known[name]


def _matcher(magics: LimelightMagics, session: Session) -> Callable[..., Any]:
    methods = {name: getattr(magics, name) for name in ("stage", "graph", "trace_cache", "tape", "devices", "explain")}
    names = {
        "stage": session.function_names,
        "graph": session.function_names,
        "trace_cache": session.function_names,
        "explain": session.function_names,
        "tape": session.tape_names,
    }
    devices = {"-d": _devices, "--device": _devices}
    calls = dict.fromkeys(("--would", "--nan", "--pure"), session.function_names)
    parts = {"-a": lambda: PARTS, "--annotate": lambda: PARTS}
    return completion.matcher(methods, names, {**devices, **calls, **parts})


def _devices() -> list[str]:
    return [device.short for device in list_devices()]


def _namer(shell: InteractiveShell) -> source_line.CellNamer:
    """Names a cell's file "In[3]"; holds the shell weakly, since the engine holds the namer for ever."""
    reference = weakref.ref(shell)

    def cell_name(filename: str) -> str | None:
        alive = reference()
        named = alive.compile.format_code_name(filename) if alive is not None else None
        return named[1] if named is not None else None

    return cell_name


def _mark_machinery() -> None:
    """Tells the engine which frames are not the user's: ours and IPython's; what called IPython is nobody's program.

    Said once, since the engine keeps a list. The file of `run_cell` itself cannot end the stack: it also holds
    `run_cell_magic`, and above a staged cell stands the cell that called the magic.
    """
    if _machinery:
        return
    _machinery.extend([os.path.dirname(__file__), os.path.dirname(IPython.__file__)])
    for folder in _machinery:
        source_line.hide(folder)
    for ours in (
        execution.__file__,
        grad.__file__,
    ):  # what called the magic is no part of what made a staged op, or its gradient
        source_line.end_stacks_at(ours)
    for module in ("IPython.core.async_helpers", "ipykernel.ipkernel"):
        found = importlib.util.find_spec(module)
        if found is not None and found.origin is not None:
            source_line.end_stacks_at(found.origin)
