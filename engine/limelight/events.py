"""What the engine tells whoever asked.

Events are frozen records of specs, ids and numbers; they never hold tensors, so a view keeps no memory alive. The
engine makes a record only where somebody listens to its kind: `if events.wanted(Kind): events.emit(Kind(...))`.

>>> import limelight as ll
>>> seen, v = [], ll.Variable(1.0, name="w")
>>> with ll.events.listen(seen.append, ll.events.VariableAssigned):
...     _ = v.assign(2.0)
>>> seen[0].name
'w'
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from limelight import forking
from limelight.user_code.source_line import Source
from limelight.with_blocks import Block, block_of


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all records; `time` is `time.perf_counter()` in seconds when the record was made.

    >>> import limelight as ll
    >>> seen = []
    >>> with ll.events.listen(seen.append, ll.events.OpRan, ll.events.Allocated):
    ...     y = ll.ones(2) * 2.0
    >>> all(isinstance(event, ll.events.Event) for event in seen), seen[0].time <= seen[-1].time
    (True, True)
    """

    time: float = field(default_factory=time.perf_counter, kw_only=True)


@dataclass(frozen=True, slots=True)
class OpRan(Event):
    """One op ran eagerly. `seconds` is the kernel's wall time, `nbytes` the size of its outputs.

    `most` is what a staged call held at most of intermediates and results, by its plan (see `executors.base.Peak`),
    which is `exact` where all sizes are known; 0 for ops that are no calls.

    >>> import limelight as ll
    >>> seen, x = [], ll.ones((2, 3))
    >>> with ll.events.listen(seen.append, ll.events.OpRan):
    ...     y = ll.tanh(x)
    >>> seen[0].op, seen[0].outputs, seen[0].nbytes
    ('tanh', ('f32[2,3]',), 24)
    """

    op: str
    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nbytes: int
    seconds: float
    source: Source | None
    most: int = 0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Traced(Event):
    """A function was traced into a graph of `nodes` nodes in `seconds`.

    >>> import limelight as ll
    >>> seen, double = [], ll.function(lambda x: x + x, name="double")
    >>> with ll.events.listen(seen.append, ll.events.Traced):
    ...     y = double(ll.ones(3))
    >>> seen[0].function, seen[0].nodes
    ('double', 1)
    """

    function: str
    function_id: int
    entry: int
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TraceBegun(Event):
    """A trace of a function begins; `staging.partial_trace` has what it writes meanwhile.

    >>> import limelight as ll
    >>> seen, double = [], ll.function(lambda x: x + x, name="double")
    >>> with ll.events.listen(seen.append, ll.events.TraceBegun):
    ...     y = double(ll.ones(3))
    >>> seen[0].function
    'double'
    """

    function: str
    function_id: int


@dataclass(frozen=True, slots=True)
class TraceFailed(Event):
    """A trace of a function ended with `error` after `nodes` nodes; `staging.partial_trace` keeps these for a while.

    >>> import limelight as ll
    >>> seen, double = [], ll.function(lambda x: (x + x) @ ll.ones((2, 2)), name="double")
    >>> with ll.events.listen(seen.append, ll.events.TraceFailed):
    ...     try:
    ...         y = double(ll.ones(3))
    ...     except ll.errors.ShapeError:
    ...         print(seen[0].function, "failed after", seen[0].nodes, "nodes")
    double failed after 2 nodes
    """

    function: str
    function_id: int
    error: str
    nodes: int
    seconds: float
    source: Source | None


@dataclass(frozen=True, slots=True)
class CacheHit(Event):
    """A call found its trace in the cache.

    >>> import limelight as ll
    >>> seen, double = [], ll.function(lambda x: x + x)
    >>> with ll.events.listen(seen.append, ll.events.CacheHit):
    ...     y = double(double(ll.ones(3)))
    >>> [event.entry for event in seen]
    [0]
    """

    function: str
    function_id: int
    entry: int


@dataclass(frozen=True, slots=True)
class CacheMiss(Event):
    """A call found no trace; `reason` is a sentence, `entry` the index that the new trace gets.

    >>> import limelight as ll
    >>> seen, double = [], ll.function(lambda x: x + x)
    >>> with ll.events.listen(seen.append, ll.events.CacheMiss):
    ...     y = double(ll.ones(3)), double(ll.ones(4))
    >>> [event.entry for event in seen], "f32[3] -> f32[4]" in seen[1].reason
    ([0, 1], True)
    """

    function: str
    function_id: int
    entry: int
    reason: str
    source: Source | None


@dataclass(frozen=True, slots=True)
class CacheCleared(Event):
    """A function was made to forget its traces, `entries` of them.

    >>> import limelight as ll
    >>> seen, double = [], ll.function(lambda x: x + x)
    >>> y = double(ll.ones(3))
    >>> with ll.events.listen(seen.append, ll.events.CacheCleared):
    ...     double.clear_cache()
    >>> seen[0].entries
    1
    """

    function: str
    function_id: int
    entries: int


