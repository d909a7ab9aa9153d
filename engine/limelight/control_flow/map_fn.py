"""`map_fn`: a function of each row (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.control_flow.scan import Scan
from limelight.control_flow.user_functions import called
from limelight.staging.trace_body import require_callable


def map_fn(fn: Callable[[Any], Any], xs: Any) -> Any:
    """A sequential map: `fn` of each row of `xs`, one after another, and the results stacked (paper section 4.1).

    Staged, it is one `scan` node; run eagerly, a Python loop. Differentiable to any order. `ll.vectorize(fn)(xs)`
    computes the same in wide ops: faster, but in more memory, and both branches of a `cond` are run.

    Args:
        fn: a function of a row, or a nest of rows, that returns a tensor or a nest of tensors, whose structure, dtypes
            and shapes are the same for each row.
        xs: a tensor (steps, ...) or a nest of tensors with the same first axis, whose size may be unknown while
            tracing.

    Returns:
        The results, each with a first axis: (steps, ...).

    Raises:
        ControlFlowError: `xs` has no first axis.
        ArgumentError: `fn` cannot be called.

    >>> import limelight as ll
    >>> ll.map_fn(lambda x: ll.cond(x > 0, lambda: x, lambda: -2 * x), ll.constant([1, -1, 3])).tolist()
    [1, 2, 3]
    """
    require_callable("map_fn", fn=fn)

    def step(nothing: Any, x: Any) -> tuple[Any, Any]:
        return nothing, called("map_fn", "fn", "a row of xs", fn, x)

    step.__name__ = getattr(fn, "__name__", "body")
    return Scan.of("map_fn", step, (), xs, None, False).run()[1]
