"""Loading and unloading: everything that loading adds to a shell, unloading takes away again."""

from __future__ import annotations

import asyncio
import inspect
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any

import ipykernel
import IPython
import tornado
import traitlets
from IPython.core.interactiveshell import InteractiveShell

from limelight import source
from limelight.devices import list_devices
from limelight_kernel import completion, tracebacks
from limelight_kernel.magics import LimelightMagics
from limelight_kernel.session import Session

_MISSING = object()
_loaded: weakref.WeakKeyDictionary[InteractiveShell, _Loaded] = weakref.WeakKeyDictionary()
_hidden: set[str] = set()


@dataclass
class _Loaded:
    """What was in the shell before, and what we put there."""

    magics: dict[str, dict[str, Any]]
    matcher: Callable[..., Any]
    exceptions: tuple[type[BaseException], ...]
    custom_tb: Any
    our_tb: Any
    namer: source.CellNamer | None
    our_namer: source.CellNamer


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Adds the magics, their completion, the cells' names and the short tracebacks. Prints nothing."""
    if shell in _loaded:
        return
    for module in (IPython, ipykernel, asyncio, tornado, traitlets):
        _hide(module)
    source.end_stacks_at(inspect.getfile(InteractiveShell))  # the shell, and the event loop below it, is not the user's
    _hide_folder(os.path.dirname(os.path.abspath(__file__)))
    session = Session(shell)
    before = {kind: dict(known) for kind, known in shell.magics_manager.magics.items()}
    magics = LimelightMagics(shell, session)
    shell.register_magics(magics)
    matcher = _matcher(magics, session)
    shell.Completer.custom_matchers.append(matcher)
    exceptions, custom_tb = shell.custom_exceptions, vars(shell).get("CustomTB", _MISSING)
    shell.set_custom_exc(tracebacks.HANDLED, tracebacks.handler)
    namer = _namer(shell)
    _loaded[shell] = _Loaded(
        before, matcher, exceptions, custom_tb, vars(shell)["CustomTB"], source.set_cell_namer(namer), namer
    )


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Leaves the shell as it was before loading; names that staged cells have bound stay."""
    loaded = _loaded.pop(shell, None)
    if loaded is None:
        return
    _restore_magics(shell, loaded)
    if loaded.matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(loaded.matcher)
    if vars(shell).get("CustomTB") is loaded.our_tb:  # somebody who replaced our handler keeps his
        shell.custom_exceptions = loaded.exceptions
        if loaded.custom_tb is _MISSING:
            del shell.CustomTB
        else:
            shell.CustomTB = loaded.custom_tb
    current = source.set_cell_namer(loaded.namer)
    if current is not loaded.our_namer:
        source.set_cell_namer(current)


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
    methods = {name: getattr(magics, name) for name in ("stage", "graph", "trace_cache", "tape", "devices")}
    names = {
        "stage": session.function_names,
        "graph": session.function_names,
        "trace_cache": session.function_names,
        "tape": session.tape_names,
    }
    devices = {"-d": _devices, "--device": _devices}
    return completion.matcher(methods, names, devices)


def _devices() -> list[str]:
    return [device.short for device in list_devices()]


def _namer(shell: InteractiveShell) -> source.CellNamer:
    """Names a cell's file "In[3]"; holds the shell weakly, since the engine holds the namer for ever."""
    reference = weakref.ref(shell)

    def cell_name(filename: str) -> str | None:
        alive = reference()
        named = alive.compile.format_code_name(filename) if alive is not None else None
        return named[1] if named is not None else None

    return cell_name


def _hide(module: ModuleType) -> None:
    if module.__file__ is not None:
        _hide_folder(os.path.dirname(os.path.abspath(module.__file__)))


def _hide_folder(folder: str) -> None:
    """Frames of the machinery around a cell are not the user's; said once, for the engine keeps a list."""
    if folder not in _hidden:
        _hidden.add(folder)
        source.hide(folder)
