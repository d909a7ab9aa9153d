"""What `%stageconfig` sets: how the magics of one notebook behave where their line does not say.

Contrast and motion are no matter of this table: views take them from the system's settings. There is one palette, of
colours that people tell apart however they see them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import limelight as ll
from limelight.errors import ArgumentError
from limelight_kernel.line.options import PARTS
from limelight_widgets.live import front_end
from limelight_widgets.live.widget import THEMES, Theme, set_theme

FILE: Final = "limelight.json"


@dataclass(frozen=True)
class Preference:
    """One setting.

    Args:
        default: what holds where nothing is set.
        values: what may be written, in words.
        read: from what is written to the value; raises ValueError.
        apply: makes it hold; None where the magics ask for it.
        help: what it does.
    """

    default: Any
    values: str
    read: Callable[[str], Any]
    apply: Callable[[Any], object] | None
    help: str


def _switch(text: str) -> bool:
    return {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}[text.lower()]


def _level(text: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise ValueError(text)
    return int(text)


def _theme(text: str) -> Theme:
    return THEMES[[*map(str, THEMES)].index(text)]  # a ValueError where it is none


def _count(text: str) -> int | None:
    if text == "none":
        return None
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _parts(text: str) -> tuple[str, ...]:
    words = [] if text == "none" else [word.strip() for word in text.split(",")]
    if any(word not in PARTS for word in words):
        raise ValueError(text)
    return tuple(words)


KNOWN: Final[dict[str, Preference]] = {
    "annotate": Preference((), f"none, or some of {','.join(PARTS)}", _parts, None, "as -a on each %%stage"),
    "max_traces": Preference(None, "none, or a number", _count, None, "as --max-traces on each %%stage"),
    "optimiser": Preference(3, "0 to 3", _level, ll.config.optimiser, "the optimiser's level"),
    "frames": Preference(
        False, "on or off", _switch, ll.config.show_library_frames, "show limelight's own frames in tracebacks"
    ),
    "eagerly": Preference(
        False, "on or off", _switch, ll.config.run_functions_eagerly, "run staged functions as plain Python"
    ),
    "static": Preference(
        False, "on or off", _switch, front_end.without_widgets, "show pictures and tables instead of live views"
    ),
    "theme": Preference(
        "auto", "auto, light or dark", _theme, set_theme, "the views' colours; auto: those of the front end"
    ),
}  # fmt: skip


class Preferences:
    """The settings of one notebook; those not set have their defaults."""

    def __init__(self) -> None:
        self._set: dict[str, str] = {}

    def get(self, key: str) -> Any:
        """The value of a setting."""
        known = KNOWN[key]
        return known.read(self._set[key]) if key in self._set else known.default

    def set(self, key: str, text: str) -> None:
        """Sets one; raises ArgumentError for an unknown key, or for what it cannot be."""
        known = KNOWN.get(key)
        if known is None:
            raise ArgumentError(f"there is no setting {key!r}; there are {', '.join(KNOWN)}")
        try:
            value = known.read(text)
        except (ValueError, KeyError):
            raise ArgumentError(f"{key} is {known.values}, not {text!r}") from None
        self._set[key] = text
        if known.apply is not None:
            known.apply(value)

    def reset(self) -> None:
        """Puts back the defaults of all that was set."""
        for key in list(self._set):
            del self._set[key]
            known = KNOWN[key]
            if known.apply is not None:
                known.apply(known.default)

    def table(self) -> dict[str, str]:
        """What holds, as it would be written."""
        return {key: self._set.get(key, _written(known.default)) for key, known in KNOWN.items()}

    def save(self, folder: str) -> Path:
        """Writes what was set to a file in the profile's folder, which `load` reads; without settings it is removed."""
        path = Path(folder) / FILE
        if self._set:
            path.write_text(json.dumps(self._set, indent=1) + "\n", encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
        return path

    def load(self, folder: str) -> None:
        """Sets what was saved, as far as it is still known."""
        path = Path(folder) / FILE
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        for key, text in saved.items() if isinstance(saved, dict) else ():
            try:
                self.set(key, str(text))
            except ArgumentError:
                continue


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value not in (None, ()) else "none"
