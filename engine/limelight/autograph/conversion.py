"""The entry point: a staged function's Python function, converted when it is first traced; and its errors explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from limelight.autograph.local_containers import registry
from limelight.core.autograph_hook import conversion_scope
from limelight.errors import ControlFlowError, SymbolicValueError
from limelight.user_code import source_line
from limelight.user_code.hints import AUTOGRAPH_DOES_IT
from limelight.user_code.tracebacks import in_place_of_python


class Converted:
    """`function` with its control flow on tensors staged; it is converted at the first call, and cached.

    What cannot be converted runs as it is: only if a tensor is asked for a decision there, ControlFlowError says why.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from limelight.autograph import operators  # noqa: F401, PLC0415  # only when it is asked for
        from limelight.autograph.converted_calls import as_converted  # noqa: PLC0415  # as above

        with conversion_scope(as_converted), registry():
            return self._run(as_converted, args, kwargs)

    def _run(self, as_converted: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        instance = getattr(self._function, "__limelight_instance__", None)
        if instance is None:
            return explained(lambda: as_converted(self._function)(*args, **kwargs))
        method = self._function.__wrapped__  # type: ignore[attr-defined]  # bound weakly, which is no code of the user's
        return explained(lambda: as_converted(method)(instance(), *args, **kwargs))


@in_place_of_python
def explained(run: Callable[[], Any]) -> Any:
    """The result of `run()`; errors that only the conversion can explain are explained."""
    try:
        return run()
    except RecursionError as error:
        if "maximum recursion depth" not in str(error):
            raise
        raise RecursionError(_endless(error)) from None
    except SymbolicValueError as error:
        decides = AUTOGRAPH_DOES_IT in str(error)  # rather than `.item()`, say, or a thread of its own
        reason = _unconverted(error) if decides else None
        if reason is None:
            error.args = (str(error).replace(AUTOGRAPH_DOES_IT, ""),)
            raise
        raise ControlFlowError(reason) from error


def _frames(error: BaseException) -> Iterator[tuple[CodeType, int]]:
    """The code that `error` passed through, and the line in it, from the outside in."""
    tb = error.__traceback__
    while tb is not None:
        yield tb.tb_frame.f_code, tb.tb_lineno
        tb = tb.tb_next


def _innermost(error: BaseException) -> tuple[CodeType, str] | None:
    """The user's code that `error` was raised under, and its line as a suffix for a message."""
    frames = [frame for frame in _frames(error) if not source_line.is_library(frame[0])]
    return (frames[-1][0], _at(*frames[-1])) if frames else None


def _at(code: CodeType, line: int) -> str:
    return source_line.at(source_line.Source(code.co_filename, line, code.co_name))


def _endless(error: RecursionError) -> str:
    """The function that stands most often on the stack; what stood there last may be anybody's, where room ran out."""
    from limelight.autograph.converted_calls import is_library  # noqa: PLC0415  # as above

    stood = Counter(frame for frame in _frames(error) if not is_library(frame[0]))
    commonest = stood.most_common(1)
    name, place = (f"`{commonest[0][0][0].co_name}`", _at(*commonest[0][0])) if commonest else ("a function", "")
    return (
        f"{name} calls itself while it is traced, too often or for ever{place}: where a tensor decides, both branches "
        "are traced, also the one that goes on. A recursion ends while tracing only if a plain Python argument, or a "
        "shape, tells when. Where a tensor's value decides, write a while loop, or ll.py_func around Python code"
    )


def _unconverted(error: SymbolicValueError) -> str | None:
    from limelight.autograph.converted_calls import is_library  # noqa: PLC0415  # as above
    from limelight.autograph.transpiler import is_converted, refusal  # noqa: PLC0415  # as above

    innermost = _innermost(error)
    if innermost is None:
        return None
    code, place = innermost
    refused = refusal(code)
    if refused is not None:
        return (
            f"`{code.co_name}` asks a tensor for a decision{place}, and could not be converted: {refused.reason} "
            f"({refused.place}). Or write ll.cond and ll.while_loop there"
        )
    if is_library(code):
        return (
            f"`{code.co_name}`, a function of a library, asks a tensor for a decision{place}; autograph converts your "
            "own code only. Give it plain values, or call it from ll.py_func(fn, inputs, output_specs)"
        )
    if is_converted(code):
        return None
    if code.co_name.startswith("__") and code.co_name.endswith("__"):
        return (
            f"`{code.co_name}` asks a tensor for a decision{place}, and was not converted: Python itself calls it, for "
            "an operator or a statement, where converted code cannot step in. If all it does is to return a value, "
            "decorate it with @ll.function(autograph=True); or write ll.cond and ll.while_loop there"
        )
    plain = getattr(error, "staged_plainly", None)
    if plain is not None:
        return (
            f"`{code.co_name}` asks a tensor for a decision{place}, and was not converted: it runs in {plain}, which "
            "is staged without autograph. Write @ll.function(autograph=True) there, or ll.cond and ll.while_loop"
        )
    return (
        f"`{code.co_name}` asks a tensor for a decision{place}, and was not converted, since converted code did "
        "not call it: a library did, or it is a property. Call it from a function of your own, decorate it with "
        "@ll.function(autograph=True) (below @property), or write ll.cond and ll.while_loop there"
    )
