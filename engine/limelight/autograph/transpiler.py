"""From a function to its converted one: made once for each code object, and bound to globals and cells."""

from __future__ import annotations

import ast
import builtins
import linecache
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from limelight import forking
from limelight.autograph import function_source
from limelight.autograph.function_source import UnconvertibleError
from limelight.autograph.reserved_names import OPERATORS, added

_FLAGS: Final = 0x1FF0000 | 0x100000  # what `from __future__` leaves in a code object
MARK: Final = "__limelight_autograph__"
"""The attribute of functions that are converted already."""

_lock = threading.RLock()
forking.renew_in_child(__name__, "_lock", threading.RLock)


class Factory(NamedTuple):
    """Code that makes the converted function; `freevars` are the names of the cells that it needs."""

    code: CodeType
    name: str


_made: dict[int, tuple[weakref.ref[CodeType], Factory | UnconvertibleError]] = {}
"""By the identity of code objects, since equal ones may come from different files."""


_provided: Final[list[Any]] = []  # the module of that name, which stands above this one: it converts what it calls


def provide(module: Any) -> None:
    """Gives converted code its operators."""
    _provided[:] = [module]


def converted(function: FunctionType) -> Callable[..., Any]:
    """`function` with its control flow turned into calls of our operators. Raises UnconvertibleError."""
    if hasattr(function, MARK):
        return function
    factory = _factory(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in factory.code.co_freevars)
    make = FunctionType(factory.code, function.__globals__, factory.name, None, closure)
    converted_function: Any = make(*operators())
    converted_function.__defaults__, converted_function.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    converted_function.__name__, converted_function.__qualname__ = function.__name__, function.__qualname__
    converted_function.__module__, converted_function.__doc__ = function.__module__, function.__doc__
    setattr(converted_function, MARK, True)
    result: Callable[..., Any] = converted_function
    return result


def operators() -> list[Any]:
    """What functions that define converted code take as arguments."""
    return _provided


def is_converted(code: CodeType) -> bool:
    """Whether `code` is that of a converted function, or of a function within one."""
    return OPERATORS in code.co_freevars


def refuse(code: CodeType, error: UnconvertibleError) -> None:
    """Notes why `code` runs as it is."""
    _remember(code, error)


def refusal(code: CodeType) -> UnconvertibleError | None:
    """Why the function with that code stayed as it is; None where it was converted, or never met."""
    known = _made.get(id(code))
    return known[1] if known is not None and isinstance(known[1], UnconvertibleError) else None


def _factory(function: FunctionType) -> Factory:
    code = function.__code__
    known = _made.get(id(code))
    if known is None:
        with _lock:
            known = _made.get(id(code)) or _remember(code, _attempt(function))
    if isinstance(known[1], UnconvertibleError):
        raise known[1]
    return known[1]


def _remember(code: CodeType, outcome: Any) -> Any:
    key, table = id(code), _made  # the callback may come when the interpreter ends, and globals are gone
    table[key] = (weakref.ref(code, lambda _: table.pop(key, None)), outcome)
    return table[key]


def _attempt(function: FunctionType) -> Factory | UnconvertibleError:
    try:
        return _make(function)
    except UnconvertibleError as error:
        return error


def _make(function: FunctionType) -> Factory:
    import copy  # noqa: PLC0415  # with the library below: needed for a function that is converted, and not before

    from limelight.autograph.malt_passes import rewrite  # noqa: PLC0415
    from limelight.autograph.preprocessing import prepare  # noqa: PLC0415

    code = function.__code__
    linecache.lazycache(code.co_filename, function.__globals__)  # the loader of a module in an archive has its source
    node = copy.deepcopy(function_source.definition(code))
    parts = function.__qualname__.split(".")
    owner = parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None
    node = prepare(node, code.co_filename, owner)
    known = {**vars(builtins), **function.__globals__, **dict.fromkeys(code.co_freevars)}
    name = added("lambda" if isinstance(node, ast.Lambda) else node.name)  # its own name means what it says
    written = functions_in(node)
    statement = rewrite(node, name, known, code.co_filename)
    return assemble(statement, name, code, written)


_Written = set[tuple[str, int]]
_CELLS, _FACTORY = added("cells"), added("factory")
_AROUND: Final = f"{_CELLS}.<locals>.{_FACTORY}.<locals>."


def functions_in(node: ast.AST) -> _Written:
    """The functions and classes that the user wrote in `node`: by name, lambdas by line and number of parameters."""
    definitions = {(part.name, 0) for part in ast.walk(node) if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    lambdas = [part for part in ast.walk(node) if isinstance(part, ast.Lambda)]
    return definitions | {(f"<lambda {part.lineno}>", len(part.args.posonlyargs + part.args.args)) for part in lambdas}


def assemble(statement: ast.stmt, name: str, code: CodeType, written: _Written) -> Factory:
    """Compiles a converted definition within functions that provide its cells, and the operators.

    Args:
        statement: the definition.
        name: what it defines.
        code: the code that it was converted from, with its cells and flags.
        written: the functions that the user wrote in it; all others were added.
    """
    operators = ast.arguments([], [ast.arg(OPERATORS)], None, [], [], None, [])
    nothing = ast.arguments([], [], None, [], [], None, [])
    body: list[ast.stmt] = [statement, ast.Return(ast.Name(name, ast.Load()))]
    inner = ast.FunctionDef(_FACTORY, operators, body, [], None)
    cells: list[ast.stmt] = [ast.Assign([ast.Name(x, ast.Store())], ast.Constant(None)) for x in code.co_freevars]
    outer = ast.FunctionDef(_CELLS, nothing, [*cells, inner], [], None)
    for definition in (inner, outer):
        definition.type_params = []  # type: ignore[attr-defined,unused-ignore]  # Python 3.12 wants them
    tree = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & _FLAGS
    compiled = compile(tree, code.co_filename, "exec", flags=flags, dont_inherit=True)
    factory = _code_named(_FACTORY, _code_named(_CELLS, compiled))
    return Factory(_renamed(factory, written, code.co_name, code.co_qualname), name)


def _code_named(name: str, inside: CodeType) -> CodeType:
    return next(x for x in inside.co_consts if isinstance(x, CodeType) and x.co_name == name)


def _renamed(code: CodeType, written: _Written, name: str, qualname: str) -> CodeType:
    """`code`, in which functions that were added bear the name of the one whose lines they hold."""
    is_lambda = code.co_name == "<lambda>"
    key = (f"<lambda {code.co_firstlineno}>", code.co_argcount) if is_lambda else (code.co_name, 0)
    if key in written and code.co_name != name:
        name, qualname = code.co_name, f"{qualname}.<locals>.{code.co_name}"
    constants = tuple([_constant(x, written, name, qualname) for x in code.co_consts])
    if code.co_name.startswith("<") and not is_lambda:  # comprehensions
        return code.replace(co_consts=constants)
    return code.replace(co_consts=constants, co_name=name, co_qualname=qualname)


def _constant(value: Any, written: _Written, name: str, qualname: str) -> Any:
    if isinstance(value, CodeType):
        return _renamed(value, written, name, qualname)
    is_qualified_name = isinstance(value, str) and value.startswith(_AROUND)  # of the class whose body `code` is
    return qualname if is_qualified_name else value
