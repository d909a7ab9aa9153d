"""What completion offers of a tape."""

from __future__ import annotations

from typing import Final

from limelight.core import dispatch
from limelight.user_code import hints

INTERNAL: Final = frozenset(dir(dispatch.Interpreter)) - frozenset(dir(object)) | {
    "observe_many",
    "value_of",
    "watches",
}


class Listed(type):
    """The type of tapes' class: completion offers what a tape is for, without what makes it an interpreter of ops."""

    def __dir__(cls) -> list[str]:
        return hints.without_internals(cls, type.__dir__(cls), INTERNAL)
