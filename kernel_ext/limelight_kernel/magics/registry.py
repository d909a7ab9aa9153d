"""The magics, registered once: a new one is a file of this folder and a class in `MAGICS`."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from limelight_kernel.line.completion import matcher
from limelight_kernel.magics.check import CheckMagic
from limelight_kernel.magics.checkpoint import CheckpointMagic
from limelight_kernel.magics.dashboard import DashboardMagic
from limelight_kernel.magics.devices import DevicesMagic
from limelight_kernel.magics.explain import ExplainMagic
from limelight_kernel.magics.graph import GraphMagic
from limelight_kernel.magics.hint import HintMagic
from limelight_kernel.magics.magic import LimelightMagic
from limelight_kernel.magics.stage import StageMagic
from limelight_kernel.magics.stageconfig import StageconfigMagic
from limelight_kernel.magics.steps import StepsMagic
from limelight_kernel.magics.tape import TapeMagic
from limelight_kernel.magics.trace_cache import TraceCacheMagic
from limelight_kernel.staged.session import Session

MAGICS: tuple[type[LimelightMagic], ...] = (
    StageMagic,
    GraphMagic,
    TraceCacheMagic,
    TapeMagic,
    DevicesMagic,
    DashboardMagic,
    ExplainMagic,
    StepsMagic,
    CheckpointMagic,
    StageconfigMagic,
    CheckMagic,
    HintMagic,
)


class RegisteredMagics:
    """The magics of one shell, registered from the start; `remove` puts back what their names meant before."""

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        self._manager = shell.magics_manager
        self._before: dict[str, dict[str, Any]] = {kind: dict(known) for kind, known in self._manager.magics.items()}
        self._magics = [magic(shell, session) for magic in MAGICS]
        shell.register_magics(*self._magics)

    def matcher(self) -> Callable[..., Any]:
        """Completes their lines."""
        return matcher({name: line for magic in self._magics for name, line in magic.completed().items()})

    def remove(self) -> None:
        """Takes them away; a name that somebody has taken since stays his."""
        for magic in self._magics:
            self._manager.registry.pop(type(magic).__name__, None)
            for kind, ours in magic.magics.items():
                for name in ours:
                    self._restore(magic, kind, name)

    def _restore(self, magic: LimelightMagic, kind: str, name: str) -> None:
        known = self._manager.magics[kind]
        current = known.get(name)
        if not isinstance(current, MethodType) or current.__self__ is not magic:
            return
        if name in self._before[kind]:
            known[name] = self._before[kind][name]
        else:
            del known[name]
