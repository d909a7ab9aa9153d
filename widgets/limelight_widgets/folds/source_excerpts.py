"""The lines of the user's code that a view shows beside its picture."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Sequence

from limelight.user_code.source_line import Source
from limelight_widgets.folds.fold import State
from limelight_widgets.format import shortened

WHOLE_FILE = 150  # lines up to which a file is shown whole: a notebook cell nearly always is
MARGIN = 4  # lines of context around what is shown of a longer file
MOST_LINES = 400
CODE_WIDTH = 18  # characters of a line that a title has room for
_ASSIGNS = re.compile(r"\s*(\w+(?:, *\w+)*) *(?:[-+*/@%&|^]|\*\*|//)?=(?!=)")
_MAGIC = re.compile(r"^((?:\s*|.*[=\s]))get_ipython\(\)\.run_line_magic\((.*)\)$")
_MADE = re.compile("^(?:(?:forward|backward|many|pushed|unchanging|gradient_of)_)+")


class Excerpts:
    """Collects positions in source files; gives the files' text around them once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._files: list[str] = []
        self._labels: list[str] = []
        self._lines: list[tuple[int, int]] = []
        self._begins: dict[int, dict[int, int]] = {}

    def at(self, source: Source) -> tuple[int, int]:
        """Notes that `source` is shown; returns the index of its file and its line.

        A notebook's cell is one thing, whether its lines are known as IPython's or as those of the staged cell.
        """
        label = source.label
        name = label if label.startswith("In[") else source.file
        known = self._index.get(name)
        if known is None:
            known = self._index[name] = len(self._labels)
            self._files.append(source.file)
            self._labels.append(label)
            self._lines.append((source.line, source.line))
        else:
            first, last = self._lines[known]
            self._lines[known] = (min(first, source.line), max(last, source.line))
        return known, source.line

    def label(self, index: int) -> str:
        """The label of the file with that index."""
        return self._labels[index]

    def statement(self, index: int, line: int) -> int:
        """The first line of the statement that a line of a file belongs to, for statements that hold no others."""
        begins = self._begins.get(index)
        if begins is None:
            begins = self._begins[index] = _statements(linecache.getlines(self._files[index]))
        return begins.get(line, line)

    def code(self, index: int, line: int) -> str:
        """The text of a line of the file with that index, "" where it is not known."""
        return linecache.getline(self._files[index], line)

    def state(self) -> list[State]:
        """For each file its label, the number of the first line shown, and the lines' text."""
        return [
            {"label": label, **_excerpt(file, *span)}
            for file, label, span in zip(self._files, self._labels, self._lines, strict=True)
        ]


def _statements(text: Sequence[str]) -> dict[int, int]:
    r"""For each line after the first of a simple statement that first one.

    >>> _statements(["x = [\n", "    1,\n", "]\n", "y = 2\n"])
    {2: 1, 3: 1}
    """
    try:
        tree = ast.parse("".join(text))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    simple = [one for one in ast.walk(tree) if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    return {line: one.lineno for one in simple for line in range(one.lineno + 1, (one.end_lineno or one.lineno) + 1)}


def definition_line(source: Source) -> int:
    """The line on which the function around a line begins, 0 where its file has but one of that name."""
    text = linecache.getlines(source.file)
    defines = re.compile(rf"\s*(async\s+)?def\s+{re.escape(source.function)}\b")
    if sum(map(bool, map(defines.match, text))) < 2:
        return 0
    try:
        tree = ast.parse("".join(text))
    except (SyntaxError, ValueError, RecursionError):
        return 0
    around = [
        one.lineno
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        and one.name == source.function
        and one.lineno <= source.line <= (one.end_lineno or one.lineno)
    ]
    return max(around, default=0)


def _excerpt(file: str, first: int, last: int) -> State:
    lines = [as_written(line.rstrip("\n")) for line in linecache.getlines(file)]
    if len(lines) <= WHOLE_FILE:
        return {"first": 1, "text": lines}
    start = max(first - MARGIN, 1)
    return {"first": start, "text": lines[start - 1 : min(last + MARGIN, start + MOST_LINES)]}


def as_written(line: str) -> str:
    """A line of a notebook's cell as its author wrote it, from what IPython or a staged cell made of it.

    >>> as_written("get_ipython().run_line_magic('trace_cache', 'g --why')"), as_written("# %%stage step -g")
    ('%trace_cache g --why', '%%stage step -g')
    """
    if line.startswith("# %%stage"):
        return line[2:]
    magic = _MAGIC.match(line)
    if magic is None:
        return line
    try:
        name, rest = ast.literal_eval(f"({magic[2]})")
    except (SyntaxError, ValueError):
        return line
    return f"{magic[1]}%{name} {rest}".rstrip()


def line_title(label: str, line: int, code: str) -> str:
    """What the ops of a line are called: by what the line assigns, or by how it begins.

    >>> line_title("In[3]", 4, "    L, alpha = solve(K, y)"), line_title("In[3]", 5, "return ll.sum(alpha * y)")
    ('L, alpha · line 4', 'line 5: return ll.sum(alp…')
    >>> line_title("In[3]", 4, "K += noise"), line_title("In[3]", 4, "")
    ('K · line 4', 'In[3] line 4')
    """
    assigned = _ASSIGNS.match(code)
    if assigned and len(assigned[1]) <= CODE_WIDTH:
        return f"{assigned[1]} · line {line}"
    return f"line {line}: {shortened(code.strip(), CODE_WIDTH)}" if code.strip() else f"{label} line {line}"


def line_state(source: Source | None) -> list[object] | None:
    """A position as a view shows it in a table: label, line, text of the line."""
    return None if source is None else [source.label, source.line, source.text]


def own_stack(stack: Sequence[Source], function: str) -> Sequence[Source]:
    """The part of a call stack that lies in `function` and what it calls: its own callers made no op.

    The body of a staged cell is a module; the module around it is the cell with its first line. What was made of a
    function, such as its backward pass, has its lines.
    """
    names = [source.function for source in stack]
    for name in (function, _MADE.sub("", function)):
        if name in names:
            return stack[: len(names) - names[::-1].index(name)]
    return stack[: names.index("<module>") + 1] if "<module>" in names else stack
