"""The checkpoint view: a file, its match with objects, or two files side by side, as they are now."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from limelight import checkpoint as checkpoints
from limelight_widgets.figures.checkpoint import checkpoint_figure
from limelight_widgets.figures.static_forms import Figure
from limelight_widgets.folds.checkpoint import CheckpointFold
from limelight_widgets.folds.fold import State
from limelight_widgets.live.view_script import script
from limelight_widgets.live.widget import ViewWidget
from limelight_widgets.views.view import View


class CheckpointWidget(ViewWidget):
    """Draws an answer about checkpoints."""

    script_path = script("checkpoint")


class CheckpointView(View[CheckpointFold]):
    """What is in a checkpoint, how it is matched, or how two differ; it follows the files and the objects.

    Args:
        ask: answers the question anew: a record of `limelight.checkpoint`, or None where there is nothing to ask about.
        files: the files that are asked about.

    >>> import limelight as ll
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ll.Checkpoint(epoch=3).write(f"{folder}/run.safetensors")
    ...     view = ll.widgets.checkpoint(path)
    ...     print(view.static().text.splitlines()[1])
    epoch  3                value
    """

    name = "checkpoint"
    widget_type = CheckpointWidget
    looks = True

    def __init__(self, ask: Callable[[], Any], files: Sequence[str | os.PathLike[str]]) -> None:
        super().__init__(CheckpointFold(ask, files))

    def _refresh(self, fold: CheckpointFold, at_leisure: bool) -> None:
        if at_leisure:
            fold.look()

    def _figure(self, state: State) -> Figure:
        return checkpoint_figure(state, str(self._feed.fold.answer))

    def to_dict(self) -> dict[str, Any]:
        """The answer, ready for JSON."""
        self.state()
        answer: dict[str, Any] = self._feed.fold.answer.to_dict()
        return answer


def checkpoint(source: Any, target: Any = None, *, check: bool = False) -> CheckpointView:
    """A checkpoint file, how it would be matched with an object, or how it differs from another file.

    While it is shown it follows the files, and the objects: what waits for a layer that is not built yet is matched
    when that is. Nothing is restored, and no object is kept alive.

    Args:
        source: the path of a file, or the status that a restore returned.
        target: None; the path of a second file; or what is to be matched with the root of the file: an `ll.Checkpoint`,
            or a module that has its attributes.
        check: whether all bytes of a file that is shown alone are held against its checksums.

    Raises:
        MissingCheckpointError, CheckpointError: a file is not there, or is no checkpoint.
        ArgumentError: `source` is neither a path nor a status.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> written = ll.Checkpoint(v=ll.Variable([1.0, 2.0]), epoch=3).write(path)
    >>> print(ll.widgets.checkpoint(path).static().text)
    run.safetensors: 2 values, 8 bytes of arrays
    v      f32[2]           variable
    epoch  3                value
    """
    if isinstance(source, checkpoints.RestoreStatus):
        return CheckpointView(asked_weakly(source, lambda status: status.tree()), [])
    if target is None:
        return CheckpointView(lambda: checkpoints.contents(source, check=check), [source])
    if isinstance(target, (str, os.PathLike)):
        return CheckpointView(lambda: checkpoints.compare(source, target), [source, target])
    return matched(source, target, lambda x: x)


def matched(path: Any, target: Any, root: Callable[[Any], Any]) -> CheckpointView:
    """The match of a file with an object.

    Args:
        path: the file.
        target: the object, which is held weakly.
        root: what of it is to be matched with the root of the file.
    """
    return CheckpointView(asked_weakly(target, lambda x: checkpoints.preview(path, root(x))), [path])


def asked_weakly(target: Any, ask: Callable[[Any], Any]) -> Callable[[], Any]:
    """A function that asks about `target` while it lives, and answers None then.

    Containers, which cannot be referred to weakly, are asked about once: the view keeps no object alive.
    """
    try:
        reference = weakref.ref(target)
    except TypeError:
        answer = ask(target)
        return lambda: answer
    return lambda: None if (alive := reference()) is None else ask(alive)
