"""A cell's lines as IPython, tracebacks and messages know them: registered, numbered, as they were typed."""

from __future__ import annotations

import linecache
import sys
from types import FrameType

from IPython.core.interactiveshell import InteractiveShell


def register(shell: InteractiveShell, text: str, above: list[str]) -> str:
    """Makes the cell's source known to tracebacks, under the number of the running cell; returns its file name."""
    header = "".join(f"# {line}\n" for line in above)  # a comment, for tools that parse the source to show it
    return str(shell.compile.cache(header + text, number=cell_number(shell)))


def renumber(shell: InteractiveShell, filename: str) -> None:
    """The same text runs again: its lines are now those of the running cell."""
    numbers = getattr(shell.compile, "_filename_map", None)
    if numbers is not None and filename in numbers:
        numbers[filename] = cell_number(shell)


def cell_number(shell: InteractiveShell) -> int:
    """The n of the running cell's In[n]; `execution_count` may have been raised already, depending on the version."""
    return int(shell.displayhook.prompt_count)


def running_line(shell: InteractiveShell) -> tuple[str, int] | None:
    """File name and line of the cell whose code calls this, however deep; None on a thread that runs no cell."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if shell.compile.format_code_name(frame.f_code.co_filename) is not None:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def show_as_typed(shell: InteractiveShell) -> None:
    """Messages and tracebacks that quote a line of the running cell shall quote the magic, not IPython's call of it.

    IPython keeps for a cell the Python code that it made of it: of a cell magic one call, in which the whole body is a
    string, of a line magic a call in its line.
    """
    history, running = shell.history_manager, running_line(shell)
    if history is None or running is None:
        return
    name = running[0]
    made, lines = linecache.getlines(name), [f"{line}\n" for line in history.input_hist_raw[-1].splitlines()]
    of_cell = made[:1] and made[0].startswith("get_ipython().run_cell_magic(")
    if of_cell or (len(made) == len(lines) and any("get_ipython().run_line_magic(" in line for line in made)):
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def lines_above(shell: InteractiveShell, line: str, text: str, magic: str = "stage") -> list[str]:
    """The lines of the running notebook cell above the body of its innermost cell magic.

    Args:
        shell: that runs the cell.
        line: what stands on the line of the magic; enough where the shell keeps no history.
        text: the body.
        magic: the name of the magic.
    """
    history = shell.history_manager
    raw = history.input_hist_raw[-1] if history is not None and history.input_hist_raw else ""
    if raw.rstrip().endswith(text.rstrip()) and text.strip():
        return raw.rstrip()[: -len(text.rstrip())].splitlines()
    return [f"%%{magic} {line}".rstrip()]
