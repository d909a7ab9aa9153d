"""Is there anybody to show a widget to?"""

from __future__ import annotations

import os

VARIABLE = "LIMELIGHT_WIDGETS"
_without: list[bool] = []


def without_widgets(on: bool = True) -> None:
    """Shows static forms from now on, whoever looks; or lets the front end decide again.

    >>> without_widgets()
    >>> has_front_end()
    False
    >>> without_widgets(False)
    """
    _without[:] = [True] if on else []


def has_front_end() -> bool:
    """Whether views should be shown as widgets: in a kernel that people use, not in one that only executes a file.

    A notebook that is executed without a front end (nbconvert, papermill) must not store widgets: their state makes it
    large, and then readers without the widgets' code see nothing where the picture should be. Such kernels are started
    with a history that is kept in memory. `LIMELIGHT_WIDGETS=1` or `=0` decides otherwise.
    """
    if _without:
        return False
    asked = os.environ.get(VARIABLE)
    if asked is not None:
        return asked.strip().lower() not in {"", "0", "false", "no", "off"}
    running = shell()
    if running is None or getattr(running, "kernel", None) is None:
        return False
    history = getattr(running, "history_manager", None)
    return getattr(history, "hist_file", None) != ":memory:"


def shell() -> object | None:
    """IPython's shell, where there is one."""
    try:
        from IPython.core.getipython import get_ipython  # noqa: PLC0415  views work without IPython
    except ImportError:
        return None
    running: object | None = get_ipython()
    return running
