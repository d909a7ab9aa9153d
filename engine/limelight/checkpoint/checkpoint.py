"""`Checkpoint`: named objects whose state is saved to files and restored from them (paper section 4.3)."""

from __future__ import annotations

import copy
import functools
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from limelight import forking
from limelight.checkpoint import checkpoint_file, snapshot
from limelight.checkpoint.background import BackgroundWriter
from limelight.checkpoint.checkpoint_file import MOST_BYTES, CheckpointFile
from limelight.checkpoint.list_order import MOST_FILES, Orders, warn_of_moved
from limelight.checkpoint.object_graph import ObjectGraph, Value
from limelight.checkpoint.restoration import Restoration, settle
from limelight.checkpoint.state import State
from limelight.checkpoint.status import RestoreStatus
from limelight.checkpoint.values import encode
from limelight.control_flow.py_func import py_func
from limelight.errors import ArgumentError, CallError, CheckpointError
from limelight.module import Module
from limelight.staging.trace_branch import tracing

SUFFIX: Final = ".safetensors"
_COUNTER: Final = "save_counter"
_numbering = threading.Lock()
forking.renew_in_child(__name__, "_numbering", threading.Lock)


class Checkpoint(State):
    """State that is saved and restored together: models, optimisers, generators, iterators, arrays and plain values.

    Objects are found from one to the next by the names of attributes, positions and keys, which are all that matters
    when a file is restored: not the names of variables, nor the order in which they were made. What is not there yet
    when a file is restored gets its value when it is attached, as the weights of a layer on its first call. A file is
    in the safetensors format, and holds no code.

    The attributes are those of a `State`: `checkpoint.epoch = 3` is saved, and set when a file is restored.

    Args:
        **objects: what to save, by name.

    Raises:
        CallError: an object is given without a name.
        ArgumentError: one has no state, or a method's name.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> model, again = ll.nn.Dense(2), ll.nn.Dense(2)
    >>> x = ll.ones((1, 3))
    >>> y = model(x)
    >>> written = ll.Checkpoint(model=model).write(path)
    >>> status = ll.Checkpoint(model=again).restore(path)  # it has no weights yet: the values wait
    >>> bool((again(x) == y).all())
    True
    >>> print(status.assert_consumed().tree())
    model.safetensors: 2 matched
    model
      kernel  f32[3,2]         matched
      bias    f32[2]           matched
    """

    def __init__(self, *unnamed: Any, **objects: Any) -> None:
        if unnamed:
            kind = type(unnamed[0]).__name__
            raise CallError(f"Checkpoint: each object needs a name, by which it is found again; got a {kind} without "
                            "one: write ll.Checkpoint(model=model)")  # fmt: skip
        vars(self).update(_background=BackgroundWriter(), _saves=0, _orders={})
        for name, value in objects.items():
            _check(name, value, type(self))
            setattr(self, name, value)

    @property
    def save_counter(self) -> int:
        """How many files `save` has written, those before a restore included."""
        return int(vars(self)["_saves"])

    def write(self, path: Any, *, background: bool = False, most_bytes: int = MOST_BYTES) -> Path:
        """Writes a file, which takes the place of another one of that name only when it is whole and on disk.

        In a staged function it is written at each call, with the values of then.

        Args:
            path: the name of the file.
            background: whether a thread writes it. The values are those of now; the call takes as long as it takes to
                copy NumPy arrays (variables need no copy). An error is raised by the next call of a method.
            most_bytes: of arrays in one file; 4 GiB. Beyond it arrays are in files beside, which `path` names.

        Returns:
            The path.

        Raises:
            CheckpointError: there is state that a file cannot keep, or the file cannot be written.
        """
        target = as_path(path)
        if tracing() is not None:
            write = functools.partial(self.write_now, target, background=background, most_bytes=most_bytes)
            py_func(write, [], None)
        else:
            self.write_now(target, background=background, most_bytes=most_bytes)
        return target

    def save(self, path: Any, *, background: bool = False, most_bytes: int = MOST_BYTES) -> Path:
        """Writes a file under a number of its own: "run/model.safetensors" is "run/model-1.safetensors", then -2.

        Numbers go on after a restore, and after those that are in the folder. In a staged function each call writes a
        file. `CheckpointManager` keeps the last few of them.

        Args:
            path: the name of the files, without the number.
            background: as in `write`.
            most_bytes: as in `write`.

        Returns:
            The path of the file; in a staged function, that of the next one when it was traced.

        Raises:
            CheckpointError: as in `write`.
            ArgumentError: the path has no name at its end.
        """
        path = as_path(path)
        if path.name in ("", ".."):
            raise ArgumentError(f"Checkpoint.save: {path} is a folder: write {str(path / 'model.safetensors')!r}")
        if tracing() is not None:
            py_func(functools.partial(self._save_now, path, background, most_bytes), [], None)
            return numbered(path, self._next(path))
        return self._save_now(path, background, most_bytes)

    def restore(self, path: Any, *, verify: bool = False) -> RestoreStatus:
        """Gives the objects the values of a file: all that fit, and others when they are attached; or none.

        A staged function is not traced again. The latest restore decides where several wait for the same object.

        Args:
            path: the file.
            verify: whether all bytes are held against the checksums in the file before anything is restored, which
                takes as long again as reading them: for files that were copied, or lie on a disk not to be trusted.

        Returns:
            What was matched: `status.assert_consumed()` raises unless everything was, `print(status.tree())` shows it.

        Raises:
            MissingCheckpointError: there is no such file.
            CheckpointError: it is no checkpoint, is damaged or of a newer version, or a value does not fit its object,
                also when that is attached later; nothing was restored then.
            CallError: it is called while a function is traced.

        Warns:
            CheckpointWarning: it is to be verified, and was written before files had checksums.
        """
        if tracing() is not None:
            raise CallError(
                "Checkpoint.restore in a staged function would happen once, while it is traced: restore outside of it"
            )
        self.wait()
        settle()
        file = CheckpointFile(as_path(path))
        if verify:
            file.verify()
        orders: Orders | None = vars(self)["_orders"].get(file.manifest.id)
        if orders:
            warn_of_moved(orders, self)
        restoration = Restoration(file)
        try:
            restoration.begin(self)
        except BaseException:
            restoration.silent = True
            raise
        counter = file.manifest.info.get(_COUNTER)
        if type(counter) is int:
            vars(self)["_saves"] = counter
        return RestoreStatus(self, restoration)

    def wait(self) -> None:
        """Returns when what `background=True` has left to a thread is on disk. Raises CheckpointError if it is not."""
        vars(self)["_background"].wait()

    def _next(self, path: Path) -> int:
        return max([self.save_counter, *numbers_of(path)]) + 1

    def _save_now(self, path: Path, background: bool, most_bytes: int) -> Path:
        with _numbering:  # threads may save at once
            number = self._next(path)
            before, vars(self)["_saves"] = self.save_counter, number
        try:
            self.write_now(numbered(path, number), background=background, most_bytes=most_bytes)
        except BaseException:
            vars(self)["_saves"] = before
            raise
        return numbered(path, number)

    def write_now(
        self,
        path: Path,
        *,
        background: bool = False,
        most_bytes: int = MOST_BYTES,
        then: Callable[[], object] | None = None,
        **info: Any,
    ) -> None:
        """Writes a file, whatever is being traced: for managers.

        Args:
            path: as in `write`.
            background: as in `write`.
            most_bytes: as in `write`.
            then: called when the file is on disk, on the thread that wrote it.
            **info: what else the file says of itself, as values of JSON.
        """
        settle()
        writer: BackgroundWriter = vars(self)["_background"]
        writer.raise_error()
        taken = snapshot.take(self, copied=background, **{_COUNTER: self.save_counter}, **info)

        orders: dict[str, Orders] = vars(self)["_orders"]
        orders[taken.manifest.id] = taken.orders
        orders.pop(next(iter(orders)) if len(orders) > MOST_FILES else "", None)

        def job() -> None:
            checkpoint_file.write(path, taken.manifest, taken.arrays, most_bytes)
            if then is not None:
                then()

        if background:
            writer.add(job)
        else:
            writer.wait()
            job()

    def __deepcopy__(self, memo: dict[int, Any]) -> Checkpoint:
        memo[id(self)] = clone = type(self)()
        vars(clone)["_saves"] = self.save_counter
        for name, value in vars(self).items():
            if not name.startswith("_"):
                setattr(clone, name, copy.deepcopy(value, memo))
        return clone


