"""Logarithms of what may be 0 by underflow alone: there is an op for the two together that is finite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from limelight.explain.nonfinite.masking import beside, called, statement_at, statements
from limelight.graph.ir import Graph, Node
from limelight.graph.printer import nested
from limelight.user_code.source_line import Source

_TOGETHER: Final = {"softmax": "log_softmax", "sigmoid": "log_sigmoid"}


def remedy_of_log(line: Source | None, graph: Graph) -> tuple[str, str] | None:
    """For the logarithm of a softmax or sigmoid on a line of `graph`: why it is infinite, and the line as it should be.

    The second is empty where the line is not for code to mend; the whole is None for other logarithms.
    """
    maker = next(_makers(line, graph), None)
    if maker is None:
        return None
    together = f"ll.nn.{_TOGETHER[maker.op.name]}"
    hint = (
        f"{maker.op} underflows to 0, whose logarithm is infinite: {together} of its argument is both in one, and "
        "finite (ll.nn.softmax_cross_entropy and ll.nn.sigmoid_cross_entropy are losses made of it)"
    )
    return hint, _written(line, maker.stack[0] if maker.stack else None, maker.op.name)


def _makers(line: Source | None, graph: Graph) -> Iterator[Node]:
    """What makes the operands of the logarithms on a line, where it has an op with the logarithm."""
    for one in (graph, *(function.graph for function in nested(graph))):
        for node in one.nodes:
            if node.op == "log" and node.stack and node.stack[0] == line and not node.scope.startswith("gradient/"):
                maker = node.inputs[0].node
                if maker is not None and maker.op.name in _TOGETHER:
                    yield maker


def _written(line: Source | None, made: Source | None, op: str) -> str:
    """The statement on `line` with the two in one; empty where that cannot be read off the code."""
    statement = statement_at(line)
    if line is None or made is None or statement is None or (made.file, made.function) != (line.file, line.function):
        return ""
    copy = ast.parse(ast.unparse(statement)).body[0]
    logs = [node for node in ast.walk(copy) if called(node) == "log" and isinstance(node, ast.Call)]
    if len(logs) != 1 or len(logs[0].args) != 1:
        return ""
    operand = logs[0].args[0]
    inner = operand if called(operand) == op else _assigned(operand, line, made, op)
    together = _renamed(inner, op)
    return "" if together is None else beside(line, statement, ast.unparse(_Replaced(logs[0], together).visit(copy)))


def _assigned(operand: ast.expr, line: Source, made: Source, op: str) -> ast.expr | None:
    """The call in `p = softmax(z)` on the line `made`, for the operand `p`, if its names mean the same on `line`."""
    there = statement_at(made)
    if not (isinstance(operand, ast.Name) and isinstance(there, ast.Assign) and made.line < line.line):
        return None
    if [ast.unparse(target) for target in there.targets] != [operand.id] or called(there.value) != op:
        return None
    names = {node.id for node in ast.walk(there) if isinstance(node, ast.Name)}
    between = [one for one in statements(line.file) if made.line < one.lineno < line.line]
    stored = {
        n.id for one in between for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return None if names & stored else there.value


def _renamed(call: ast.expr | None, op: str) -> ast.Call | None:
    """`ll.nn.softmax(z)` as `ll.nn.log_softmax(z)`, also for another name of the library."""
    if not isinstance(call, ast.Call):
        return None
    function = ast.unparse(call.func)
    library = function.removesuffix(f".{op}").removesuffix(".nn")
    if not library.isidentifier() or library == function:
        return None
    together = ast.parse(f"{library}.nn.{_TOGETHER[op]}", mode="eval").body
    return ast.Call(together, call.args, call.keywords)


class _Replaced(ast.NodeTransformer):
    """One node of a tree replaced by another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)
