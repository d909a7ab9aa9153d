"""From the text of a staged cell to code objects whose lines are the cell's own.

The body is compiled as a module, not as a function: so `global`, `del`, class bodies and functions that the cell
defines mean exactly what they mean in an ordinary cell.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from types import CodeType

from IPython.core.interactiveshell import InteractiveShell

from limelight_kernel.cell.cell_source import register


class CellSyntaxError(SyntaxError):
    """The text under a cell magic cannot be compiled; shown with its line, and no other code.

    See docs/errors/CellSyntaxError.md.
    """


class StagedSyntaxError(CellSyntaxError):
    """A staged cell that cannot be compiled, or holds something that only an ordinary cell may hold.

    See docs/errors/StagedSyntaxError.md.
    """


@dataclass(frozen=True, slots=True)
class Cell:
    """A staged cell, compiled.

    `header` is the number of lines above the body in its notebook cell (the line of the magic, and whatever stands
    above it); line numbers everywhere count from the top of the notebook cell. `result` computes the value of the
    last expression, and is None where the cell ends in a statement.
    """

    text: str
    filename: str
    header: int
    tree: ast.Module
    body: CodeType
    result: CodeType | None

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def compile_cell(shell: InteractiveShell, text: str, above: list[str]) -> Cell:
    """Compiles `text`, the lines under a cell magic; `above` are the lines above them in the notebook cell.

    Raises StagedSyntaxError, with the cell's name and line, for what Python or staging refuses.
    """
    text = _dedented(text)
    filename = register(shell, text, above)
    tree = _parse(shell, text, filename, len(above))
    _refuse(tree, text, filename, len(above))
    tree = shell.transform_ast(tree)
    body = list(tree.body)
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    statements = ast.Module(body, type_ignores=[])
    return Cell(
        text,
        filename,
        len(above),
        tree,
        compile(statements, filename, "exec", dont_inherit=True),
        None if last is None else compile(ast.Expression(last.value), filename, "eval", dont_inherit=True),
    )


def parse_cell(text: str, filename: str, header: int) -> ast.Module:
    """`text`, with `header` lines above it in its cell; raises CellSyntaxError, with the cell's line."""
    try:
        return ast.increment_lineno(ast.parse(text, filename), header)
    except SyntaxError as error:
        line = error.lineno or 1
        code = "".join(text.splitlines(keepends=True)[line - 1 : line])
        raise CellSyntaxError(error.msg, (filename, line + header, error.offset or 1, code)) from None


def _dedented(text: str) -> str:
    """IPython dedents a cell that is indented as a whole, and so do we."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return textwrap.dedent(text) if first[:1].isspace() else text


def _parse(shell: InteractiveShell, text: str, filename: str, header: int) -> ast.Module:
    try:
        tree = ast.parse(text, filename)
    except SyntaxError as error:
        magic = _magic(shell, text, error.lineno or 1)
        message = magic or error.msg
        raise _error(message, text, filename, header, error.lineno or 1, error.offset or 1) from None
    return ast.increment_lineno(tree, header)


def _magic(shell: InteractiveShell, text: str, line: int) -> str | None:
    """A sentence about the magic, shell command or help request in that line, if it is one."""
    lines = text.splitlines()
    code = lines[line - 1].strip() if line <= len(lines) else ""
    plain = shell.input_transformer_manager.transform_cell(code + "\n").strip()
    if plain == code or "get_ipython()" not in plain or "get_ipython()" in code:
        return None
    return (
        f"{code!r} is IPython's own syntax and would run once, in the notebook, while the cell is traced. "
        "Move it to a cell of its own; cell magics such as %%time go above %%stage"
    )


_REFUSED: dict[type[ast.AST], str] = {
    ast.Return: "a staged cell has no 'return': its last expression is its result, and the names it assigns are kept",
    ast.Yield: "a staged cell cannot 'yield': collect values in a list and end the cell with it",
    ast.YieldFrom: "a staged cell cannot 'yield': collect values in a list and end the cell with it",
    ast.Await: "a staged cell cannot 'await': a graph runs without an event loop. Await in a cell above",
    ast.AsyncFor: "a staged cell cannot use 'async for': a graph runs without an event loop",
    ast.AsyncWith: "a staged cell cannot use 'async with': a graph runs without an event loop",
}
_STAR = "a staged cell must know its names before it runs: import them by name, or in a cell above"


def _refuse(tree: ast.Module, text: str, filename: str, header: int) -> None:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        message = _REFUSED.get(type(node))
        if isinstance(node, ast.comprehension) and node.is_async:
            message, node = _REFUSED[ast.AsyncFor], node.target
        if isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names):
            message = _STAR
        if message is not None and isinstance(node, ast.stmt | ast.expr):
            raise _error(message, text, filename, header, node.lineno - header, node.col_offset + 1)
        waiting += ast.iter_child_nodes(node)


def _error(message: str, text: str, filename: str, header: int, line: int, offset: int) -> StagedSyntaxError:
    lines = text.splitlines(keepends=True)
    code = lines[line - 1] if line <= len(lines) else ""
    return StagedSyntaxError(message, (filename, line + header, offset, code))