def as_path(path: Any) -> Path:
    """A path of what users give for one; raises ArgumentError for anything else."""
    if isinstance(path, np.ndarray) and path.shape == () and path.dtype.kind == "U":
        path = str(path)
    if not isinstance(path, (str, os.PathLike)) or not str(path) or "\0" in str(path):
        raise ArgumentError(f"a checkpoint needs the name of a file, got {path!r}: write 'run/model.safetensors'")
    return Path(path)


def numbered(path: Path, number: int) -> Path:
    """The name of one of several files."""
    stem, suffix = _split(path)
    return path.with_name(f"{stem}-{number}{suffix}")


def numbers_of(path: Path) -> list[int]:
    """The numbers of the files of one name that there are."""
    stem, suffix = _split(path)
    pattern = re.compile(rf"{re.escape(stem)}-([0-9]{{1,18}}){re.escape(suffix)}")
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    return [int(match[1]) for match in map(pattern.fullmatch, names) if match]


def _split(path: Path) -> tuple[str, str]:
    name = path.name
    return (name[: -len(SUFFIX)], SUFFIX) if name.endswith(SUFFIX) else (name, "")


def _check(name: str, value: Any, kind: type) -> None:
    """Raises ArgumentError for an object that a checkpoint could not save, or not under this name."""
    if hasattr(kind, name) or name.startswith("_"):
        why = "begins with an underscore" if name.startswith("_") else "is a method's"
        raise ArgumentError(f"Checkpoint: the name {name!r} {why}: give the object another name")
    holder = State(**{name: value})
    for node in ObjectGraph(holder).leaves():
        if isinstance(node.object, Value) and node.object.owner is holder:
            _check_value(name, value)


def _check_value(name: str, value: Any) -> None:
    try:
        encode(value, lambda array: "", repr(name))
    except CheckpointError as error:
        advice = f"; of functions and their like nothing is saved: give the ll.{Module.__name__} that has the variables"
        raise ArgumentError(f"Checkpoint: {error.bare}{advice if callable(value) else ''}") from None
