"""What to write where an op is given numbers at the border of its domain, or beyond it.

Masking the result is not enough: `where(x > 0, sqrt(x), 0)` gives 0 at 0, but its gradient there is zero times
infinity, which is NaN. The operand has to be masked as well.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import Final

from limelight.core.op import all_ops
from limelight.explain.nonfinite.logarithms import remedy_of_log
from limelight.explain.nonfinite.masking import Writer, beside, called, names_around, statement_at
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


def remedy(op: str, line: Source | None, graph: Graph, backward: bool) -> tuple[str, str]:
    """Why `op`, on that line, makes such numbers, and the line as it should be; empty where nobody knows.

    `graph` has the op, itself or in a function that it calls; `backward` says that it is the op's gradient that does.
    """
    if op in _OVERFLOWING:
        return (_OVERFLOWS, "") if not backward else ("", "")
    defined = all_ops().get(op)
    domain = None if defined is None else defined.domain
    if domain is None:
        return "", ""
    mask = _mask(op, line, graph)
    statement = statement_at(line)
    if op == "log" and (found := remedy_of_log(line, graph)) is not None:
        return found
    if mask is not None:
        why = "where() masks the result alone, and 0 times infinity is NaN" if backward else domain.why
        hint = f"{why}: mask the operand of {op} as well"
    else:
        hint = domain.why if domain.nearest else f"{domain.why}; where 0 is meant there, mask both operand and result"
    if line is None or statement is None:
        return hint, ""
    return hint, beside(line, statement, Writer(op, domain, mask).written(statement, names_around(line)))


# The mask that there is already


def _mask(op: str, line: Source | None, graph: Graph) -> tuple[str, bool] | None:
    """The condition, as code, of the `where` that the op's result goes into, and whether it is taken where it holds."""
    if line is None:
        return None
    for one in (graph, *(function.graph for function in nested(graph))):
        for node in one.nodes:
            if node.op.name == op and node.stack and node.stack[0] == line and not node.scope.startswith("gradient/"):
                found = _where_after(node, one)
                there = found[0].stack[0] if found is not None and found[0].stack else None
                is_near = there is not None and (there.file, there.function) == (line.file, line.function)
                condition = _condition(there) if is_near else None  # elsewhere its names may mean something else
                if found is not None and condition is not None:
                    return condition, found[1]
    return None


def _where_after(start: Node, graph: Graph) -> tuple[Node, bool] | None:
    """The nearest `where` among what follows a node, and whether the node's values come first in it."""
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
                return user, 1 in places
            if user not in seen and steps < _FARTHEST:
                seen.add(user)
                waiting.append((user, steps + 1))
    return None


def _shape(node: Node) -> object:
    return getattr(node.outputs[0].spec, "shape", None)


def _condition(line: Source | None) -> str | None:
    """The condition of the only `where` on a line, as code."""
    statement = statement_at(line)
    calls = [node for node in ast.walk(statement) if called(node) == "where"] if statement is not None else []
    call = calls[0] if len(calls) == 1 else None
    return ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else None
