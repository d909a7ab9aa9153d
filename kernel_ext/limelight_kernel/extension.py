"""Loading and unloading: everything that loading adds to a shell, unloading takes away again."""

from __future__ import annotations

import importlib.util
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import IPython
from IPython.core.interactiveshell import InteractiveShell

from limelight.core import dispatch
from limelight.user_code import source_line
from limelight.user_code import tracebacks as frames
from limelight_kernel import tensor_display, tracebacks, warning_display
from limelight_kernel.magics.call_on_line import what_if_asked
from limelight_kernel.magics.registry import RegisteredMagics
from limelight_kernel.report import gradients
from limelight_kernel.staged import execution
from limelight_kernel.staged.session import Session
from limelight_widgets.live import what_if

_MISSING = object()
_loaded: weakref.WeakKeyDictionary[InteractiveShell, _Loaded] = weakref.WeakKeyDictionary()
_machinery: list[str] = []


@dataclass
class _Loaded:
    """What we put into the shell, and what was there before."""

    session: Session
    magics: RegisteredMagics
    matcher: Callable[..., Any]
    exceptions: tuple[type[BaseException], ...]
    custom_tb: Any
    our_tb: Any
    namer: source_line.CellNamer | None
    our_namer: source_line.CellNamer
    formatters: tensor_display.Formatters
    ask: what_if.Ask
    warned: tuple[warning_display.Show, warning_display.Show]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Adds the magics, their completion, the cells' names, short tracebacks and tensors' tiles. Prints nothing."""
    if shell in _loaded:
        return
    _mark_machinery()
    session = Session(shell)
    if shell.profile_dir is not None:  # a shell that is embedded may have none
        session.preferences.load(shell.profile_dir.location)
    magics = RegisteredMagics(shell, session)
    matcher = magics.matcher()
    shell.Completer.custom_matchers.append(matcher)
    exceptions, custom_tb = shell.custom_exceptions, vars(shell).get("CustomTB", _MISSING)
    shell.set_custom_exc(tracebacks.HANDLED, tracebacks.handler)
    shell.events.register("pre_run_cell", _heal)
    frames.left_to(shell)
    namer = _namer(shell)
    before = source_line.set_cell_namer(namer)
    ask = what_if_asked(session)
    what_if.answered_by(ask)
    our_tb, formatters = vars(shell)["CustomTB"], tensor_display.show_tiles(shell)
    _loaded[shell] = _Loaded(
        session,
        magics,
        matcher,
        exceptions,
        custom_tb,
        our_tb,
        before,
        namer,
        formatters,
        ask,
        warning_display.show_ours(),
    )


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Leaves the shell as it was before loading; names that staged cells have bound stay."""
    loaded = _loaded.pop(shell, None)
    if loaded is None:
        return
    frames.left_to(shell, on=False)
    loaded.session.watch_devices(on=False)
    loaded.session.preferences.reset()
    what_if.no_longer(loaded.ask)
    warning_display.as_before(*loaded.warned)
    loaded.magics.remove()
    shell.events.unregister("pre_run_cell", _heal)
    tensor_display.as_before(shell, loaded.formatters)
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


def _heal(_: object) -> None:
    """Before a cell runs: an interrupted one may have left scopes open, in generators that its traceback keeps.

    And questions about calls of staged cells keep what these read, which the notebook may have replaced since.
    """
    dispatch.heal()
    for loaded in list(_loaded.values()):
        for staged in loaded.session.cells:
            staged.let_go()


def session_of(shell: InteractiveShell) -> Session:
    """The session of a shell into which the extension is loaded."""
    return _loaded[shell].session


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
    # What called the magic is no part of what made a staged op, or its gradient.
    for ours in (execution.__file__, gradients.__file__):
        source_line.end_stacks_at(ours)
    for module in ("IPython.core.async_helpers", "ipykernel.ipkernel"):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            source_line.end_stacks_at(spec.origin)
