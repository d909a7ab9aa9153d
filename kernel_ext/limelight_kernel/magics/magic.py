"""What every magic has: its session, and the ways in which it shows, says or keeps what it made."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics
from IPython.display import display

import limelight_widgets as views
from limelight.errors import LimelightError
from limelight_kernel.explain.fix_cells import with_cells
from limelight_kernel.line import arguments
from limelight_kernel.line.completion import Completed, Names
from limelight_kernel.magics.result_dropped import is_dropped
from limelight_kernel.report.listing import WIDTH, wrapped
from limelight_kernel.staged.session import Session
from limelight_widgets.figures import files
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.live import front_end
from limelight_widgets.views.explain import stories_of

NO_FUNCTION = "No function is staged yet: start a cell with %%stage, or use ll.function."


class JsonForm:
    """A view, an answer or a record as JSON; `data` is what `-o` keeps of it, `to_dict()`, ready for `json.dumps`."""

    def __init__(self, value: Any) -> None:
        shown = value.view if type(value) is PlainText else value
        self.data = files.json_ready(shown)

    def __repr__(self) -> str:
        return json.dumps(self.data, ensure_ascii=False, indent=1)

    def to_dict(self) -> Any:
        return self.data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"application/json": self.data, "text/plain": repr(self)}


class PlainText:
    """A view as plain text alone; `view` is what it shows. Displayed, its lines are broken at blanks."""

    def __init__(self, view: Any) -> None:
        self.view = view

    def __repr__(self) -> str:
        return str(self.view)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(wrapped(str(self.view), text_width()))

    def to_dict(self) -> Any:
        """What it says, ready for JSON."""
        return files.json_ready(self.view)


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

    def to_dict(self) -> Any:
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
        """What is text, or a table, in any form."""
        self._keep(given, value)
        return seen(form_asked(given, value) if given.json or given.quiet else value)

    def _display(self, given: Namespace, view: Any) -> None:
        """Shows, keeps and saves what a cell magic tells beside the cell's result."""
        made = form_asked(given, self._keep(given, view))
        if made is not None:
            display(made)

    def _told(self, given: Namespace, answer: Any, figure: Any) -> Any:
        """An answer of the engine, which is kept, and is JSON or text where that is asked for; else its figure.

        Several answers have no text of their own.
        """
        self._keep_answer(given, answer, figure)
        in_words = given.text and not isinstance(answer, Sequence)
        return seen(form_asked(given, answer if given.json or in_words else figure))

    def _keep_answer(self, given: Namespace, answer: Any, figure: Any) -> None:
        if given.output is not None:
            self.shell.push({given.output: answer})
        if given.save is not None:
            self._save(given, answer if given.save.lower().endswith(".json") else figure)

    def _answered(self, given: Namespace, answer: Any) -> Any:
        """Shows what has forms in the one that was asked for, and says what is text anyway."""
        return self._show(given, answer) if hasattr(answer, "static") else self._say(given, answer)

    def _nothing(self, given: Namespace, sentence: str) -> Any:
        return self._say(given, PlainText(sentence))

    def _keep(self, given: Namespace, value: Any) -> Any:
        if given.output is not None:
            self.shell.push({given.output: value})
        if given.save is not None:
            self._save(given, value)
        return value

    def _save(self, given: Namespace, value: Any) -> None:
        magic = next(iter(self.magics["line"]))
        try:
            said = saved(value, arguments.unquoted(given.save))
        except (LimelightError, OSError, ImportError) as error:
            raise UsageError(f"%{magic} --save: {getattr(error, 'bare', error)}") from None
        if not given.quiet:
            display(PlainText(f"saved {said}"))


def form_asked(given: Namespace, view: Any) -> Any:
    """The view in the form that was asked for: live, `--static`, `--text`, `--json`; None for `--quiet`."""
    if given.quiet:
        return None
    if given.json:
        return JsonForm(view)
    if given.text:
        return PlainText(view)
    return view.static() if given.static and hasattr(view, "static") else view


def saved(value: Any, path: str) -> str:
    """Writes what a magic made to a file, by its ending; what was done, in a sentence.

    Raises ArgumentError for another ending, ImportError and OSError where it cannot be.
    """
    if hasattr(value, "save"):
        return str(value.save(path))
    if isinstance(value, Figure):
        return files.save(path, {"text": value.text}, value)
    figure = value.static() if hasattr(value, "static") else Figure(str(value), "", "")
    return files.save(path, value, figure)


def seen(made: Any) -> Any:
    """`made`, the value of a line magic; displayed here where the cell would drop it."""
    if made is not None and is_dropped():
        display(made)
    return made
