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

    >>> import limelight as ll
    >>> try:
    ...     y = ll.ones((2, 3)) @ ll.ones((2, 3))
    ... except ll.errors.LimelightError as error:
    ...     print(type(error).__name__)
    ShapeError
    """

    def __init__(self, message: str = "") -> None:
        self.bare = message = _of_called(message)
        super().__init__(message if _LOCATED.search(message) else message + _locate())


class ShapeError(LimelightError, ValueError):
    """Shapes that do not fit together. See docs/errors/ShapeError.md.

    >>> import limelight as ll
    >>> try:
    ...     y = ll.ones((2, 3)) + ll.ones((4,))
    ... except ll.errors.ShapeError as error:
    ...     print(error.bare.partition(";")[0])
    add: f32[2,3] and f32[4] do not broadcast: axis -1 has sizes 3 and 4
    """


class MaskError(ShapeError, IndexError):
    """A boolean index that does not have the shape of the axes that it is for. See docs/errors/MaskError.md.

    >>> import limelight as ll
    >>> try:
    ...     rows = ll.ones((2, 3))[ll.constant([True, False, True])]
    ... except ll.errors.MaskError as error:
    ...     print(error.bare)
    a mask of shape (3,) does not fit the axes that it is for, of shape (2,)
    """


class DTypeError(LimelightError, TypeError):
    """Data types that do not mix, or that an op does not take. See docs/errors/DTypeError.md.

    Where operands did not mix, `operands` are the ids of those that would have to be of the dtype `wanted`.

    >>> import limelight as ll
    >>> x = ll.constant([1])
    >>> try:
    ...     y = ll.ones(1) + x
    ... except ll.errors.DTypeError as error:
    ...     print(error.bare.partition(";")[0])
    add: f32[1] and i32[1] do not mix: dtypes of different kinds are never converted silently
    """

    operands: tuple[int, ...] = ()
    wanted: Any = None


class ArgumentError(LimelightError, ValueError):
    """An argument outside its range, or an unknown option. See docs/errors/ArgumentError.md.

    >>> import limelight as ll
    >>> try:
    ...     layer = ll.nn.Dropout(1.5)
    ... except ll.errors.ArgumentError as error:
    ...     print(error.bare)
    Dropout: rate must be at least 0 and below 1, got 1.5
    """


class CallError(ArgumentError, TypeError):
    """Arguments that a layer, an optimiser, `function` or a callback does not take: too many, or by another name.

    See docs/errors/CallError.md.

    >>> import limelight as ll
    >>> try:
    ...     layer = ll.nn.Conv(8, 3, strides=2)
    ... except ll.errors.CallError as error:
    ...     print(error.bare.partition(" Conv takes")[0])
    Conv has no setting 'strides'; did you mean 'stride'?
    """


class AxisError(ArgumentError, IndexError):
    """An axis that the tensor does not have, or an index beyond one. See docs/errors/AxisError.md.

    >>> import limelight as ll
    >>> try:
    ...     total = ll.sum(ll.ones((2, 3)), axis=2)
    ... except ll.errors.AxisError as error:
    ...     print(error.bare)
    sum: axis 2 is out of range for a tensor of rank 2 (allowed: from -2 to 1)
    """


class DeviceError(LimelightError, ValueError):
    """An unknown or malformed device name, or a device used wrongly. See docs/errors/DeviceError.md.

    >>> import limelight as ll
    >>> try:
    ...     x = ll.ones(3).to("warp:0")
    ... except ll.errors.DeviceError as error:
    ...     print(error.bare.partition(";")[0])
    'warp:0' names no known kind of device (kinds: CPU, GPU, XLA)
    """


class TapeError(LimelightError, RuntimeError, ValueError):
    """A gradient tape used out of order: twice, re-entered, or outside its scope. See docs/errors/TapeError.md.

    >>> import limelight as ll
    >>> v = ll.Variable(3.0)
    >>> with ll.GradientTape() as tape:
    ...     y = v * v
    >>> gradient = tape.gradient(y, v)
    >>> try:
    ...     again = tape.gradient(y, v)
    ... except ll.errors.TapeError as error:
    ...     print(error.bare.partition(";")[0])
    this tape has answered already and let go of what it saved
    """


class GradientError(LimelightError, LookupError):
    """An op on the path from source to target has no gradient rule, or one that cannot be used.

    See docs/errors/GradientError.md.

    >>> import limelight as ll
    >>> @ll.custom_gradient
    ... def double(x):
    ...     return x * 2.0, lambda g: (g * 2.0, g)
    >>> try:
    ...     slope = ll.grad(double)(ll.constant(1.0))
    ... except ll.errors.GradientError as error:
    ...     print(error.bare.partition(";")[0])
    custom_gradient: double has 1 argument, so its gradient function must return 1 gradient, got 2
    """


class GradientCheckError(LimelightError, AssertionError):
    """A gradient rule disagrees with differences: raised by `ll.gradcheck`. See docs/errors/GradientCheckError.md.

    >>> import limelight as ll
    >>> try:
    ...     ll.gradcheck(lambda x: ll.stop_gradient(x) * x, ll.constant(2.0))
    ... except ll.errors.GradientCheckError as error:
    ...     print(error.bare.partition(";")[0])
    gradients of <lambda> (ops: multiply) are wrong
    """


class SymbolicValueError(LimelightError, TypeError):
    """The value of a symbolic tensor was asked for while tracing. See docs/errors/SymbolicValueError.md.

    >>> import limelight as ll
    >>> try:
    ...     y = ll.function(lambda x: float(x))(ll.constant(1.0))
    ... except ll.errors.SymbolicValueError as error:
    ...     print(error.bare.partition(" (")[0])
    float() of a symbolic tensor
    """


class LeakedTensorError(LimelightError, TypeError):
    """A symbolic tensor was used outside the trace that made it. See docs/errors/LeakedTensorError.md.

    >>> import limelight as ll
    >>> kept = []
    >>> y = ll.function(lambda x: kept.append(x) or x * 2.0, name="double")(ll.constant(1.0))
    >>> try:
    ...     z = kept[0] + 1.0
    ... except ll.errors.LeakedTensorError as error:
    ...     print(error.bare.partition(" (")[0])
    a symbolic tensor leaked out of the function 'double', whose trace has ended: the argument `x`, f32[]
    """


class StateCreationError(LimelightError, ValueError):
    """A staged function created a variable on a call other than its first. See docs/errors/StateCreationError.md.

    >>> import limelight as ll
    >>> try:
    ...     y = ll.function(lambda x: ll.Variable(0.0) + x, name="add")(ll.constant(1.0))
    ... except ll.errors.StateCreationError as error:
    ...     print(error.bare.partition(" (")[0])
    add creates a variable each time its Python code runs
    """


class DeadVariableError(LimelightError, RuntimeError):
    """A graph was run after a variable that it uses had been deleted. See docs/errors/DeadVariableError.md.

    >>> import limelight as ll
    >>> state = {"w": ll.Variable(2.0, name="w")}
    >>> scaled = ll.function(lambda x: x * state["w"], name="scaled")
    >>> y = scaled(ll.constant(1.0))
    >>> state["w"] = ll.Variable(3.0)
    >>> try:
    ...     y = scaled(ll.constant(1.0))
    ... except ll.errors.DeadVariableError as error:
    ...     print(error.bare.partition(":")[0])
    scaled uses the variable 'w', which has been deleted
    """


class SignatureError(LimelightError, TypeError):
    """Arguments that a staged function cannot be keyed by, or that its signature forbids.

    See docs/errors/SignatureError.md.

    >>> import limelight as ll
    >>> try:
    ...     y = ll.function(lambda x, columns: x, name="chosen")(ll.ones(4), {0, 2})
    ... except ll.errors.SignatureError as error:
    ...     print(error.bare.partition(": its")[0])
    chosen: argument `columns`: a set cannot be part of a cache key
    """


class TraceBudgetError(LimelightError, RuntimeError):
    """A call needs one trace more than `max_traces`; `miss` says why. See docs/errors/TraceBudgetError.md.

    >>> import limelight as ll
    >>> mean = ll.function(ll.mean, max_traces=1)
    >>> y = mean(ll.ones(3))
    >>> try:
    ...     y = mean(ll.ones(4))
    ... except ll.errors.TraceBudgetError as error:
    ...     print(error.miss.differences[0].after)
    f32[4]
    """

    def __init__(self, message: str = "", miss: Any = None) -> None:
        super().__init__(message)
        self.miss = miss


class ControlFlowError(LimelightError, TypeError):
    """Branches or loop bodies whose results do not agree. See docs/errors/ControlFlowError.md.

    >>> import limelight as ll
    >>> try:
    ...     y = ll.function(lambda x: ll.cond(x > 0, lambda: x, lambda: 0))(ll.constant(-1.0))
    ... except ll.errors.ControlFlowError as error:
    ...     print(error.bare.partition(";")[0])
    cond: the output is f32[] from true_fn and i32[] from false_fn
    """


class GraphError(LimelightError, ValueError):
    """A graph that the verifier or the parser refuses. See docs/errors/GraphError.md.

    >>> import limelight as ll
    >>> from limelight.graph import parse
    >>> try:
    ...     graph = parse("graph doubled")
    ... except ll.errors.GraphError as error:
    ...     print(error.bare)
    graph doubled has no 'return' line
    """


class ExportError(LimelightError, ValueError):
    """A function cannot be saved, or a file holds none that can be read. See docs/errors/ExportError.md.

    >>> import limelight as ll
    >>> try:
    ...     path = ll.save(ll.function(lambda x: x, name="f"), "f.ll")
    ... except ll.errors.ExportError as error:
    ...     print(error.bare.partition(",")[0])
    f has no trace to save: call it once
    """


class RunError(LimelightError, RuntimeError):
    """A kernel failed; the message names the op and the user's line. See docs/errors/RunError.md.

    >>> import limelight as ll
    >>> try:
    ...     x = ll.ones((10**9, 10**9))
    ... except ll.errors.RunError as error:
    ...     print(error.bare.partition(" for")[0])
    full() failed: MemoryError: Unable to allocate 3.47 EiB
    """


class OutOfBoundsError(RunError, IndexError):
    """An index, known only when it was used, beyond the size of its axis. See docs/errors/OutOfBoundsError.md.

    >>> import limelight as ll
    >>> try:
    ...     row = ll.take(ll.ones((3, 2)), ll.constant([7]), axis=0)
    ... except ll.errors.OutOfBoundsError as error:
    ...     print(error.bare.partition(" (at")[0])
    take(f32[3,2], i32[1]) failed: IndexError: index 7 is out of bounds for axis 0 with size 3
    """


class MissingKeyError(RunError, KeyError):
    """A key that a table does not have, and for which there is no default. See docs/errors/MissingKeyError.md.

    >>> import limelight as ll
    >>> words = ll.lookup.HashTable("string", "int32")
    >>> words.insert(["the", "cat"], [0, 1])
    >>> try:
    ...     found = words.lookup(["the", "dog"])
    ... except ll.errors.MissingKeyError as error:
    ...     print(error.bare.partition(";")[0])
    lookup: 1 of 2 keys are not in the table 'table': 'dog'
    """

    __str__ = Exception.__str__  # a KeyError shows its message in quotes


class CheckError(RunError, AssertionError):
    """What `ll.debug.check` or `check_numerics` asked for does not hold. See docs/errors/CheckError.md.

    >>> import limelight as ll
    >>> x = ll.constant(-1.0)
    >>> try:
    ...     ll.debug.check(x >= 0.0, "no root of {}", x)
    ... except ll.errors.CheckError as error:
    ...     print(error.bare)
    no root of -1.0
    """


class LinAlgError(RunError, np.linalg.LinAlgError):
    """A matrix does not have what was asked for: an inverse, a Cholesky factor. See docs/errors/LinAlgError.md.

    It is also NumPy's LinAlgError.

    >>> import limelight as ll
    >>> try:
    ...     inverse = ll.linalg.inv(ll.zeros((2, 2)))
    ... except ll.errors.LinAlgError as error:
    ...     print(error.bare.partition(";")[0])
    inv: f32[2,2]: the matrix is singular: it has no inverse
    """


class CheckpointError(LimelightError, ValueError):
    """A file that is no checkpoint, or does not fit the objects, or state that a file cannot keep.

    See docs/errors/CheckpointError.md.

    >>> import limelight as ll
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ll.Checkpoint(v=ll.Variable([1.0, 2.0])).write(f"{folder}/run.safetensors")
    ...     try:
    ...         status = ll.Checkpoint(v=ll.Variable([0.0])).restore(path)
    ...     except ll.errors.CheckpointError as error:
    ...         print(error.bare.partition(": ")[2].partition(".")[0])
    `v` was saved as f32[2], and the variable is f32[1] now
    """


class MissingCheckpointError(CheckpointError, FileNotFoundError):
    """There is no checkpoint of that name. See docs/errors/MissingCheckpointError.md.

    >>> import limelight as ll
    >>> try:
    ...     status = ll.Checkpoint(v=ll.Variable(1.0)).restore("never_written.safetensors")
    ... except ll.errors.MissingCheckpointError as error:
    ...     print(error.bare)
    there is no file never_written.safetensors
    """


def failed(what: str, error: Exception, where: str = "") -> LimelightError:
    """The error to raise when running `what` raised `error`, somewhere in a library: of the kind that users expect."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return (OutOfBoundsError if isinstance(error, IndexError) else RunError)(f"{what} failed: {said}{where}")


