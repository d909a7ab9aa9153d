"""Running a staged function's Python code on every call: for the debugger, and for `print`.

The code runs as its source says, not converted by autograph, so that breakpoints and lines are the user's.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any, Final

from limelight import forking
from limelight.core import dispatch
from limelight.core.tensor import as_tensor
from limelight.core.variable import on_create
from limelight.settings import Scoped
from limelight.staging import structured_outputs
from limelight.staging.argument_changes import changes_of, warn
from limelight.staging.key import Call
from limelight.staging.key_parts import TensorPart
from limelight.staging.signature import Signature
from limelight.staging.state_creation import Creation
from limelight.staging.trace_branch import unaliased
from limelight.with_blocks import Block

_switch: Final = Scoped("run_functions_eagerly", False)
_lock = threading.RLock()  # an interrupt may leave it held by its thread
forking.renew_in_child(__name__, "_lock", threading.RLock)


class _Marker:
    """Stands in `dispatch.active`, so that calls of staged functions take no shortcut and look here.

    It also does where a block has switched that off within one that has it on, and comes back if an interrupt has kept
    the inner one from being left.
    """

    @property
    def block(self) -> Block | None:
        return _switch.global_block

    def abandon(self) -> None:
        _place_marker()


_MARKER: Final = _Marker()


def everywhere() -> bool:
    """Whether all staged functions run eagerly."""
    if _MARKER not in dispatch.scopes:
        return False
    if _switch.get():
        return True
    _place_marker()  # the block that had it so may be over
    return False


def _place_marker() -> None:
    """Puts the marker where calls look, or takes it away, as the setting says, now or when a block is over."""
    _switch.get()  # what is over is forgotten
    _mark(_switch.may_become(True))


def _mark(on: bool) -> None:
    with _lock:
        places: list[object]
        for places in (dispatch.scopes, dispatch.active):
            if on and _MARKER not in places:
                places.append(_MARKER)
            elif not on and _MARKER in places:
                places.remove(_MARKER)


class run_functions_eagerly:  # noqa: N801  # used as a function
    """Makes every staged function run its Python code on each call, in the whole process, or stops that.

    `print`, `pdb` and breakpoints then work in the body, on real values. Nothing is traced or taken from the cache;
    arguments are still cast as an `input_signature` says, results still become tensors, and variables may still be
    created on a function's first call only. As a `with` block it ends with the block. A single function is switched
    by `ll.function(run_eagerly=True)`, or `f.run_eagerly = True`.

    >>> import limelight as ll
    >>> @ll.function
    ... def twice(x):
    ...     print("x is", x.item())
    ...     return x + x
    >>> with ll.config.run_functions_eagerly():
    ...     twice(ll.constant(2.0)).item()
    x is 2.0
    4.0
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = bool(enabled)
        self._mine = _switch.set_globally_or_later(self._enabled, sys._getframe(1))
        if self._mine is not None:
            self._place()

    def _place(self) -> None:
        try:
            _place_marker()
        except BaseException:
            if self._mine is not None:
                _switch.withdraw(self._mine)
            _place_marker()
            raise

    def __enter__(self) -> run_functions_eagerly:
        self._mine = _switch.set_for_block(self._enabled, self._mine, sys._getframe(1))
        _mark(_switch.may_become(True))  # no look at what is over: its own block has not quite begun
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._mine is not None, "it has been entered"
        try:
            _switch.withdraw(self._mine)
            _place_marker()
        except KeyboardInterrupt:  # in the middle of it: once more
            _switch.withdraw(self._mine)
            _place_marker()
            raise


def run(function: Any, signature: Signature, call: Call, creation: Creation) -> Any:
    """The result of the Python function for `call`, under the contracts of a staged one.

    Args:
        function: the Python function.
        signature: how its calls are bound.
        call: the arguments, in canonical form.
        creation: takes note of the variables that it creates, or refuses them.
    """
    parts = zip(call.leaves, call.key.parts, strict=True)
    leaves = [as_tensor(leaf) if isinstance(part, TensorPart) else leaf for leaf, part in parts]
    args, kwargs = signature.unbind(leaves, call.key.structure)
    with on_create.override(creation.note):
        result = function(*args, **kwargs)
    changes = changes_of(function, signature, call.key.structure, leaves, (args, kwargs), result)
    warn(signature.name, changes.lost)
    tensors, shape = structured_outputs.split(result, signature.name)
    return shape.rebuild(unaliased(tensors, leaves))
