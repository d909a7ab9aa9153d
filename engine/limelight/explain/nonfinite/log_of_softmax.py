"""The logarithm of a softmax or a sigmoid, which may be 0 by underflow: `log_softmax` is both in one, and finite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from limelight.explain.fix import called, replaced, statement_at, statements, stored_names, whole_lines
from limelight.graph.ir import Graph, Node
from limelight.graph.printer import nested
from limelight.user_code.source_line import Source

_FUSED: Final = {"softmax": "log_softmax", "sigmoid": "log_sigmoid"}


def log_of_softmax(line: Source | None, graph: Graph) -> tuple[str, str] | None:
    """For the logarithm of a softmax or sigmoid on a line of `graph`: why it is infinite, and the line as it should be.

    The line is empty where it is not for code to mend; None for other logarithms.
    """
    argument = next(_arguments_of_log(line, graph), None)
    if argument is None:
        return None
    together = f"ll.nn.{_FUSED[argument.op.name]}"
    hint = (
        f"{argument.op} underflows to 0, whose logarithm is infinite: {together} of its argument is both in one, and "
        "finite (ll.nn.softmax_cross_entropy and ll.nn.sigmoid_cross_entropy are losses made of it)"
    )
    return hint, _fixed_line(line, argument.stack[0] if argument.stack else None, argument.op.name)


def _arguments_of_log(line: Source | None, graph: Graph) -> Iterator[Node]:
    """What makes the operands of the logarithms on a line, where it has an op with the logarithm."""
    for one in (graph, *(function.graph for function in nested(graph))):
        for node in one.nodes:
            if node.op == "log" and node.stack and node.stack[0] == line and not node.scope.startswith("gradient/"):
                argument = node.inputs[0].node
                if argument is not None and argument.op.name in _FUSED:
                    yield argument


def _fixed_line(line: Source | None, made: Source | None, op: str) -> str:
    """The statement on `line` with the two in one; empty where that cannot be read off the code."""
    statement = statement_at(line)
    if line is None or made is None or statement is None or (made.file, made.function) != (line.file, line.function):
        return ""
    logs = [node for node in ast.walk(statement) if called(node) == "log" and isinstance(node, ast.Call)]
    if len(logs) != 1 or len(logs[0].args) != 1:
        return ""
    operand = logs[0].args[0]
    inner = operand if called(operand) == op else _assigned(operand, line, made, op)
    together = _renamed(inner, op)
    return "" if together is None else whole_lines(line, statement, replaced(statement, logs[0], together))


def _assigned(operand: ast.expr, line: Source, made: Source, op: str) -> ast.expr | None:
    """The call in `p = softmax(z)` on the line `made`, for the operand `p`, if its names mean the same on `line`."""
    there = statement_at(made)
    if not (isinstance(operand, ast.Name) and isinstance(there, ast.Assign) and made.line < line.line):
        return None
    if [ast.unparse(target) for target in there.targets] != [operand.id] or called(there.value) != op:
        return None
    names = {node.id for node in ast.walk(there) if isinstance(node, ast.Name)}
    between = [one for one in statements(line.file) if made.line < one.lineno < line.line]
    return None if any(names & stored_names(one) for one in between) else there.value


def _renamed(call: ast.expr | None, op: str) -> ast.Call | None:
    """`ll.nn.softmax(z)` as `ll.nn.log_softmax(z)`, also for another name of the library."""
    if not isinstance(call, ast.Call):
        return None
    function = ast.unparse(call.func)
    library = function.removesuffix(f".{op}").removesuffix(".nn")
    if not library.isidentifier() or library == function:
        return None
    together = ast.parse(f"{library}.nn.{_FUSED[op]}", mode="eval").body
    return ast.Call(together, call.args, call.keywords)
