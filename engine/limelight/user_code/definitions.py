"""From a code object back to its definition: the syntax tree, with the line and column numbers of its file.

The only place where this is done. A whole file takes about 40 us a line to parse, which a first trace would have to
wait for, so only the lines of the definition are parsed; the file as a whole where that is not enough.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Collection
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_PROMPT: Final = "<string>"
"""The file of whatever exec runs; from Python 3.13 on it has lines, those of `python -c`."""
_CLOSING_LINES: Final = 3
"""How many may follow the last line that is run: closing brackets on lines of their own."""
_Span: TypeAlias = tuple[int, int, int, int]


class NoDefinitionError(Exception):
    """Why there is no definition: its source is "absent", is "unparsable", holds "several" alike, or has "changed"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def definition_of(code: CodeType) -> Definition | None:
    """The definition of the function or lambda with that code, None where its source cannot be had or read."""
    try:
        return find_definition(code)
    except NoDefinitionError:
        return None


def find_definition(code: CodeType) -> Definition:
    """The same; raises NoDefinitionError with the reason. The tree is shared: copy it before changing it."""
    file = code.co_filename
    linecache.checkcache(file)
    lines = [] if file == _PROMPT else linecache.getlines(file)
    if not lines:
        raise NoDefinitionError("absent")
    return _find(code, file, known_stamp(file))  # by these as well: code from another file or text may be equal


def current_stamp(file: str) -> object:
    """Size and time of a file as it is now; lines that `linecache` has of what it was before are forgotten."""
    linecache.checkcache(file)
    return known_stamp(file)


def known_stamp(file: str) -> object:
    """Size and time of the file whose lines `linecache` has: another one once it was edited and read again."""
    return linecache.cache.get(file, ())[:2]


def reads_only(function: object, parameter: str, keys: Collection[object]) -> bool:
    """Whether all that a function does with a parameter is to read these keys of it, as `parameter["key"]`."""
    tree = definition_of(function.__code__) if isinstance(function, FunctionType) else None
    if tree is None:
        return False
    nodes = list(ast.walk(tree))
    read = [
        node.value.id
        for node in nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value in keys
    ]
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    return used.count(parameter) == read.count(parameter)


@functools.lru_cache(maxsize=16)
def parsed(text: str) -> ast.Module | None:
    """The syntax tree of a whole file, one for all who ask (nobody changes it); None for what is no Python."""
    return _parse(text)


def parsed_expression(text: str) -> ast.expr | None:
    """The expression that `text` is, in brackets since it may span lines; None for what is none."""
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=64)
def _find(code: CodeType, file: str, stamp: object) -> Definition:
    lines = linecache.getlines(file)
    node = _lambda(code, lines) if code.co_name == "<lambda>" else _function(code, lines)
    return node if node is not None else _in_file(code, "".join(lines))


def _function(code: CodeType, lines: list[str]) -> Definition | None:
    """The function whose lines are those that its instructions begin on; None where these hold no such function."""
    first, last = code.co_firstlineno, _last_line(code)
    if not first <= last <= len(lines):
        return None
    head = "\n" * (first - 1)  # so that lines keep their numbers, and indented ones their columns
    if lines[first - 1][:1] in " \t":
        head = head[:-1] + "if True:\n"
    for n in range(_CLOSING_LINES + 1):
        tree = _parse(head + "".join(lines[first - 1 : last + n]))
        if tree is not None and tree.body:
            definition = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) else tree.body[0]
            return definition if isinstance(definition, Definition) and _is_definition(definition, code) else None
    return None


def _last_line(code: CodeType) -> int:
    """The last line that an instruction of `code`, or of a function within, begins on."""
    own = [line for _, _, line in code.co_lines() if line is not None]
    return max([*own, *[_last_line(x) for x in code.co_consts if isinstance(x, CodeType)]], default=0)


def _lambda(code: CodeType, lines: list[str]) -> ast.Lambda | None:
    """The lambda expression whose body holds the instructions: from the word before it to the end of the body.

    The statement around it may begin anywhere above, so the expression alone is parsed.
    """
    spans = _spans(code)
    if not spans:
        return None
    first, _, begin, _ = min(spans, key=lambda span: (span[0], span[2]))
    last, end = max((span[1], span[3]) for span in spans)
    if not code.co_firstlineno <= first <= last <= len(lines):
        return None
    rows = [line.encode() for line in lines[code.co_firstlineno - 1 : last]]
    rows[-1] = rows[-1][:end]
    before = b"".join(rows[: first - code.co_firstlineno]) + rows[first - code.co_firstlineno][:begin]
    start = before.rfind(b"lambda")
    if start < 0:
        return None
    line = code.co_firstlineno + before.count(b"\n", 0, start)
    indent = " " * (start - before.rfind(b"\n", 0, start) - 1)  # in brackets it may stand in its own column
    text = b"".join(rows)[start:].decode(errors="replace")
    for n in range(_CLOSING_LINES + 1):
        tree = _parse(f"(\n{indent}{text}{')' * n}\n)")
        expression = tree.body[0].value if tree is not None and isinstance(tree.body[0], ast.Expr) else None
        if isinstance(expression, ast.Lambda):
            ast.increment_lineno(expression, line - 2)
            return expression if _is_definition(expression, code) else None
    return None


def _in_file(code: CodeType, text: str) -> Definition:
    """The definition by its first line, name and parameters, in the whole file."""
    tree = parsed(text)
    if tree is None:  # a cell with magics, or a file that is being edited
        raise NoDefinitionError("unparsable")
    definitions = [node for node in ast.walk(tree) if isinstance(node, Definition) and _is_definition(node, code)]
    if len(definitions) != 1:
        raise NoDefinitionError("several" if definitions else "changed")
    return definitions[0]


def _is_definition(node: ast.AST, code: CodeType) -> bool:
    """Whether `node` has the first line, the name and the parameters of `code`, and holds its instructions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return first_line(node) == code.co_firstlineno and node.name == code.co_name and _has_parameters(node, code)
    if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
        return _has_parameters(node, code) and _holds(node.body, code)
    return False


def first_line(node: ast.AST) -> int:
    """The line that Python says a function or class begins on: that of its first decorator."""
    decorators = getattr(node, "decorator_list", None)
    first: Any = decorators[0] if decorators else node
    return int(first.lineno)


def _has_parameters(node: Definition, code: CodeType) -> bool:
    parameters = node.args
    stars = [x for x in (parameters.vararg, parameters.kwarg) if x is not None]
    written = [x.arg for x in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs, *stars)]
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    compiled = code.co_varnames[:count]
    return len(written) == count and all(w == c or c.endswith(w) for w, c in zip(written, compiled, strict=True))


def _holds(body: ast.expr, code: CodeType) -> bool:
    """Whether the instructions of `code` lie within `body`: this tells the lambdas of a line apart."""
    spans = _spans(code)
    if not spans:  # Python was told to leave columns out
        return True
    begin = min((first, left) for first, _, left, _ in spans)
    end = max((last, right) for _, last, _, right in spans)
    return begin >= (body.lineno, body.col_offset) and end == (body.end_lineno, body.end_col_offset)


def _spans(code: CodeType) -> list[_Span]:
    """Lines and columns (first, last, begin, end) of what the instructions of `code` were written as."""
    return [
        (first, last, begin, end)
        for first, last, begin, end in code.co_positions()
        if first is not None and last is not None and begin is not None and end is not None and end > 0
    ]
