"""What every magic has: its session, and the ways in which it shows, says or keeps what it made."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics
from IPython.display import display

from limelight_kernel.line.completion import Completed, Names
from limelight_kernel.magics.result_dropped import is_dropped
from limelight_kernel.staged.session import Session

NO_FUNCTION = "No function is staged yet: start a cell with %%stage, or use ll.function."


class PlainText:
    """A view as plain text alone; `view` is what it shows."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def __repr__(self) -> str:
        return str(self.view)


class LimelightMagic(Magics):
    """Base of the magics. Each is a subclass in a file of its own, with one method: it has the magic's name and help.

    `names` and `flag_values` are for completion, while the line is typed.
    """

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        super().__init__(shell)
        self.session = session

    def names(self) -> Iterable[str]:
        """What may stand on the line as NAME."""
        return ()

    def flag_values(self) -> Mapping[str, Names]:
        """What may follow a flag that takes a value and lists no choices."""
        return {}

    def completed(self) -> dict[str, Completed]:
        """What completion needs to know, by the magic's name."""
        methods = {**self.magics["line"], **self.magics["cell"]}
        return {name: Completed(method, self.names, self.flag_values()) for name, method in methods.items()}

    def _show(self, given: Namespace, view: Any) -> Any:
        return _seen(form_asked(given, self._keep(given, view)))

    def _say(self, given: Namespace, value: Any) -> Any:
        return _seen(self._keep(given, value))

    def _nothing(self, given: Namespace, sentence: str) -> Any:
        return self._say(given, PlainText(sentence))

    def _keep(self, given: Namespace, value: Any) -> Any:
        if given.output is not None:
            self.shell.push({given.output: value})
        return value


def form_asked(given: Namespace, view: Any) -> Any:
    """The view in the form that was asked for: live, `--static`, or `--text`."""
    if given.text:
        return PlainText(view)
    return view.static() if given.static else view


def _seen(made: Any) -> Any:
    """`made`, the value of a line magic; displayed here where the cell would drop it."""
    if is_dropped():
        display(made)
    return made
