"""Variables without a value: not assigned yet, or assigned only in some runs of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.autograph.reserved_names import is_added
from limelight.errors import ControlFlowError
from limelight.executors.error_lines import mark_explained
from limelight.user_code import source_line
from limelight.user_code.tracebacks import in_place_of_python


class Undefined:
    """Stands for a variable that has not been assigned."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @in_place_of_python
    def read(self) -> Any:
        """What reading the variable does."""
        raise UnboundLocalError(
            f"cannot access local variable '{self.name}' where it is not associated with a value", name=self.name
        )

    def __repr__(self) -> str:
        return f"<{self.name} has no value>"


class Doubtful(Undefined):
    """Stands for a variable that only some runs of the graph assign; `why` says which, and what to write."""

    __slots__ = ("why",)

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self.why = why

    def read(self) -> Any:
        raise ControlFlowError(f"`{self.name}` may have no value here{source_line.here()}: {self.why}")


class NotYet(Doubtful):
    """Stands, within a loop's body, for a variable that no iteration before it has assigned."""

    __slots__ = ()


class AssignedIfRun(Doubtful):
    """Stands for a variable that a staged block may have assigned: reading it has the graph check that it has.

    Args:
        name: the variable.
        why: where it is assigned, and what to write where it was not.
        value: what it is if it was assigned.
        assigned: whether it was, a boolean tensor.
        check: has the graph raise its second argument unless the first holds.
    """

    __slots__ = ("_check", "assigned", "value")

    def __init__(self, name: str, why: str, value: Any, assigned: Any, check: Callable[[Any, Exception], None]) -> None:
        super().__init__(name, why)
        self.value, self.assigned, self._check = value, assigned, check

    def read(self) -> Any:
        error = UnboundLocalError(f"`{self.name}` has no value here{source_line.here()}: {self.why}", name=self.name)
        mark_explained(error)  # it names the user's lines; how the graph raises it is nobody's concern
        self._check(self.assigned, error)
        return self.value


class UndefinedReturnValue(Undefined):
    """What a function returns that has not come to a `return`."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("the result")


def may_have_value(value: Any) -> bool:
    """Whether a variable has been assigned, be it in some runs of the graph only."""
    return not isinstance(value, Undefined) or (isinstance(value, Doubtful) and not isinstance(value, NotYet))


def is_lost(value: Any) -> bool:
    """Whether a variable may have been assigned, and no tensor says whether."""
    return isinstance(value, Doubtful) and not isinstance(value, NotYet | AssignedIfRun)


def ld(value: Any) -> Any:
    """A variable is read."""
    return value.read() if isinstance(value, Undefined) else value


def ldu(read: Any, name: str) -> Any:
    """The value of a global, which may not exist."""
    try:
        return read()
    except NameError:
        return Undefined(name)


def is_hidden(name: str) -> bool:
    """Whether a variable was added by the rewriting: flags of `break`, `continue` and `return`, and the result."""
    return is_added(name)


def is_flag(name: str) -> bool:
    """Whether a variable was added by the rewriting, and is no value returned."""
    return is_added(name) and not name.startswith("retval_")


def shown(name: str) -> str:
    """What to call a variable in a message."""
    if is_added(name) and name.startswith("retval_"):
        return "the value returned"
    return name if " " in name else f"`{name}`"
