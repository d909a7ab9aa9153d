"""A warning at a line of the user's code, wherever it is raised."""

from __future__ import annotations

import inspect
import warnings

from limelight.user_code.source_line import Source


def warn_at(line: Source, message: str, category: type[Warning]) -> None:
    """Warns at `line`, as the user's module would: filters know it by that name.

    Code from no file, as of a terminal or of `exec`, has no module's name: given None for one, Python drops a warning.
    """
    module = inspect.getmodulename(line.file)
    if module is None:
        warnings.warn_explicit(message, category, line.file, line.line)
    else:
        warnings.warn_explicit(message, category, line.file, line.line, module=module)
