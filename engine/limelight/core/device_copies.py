"""Copies between devices: the one place that makes them, the ring of the newest, and the rules for them.

Each copy is noted, whether anybody listens or not, so that a view that is opened late tells of those before it. A note
takes 15 to 20 us, of which nearly all is the search for the user's line, and for what it calls the tensor.

All CPU devices lie in the host's memory, so NumPy and Python read a tensor of CPU:1 where it is; between two of them
ops copy, as between any two devices.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

import numpy as np

from limelight import events, forking
from limelight.core import backends, devices
from limelight.core.devices import CPU0, Device
from limelight.core.spec import known
from limelight.errors import ArgumentError, DeviceCopyWarning, DeviceError
from limelight.settings import Scoped, SettingScope
from limelight.user_code import operand_text, source_line
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at

MOST_COPIES: Final = 512
ASKED: Final = ".to()"
"""The cause of a copy that somebody asked for."""
READ: Final = ".numpy()"
"""That of a value which Python asked for by name: `x.numpy()`, `x.item()`, `x.tolist()`."""
PRINTED: Final = "print"
CONSTANT: Final = "value from the host"
CAPTURE: Final = "captured tensor"
HOST_ARGUMENT: Final = "host argument"
"""That of sizes or positions which a kernel reads on the host."""
SAVED, RESTORED, INITIAL = "saved value", "restored value", "initial value of a variable"
EXPLICIT: Final = frozenset([ASKED, READ, CONSTANT, PRINTED, SAVED, RESTORED, INITIAL])
"""Causes of copies that no rule forbids: somebody has written them down, or looks at a value."""
ALLOW, WARN, ERROR = "allow", "warn", "error"
_UNITS: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_recent: Final[deque[events.Copied]] = deque(maxlen=MOST_COPIES)
_counting = threading.Lock()
forking.renew_in_child(__name__, "_counting", threading.Lock)


class Budget:
    """Bytes that may still be copied: those of a block, or of the process."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def take(self, nbytes: int) -> bool:
        """Whether so many bytes are left; then they are taken."""
        with _counting:
            if nbytes > self.left:
                return False
            self.left -= nbytes
            return True

    def give_back(self, nbytes: int) -> None:
        """Of a copy that was not made."""
        with _counting:
            self.left += nbytes


class Rules(NamedTuple):
    """What happens to copies that nobody asked for, and how many bytes may be copied in all (None: any number)."""

    implicit: str = ALLOW
    budget: Budget | None = None


rules: Final[Scoped[Rules]] = Scoped("copies", Rules())


class copies(SettingScope[Rules]):  # noqa: N801  # used as a function
    """What happens to copies between devices that nobody asked for: nothing, a warning, or an error at their line.

    Somebody asks for a copy by `x.to(...)`, `x.numpy()`, or by making a constant where a device scope says; operands
    that are elsewhere, captured tensors, and values that Python takes (`if x > 0`) are copied implicitly. With a
    budget, a copy that would go beyond it is an error, whoever asked for it. What is printed is never refused, since
    that is how one looks for the cause. As a `with` block it holds for what this thread does in the block.

    Args:
        implicit: "allow", the default, "warn" (DeviceCopyWarning) or "error" (DeviceError).
        budget: so many bytes may be copied from now on: a number, or "512MB"; None: any.

    Raises:
        ArgumentError: `implicit` is another word, or `budget` no size.

    >>> import limelight as ll
    >>> with ll.config.copies("error", budget="1MB"):
    ...     y = ll.ones(2) + 1.0
    """

    def __init__(self, implicit: str = ALLOW, *, budget: int | str | None = None) -> None:
        if implicit not in (ALLOW, WARN, ERROR):
            raise ArgumentError(f'll.config.copies takes "allow", "warn" or "error", got {implicit!r}')
        most = None if budget is None else Budget(size_of(budget))
        super().__init__(rules, Rules(implicit, most), sys._getframe(1))

    def __enter__(self) -> Self:
        budget = self._value.budget
        if budget is not None:
            budget.left = budget.most  # each block has it anew
        return super().__enter__()

    def __repr__(self) -> str:
        budget = self._value.budget
        return f"<copies: {self._value.implicit}{'' if budget is None else f', {budget.left:,} bytes left'}>"


def size_of(given: int | str) -> int:
    """Bytes, of 4096, "4096", "512MB" or "1.5GiB"; raises ArgumentError for anything else."""
    text = str(given)
    digits = text.rstrip("BbKkMmGgTtIi")
    try:
        size = int(float(digits) * _UNITS[text[len(digits) :].strip().upper() or "B"])
    except (ValueError, KeyError, OverflowError):
        size = -1
    if type(given) not in (int, str) or size < 0:
        raise ArgumentError(f"{given!r} is no size; write 512MB, 1.5GiB or a number of bytes")
    return size