@dataclass(frozen=True, slots=True)
class PassApplied(Event):
    """An optimiser pass ran; `before - removed + added == after` nodes.

    >>> import limelight as ll
    >>> seen, twice = [], ll.function(lambda x: ll.exp(x) + ll.exp(x))
    >>> with ll.events.listen(seen.append, ll.events.PassApplied):
    ...     y = twice(ll.ones(3))
    >>> [(event.name, event.before, event.after) for event in seen if event.removed]
    [('share', 3, 2)]
    """

    graph: str
    name: str
    before: int
    removed: int
    added: int
    after: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Recorded(Event):
    """A tape recorded an op. `saved_bytes` counts what this entry keeps alive, `rule` is the gradient in maths.

    >>> import limelight as ll
    >>> seen, x = [], ll.constant(3.0)
    >>> with ll.events.listen(seen.append, ll.events.Recorded), ll.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = ll.exp(x)
    >>> seen[0].op, seen[0].rule
    ('exp', 'x̄ = ȳ y*')
    """

    tape_id: int
    index: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    saved_bytes: int
    rule: str
    source: Source | None


@dataclass(frozen=True, slots=True)
class GradientCompared(Event):
    """One number of a gradient was held against differences by `ll.explain.check_gradient`, `done` of `total`.

    >>> import limelight as ll
    >>> seen = []
    >>> with ll.events.listen(seen.append, ll.events.GradientCompared):
    ...     report = ll.explain.check_gradient(lambda x: ll.sum(x * x), ll.ones(3))
    >>> [(event.source_name, event.done, event.total) for event in seen][-1]
    ('x', 3, 3)
    """

    function: str
    source_name: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class TapeReleased(Event):
    """A tape let go of its entries.

    >>> import limelight as ll
    >>> seen, v = [], ll.Variable(3.0)
    >>> with ll.GradientTape() as tape:
    ...     y = v * v
    >>> with ll.events.listen(seen.append, ll.events.TapeReleased):
    ...     gradient = tape.gradient(y, v)
    >>> seen[0].entries
    2
    """

    tape_id: int
    entries: int
    saved_bytes: int


@dataclass(frozen=True, slots=True)
class Copied(Event):
    """Bytes moved between devices; `cause` says why ("operand of matmul", ".to()", ...), `what` is "f32[3]".

    `tensor` is what the user calls it, as far as the line tells: "w" of `x @ w`, the name of a variable.

    >>> import limelight as ll
    >>> ll.config.set_virtual_devices(CPU=2)
    >>> seen, x = [], ll.ones((2, 3))
    >>> with ll.events.listen(seen.append, ll.events.Copied):
    ...     y = x.to("cpu:1")
    >>> seen[0].cause, seen[0].what, seen[0].nbytes
    ('.to()', 'f32[2,3]', 24)
    """

    source_device: str
    target_device: str
    nbytes: int
    cause: str
    source: Source | None
    what: str = ""
    seconds: float = 0.0
    tensor: str = ""


@dataclass(frozen=True, slots=True)
class Placed(Event):
    """An op ran eagerly on `device`, for the `reason` given; `requested` is what the scope around it asked for.

    `copies` are the operands that were copied there, of `nbytes` in all; `on_host` are operands that its kernel reads
    on the host whatever the device, and static parameters.

    >>> import limelight as ll
    >>> seen, x = [], ll.ones(3)
    >>> with ll.events.listen(seen.append, ll.events.Placed):
    ...     y = ll.tanh(x)
    >>> seen[0].op, seen[0].reason
    ('tanh', 'with its first tensor operand')
    """

    op: str
    device: str
    requested: str | None
    reason: str
    copies: int
    nbytes: int
    source: Source | None
    on_host: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocated(Event):
    """A buffer came to life on a device, made by the user's line `source`; views of it are no other one.

    >>> import limelight as ll
    >>> seen = []
    >>> with ll.events.listen(seen.append, ll.events.Allocated):
    ...     x = ll.zeros((2, 3))
    >>> seen[0].nbytes
    24
    """

    device: str
    nbytes: int
    buffer_id: int
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Freed(Event):
    """The last reference to a buffer went away. It is told while somebody listens to `Allocated`, too.

    >>> import limelight as ll
    >>> seen = []
    >>> with ll.events.listen(seen.append, ll.events.Allocated, ll.events.Freed):
    ...     x = ll.zeros((2, 3))
    ...     del x
    >>> [(type(event).__name__, event.nbytes) for event in seen]
    [('Allocated', 24), ('Freed', 24)]
    """

    device: str
    nbytes: int
    buffer_id: int


