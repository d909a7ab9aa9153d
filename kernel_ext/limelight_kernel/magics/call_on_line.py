"""Calls that are written on the line of a magic: their arguments are evaluated, and the call is asked about."""

from __future__ import annotations

import ast
import copy
import linecache
import re
from collections.abc import Callable, Collection
from types import BuiltinFunctionType
from typing import Any

from IPython.core.error import UsageError

from limelight.explain.subject import staged_for
from limelight.export import call_of
from limelight_kernel.cell.cell_source import running_line, show_as_typed
from limelight_kernel.explain.fix_cells import with_cells
from limelight_kernel.line.arguments import unquoted
from limelight_kernel.staged.session import Session, is_function, refuse_loaded
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.live import what_if
from limelight_widgets.views.explain import stories_of

_WOULD = "%trace_cache --would"
_FILE = "<call>"  # where no cell runs: somebody has typed it into a view


def written_call(line: str, flag: str = "--would") -> str:
    """What stands after `flag` on the line of the magic, as it was typed."""
    text = line.partition(flag)[2].strip().removeprefix("=").strip().removesuffix(";").strip()
    return unquoted(text)


def without_flag(text: str, flags: Collection[str]) -> tuple[str, bool]:
    """A call without the one of `flags` that stands before or behind it, and whether one does."""
    for flag in flags:
        if text.startswith(f"{flag} "):
            return unquoted(text[len(flag) :].strip()), True
        if text.endswith(f" {flag}"):
            return unquoted(text[: -len(flag)].strip()), True
    return text, False


def prediction(session: Session, text: str, function: Any = None) -> Any:
    """The prediction for the call `text`, such as "step(x[:3], 0.1)"; `function` is what it must call, if given.

    Raises UsageError, one line, for what is no call of a staged function, and for arguments that cannot be evaluated.
    """
    target, args, kwargs = _function_and_arguments(session, text, _WOULD)
    refuse_loaded(target, _WOULD)
    if function is not None and target.id not in (function.id, *(one.id for one in function.instances)):
        raise UsageError(f"{_WOULD}: {text!r} calls {target.name!r}, and NAME says {function.name!r}; leave NAME out")
    try:
        return _predicted_as_written(session, text, target, args, kwargs)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{_WOULD} {text!r}: {_first_line(error)}") from None


def what_if_asked(session: Session) -> what_if.Ask:
    """What answers the box of a trace-cache view: as --would does, with the names of this shell."""

    def ask(text: str, function: Any) -> what_if.Answer:
        text = text.strip()
        try:
            said, of = prediction(session, text, function), called(session, text)
        except UsageError as error:
            raise UsageError(_plain(str(error))) from None
        trace = (of.id, said.entry.index) if said.hit else None
        return what_if.Answer(said.hit, with_cells(stories_of(said), of), trace)

    return ask


def _plain(words: str) -> str:
    """A usage error without the flag, which nobody has typed.

    >>> _plain("%trace_cache --would 'f(z)': NameError: name 'z' is not defined")
    "'f(z)': NameError: name 'z' is not defined"
    >>> _plain("%trace_cache --would: no call follows; write one, as in --would step(x[:3], 0.1)")
    'no call follows; write one, as in step(x[:3], 0.1)'
    """
    return words.removeprefix(_WOULD).removeprefix(":").strip().replace("--would ", "")


def called(session: Session, text: str) -> Any:
    """The staged function that the call `text` is of; raises UsageError as `prediction` does."""
    return _evaluated(session, _parsed(text, _WOULD).func, text, _WOULD)