class RetracingWarning(UserWarning):
    """A staged function traces in most of its calls; the message says which argument made it do so.

    >>> import limelight as ll
    >>> import warnings
    >>> step = ll.function(lambda x, rate: x - rate * x)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     for i in range(10):
    ...         y = step(ll.constant(1.0), 0.1 / (i + 1))
    >>> caught[0].category.__name__
    'RetracingWarning'
    """


class DeviceCopyWarning(UserWarning):
    """A tensor is copied between devices, and nobody has asked for it, where `ll.config.copies("warn")` holds.

    See docs/errors/DeviceCopyWarning.md.

    >>> import limelight as ll
    >>> import warnings
    >>> ll.config.set_virtual_devices(CPU=2)
    >>> w, x = ll.ones((2, 2)).to("cpu:1"), ll.ones((2, 2))
    >>> with warnings.catch_warnings(record=True, action="always") as caught, ll.config.copies("warn"):
    ...     y = w @ x
    >>> caught[0].category.__name__
    'DeviceCopyWarning'
    """


class LostChangeWarning(UserWarning):
    """A change that nobody will see.

    A staged function changes a list or dictionary that it was given, and the caller's stays as it is; a layer or a
    setting is exchanged after it was traced; or the result of a method that returns a changed copy is dropped.

    See docs/errors/LostChangeWarning.md.

    >>> import limelight as ll
    >>> import warnings
    >>> def step(state, x):
    ...     state["total"] = state["total"] + x
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     ll.function(step)({"total": ll.constant(0.0)}, ll.constant(1.0))
    >>> caught[0].category.__name__
    'LostChangeWarning'
    """


