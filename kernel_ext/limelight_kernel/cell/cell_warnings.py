"""What a staged cell warns of: where a run of it does something else than the plain cell would.

The one way in which cells warn: a Python warning of one line, at the first run, whatever else is shown.

    In[4]:2: StagedCellWarning: `print(...)` prints once for each trace, and not on calls that find it. Instead: ...
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable

from limelight.user_code.source_line import Source


class StagedCellWarning(UserWarning):
    """A staged cell does something else than the plain cell would; `warnings.filterwarnings` silences it.

    See docs/errors/StagedCellWarning.md.
    """


class CellWarnings:
    """The warnings of one staged cell, each given once: a cell that is run again, or traced again, is silent.

    Args:
        filename: of the cell's code.
    """

    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._told: set[Hashable] = set()

    def warn(self, sentence: str, line: int = 0) -> None:
        """Warns in one line: what happens, and what to write instead; `line` is of the cell, 0 where it is not known.

        Call it before anything is written back: under a filter that makes warnings errors it raises.
        """
        self.warn_once((sentence, line), sentence, line)

    def warn_once(self, about: Hashable, sentence: str, line: int = 0) -> None:
        """The same, once for all sentences about this."""
        if about in self._told:
            return
        self._told.add(about)
        label = Source(self._filename, line, "").label  # a name of no file, so that no second line is shown
        warnings.warn_explicit(" ".join(sentence.split()), StagedCellWarning, label, line or 1, registry={})
