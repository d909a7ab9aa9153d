"""A statement written anew, with the operand of an op masked."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

from limelight.user_code.definitions import parsed
from limelight.user_code.source_line import Source

_LONGEST: Final = 8
"""Operands of more characters are given a name, one of these."""
_NAMES: Final = ("t", "inner", "operand")
_OWN_NAMES: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What has names of its own, which mean nothing before the statement."""
_OPERATORS: Final[dict[type[ast.operator], str]] = {ast.Div: "divide", ast.Pow: "pow"}


class Domain(NamedTuple):
    """`place` is the operand that matters, `inside` where an op is smooth, `harmless` a number there, `why` the rest.

    `near`: what stands for the operand where 0 instead of the result would be wrong.
    """

    place: int
    inside: str
    harmless: str
    why: str
    near: str = ""


def statement_at(line: Source | None) -> ast.stmt | None:
    """The simple statement that a line is in."""
    if line is None:
        return None
    found = [one for one in statements(line.file) if _covers(one, line.line)]
    return min(found, key=lambda one: (one.end_lineno or one.lineno) - one.lineno) if found else _alone(line.text)


def statements(file: str) -> Iterator[ast.stmt]:
    """The simple statements of a file, which are those that have no others in them."""
    return _simple(parsed("".join(linecache.getlines(file))))


def beside(line: Source, statement: ast.stmt, written: str) -> str:
    """`written` for a statement, with what else its lines have: the head of an `if` or a `def`, other statements.

    Empty where the parts cannot be told.
    """
    in_file = _covers(statement, line.line)
    lines = linecache.getlines(line.file)[statement.lineno - 1 : statement.end_lineno] if in_file else [line.text]
    if not lines or not written:
        return written
    head = lines[0].encode()[: statement.col_offset].decode().strip()
    rest = lines[-1].encode()[statement.end_col_offset :].decode().strip()
    body = f"{written}\n{rest[1:].strip()}" if rest.startswith(";") and rest[1:].strip() else written
    if not head:
        return body
    if head.endswith(":"):  # also an `else:`, which is no Python alone
        return f"{head}\n{textwrap.indent(body, '    ')}"
    tree = parsed(head.removesuffix(";"))
    if tree is None:
        return ""
    inner = hasattr(tree.body[-1], "body") if tree.body else False
    return f"{ast.unparse(tree)}\n{textwrap.indent(body, '    ' if inner else '')}"


def names_around(line: Source) -> set[str]:
    """The names in the function that a line is in, or in the file outside of one."""
    tree = parsed("".join(linecache.getlines(line.file))) or ast.Module([], [])
    around = next((one for one in tree.body if hasattr(one, "body") and _covers(one, line.line)), tree)
    names = {node.id for node in ast.walk(around) if isinstance(node, ast.Name)}
    return names | {node.arg for node in ast.walk(around) if isinstance(node, ast.arg)}


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _alone(text: str) -> ast.stmt | None:
    """A line of a file that cannot be read as Python, such as a cell with a magic."""
    return next(iter(_simple(parsed(text))), None)


def _simple(tree: ast.Module | None) -> Iterator[ast.stmt]:
    return (
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    )


class Writer(ast.NodeTransformer):
    """Writes a statement anew, with the operand of its only call of `op` masked, and the result if it is not yet."""

    def __init__(self, op: str, domain: Domain, mask: tuple[str, bool] | None) -> None:
        self._op, self._domain, self._mask = op, domain, mask
        self._library = "ll"
        self._named = ""
        self._within = 0  # how many expressions with names of their own are around
        self._taken: set[str] = set()

    def written(self, statement: ast.stmt, taken: set[str]) -> str:
        """The statement, which may assign names that are not `taken`; empty where there is no such call, or several."""
        copy = ast.parse(ast.unparse(statement)).body[0]
        calls = [node for node in ast.walk(copy) if self._is_op(node)]
        if len(calls) != 1:
            return ""
        self._taken = taken | {node.id for node in ast.walk(copy) if isinstance(node, ast.Name)}
        changed = ast.unparse(ast.fix_missing_locations(self.visit(copy)))
        return f"{self._named}{changed}"

    def visit(self, node: ast.AST) -> ast.AST:
        """`node` with masks in it."""
        if not self._is_op(node):
            self._within += isinstance(node, _OWN_NAMES)
            visited = self.generic_visit(node)
            self._within -= isinstance(node, _OWN_NAMES)
            return visited
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            self._library = node.func.value.id if self._is_function(node) else "ll"
        operand = self._operand(node)
        x = ast.unparse(operand)
        if self._mask is None and self._domain.near:
            self._put(node, self._parse(self._domain.near.format(x=x, ll=self._library)))
            return node
        if self._mask is None and len(x) > _LONGEST and not self._within:
            t = next((name for name in _NAMES if name not in self._taken), "x_")
            self._named, x, operand = f"{t} = {x}\n", t, ast.Name(t, ast.Load())
        inside = self._domain.inside.format(x=f"({x})" if isinstance(operand, ast.BinOp) else x, ll=self._library)
        condition, taken = self._mask or (inside, True)
        pair = f"{x}, {self._domain.harmless}" if taken else f"{self._domain.harmless}, {x}"
        self._put(node, self._parse(f"{self._library}.where({condition}, {pair})"))
        if self._mask is not None:
            return node
        return self._parse(f"{self._library}.where({condition}, {ast.unparse(node)}, 0)")

    def _is_op(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return _OPERATORS.get(type(node.op)) == self._op
        return called(node) == self._op and self._place(node) is not None

    def _is_function(self, call: ast.Call) -> bool:
        """Whether a call is `ll.sqrt(x)`, rather than `x.sqrt()`."""
        return len(call.args) > self._domain.place

    def _place(self, node: ast.AST) -> int | None:
        """Which argument the operand is, -1 for what stands before the dot; None where it is not there."""
        if not isinstance(node, ast.Call):
            return None
        if self._is_function(node):
            return self._domain.place
        return -1 if isinstance(node.func, ast.Attribute) and self._domain.place == 0 else None

    def _operand(self, node: ast.AST) -> ast.expr:
        if isinstance(node, ast.BinOp):
            return node.right if self._domain.place else node.left
        assert isinstance(node, ast.Call)
        place = self._place(node)
        return node.func.value if place == -1 and isinstance(node.func, ast.Attribute) else node.args[place or 0]

    def _put(self, node: ast.AST, operand: ast.expr) -> None:
        if isinstance(node, ast.BinOp):
            setattr(node, "right" if self._domain.place else "left", operand)
        elif isinstance(node, ast.Call):
            place = self._place(node)
            if place == -1 and isinstance(node.func, ast.Attribute):
                node.func.value = operand
            else:
                node.args[place or 0] = operand

    def _parse(self, text: str) -> ast.expr:
        return ast.parse(text, mode="eval").body


def called(node: ast.AST) -> str:
    """The last name of what is called; empty for anything but a call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
