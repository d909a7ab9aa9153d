"""`ll.function`, the decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from limelight.staging.function import Function
from limelight.staging.options import check_names


@overload
def function(
    fn: Callable[..., Any],
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
) -> Function: ...
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
) -> Callable[[Callable[..., Any]], Function]: ...
def function(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Stages a Python function: its ops are traced into a dataflow graph, which runs instead (paper section 4.6).

    Use as a decorator. Each new signature of arguments (tensors by dtype and shape, plain Python values by type and
    value, other objects by identity, or by what their method `__limelight_key__` returns) is traced once; Python side
    effects happen then and only then.

    `input_signature`: a list of `ll.TensorSpec`, one for each argument; exactly one graph is made, unknown sizes are
    None. `reduce_retracing`: after a second shape, trace for unknown sizes. `run_eagerly`: run the Python code on every
    call instead, for `print` and the debugger (`ll.config.run_functions_eagerly` does so for all functions).
    `cache_size`: keep so many traces, of which the one not called for longest gives way (methods: for each instance).
    `max_traces`: a call that would trace once more raises TraceBudgetError, with the reason, before anything is traced;
    `F.clear_cache()` starts the count again. `autograph`: Python's `if`, `while`, `for`, `and`, `or`, `not` and
    `assert` on tensors are staged as well, from the source of the function and of your functions that it calls; what
    Python knows while tracing stays as it is: `for i in range(10)` is unrolled, and `range(n)` for a tensor `n` one
    loop in the graph. Gradients through an `if` are those of `ll.cond`, which see. Without it a tensor in an `if` is an
    error that says what to write. `jit_compile`: not available yet, so that only None and False are accepted. Raises
    SignatureError for arguments that cannot be keyed, StateCreationError for variables made on a later call,
    ControlFlowError for what `autograph` cannot stage, ArgumentError for options that it cannot fulfil.

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
