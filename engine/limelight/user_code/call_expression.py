"""The call that is being made, as the user wrote it: so that a fix can be shown as that very call, mended."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import linecache
import sys
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, Protocol

from limelight.user_code import source_line
from limelight.user_code.definitions import parsed, parsed_expression
from limelight.user_code.names_read import MISSING, step

_ASKING: Final = ("explain", "get_concrete_function")
"""Methods that take the arguments of a call."""
_STEADY: Final = (FunctionType, BuiltinFunctionType, ModuleType, type)


class Parameters(Protocol):
    """How a function takes its arguments; `rest_name` and `keywords_name` are those of `*args` and `**kwargs`."""

    inspected: inspect.Signature
    rest_name: str
    keywords_name: str


class CallSite(NamedTuple):
    """A call expression: its text in parentheses, and the expression given for each parameter ("x", "args[1]").

    `steady` are the names in it that stand for functions, classes and modules, which are hardly ever given new values.
    `is_inside`: it stands in a function, whose names it may use.
    """

    wrapped: str
    arguments: dict[str, ast.expr]
    steady: frozenset[str] = frozenset()
    is_inside: bool = False

    @property
    def text(self) -> str:
        return _unwrapped(self.wrapped)

    @property
    def called(self) -> str:
        """What is called, as the user wrote it."""
        call = ast.parse(self.wrapped, mode="eval").body
        assert isinstance(call, ast.Call)
        return ast.get_source_segment(self.wrapped, call.func) or ""

    def expression(self, parameter: str) -> str | None:
        """What the user wrote for `parameter`, None when it was left to its default."""
        node = self.arguments.get(parameter)
        return None if node is None else ast.get_source_segment(self.wrapped, node)

    def is_positional(self, parameter: str) -> bool:
        """Whether what was written for `parameter` is given by its place rather than by keyword."""
        call = ast.parse(self.wrapped, mode="eval").body
        assert isinstance(call, ast.Call)
        return all(k.arg != parameter for k in call.keywords)

    def is_steady(self, parameter: str) -> bool:
        """Whether what was written for `parameter` means the same wherever it stands: no number of a loop is in it."""
        nodes = list(ast.walk(self.arguments[parameter]))
        own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        return {node.id for node in nodes if isinstance(node, ast.Name)} <= self.steady | own

    def mended(self, replacements: dict[str, str]) -> str:
        """The call with other expressions for some parameters."""
        text = self.wrapped.encode()
        starts = list(itertools.accumulate([len(line) for line in text.splitlines(keepends=True)], initial=0))
        nodes = [(self.arguments[name], new) for name, new in replacements.items()]
        for node, new in sorted(nodes, key=lambda pair: (-pair[0].lineno, -pair[0].col_offset)):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = text[:begin] + new.encode() + text[end:]
        return _unwrapped(text.decode())


def _wrapped(text: str) -> str:
    """A call may span lines; in parentheses it parses all the same."""
    return f"({text}\n)"


def _unwrapped(text: str) -> str:
    return text[1:-2]


def find(signature: Parameters, names: frozenset[str], function: Any) -> CallSite | None:
    """The innermost call of the user's, if its source can be had and it names `function` plainly."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and source_line.is_library(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return None
    text = source_line.segment(frame.f_code, frame.f_lasti)
    if text is None:
        return None
    call = parsed_expression(text)
    if not isinstance(call, ast.Call):
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _ASKING:  # of f.explain(x) the call is f(x)
        wrapped = _without_attribute(_wrapped(text), call.func)
        call = ast.parse(wrapped, mode="eval").body
        assert isinstance(call, ast.Call)
    else:
        wrapped = _wrapped(text)
    arguments = _bind(call, signature) if _names(call.func, names, function, frame) else None
    if arguments is None:
        return None
    line = source_line.Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    return CallSite(wrapped, arguments, _steady(call, frame), not line.is_outermost)


def at_line(line: source_line.Source, signature: Parameters, called: frozenset[str]) -> list[CallSite]:
    """The calls on a line that are written as calls of one of the names `called`, whose functions take arguments so."""
    text, at = "".join(linecache.getlines(line.file)), line.line
    tree = parsed(text)
    if tree is None:  # a cell with a magic, say: the line alone may do
        text, at = line.text, 1
        tree = parsed(text)
    sites = []
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not node.lineno <= at <= (node.end_lineno or 0):
            continue
        wrapped = _wrapped(ast.get_source_segment(text, node) or "")
        call = ast.parse(wrapped, mode="eval").body
        assert isinstance(call, ast.Call)
        arguments = _bind(call, signature) if ast.unparse(call.func) in called else None
        if arguments is not None:
            sites.append(CallSite(wrapped, arguments, is_inside=not line.is_outermost))
    return sites


def _without_attribute(text: str, node: ast.Attribute) -> str:
    """`text` with what `node` is an attribute of in its place."""
    named, owner = ast.get_source_segment(text, node), ast.get_source_segment(text, node.value)
    assert named is not None
    assert owner is not None
    return text.replace(named, owner, 1)


def _names(node: ast.expr, names: frozenset[str], function: Any, frame: FrameType) -> bool:
    """Whether `node` can be `function`: by its own name, by a global that leads to it, or by a local variable.

    The values of local variables are not looked up: asking a frame for them would keep them alive.
    """
    if isinstance(node, ast.Attribute) and node.attr in names:
        return True
    if isinstance(node, ast.Name) and (node.id in names or _is_local(node.id, frame.f_code)):
        return True
    return _value(node, frame) is function


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression of global names, attributes and constant keys leads to, as far as no code has to run."""
    if isinstance(node, ast.Name):
        return MISSING if _is_local(node.id, frame.f_code) else frame.f_globals.get(node.id, MISSING)
    if isinstance(node, ast.Attribute):
        return step(_value(node.value, frame), ".", node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return step(_value(node.value, frame), "[]", node.slice.value)
    return MISSING


def _steady(call: ast.Call, frame: FrameType) -> frozenset[str]:
    """The names in a call that are globals for functions, classes and modules."""
    names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name) and not _is_local(node.id, frame.f_code)}
    values = {name: frame.f_globals.get(name, getattr(builtins, name, None)) for name in names}
    return frozenset([name for name, value in values.items() if isinstance(value, _STEADY)])


def _is_local(name: str, code: CodeType) -> bool:
    return name in code.co_varnames or name in code.co_freevars or name in code.co_cellvars


def _bind(call: ast.Call, signature: Parameters) -> dict[str, ast.expr] | None:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    try:
        bound = signature.inspected.bind(*call.args, **{k.arg: k.value for k in call.keywords if k.arg}).arguments
    except TypeError:
        return None
    expressions: dict[str, ast.expr] = {}
    for name, value in bound.items():
        if name == signature.rest_name:
            expressions |= {f"{name}[{i}]": node for i, node in enumerate(value)}
        elif name == signature.keywords_name:
            expressions |= value
        else:
            expressions[name] = value
    return expressions
