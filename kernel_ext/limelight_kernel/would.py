"""`%trace_cache --would CALL`: what a call, written as code, would do; its arguments are evaluated, it is not."""

from __future__ import annotations

import ast
from typing import Any

from IPython.core.error import UsageError

from limelight_kernel.arguments import unquoted
from limelight_kernel.session import Session, is_function

_WHERE = "%trace_cache --would"


def written_call(line: str) -> str:
    """What stands after `--would` on the line of the magic, as it was typed."""
    text = line.partition("--would")[2].strip().removeprefix("=").strip().removesuffix(";").strip()
    return unquoted(text)


def would(session: Session, text: str, function: Any = None) -> Any:
    """The prediction for the call `text`, such as "step(x[:3], 0.1)"; `function` is what it must call, if given.

    Raises UsageError, one line, for what is no call of a staged function, and for arguments that cannot be evaluated.
    """
    call = _parsed(text)
    called = _evaluated(session, call.func, text)
    if not is_function(called):
        name = ast.unparse(call.func)
        raise UsageError(
            f"{_WHERE}: {name!r} is a {type(called).__name__}, not a staged function; stage it with ll.function({name})"
        )
    if function is not None and called is not function:
        raise UsageError(f"{_WHERE}: {text!r} calls {called.name!r}, and NAME says {function.name!r}; leave NAME out")
    args, kwargs = _evaluated(session, _arguments_only(call), text)
    try:
        return called.explain(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{_WHERE} {text!r}: {_first_line(error)}") from None


def _parsed(text: str) -> ast.Call:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UsageError(f"{_WHERE} {text!r}: {error.msg}; write a call, as in --would step(x[:3], 0.1)") from None
    if not isinstance(tree.body, ast.Call):
        raise UsageError(f"{_WHERE}: {text!r} is no call; write one, as in --would step(x[:3], 0.1)")
    return tree.body


def _arguments_only(call: ast.Call) -> ast.expr:
    """An expression for the arguments of `call`, as a tuple and a dictionary."""
    keep = ast.parse("lambda *args, **kwargs: (args, kwargs)", mode="eval").body
    return ast.fix_missing_locations(ast.Call(keep, call.args, call.keywords))


def _evaluated(session: Session, node: ast.expr, text: str) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<would>", "eval")
    try:
        return eval(code, session.shell.user_global_ns, session.shell.user_ns)
    except Exception as error:  # noqa: BLE001  # whatever the expression raises is the user's to read
        raise UsageError(f"{_WHERE} {text!r}: {type(error).__name__}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