class HostRandomnessWarning(UserWarning):
    """Random numbers of NumPy or Python, drawn while tracing: every call that finds the trace gets the same.

    See docs/errors/HostRandomnessWarning.md.

    >>> import limelight as ll
    >>> import random, warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     y = ll.function(lambda x: x + random.random())(ll.ones(2))
    >>> caught[0].category.__name__
    'HostRandomnessWarning'
    """


class LostGradientWarning(UserWarning):
    """NumPy or `math` takes the numbers of a tensor that is watched, and its gradient ends there.

    See docs/errors/LostGradientWarning.md.

    >>> import limelight as ll
    >>> import warnings, numpy as np
    >>> v = ll.Variable(2.0)
    >>> with warnings.catch_warnings(record=True, action="always") as caught, ll.GradientTape() as tape:
    ...     y = np.asarray(v * v)
    >>> caught[0].category.__name__
    'LostGradientWarning'
    """


class CacheFolderWarning(UserWarning):
    """Compiled programs are not kept in the folder that was chosen, since other users may write to it.

    See docs/errors/CacheFolderWarning.md.

    >>> import limelight as ll
    >>> import os, tempfile, warnings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.chmod(folder, 0o777)
    ...     with warnings.catch_warnings(record=True, action="always") as caught:
    ...         with ll.config.compilation_cache(folder):
    ...             pass
    >>> caught[0].category.__name__
    'CacheFolderWarning'
    """


class CheckpointWarning(UserWarning):
    """Something saved that was not restored, or not as the program may mean it.

    See docs/errors/CheckpointWarning.md.

    >>> import limelight as ll
    >>> import tempfile, warnings
    >>> v = ll.Variable(3.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ll.Checkpoint(a=v, b=v).write(f"{folder}/run.safetensors")
    ...     with warnings.catch_warnings(record=True, action="always") as caught:
    ...         status = ll.Checkpoint(a=ll.Variable(0.0), b=ll.Variable(0.0)).restore(path)
    >>> caught[0].category.__name__
    'CheckpointWarning'
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
