"""What every magic has: its session, and the ways in which it shows, says or keeps what it made."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics
from IPython.display import display

import limelight_widgets as views
from limelight_kernel.explain.fix_cells import with_cells
from limelight_kernel.line.completion import Completed, Names
from limelight_kernel.magics.result_dropped import is_dropped
from limelight_kernel.report.listing import WIDTH, wrapped
from limelight_kernel.staged.session import Session
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.live import front_end
from limelight_widgets.views.explain import stories_of

NO_FUNCTION = "No function is staged yet: start a cell with %%stage, or use ll.function."


class PlainText:
    """A view as plain text alone; `view` is what it shows. Displayed, its lines are broken at blanks."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def __repr__(self) -> str:
        return str(self.view)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(wrapped(str(self.view), text_width()))


class Cards(PlainText):
    """An answer of `limelight.explain`: cards in a notebook, text in a terminal.

    Args:
        view: the answer.
        function: the staged function that it is about, if it is about one.
    """

    def __init__(self, view: Any, function: Any = None) -> None:
        super().__init__(view)
        self._function = function

    def static(self) -> Figure:
        """The cards without a widget."""
        return self._view().static()

    def _view(self) -> views.ExplainView:
        stories = with_cells(stories_of(self.view), self._function)
        code = [fix.code for story in stories for fix in story.fixes]
        text = wrapped(str(self.view), text_width(), code)
        return views.ExplainView(stories, text, getattr(self.view, "notes", ()))

    def to_dict(self) -> dict[str, Any]:
        """The answer, ready for JSON."""
        if hasattr(self.view, "to_dict"):
            return dict(self.view.to_dict())
        return {"stories": [story.to_dict() for story in stories_of(self.view)]}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self._view()._repr_mimebundle_(include, exclude)


def text_width() -> int:
    """Columns of the terminal; 80 in a notebook's kernel, whose terminal, if any, is another program's."""
    in_kernel = getattr(front_end.shell(), "kernel", None) is not None
    return WIDTH if in_kernel else max(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH // 2)


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
        return seen(form_asked(given, self._keep(given, view)))

    def _say(self, given: Namespace, value: Any) -> Any:
        return seen(self._keep(given, value))

    def _answered(self, given: Namespace, answer: Any) -> Any:
        """Shows what has forms in the one that was asked for, and says what is text anyway."""
        return self._show(given, answer) if hasattr(answer, "static") else self._say(given, answer)

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


def seen(made: Any) -> Any:
    """`made`, the value of a line magic; displayed here where the cell would drop it."""
    if is_dropped():
        display(made)
    return made
