"""Is there anybody to show a widget to?"""

from __future__ import annotations

import os

VARIABLE = "LIMELIGHT_WIDGETS"


def has_front_end() -> bool:
    """Whether views should be shown as widgets: in a kernel that people use, not in one that only executes a file.

    A notebook that is executed without a front end (nbconvert, papermill) must not store widgets: their state makes it
    large, and then readers without the widgets' code see nothing where the picture should be. Such kernels are started
    with a history that is kept in memory. `LIMELIGHT_WIDGETS=1` or `=0` decides otherwise.
    """
    asked = os.environ.get(VARIABLE)
    if asked is not None:
        return asked.strip().lower() not in {"", "0", "false", "no", "off"}
    shell = _shell()
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    history = getattr(shell, "history_manager", None)
    return getattr(history, "hist_file", None) != ":memory:"


def _shell() -> object | None:
    try:
        from IPython.core.getipython import get_ipython  # noqa: PLC0415  views work without IPython
    except ImportError:
        return None
    shell: object | None = get_ipython()
    return shell
