"""A call of the user's that runs while tracing alone, written so that it runs each time the graph does."""

from __future__ import annotations

import ast
import functools
import linecache
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from limelight.core.tensor import Tensor
from limelight.user_code.definitions import parsed
from limelight.user_code.names_read import Read

_LINES: Final = 12
"""How many lines a call may go on for where its file as a whole cannot be read."""
_INSTANCES: Final = frozenset(["self", "cls"])


def staged(read: Read, plain: Collection[str] = ()) -> str:
    """The call as `ll.py_func(...)`, with the names of its line; with "..." where the source cannot be had.

    Names that are `plain` stand for no tensors.
    """
    called = str(read.use.chain)
    located = call_at(read, called)
    if located is None:
        return f"ll.py_func({called}, [...], None)"
    text, call = located
    names = [name for name in _tensors([*call.args, *call.keywords], read) if name not in plain]
    if names and not call.keywords and all(isinstance(arg, ast.Name) and arg.id in names for arg in call.args):
        return f"ll.py_func({called}, [{', '.join(arg.id for arg in call.args if isinstance(arg, ast.Name))}], None)"
    return _in_lambda(_written(text, call), names)


def _in_lambda(code: str, names: list[str]) -> str:
    listed = ", ".join(names)
    return f"ll.py_func(lambda{' ' * bool(names)}{listed}: {code}, [{listed}], None)"


def staged_write(read: Read, plain: Collection[str] = ()) -> str:
    """An assignment to an item, or its deletion, as `ll.py_func(...)`; "ll.py_func" where it is not understood."""
    for text, first in _texts(read):
        for node in _at(text, first, read, (ast.Assign, ast.AugAssign, ast.Delete)):
            target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
            if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice) and _is_of(target, read):
                code, parts = _method(node, target)
                return _in_lambda(code, [name for name in _tensors(parts, read) if name not in plain])
    return "ll.py_func"


def _is_of(target: ast.Subscript, read: Read) -> bool:
    chain = read.use.chain
    return ast.unparse(target.value) == str(chain._replace(steps=chain.steps[:-1]))


def _method(node: Any, target: ast.Subscript) -> tuple[str, list[ast.expr]]:
    """`x[k] = v` as the method that Python calls for it, and the expressions in that."""
    owner, key = ast.unparse(target.value), ast.unparse(target.slice)
    if isinstance(node, ast.Delete):
        return f"{owner}.__delitem__({key})", [target.slice]
    value = node.value
    if isinstance(node, ast.AugAssign):
        read = ast.Subscript(target.value, target.slice, ast.Load())
        value = ast.BinOp(read, node.op, node.value)
    return f"{owner}.__setitem__({key}, {ast.unparse(value)})", [target.slice, node.value]


def is_deletion(read: Read) -> bool:
    """Whether what is written to is deleted."""
    return any(True for text, first in _texts(read) for _ in _at(text, first, read, ast.Delete))


def added(read: Read) -> str:
    """What `x += ...` or `x -= ...` adds, as the call of a variable's method: "assign_add(1)"; empty for all else."""
    for text, first in _texts(read):
        for node in _at(text, first, read, ast.AugAssign):
            method = {ast.Add: "assign_add", ast.Sub: "assign_sub"}.get(type(node.op))
            if method and ast.unparse(node.target) == str(read.use.chain):
                return f"{method}({ast.unparse(node.value)})"
    return ""


def call_at(read: Read, called: str) -> tuple[str, ast.Call] | None:
    """The source text that holds the call, and the call in it; where another name stands for it, the only one alike."""
    for text, first in _texts(read):
        calls = _at(text, first, read, ast.Call)
        alike = [
            node for node in calls if isinstance(node.func, ast.Attribute) and called.endswith(f".{node.func.attr}")
        ]
        for node in calls:
            if ast.unparse(node.func) == called:
                return text, node
        if len(alike) == 1:
            return text, alike[0]
    return None


def _at(text: str, first: int, read: Read, kinds: Any) -> list[Any]:
    """The nodes of some kinds at the line that is read; `text` begins at line `first`."""
    line = read.line.line - first + 1
    return [
        node
        for node in _calls_and_writes(text)
        if isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or 0)
    ]


@functools.lru_cache(maxsize=16)
def _calls_and_writes(text: str) -> tuple[Any, ...]:
    """The nodes that are asked for, of a whole file: each of its effects asks for those of one line."""
    tree = parsed(text)
    nodes = ast.walk(tree) if tree is not None else ()
    return tuple([node for node in nodes if isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete, ast.Call))])


def _texts(read: Read) -> Iterator[tuple[str, int]]:
    """The whole file or, where it is no Python, ever more lines from the call on; each with its first line's number."""
    lines = linecache.getlines(read.code.co_filename)
    whole = "".join(lines)
    if parsed(whole) is not None and 0 < read.line.line <= len(lines):
        yield whole, 1
        return
    start = read.line.line
    for end in range(start, min(start + _LINES, len(lines) + 1)):
        yield textwrap.dedent("".join(lines[start - 1 : end])), start


def _tensors(parts: Sequence[ast.AST], read: Read) -> list[str]:
    """The names in some expressions that may stand for tensors of the trace, in order."""
    inside = [node for part in parts for node in ast.walk(part)]
    bound = {node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in inside if isinstance(node, ast.arg)} | _INSTANCES
    names = dict.fromkeys(n.id for n in inside if isinstance(n, ast.Name) and n.id not in bound)
    return [name for name in names if _may_be_tensor(name, read)]


def _may_be_tensor(name: str, read: Read) -> bool:
    code = read.code
    return name in code.co_varnames or name in code.co_cellvars or isinstance(read.globals.get(name), Tensor)


def _written(text: str, call: ast.Call) -> str:
    segment = ast.get_source_segment(text, call)
    return segment if segment is not None and "\n" not in segment else ast.unparse(call)