def _predicted_as_written(session: Session, text: str, called: Any, args: Any, kwargs: Any) -> Any:
    """`called.explain(*args, **kwargs)` as if it stood in a cell, in the words of `text`: its fix mends that call."""
    written = text.strip()
    function = ast.get_source_segment(written, _parsed(written, _WOULD).func) or ""
    if not written.startswith(function) or "\n" in written:
        return called.explain(*args, **kwargs)
    written = f"{function}.explain{written[len(function) :]}"
    tree = ast.parse(written, mode="eval")
    call, wrapper = tree.body, ast.parse("_explain(*_args, **_kwargs)", mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(wrapper, ast.Call)
    for node in ast.walk(wrapper):
        ast.copy_location(node, call)
    linecache.cache[_FILE] = (len(written), None, [f"{written}\n"], _FILE)
    space = {**session.shell.user_ns, "_explain": called.explain, "_args": args, "_kwargs": kwargs}
    tree.body = wrapper
    try:
        return eval(compile(ast.fix_missing_locations(tree), _FILE, "eval"), space)
    finally:
        del linecache.cache[_FILE]


def answer_about_call(session: Session, text: str, question: Callable[..., Any], where: str) -> Any:
    """The answer to a question about a call; raises UsageError as `prediction` does.

    A function, method or module that is not staged is staged for the question.

    Args:
        session: of the shell in which the call is evaluated.
        text: the call, such as "step(x[:3], 0.1)"; the name of a staged cell, which takes the notebook's, will do.
        question: is given the function and the call's arguments.
        where: the magic, and its flag where that asks, for messages.
    """
    show_as_typed(session.shell)
    text = f"{text}()" if _is_cell(session, text) else text
    called, args, kwargs = _function_and_arguments(session, text, where, staged=False)
    if isinstance(called, StagedCell):
        args, kwargs = (), called.sent(kwargs, args)
    if not is_function(called):  # by the name that the user calls it, which a module does not know
        written = _parsed(text, where).func
        named = isinstance(written, (ast.Name, ast.Attribute, ast.Subscript))
        called = staged_for(where, called, ast.unparse(written) if named else None)
    return question(called, *args, **kwargs)


def _is_cell(session: Session, text: str) -> bool:
    """Whether it names a staged cell."""
    return isinstance(session.shell.user_ns.get(text.strip()), StagedCell)


def _function_and_arguments(
    session: Session, text: str, where: str, staged: bool = True
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function and the arguments of a call; raises UsageError for what is no such call."""
    if not text:
        raise UsageError(f"{where}: no call follows; write one, as in {where.rsplit(maxsplit=1)[-1]} step(x[:3], 0.1)")
    call = _parsed(text, where)
    name = ast.unparse(call.func)
    called = call_of(_evaluated(session, call.func, text, where))
    if isinstance(called, BuiltinFunctionType | type) or not callable(called):
        is_what = "is built in, and no op" if callable(called) else f"is a {type(called).__name__}"
        is_what = "is a class: make an object of it" if isinstance(called, type) else is_what
        raise UsageError(f"{where}: {name!r} {is_what}; write a call of a function or of a module")
    if staged and not is_function(called):
        raise UsageError(
            f"{where}: {name!r} is a {type(called).__name__} that is not staged, so no call of it is ever traced; "
            f"write staged = ll.function({name}), and ask about a call of that"
        )
    args, kwargs = _evaluated(session, _arguments_only(call), text, where)
    return called, args, kwargs


def _parsed(text: str, where: str) -> ast.Call:
    flag = where.rsplit(maxsplit=1)[-1]
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UsageError(f"{where} {text!r}: {error.msg}; write a call, as in {flag} step(x[:3], 0.1)") from None
    if not isinstance(tree.body, ast.Call):
        behind = re.search(r"\)\s+(--?[a-z].*)$", text)
        said = f"; {behind[1]} goes before {flag}" if behind and flag.startswith("-") else ""
        raise UsageError(f"{where}: {text!r} is no call; write one, as in {flag} step(x[:3], 0.1){said}")
    return tree.body


def _arguments_only(call: ast.Call) -> ast.expr:
    """An expression for the arguments of `call`, as a tuple and a dictionary."""
    keep = ast.parse("lambda *args, **kwargs: (args, kwargs)", mode="eval").body
    return ast.fix_missing_locations(ast.Call(keep, call.args, call.keywords))


def _evaluated(session: Session, node: ast.expr, text: str, where: str) -> Any:
    file, line, column = _place(session, text)
    code = compile(_moved(ast.Expression(node), line, column), file, "eval")
    try:
        return eval(code, session.shell.user_global_ns, session.shell.user_ns)
    except Exception as error:  # noqa: BLE001  # whatever the expression raises is the user's to read
        raise UsageError(f"{where} {text!r}: {type(error).__name__}: {_first_line(error)}") from None


def _place(session: Session, text: str) -> tuple[str, int, int]:
    """Where a call stands: the running cell's file, its line there, and the bytes before it in that line."""
    running = running_line(session.shell)
    if running is not None:
        file, begin = running  # of a magic around this one, as %%time, that is the line
        show_as_typed(session.shell)
        for number, line in enumerate(linecache.getlines(file)[begin - 1 :], begin):
            if text in line:
                return file, number, len(line.partition(text)[0].encode())
    return _FILE, 1, 0


def _moved(tree: ast.Expression, line: int, column: int) -> ast.Expression:
    """A copy of a tree that was parsed by itself, as if it stood in this line behind so many bytes."""
    moved: ast.Expression = ast.fix_missing_locations(copy.deepcopy(tree))
    for node in ast.walk(moved):
        if isinstance(node, ast.expr | ast.keyword | ast.arg):
            node.col_offset += column * (node.lineno == 1)
            node.end_col_offset = (node.end_col_offset or 0) + column * (node.end_lineno == 1)
    return ast.increment_lineno(moved, line - 1)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
