"""What may differ after a warning that something is drawn once for each trace: what comes of it, and no more.

A difference is covered by the warning if its name was bound or changed on the line of the warning, or by a statement
that read such a name, or another of its streams of numbers, in that run or one before. Functions read what their bodies
mention; names of objects that can change stand for each other where one was made of the other. Functions that keep
something by `nonlocal` are such objects.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from twin import STAGE, Step  # beside this file

ONCE = "once for each trace"
_STREAMS = frozenset(["random", "np"])  # modules whose state a trace has moved on, and the runs after it have not
_ALONE = ("Tensor", "bool", "int", "float", "str", "NoneType", "function", "module", "type")  # what never changes


class Covered:
    """The names whose differences the warnings of a staged notebook cover; `after` each run of a cell, in order."""

    def __init__(self, cells: Sequence[str]) -> None:
        self._trees = [ast.parse(STAGE.sub("\n", cell)) for cell in cells]
        self._reads: defaultdict[str, set[str]] = defaultdict(set)  # by functions and what holds them
        self._shared: defaultdict[str, set[str]] = defaultdict(set)  # names that may mean one object, or parts of one
        self._stateful: set[str] = set()  # functions that keep something by `nonlocal`, and what they have made
        self._lines: set[tuple[int, int]] = set()
        self.names: set[str] = set()

    def after(self, number: int, plain: Step, staged: Step) -> set[str]:
        """The names that are covered once this cell has run."""
        self._lines |= {(number, line) for text, line in staged.warned if ONCE in text and "draws" in text}
        if any(line == 0 for text, line in staged.warned if ONCE in text):  # in a helper
            self._lines |= {(number, line) for line in range(200)}
        self._changeable = {name for name, x in plain.names.items() if not str(x[0]).startswith(_ALONE)}
        for node in self._trees[number - 1].body:
            self._statement(number, node, hot=False)
        return self.names

    def _statement(self, number: int, node: ast.stmt, hot: bool) -> None:
        inner = list(_statements_in(node))
        own = _mentions(node, inner)
        for part in ast.walk(node):
            if isinstance(part, ast.Lambda | ast.FunctionDef | ast.ClassDef):
                for name in {*own, getattr(part, "name", "")}:
                    self._reads[name] |= _mentions(part, ())
            if isinstance(part, ast.FunctionDef) and any(isinstance(x, ast.Nonlocal) for x in ast.walk(part)):
                self._stateful.add(part.name)
        if own & self._stateful:
            self._stateful |= _bound(node)
        last = max([x.lineno for x in inner], default=node.end_lineno or node.lineno)
        lines = range(node.lineno, (min(x.lineno for x in inner) if inner else last + 1))
        read = self._read_by(own)
        hot = hot or bool(read & self.names) or any((number, line) in self._lines for line in lines)
        hot = hot or bool(self._lines and read & _STREAMS)
        for part in _parts(node):
            changeable = own & _mentions(part, inner) & self._changeable
            for name in changeable:
                self._shared[name] |= changeable
        if hot:
            self.names |= (own & (_bound(node) | self._changeable | self._stateful)) | {"_"}
            waiting = list(own & self._changeable)
            while waiting:
                more = self._shared[waiting.pop()] - self.names
                self.names |= more
                waiting += more
        for one in inner:
            self._statement(number, one, hot)

    def _read_by(self, names: set[str]) -> set[str]:
        found, waiting = set(names), list(names)
        while waiting:
            more = self._reads[waiting.pop()] - found
            found |= more
            waiting += more
        return found


def _statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    parts = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    for part in parts:
        for field in ("body", "orelse", "finalbody"):
            if isinstance(inside := getattr(part, field, None), list):
                yield from inside


def _parts(node: ast.stmt) -> list[ast.AST]:
    """A statement; of `a, b = c, d` its two assignments."""
    target, value = (node.targets[0], node.value) if isinstance(node, ast.Assign) else (None, None)
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return [node]
    return [ast.Tuple([one, other], ast.Load()) for one, other in zip(target.elts, value.elts, strict=True)]


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds, with those of the statements in it."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return names | {part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef | ast.ClassDef)}


def _mentions(node: ast.AST, but: Sequence[ast.stmt]) -> set[str]:
    """The names in a statement, but for those of the statements in it."""
    found, waiting = set(), [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name):
            found.add(part.id)
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            found.add(part.name)
        waiting += [child for child in ast.iter_child_nodes(part) if child not in but]
    return found
