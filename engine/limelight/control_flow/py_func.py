"""`py_func`: imperative Python inside a graph (paper section 4.7)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from limelight.batching import Batched
from limelight.control_flow.python_call import PythonCall
from limelight.control_flow.unranked_tensor import call_with_open_ranks
from limelight.core import dispatch
from limelight.core.spec import TensorSpec
from limelight.core.tensor import as_tensor
from limelight.errors import ArgumentError, ShapeError
from limelight.staging.options import refuse_waiting
from limelight.staging.trace_branch import require_callable, tracing
from limelight.staging.tracer import Tracer
from limelight.user_code.closure_copies import closed_over_now, frames_up_to


def py_func(fn: Callable[..., Any], inputs: Sequence[Any], output_specs: Any) -> Any:
    """Calls a Python function on tensors with values, also from inside a graph, eagerly each time (paper section 4.7).

    `fn` may use NumPy, pdb and data-dependent recursion. The result is differentiable, to second order by running `fn`
    once more, on variables and generators as they were. Called eagerly, all that `fn` computes with has gradients. In a
    graph only `inputs` have: for a variable `v` that `fn` uses, pass `v.read_value()` in `inputs`. What `fn` computes
    with NumPy has none; in a graph these are zeros. A RuntimeWarning says so where a gradient is lost in either way.
    Exceptions of `fn` reach the caller unchanged. In a graph `fn` sees the local names of the traced function (a loop's
    variable, say) as they were at this line, and all others as they are when it runs.

    Args:
        fn: a function of tensors that returns a tensor, array or number, or a tuple or list of them.
        inputs: a list or tuple of tensors, the arguments of `fn`.
        output_specs: for a single result its `ll.TensorSpec`, or its dtype if it is a scalar; a list with one for each
            of several results; None for no result. Results are checked against them. A `ll.TensorSpec(None)` leaves
            the number of axes open: in a trace such a result goes through what is done element by element, reductions
            over all elements, `ll.reshape` and `ll.shape_of`, and `ll.ensure_shape` makes it a tensor like others.

    Returns:
        The result as a tensor, a list's worth of them, or None, as `output_specs` says.

    Raises:
        DTypeError: a result has another dtype than promised.
        ShapeError: a result has another shape than promised, or its number of axes is left open in a batch.
        SignatureError: there are more or fewer results than promised, or one is None or a variable.
        ArgumentError: `fn` cannot be called, is a generator or coroutine function, or `inputs` are no list or tuple.

    >>> import limelight as ll
    >>> @ll.function
    ... def f(x):
    ...     return ll.py_func(lambda t: t * float(t.numpy().max()), [x], ll.TensorSpec((2,), "float32"))
    >>> f(ll.constant([1.0, 3.0])).tolist()
    [3.0, 9.0]
    """
    require_callable("py_func", fn=fn)
    refuse_waiting("py_func", fn)
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentError(
            f"py_func: inputs must be a list or tuple of tensors, got {type(inputs).__name__}; write [x]"
        )
    single = output_specs is not None and not isinstance(output_specs, (list, tuple))
    declared = [] if output_specs is None else [output_specs] if single else list(output_specs)
    tensors = tuple(as_tensor(x) for x in inputs)
    is_batched = any(isinstance(x, Batched) for x in tensors)
    specs = tuple(s if isinstance(s, TensorSpec) else TensorSpec((), s) for s in declared)
    if is_batched and not all(s.has_rank for s in specs):
        raise ShapeError(_without_rank(fn, specs))
    results: Sequence[Any]
    if tracing() is None and not is_batched:
        results = PythonCall(fn, specs, single)(*tensors)
    else:
        results = call_with_open_ranks(_at_this_line(fn), specs, single, tensors)
    return None if output_specs is None else results[0] if single else results


def _without_rank(fn: Any, specs: Sequence[TensorSpec]) -> str:
    place = next(i for i, s in enumerate(specs) if not s.has_rank)
    which = f"result {place} of " if len(specs) > 1 else ""
    name, dtype = getattr(fn, "__name__", "the function"), specs[place].dtype.name
    return (
        f"py_func: {which}{name}: shape None leaves the number of axes open, which a batched call has to know; write "
        f"None for each size that is not known, as ll.TensorSpec((None, None), ll.{dtype}) for a matrix; where the "
        f"number of axes changes, return ll.reshape(y, (-1,)) of it as ll.TensorSpec((None,), ll.{dtype})"
    )


def _at_this_line(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` as it is called later, when the traced function is over: with that one's local names as they are now."""
    tracers = [x for stack in dispatch.local.stacks for x in stack if isinstance(x, Tracer)]
    begin = tracers[0].block if tracers else None
    return closed_over_now(fn, frames_up_to(sys._getframe(1), begin.frame)) if begin is not None else fn
