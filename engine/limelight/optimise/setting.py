"""How much the optimiser does: `ll.config.optimiser`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from limelight.errors import ArgumentError
from limelight.optimise import pipeline
from limelight.optimise.pipeline import HIGHEST, Pass
from limelight.settings import Scoped, SettingScope


class Setting(NamedTuple):
    """A level of the optimiser, and the names of passes that do not run all the same."""

    level: int = HIGHEST
    without: frozenset[str] = frozenset()

    def has(self, one: Pass) -> bool:
        """Whether a pass runs."""
        return self.level >= one.level and one.name not in self.without


setting: Final = Scoped("optimiser", Setting())


class optimiser(SettingScope[Setting]):  # noqa: N801  # used as a function
    """Graphs that are optimised from now on are so at `level`, `without` the passes named, in the whole process.

    As a `with` block it holds for what this thread does in the block, and ends with it.

    Level 0 runs graphs as they were traced; 1 removes what is unused; 2 makes every change that gives the same numbers
    bit for bit; 3, the default, also those that round otherwise: sums in another order, `x**3` as products. What has
    been optimised stays as it is: trace again (`F.clear_cache()`) to compare. Raises ArgumentError for a level or a
    pass that does not exist.

    >>> import limelight as ll
    >>> f = ll.function(lambda x: -(-x))
    >>> with ll.config.optimiser(level=0):
    ...     f(ll.constant(1.0)).item(), len(f.trace_cache[0].optimised.nodes)
    (1.0, 2)
    >>> f.clear_cache()
    >>> f(ll.constant(1.0)).item(), len(f.trace_cache[0].optimised.nodes)
    (1.0, 0)
    """

    def __init__(self, level: int = HIGHEST, *, without: Sequence[str] = ()) -> None:
        super().__init__(setting, checked(level, without), sys._getframe(1))

    def __repr__(self) -> str:
        left_out = f", without={sorted(self._value.without)}" if self._value.without else ""
        return f"<optimiser: level {self._value.level}{left_out}>"


def checked(level: int, without: Sequence[str] = ()) -> Setting:
    """The setting for a level and a list of passes; raises ArgumentError where there is no such thing."""
    if isinstance(level, bool) or level not in range(HIGHEST + 1):
        raise ArgumentError(f"optimisation levels are 0 to {HIGHEST}, got {level!r}")
    known = pipeline.names()
    names = (without,) if isinstance(without, str) else tuple(without)
    for name in names:
        if name not in known:
            raise ArgumentError(f"without={name!r}: no such pass; there are {', '.join(known)}")
    return Setting(level, frozenset(names))
