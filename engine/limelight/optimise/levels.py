"""How much the optimiser does: `ll.config.optimiser`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Self

from limelight.errors import ArgumentError
from limelight.settings import Scoped

HIGHEST: Final = 3
"""The level that is in force unless somebody asks for less."""
PASSES: Final[tuple[tuple[str, int], ...]] = (
    ("prune", 1),
    ("fold", 2),
    ("share", 2),
    ("simplify", 2),
    ("hoist", 2),
    ("stack", 3),
    ("spread", 2),
    ("fuse", 2),
)
"""The passes in the order in which they run, each with the lowest level that has it."""


class Setting(NamedTuple):
    """A level, and passes that do not run all the same. `inexact`: rules that round otherwise may be used."""

    level: int = HIGHEST
    without: frozenset[str] = frozenset()

    @property
    def inexact(self) -> bool:
        return self.level >= HIGHEST

    def names(self) -> tuple[str, ...]:
        """The passes that run."""
        return tuple([name for name, least in PASSES if self.level >= least and name not in self.without])


setting: Final = Scoped("optimiser", Setting())


class optimiser:  # noqa: N801  # used as a function
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
        self._mine = checked(level, without)
        self._everywhere = setting.set_globally(self._mine)
        self._blocks: list[AbstractContextManager[Setting]] = []

    def __repr__(self) -> str:
        left_out = f", without={sorted(self._mine.without)}" if self._mine.without else ""
        return f"<optimiser: level {self._mine.level}{left_out}>"

    def __enter__(self) -> Self:
        setting.withdraw(self._everywhere)
        block = setting.override(self._mine)
        block.__enter__()
        self._blocks.append(block)
        return self

    def __exit__(self, *exc: object) -> None:
        self._blocks.pop().__exit__(None, None, None)


def checked(level: int, without: Sequence[str] = ()) -> Setting:
    """The setting for a level and a list of passes; raises ArgumentError where there is no such thing."""
    if isinstance(level, bool) or level not in range(HIGHEST + 1):
        raise ArgumentError(f"optimisation levels are 0 to {HIGHEST}, got {level!r}")
    known = [name for name, _ in PASSES]
    given = (without,) if isinstance(without, str) else tuple(without)
    for name in given:
        if name not in known:
            raise ArgumentError(f"without={name!r}: no such pass; there are {', '.join(known)}")
    return Setting(level, frozenset(given))
