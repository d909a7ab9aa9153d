r"""Which names does a cell read before it assigns them, and which does it assign?

Pure: it looks at the syntax tree alone. The flow of control is followed by the rule that a reader would apply: both
branches of an `if` may run, the body of a loop runs at least once (where it does not, the cell reads a name that it
never assigned, and says so when it runs), a function's body runs when its name is first mentioned.

>>> found = analyse(ast.parse("h = x @ w\nh = act(h)\ndel x"))
>>> sorted(found.reads), found.writes, sorted(found.deletes)
(['act', 'w', 'x'], ('h', 'x'), ['x'])
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[ido]h|In|Out")
Reads = Callable[[str], Iterable[str]]
"""Maps a name of the notebook to the names that using it reads in turn (the globals of a helper function)."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a cell does with names.

    `reads` maps a name that may be read before it is assigned to the name through which it is reached: itself, or the
    helper function that reads it. `writes` are in order of first assignment; `deletes` are names in a `del`.
    """

    reads: dict[str, str]
    writes: tuple[str, ...]
    deletes: frozenset[str]


def analyse(tree: ast.Module, indirect: Reads = lambda name: ()) -> Names:
    """The names that the module `tree` reads, writes and deletes; `indirect` knows what notebook functions read."""
    flow = _Flow(indirect)
    flow.block(tree.body)
    return Names(flow.reads, tuple({**flow.writes, **flow.globals}), frozenset(flow.deletes))


def free_names(node: ast.stmt) -> tuple[set[str], set[str]]:
    """The globals that the code inside `node` reads, and those that it writes under a `global` statement."""
    table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    reads: set[str] = set()
    writes: set[str] = set()
    waiting = list(table.get_children())
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                reads.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                writes.add(symbol.get_name())
    return reads, writes


def history_names(tree: ast.Module) -> frozenset[str]:
    """The names of IPython's history that the code mentions: `_`, `__`, `_3`, `_i2`, `In`, `Out`.

    >>> sorted(history_names(ast.parse("y = _ + Out[3] * _12; z = _x")))
    ['Out', '_', '_12']
    """
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(name for name in names if _HISTORY.fullmatch(name))


@dataclass
class _Flow(ast.NodeVisitor):
    """Walks statements in the order in which they run, with the set of names that are surely assigned by then."""

    indirect: Reads
    reads: dict[str, str] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)
    globals: dict[str, None] = field(default_factory=dict)  # what functions write under `global`: the cell's own names
    deletes: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    hidden: list[set[str]] = field(default_factory=list)  # parameters of the comprehensions and lambdas around us
    deferred: dict[str, set[str]] = field(default_factory=dict)  # what functions of the cell read when they run
    expanded: set[str] = field(default_factory=set)

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    # -- names

    def read(self, name: str, through: str | None = None) -> None:
        if any(name in names for names in self.hidden):
            return
        if name not in self.assigned:
            self.reads.setdefault(name, through or name)
            self._expand(name, self.indirect(name))
        elif name in self.deferred:
            self._expand(name, self.deferred[name])

    def _expand(self, name: str, names: Iterable[str]) -> None:
        if name in self.expanded:
            return
        self.expanded.add(name)
        around, self.hidden = self.hidden, []  # the helper's globals are not the parameters of the lambda around us
        for inner in sorted(names):
            self.read(inner, through=name)
        self.hidden = around

    def bind(self, name: str) -> None:
        self.assigned.add(name)
        self.writes.setdefault(name)
        self.deferred.pop(name, None)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.read(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.bind(node.id)
        else:
            self.read(node.id)
            self.bind(node.id)
            self.deletes.add(node.id)

    # -- assignments: the value first, then the target

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read(node.target.id)
        self.visit(node.value)
        self.visit(node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.bind(node.target.id)

    def visit_alias(self, node: ast.alias) -> None:
        if node.name != "*":
            self.bind((node.asname or node.name).partition(".")[0])

    # -- control flow

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches([node.body, node.orelse])

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.visit(node.target)
        self.block(node.body)
        self.block(node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        before = set(self.assigned)
        self.block([*node.body, *node.orelse])
        ends = [set(self.assigned)]
        for handler in node.handlers:
            self.assigned = set(before)
            if handler.type is not None:
                self.visit(handler.type)
            if handler.name is not None:
                self.assigned.add(handler.name)
            self.block(handler.body)
            if not _leaves(handler.body):
                ends.append(set(self.assigned))
        self.assigned = set.intersection(*ends)
        self.block(node.finalbody)

    visit_TryStar = visit_Try  # noqa: N815  # the names are the syntax tree's

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        branches: list[list[ast.AST]] = [
            [case.pattern, *([case.guard] if case.guard else []), *case.body] for case in node.cases
        ]
        last = node.cases[-1]
        irrefutable = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        self._branches(branches if irrefutable else [*branches, []])

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.generic_visit(node)
        if node.name is not None:
            self.bind(node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name is not None:
            self.bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        if node.rest is not None:
            self.bind(node.rest)

    def _branches(self, branches: Iterable[Iterable[ast.AST]]) -> None:
        """After a branching, only what every branch that goes on has assigned is surely assigned."""
        before = set(self.assigned)
        ends: list[set[str]] = []
        for branch in map(list, branches):
            self.assigned = set(before)
            for node in branch:
                self.visit(node)
            if not _leaves(branch):
                ends.append(self.assigned)
        self.assigned = set.intersection(*ends) if ends else before

    # -- scopes of their own

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.visit(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self.bind(node.name)
        self.deferred[node.name] = self._free(node)
        self.expanded.discard(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self.bind(node.name)
        for name in sorted(self._free(node)):
            self.read(name)

    def _free(self, node: ast.stmt) -> set[str]:
        reads, writes = free_names(node)
        self.globals.update(dict.fromkeys(sorted(writes)))
        return reads

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        with self._hide(argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)):
            self.visit(node.body)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        with self._hide(()) as own:
            for part in node.generators:
                self.visit(part.iter)
                own |= {name.id for name in ast.walk(part.target) if isinstance(name, ast.Name)}
                for test in part.ifs:
                    self.visit(test)
            for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self.visit(element)

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815

    @contextmanager
    def _hide(self, names: Iterable[str]) -> Iterator[set[str]]:
        own = set(names)
        self.hidden.append(own)
        try:
            yield own
        finally:
            self.hidden.pop()


def _leaves(block: Iterable[ast.AST]) -> bool:
    """Whether control does not reach the end of `block`."""
    return any(isinstance(node, ast.Raise | ast.Break | ast.Continue) for node in block)
