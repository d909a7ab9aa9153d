"""Which interpreter handles an op: a stack for each thread, with eager execution at the bottom.

After Autodidax (the JAX authors' account of tracing interpreters): evaluation, differentiation and tracing are peers
behind one method, so dispatch knows neither tapes nor traces.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from limelight import devices, events
from limelight.devices import Device, DeviceName
from limelight.errors import DeviceError
from limelight.scoped import Scoped

active: Final[list[object]] = []
"""Non-empty when "just run the kernel" may be wrong somewhere: see docs/design.md section 3."""


scopes: Final[list[object]] = []
"""The part of `active` that is not an interpreter: device scopes and listeners. Empty means CPU:0, unobserved."""


class Interpreter:
    """Gives ops their meaning. `below` is the next interpreter down this thread's stack while this one is on it."""

    below: Interpreter | None = None
    observes = False
    """Whether it only takes note of what eager execution does. While it alone stands above that, entry points run
    simple kernels themselves and then tell it, by the method for one tensor, for two, or for any inputs."""

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Handles one op: `inputs` are tensors, variables or Python scalars, `attrs` hashable static parameters.

        Returns a tensor, or a tuple of tensors for an op with several outputs.
        """
        raise NotImplementedError

    def observe(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Any) -> None:
        """Told of an op with one output, on plain tensors and Python scalars, that has just run."""
        raise NotImplementedError

    def observe_one(self, recipes: Any, x: Any, attrs: tuple[Any, ...], out: Any) -> None:
        """The same for one tensor; `recipes` are the op's."""
        raise NotImplementedError

    def observe_two(self, recipes: Any, x: Any, y: Any, out: Any) -> None:
        """The same for two tensors and no parameters."""
        raise NotImplementedError

    def constant(self, array: Any, device: Device | None) -> Any:
        """A tensor with the value of a NumPy array that nobody else holds; a trace writes it into its graph."""
        assert self.below is not None
        return self.below.constant(array, device)


_base: list[Interpreter] = []


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[Interpreter] = list(_base)
        self.observer: Interpreter | None = None


local: Final = _Local()


def set_base(interpreter: Interpreter) -> None:
    """Makes `interpreter` the bottom of every thread's stack; called once, by the eager interpreter."""
    _base[:] = [interpreter]
    local.stack = [interpreter]


def apply(op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...] = ()) -> Any:
    """Runs `op` under the innermost interpreter of this thread."""
    return local.stack[-1].process(op, inputs, attrs)


def current() -> Interpreter:
    """The innermost interpreter of this thread."""
    return local.stack[-1]


def stack() -> tuple[Interpreter, ...]:
    """This thread's interpreters, bottom first."""
    return tuple(local.stack)


def push(interpreter: Interpreter) -> None:
    """Makes `interpreter` the innermost one of this thread."""
    interpreter.below = local.stack[-1]
    local.stack.append(interpreter)
    active.append(interpreter)
    _choose_observer()


def remove(interpreter: Interpreter) -> None:
    """Takes `interpreter` off this thread's stack, wherever it stands: scopes may be left in any order."""
    local.stack.remove(interpreter)
    active.remove(interpreter)
    for lower, upper in zip(local.stack, local.stack[1:], strict=False):
        upper.below = lower
    interpreter.below = None
    _choose_observer()


def _choose_observer() -> None:
    """Whom entry points tell: the one interpreter above the eager one, if it only observes."""
    stack = local.stack
    local.observer = stack[1] if len(stack) == 2 and stack[1].observes else None


@contextmanager
def fresh_stack() -> Iterator[None]:
    """Runs its block eagerly, outside every tape and trace of this thread."""
    outer, local.stack = local.stack, list(_base)
    _choose_observer()
    try:
        yield
    finally:
        local.stack = outer
        _choose_observer()


_requested: Final[Scoped[tuple[tuple[device, DeviceName | None], ...]]] = Scoped("device", ())
"""The device scopes entered in this context, outermost first, each with its name as completed by those around it."""


def requested_device() -> Device | None:
    """The device asked for by the scopes around this line, None when none is."""
    entered = _requested.get()
    name = entered[-1][1] if entered else None
    return None if name is None else devices.find(name)


class device:
    """Runs the ops of its block on the device `name`, copying operands there as needed (paper section 4.4).

    Scopes nest: parts that an inner name leaves open come from the outer one, and `device(None)` clears. The same
    object may be entered again. Raises DeviceError for a device that does not exist, and on leaving scopes out of
    order.

    >>> import limelight as ll
    >>> with ll.device("cpu:0"):
    ...     ll.constant(1.0).device.short
    'CPU:0'
    """

    def __init__(self, name: str | Device | None) -> None:
        self._name = None if name is None else devices.parse(name.name if isinstance(name, Device) else name)
        if self._name is not None and self._name.kind is not None:
            devices.find(name if isinstance(name, str) else self._name)

    def __enter__(self) -> Device | None:
        entered = _requested.get()
        outer = entered[-1][1] if entered else None
        merged = None if self._name is None else self._name.merged(outer) if outer else self._name
        chosen = None if merged is None else devices.find(merged)
        _requested.replace((*entered, (self, merged)))
        scopes.append(self)
        active.append(self)
        return chosen

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self not in scopes:
            raise DeviceError("this device scope is not entered; use a `with` block")
        scopes.remove(self)
        active.remove(self)
        entered = _requested.get()
        places = [i for i, (scope, _) in enumerate(entered) if scope is self]
        if places:  # not so in a generator that another thread closes
            _requested.replace(entered[: places[-1]] + entered[places[-1] + 1 :])
        if error is None and (not places or places[-1] != len(entered) - 1):
            raise DeviceError("device scopes must be left in the reverse order of entering; use `with` blocks")


def _on_interest(interested: bool) -> None:
    """A listener to single ops or allocations takes execution off the hot path, and back when it goes."""
    for places in (scopes, active):
        if interested:
            places.append(_on_interest)
        else:
            places.remove(_on_interest)


for _kind in (events.OpRan, events.Allocated, events.Freed, events.Recorded):
    events.on_interest(_kind, _on_interest)
