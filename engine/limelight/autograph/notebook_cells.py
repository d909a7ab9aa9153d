"""The body of a notebook cell, converted: what `%%stage --autograph` runs in place of the cell's own code.

Definitions run as they are written, everything else as functions whose names are all global, so that helpers see them;
each of these names counts as read after every block.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from limelight.autograph.context import here
from limelight.autograph.conversion import explained
from limelight.autograph.local_containers import registry
from limelight.autograph.python_numbers import tells
from limelight.autograph.undefined_variables import Doubtful, NotYet, Undefined

Cell = Callable[[dict[str, Any]], Any]
_AS_WRITTEN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def converted_cell(tree: ast.Module, filename: str) -> Cell:
    r"""The statements of `tree`, with control flow on tensors staged, as a function of the namespace they run in.

    `tree` has the line numbers of `filename`, whose source `linecache` knows; it is left as it is. The result, called
    with a namespace (in a trace, where tensors are to decide something), runs the cell as a module's code: names are
    globals of that namespace, and functions that the cell defines are the plain ones, converted when converted code
    calls them. It returns the value of the last statement if that is an expression, else None. Names that only some
    runs of the graph assign are `Doubtful` afterwards, as a rule `AssignedIfRun`, which knows whether a run has. What
    cannot be converted runs as it is, and raises ControlFlowError with the reason if a tensor is asked for a decision
    there.

    >>> import ast
    >>> import limelight as ll
    >>> cell = converted_cell(ast.parse("if x > 0: y = x\nelse: y = -x\ny + 1"), "<cell>")
    >>> ll.function(lambda x: cell({"x": x}))(ll.constant(-2.0)).item()
    3.0
    """
    from limelight.autograph import operators  # noqa: F401, PLC0415  # only when it is asked for

    names = frozenset(name for statement in tree.body for name in _bound(statement))
    parts = [_part(statements, filename) for statements in _runs(copy.deepcopy(tree).body)]

    def run(namespace: dict[str, Any]) -> Any:
        result, outer, told = None, here.cell, tells.codes
        here.cell, tells.codes = (namespace, names), True
        try:
            with registry():
                for part in parts:
                    result = explained(functools.partial(part, namespace))
        finally:
            here.cell, tells.codes = outer, told
        return result

    return run


def _runs(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The statements in runs, of definitions and of anything else."""
    run: list[ast.stmt] = []
    for statement in body:
        if run and isinstance(statement, _AS_WRITTEN) != isinstance(run[-1], _AS_WRITTEN):
            yield run
            run = []
        run.append(statement)
    if run:
        yield run


def _part(statements: list[ast.stmt], filename: str) -> Cell:
    from limelight.autograph import transpiler  # noqa: PLC0415
    from limelight.autograph.function_source import UnconvertibleError  # noqa: PLC0415

    if isinstance(statements[0], _AS_WRITTEN):
        return _as_written(compile(ast.Module(statements, []), filename, "exec", dont_inherit=True))
    plain = copy.deepcopy(statements)
    try:
        return _converted(statements, filename)
    except UnconvertibleError as error:
        end: CodeType | None = None
        last = plain[-1]
        if isinstance(last, ast.Expr):
            end = compile(ast.Expression(last.value), filename, "eval", dont_inherit=True)
            plain.pop()
            transpiler.refuse(end, error)
        code = compile(ast.Module(plain, []), filename, "exec", dont_inherit=True)
        transpiler.refuse(code, error)
        return _as_written(code, end)


def _as_written(code: CodeType, end: CodeType | None = None) -> Cell:
    read = _read_by(code)

    def run(namespace: dict[str, Any]) -> Any:
        for name in read:  # as a default of a function: plain code knows values alone
            if isinstance(namespace.get(name), Doubtful):
                namespace[name] = namespace[name].read()
        exec(code, namespace)
        return None if end is None else eval(end, namespace)

    return run


def _read_by(code: CodeType) -> list[str]:
    """The names that code reads from its namespace before it binds them, with those that bodies of its classes read."""
    bound: set[str] = set()
    read: list[str] = []
    for one in dis.get_instructions(code):
        if one.opname == "STORE_NAME":
            bound.add(one.argval)
        elif one.opname == "LOAD_NAME" and one.argval not in bound:
            read.append(one.argval)
        elif inspect.iscode(one.argval) and not one.argval.co_flags & inspect.CO_OPTIMIZED:
            read += [name for name in _read_by(one.argval) if name not in bound]
    return read


def _converted(statements: list[ast.stmt], filename: str) -> Cell:
    from limelight.autograph import transpiler  # noqa: PLC0415
    from limelight.autograph.malt_passes import rewrite  # noqa: PLC0415
    from limelight.autograph.preprocessing import prepare  # noqa: PLC0415
    from limelight.autograph.reserved_names import added  # noqa: PLC0415

    last = statements[-1]
    if isinstance(last, ast.Expr):
        statements[-1] = ast.copy_location(ast.Return(last.value), last)
    names = sorted({name for statement in statements for name in _bound(statement)})
    body = [ast.copy_location(ast.Global(names), statements[0]), *statements] if names else statements
    nothing = ast.arguments([], [], None, [], [], None, [])
    whole = ast.copy_location(ast.FunctionDef(added("cell"), nothing, body, [], None), statements[0])
    whole.type_params = []  # type: ignore[attr-defined,unused-ignore]  # Python 3.12 wants them
    written = transpiler.functions_in(whole) - {(added("cell"), 0)}  # its own frame is that of a module
    used = {part.id: None for part in ast.walk(whole) if isinstance(part, ast.Name)}
    ready = prepare(whole, filename, None, is_cell=True)
    statement = rewrite(ready, added("cell"), used, filename, first=1)  # as a module's code
    like = compile("", filename, "exec", dont_inherit=True)
    factory = transpiler.assemble(statement, added("cell"), like, written)

    def run(namespace: dict[str, Any]) -> Any:
        result = FunctionType(factory.code, namespace)(*transpiler.operators())()
        for name in names:
            x = namespace.get(name)
            if isinstance(x, Undefined) and (isinstance(x, NotYet) or not isinstance(x, Doubtful)):
                del namespace[name]
        return result

    return run


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement assigns in its own scope."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.comprehension):  # its targets are its own
            continue
        yield from _bound(child)
