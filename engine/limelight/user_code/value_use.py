"""Code read for what becomes of a number in it: where does Python ask for its value?

Only what is understood is vouched for: arithmetic, comparisons whose result decides nothing in Python, operands of
limelight's ops, and calls of functions that do no more. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Container, Iterable, Sequence
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from limelight.user_code import source_line
from limelight.user_code.source_line import Source

_HARMLESS: Final = (abs, pow, print, list, tuple, dict, zip, enumerate, reversed, repr)
"""Built-in functions that take tensors as well as numbers."""
_TAKEN: Final = ("Tensor",)
"""How the annotation of a parameter begins whose argument may be a tensor as well as a number."""
_METHODS: Final = ("assign", "assign_add", "assign_sub", "gradient", "watch")
"""Methods of variables and tapes, which are known by their names: whose they are only running the code would tell."""
_COPIES: Final = ("constant", "asarray")
"""Functions that ask a tensor for its values although they take one."""
_ASKING: Final = ("numpy", "item", "tolist")
"""Methods of tensors that ask for their values."""
_KNOWN: Final = ("shape", "ndim", "dtype", "size", "device", "spec", "name")
"""Attributes of tensors that are the same whatever their values are."""
_BITS: Final = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_UNKNOWN: Final = "?"
_IF, _WHILE = "an `if` asks for it", "a `while` asks for it"
_INSTEAD: Final = {_IF: "ll.cond", _WHILE: "ll.while_loop"}


class Obstacle(NamedTuple):
    """Why a tensor would not do: `what` the function does with the number, and where; nothing known where it is "?"."""

    what: str
    where: Source | None = None

    @property
    def is_known(self) -> bool:
        return self.what != _UNKNOWN

    def __str__(self) -> str:
        instead = f", where {_INSTEAD[self.what]} takes one" if self.what in _INSTEAD else ""
        return f"{self.what} at {self.where}{instead}"


UNKNOWN: Final = Obstacle(_UNKNOWN)


class Scope(NamedTuple):
    """Where code stands: its file, its name, and what a name outside it stands for (None where only running tells).

    `follow` is asked of a function that is called, and a parameter of it, what keeps that from being a tensor.
    `attributes` are the names of a tensor's.
    """

    file: str
    name: str
    look_up: Callable[[str], Any]
    follow: Callable[[Any, str], Obstacle | None]
    attributes: Container[str]


class ValueUse:
    """One piece of code, read for what becomes of the value at `path`. In `converted` code tensors may decide."""

    def __init__(self, scope: Scope, path: str, converted: bool) -> None:
        self._scope = scope
        self._wanted = ast.unparse(ast.parse(path, mode="eval").body)
        self._root = next(n.id for n in ast.walk(ast.parse(path, mode="eval")) if isinstance(n, ast.Name))
        self._carriers = {self._wanted}  # names whose values may be, or be made of, the number
        self._sequences: set[str] = set()  # names that stand for lists, tuples and texts
        self._converted = converted
        self._obstacles: list[Obstacle] = []

    def of(self, body: Sequence[ast.stmt]) -> Obstacle | None:
        known = -1
        while known != len(self._carriers) and not self._obstacles:  # a loop may carry a value to an earlier line
            known = len(self._carriers)
            for statement in body:
                self._statement(statement)
        return min(self._obstacles, key=lambda one: not one.is_known, default=None)

    def _stop(self, what: str, node: ast.AST) -> None:
        line = getattr(node, "lineno", None)
        where = None if line is None or what == _UNKNOWN else Source(self._scope.file, line, self._scope.name)
        self._obstacles.append(Obstacle(what, where))

    # Statements

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._assign(node)
        elif isinstance(node, (ast.If, ast.While)):
            self._decides(node.test, _IF if isinstance(node, ast.If) else _WHILE)
            self._block([*node.body, *node.orelse])
        elif isinstance(node, ast.Assert):
            self._decides(node.test, "an `assert` asks for it")
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._for(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if self._mentions(node):
                self._carriers.add(node.name)
            self._block(node.body)
        elif isinstance(node, (ast.Return, ast.Expr)):
            self._carries(node.value)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self._with(node)
        elif isinstance(node, ast.Try):
            self._block([*node.body, *[s for handler in node.handlers for s in handler.body]])
            self._block([*node.orelse, *node.finalbody])
        elif self._mentions(node):
            self._stop(_UNKNOWN, node)

    def _block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _assign(self, node: Any) -> None:
        carried = self._carries(node.value)
        for target in getattr(node, "targets", None) or [node.target]:
            if isinstance(node, ast.AugAssign):
                self._computes(node.op, target, node.value, node)
                carried = self._carries(target) or carried
            elif isinstance(target, ast.Name) and node.value is not None and self._is_sequence(node.value):
                self._sequences.add(target.id)
            if carried:
                self._keep(target)

    def _keep(self, target: ast.expr) -> None:
        """A value made of the number is given a name."""
        for part in ast.walk(target):
            if isinstance(part, (ast.Attribute, ast.Subscript)):
                self._stop(f"`{ast.unparse(part)}` keeps it", part)
            elif isinstance(part, ast.Name):
                self._carriers.add(part.id)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        if self._carries(node.iter):
            if not isinstance(node.iter, (ast.Tuple, ast.List)):
                self._stop(_UNKNOWN, node)
            self._keep(node.target)
        self._block([*node.body, *node.orelse])

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            if self._carries(item.context_expr):
                self._stop(_UNKNOWN, node)
        self._block(node.body)

    def _decides(self, test: ast.expr, what: str) -> None:
        if self._carries(test) and not self._converted:
            self._stop(what, test)

    # Expressions

    def _mentions(self, node: ast.AST) -> bool:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        return self._root in names or not names.isdisjoint(self._carriers)

    def _carries(self, node: ast.expr | None) -> bool:
        """Whether the value of an expression may be the number, or be made of it. Notes what a tensor could not do."""
        if node is None or isinstance(node, ast.Constant):
            return False
        if isinstance(node, ast.Name):
            return node.id in self._carriers or (node.id == self._root and self._whole(node))
        read = self._readers.get(type(node))
        if read is not None:
            return bool(read(self, node))
        if self._mentions(node):
            self._stop(_UNKNOWN, node)
        return False

    def _whole(self, node: ast.AST) -> bool:
        """A container that holds the number is used as a whole."""
        self._stop(_UNKNOWN, node)
        return True

    def _part(self, node: ast.Attribute | ast.Subscript) -> bool:
        text = ast.unparse(node)
        if text == self._wanted:
            return True
        if isinstance(node, ast.Subscript) and self._carries(node.slice):
            self._stop(f"it is the index in `{text}`", node)
        if self._wanted.startswith((f"{text}[", f"{text}.")):
            return self._whole(node)
        if _is_place(node) and _base(node) == self._root and self._root not in self._carriers:
            return False  # another part of the same container
        if not self._carries(node.value):
            return False
        if isinstance(node, ast.Subscript) or (node.attr in self._scope.attributes and node.attr not in _ASKING):
            return not (isinstance(node, ast.Attribute) and node.attr in _KNOWN)  # of what was computed with it
        part = "" if node.attr in _ASKING else "a part of "
        self._stop(f"`{text}` asks for {part}it", node)
        return False

    def _compared(self, node: ast.Compare) -> bool:
        carried = self._any((node.left, *node.comparators))
        if not carried or all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        if len(node.ops) > 1 or isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self._stop(f"`{ast.unparse(node)}` asks for it", node)
        return True

    def _either(self, node: ast.BoolOp) -> bool:
        for value in node.values[:-1]:
            self._decides(value, f"`{'and' if isinstance(node.op, ast.And) else 'or'}` asks for it")
        return self._any(node.values)

    def _chosen(self, node: ast.IfExp) -> bool:
        self._decides(node.test, _IF)
        return self._any((node.body, node.orelse))

    def _unary(self, node: ast.UnaryOp) -> bool:
        if isinstance(node.op, ast.Not):
            self._decides(node.operand, "`not` asks for it")
            return False
        return self._carries(node.operand)

    def _binary(self, node: ast.BinOp) -> bool:
        carried = self._any((node.left, node.right))
        if carried and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            self._stop("it is formatted", node)
        self._computes(node.op, node.left, node.right, node)
        return carried

    def _computes(self, op: ast.operator, left: ast.expr, right: ast.expr, node: ast.AST) -> None:
        """What whole numbers are used for besides arithmetic: their bits, and how often to repeat a list."""
        if not isinstance(op, (*_BITS, ast.Mult)) or not (self._mentions(left) or self._mentions(right)):
            return
        if isinstance(op, _BITS):
            self._stop("its bits are asked for", node)
        elif self._is_sequence(left) != self._is_sequence(right):
            number = right if self._is_sequence(left) else left
            if self._mentions(number):
                self._stop(f"`{ast.unparse(node)}` repeats something", node)

    def _is_sequence(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._sequences or isinstance(self._resolve(node), (list, tuple, str, bytes))
        if isinstance(node, ast.Call):
            return self._resolve(node.func) in (list, tuple, str, sorted)
        text = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        return text or isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr))

    def _several(self, node: Any) -> bool:
        return self._any(node.values if isinstance(node, ast.Dict) else node.elts)

    def _any(self, nodes: Iterable[ast.expr]) -> bool:
        """Whether any carries it, and all have been read."""
        return True in [self._carries(node) for node in nodes]

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> bool:
        for loop in node.generators:
            if self._carries(loop.iter):
                self._stop(_UNKNOWN, node)
            for test in loop.ifs:
                self._decides(test, _IF)
        return self._carries(node.elt)

    def _slice(self, node: ast.Slice) -> bool:
        return self._any([part for part in (node.lower, node.upper, node.step) if part is not None])

    def _named(self, node: ast.NamedExpr) -> bool:
        carried = self._carries(node.value)
        if carried:
            self._keep(node.target)
        return carried

    def _lambda(self, node: ast.Lambda) -> bool:
        self._carries(node.body)
        return self._mentions(node)

    def _text(self, node: ast.JoinedStr, shown: bool = False) -> bool:
        """A text with the number in it is another one for a tensor, which matters unless it is only `shown`."""
        for part in node.values:
            told = isinstance(part, ast.FormattedValue) and self._carries(part.value)
            if told and (getattr(part, "format_spec", None) is not None or not shown):
                self._stop("it is formatted", node)
        return False

    def _call(self, node: ast.Call) -> bool:
        made = isinstance(node.func, (ast.Name, ast.Call, ast.Subscript, ast.Lambda)) and self._carries(node.func)
        values = [*node.args, *[k.value for k in node.keywords]]
        if self._resolve(node.func) is print:
            shown = [a for a in values if isinstance(a, ast.JoinedStr) and not self._text(a, shown=True)]
            values = [a for a in values if a not in shown]
        carriers = [a for a in values if self._carries(a)]
        if not carriers:
            return self._carries(node.func) if isinstance(node.func, ast.Attribute) else made
        called = self._resolve(node.func)
        known = isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
        if known or any(called is one for one in _HARMLESS):
            return True
        words = ast.unparse(node.func)
        if getattr(builtins, getattr(called, "__name__", ""), None) is called and called is not None:
            self._stop(f"`{words}()` asks for it", node)
        elif not (callable(called) and self._followed(called, node, carriers)):
            self._stop(_UNKNOWN, node)
        return True

    def _followed(self, called: Any, node: ast.Call, carriers: list[ast.expr]) -> bool:
        """Whether the function that is called is one that can be read, or an op that takes tensors there."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            return False
        function = getattr(called, "python_function", called)
        signature = inspect.signature(function)
        bound = signature.bind(*node.args, **{k.arg: k.value for k in node.keywords if k.arg})
        for name, value in bound.arguments.items():
            if not any(value is one for one in carriers):
                continue
            if isinstance(function, FunctionType) and source_line.is_library(function.__code__):
                taken = _TAKEN if not isinstance(value, ast.Lambda) else (*_TAKEN, "Callable")
                if not str(signature.parameters[name].annotation).startswith(taken) or function.__name__ in _COPIES:
                    return False
                continue
            obstacle = self._scope.follow(function, name)
            if obstacle is not None:
                self._obstacles.append(obstacle)
        return not any(isinstance(value, (tuple, dict)) for value in bound.arguments.values())

    def _resolve(self, node: ast.expr) -> Any:
        """What a name stands for outside the function; None for what only running it would tell."""
        if isinstance(node, ast.Attribute):
            base = self._resolve(node.value)
            return vars(base).get(node.attr) if isinstance(base, ModuleType) else None
        return self._scope.look_up(node.id) if isinstance(node, ast.Name) else None

    _readers: Final[dict[type, Callable[[Any, Any], bool]]] = {
        ast.Attribute: _part,
        ast.Subscript: _part,
        ast.Compare: _compared,
        ast.BoolOp: _either,
        ast.IfExp: _chosen,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.Tuple: _several,
        ast.List: _several,
        ast.Dict: _several,
        ast.ListComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.NamedExpr: _named,
        ast.Slice: _slice,
        ast.Lambda: _lambda,
        ast.JoinedStr: _text,
        ast.Call: _call,
    }


def _is_place(node: ast.expr) -> bool:
    """Whether an expression is a name with constant keys and attributes after it."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _base(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
