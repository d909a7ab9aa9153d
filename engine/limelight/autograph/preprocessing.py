"""What is done to a function's syntax tree before the library sees it.

It refuses what cannot be rewritten, spells out what depends on a function's class, and marks what a staged block must
not do: assign to parts of objects that outlive it, and stand inside `try ... except`. Any function may be called from
such a block, so assignments are marked everywhere. What cannot be rewritten stays as it is, and the reason is told only
if a tensor is asked for a decision there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from limelight.autograph.function_source import Definition, UnconvertibleError
from limelight.autograph.reserved_names import step_aside

_REFUSED: Final[dict[type[ast.AST], str]] = {
    ast.Yield: "it is a generator (`yield`), whose values a graph cannot hand out one by one; return a list or tuple",
    ast.YieldFrom: "it is a generator (`yield from`), whose values a graph cannot hand out one by one; return a list",
    ast.Await: "it waits (`await`), and a graph runs without an event loop",
    ast.AsyncFunctionDef: "it has a coroutine (`async def`) in it; define that outside",
    ast.AsyncFor: "it has an `async for`, and a graph runs without an event loop",
    ast.AsyncWith: "it has an `async with`, and a graph runs without an event loop",
    ast.Match: "it has a `match` statement; write if and elif",
    ast.TryStar: "it has an `except*`; write `except`",
}
_LAZY: Final = (ast.BoolOp, ast.IfExp, ast.While, ast.comprehension, ast.Compare)
_RUN: Final = ("eval", "exec")
_DECIDES: Final = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Assert)


def prepare(node: Definition, file: str, owner: str | None, is_cell: bool = False) -> Definition:
    """`node`, changed in place. Raises UnconvertibleError for what cannot be rewritten.

    Args:
        node: a definition.
        file: of the source.
        owner: the name of the class that it is a method of.
        is_cell: whether it is a notebook's cell, whose names are global and its state nonetheless.
    """
    _refuse(node, file)
    step_aside(node)
    first = node.args.posonlyargs + node.args.args
    prepared: Definition = _Preparing(owner, first[0].arg if first else None, is_cell).visit(node)
    return ast.fix_missing_locations(prepared)


def _refuse(node: ast.AST, file: str) -> None:
    for part in ast.walk(node):
        reason = _REFUSED.get(type(part))
        if isinstance(part, ast.FunctionDef | ast.Lambda) and part is not node and _hands_out(part):
            reason = f"it has a generator in it (`{getattr(part, 'name', 'lambda')}`); define that outside"
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and _asks_for_names(part):
            reason = (
                f"it asks for the names around it (`{part.func.id}()`), which conversion changes; name the variables"
            )
        if isinstance(part, _LAZY) and any(isinstance(x, ast.NamedExpr) for x in _lazy_parts(part)):
            reason = "it assigns with := where Python may never get to (in a while, and, or, if-else or chain of "
            reason += "comparisons); assign on a line of its own"
        if reason is not None:
            raise UnconvertibleError(reason, file, getattr(part, "lineno", getattr(node, "lineno", 1)))


def _asks_for_names(call: ast.Call) -> bool:
    """Whether `call` sees the local variables of its caller; `eval` and `exec` do unless they are given others."""
    name = getattr(call.func, "id", "")
    return name == "locals" or (name in ("vars", "dir") and not call.args) or (name in _RUN and len(call.args) < 2)


def _hands_out(function: ast.AST) -> bool:
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(function))


def _lazy_parts(node: ast.AST) -> list[ast.AST]:
    parts: list[Any] = []
    if isinstance(node, ast.While):
        parts = [node.test]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.comprehension):
        parts = node.ifs
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        parts = node.comparators  # these are functions, too
    return [inner for part in parts for inner in ast.walk(part)]


class _Preparing(ast.NodeTransformer):
    def __init__(self, owner: str | None, first: str | None, is_cell: bool) -> None:
        self._is_cell = is_cell
        self._globals: set[str] = set()  # of the function at hand
        self._owner = owner.lstrip("_") if owner else None
        self._first = first
        self._depth = 0  # of functions
        self._in_class = False  # rather than in a function: its annotations may be what it is about

    # Names that depend on the class

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return _operator("ld", node, node) if self._in_class and isinstance(node.ctx, ast.Load) else node

    def _mangled(self, name: str) -> str:
        private = self._owner and name.startswith("__") and not name.endswith("__")
        return f"_{self._owner}{name}" if private else name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        bare = isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords
        if bare and self._first is not None:
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
        if isinstance(node.func, ast.Name) and node.func.id == "print":  # a name that the library passes over
            node.func = _operator("printer", node, node.func)
        return node

    # Definitions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self._depth == 0:
            node.decorator_list = []  # they have been applied, to what is being converted
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        node.returns = None
        before = self._in_class, self._first, self._globals
        if self._in_class:
            node.args.defaults = [self.visit(x) for x in node.args.defaults]
            node.args.kw_defaults = [x and self.visit(x) for x in node.args.kw_defaults]
            self._first = next((x.arg for x in (*node.args.posonlyargs, *node.args.args)), None)
        self._in_class, self._globals = False, set()
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        self._in_class, self._first, self._globals = before
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Its body stays as it is, but for what it reads, which may have no value."""
        outer, self._owner = self._owner, node.name.lstrip("_")
        first, self._first = self._first, None
        in_class, self._in_class = self._in_class, True
        self.generic_visit(node)
        self._owner, self._first, self._in_class = outer, first, in_class
        return node

    # Assignments to parts of objects

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        noted = self._noted(node, self._mangled(node.attr))
        asks = node.attr == "__class__" and isinstance(node.ctx, ast.Load)
        return _operator("class_of", node, node.value) if asks else noted

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._noted(node)

    def _noted(self, node: Any, attr: str | None = None) -> ast.AST:
        """`node`, the object of which goes by `writes` if this part of it is assigned or deleted."""
        said = ast.unparse(node) if isinstance(node.ctx, ast.Store | ast.Del) and self._depth else None
        name = ast.unparse(node.value) if said is not None else ""
        self.generic_visit(node)
        if attr is not None:
            node.attr = attr
        if said is not None:
            further = [ast.Constant(said), ast.Constant(False), ast.Constant(name)]
            node.value = _operator("writes", node, node.value, *further)
        return node  # type: ignore[no-any-return]  # the very node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        self._globals |= set() if self._is_cell else set(node.names)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        node.value = _noting_containers(node.value)
        names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        return [*self._rebound(node, names), node]

    def _rebound(self, node: ast.stmt, names: list[str]) -> list[ast.stmt]:
        """Notes that names are assigned next, for those that are global."""
        notes = [_operator("rebinds", node, ast.Constant(name)) for name in names if name in self._globals]
        return [ast.copy_location(ast.Expr(note), node) for note in notes]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if node.target.id in self._globals:
            return [*self._rebound(node, [node.target.id]), node]
        target = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        note = _operator("writes", node, target, ast.Constant(node.target.id), ast.Constant(True))
        return [ast.copy_location(ast.Expr(note), node), node]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if self._in_class:
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        names = [node.target.id] if isinstance(node.target, ast.Name) else []
        value = _noting_containers(node.value)
        return [*self._rebound(node, names), ast.copy_location(ast.Assign([node.target], value), node)]

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Names are read first, since `del` of one without a value is an error; of some, only a run knows that."""
        self.generic_visit(node)
        if self._in_class:
            return node
        node.targets = list(_parts_of_targets(node.targets))
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        reads = [ast.copy_location(ast.Expr(ast.copy_location(ast.Name(x, ast.Load()), node)), node) for x in names]
        return [*reads, node]

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        node.value = node.value and _noting_containers(node.value)
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        decides = any(isinstance(x, _DECIDES) for part in node.body for x in ast.walk(part))
        if node.handlers and decides:
            item = ast.withitem(_operator("trying", node))
            node.body = [ast.copy_location(ast.With([item], node.body), node.body[0])]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        nothing = ast.arguments([], [], None, [], [], None, [])
        text = ast.copy_location(ast.Lambda(nothing, node.msg or ast.Constant(None)), node)
        return ast.copy_location(ast.Expr(_operator("assert_stmt", node, node.test, text)), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [_operator("kept", x, x) for x in node.ifs]
        return node


def _parts_of_targets(targets: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        yield from _parts_of_targets(target.elts) if isinstance(target, ast.Tuple | ast.List) else (target,)


_DISPLAYS: Final = (ast.List, ast.Dict, ast.ListComp, ast.DictComp)


def _noting_containers(value: ast.expr) -> ast.expr:
    """`value`, which is assigned or returned, with a note of the lists and dictionaries that it makes."""
    if isinstance(value, ast.Tuple | ast.List):
        value.elts = [_noting_containers(x) for x in value.elts]
    elif isinstance(value, ast.Dict):
        value.values = [_noting_containers(x) for x in value.values]
    elif isinstance(value, ast.ListComp):
        value.elt = _noting_containers(value.elt)
    elif isinstance(value, ast.DictComp):
        value.value = _noting_containers(value.value)
    elif isinstance(value, ast.IfExp):
        value.body, value.orelse = _noting_containers(value.body), _noting_containers(value.orelse)
    elif isinstance(value, ast.BinOp) and isinstance(value.left, ast.List):  # [0] * n
        return _operator("made", value, value)
    elif isinstance(value, ast.Subscript) and ast.unparse(value.slice) == ":":
        return _operator("whole", value, value.value)
    return _operator("made", value, value) if isinstance(value, _DISPLAYS) else value


def _operator(name: str, where: ast.stmt | ast.expr, *args: ast.expr) -> ast.Call:
    called = ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())
    call = ast.copy_location(ast.Call(called, list(args), []), where)
    for part in ast.walk(call):
        if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
            ast.copy_location(part, where)
    return call
