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


_NAMED: Final = re.compile(r"([a-z_][a-z_0-9.]*|ForwardAccumulator)(: | needs )")
_called: Callable[[], str] = str


def locate_by(suffix: Callable[[], str], called: Callable[[], str]) -> None:
    """Has messages tell where, by what reads the stack, which lies higher than errors.

    Args:
        suffix: the user's line, in which messages end that have none.
        called: the public function that this line calls, or "": messages of what that is made of begin with its name.
    """
    global _locate, _called
    _locate, _called = suffix, called


def _of_called(message: str) -> str:
    """`message` in the name of the function that was called, where it begins with that of another one."""
    named = _NAMED.match(message)
    if named is None:
        return message
    known, called = named[1].rpartition(".")[2], _called()
    return message if known == called or not called else called + message[named.end(1) :]


class LimelightError(Exception):
    """Base class of all errors raised by limelight.

    A message that names no line of the user's gets the one that is being executed; `bare` is the message without it.
    """

    def __init__(self, message: str = "") -> None:
        self.bare = message = _of_called(message)
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


class ExportError(LimelightError, ValueError):
    """A function cannot be saved, or a file holds none that can be read. See docs/errors/ExportError.md."""


class RunError(LimelightError, RuntimeError):
    """A kernel failed; the message names the op and the user's line. See docs/errors/RunError.md."""


class OutOfBoundsError(RunError, IndexError):
    """An index, known only when it was used, beyond the size of its axis. See docs/errors/OutOfBoundsError.md."""


class MissingKeyError(RunError, KeyError):
    """A key that a table does not have, and for which there is no default. See docs/errors/MissingKeyError.md."""

    __str__ = Exception.__str__  # a KeyError shows its message in quotes


class CheckError(RunError, AssertionError):
    """What `ll.debug.check` or `check_numerics` asked for does not hold. See docs/errors/CheckError.md."""


class LinAlgError(RunError, np.linalg.LinAlgError):
    """A matrix does not have what was asked for: an inverse, a Cholesky factor. See docs/errors/LinAlgError.md.

    It is also NumPy's LinAlgError.
    """


class CheckpointError(LimelightError, ValueError):
    """A file that is no checkpoint, or does not fit the objects, or state that a file cannot keep.

    See docs/errors/CheckpointError.md.
    """


class MissingCheckpointError(CheckpointError, FileNotFoundError):
    """There is no checkpoint of that name. See docs/errors/MissingCheckpointError.md."""


def failed(what: str, error: Exception, where: str = "") -> LimelightError:
    """The error to raise when running `what` raised `error`, somewhere in a library: of the kind that users expect."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return (OutOfBoundsError if isinstance(error, IndexError) else RunError)(f"{what} failed: {said}{where}")


class RetracingWarning(UserWarning):
    """A staged function traces in most of its calls; the message says which argument made it do so."""


class DeviceCopyWarning(UserWarning):
    """A tensor is copied between devices, and nobody has asked for it, where `ll.config.copies("warn")` holds.

    See docs/errors/DeviceCopyWarning.md.
    """


class LostChangeWarning(UserWarning):
    """A change that nobody will see.

    A staged function changes a list or dictionary that it was given, and the caller's stays as it is; a layer or a
    setting is exchanged after it was traced; or the result of a method that returns a changed copy is dropped.

    See docs/errors/LostChangeWarning.md.
    """


class HostRandomnessWarning(UserWarning):
    """Random numbers of NumPy or Python, drawn while tracing: every call that finds the trace gets the same.

    See docs/errors/HostRandomnessWarning.md.
    """


class LostGradientWarning(UserWarning):
    """NumPy or `math` takes the numbers of a tensor that is watched, and its gradient ends there.

    See docs/errors/LostGradientWarning.md.
    """


class CacheFolderWarning(UserWarning):
    """Compiled programs are not kept in the folder that was chosen, since other users may write to it.

    See docs/errors/CacheFolderWarning.md.
    """


class CheckpointWarning(UserWarning):
    """Something saved that was not restored, or not as the program may mean it.

    See docs/errors/CheckpointWarning.md.
    """


def mark_user_error(error: BaseException) -> None:
    """Notes that `error` was raised by the user's own Python code, which executors then pass on unchanged."""
    error.__limelight_user_error__ = True  # type: ignore[attr-defined]  # exceptions take attributes


def undefined_method(owner: Any, form: str, hint: str = "") -> TypeError:
    """The error of a method that a subclass of the user's was to define: his mistake, so it is shown at his line."""
    error = TypeError(f"{type(owner).__name__} does not define {form}{hint}")
    mark_user_error(error)
    return error


def is_user_error(error: BaseException) -> bool:
    """Whether `error` came out of the user's own code (a py_func)."""
    return getattr(error, "__limelight_user_error__", False)


def __dir__() -> list[str]:
    """The names that are defined here, without those that are imported."""
    return sorted([k for k, v in globals().items() if k[0] != "_" and getattr(v, "__module__", "") == __name__])
