"""Leaving a trace: `init_scope` (paper section 4.7).

The block gets an empty stack of interpreters; what holds around it otherwise, the device scope say, stays in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from limelight.core import dispatch
from limelight.core.variable import lift, on_create


@contextmanager
def init_scope() -> Iterator[None]:
    """A context manager that runs its block eagerly, outside every trace and tape around it, once for each trace.

    The device scope stays in force. Variables may be created, for each trace its own. Staged functions use it to create
    state; most programs have no need of it (paper section 4.7).

    Raises:
        SymbolicValueError: the block uses a symbolic tensor, which has no value yet.

    >>> import limelight as ll
    >>> made = []
    >>> @ll.function
    ... def f(x):
    ...     with ll.init_scope():
    ...         made.append(ll.constant(1.0) + 1.0)
    ...     return x + made[0]
    >>> f(ll.constant(1.0)).item()
    3.0
    """
    with dispatch.fresh_stack(), on_create.override(None), lift.override(None):
        yield
