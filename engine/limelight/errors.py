"""Every exception that limelight raises on purpose.

Each class also derives from the built-in exception that Python programmers would catch. A message says what was given,
what was needed, what to write instead, and on which line of the user's; `docs/errors/` has a page for each class.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

_LOCATED: Final = re.compile(r"\(\S.* line \d+")
_locate: Callable[[], str] = str  # nothing, until whoever reads the user's stack says how


def locate_by(suffix: Callable[[], str]) -> None:
    """Has messages without a line end in `suffix()`: the user's line. Errors lie lower than what reads the stack."""
    global _locate
    _locate = suffix


class LimelightError(Exception):
    """Base class of all errors raised by limelight.

    A message that names no line of the user's gets the one that is being executed; `bare` is the message without it.
    """

    def __init__(self, message: str = "") -> None:
        self.bare = message
        super().__init__(message if _LOCATED.search(message) else message + _locate())


class ShapeError(LimelightError, ValueError):
    """Shapes that do not fit together. See docs/errors/ShapeError.md."""


class MaskError(ShapeError, IndexError):
    """A boolean index that does not have the shape of the axes that it is for. See docs/errors/MaskError.md."""


class DTypeError(LimelightError, TypeError):
    """Data types that do not mix, or that an op does not take. See docs/errors/DTypeError.md.

    Where operands did not mix, `operands` are the ids of those that would have to be of the dtype `wanted`.
    """

    operands: tuple[int, ...] = ()
    wanted: Any = None


class ArgumentError(LimelightError, ValueError):
    """An argument outside its range, or an unknown option. See docs/errors/ArgumentError.md."""


class CallError(ArgumentError, TypeError):
    """Arguments that a layer, an optimiser, `function` or a callback does not take: too many, or by another name.

    See docs/errors/CallError.md.
    """


class AxisError(ArgumentError, IndexError):
    """An axis that the tensor does not have, or an index beyond one. See docs/errors/AxisError.md."""


class DeviceError(LimelightError, ValueError):
    """An unknown or malformed device name, or a device used wrongly. See docs/errors/DeviceError.md."""


class TapeError(LimelightError, RuntimeError, ValueError):
    """A gradient tape used out of order: twice, re-entered, or outside its scope. See docs/errors/TapeError.md."""


class GradientError(LimelightError, LookupError):
    """An op on the path from source to target has no gradient rule, or one that cannot be used.

    See docs/errors/GradientError.md.
    """


class GradientCheckError(LimelightError, AssertionError):
    """A gradient rule disagrees with differences: raised by `ll.gradcheck`. See docs/errors/GradientCheckError.md."""


class SymbolicValueError(LimelightError, TypeError):
    """The value of a symbolic tensor was asked for while tracing. See docs/errors/SymbolicValueError.md."""


class LeakedTensorError(LimelightError, TypeError):
    """A symbolic tensor was used outside the trace that made it. See docs/errors/LeakedTensorError.md."""


class StateCreationError(LimelightError, ValueError):
    """A staged function created a variable on a call other than its first. See docs/errors/StateCreationError.md."""


class DeadVariableError(LimelightError, RuntimeError):
    """A graph was run after a variable that it uses had been deleted. See docs/errors/DeadVariableError.md."""


class SignatureError(LimelightError, TypeError):
    """Arguments that a staged function cannot be keyed by, or that its signature forbids.

    See docs/errors/SignatureError.md.
    """


class TraceBudgetError(LimelightError, RuntimeError):
    """A call needs one trace more than `max_traces`; `miss` says why. See docs/errors/TraceBudgetError.md."""

    def __init__(self, message: str = "", miss: Any = None) -> None:
        super().__init__(message)
        self.miss = miss


class ControlFlowError(LimelightError, TypeError):
    """Branches or loop bodies whose results do not agree. See docs/errors/ControlFlowError.md."""


class GraphError(LimelightError, ValueError):
    """A graph that the verifier or the parser refuses. See docs/errors/GraphError.md."""


class RunError(LimelightError, RuntimeError):
    """A kernel failed; the message names the op and the user's line. See docs/errors/RunError.md."""


class OutOfBoundsError(RunError, IndexError):
    """An index, known only when it was used, beyond the size of its axis. See docs/errors/OutOfBoundsError.md."""


class CheckError(RunError, AssertionError):
    """What `ll.debug.check` or `check_numerics` asked for does not hold. See docs/errors/CheckError.md."""


class LinAlgError(RunError, np.linalg.LinAlgError):
    """A matrix does not have what was asked for: an inverse, a Cholesky factor. See docs/errors/LinAlgError.md.

    It is also NumPy's LinAlgError.
    """


def failed(what: str, error: Exception, where: str = "") -> LimelightError:
    """The error to raise when running `what` raised `error`, somewhere in a library: of the kind that users expect."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return (OutOfBoundsError if isinstance(error, IndexError) else RunError)(f"{what} failed: {said}{where}")


class RetracingWarning(UserWarning):
    """A staged function traces in most of its calls; the message says which argument made it do so."""


class LostChangeWarning(UserWarning):
    """A change that nobody will see.

    A staged function changes a list or dictionary that it was given, and the caller's stays as it is; or the result of
    a method that returns a changed copy is dropped.

    See docs/errors/LostChangeWarning.md.
    """


def mark_user_error(error: BaseException) -> None:
    """Notes that `error` was raised by the user's own Python code, which executors then pass on unchanged."""
    error.__limelight_user_error__ = True  # type: ignore[attr-defined]  # exceptions take attributes


def is_user_error(error: BaseException) -> bool:
    """Whether `error` came out of the user's own code (a py_func)."""
    return getattr(error, "__limelight_user_error__", False)


def __dir__() -> list[str]:
    """The names that are defined here, without those that are imported."""
    return sorted([k for k, v in globals().items() if k[0] != "_" and getattr(v, "__module__", "") == __name__])
