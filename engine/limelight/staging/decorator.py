"""`ll.function`, the decorator, and what type checkers know of its result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from limelight.staging.function import Function
from limelight.staging.options import check_names
from limelight.user_code import equivalents, hints

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R")
Owner = TypeVar("Owner")

if TYPE_CHECKING:

    class Staged(Function, Generic[P, R]):
        """A `Function` that is called as the function that it stages, and returns what that returns."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Staged[P, R]: ...
        @overload
        def __get__(
            self: Staged[Concatenate[Owner, Rest], R], instance: Owner, owner: type | None = None
        ) -> Staged[Rest, R]: ...
        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...

    class Stages:
        """The decorator that `ll.function(option=...)` returns."""

        def __call__(self, fn: Callable[P, R], /) -> Staged[P, R]: ...


@overload
def function(
    fn: Callable[P, R],
    /,
    *,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    jit_compile: bool | None = None,
    autograph: bool | None = False,
    name: str | None = None,
    run_eagerly: bool = False,
    max_traces: int | None = None,
    cache_size: int | None = None,
) -> Staged[P, R]: ...
@overload
def function(
    fn: None = None,
    /,
    *,
    input_signature: Sequence[Any] | None = None,
    reduce_retracing: bool = False,
    jit_compile: bool | None = None,
    autograph: bool | None = False,
    name: str | None = None,
    run_eagerly: bool = False,
    max_traces: int | None = None,
    cache_size: int | None = None,
) -> Stages: ...
def function(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Stages a Python function: its ops are traced into dataflow graphs, which run in its place (paper section 4.6).

    A decorator. One graph is made for each signature of arguments. A call looks its signature up in the trace cache:
    tensors count by dtype, shape and device, plain Python values by type and value, other objects by identity, or by
    what their method `__limelight_key__` returns. On a miss the Python code runs once and its ops are traced; Python
    side effects happen then and only then. Without `autograph` a tensor in an `if` is an error that says what to write.

    Args:
        fn: the function or method to stage; left out where options are given: `@ll.function(name="step")`.
        **options: those that follow, each given by name and each with a default.
        input_signature: a list of `ll.TensorSpec`, one for each argument, sizes that change None; one trace is made.
        reduce_retracing: whether a second shape is traced for unknown sizes, which serve further shapes. False.
        jit_compile: True for one program of XLA for each set of shapes, compiled before its first run (needs JAX); what
            has no form there keeps to the plan, and `F.trace_cache[0].tier_reason` says why. False: never. None (the
            default) leaves it to `ll.config.executor`; where that names none, a function that has run for long enough
            is compiled in the background, and goes on compiled where that is measured faster.
        autograph: whether `if`, `while`, `for`, `and`, `or`, `not` and `assert` on tensors are staged, from the source
            of `fn` and of your functions that it calls. False. What Python knows while tracing stays as it is: `for i
            in range(10)` is unrolled, `range(n)` for a tensor `n` is one loop in the graph. Gradients through an `if`
            are those of `ll.cond`.
        name: what messages and views call the function; by default that of `fn`.
        run_eagerly: whether each call runs the Python code, for `print` and the debugger. False. For all functions:
            `ll.config.run_functions_eagerly`.
        max_traces: the largest number of traces; by default no bound. `F.clear_cache()` starts the count again.
        cache_size: how many traces are kept, the one not called for longest giving way; by default all. Of a method:
            for each instance.

    Returns:
        The staged function, which is called as `fn` is; without `fn`, a decorator.

    Raises:
        ArgumentError: an option cannot be fulfilled, or `fn` cannot be called, is a generator or a coroutine function.
        CallError: there is no such option.
        SignatureError: an argument cannot be part of a key, or `input_signature` does not fit (at the call or before).
        StateCreationError: the code itself creates a variable on a call other than the first (one with an object that
            is new to it counts as first), or anything creates one each time the code runs.
        ControlFlowError: `autograph` cannot stage what the code does (at the call).
        TraceBudgetError: a call needs more than `max_traces` traces; told with the reason, before anything is traced.

    >>> import limelight as ll
    >>> @ll.function
    ... def area(r):
    ...     return 3.14159 * r * r
    >>> round(area(ll.constant(2.0)).item(), 4), area.trace_count
    (12.5664, 1)
    >>> @ll.function(autograph=True)
    ... def halvings(x):
    ...     n = 0
    ...     while x > 1:
    ...         x, n = x / 2, n + 1
    ...     return n
    >>> halvings(ll.constant(40.0)).item()
    6
    """
    check_names(Function, options)
    return Function(fn, **options) if fn is not None else functools.partial(Function, **options)


for _name, _hint in equivalents.of_staged_functions().items():
    setattr(Function, _name, hints.Elsewhere(_name, _hint, "a staged function"))