def copied(data: Any, home: Device, to: Device, cause: str, line: Source | None, name: str = "") -> Any:
    """The payload `data` of a tensor on `home`, as one on `to`.

    Args:
        data: the payload.
        home: where it is.
        to: where it is to be.
        cause: why, in words.
        line: the user's line.
        name: what the user calls the tensor; found in the line for a copy that somebody asked for.

    Raises:
        DeviceError: the rules of this place refuse the copy.
    """
    name = name or (operand_text.subject() if cause in EXPLICIT else "")
    move = events.Copied(home.short, to.short, int(data.nbytes), cause, line, _spec_of(data), tensor=name)
    copy = _timed(move, lambda: backends.moved(data, home.backend, to.backend))
    if to is not CPU0:
        devices.mark_in_use()
    return copy


def on_host(data: Any, home: Device, cause: str, name: str = "") -> np.ndarray[Any, Any]:
    """The payload of a tensor on `home` as an array of NumPy: itself where it lies on the host, else a copy."""
    backend = backends.load(home.backend)
    if home.backend == "numpy":
        return backend.to_numpy(data)
    name, line = name or operand_text.subject(), source_line.user_line()
    move = events.Copied(home.short, CPU0.short, int(data.nbytes), cause, line, _spec_of(data), tensor=name)
    array: np.ndarray[Any, Any] = _timed(move, lambda: backend.to_numpy(data))
    return array


def from_host(array: np.ndarray[Any, Any], to: Device) -> Any:
    """An array of NumPy that nobody else holds, as a payload on `to`."""
    devices.mark_in_use()
    backend = backends.load(to.backend)
    if to.backend == "numpy":
        return backend.from_numpy(array)
    line = source_line.user_line()
    move = events.Copied(CPU0.short, to.short, int(array.nbytes), CONSTANT, line, _spec_of(array))
    return _timed(move, lambda: backend.from_numpy(array))


def _timed(move: events.Copied, make: Callable[[], Any]) -> Any:
    """What `make` gives; the copy is checked against the rules before, and noted after, with its time."""
    taken = _check(move)
    start = time.perf_counter()
    try:
        result = make()
    except BaseException:  # an interrupt, too
        if taken is not None:
            taken.give_back(move.nbytes)
        raise
    event = replace(move, seconds=time.perf_counter() - start, time=time.perf_counter())
    _recent.append(event)
    if events.wanted(events.Copied):
        events.emit(event)
    return result


def _spec_of(data: Any) -> str:
    return str(known(tuple(data.shape), data.dtype)) if hasattr(data, "dtype") else type(data).__name__


def _check(move: events.Copied) -> Budget | None:
    """Raises DeviceError for a copy that is about to be made, or warns, where the rules of this place say so.

    Returns the budget from which its bytes were taken.
    """
    implicit, budget = rules.get()
    if implicit == ALLOW and budget is None:
        return None
    asked = move.cause in EXPLICIT
    called = f"`{move.tensor}`, {move.what}" if move.tensor else move.what
    moved = (
        f"{move.cause}: {called}, {move.nbytes:,} bytes, {{}} copied from {move.source_device} to {move.target_device}"
    )
    x = move.tensor if move.tensor.isidentifier() else "x"
    once = f'copy it once, before: {x} = {x}.to("{move.target_device}")'
    if implicit == ERROR and not asked:
        raise DeviceError(f"{moved.format('would be')}, and copies are forbidden here; {once}")
    if move.cause == PRINTED:
        budget = None
    if budget is not None and not budget.take(move.nbytes):
        left = f"of the {budget.most:,} bytes that may be copied here {budget.left:,} are left"
        raise DeviceError(f"{moved.format('would be')}, and {left}; {once}")
    line = move.source or source_line.user_line()
    if implicit == WARN and not asked and line is not None:
        try:
            warn_at(line, f"{moved.format('is')}; {once}{source_line.at(line)}", DeviceCopyWarning)
        except DeviceCopyWarning:  # a filter has made an error of it
            if budget is not None:
                budget.give_back(move.nbytes)
            raise
    return budget


def forget_copies() -> None:
    """Begins the ring of the newest copies anew."""
    _recent.clear()


def recent_copies() -> tuple[events.Copied, ...]:
    """The newest copies between devices since limelight was imported, at most 512, oldest first."""
    return tuple(_recent)