@dataclass(frozen=True, slots=True)
class VariableAssigned(Event):
    """A variable took a new value, eagerly or in a staged function.

    >>> import limelight as ll
    >>> seen, v = [], ll.Variable(1.0, name="w")
    >>> with ll.events.listen(seen.append, ll.events.VariableAssigned):
    ...     _ = v.assign(2.0)
    >>> seen[0].name, seen[0].nbytes
    ('w', 4)
    """

    variable_id: int
    name: str
    nbytes: int
    device: str


Callback = Callable[[Event], object]
InterestHook = Callable[[bool], None]

_lock = threading.RLock()
_listeners: dict[type[Event], tuple[Callback, ...]] = {}
_interest: dict[type[Event], list[InterestHook]] = {}


class Subscription:
    """A listener's place; closing it (or leaving its `with` block) ends the deliveries.

    >>> import limelight as ll
    >>> seen = []
    >>> subscription = ll.events.listen(seen.append, ll.events.OpRan)
    >>> subscription.close()
    >>> subscription.closed
    True
    """

    def __init__(self, callback: Callback, kinds: tuple[type[Event], ...]) -> None:
        self._callback = callback
        self._kinds = kinds
        self._open = False
        self._block: Block | None = None

    @property
    def closed(self) -> bool:
        return not self._open

    def open(self) -> Subscription:
        with _lock:
            if not self._open:
                self._open = True
                try:
                    for kind in self._kinds:
                        _set(kind, (*_listeners.get(kind, ()), self._deliver))
                except BaseException:  # an interrupt: nobody would have the subscription to close it
                    self.close()
                    raise
        return self

    def close(self) -> None:
        with _lock:
            if self._open:
                self._open = False
                for kind in self._kinds:
                    _set(kind, tuple(f for f in _listeners.get(kind, ()) if f != self._deliver))

    def _deliver(self, event: Event) -> None:
        if self._block is not None and self._block.is_over_here:
            self.close()
            return
        try:
            self._callback(event)
        except Exception:  # noqa: BLE001  # whatever a listener raises, it must not break a computation
            self.close()
            warnings.warn(
                f"a listener of {type(event).__name__} raised and was detached:\n{traceback.format_exc()}",
                RuntimeWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Subscription:
        self._block = block_of(sys._getframe(1))
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def listen(callback: Callback, *kinds: type[Event]) -> Subscription:
    """Calls `callback(event)` for every event of `kinds`, on the thread that caused it, until closed.

    A callback that raises is detached and reported once, as a RuntimeWarning; it never breaks a computation.

    >>> import limelight as ll
    >>> names = []
    >>> with ll.events.listen(lambda event: names.append(event.op), ll.events.OpRan):
    ...     y = ll.ones((2,)) + 1.0
    >>> names[-1]
    'add'
    """
    return Subscription(callback, kinds).open()


def wanted(kind: type[Event]) -> bool:
    """Whether anybody listens to `kind`: a dictionary look-up, for use before making a record.

    >>> import limelight as ll
    >>> with ll.events.listen(print, ll.events.CacheCleared):
    ...     ll.events.wanted(ll.events.CacheCleared)
    True
    """
    return kind in _listeners


def emit(event: Event) -> None:
    """Delivers `event` to the listeners of its kind.

    >>> import limelight as ll
    >>> seen = []
    >>> with ll.events.listen(seen.append, ll.events.CacheHit):
    ...     ll.events.emit(ll.events.CacheHit("double", 1, 0))
    >>> seen[0].function
    'double'
    """
    for callback in _listeners.get(type(event), ()):
        try:
            callback(event)
        except RuntimeWarning:  # warnings may be errors; a broken listener must still not break a computation
            continue


def on_interest(kind: type[Event], hook: InterestHook) -> None:
    """Calls `hook(True)` when `kind` gets its first listener and `hook(False)` when it loses its last.

    >>> import limelight as ll
    >>> class EpochEnded(ll.events.Event): ...
    >>> told = []
    >>> ll.events.on_interest(EpochEnded, told.append)
    >>> ll.events.listen(print, EpochEnded).close()
    >>> told
    [True, False]
    """
    _interest.setdefault(kind, []).append(hook)


def _set(kind: type[Event], listeners: tuple[Callback, ...]) -> None:
    had = kind in _listeners
    if listeners:
        _listeners[kind] = listeners
    else:
        _listeners.pop(kind, None)
    if had != bool(listeners):
        for hook in _interest.get(kind, ()):
            hook(bool(listeners))


def __dir__() -> list[str]:
    """The names that are defined here, without those that are imported."""
    return sorted([k for k, v in globals().items() if k[0] != "_" and getattr(v, "__module__", "") == __name__])


forking.renew_in_child(__name__, "_lock", threading.RLock)
