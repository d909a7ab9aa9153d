"""A statement with the operand of one op masked, so that the op stays within the domain in which it is smooth."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection
from typing import Final, NamedTuple

from limelight.core.op import Domain
from limelight.explain.fix import called, expression, replaced

_LONGEST: Final = 8
"""Operands of more characters are given a name, one of these."""
_NAMES: Final = ("t", "inner", "operand")
_OWN_NAMES: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What has names of its own, which mean nothing before the statement."""
_OPERATORS: Final[dict[type[ast.operator], str]] = {ast.Div: "divide", ast.Pow: "pow"}


class Mask(NamedTuple):
    """The mask that a result has already: a condition, as code, and whether the result is taken where it holds."""

    condition: str
    is_taken: bool


def masked(statement: ast.stmt, op: str, domain: Domain, mask: Mask | None, taken: Collection[str]) -> str:
    """The code of a statement with the operand of its only call of `op` masked, and the result if it is not yet.

    Empty where there is no such call, or several.

    Args:
        statement: as the user wrote it.
        op: its name, also for an operator such as `/`.
        domain: of the op.
        mask: that of the result; None where it has none.
        taken: names around the statement, which it may not assign.
    """
    calls = [call for node in ast.walk(statement) if (call := _call_of(op, domain.operand, node)) is not None]
    if len(calls) != 1:
        return ""
    call = calls[0]
    x = ast.unparse(call.operand)
    if mask is None and domain.nearest:
        return replaced(statement, call.node, call.with_operand(domain.nearest.format(x=x, ll=call.library)))
    binding, is_loose = "", isinstance(call.operand, ast.BinOp)
    if mask is None and len(x) > _LONGEST and not _has_own_names(statement, call.node):
        used = {*taken, *[node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]}
        name = next((one for one in _NAMES if one not in used), "x_")
        binding, x, is_loose = f"{name} = {x}\n", name, False
    condition, is_taken = mask or (domain.condition.format(x=f"({x})" if is_loose else x, ll=call.library), True)
    pair = f"{x}, {domain.inside}" if is_taken else f"{domain.inside}, {x}"
    new = call.with_operand(f"{call.library}.where({condition}, {pair})")
    if mask is None:
        new = expression(f"{call.library}.where({condition}, {ast.unparse(new)}, 0)")
    return f"{binding}{replaced(statement, call.node, new)}"


class _OpCall(NamedTuple):
    """`ll.sqrt(x)`, `x.sqrt()` or `y / x`: the node, the operand that matters, and the name of the library."""

    node: ast.expr
    operand: ast.expr
    library: str = "ll"

    def with_operand(self, code: str) -> ast.expr:
        """The same call, of another operand."""
        return copy.deepcopy(self.node, {id(self.operand): expression(code)})


def _call_of(op: str, place: int, node: ast.AST) -> _OpCall | None:
    """A node as a call of `op`, of which the operand at `place` matters; None for any other."""
    if isinstance(node, ast.BinOp):
        operand = node.right if place else node.left
        return _OpCall(node, operand) if _OPERATORS.get(type(node.op)) == op else None
    if not isinstance(node, ast.Call) or called(node) != op:
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if len(node.args) > place:  # a function, rather than the method of its first operand
        return _OpCall(node, node.args[place], owner.id if isinstance(owner, ast.Name) else "ll")
    return _OpCall(node, owner) if owner is not None and place == 0 else None


def _has_own_names(statement: ast.stmt, node: ast.AST) -> bool:
    """Whether a node of a statement is inside a lambda or a comprehension."""
    scopes = [one for one in ast.walk(statement) if isinstance(one, _OWN_NAMES)]
    return any(node is inner for scope in scopes for inner in ast.walk(scope))
