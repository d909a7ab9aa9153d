"""What the executor of a trace gains over the plan, measured on one call."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from limelight.core import dispatch
from limelight.core.devices import CPU0
from limelight.core.storage import Storage, told
from limelight.errors import ArgumentError
from limelight.executors import base
from limelight.explain.sandboxed_run import inputs_of
from limelight.explain.subject import staged_for
from limelight.explain.without_effects import private
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function

TURNS: Final = 9
"""Measurements of each, in turn; medians count."""
_SECONDS: Final = 0.005
"""That each measurement takes, at least, unless one run takes longer."""
_MOST: Final = 1000
"""Runs of each."""
_ALIKE: Final = 1.05


@dataclass(frozen=True, eq=False)
class Gain:
    """How long the runs of a trace take on its own executor and on the plan, in seconds.

    Args:
        function: the staged function.
        entry: the trace.
        tier: the name of its executor.
        seconds: of a run on that.
        seconds_of_plan: of a run on the plan.

    >>> import limelight as ll
    >>> with ll.config.executor("step"):
    ...     measured = ll.explain.gain(lambda x: ll.tanh(x * 2.0) + x, ll.ones(10))
    >>> measured.tier, measured.ratio == measured.seconds_of_plan / measured.seconds
    ('step', True)
    """

    function: Function
    entry: ConcreteFunction
    tier: str
    seconds: float
    seconds_of_plan: float

    @property
    def ratio(self) -> float:
        """How many times as fast it is as the plan."""
        return self.seconds_of_plan / max(self.seconds, 1e-9)

    @property
    def words(self) -> str:
        """The same in words: "6.9 times as fast as plan"."""
        if _ALIKE > self.ratio > 1 / _ALIKE:
            return f"as fast as {base.DEFAULT}"
        word, ratio = ("fast", self.ratio) if self.ratio > 1 else ("slow", 1 / self.ratio)
        return f"{ratio:.{1 if ratio < 10 else 0}f} times as {word} as {base.DEFAULT}"

    def __str__(self) -> str:
        times = f"{_time(self.seconds)} on {self.tier}, {_time(self.seconds_of_plan)} on {base.DEFAULT}"
        trace = f"Trace #{self.entry.index + 1} of `{self.function.name}`"
        return f"{trace} takes {times}: {self.words} (medians of {TURNS} turns, on copies of what it changes)."

    __repr__ = __str__


def gain(F: Callable[..., Any], *args: Any, **kwargs: Any) -> Gain:
    """Measures what the executor of `F(*args, **kwargs)` gains over the plan.

    The trace is that of the cache; a call that would trace is traced first. Its graph is built for the plan as well,
    and both run in turn for a tenth of a second, on copies of the variables and generators that it changes. What open
    views count of assignments is at rest meanwhile. The answer is kept, and `%trace_cache` shows it.

    Args:
        F: a staged function; any other function or module is staged for this question alone.
        *args: its arguments.
        **kwargs: its arguments by name.

    Returns:
        The times of both.

    Raises:
        ArgumentError: `F` cannot be called, or is a class; the trace runs on the plan, or elsewhere than on the CPU; or
            it does more than compute, so that running it again would be noticed.

    >>> import limelight as ll
    >>> @ll.function
    ... def chain(x):
    ...     return ll.tanh(x * 2.0) + x
    >>> with ll.config.executor("step"):
    ...     measured = ll.explain.gain(chain, ll.ones(10))
    >>> measured.tier, chain.trace_cache[0].gain == measured.words
    ('step', True)
    """
    function = staged_for("gain", F)
    call = function._call(args, kwargs)
    entry = function._find(call.lookup) or function._trace_once(call, run=False)
    inputs = inputs_of(entry, call)
    _check(function, entry, [x._device for x in inputs])
    graph = entry.function.optimised.graph
    payloads = [x._data for x in inputs]
    with dispatch.fresh_stack(), _nobody_is_told():
        runs = [_Run(base.get(name).build(graph), payloads) for name in (entry.tier, base.DEFAULT)]
        times = _in_turn(runs)
    found = Gain(function, entry, entry.tier, *map(statistics.median, times))
    entry.gain = found.words  # words alone: the answer holds the trace
    return found


class _Run:
    """Runs a graph on copies of what it changes."""

    def __init__(self, run: Callable[..., Any], payloads: Sequence[Any]) -> None:
        copies: dict[int, Any] = {}
        self._run = run
        self._payloads = [_copied(x, copies) for x in payloads]
        self._changing = [(copy, copy.array) for copy in copies.values() if isinstance(copy, Storage)]

    def begin_anew(self) -> None:
        """Gives variables back what they had: training goes only so far."""
        for copy, array in self._changing:
            copy.array = array

    def __call__(self) -> None:
        self._run(*self._payloads)


def _copied(payload: Any, copies: dict[int, Any]) -> Any:
    """As `private`, but variables stay of the class that tables know."""
    if not isinstance(payload, Storage):
        return private(payload, copies)
    fields = (payload.array, payload.device, payload.spec, payload.name, 0)
    return copies.setdefault(id(payload), Storage(*fields))


@contextmanager
def _nobody_is_told() -> Iterator[None]:
    """Of assignments to copies."""
    before = list(told)
    told.clear()
    try:
        yield
    finally:
        told[:] = before


def _check(function: Function, entry: ConcreteFunction, devices: Sequence[Any]) -> None:
    """Raises ArgumentError where there is nothing to compare, or a run would be noticed."""
    name = function.name
    if entry.tier == base.DEFAULT:
        raise ArgumentError(f"explain.gain: `{name}` runs on {base.DEFAULT}, beside which others are measured")
    if any(device is not CPU0 for device in devices):
        raise ArgumentError(f"explain.gain: `{name}` computes on {devices[0].short}, and {base.DEFAULT} on CPU:0")
    if "io" in entry.function.effects.chains:
        raise ArgumentError(
            f"explain.gain: `{name}` does more than compute (it prints, calls Python, or reads data), which its runs "
            "would do again; ask about a function without that"
        )


def _in_turn(runs: Sequence[_Run]) -> list[list[float]]:
    """The seconds of a run of each, several times."""
    calls = []
    for run in runs:
        run()
        begin = time.perf_counter()
        run()
        calls.append(max(1, min(_MOST, int(_SECONDS / max(time.perf_counter() - begin, 1e-7)))))
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, n, column in zip(runs, calls, times, strict=True):
            run.begin_anew()
            begin = time.perf_counter()
            for _ in range(n):
                run()
            column.append((time.perf_counter() - begin) / n)
    return times


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.0f} ms"
