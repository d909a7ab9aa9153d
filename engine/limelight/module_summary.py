"""The summary of a module: its layers by attribute path, what they return, and how many parameters they have.

In a terminal it is a table, in a notebook a tree (HTML without scripts; colours are those of the page around it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from limelight.core.variable import Variable

_HEADS: Final = ("Layer", "Type", "Output", "Parameters", "Bytes")
_MOST_NAME: Final = 36


class Size(NamedTuple):
    """How many numbers some variables hold, how many of them are trained, and their bytes."""

    parameters: int = 0
    trainable: int = 0
    nbytes: int = 0

    @staticmethod
    def of(variables: Sequence[Variable]) -> Size:
        """That of variables, which may be given more than once: each counts once."""
        distinct = {v._uid: v for v in variables}.values()
        sizes = [(v, int(v._data.array.size)) for v in distinct]
        return Size(
            sum(n for _, n in sizes),
            sum(n for v, n in sizes if v.trainable),
            sum(n * v.dtype.itemsize for v, n in sizes),
        )


class Row(NamedTuple):
    """One module: `own` are the variables that it holds itself, and that no row above has counted."""

    path: str
    kind: str
    output: str
    own: Size
    whole: Size
    note: str
    children: tuple[Row, ...]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Row]]:
        """This row and those below it, with how deep they lie."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class Summary:
    """What `module.summary()` returns; prints as a table, and is a tree in a notebook.

    `parameters`, `trainable` and `nbytes` are the totals, in which what is shared counts once.
    """

    def __init__(self, root: Row, total: Size, hints: Sequence[str]) -> None:
        self.root = root
        self.parameters, self.trainable, self.nbytes = total
        self.hints = list(hints)

    @property
    def _total(self) -> str:
        frozen = self.parameters - self.trainable
        held = f", {frozen:,} of them not trained" if frozen else ""
        return f"{_number(self.parameters) or 0} parameter{'s' * (self.parameters != 1)}{held}, {_bytes(self.nbytes)}"

    def __str__(self) -> str:
        rows = [
            (_short("  " * depth + row.path), row.kind, row.output, row.note or _number(row.own.parameters),
             _bytes(row.own.nbytes) if row.own.parameters else "")
            for depth, row in self.root.walk()
        ]  # fmt: skip
        widths = [max(len(cell) for cell in column) for column in zip(_HEADS, *rows, strict=True)]
        lines = [
            _line(_HEADS, widths),
            "  ".join("─" * width for width in widths),
            *[_line(row, widths) for row in rows],
        ]
        return "\n".join([*lines, "", f"Total: {self._total}", *self.hints])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        hints = "".join(f"<div>{escape(hint)}</div>" for hint in self.hints)
        return (
            '<div style="font-family: monospace; color: inherit; line-height: 1.5">'
            f"{_tree(self.root)}<div><b>Total:</b> {escape(self._total)}</div>{hints}</div>"
        )


def summary_of(module: Any, outputs: Mapping[int, Sequence[str]], hints: Sequence[str]) -> Summary:
    """The summary of a module, of which the results of calls are known by the modules' ids."""
    return Summary(_row(module, "", outputs, {}, set()), Size.of(module.variables), hints)


def _row(module: Any, path: str, outputs: Mapping[int, Sequence[str]], seen: dict[int, str], counted: set[int]) -> Row:
    kind = type(module).__name__
    if id(module) in seen:
        return Row(path, kind, "", Size(), Size(), f"shared with {seen[id(module)] or 'the model'}", ())
    seen[id(module)] = path
    children = list(module.edges())
    held = [x for _, x in children if isinstance(x, Variable) and x._uid not in counted]
    counted.update([x._uid for x in held])
    below = tuple([
        _row(x, f"{path}.{name}".lstrip(".").replace("/", "."), outputs, seen, counted)
        for name, x in children
        if not isinstance(x, Variable)
    ])  # fmt: skip
    note = "no weights yet" if module._lacks_weights() else ""
    return Row(path or kind, kind if path else "", _output(outputs.get(id(module), ())), Size.of(held),
               Size.of(module.variables), note, below)  # fmt: skip


def _output(results: Sequence[str]) -> str:
    if not results:
        return ""
    return results[-1] + (f" (of {len(results)} calls)" if len(results) > 1 else "")


def _tree(row: Row) -> str:
    """A row of the tree: what is below it can be closed."""
    size = f"{row.whole.parameters:,} parameters, {_bytes(row.whole.nbytes)}" if row.whole.parameters else ""
    said = " · ".join([escape(x) for x in (row.output, row.note or size) if x])
    faint = f'<span style="opacity: 0.75">{escape(row.kind)}{" · " if row.kind and said else ""}{said}</span>'
    head = f"<b>{escape(row.path)}</b> {faint}"
    if not row.children:
        return f'<div style="margin-left: 1.1em">{head}</div>'
    below = "".join(map(_tree, row.children))
    edge = "margin-left: 0.4em; padding-left: 0.8em; border-left: 1px solid currentColor"
    return f'<details open><summary style="cursor: pointer">{head}</summary><div style="{edge}">{below}</div></details>'


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:3], widths[:3], strict=True)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[3:], widths[3:], strict=True)]
    return "  ".join([*left, *right]).rstrip()


def _short(name: str) -> str:
    return name if len(name) <= _MOST_NAME else f"…{name[1 - _MOST_NAME :]}"


def _number(n: int) -> str:
    return f"{n:,}" if n else ""


def _bytes(n: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"


def escape(text: str) -> str:
    """`text` as HTML."""
    import html  # noqa: PLC0415  # two thousand names of characters that nothing else needs

    return html.escape(text)
