"""Which interpreter handles an op: a stack for each thread, with eager execution at the bottom.

After Autodidax (the JAX authors' account of tracing interpreters): evaluation, differentiation and tracing are peers
behind one method, so dispatch knows neither tapes nor traces.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self

from limelight import events
from limelight.core import devices
from limelight.core.devices import Device, DeviceName
from limelight.errors import ArgumentError, DeviceError
from limelight.settings import Scoped

active: Final[list[object]] = []
"""Non-empty when "just run the kernel" may be wrong somewhere: see docs/design.md section 3."""


scopes: Final[list[object]] = []
"""The part of `active` that is not an interpreter: device scopes and listeners. Empty means CPU:0, unobserved."""


class Interpreter:
    """Gives ops their meaning. `below` is the next interpreter down this thread's stack while this one is on it."""

    below: Interpreter | None = None
    scope: str | None = None
    """The name scope of the nodes that it writes ("dense/"); None where it writes none."""
    naming: _Naming | None = None
    observes = False
    """Whether it only takes note of what eager execution does. While it alone stands above that, entry points run
    simple kernels themselves and then tell it, by one of the two methods that follow."""

    def process(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Handles one op: `inputs` are tensors, variables or Python scalars, `attrs` hashable static parameters.

        Returns a tensor, or a tuple of tensors for an op with several outputs.
        """
        raise NotImplementedError

    def observe(self, recipes: Any, x: Any, y: Any, first: int, second: int, out: Any) -> None:
        """Told of an op that has just run, by the op's recipes, its inputs and their uids (0 for a Python scalar).

        The op has two inputs and no parameters, or one: then `y` are its parameters and `second` is 0.
        """
        raise NotImplementedError

    def observe_many(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Any) -> None:
        """The same for any inputs and parameters."""
        raise NotImplementedError

    def left(self, x: Any) -> None:
        """Told that the value of a tensor goes to Python or NumPy, where nobody sees what becomes of it."""
        if self.below is not None:
            self.below.left(x)

    def watches(self, x: Any) -> bool:
        """Whether somebody would want to know what becomes of a tensor."""
        return self.below is not None and self.below.watches(x)

    def constant(self, array: Any, device: Device | None) -> Any:
        """A tensor with the value of a NumPy array that nobody else holds; a trace writes it into its graph."""
        assert self.below is not None
        return self.below.constant(array, device)


class BlockInterpreter(Interpreter):
    """One that stands on the stack for the length of a `with` block."""

    def __enter__(self) -> Self:
        push(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            remove(self)
        except KeyboardInterrupt:  # in the middle of it: once more
            remove(self)
            raise


_base: list[Interpreter] = []


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[Interpreter] = list(_base)
        self.stacks = [self.stack]  # those that are put away, and it
        self.observer: Interpreter | None = None


local: Final = _Local()


def set_base(interpreter: Interpreter) -> None:
    """Makes `interpreter` the bottom of every thread's stack; called once, by the eager interpreter."""
    _base[:] = [interpreter]
    local.stack = [interpreter]
    local.stacks = [local.stack]


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
    try:
        interpreter.below = local.stack[-1]
        local.stack.append(interpreter)
        active.append(interpreter)
        _choose_observer()
    except BaseException:
        remove(interpreter)
        raise


def remove(interpreter: Interpreter) -> None:
    """Takes `interpreter` off this thread's stack, wherever it stands: scopes may be left in any order.

    May be called again, and does nothing then. Whoever leaves a scope does so if an interrupt came in the middle.
    """
    everywhere: list[list[Any]] = [active, *local.stacks]
    for places in everywhere:
        if interpreter in places:
            places.remove(interpreter)
    for lower, upper in zip(local.stack, local.stack[1:], strict=False):
        upper.below = lower
    interpreter.below = None
    _choose_observer()


def _choose_observer() -> None:
    """Whom entry points tell: the one interpreter above the eager one, if it only observes."""
    stack = local.stack
    local.observer = stack[1] if len(stack) == 2 and stack[1].observes else None


# Name scopes

outer_scope: Final[Scoped[str]] = Scoped("name_scope", "")
"""The name scope outside every trace; in a trace its writer knows."""
named_scopes: Final[list[str]] = []
"""Not empty once anybody has entered a name scope: until then nobody need look for one."""
_GRADIENT: Final = "gradient/"


def writer() -> Interpreter | None:
    """The innermost interpreter of this thread that writes nodes."""
    return next((x for x in reversed(local.stack) if x.scope is not None), None)


def name_scope_now() -> str:
    """The path of the name scopes around this line ("encoder/dense/"), empty outside of them."""
    if not named_scopes:
        return ""
    found = writer()
    return (outer_scope.get() if found is None else found.scope) or ""


@contextmanager
def name_scope(name: str) -> Iterator[str]:
    """Puts the nodes and variables made in its block under `name`: node.scope is "encoder/", a name "encoder/w".

    Scopes nest, and are named alike in each trace, so that graphs can be compared. What a gradient writes has the scope
    of the op that it belongs to, after "gradient/". A staged function begins without one, since its graph serves
    callers in any scope; branches and loop bodies begin with that around them. Yields the whole path. Raises
    ArgumentError for a name that is empty or has white space.

    >>> import limelight as ll
    >>> @ll.function
    ... def f(x):
    ...     with ll.name_scope("encoder"):
    ...         return ll.exp(x)
    >>> y = f(ll.constant(0.0))
    >>> f.trace_cache[0].graph.nodes[0].scope
    'encoder/'
    """
    if type(name) is not str or not name.strip("/") or any(c.isspace() for c in name):
        raise ArgumentError(f"name_scope: the name must be a word such as 'encoder', got {name!r}")
    if not named_scopes:
        named_scopes.append(name)
    path = f"{name_scope_now()}{name.strip('/')}/"
    with outer_scope.override(path), written_in(path):
        yield path


@contextmanager
def written_in(scope: str) -> Iterator[None]:
    """Names what a trace of this thread writes within its block, whatever the scopes around it."""
    found = writer()
    if found is None:
        yield
        return
    naming = _Naming(found.naming, found.scope)
    try:
        found.naming, found.scope = naming, scope
        yield
    finally:
        naming.over = True
        while found.naming is not None and found.naming.over:
            found.naming, found.scope = found.naming.before


class _Naming:
    """A name scope in a trace. Scopes may be left in any order: what held before comes back once all after it are."""

    __slots__ = ("before", "over")

    def __init__(self, *before: Any) -> None:
        self.before = before
        self.over = False


@contextmanager
def in_gradient(of: str = "") -> Iterator[None]:
    """Names what a trace of this thread writes within its block as part of the gradient of an op in the scope `of`."""
    found = writer()
    if found is None or found.scope is None or (found.scope.startswith(_GRADIENT) and not of):
        yield
        return
    with written_in(_GRADIENT + (of or found.scope).removeprefix(_GRADIENT)):
        yield


def fresh_stack() -> AbstractContextManager[None]:
    """Runs its block eagerly, outside every tape and trace of this thread."""
    return _standing_on(list(_base))


def beneath(interpreter: Interpreter) -> AbstractContextManager[None]:
    """Runs its block under the interpreters that stand below `interpreter` on this thread's stack."""
    return _standing_on(local.stack[: local.stack.index(interpreter)])


@contextmanager
def _standing_on(stack: list[Interpreter]) -> Iterator[None]:
    """Puts this thread's stack away for the length of its block. Such blocks may be left in any order."""
    try:
        _use([*local.stacks, stack])
        yield
    finally:
        try:
            _use([other for other in local.stacks if other is not stack])
        except KeyboardInterrupt:
            _use([other for other in local.stacks if other is not stack])
            raise


def stand_on(stacks: list[list[Interpreter]]) -> None:
    """Goes back to those of this thread's stacks that are among `stacks`."""
    _use([stack for stack in local.stacks if any(stack is other for other in stacks)])


def _use(stacks: list[list[Interpreter]]) -> None:
    local.stacks = stacks
    local.stack = stacks[-1]
    _choose_observer()


class _Entered:
    """One entering of a device scope, with its name as completed by the scopes around it."""

    __slots__ = ("name", "scope")

    def __init__(self, scope: device, name: DeviceName | None) -> None:
        self.scope = scope
        self.name = name

    def __repr__(self) -> str:
        return f"<device scope {self.name}>"


_requested: Final[ContextVar[tuple[_Entered, ...]]] = ContextVar("device", default=())
"""The device scopes entered in this context, outermost first."""


def requested_device() -> Device | None:
    """The device asked for by the scopes around this line, None when none is."""
    entered = _requested.get()
    name = entered[-1].name if entered else None
    return None if name is None else devices.find(name)


class device:  # noqa: N801  # used as a function: `with ll.device(...)`
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
        self._entered: list[_Entered] = []
        self._taken_back = 0

    def __enter__(self) -> Device | None:
        around = _requested.get()
        outer = around[-1].name if around else None
        merged = None if self._name is None else self._name.merged(outer) if outer else self._name
        chosen = None if merged is None else devices.find(merged)
        entered = _Entered(self, merged)
        try:
            for places in (self._entered, scopes, active):
                places.append(entered)
            _requested.set((*around, entered))
            return chosen
        except BaseException:
            self._leave(entered)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        entered: _Entered | None = None
        try:
            if self._taken_back and not self._entered:
                self._taken_back -= 1
                return
            around = _requested.get()
            entered = self._last_entered(around)
            self._leave(entered)
        except KeyboardInterrupt:
            self._leave(entered or self._last_entered(_requested.get()))
            raise
        if error is None and (not around or around[-1] is not entered):
            raise DeviceError("device scopes must be left in the reverse order of entering; use `with` blocks")

    def _last_entered(self, around: tuple[_Entered, ...]) -> _Entered:
        if not self._entered:
            raise DeviceError("this device scope is not entered; use a `with` block")
        mine = [entered for entered in around if entered.scope is self]
        return (mine or self._entered)[-1]  # not among those around in a generator that another thread closes

    def _leave(self, entered: _Entered) -> None:
        for places in (self._entered, scopes, active):
            if entered in places:
                places.remove(entered)
        _requested.set(tuple([other for other in _requested.get() if other is not entered]))


def entered_devices() -> tuple[_Entered, ...]:
    """The device scopes around this line."""
    return _requested.get()


def leave_devices(entered: tuple[_Entered, ...]) -> None:
    """Leaves the scopes that are not among `entered`. When their own blocks end, nothing happens."""
    for one in _requested.get():
        if one not in entered:
            one.scope._leave(one)
            one.scope._taken_back += 1


def _on_interest(interested: bool) -> None:
    """A listener to single ops or allocations takes execution off the hot path, and back when it goes."""
    for places in (scopes, active):
        if interested:
            places.append(_on_interest)
        else:
            places.remove(_on_interest)


for _kind in (events.OpRan, events.Allocated, events.Freed, events.Recorded):
    events.on_interest(_kind, _on_interest)
