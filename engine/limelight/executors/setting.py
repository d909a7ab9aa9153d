"""Which executor runs staged functions: `ll.config.executor`."""

from __future__ import annotations

import os
import sys
from typing import Final

from limelight.errors import ArgumentError
from limelight.executors import base
from limelight.executors.loops.lowering import NAME as LOOPS
from limelight.executors.loops.native_loops import is_usable
from limelight.settings import SettingScope

AUTO: Final = "auto"
VARIABLE: Final = "LIMELIGHT_EXECUTOR"
"""The environment variable that names the executor of a process which has not called `ll.config.executor`."""
_NO_XLA: Final = (
    "the executor 'xla' needs JAX, which is not installed: pip install 'limelight[xla]'; or write "
    "ll.config.executor('plan')"
)
_NO_LOOPS: Final = (
    "the executor 'loops' needs the package limelight-native, which is not installed: with a C compiler, run "
    "`pip install ./engine/native` in a checkout; without, write ll.config.executor('plan')"
)


class executor(SettingScope[str]):  # noqa: N801  # used as a function
    """Functions that are traced from now on run on the executor `name`, in the whole process.

    As a `with` block it holds for what this thread does in the block, and ends with it.

    "plan" writes a Python function that calls NumPy. "loops" runs stretches of nodes with known sizes as tables of
    NumPy's own inner loops, without Python between them, where that is no slower, and finds the same numbers bit for
    bit; it needs the package limelight-native. "auto", the default, is "loops" where that is installed, else "plan",
    with one difference: where JAX is installed, a function that has run for long enough is compiled in the background,
    and goes on compiled where that is measured to be faster (`F.trace_cache[0].tier_progress`). "xla" compiles a
    program for each set of shapes at once, which takes a second or more and is then quick; it needs JAX. "step" runs
    one node after the other. The environment variable LIMELIGHT_EXECUTOR names another default. What has been traced
    stays as it is: trace again (`F.clear_cache()`) to compare. `F.trace_cache[0].tier` says which executor a trace runs
    on, `%%stage -a plan` what runs each of its nodes.

    Raises:
        ArgumentError: there is no such executor, or it needs a package that is not installed.

    >>> import limelight as ll
    >>> f = ll.function(lambda x: ll.tanh(x) + 1.0)
    >>> with ll.config.executor("plan"):
    ...     f(ll.constant(0.0)).item(), f.trace_cache[0].tier
    (1.0, 'plan')
    """

    def __init__(self, name: str) -> None:
        super().__init__(base.chosen, checked(name), sys._getframe(1))

    def __repr__(self) -> str:
        return f"<executor: {self._value}>"


class deterministic(SettingScope[bool]):  # noqa: N801  # used as a function
    """Functions stay on the executor on which they run now, so that the same calls give the same bits.

    Otherwise a function that has run for seconds may go on compiled (see `ll.config.executor`), and its results then
    differ by rounding; when that is depends on the clock. Random numbers are the same in any case. As a `with` block it
    holds for what this thread does in the block.

    Args:
        on: whether they stay. True.

    >>> import limelight as ll
    >>> with ll.config.deterministic():
    ...     y = ll.function(lambda x: x + 1.0)(ll.constant(1.0))
    """

    def __init__(self, on: bool = True) -> None:
        super().__init__(base.pinned, bool(on), sys._getframe(1))

    def __repr__(self) -> str:
        return f"<deterministic: {self._value}>"


def checked(name: str) -> str:
    """The name of the executor that `name` stands for; raises ArgumentError where there is none."""
    known = base.names()
    if name == AUTO:
        return base.Automatic(LOOPS if LOOPS in known and is_usable() else base.DEFAULT)
    if name in known:
        return name
    if name == LOOPS:
        raise ArgumentError(_NO_LOOPS)
    if name == base.COMPILED:
        raise ArgumentError(_NO_XLA)
    raise ArgumentError(f"there is no executor {name!r}; write one of {', '.join(map(repr, (*known, AUTO)))}")


def at_first() -> str:
    """The executor of a process that has said nothing: what LIMELIGHT_EXECUTOR names, else "auto".

    Raises:
        ArgumentError: the variable names none.
    """
    name = os.environ.get(VARIABLE) or AUTO
    try:
        return checked(name)
    except ArgumentError as error:
        raise ArgumentError(f"{VARIABLE}={name!r} in the environment: {error}") from None
