"""A staged function that calls itself while it is traced: its calls in progress, and when that is an error.

A recursion ends while tracing if a plain argument or a shape tells when, since each level then has another key and a
trace of its own. A call with a key that is being traced already may still find its end in Python state, so a few are
let through.
"""

from __future__ import annotations

from typing import Final

from limelight.errors import mark_user_error
from limelight.staging.key import Key
from limelight.user_code import source_line

_MAX_NESTED: Final = 8
"""How often a function may begin to trace one call within itself."""


class CallsInProgress(list[Key]):
    """The keys for which one function is being traced, outermost first. Changed only under the trace lock."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        super().__init__()
        self._levels = 0  # how many there were at most, while the outermost of them was traced

    def begin(self, key: Key, name: str) -> None:
        """A trace for `key` begins; raises RecursionError for a recursion of the function `name` without an end."""
        if self.count(key) >= _MAX_NESTED:
            raise _endless(name)
        self.append(key)
        self._levels = max(self._levels, len(self)) if len(self) > 1 else 1

    def is_outermost_of_many(self) -> bool:
        """Whether a RecursionError of Python's own has come back to the first call, where the stack has room again."""
        return len(self) == 1 and self._levels > _MAX_NESTED

    def too_deep(self, name: str) -> RecursionError:
        """The error for a recursion that would end, and that Python's stack cannot hold."""
        return _user_error(
            f"{name} called itself {self._levels:,} levels deep while it was traced, each with a graph of its own, and "
            f"the stack was full{source_line.here()}. Write the repetition as a loop: ll.while_loop, ll.scan, or "
            "Python's `for`"
        )


def _endless(name: str) -> RecursionError:
    return _user_error(
        f"{name} calls itself with arguments of the same types while it is traced, which would go on for ever"
        f"{source_line.here()}. A recursion ends while tracing only if a plain Python argument, or a shape, "
        "tells when: f(x, n - 1). Where a tensor's value decides, use ll.while_loop, or ll.py_func around Python code"
    )


def _user_error(words: str) -> RecursionError:
    error = RecursionError(words)
    mark_user_error(error)
    return error
