"""What to write where an op is given numbers at the border of its domain, or beyond it.

Masking the result is not enough: `where(x > 0, sqrt(x), 0)` gives 0 at 0, but its gradient there is zero times
infinity, which is NaN. The operand has to be masked as well: by the condition of the `where` that the result goes into,
if that has its shape and stands in the same function, else by the domain of the op.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import Final, NamedTuple

from limelight.core.op import all_ops
from limelight.explain.fix import called, names_around, statement_at, whole_lines
from limelight.explain.nonfinite.log_of_softmax import log_of_softmax
from limelight.explain.nonfinite.operand_mask import Mask, masked
from limelight.graph.ir import Graph, Node
from limelight.graph.printer import nested
from limelight.user_code.source_line import Source

_FARTHEST: Final = 8
"""How many ops there may be between an op and the `where` that masks its result."""

_OVERFLOWING: Final = frozenset(["exp", "expm1"])
"""Not a `domain`: every operand is inside, the range of the result is too small, and the remedy is another formula."""
_OVERFLOWS: Final = (
    "exp of large numbers overflows: subtract the maximum first, which does not change a quotient, as ll.nn.softmax, "
    "ll.nn.log_softmax and ll.logsumexp do"
)


def hint_and_fix(op: str, line: Source | None, graph: Graph, backward: bool) -> tuple[str, str]:
    """Why an op makes such numbers, and its line as it should be, as code; each is empty where nobody knows.

    Args:
        op: its name.
        line: the user's line that it is on.
        graph: has the op, itself or in a function that it calls.
        backward: whether it is the gradient of the op that makes them.
    """
    if op in _OVERFLOWING:
        return ("" if backward else _OVERFLOWS), ""
    defined = all_ops().get(op)
    domain = None if defined is None else defined.domain
    if domain is None:
        return "", ""
    if op == "log" and (fused := log_of_softmax(line, graph)) is not None:
        return fused
    mask = _mask_of_result(op, line, graph)
    if mask is not None:
        why = "where() masks the result alone, and 0 times infinity is NaN" if backward else domain.why
        hint = f"{why}: mask the operand of {op} as well"
    else:
        hint = domain.why if domain.nearest else f"{domain.why}; where 0 is meant there, mask both operand and result"
    statement = statement_at(line)
    if line is None or statement is None:
        return hint, ""
    return hint, whole_lines(line, statement, masked(statement, op, domain, mask, names_around(line)))


def _mask_of_result(op: str, line: Source | None, graph: Graph) -> Mask | None:
    """The mask of the `where` that the op's result goes into."""
    if line is None:
        return None
    for one in (graph, *(function.graph for function in nested(graph))):
        for node in one.nodes:
            if node.op.name == op and node.stack and node.stack[0] == line and not node.scope.startswith("gradient/"):
                where = _where_after(node, one)
                if where is not None and (condition := _condition_near(where.node, line)) is not None:
                    return Mask(condition, where.takes_first)
    return None


def _condition_near(where: Node, line: Source) -> str | None:
    """The condition of a `where`, as code, if it is in the function of `line`: elsewhere names may mean others."""
    there = where.stack[0] if where.stack else None
    if there is None or (there.file, there.function) != (line.file, line.function):
        return None
    return _condition(there)


class _Where(NamedTuple):
    """A `where`, and whether what was looked for comes first in it, which is taken where the condition holds."""

    node: Node
    takes_first: bool


def _where_after(start: Node, graph: Graph) -> _Where | None:
    """The nearest `where` of the same shape among what follows a node."""
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value.node is not None:
                users.setdefault(value.node, []).append(node)
    waiting, seen = deque([(start, 0)]), {start}
    while waiting:
        node, steps = waiting.popleft()
        for user in users.get(node, ()):
            places = [i for i, value in enumerate(user.inputs) if value.node is node]
            same = _shape(user) == _shape(start)
            if user.op.name == "where" and 0 not in places and same:
                return _Where(user, 1 in places)
            if user not in seen and steps < _FARTHEST:
                seen.add(user)
                waiting.append((user, steps + 1))
    return None


def _shape(node: Node) -> object:
    return getattr(node.outputs[0].spec, "shape", None)


def _condition(line: Source) -> str | None:
    """The condition of the only `where` on a line, as code."""
    statement = statement_at(line)
    calls = [node for node in ast.walk(statement) if called(node) == "where"] if statement is not None else []
    call = calls[0] if len(calls) == 1 else None
    return ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else None
