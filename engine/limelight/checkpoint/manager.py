"""`CheckpointManager`: a folder of numbered checkpoints, the last few and the best of them."""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import re
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from limelight.checkpoint import file_system
from limelight.checkpoint.checkpoint import SUFFIX, Checkpoint, as_path
from limelight.checkpoint.checkpoint_file import GENERATOR, CheckpointFile, listed, read_info, remove
from limelight.checkpoint.match_plan import spec_text
from limelight.checkpoint.status import RestoreStatus
from limelight.core.shapes import whole
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, CallError, CheckpointError, CheckpointWarning, MissingCheckpointError
from limelight.random import default_generator
from limelight.staging.trace_branch import tracing
from limelight.user_code.warn_at import warn_here

_NAME: Final = re.compile(rf"checkpoint-([0-9]{{1,18}}){re.escape(SUFFIX)}")


@dataclass(frozen=True)
class SavedStep:
    """One checkpoint of a folder: its number of steps, its file, and the metrics that were given with it."""

    step: int
    path: Path
    metrics: Mapping[str, float]
    written: int = 0
    """The how-manieth of the folder it is: after a run went back, the newest is not that of the most steps."""


class CheckpointManager:
    """Keeps the last checkpoints of a run, and the best, and goes on where the run was.

    The default generator of `ll.random` is added to the objects, so that a run that was killed goes on with the same
    draws. An iterator among them goes on in the middle of its pass; a dataset, over which a `for` goes in each epoch,
    with the orders of the passes to come. What was being written when it was killed is gone, and the checkpoint before
    it is there.

    Args:
        objects: what to save: a dictionary of objects by name, or a `Checkpoint`.
        folder: where the files are; it is made if need be.
        keep: how many of the newest are kept; None for all. The best is kept besides.
        every: after how many steps `save` writes: an int, or a `datetime.timedelta`. By default each time. Where
            steps are counted by many at a time, it writes at the first call after each multiple.
        best: the name of the metric whose lowest value is best, "loss" for example; with a minus before it the highest
            is, as of "-accuracy". None keeps no best one.
        background: whether a thread writes (see `Checkpoint.write`).

    Raises:
        ArgumentError: an argument is not as above.
        CheckpointError: the folder cannot be made.

    >>> import limelight as ll, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> v = ll.Variable(0.0)
    >>> manager = ll.CheckpointManager({"v": v}, folder, keep=2, best="loss")
    >>> for loss in (3.0, 1.0, 2.0, 4.0):
    ...     _ = v.assign_add(1.0)
    ...     path = manager.save(loss=loss)
    >>> [saved.step for saved in manager.checkpoints]  # the last two, and the best
    [2, 3, 4]
    >>> status = manager.restore("best")
    >>> v.numpy().item(), manager.step
    (2.0, 2)
    """

    def __init__(
        self,
        objects: Mapping[str, Any] | Checkpoint,
        folder: Any,
        *,
        keep: int | None = 5,
        every: int | datetime.timedelta = 1,
        best: str | None = None,
        background: bool = False,
    ) -> None:
        self.checkpoint = _checkpoint_of(objects)
        self.folder = as_path(folder)
        self.step = 0
        self._keep = None if keep is None else _positive("keep", keep)
        self._every = every if isinstance(every, datetime.timedelta) else _positive("every", every)
        self._metric, self._sign = _metric(best)
        self._background = background
        self._last_write = time.monotonic()
        self._known: dict[Path, SavedStep | None] = {}  # None for those that cannot be read
        self._restored_last: Callable[[], RestoreStatus | None] = lambda: None
        self._written: int | None = None  # how many there have been; None before any is written
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"{self.folder} cannot be a folder of checkpoints: {error.strerror or error}"
            ) from None
        file_system.sweep_temporary(self.folder)

    @property
    def checkpoints(self) -> list[SavedStep]:
        """The checkpoints that are in the folder, the oldest first; damaged ones are left out."""
        self.checkpoint.wait()
        return self._records()

    @property
    def newest(self) -> SavedStep | None:
        """The checkpoint that was written last, None where there is none."""
        return next(iter(self.checkpoints[::-1]), None)

    @property
    def best(self) -> SavedStep | None:
        """The one with the best value of the metric; of equal ones the newest. None where there is none."""
        return self._best_of(self.checkpoints)

    def save(self, step: int | None = None, *, force: bool = False, **metrics: Any) -> Path | None:
        """Counts a step, and writes a checkpoint if `every` says so.

        Args:
            step: the number of steps done; by default one more than at the last call.
            force: whether to write in any case, at the end of a run for example.
            **metrics: numbers or scalar tensors to be kept with it, of which one may be the `best`.

        Returns:
            The path of the file; None where none was written.

        Raises:
            ArgumentError: a metric is no number, or that of `best` is lacking.
            CheckpointError: it cannot be written.
            CallError: it is called while a function is traced.
        """
        if tracing() is not None:
            raise CallError("CheckpointManager.save in a staged function would happen while it is traced: save outside")
        self._check_metrics(metrics)
        before, self.step = self.step, self.step + 1 if step is None else _positive("step", step, least=0)
        if not force and not self._is_due(before):
            return None
        self._warn_of_renamed()
        known = {name: _number(name, value) for name, value in metrics.items()}
        path = self.folder / f"checkpoint-{self.step}{SUFFIX}"
        if self._written is None:
            self._written = max([saved.written for saved in self._records()], default=0)
        self._written += 1
        saved = SavedStep(self.step, path, known, self._written)
        info: dict[str, Any] = {"step": self.step, "metrics": {name: _as_json(x) for name, x in known.items()}}
        then = functools.partial(self._remove_old, saved)
        self.checkpoint.write_now(path, background=self._background, then=then, written=saved.written, **info)
        self._last_write = time.monotonic()
        return path

    def restore(self, which: str | int = "newest", *, verify: bool = False) -> RestoreStatus:
        """Restores the newest checkpoint, the "best", or that of a number of steps; `step` is its number then.

        The newest is the one that was written last: a run that went back to the best, and on from there, goes on there.

        Without any checkpoint, "newest" restores nothing and leaves `step` 0, so that a script begins in this way
        whether it is run for the first time or again. A newest one that is damaged is passed over, with a warning.

        Args:
            which: "newest", "best", or the number of steps.
            verify: whether the bytes of the file are held against its checksums, as in `Checkpoint.restore`.

        Raises:
            MissingCheckpointError: there is none of that number, or no best one.
            CheckpointError: it does not fit; nothing was restored then.
            ArgumentError: `which` is not as above, or "best" of a manager that was made without `best`.
        """
        if which == "newest":
            return self._restore_newest(verify)
        if which == "best":
            if self._metric is None:
                raise ArgumentError(
                    "CheckpointManager.restore: which one is the best was not said when the manager was made: write "
                    "ll.CheckpointManager(..., best='loss'), or best='-accuracy' for the highest"
                )
            return self._restored(self.best, f"no checkpoint in {self.folder} has the metric {self._metric!r}", verify)
        if not isinstance(which, int) or isinstance(which, bool):
            raise ArgumentError(f"CheckpointManager.restore: 'newest', 'best' or a number of steps, got {which!r}")
        steps = [saved.step for saved in self.checkpoints]
        chosen = next((saved for saved in self.checkpoints if saved.step == which), None)
        return self._restored(
            chosen, f"{self.folder} has no checkpoint of {which} steps; it has {steps or 'none'}", verify
        )

    def wait(self) -> None:
        """Returns when all is on disk. Raises CheckpointError if it could not be written."""
        self.checkpoint.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.wait()

    def _check_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Refuses, at each step, what would be refused where one is written; values on a device are not waited for."""
        if self._metric is not None and self._metric not in metrics:
            raise ArgumentError(
                f"CheckpointManager.save: the best checkpoint is that of {self._metric!r}, which was not given: write "
                f"manager.save({self._metric}=...)"
            )
        for name, value in metrics.items():
            if not isinstance(value, (Tensor, Variable)):
                _number(name, value)
            elif any(n != 1 for n in value.shape) or value.dtype.kind == "c":
                raise ArgumentError(
                    f"CheckpointManager.save: the metric {name!r} is no number, but a {type(value).__name__} of "
                    f"{spec_text(value.shape, value.dtype)}: write {name}=ll.mean(...)"
                )

    def _is_due(self, before: int) -> bool:
        if isinstance(self._every, datetime.timedelta):
            return time.monotonic() - self._last_write >= self._every.total_seconds()
        return self.step // self._every != before // self._every  # steps may be counted by many at a time

    def _restore_newest(self, verify: bool) -> RestoreStatus:
        for saved in self.checkpoints[::-1]:
            try:
                file = CheckpointFile(saved.path)
                damage = file.changed() if verify else None
            except CheckpointError as error:  # it could be read when it was noted
                warn_here(f"{error.bare}; it is passed over", CheckpointWarning)
                continue
            if not damage:
                return self._restored(saved, "", verify and damage is None)
            said = f"{saved.path} is damaged: {listed(damage)} not as it was written; it is passed over"
            warn_here(said, CheckpointWarning)
        self.step = 0
        return RestoreStatus(self.checkpoint, None)

    def _restored(self, saved: SavedStep | None, none: str, verify: bool) -> RestoreStatus:
        if saved is None:
            raise MissingCheckpointError(none)
        status = self.checkpoint.restore(saved.path, verify=verify)
        self._restored_last = weakref.ref(status)
        self.step = saved.step
        return status

    def _warn_of_renamed(self) -> None:
        """Before weights that were not restored become the newest ones; an answer that was dropped has said it."""
        status = self._restored_last()
        if status is not None:
            status.warn_of_renamed()

    def _records(self) -> list[SavedStep]:
        """What can be read in the folder, in the order in which it was written."""
        found = [self._record(path) for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted([saved for saved in found if saved is not None], key=lambda saved: (saved.written, saved.step))

    def _record(self, path: Path) -> SavedStep | None:
        if path in self._known:
            return self._known[path]
        try:
            info = read_info(path)
            metrics = {name: float(x) for name, x in info["metrics"].items()}
            saved = SavedStep(int(info["step"]), path, metrics, int(info.get("written", 0)))
        except MissingCheckpointError as error:
            if not path.exists():  # it was removed while we looked
                return None
            self._known[path] = None
            warn_here(f"{error.bare}; {path} is passed over", CheckpointWarning)
            return None
        except (CheckpointError, KeyError, TypeError, ValueError, AttributeError) as error:
            said = error.bare if isinstance(error, CheckpointError) else f"{path} was not written by a manager"
            self._known[path] = None
            warn_here(f"{said}; it is passed over", CheckpointWarning)
            return None
        self._known[path] = saved
        return saved

    def _best_of(self, checkpoints: list[SavedStep]) -> SavedStep | None:
        scored = [s for s in checkpoints if not math.isnan(s.metrics.get(self._metric or "", math.nan))]
        return min(
            scored, key=lambda s: (self._sign * s.metrics[self._metric or ""], -s.written, -s.step), default=None
        )

    def _remove_old(self, written: SavedStep) -> None:
        """Removes what is not kept, once `written` is on disk; what cannot be read is left for people to see."""
        self._known[written.path] = written
        if self._keep is None:
            return
        records = self._records()
        best = self._best_of(records) if self._metric is not None else None
        for saved in records[: -self._keep]:
            if saved not in (best, written):
                with contextlib.suppress(OSError, CheckpointError):
                    remove(saved.path)
                self._known.pop(saved.path, None)


def _checkpoint_of(objects: Any) -> Checkpoint:
    if isinstance(objects, Mapping) and all(isinstance(name, str) for name in objects):
        objects = Checkpoint(**objects)
    if not isinstance(objects, Checkpoint):
        raise ArgumentError(
            f"CheckpointManager: objects by name are needed, got a {type(objects).__name__}: write "
            'll.CheckpointManager({"model": model}, folder)'
        )
    if not any(value is default_generator() for value in vars(objects).values()):
        setattr(objects, GENERATOR, default_generator())
    return objects


def _as_json(x: float) -> float | str:
    """NaN and infinities are no numbers of JSON."""
    return x if math.isfinite(x) else str(x)


def _positive(name: str, value: Any, least: int = 1) -> int:
    if name == "step" and (
        isinstance(value, (float, dict)) or getattr(getattr(value, "dtype", None), "kind", "") == "f"
    ):
        raise ArgumentError("CheckpointManager.save: the number of steps comes first, metrics by name: save(loss=loss)")
    number = whole("CheckpointManager", name, value)
    if number < least:
        raise ArgumentError(f"CheckpointManager: {name} must be at least {least}, got {number}")
    return number


def _metric(best: Any) -> tuple[str | None, int]:
    if best is None:
        return None, 1
    if not isinstance(best, str) or not best.removeprefix("-").isidentifier():
        raise ArgumentError(f"CheckpointManager: best is the name of a metric, 'loss' or '-accuracy', got {best!r}")
    return best.removeprefix("-"), -1 if best[0] == "-" else 1


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"CheckpointManager.save: the metric {name!r} is no number, but {value!r}") from None
