"""The operands of an op as the user wrote them, for messages."""

from __future__ import annotations

import ast
import functools
import re
from typing import Final

from limelight.user_code import source_line
from limelight.user_code.definitions import parsed_expression

_LONGEST: Final = 40
_MODULES: Final = frozenset(["ll", "limelight", "np", "numpy"])
"""What is no tensor before the name of a function."""
_UNARY: Final[dict[type[ast.AST], str]] = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "bitwise_invert"}
_WHOLE: Final = re.compile(r"-?\d+")
_OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}


def operands(op: str) -> tuple[str, str] | None:
    """The two operands of the operator or call that the user's line is at, if it is one of `op`, and they are short."""
    text = source_line.user_segment()
    parts = _parts(_parsed(text)) if text is not None else None
    if parts is None or parts[0] != op:
        return None
    left, right = map(ast.unparse, parts[1:])
    return (left, right) if max(len(left), len(right)) <= _LONGEST else None


def operand(op: str, place: int, count: int) -> str:
    """One of the `count` operands of the op that the user's line is at: "w", the one at place 1 of `x @ w`.

    Empty where the line is not at a call or an operator of that op, or the operand is long.
    """
    text = source_line.user_segment()
    name, given, is_method = ("", (), False) if text is None else _called(text)
    if name != op or len(given) < count or (len(given) > count and not is_method and count > 1):
        return ""
    return given[place] if len(given[place]) <= _LONGEST else ""


def without_augmentation(text: str | None = None) -> str:
    """What a line would say with a new value: "row = row * 2" for `row *= 2`; "" where it is no such line.

    `text` is the line, by default what the user's line evaluates.

    >>> without_augmentation("row[0] -= a + b")
    'row[0] = row[0] - (a + b)'
    """
    text = source_line.user_segment() if text is None else text
    node = _parsed(text) if text is not None else None
    if not isinstance(node, ast.AugAssign):
        return ""
    target = ast.unparse(node.target)
    right = ast.unparse(ast.BinOp(node.target, node.op, node.value))
    return f"{target} = {right}" if len(right) <= 2 * _LONGEST else ""


def item_assigned() -> str:
    """What the user's line assigns an item of: "row" of `row[0] = 2`; "" where it does not."""
    text = source_line.user_segment()
    node = _parsed(text) if text is not None else None
    return ast.unparse(node.value) if isinstance(node, ast.Subscript) else ""


def without_out() -> str:
    """What the user's line would say with a new value: "c = np.add(a, b)" for `np.add(a, b, out=c)`; or ""."""
    text = source_line.user_segment()
    call = _parsed(text) if text is not None else None
    given = {k.arg: k.value for k in call.keywords} if isinstance(call, ast.Call) else {}
    if not isinstance(call, ast.Call) or "out" not in given:
        return ""
    call.keywords = [k for k in call.keywords if k.arg != "out"]
    return f"{ast.unparse(given['out'])} = {ast.unparse(call)}"


def subject() -> str:
    """What the user's line reads or moves: "x" of `x.numpy()`, `float(x)`, `print(x)`, `x.to("cpu:1")`; or ""."""
    text = source_line.user_segment()
    _, given, _ = ("", (), False) if text is None else _called(text)
    return given[0] if given and len(given[0]) <= _LONGEST else ""


@functools.lru_cache(maxsize=1024)
def _called(text: str) -> tuple[str, tuple[str, ...], bool]:
    """The name of the function or operator that an expression applies, its operands, and whether it is a method."""
    node = _parsed(text)
    while isinstance(node, (ast.Expr, ast.Return, ast.Assign, ast.AnnAssign)):
        node = node.value
    binary = _parts(node) if not isinstance(node, ast.Call) else None
    if binary is not None:
        return binary[0] or "", (ast.unparse(binary[1]), ast.unparse(binary[2])), False
    if isinstance(node, ast.UnaryOp):
        return _UNARY.get(type(node.op), ""), (ast.unparse(node.operand),), False
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return "", (), False
    if any(isinstance(x, ast.Starred) for x in node.args):
        return "", (), False
    arguments = [ast.unparse(x) for x in node.args]
    if isinstance(node.func, ast.Name):
        return node.func.id, tuple(arguments), False
    owner = ast.unparse(node.func.value)
    is_method = owner.partition(".")[0] not in _MODULES
    return node.func.attr, (owner, *arguments) if is_method else tuple(arguments), is_method


def whole_number_given() -> str | None:
    """The number, where the user's line calls a function with one whole number alone: "4" of `ll.sqrt(4)`."""
    text = source_line.user_segment()
    call = _parsed(text) if text is not None else None
    if isinstance(call, ast.Expr):
        call = call.value
    if not (isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords):
        return None
    number = ast.unparse(call.args[0])
    return number if _WHOLE.fullmatch(number) else None


def _parts(node: ast.AST | None) -> tuple[str | None, ast.expr, ast.expr] | None:
    """The name of an op with two operands, and these."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS.get(type(node.op)), node.left, node.right
    if isinstance(node, ast.AugAssign):
        return _OPERATORS.get(type(node.op)), node.target, node.value
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _OPERATORS.get(type(node.ops[0])), node.left, node.comparators[0]
    if isinstance(node, ast.Call) and len(node.args) == 2 and isinstance(node.func, ast.Attribute):
        if any(isinstance(x, ast.Starred) for x in node.args):
            return None
        return node.func.attr, node.args[0], node.args[1]
    return None


def _parsed(text: str) -> ast.AST | None:
    expression = parsed_expression(text)
    if expression is not None:
        return expression
    try:
        return ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
